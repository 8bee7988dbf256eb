"""Chunk: consecutive elements of one document that are indexed and found together. How they are stored: ``packing``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.source import ByteRange

KIND_BITS: Final = {kind: 1 << place for place, kind in enumerate(ElementKind)}
"""The bit of each element kind in ``chunks.kinds``."""


class ChunkElement(NamedTuple):
    """An element, or the part of one, that a chunk holds. Made in great numbers, so hashes wait until they are asked.

    ``start`` and ``end`` are offsets in characters of the chunk's text. A nested list item lies within the item
    around it. ``heading_path`` is an index into the chunk's ``heading_paths``.
    """

    logical: str
    kind: ElementKind
    start: int
    end: int
    heading_path: int
    text: str  # The chunk's.
    # Where what a heading or item owns ends in the text, if its subtree hash is that of the text up to there.
    owned_end: int | None = None
    # Where the hashes are not those of the text: of a part, of an item with others in it, of a section that goes on.
    self_hash: str | None = None
    subtree_hash: str | None = None

    @property
    def pointer(self) -> str:
        """The public pointer."""
        if self.kind is ElementKind.DOCUMENT:
            return self.logical
        self_hash = self.self_hash or _text_hash(self.text, self.start, self.end)
        subtree_hash = self.subtree_hash
        if subtree_hash is None:
            subtree_hash = self_hash if self.owned_end is None else _text_hash(self.text, self.start, self.owned_end)
        return f"{self.logical}~{self_hash}~{subtree_hash}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Consecutive elements of one document.

    Attributes:
        ordinal: Its place among the document's chunks, from 0.
        text: ``lead`` characters that stand elsewhere in the document (a table's header, a fence's first line),
            then the source in ``range``.
        heading_paths: The heading paths of its elements, in order, without repetition; the first one is that of
            the chunk's first element.
        elements: In order of their first byte; a part of a long element is listed with that element's pointer.
        lines: First and last line of ``range``, from 1, inclusive.
    """

    ordinal: int
    text: str
    lead: int
    range: ByteRange
    lines: tuple[int, int]
    heading_paths: tuple[tuple[str, ...], ...]
    elements: tuple[ChunkElement, ...]

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The heading path of the first element, front matter left aside."""
        first = next((one for one in self.elements if one.kind is not ElementKind.FRONTMATTER), self.elements[0])
        return self.heading_paths[first.heading_path]

    @property
    def kinds(self) -> int:
        """The element kinds as a set of ``KIND_BITS``."""
        return kind_mask([element.kind for element in self.elements])

    def element_at(self, start: int, end: int | None = None) -> ChunkElement:
        """The innermost element around the characters ``[start, end)`` of the text, else the nearest one before."""
        stop = start + 1 if end is None else max(end, start + 1)
        around = [one for one in self.elements if one.start <= start and stop <= one.end]
        if around:
            return min(around, key=lambda one: one.end - one.start)
        before = [one for one in self.elements if one.start <= start]
        return before[-1] if before else self.elements[0]

    def lines_of(self, element: ChunkElement) -> tuple[int, int]:
        """First and last line of an element, or of the part of it that the chunk holds."""
        first = self.lines[0] + _line_ends(self.text, self.lead, max(element.start, self.lead))
        last = first + _line_ends(self.text, max(element.start, self.lead), max(element.end, self.lead))
        return (first, min(last, self.lines[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk(Chunk):
    """A chunk as it is read from the index, with what its document says about it.

    ``source_hash`` is that of the document whose rows these are.
    """

    id: int
    document_id: int
    path: str
    title: str
    source_hash: str


def kind_mask(kinds: Sequence[ElementKind]) -> int:
    """The bits of several kinds: a chunk holds one of them where ``kinds & mask`` is not 0."""
    bits = 0
    for kind in kinds:
        bits |= KIND_BITS[kind]
    return bits


def _text_hash(text: str, start: int, end: int) -> str:
    return xxh64_hex(text[start:end].encode("utf-8"))


def _line_ends(text: str, start: int, end: int) -> int:
    return text.count("\n", start, end) + text.count("\r", start, end) - text.count("\r\n", start, end)
