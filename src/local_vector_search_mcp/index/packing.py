"""How chunks and small text lists are packed into their rows. Pure.

The index is kept within one and a half times the size of the Markdown. So a chunk is one compressed value of its
element list and its text, compressed with a dictionary of the tree's own text, and hashes that can be computed from
the text are not stored. The element list is written as text: that is quick, and compresses as well as packed numbers.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from local_vector_search_mcp.index.chunks import Chunk, ChunkElement
from local_vector_search_mcp.markdown.elements import ElementKind

DICTIONARY_BYTES: Final = 32 * 1024

_CODES: Final = {kind: chr(ord("a") + place) for place, kind in enumerate(ElementKind)}
_KINDS: Final = {code: kind for kind, code in _CODES.items()}

_IN_PATH: Final = "\x1f"
_BETWEEN_PATHS: Final = "\x1e"

_STORED: Final = b"r"
_DEFLATED: Final = b"z"
_WITH_DICTIONARY: Final = b"d"
# Higher levels take twice the time for a few hundredths of the size.
_LEVEL: Final = 4
_WORTH_PACKING_BYTES: Final = 160
_MEMORY: Final = 8
# Lists are short, and a compressor for short values takes an eighth of the memory, which is copied for each of them.
_SHORT_WINDOW_BITS: Final = 12
_SHORT_MEMORY: Final = 5
_SHORT_BYTES: Final = 1 << _SHORT_WINDOW_BITS
_AS_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


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
    lines = [str(chunk.lead), _packed_paths(chunk.heading_paths)]
    end = path = 0
    for element in chunk.elements:
        # Addresses hold neither blanks nor line ends.
        line = f"{_CODES[element.kind]}{element.start - end} {element.end - element.start} {element.logical}"
        if element.heading_path != path:
            line += f" p{element.heading_path}"
        if element.owned_end is not None:
            line += f" o{element.owned_end - element.end}"
        if element.self_hash is not None:
            line += f" s{element.self_hash}"
        if element.subtree_hash is not None:
            line += f" t{element.subtree_hash}"
        lines.append(line)
        end, path = element.end, element.heading_path
    head = "\n".join(lines)
    return _deflated(f"{len(head)}\n{head}{chunk.text}".encode(), dictionary)


def unpack_chunk(packed: bytes, dictionary: bytes) -> UnpackedChunk:
    """What ``pack_chunk`` packed with the same dictionary."""
    length, _, rest = _inflated(packed, dictionary).decode("utf-8").partition("\n")
    head, text = rest[: int(length)], rest[int(length) :]
    lead, paths, *lines = head.split("\n")
    elements: list[ChunkElement] = []
    end = path = 0
    for line in lines:
        first, size, logical, *more = line.split(" ")
        start = end + int(first[1:])
        end = start + int(size)
        given = {item[0]: item[1:] for item in more}
        path = int(given.get("p", path))
        elements.append(
            ChunkElement(
                logical=logical,
                kind=_KINDS[first[0]],
                start=start,
                end=end,
                heading_path=path,
                text=text,
                owned_end=end + int(given["o"]) if "o" in given else None,
                self_hash=given.get("s"),
                subtree_hash=given.get("t"),
            )
        )
    return UnpackedChunk(text, int(lead), _unpacked_paths(paths), tuple(elements))


def _packed_paths(paths: Sequence[tuple[str, ...]]) -> str:
    """Heading paths as one line: in separators that no heading holds, else as JSON, which takes longer."""
    line = _BETWEEN_PATHS.join([_IN_PATH.join(path) for path in paths])
    inside = sum(max(len(path) - 1, 0) for path in paths)
    told_apart = line.count(_IN_PATH) == inside and line.count(_BETWEEN_PATHS) == len(paths) - 1
    # A path of one empty heading would look like one without any.
    if told_apart and "\n" not in line and ("",) not in paths:
        return f"={line}"
    return f"j{json.dumps(paths, ensure_ascii=False)}"


def _unpacked_paths(line: str) -> tuple[tuple[str, ...], ...]:
    if line[0] == "j":
        return tuple(tuple(path) for path in json.loads(line[1:]))
    return tuple(tuple(path.split(_IN_PATH)) if path else () for path in line[1:].split(_BETWEEN_PATHS))


def pack_texts(texts: Sequence[str]) -> bytes:
    """A list of texts for a row."""
    return _deflated(_AS_JSON.encode(texts).encode(), b"")


def unpack_texts(packed: bytes) -> list[str]:
    """What ``pack_texts`` packed."""
    texts: list[str] = json.loads(_inflated(packed, b""))
    return texts


@lru_cache(maxsize=2)
def _compressor(dictionary: bytes) -> Any:
    """A compressor that has read the dictionary; copied for each value, as reading it takes longer than copying."""
    if dictionary:
        return zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, _MEMORY, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, _MEMORY)


@lru_cache(maxsize=1)
def _short_compressor() -> Any:
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, -_SHORT_WINDOW_BITS, _SHORT_MEMORY)


def _deflated(data: bytes, dictionary: bytes) -> bytes:
    if len(data) < _WORTH_PACKING_BYTES:
        return _STORED + data
    short = not dictionary and len(data) <= _SHORT_BYTES
    compressor = (_short_compressor() if short else _compressor(dictionary)).copy()
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
