"""Slices: pages of a document under limits, which joined are its exact text.

The document is cut into units, one per element in order of its first byte: from that byte to the first byte of
the next element, or the end. A page is a run of units. What stands before the first element, blank lines only,
belongs to the page that starts at the document itself.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """How much one page holds. ``max_bytes`` counts the page's Markdown; ``before`` elements come in addition."""

    max_elements: int = 20
    max_bytes: int = 12_000
    before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Consecutive elements of a document.

    Attributes:
        elements: In order of their first byte; empty where a page holds only blank lines.
        start, end: The byte range of the page's Markdown.
        texts: The own source of each element, or of the cut one the piece that the page holds.
        truncated: Whether the page's only element is cut before its end.
        next_offset: Where a cut element goes on, in bytes from its first byte.
        next_element, previous_element: Right after and right before the page; None where there is none.
    """

    elements: tuple[Element, ...]
    start: int
    end: int
    texts: tuple[str, ...] = field(repr=False)
    truncated: bool = False
    next_offset: int | None = None
    next_element: Element | None = None
    previous_element: Element | None = None


def read_page(
    document: MarkdownDocument,
    start: Element | None,
    *,
    limits: PageLimits,
    section_only: bool = False,
    offset: int = 0,
) -> Page:
    """The page that starts at an element.

    Args:
        document: The document.
        start: The first element; None starts at the document's first byte after the BOM.
        limits: How much the page holds.
        section_only: ``start`` is a heading and the page ends with its section range.
        offset: Go on so many bytes after the first byte of ``start`` (of the document, where that is None).

    Raises:
        InvalidArgument: The offset lies at or beyond the end of what it counts into, or inside a character.
    """
    reader = _Reader(document, limits, start if section_only else None)
    if start is not None:
        return reader.from_element(start.index, offset)
    return reader.from_document(offset)


class _Reader:
    """One page over one document."""

    def __init__(self, document: MarkdownDocument, limits: PageLimits, section: Element | None) -> None:
        self._document = document
        self._limits = limits
        self._starts = document.starts
        self._data = document.source.data
        # The last unit ends where the section, or the document, ends.
        self._end = len(self._data) if section is None else section.section_end
        self._count = len(self._starts) if section is None else bisect_left(self._starts, self._end)

    def from_document(self, offset: int) -> Page:
        """A page from the first byte after the BOM, which may be a blank line."""
        body = self._document.source.bom_len
        lead_end = self._starts[0] if self._starts else self._end
        at = body + offset
        lead = lead_end - at
        if lead <= 0 and self._starts:
            return self.from_element(0, at - lead_end)
        self._check_offset(at, lead_end, offset)
        if lead > self._limits.max_bytes:
            return self._blank(at, self._cut(at, lead_end, self._limits.max_bytes), next_offset_from=body)
        room = self._limits.max_bytes - lead
        if not self._starts or self._unit_end(0) - lead_end > room:
            return self._blank(at, lead_end)
        last = self._last_fitting(0, room)
        return self._page(0, last, start=at, end=self._unit_end(last))

    def from_element(self, first: int, offset: int) -> Page:
        """A page from an element's first byte, or from inside it."""
        begin = self._starts[first]
        unit_end = self._unit_end(first)
        at = begin + offset
        self._check_offset(at, unit_end, offset)
        if unit_end - at > self._limits.max_bytes:
            cut = self._cut(at, unit_end, self._limits.max_bytes)
            return self._page(first, first, start=at, end=cut, next_offset=cut - begin)
        if offset:
            # What is left of a cut element comes alone too: another page's elements would seem to be part of it.
            return self._page(first, first, start=at, end=unit_end)
        last = self._last_fitting(first, self._limits.max_bytes)
        end = self._unit_end(last)
        earliest = first
        while earliest > 0 and first - earliest < self._limits.before:
            if end - self._starts[earliest - 1] > self._limits.max_bytes:
                break
            earliest -= 1
        return self._page(earliest, last, start=self._starts[earliest], end=end)

    def _check_offset(self, at: int, end: int, offset: int) -> None:
        if offset and (at >= end or self._inside_character(at)):
            raise InvalidArgument(f"offset {offset} is no place to go on at; use the nextOffset of the page before.")

    def _last_fitting(self, first: int, room: int) -> int:
        """The last of the units from ``first`` on that fit the limits together; at least the first."""
        last = first
        begin = self._starts[first]
        while (
            last + 1 < self._count
            and last + 1 - first < self._limits.max_elements
            and self._unit_end(last + 1) - begin <= room
        ):
            last += 1
        return last

    def _unit_end(self, place: int) -> int:
        return self._starts[place + 1] if place + 1 < self._count else self._end

    def _page(self, first: int, last: int, *, start: int, end: int, next_offset: int | None = None) -> Page:
        elements = self._document.elements[first : last + 1]
        if next_offset is not None or (first == last and start > self._starts[first]):
            texts = tuple(self._piece(element, start, end) for element in elements)
        else:
            texts = tuple(self._own_text(element) for element in elements)
        return Page(
            elements=elements,
            start=start,
            end=end,
            texts=texts,
            truncated=next_offset is not None,
            next_offset=next_offset,
            next_element=self._document.elements[last + 1] if last + 1 < self._count else None,
            previous_element=self._document.elements[first - 1] if first > 0 else None,
        )

    def _blank(self, start: int, end: int, *, next_offset_from: int | None = None) -> Page:
        return Page(
            elements=(),
            start=start,
            end=end,
            texts=(),
            truncated=next_offset_from is not None,
            next_offset=None if next_offset_from is None else end - next_offset_from,
            next_element=self._document.elements[0] if self._count else None,
        )

    def _own_text(self, element: Element) -> str:
        """The element's own source; where an item's later segments are long, as many as fit a page.

        What is left out stands in the Markdown of the pages that its nested items are on.
        """
        if element.kind is not ElementKind.LIST_ITEM:
            return element.text
        kept: list[str] = []
        room = self._limits.max_bytes
        for segment in element.segments:
            room -= segment.length
            if kept and room < 0:
                break
            kept.append(self._document.source.decode(segment.start, segment.end))
        return "\n".join(kept)

    def _piece(self, element: Element, start: int, end: int) -> str:
        """What of the element's own first segment lies in a piece of the document."""
        segment = element.segments[0]
        begin, stop = max(start, segment.start), min(end, segment.end)
        return self._document.source.decode(begin, stop) if begin < stop else ""

    def _cut(self, start: int, end: int, most: int) -> int:
        """The end of a piece: after the last line ending that fits, else between two characters."""
        stop = min(start + most, end)
        newline = self._data.rfind(b"\n", start, stop)
        carriage = self._data.rfind(b"\r", start, stop)
        if carriage == stop - 1 and self._data[stop : stop + 1] == b"\n":
            # The first half of a CRLF is no line's end.
            carriage = self._data.rfind(b"\r", start, carriage)
        line_end = max(newline, carriage) + 1
        if line_end > start:
            return line_end
        while stop > start and self._inside_character(stop):
            stop -= 1
        if stop == start:
            # Not even one character fits; a page is never empty.
            stop += 1
            while self._inside_character(stop):
                stop += 1
        if self._data[stop - 1 : stop + 1] == b"\r\n" and stop - 1 > start:
            stop -= 1
        return stop

    def _inside_character(self, at: int) -> bool:
        return at < len(self._data) and self._data[at] & 0xC0 == 0x80
