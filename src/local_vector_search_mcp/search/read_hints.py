"""Which arguments of ``kb_read`` give a whole chunk."""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

from dataclasses import dataclass
from typing import Final

import apsw

from local_vector_search_mcp.index.chunks import ChunkElement, StoredChunk
from local_vector_search_mcp.index.rows import read_chunks

_DEFAULT_MAX_BYTES: Final = 12_000
_DEFAULT_MAX_ELEMENTS: Final = 20
_MOST_BYTES: Final = 200_000
# Blank lines behind the last element belong to the page too.
_SLACK_BYTES: Final = 200
_MOST_PARTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadHint:
    """Arguments of ``kb_read``; those that stand at their defaults are None."""

    path: str
    pointer: str
    max_elements: int | None = None
    max_bytes: int | None = None
    offset: int | None = None
    collection: str | None = None


def read_hint(connection: apsw.Connection, chunk: StoredChunk) -> ReadHint:
    """The page that holds the whole chunk. A part of an element too large for a page is given by its offset."""
    first, last = chunk.elements[0], chunk.elements[-1]
    # Only what is not its element's whole text has a hash that is not that of the text.
    start = chunk.range.start if first.self_hash is None else _start_of_element(connection, chunk, first)
    end = chunk.range.end if last.self_hash is None else _end_of_element(connection, chunk, last)
    # A page that begins inside an element ends with it, so that what stands behind needs the element from its start.
    alone = len(chunk.elements) == 1 or end - start > _MOST_BYTES
    if chunk.range.start > start and alone:
        size = chunk.range.end - chunk.range.start
        return ReadHint(path=chunk.path, pointer=first.pointer, max_bytes=_page(size), offset=chunk.range.start - start)
    return ReadHint(
        path=chunk.path,
        pointer=first.pointer,
        max_elements=len(chunk.elements) if len(chunk.elements) != _DEFAULT_MAX_ELEMENTS else None,
        max_bytes=_page(end - start),
    )


def _page(size: int) -> int | None:
    wanted = min(size + _SLACK_BYTES, _MOST_BYTES)
    return wanted if wanted > _DEFAULT_MAX_BYTES else None


def _start_of_element(connection: apsw.Connection, chunk: StoredChunk, element: ChunkElement) -> int:
    """The first byte of the chunk's first element, which may stand in a chunk before."""
    start = chunk.range.start
    for number in range(chunk.ordinal - 1, max(chunk.ordinal - 1 - _MOST_PARTS, -1), -1):
        before = _neighbour(connection, chunk, number)
        if before is None or before.elements[-1].logical != element.logical:
            break
        start = _byte_at(before, before.elements[-1].start)
        if len(before.elements) > 1:
            break
    return start


def _end_of_element(connection: apsw.Connection, chunk: StoredChunk, element: ChunkElement) -> int:
    """The byte after the chunk's last element, which may go on in the chunks behind."""
    end = chunk.range.end
    for number in range(chunk.ordinal + 1, chunk.ordinal + 1 + _MOST_PARTS):
        behind = _neighbour(connection, chunk, number)
        if behind is None or behind.elements[0].logical != element.logical:
            break
        end = _byte_at(behind, behind.elements[0].end)
        if len(behind.elements) > 1 or end - chunk.range.start > _MOST_BYTES:
            break
    return end


def _byte_at(chunk: StoredChunk, char: int) -> int:
    """The place in the document of a character of the chunk's text that is not in its lead."""
    return chunk.range.start + len(chunk.text[chunk.lead : max(char, chunk.lead)].encode("utf-8"))


def _neighbour(connection: apsw.Connection, chunk: StoredChunk, ordinal: int) -> StoredChunk | None:
    found = connection.execute(
        "SELECT id FROM chunks WHERE document_id = ? AND ordinal = ?", (chunk.document_id, ordinal)
    ).get
    return None if found is None else read_chunks(connection, [int(found)]).get(int(found))
