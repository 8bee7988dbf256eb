"""Chunk: consecutive elements of one document that are indexed and found together, and how its rows are packed.

Text is compressed and element lists are packed, because the index is kept within one and a half times the size
of the Markdown.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.source import ByteRange

_KINDS: Final = tuple(ElementKind)
KIND_BITS: Final = {kind: 1 << place for place, kind in enumerate(_KINDS)}
"""The bit of each element kind in ``chunks.kinds``."""

_KIND_CODES: Final = {kind: place for place, kind in enumerate(_KINDS)}
_HAS_SUBTREE: Final = 0x20
_HAS_HASH: Final = 0x40
_COMPRESSION: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkElement:
    """An element, or the part of one, that a chunk holds.

    ``start`` and ``end`` are offsets in characters of the chunk's text. A nested list item lies within the item
    around it. ``heading_path`` is an index into the chunk's ``heading_paths``.
    """

    pointer: str
    kind: ElementKind
    start: int
    end: int
    heading_path: int


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
        """The heading path of the first element."""
        return self.heading_paths[0]

    @property
    def kinds(self) -> int:
        """The element kinds as a set of ``KIND_BITS``."""
        bits = 0
        for element in self.elements:
            bits |= KIND_BITS[element.kind]
        return bits


@dataclass(frozen=True, kw_only=True)
class StoredChunk:
    """A chunk as it is read from the index, with what its document says about it; unpacked as far as it is asked."""

    id: int
    document_id: int
    ordinal: int
    path: str
    title: str
    source_hash: str
    lines: tuple[int, int]
    range: ByteRange
    kinds: int
    packed_text: bytes
    packed_elements: bytes

    @cached_property
    def text(self) -> str:
        """The chunk's text, lead included."""
        return unpack_text(self.packed_text)

    @cached_property
    def _unpacked(self) -> "_Elements":
        return unpack_elements(self.packed_elements)

    @property
    def lead(self) -> int:
        """How many characters of ``text`` stand elsewhere in the document."""
        return self._unpacked.lead

    @property
    def elements(self) -> tuple[ChunkElement, ...]:
        """The elements in order of their first byte."""
        return self._unpacked.elements

    @property
    def heading_paths(self) -> tuple[tuple[str, ...], ...]:
        """The heading paths that the elements refer to."""
        return self._unpacked.heading_paths

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The heading path of the first element."""
        return self.heading_paths[0]

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


@dataclass(frozen=True, slots=True)
class _Elements:
    lead: int
    heading_paths: tuple[tuple[str, ...], ...]
    elements: tuple[ChunkElement, ...]


def pack_text(text: str) -> bytes:
    """A chunk's text for its row."""
    data = text.encode("utf-8")
    packed = zlib.compress(data, _COMPRESSION)
    return b"z" + packed if len(packed) < len(data) else b"r" + data


def unpack_text(packed: bytes) -> str:
    """The text that ``pack_text`` packed."""
    data = packed[1:]
    return (zlib.decompress(data) if packed[:1] == b"z" else data).decode("utf-8")


def pack_elements(chunk: Chunk) -> bytes:
    """A chunk's element list for its row: hashes as bytes, numbers with as many bytes as they need."""
    out = bytearray()
    _put_number(out, chunk.lead)
    _put_number(out, len(chunk.heading_paths))
    for path in chunk.heading_paths:
        _put_number(out, len(path))
        for text in path:
            _put_text(out, text)
    _put_number(out, len(chunk.elements))
    previous = 0
    for element in chunk.elements:
        logical, self_hash, subtree_hash = _pointer_parts(element.pointer)
        code = _KIND_CODES[element.kind]
        if self_hash:
            code |= _HAS_HASH
        if subtree_hash != self_hash:
            code |= _HAS_SUBTREE
        out.append(code)
        _put_number(out, element.heading_path)
        _put_number(out, element.start - previous)
        _put_number(out, element.end - element.start)
        _put_text(out, logical)
        out += bytes.fromhex(self_hash)
        if code & _HAS_SUBTREE:
            out += bytes.fromhex(subtree_hash)
        previous = element.start
    return bytes(out)


def unpack_elements(packed: bytes) -> _Elements:
    """The element list that ``pack_elements`` packed."""
    lead, at = _number(packed, 0)
    count, at = _number(packed, at)
    paths: list[tuple[str, ...]] = []
    for _ in range(count):
        length, at = _number(packed, at)
        texts: list[str] = []
        for _ in range(length):
            text, at = _text(packed, at)
            texts.append(text)
        paths.append(tuple(texts))
    count, at = _number(packed, at)
    elements: list[ChunkElement] = []
    start = 0
    for _ in range(count):
        code = packed[at]
        path, at = _number(packed, at + 1)
        offset, at = _number(packed, at)
        length, at = _number(packed, at)
        pointer, at = _text(packed, at)
        if code & _HAS_HASH:
            self_hash = packed[at : at + 8].hex()
            at += 8
            subtree_hash = self_hash
            if code & _HAS_SUBTREE:
                subtree_hash = packed[at : at + 8].hex()
                at += 8
            pointer = f"{pointer}~{self_hash}~{subtree_hash}"
        start += offset
        kind = _KINDS[code & 0x1F]
        elements.append(ChunkElement(pointer=pointer, kind=kind, start=start, end=start + length, heading_path=path))
    return _Elements(lead, tuple(paths), tuple(elements))


def pack_hashes(pointer: str) -> bytes:
    """The hashes of a full pointer as bytes: 8, or 16 where the subtree hash differs; none of a bare pointer."""
    _, self_hash, subtree_hash = _pointer_parts(pointer)
    return bytes.fromhex(self_hash if self_hash == subtree_hash else self_hash + subtree_hash)


def unpack_pointer(logical: str, hashes: bytes) -> str:
    """The full pointer of a logical address and the hashes that ``pack_hashes`` packed."""
    if not hashes:
        return logical
    text = hashes.hex()
    return f"{logical}~{text[:16]}~{text[-16:]}"


def kind_mask(kinds: Sequence[ElementKind]) -> int:
    """The bits of several kinds: a chunk holds one of them where ``kinds & mask`` is not 0."""
    bits = 0
    for kind in kinds:
        bits |= KIND_BITS[kind]
    return bits


def _pointer_parts(pointer: str) -> tuple[str, str, str]:
    if "~" not in pointer:
        return pointer, "", ""
    logical, self_hash, subtree_hash = pointer.split("~")
    return logical, self_hash, subtree_hash


def _line_ends(text: str, start: int, end: int) -> int:
    return text.count("\n", start, end) + text.count("\r", start, end) - text.count("\r\n", start, end)


def _put_number(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_text(out: bytearray, text: str) -> None:
    data = text.encode("utf-8")
    _put_number(out, len(data))
    out += data


def _number(packed: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = packed[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _text(packed: bytes, at: int) -> tuple[str, int]:
    length, at = _number(packed, at)
    return packed[at : at + length].decode("utf-8"), at + length
