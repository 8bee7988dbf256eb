"""Plan: what a set of operations comes to, in bytes and in elements, before any of it is made."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from local_vector_search_mcp.editing.fragments import Piece
from local_vector_search_mcp.editing.seams import Change, GapNeighbours, GapPlace, Placed, Seam, SeamPlan
from local_vector_search_mcp.editing.targets import Target
from local_vector_search_mcp.editing.text_edits import TextEdits
from local_vector_search_mcp.markdown.elements import MarkdownDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class NewElements:
    """Elements that an operation puts at one place of the element sequence.

    Attributes:
        operation: The operation's index.
        at: They stand before the old element of this index; where it is replaced, in its place.
        order: Orders several operations' elements at one place, as their texts stand.
        pieces: What they are.
        parent: The old index of the list item that holds them.
        list_of: The old index of an item whose list the top pieces belong to; None where that is open.
    """

    operation: int
    at: int
    order: tuple[int, ...]
    pieces: tuple[Piece, ...]
    parent: int | None = None
    list_of: int | None = None


@dataclass(slots=True, kw_only=True)
class Plan:
    """What the operations come to.

    Attributes:
        document: The document as it was read.
        replaced: Old element index → the operation that replaces it, by ``new``.
        removed: Old element indexes that are gone, those that moved included.
        deleted_by: Old element index → the deletion that removes it (moves and replacements are none).
        new: What the operations put in.
        moved: Old element index → the operation that moves it, and its place among that operation's pieces.
    """

    document: MarkdownDocument
    targets: Sequence[Target]
    replaced: dict[int, int] = field(default_factory=dict[int, int])
    removed: set[int] = field(default_factory=set[int])
    deleted_by: dict[int, int] = field(default_factory=dict[int, int])
    new: list[NewElements] = field(default_factory=list[NewElements])
    moved: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    changes: list[Change] = field(default_factory=list[Change])
    placed: list[Placed] = field(default_factory=list[Placed])
    gaps: list[GapPlace] = field(default_factory=list[GapPlace])
    neighbours: dict[int, GapNeighbours] = field(default_factory=dict[int, GapNeighbours])

    def edits(self, heals: frozenset[Seam] = frozenset()) -> tuple[TextEdits, frozenset[Seam]]:
        """The text edits with one more blank line at each of the ``heals``, and the seams that could still take one."""
        plan = SeamPlan(self.document.source, self.changes, self.placed, self.gaps, self.neighbours, heals)
        edits = plan.edits().without_no_ops(self.document.source.data)
        return edits, frozenset(plan.healable)

    def operations_near(self, index: int) -> list[int]:
        """The operations, those nearest to an old element's index first."""
        places = [(abs(group.at - index), group.operation) for group in self.new]
        places += [(abs(removed - index), operation) for removed, operation in self.deleted_by.items()]
        places += [(abs(moved - index), operation) for moved, (operation, _) in self.moved.items()]
        return list(dict.fromkeys(operation for _, operation in sorted(places)))
