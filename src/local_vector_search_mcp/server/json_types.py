"""What a parsed JSON value is, in a form that type checkers follow."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a JSON array, or a tuple on the way to be one."""
    return isinstance(value, list | tuple)
