"""Chunk: consecutive elements of one document that are indexed and found together, and how its rows are packed.

Text is compressed and element lists are packed, because the index is kept within one and a half times the size
of the Markdown.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.source import ByteRange

_KINDS: Final = tuple(ElementKind)
KIND_BITS: Final = {kind: 1 << place for place, kind in enumerate(_KINDS)}
"""The bit of each element kind in ``chunks.kinds``."""

_KIND_CODES: Final = {kind: place for place, kind in enumerate(_KINDS)}
_CODE_MASK: Final = 0x0F
_SUBTREE_HASH: Final = 0x20  # Another subtree hash follows.
_SELF_HASH: Final = 0x40  # The self hash follows; otherwise it is the hash of the element's text.
_NO_HASH: Final = 0x80  # A bare pointer.
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
        """The heading path of the first element, front matter left aside."""
        return _chunk_heading_path(self.heading_paths, self.elements)

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
    def _unpacked(self) -> "UnpackedElements":
        return unpack_elements(self.packed_elements, self.text)

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
        """The heading path of the first element, front matter left aside."""
        return self._unpacked.heading_path

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
class UnpackedElements:
    """The element list of a stored chunk; the fields are those of ``Chunk``."""

    lead: int
    heading_paths: tuple[tuple[str, ...], ...]
    elements: tuple[ChunkElement, ...]

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The chunk's heading path."""
        return _chunk_heading_path(self.heading_paths, self.elements)


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
    """A chunk's element list for its row.

    Numbers take as many bytes as they need, heading paths and addresses share their beginnings, and a self hash that
    is the hash of the element's text in the chunk is left out.
    """
    out = bytearray()
    _put_number(out, chunk.lead)
    _put_number(out, len(chunk.heading_paths))
    above: tuple[str, ...] = ()
    for path in chunk.heading_paths:
        shared = _shared(above, path)
        _put_number(out, shared)
        _put_number(out, len(path) - shared)
        for text in path[shared:]:
            _put_text(out, text)
        above = path
    _put_number(out, len(chunk.elements))
    previous = 0
    before = ""
    for element in chunk.elements:
        logical, self_hash, subtree_hash = _pointer_parts(element.pointer)
        code = _KIND_CODES[element.kind]
        if not self_hash:
            code |= _NO_HASH
        elif self_hash != _text_hash(chunk.text, element.start, element.end):
            code |= _SELF_HASH
        if subtree_hash != self_hash:
            code |= _SUBTREE_HASH
        out.append(code)
        _put_number(out, element.heading_path)
        _put_number(out, element.start - previous)
        _put_number(out, element.end - element.start)
        shared = _shared(before, logical)
        _put_number(out, shared)
        _put_text(out, logical[shared:])
        if code & _SELF_HASH:
            out += bytes.fromhex(self_hash)
        if code & _SUBTREE_HASH:
            out += bytes.fromhex(subtree_hash)
        previous, before = element.start, logical
    return bytes(out)


def unpack_elements(packed: bytes, text: str) -> UnpackedElements:
    """The element list that ``pack_elements`` packed for a chunk with this text."""
    lead, at = _number(packed, 0)
    paths, at = _unpack_paths(packed, at)
    count, at = _number(packed, at)
    elements: list[ChunkElement] = []
    start = 0
    logical = ""
    for _ in range(count):
        code = packed[at]
        path, at = _number(packed, at + 1)
        offset, at = _number(packed, at)
        length, at = _number(packed, at)
        shared, at = _number(packed, at)
        rest, at = _text(packed, at)
        start += offset
        logical = pointer = logical[:shared] + rest
        if not code & _NO_HASH:
            if code & _SELF_HASH:
                self_hash = packed[at : at + 8].hex()
                at += 8
            else:
                self_hash = _text_hash(text, start, start + length)
            subtree_hash = self_hash
            if code & _SUBTREE_HASH:
                subtree_hash = packed[at : at + 8].hex()
                at += 8
            pointer = f"{logical}~{self_hash}~{subtree_hash}"
        kind = _KINDS[code & _CODE_MASK]
        elements.append(ChunkElement(pointer=pointer, kind=kind, start=start, end=start + length, heading_path=path))
    return UnpackedElements(lead, paths, tuple(elements))


def _unpack_paths(packed: bytes, at: int) -> tuple[tuple[tuple[str, ...], ...], int]:
    count, at = _number(packed, at)
    paths: list[tuple[str, ...]] = []
    above: tuple[str, ...] = ()
    for _ in range(count):
        shared, at = _number(packed, at)
        length, at = _number(packed, at)
        texts: list[str] = []
        for _ in range(length):
            text, at = _text(packed, at)
            texts.append(text)
        above = (*above[:shared], *texts)
        paths.append(above)
    return tuple(paths), at


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


def _chunk_heading_path(paths: tuple[tuple[str, ...], ...], elements: tuple[ChunkElement, ...]) -> tuple[str, ...]:
    first = next((one for one in elements if one.kind is not ElementKind.FRONTMATTER), elements[0])
    return paths[first.heading_path]


def _text_hash(text: str, start: int, end: int) -> str:
    return xxh64_hex(text[start:end].encode("utf-8"))


def _shared(before: Sequence[str], after: Sequence[str]) -> int:
    """How many items, or characters, two sequences begin with in common."""
    for place, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            return place
    return min(len(before), len(after))


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
