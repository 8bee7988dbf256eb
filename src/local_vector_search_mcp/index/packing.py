"""How chunks, pointers and small text lists are packed into their rows. Pure.

The index is kept within one and a half times the size of the Markdown. So a chunk is one compressed value of its
element list and its text, compressed with a dictionary of the tree's own text, and what can be computed from the
text, such as most hashes, is not stored.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.index.chunks import Chunk, ChunkElement
from local_vector_search_mcp.markdown.elements import ElementKind

DICTIONARY_BYTES: Final = 32 * 1024

_KINDS: Final = tuple(ElementKind)
_KIND_CODES: Final = {kind: place for place, kind in enumerate(_KINDS)}
_CODE_MASK: Final = 0x0F
_OTHER_PATH: Final = 0x10  # The number of the heading path follows; otherwise it is that of the element before.
_SUBTREE_HASH: Final = 0x20  # Another subtree hash than the self hash follows.
_SELF_HASH: Final = 0x40  # The self hash follows; otherwise it is the hash of the element's text.
_OWNED_END: Final = 0x80  # The length of what it owns follows; the subtree hash is the hash of that text.
_BARE: Final = ElementKind.DOCUMENT  # The only kind whose pointer has no hashes.

_STORED: Final = b"r"
_DEFLATED: Final = b"z"
_WITH_DICTIONARY: Final = b"d"
_LEVEL: Final = 6
_MEMORY: Final = 9


@dataclass(frozen=True, slots=True)
class UnpackedChunk:
    """What a stored chunk is made of; the fields are those of ``Chunk``."""

    text: str
    lead: int
    heading_paths: tuple[tuple[str, ...], ...]
    elements: tuple[ChunkElement, ...]


def make_dictionary(samples: Sequence[bytes]) -> bytes:
    """A compression dictionary from samples of the text that will be packed, the most typical ones last."""
    return b"".join(samples)[-DICTIONARY_BYTES:]


def pack_chunk(chunk: Chunk, dictionary: bytes) -> bytes:
    """A chunk's elements and text for its row.

    Args:
        chunk: The chunk.
        dictionary: The index's dictionary; empty where it has none.
    """
    elements = _packed_elements(chunk)
    out = bytearray()
    _put_number(out, len(elements))
    out += elements
    out += chunk.text.encode("utf-8")
    return _deflated(bytes(out), dictionary)


def unpack_chunk(packed: bytes, dictionary: bytes) -> UnpackedChunk:
    """What ``pack_chunk`` packed with the same dictionary."""
    data = _inflated(packed, dictionary)
    length, at = _number(data, 0)
    text = data[at + length :].decode("utf-8")
    return _unpacked_elements(data[at : at + length], text)


def pack_texts(texts: Sequence[str]) -> bytes:
    """A list of texts for a row."""
    out = bytearray()
    for text in texts:
        _put_text(out, text)
    return _deflated(bytes(out), b"")


def unpack_texts(packed: bytes) -> list[str]:
    """What ``pack_texts`` packed."""
    data = _inflated(packed, b"")
    texts: list[str] = []
    at = 0
    while at < len(data):
        text, at = _text(data, at)
        texts.append(text)
    return texts


def _packed_elements(chunk: Chunk) -> bytes:
    out = bytearray()
    _put_number(out, chunk.lead)
    _put_paths(out, chunk.heading_paths)
    _put_number(out, len(chunk.elements))
    start = path = 0
    before = ""
    for element in chunk.elements:
        logical, self_hash, subtree_hash = _pointer_parts(element.pointer)
        code = _KIND_CODES[element.kind]
        if element.heading_path != path:
            code |= _OTHER_PATH
        if self_hash and self_hash != _text_hash(chunk.text, element.start, element.end):
            code |= _SELF_HASH
        owned_end = _owned_end(chunk.text, element, self_hash, subtree_hash)
        if owned_end is not None:
            code |= _OWNED_END
        elif subtree_hash != self_hash:
            code |= _SUBTREE_HASH
        out.append(code)
        if code & _OTHER_PATH:
            _put_number(out, element.heading_path)
        _put_number(out, element.start - start)
        _put_number(out, element.end - element.start)
        shared = _shared(before, logical)
        _put_number(out, shared)
        _put_text(out, logical[shared:])
        if code & _SELF_HASH:
            out += bytes.fromhex(self_hash)
        if code & _SUBTREE_HASH:
            out += bytes.fromhex(subtree_hash)
        if owned_end is not None:
            _put_number(out, owned_end - element.start)
        start, before, path = element.start, logical, element.heading_path
    return bytes(out)


def _owned_end(text: str, element: ChunkElement, self_hash: str, subtree_hash: str) -> int | None:
    """Where what the element owns ends in the text, if its subtree hash can be computed from there."""
    if subtree_hash == self_hash:
        return None
    end = element.end if element.kind is ElementKind.LIST_ITEM else element.owned_end
    return end if end is not None and _text_hash(text, element.start, end) == subtree_hash else None


def _unpacked_elements(packed: bytes, text: str) -> UnpackedChunk:
    lead, at = _number(packed, 0)
    paths, at = _paths(packed, at)
    count, at = _number(packed, at)
    elements: list[ChunkElement] = []
    start = path = 0
    logical = ""
    for _ in range(count):
        code = packed[at]
        at += 1
        if code & _OTHER_PATH:
            path, at = _number(packed, at)
        offset, at = _number(packed, at)
        length, at = _number(packed, at)
        shared, at = _number(packed, at)
        rest, at = _text(packed, at)
        start += offset
        logical = logical[:shared] + rest
        kind = _KINDS[code & _CODE_MASK]
        self_hash = subtree_hash = ""
        owned_end: int | None = None
        if code & _SELF_HASH:
            self_hash = packed[at : at + 8].hex()
            at += 8
        elif kind is not _BARE:
            self_hash = _text_hash(text, start, start + length)
        if code & _SUBTREE_HASH:
            subtree_hash = packed[at : at + 8].hex()
            at += 8
        elif code & _OWNED_END:
            owned, at = _number(packed, at)
            subtree_hash = _text_hash(text, start, start + owned)
            owned_end = start + owned if kind is ElementKind.HEADING else None
        elements.append(
            ChunkElement(
                pointer=_pointer(logical, self_hash, subtree_hash),
                kind=kind,
                start=start,
                end=start + length,
                heading_path=path,
                owned_end=owned_end,
            )
        )
    return UnpackedChunk(text, lead, paths, tuple(elements))


def _put_paths(out: bytearray, paths: Sequence[tuple[str, ...]]) -> None:
    """Heading paths; each shares its beginning with the one before."""
    _put_number(out, len(paths))
    above: tuple[str, ...] = ()
    for path in paths:
        shared = _shared(above, path)
        _put_number(out, shared)
        _put_number(out, len(path) - shared)
        for text in path[shared:]:
            _put_text(out, text)
        above = path


def _paths(packed: bytes, at: int) -> tuple[tuple[tuple[str, ...], ...], int]:
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


@lru_cache(maxsize=2)
def _compressor(dictionary: bytes) -> Any:
    """A compressor that has read the dictionary; copied for each value, as reading it takes longer than copying."""
    if dictionary:
        return zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, _MEMORY, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, _MEMORY)


def _deflated(data: bytes, dictionary: bytes) -> bytes:
    compressor = _compressor(dictionary).copy()
    packed: bytes = compressor.compress(data) + compressor.flush()
    if len(packed) >= len(data):
        return _STORED + data
    return (_WITH_DICTIONARY if dictionary else _DEFLATED) + packed


def _inflated(packed: bytes, dictionary: bytes) -> bytes:
    mark, data = packed[:1], packed[1:]
    if mark == _STORED:
        return data
    if mark == _WITH_DICTIONARY:
        return zlib.decompressobj(-zlib.MAX_WBITS, dictionary).decompress(data)
    return zlib.decompress(data, -zlib.MAX_WBITS)


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


def _pointer(logical: str, self_hash: str, subtree_hash: str) -> str:
    return f"{logical}~{self_hash}~{subtree_hash or self_hash}" if self_hash else logical


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
