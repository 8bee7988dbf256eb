"""Scopes: what a client may do, in three steps."""

from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """What a client may do; every scope includes the ones before it."""

    READ = "read"
    EDIT = "edit"
    FULL = "full"

    def allows(self, required: "Scope") -> bool:
        """Whether a server of this scope may run a tool that requires ``required``."""
        order = list(Scope)
        return order.index(self) >= order.index(required)


HOW_TO_WIDEN: Final[dict[Scope, str]] = {
    Scope.EDIT: "start the server with --scope edit or --allow-writes",
    Scope.FULL: "start the server with --scope full or --allow-writes",
}
"""What a person does to give a client more."""
