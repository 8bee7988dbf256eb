"""Elements → chunks. Pure; the order of the document is kept and nothing that is not blank is left out.

A section's heading stands first in its chunk. Small sections that are neighbours under one parent share a chunk, a
heading without text of its own goes with what follows it, and a heading of level 1 always begins a chunk (front
matter before it goes along, as it belongs to no section).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from local_vector_search_mcp.index.chunks import Chunk, ChunkElement
from local_vector_search_mcp.index.splitting import repeated_lead, split_range
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.source import ByteRange, SourceText

CHUNKER_VERSION: Final = 1
"""Raised whenever the same document gives other chunks."""

# Sections up to this share of a chunk are small: several of them may stand in one chunk.
_SMALL_SECTION: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkerSettings:
    """How documents are cut.

    Attributes:
        max_chunk_bytes: Most bytes of a chunk's text, its lead included.
        max_elements: Most elements of a chunk, nested list items counted.
        include_front_matter: Index front matter as text.
    """

    max_chunk_bytes: int = 4096
    max_elements: int = 20
    include_front_matter: bool = True


class _Unit(NamedTuple):
    """Bytes that stay together, and the elements in them with the place of each."""

    start: int
    end: int
    parts: tuple[tuple[Element, int, int], ...]
    lead: bytes = b""


def chunk_document(document: MarkdownDocument, settings: ChunkerSettings) -> tuple[Chunk, ...]:
    """Cut a document into chunks, in document order.

    A document without any element gives one chunk without text that points to ``document``, so that it is found by
    its name.
    """
    packer = _Packer(document, settings)
    for heading, units in _sections(document, settings):
        packer.begin_section(heading, units)
        for unit in units:
            packer.add(unit)
    packer.flush()
    return tuple(packer.chunks) if packer.chunks else (_empty_chunk(document.source),)


def _empty_chunk(source: SourceText) -> Chunk:
    end = source.bom_len
    element = ChunkElement("document", ElementKind.DOCUMENT, 0, 0, 0, "")
    return Chunk(
        ordinal=0,
        text="",
        lead=0,
        range=ByteRange(end, end),
        lines=(1, 1),
        heading_paths=((),),
        elements=(element,),
    )


def _sections(document: MarkdownDocument, settings: ChunkerSettings) -> Iterator[tuple[Element | None, list[_Unit]]]:
    """Each heading with the units up to the next heading, itself included; first what stands before any heading."""
    heading: Element | None = None
    units: list[_Unit] = []
    elements = document.elements
    place, count = 0, len(elements)
    while place < count:
        element = elements[place]
        kind, start, end = element.kind, element.start, element.end
        place += 1
        if kind is ElementKind.LIST_ITEM:
            first = place
            while place < count and elements[place].start < end:
                place += 1
            units.extend(_item_units(element, elements[first:place], settings))
            continue
        if kind is ElementKind.HEADING:
            if units:
                yield heading, units
            heading, units = element, []
        elif kind is ElementKind.FRONTMATTER and not settings.include_front_matter:
            continue
        units.append(_Unit(start, end, ((element, start, end),)))
    if units:
        yield heading, units


def _item_units(item: Element, inside: Sequence[Element], settings: ChunkerSettings) -> Iterator[_Unit]:
    """A list item with all that is nested in it as one unit where that fits, else its pieces in order."""
    start, end = item.start, item.end
    if end - start <= settings.max_chunk_bytes and len(inside) < settings.max_elements:
        yield _Unit(start, end, ((item, start, end), *((one, one.start, one.end) for one in inside)))
        return
    pieces = [(segment.start, segment.end, owner) for owner in (item, *inside) for segment in owner.segments]
    for first, last, owner in sorted(pieces, key=lambda piece: piece[0]):
        if first < last:
            yield _Unit(first, last, ((owner, first, last),))


class _Packer:
    """Fills one chunk after the other."""

    def __init__(self, document: MarkdownDocument, settings: ChunkerSettings) -> None:
        self.chunks: list[Chunk] = []
        self._source = document.source
        self._all = document.elements
        self._settings = settings
        self._units: list[_Unit] = []
        self._section: str = ""  # Of the first element of the chunk being filled.
        self._whole_sections = True  # Every section in the chunk being filled stands there with its heading.
        self._elements: set[int] = set()

    def begin_section(self, heading: Element | None, units: Sequence[_Unit]) -> None:
        """Decide whether the next section goes on in the chunk being filled."""
        if self._units and (heading is None or not self._may_share(heading, units)):
            self.flush()
        if not self._units:
            self._section = heading.section if heading is not None else ""
            self._whole_sections = True

    def add(self, unit: _Unit) -> None:
        """Put a unit into the chunk being filled, or begin another one with it."""
        if self._units and self._fits(unit.start, unit.end, len(unit.parts)):
            self._append(unit)
            return
        if self._units:
            left = self._settings.max_chunk_bytes - (unit.start - self._units[0].start)
            if self._may_begin_here(unit, left):
                self._add_parts(unit, left)
                return
            self.flush()
        if unit.end - unit.start > self._settings.max_chunk_bytes:
            self._add_parts(unit, self._settings.max_chunk_bytes)
            return
        self._append(unit)

    def flush(self) -> None:
        """Close the chunk being filled."""
        if self._units:
            self.chunks.append(self._chunk())
            self._units = []
            self._elements = set()
            self._whole_sections = False

    def _append(self, unit: _Unit) -> None:
        self._units.append(unit)
        parts = unit.parts
        if len(parts) == 1:
            self._elements.add(parts[0][0].index)
        else:
            self._elements.update([element.index for element, _, _ in parts])

    def _add_parts(self, unit: _Unit, first_bytes: int) -> None:
        """Split one long element; the first part may stand under its heading, the last one may be followed by more."""
        element = unit.parts[0][0]
        data = self._source.data
        most = self._settings.max_chunk_bytes
        lead = repeated_lead(data, element.kind, unit.start, unit.end, most // 2)
        for start, end in split_range(data, unit.start, unit.end, first_bytes, most - len(lead)):
            if start != unit.start:
                self.flush()
            self._append(_Unit(start, end, ((element, start, end),), lead if start != unit.start else b""))

    def _may_begin_here(self, unit: _Unit, left: int) -> bool:
        """Whether the first part of an element that has to be split goes under the heading before it."""
        most = self._settings.max_chunk_bytes
        room = left >= most // _SMALL_SECTION and len(self._elements) < self._settings.max_elements
        return unit.end - unit.start > most and room and self._only_headings()

    def _may_share(self, heading: Element, units: Sequence[_Unit]) -> bool:
        if self._holds_only(ElementKind.FRONTMATTER):
            return self._fits(units[0].start, units[0].end, len(units[0].parts))
        if heading.level == 1 or not self._whole_sections:
            return False
        inside = not self._section or heading.section.startswith(f"{self._section}.")
        if inside and self._only_headings():
            return self._fits(units[0].start, units[0].end, len(units[0].parts))
        above = self._section.rpartition(".")[0]
        if not (inside or not above or heading.section.startswith(f"{above}.")):
            return False
        start, end = units[0].start, units[-1].end
        small = end - start <= self._settings.max_chunk_bytes // _SMALL_SECTION
        return small and self._fits(start, end, sum(len(unit.parts) for unit in units))

    def _only_headings(self) -> bool:
        return self._holds_only(ElementKind.HEADING, ElementKind.FRONTMATTER)

    def _holds_only(self, *kinds: ElementKind) -> bool:
        return all(part[0].kind in kinds for unit in self._units for part in unit.parts)

    def _fits(self, start: int, end: int, elements: int) -> bool:
        first = self._units[0]
        size = len(first.lead) + end - first.start
        return size <= self._settings.max_chunk_bytes and len(self._elements) + elements <= self._settings.max_elements

    def _chunk(self) -> Chunk:
        source = self._source
        first, last = self._units[0], self._units[-1]
        lead = first.lead.decode("utf-8")
        data = source.data[first.start : last.end]
        text = lead + data.decode("utf-8")
        places = self._places()
        shift = len(lead) - first.start
        at = None if len(text) - len(lead) == len(data) else _char_offsets(source, first.start, last.end, places)
        paths: dict[tuple[str, ...], int] = {}
        elements: list[ChunkElement] = []
        heading: Element | None = None
        path = -1
        for element, start, end in places:
            if path < 0 or element.heading is not heading:
                heading = element.heading
                path = paths.setdefault(element.heading_path, len(paths))
            owned_end, self_hash, subtree_hash = self._hashes(element, start, end, last.end)
            elements.append(
                ChunkElement(
                    element.logical,
                    element.kind,
                    # The repeated lead belongs to the element that was split.
                    0 if lead and start == first.start else (start if at is None else at[start]) + shift,
                    (end if at is None else at[end]) + shift,
                    path,
                    text,
                    None if owned_end is None else (owned_end if at is None else at[owned_end]) + shift,
                    self_hash,
                    subtree_hash,
                )
            )
        return Chunk(
            ordinal=len(self.chunks),
            text=text,
            lead=len(lead),
            range=ByteRange(first.start, last.end),
            lines=(source.line_of(first.start), source.line_of(max(first.start, last.end - 1))),
            heading_paths=tuple(paths),
            elements=tuple(elements),
        )

    def _hashes(
        self, element: Element, start: int, end: int, chunk_end: int
    ) -> tuple[int | None, str | None, str | None]:
        """Where what the element owns ends, and those of its hashes that its text in the chunk does not give."""
        if start != element.start or end != element.end:
            return None, element.self_hash, element.subtree_hash
        kind = element.kind
        if kind is ElementKind.HEADING:
            section_end = element.section_end
            if section_end == end:
                return None, None, None
            return (section_end, None, None) if section_end <= chunk_end else (None, None, element.subtree_hash)
        if kind is ElementKind.LIST_ITEM:
            following = element.index + 1
            if following < len(self._all) and self._all[following].parent == element.index:
                return end, element.self_hash, None
        return None, None, None

    def _places(self) -> list[tuple[Element, int, int]]:
        """Each element in the chunk with the range that it has there."""
        parts = [part for unit in self._units for part in unit.parts]
        if len(parts) == len(self._elements):
            return parts
        # An item whose text goes on after the items in it has several parts.
        places: dict[int, tuple[Element, int, int]] = {}
        for element, start, end in parts:
            known = places.get(element.index)
            places[element.index] = (element, start if known is None else known[1], end)
        return list(places.values())


def _char_offsets(
    source: SourceText, start: int, end: int, places: "Sequence[tuple[Element, int, int]]"
) -> dict[int, int]:
    """What byte offsets would be if every character from ``start`` on took one byte, for all places of elements."""
    offsets = {start, end}
    for element, first, last in places:
        offsets.add(first)
        offsets.add(last)
        if element.kind is ElementKind.HEADING and element.section_end <= end:
            offsets.add(element.section_end)
    at: dict[int, int] = {}
    chars = before = start
    for offset in sorted(offsets):
        chars += len(source.data[before:offset].decode("utf-8"))
        at[offset] = chars
        before = offset
    return at
