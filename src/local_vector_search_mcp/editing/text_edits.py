"""TextEdit and TextEdits: byte ranges of one source with what takes their place."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from local_vector_search_mcp.markdown.source import ByteRange


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Bytes that take the place of a range; an empty range is an insertion."""

    range: ByteRange
    replacement: bytes

    @property
    def growth(self) -> int:
        """By how many bytes the source grows; negative where it shrinks."""
        return len(self.replacement) - self.range.length


class TextEdits:
    """Edits of one source: in order of their ranges, which are disjoint. Immutable."""

    __slots__ = ("_edits",)

    def __init__(self, edits: Iterable[TextEdit] = ()) -> None:
        ordered = tuple(sorted(edits, key=lambda edit: (edit.range.start, edit.range.end)))
        for before, after in pairwise(ordered):
            if after.range.start < before.range.end or after.range == before.range:
                raise ValueError(f"edits overlap: {before.range} and {after.range}")
        self._edits = ordered

    def __iter__(self) -> Iterator[TextEdit]:
        return iter(self._edits)

    def __len__(self) -> int:
        return len(self._edits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextEdits) and self._edits == other._edits

    def __hash__(self) -> int:
        return hash(self._edits)

    def __repr__(self) -> str:
        return f"TextEdits({list(self._edits)!r})"

    def apply(self, data: bytes) -> bytes:
        """The source with every edit made.

        Raises:
            ValueError: An edit reaches beyond the end of ``data``.
        """
        if self._edits and self._edits[-1].range.end > len(data):
            raise ValueError(f"an edit ends at {self._edits[-1].range.end}, the source at {len(data)}")
        pieces: list[bytes] = []
        position = 0
        for edit in self._edits:
            pieces.append(data[position : edit.range.start])
            pieces.append(edit.replacement)
            position = edit.range.end
        pieces.append(data[position:])
        return b"".join(pieces)

    def apply_within(self, data: bytes, where: ByteRange) -> bytes:
        """A range of the source with the edits made, all of which lie in it."""
        moved = TextEdits(
            TextEdit(ByteRange(edit.range.start - where.start, edit.range.end - where.start), edit.replacement)
            for edit in self._edits
        )
        return moved.apply(where.slice(data))

    def without_no_ops(self, data: bytes) -> "TextEdits":
        """The edits that change a byte of ``data``."""
        return TextEdits(edit for edit in self._edits if edit.range.slice(data) != edit.replacement)

    def inverse(self, data: bytes) -> "TextEdits":
        """The edits of ``apply(data)`` that give ``data`` back."""
        shift = 0
        backward: list[TextEdit] = []
        for edit in self._edits:
            start = edit.range.start + shift
            backward.append(
                TextEdit(ByteRange(start, start + len(edit.replacement)), edit.range.slice(data)),
            )
            shift += edit.growth
        return TextEdits(backward)

    def shifted(self, offset: int) -> int:
        """Where an offset outside the edited ranges stands after ``apply``; at an insertion, after it."""
        place = bisect_right(self._edits, offset, key=lambda edit: edit.range.start)
        return offset + sum(edit.growth for edit in self._edits[:place])
