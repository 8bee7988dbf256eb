"""Seams: blank lines and line endings where texts meet.

The document is seen as blocks of whole lines with gaps of blank lines between them. Only the gaps beside
something that changes are cut; everything between two of them is one kept block. Insertions find their
place first, then deletions take the shorter of the gaps that are beside them by then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from local_vector_search_mcp.editing.list_edits import ItemMarker
from local_vector_search_mcp.editing.text_edits import TextEdit, TextEdits
from local_vector_search_mcp.markdown.source import ByteRange, SourceText

_BLANKS = b" \t"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapPlace:
    """A gap between two blocks of lines.

    Attributes:
        before: Where the block before it ends; None at the document's start.
        after: Where the block after it starts; None at the document's end.
    """

    before: int | None
    after: int | None

    @property
    def key(self) -> int:
        """What sorts the gaps of one document and tells them apart."""
        return -1 if self.before is None else self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A run of lines that one operation takes out or replaces."""

    operation: int
    range: ByteRange
    content: bytes | None  # None where it is taken out.


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A text that goes into a gap.

    Attributes:
        gap: Where.
        content: Without a last line ending.
        ending: The line ending in use there.
        follows: Whether it is addressed by what stands before the gap, else by what stands after.
        sibling: Whether it is a list item beside its sibling: no blank line is added.
        rank: Orders the texts of one side of a gap; then the order of the operations does.
        first_marker, last_marker: Of its first and last element, where those are list items.
    """

    operation: int
    gap: GapPlace
    content: bytes
    ending: bytes
    follows: bool
    sibling: bool = False
    rank: int = 0
    first_marker: ItemMarker | None = None
    last_marker: ItemMarker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GapNeighbours:
    """The list items that a gap lies between, where there are such."""

    before: ItemMarker | None = None
    after: ItemMarker | None = None


@dataclass(frozen=True, slots=True)
class Seam:
    """One side of what an operation put in or took out."""

    operation: int
    after: bool  # Else before.


@dataclass(slots=True, kw_only=True)
class _Block:
    """Whole lines: their content, their last line's ending, and the blank lines after them."""

    content: ByteRange | bytes
    ending: ByteRange | bytes
    gap: list[ByteRange | bytes]
    use: bytes = b""  # The ending in use, where this block's last line lacks one.
    operation: int | None = None
    deleted: bool = False
    glued: bool = False  # The next block starts on this block's last line.
    start: bool = False  # Stands before the first line of the document.
    joined: set[int] = field(default_factory=set[int])  # Deletions that closed up after this block.


def gap_before(source: SourceText, start: int, *, floor: int) -> GapPlace:
    """The gap before the block of lines that starts at an offset.

    Args:
        source: The document's source.
        start: The block's first byte; inside a line, where it starts behind another item's marker.
        floor: The end of the element before, where it ends at or before ``start``; blank lines up to there
            belong to that element.
    """
    line = source.line_of(start) if start < len(source.data) else source.line_count
    line_start = source.line_starts[line - 1]
    if start > line_start and source.data[line_start:start].strip(_BLANKS):
        return GapPlace(before=line_start + len(source.data[line_start:start].rstrip(_BLANKS)), after=start)
    line -= 1
    while line >= 1 and source.line_starts[line - 1] >= floor and source.is_blank(line):
        line -= 1
    if line < 1:
        return GapPlace(before=None, after=start)
    return GapPlace(before=max(source.line_range(line).end, source.bom_len), after=start)


def gap_after(source: SourceText, end: int) -> GapPlace:
    """The gap after the block of lines whose last line ends, ending excluded, at an offset."""
    line = source.line_of(end) if end < len(source.data) else source.line_count
    line += 1
    while line <= source.line_count and source.is_blank(line):
        line += 1
    if line > source.line_count:
        return GapPlace(before=end, after=None)
    return GapPlace(before=end, after=source.line_starts[line - 1])


def whole_gap(source: SourceText) -> GapPlace:
    """The gap that is the whole of a document without elements."""
    return GapPlace(before=None, after=None)


class SeamPlan:
    """Changes and placed texts of one document, made into text edits."""

    def __init__(
        self,
        source: SourceText,
        changes: Iterable[Change],
        placed: Iterable[Placed],
        gaps: Iterable[GapPlace],
        neighbours: Mapping[int, GapNeighbours],
        heals: frozenset[Seam] = frozenset(),
    ) -> None:
        """Take everything that happens to the document.

        Args:
            source: The document's source.
            changes: Disjoint; the gaps on both sides of each are among ``gaps``.
            placed: The inserted texts; their gaps are among ``gaps``.
            gaps: Every gap that is cut.
            neighbours: The list items beside a gap, by the gap's key.
            heals: Where one more blank line is put.
        """
        self.source = source
        self.changes = {change.range.start: change for change in changes}
        self.neighbours = neighbours
        self.heals = heals
        self.placed: dict[int, list[Placed]] = {}
        for text in placed:
            self.placed.setdefault(text.gap.key, []).append(text)
        unique = {gap.key: gap for gap in gaps}
        self.gaps = [unique[key] for key in sorted(unique)]
        self.healable: set[Seam] = set()

    def edits(self) -> TextEdits:
        """The text edits; bytes of the source that stay are in none of them.

        Afterwards ``healable`` holds the seams without a blank line, where one more could help.
        """
        if not self.gaps:
            return TextEdits()
        blocks = self._close_deletions(self._place_texts(self._cut()))
        self._heal(blocks)
        self._end_lines(blocks)
        return _edits(blocks, len(self.source.data))

    def _cut(self) -> list[_Block]:
        blocks: list[_Block] = []
        position = 0
        for gap in self.gaps:
            if gap.before is None:
                start = self.source.bom_len
                blocks.append(
                    _Block(content=ByteRange(0, start), ending=b"", gap=self._blank_lines(start, gap.after), start=True)
                )
            else:
                blocks.append(self._block(position, gap))
            position = gap.after if gap.after is not None else len(self.source.data)
        if self.gaps and self.gaps[-1].after is not None:
            end = len(self.source.data)
            end -= _last_ending_length(self.source.data[position:])
            blocks.append(self._block(position, GapPlace(before=end, after=None)))
        if blocks and not blocks[0].start:
            blocks.insert(0, _Block(content=b"", ending=b"", gap=[], start=True))
        return blocks

    def _block(self, start: int, gap: GapPlace) -> _Block:
        assert gap.before is not None
        end = gap.before
        content = ByteRange(start, end)
        after = gap.after if gap.after is not None else len(self.source.data)
        between = self.source.data[end:after]
        glued = gap.after is not None and not between.strip(_BLANKS) and after > end
        ending_length = len(between) if glued else _ending_length(between)
        block = _Block(
            content=content,
            ending=ByteRange(end, end + ending_length),
            gap=[] if glued else self._blank_lines(end + ending_length, after),
            glued=glued,
        )
        change = self.changes.get(start)
        if change is not None and change.range == content:
            block.operation = change.operation
            block.deleted = change.content is None
            if change.content is not None:
                block.content = change.content
        return block

    def _blank_lines(self, start: int, end: int | None) -> list[ByteRange | bytes]:
        stop = len(self.source.data) if end is None else end
        lines: list[ByteRange | bytes] = []
        for line in self.source.data[start:stop].splitlines(keepends=True):
            lines.append(ByteRange(start, start + len(line)))
            start += len(line)
        return lines

    def _place_texts(self, blocks: list[_Block]) -> list[_Block]:
        result: list[_Block] = []
        keys = iter([gap.key for gap in self.gaps])
        skip_start = bool(blocks) and blocks[0].start and (not self.gaps or self.gaps[0].before is not None)
        for place, block in enumerate(blocks):
            result.append(block)
            if place == 0 and skip_start:
                continue
            key = next(keys, None)
            texts = self.placed.get(key, []) if key is not None else []
            if texts:
                result.extend(self._fill(block, texts, self.neighbours.get(key or 0, GapNeighbours()), place, blocks))
        return result

    def _fill(
        self, left: _Block, texts: Sequence[Placed], beside: GapNeighbours, place: int, blocks: list[_Block]
    ) -> list[_Block]:
        """The blocks of the texts that go into the gap after ``left``; sets the gaps around them."""
        following = sorted((text for text in texts if text.follows), key=lambda text: (text.rank, text.operation))
        preceding = sorted((text for text in texts if not text.follows), key=lambda text: (text.rank, text.operation))
        ordered = [*following, *preceding]
        made = [
            _Block(content=text.content, ending=text.ending, gap=[], use=text.ending, operation=text.operation)
            for text in ordered
        ]
        kept = left.gap
        at_end = place == len(blocks) - 1
        markers_before = [beside.before, *(text.last_marker for text in ordered)]
        markers_after = [*(text.first_marker for text in ordered), beside.after]
        for number, gap_owner in enumerate([left, *made]):
            texts_beside = [*ordered[max(0, number - 1) : number], *ordered[number : number + 1]]
            joins = _joins(markers_before[number], markers_after[number])
            siblings = all(text.sibling for text in texts_beside)
            blank_line: list[ByteRange | bytes] = [] if joins or siblings else [texts_beside[0].ending]
            if number != len(following):
                gap_owner.gap = [] if gap_owner.start else blank_line
            elif gap_owner.start or (at_end and number == len(ordered)):
                gap_owner.gap = kept
            elif siblings or (kept and not joins):
                # The side that a text was not addressed by keeps the gap that was there.
                gap_owner.gap = kept
            else:
                gap_owner.gap = blank_line
        left.use = left.use or ordered[0].ending
        return made

    def _close_deletions(self, blocks: list[_Block]) -> list[_Block]:
        result: list[_Block] = []
        for place, block in enumerate(blocks):
            if not block.deleted:
                result.append(block)
                continue
            previous = result[-1]
            assert block.operation is not None
            previous.joined.add(block.operation)
            previous.joined |= block.joined
            if previous.glued:
                previous.ending, previous.gap, previous.glued = block.ending, block.gap, block.glued
            elif previous.start:
                pass
            elif place == len(blocks) - 1 or len(previous.gap) < len(block.gap):
                previous.gap = block.gap
        return result

    def _heal(self, blocks: list[_Block]) -> None:
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            wanted = {Seam(operation, True) for operation in block.joined}
            wanted |= {Seam(operation, False) for operation in block.joined}
            if block.operation is not None:
                wanted.add(Seam(block.operation, True))
            if following is not None and following.operation is not None:
                wanted.add(Seam(following.operation, False))
            if following is None or block.start or block.glued or block.gap:
                continue
            if wanted & self.heals:
                block.gap = [block.use or self._use(block)]
            else:
                self.healable |= wanted

    def _use(self, block: _Block) -> bytes:
        if isinstance(block.ending, ByteRange) and block.ending.length:
            return block.ending.slice(self.source.data)
        first = self.source.first_line_ending()
        return first.encode("ascii") if first is not None else b"\n"

    def _end_lines(self, blocks: list[_Block]) -> None:
        """Give every line but the last an ending; the last keeps the ending, or the lack of one, of the document."""
        source = self.source
        ended = source.line_count > 0 and source.line_ending(source.line_count) is not None
        last = max((place for place, block in enumerate(blocks) if not block.start), default=None)
        for place, block in enumerate(blocks):
            if block.start:
                continue
            if (place != last or block.gap) and _length(block.ending) == 0:
                block.ending = block.use or self._use(block)
            elif place == last and not block.gap:
                if not ended:
                    block.ending = b""
                elif _length(block.ending) == 0:
                    block.ending = block.use or self._use(block)


def _joins(before: ItemMarker | None, after: ItemMarker | None) -> bool:
    return before is not None and after is not None and before.joins(after)


def _ending_length(data: bytes) -> int:
    if data.startswith(b"\r\n"):
        return 2
    return 1 if data[:1] in (b"\r", b"\n") and data else 0


def _last_ending_length(data: bytes) -> int:
    if data.endswith(b"\r\n"):
        return 2
    return 1 if data.endswith((b"\n", b"\r")) else 0


def _length(piece: ByteRange | bytes) -> int:
    return piece.length if isinstance(piece, ByteRange) else len(piece)


def _edits(blocks: Sequence[_Block], size: int) -> TextEdits:
    """The difference between the source and the blocks' pieces in order."""
    edits: list[TextEdit] = []
    position = 0
    pending: list[bytes] = []

    def close(start: int) -> None:
        if start > position or pending:
            edits.append(TextEdit(ByteRange(position, start), b"".join(pending)))
            pending.clear()

    for block in blocks:
        for piece in (block.content, block.ending, *block.gap):
            if isinstance(piece, bytes):
                if piece:
                    pending.append(piece)
            elif piece.length:
                close(piece.start)
                position = piece.end
    if blocks:
        close(size)
    return TextEdits(edits)
