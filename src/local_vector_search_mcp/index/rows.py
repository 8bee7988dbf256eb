"""Write, move and delete the rows of one document, inside the caller's transaction.

Chunk, full-text row and vector share one id and come and go together. The full-text table keeps no text, so a row
of it is written from the same chunk that is stored.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import apsw

from local_vector_search_mcp.index.chunks import StoredChunk
from local_vector_search_mcp.index.normalize import index_text
from local_vector_search_mcp.index.packing import unpack_chunk
from local_vector_search_mcp.markdown.source import ByteRange
from local_vector_search_mcp.relpath import RelPath

INDEXED: Final = "indexed"
UNSUPPORTED: Final = "unsupported"
FAILED: Final = "failed"

_AWAITING: Final = 0
_NEVER_WANTED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What the file system said about a file when it was read.

    Attributes:
        recheck: Read and hash it again on the next run: it may change once more without another time.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    recheck: bool = False


class ChunkRow(NamedTuple):
    """One chunk, packed, with what the full-text table is given for it."""

    kinds: int
    line_start: int
    line_end: int
    byte_start: int
    byte_end: int
    embed_hash: bytes  # Empty where no vector is wanted.
    content: bytes
    fts_headings: str
    fts_body: str


class DocumentRows(NamedTuple):
    """Everything that is stored of one document's content. Crosses process boundaries."""

    source_hash: str
    title: str
    title_from_name: bool
    warning: str | None
    metadata: str | None
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    anchors: bytes | None
    links: bytes | None
    link_names: tuple[int, ...]
    fts_title: str
    fts_keys: str
    chunks: tuple[ChunkRow, ...]


class ChunkHooks(Protocol):
    """What else is kept per chunk; called inside the transaction that writes or deletes the chunk."""

    def chunks_written(self, connection: apsw.Connection, chunks: Sequence[tuple[int, bytes]]) -> None:
        """Chunks were written: their ids and embed hashes. They stand as awaiting; this may mark them as done."""
        ...

    def chunks_deleted(self, connection: apsw.Connection, chunk_ids: Sequence[int]) -> None:
        """Chunks are about to be deleted."""
        ...


class NoChunkHooks:
    """Nothing else is kept per chunk: an index without vectors."""

    def chunks_written(self, connection: apsw.Connection, chunks: Sequence[tuple[int, bytes]]) -> None:
        """Nothing to do."""

    def chunks_deleted(self, connection: apsw.Connection, chunk_ids: Sequence[int]) -> None:
        """Nothing to do."""


def write_document(
    connection: apsw.Connection,
    path: RelPath,
    facts: FileFacts,
    rows: DocumentRows,
    *,
    hooks: ChunkHooks,
) -> int:
    """Put a document's rows in the place of what the index held of that path.

    Args:
        connection: The writing connection, inside a transaction.
        path: The document.
        facts: Its file as it was read.
        rows: Its content.
        hooks: Told about the chunks that go and come.

    Returns:
        The document's id, which stays the same for a path.
    """
    values = (
        facts.size,
        facts.mtime_ns,
        facts.ctime_ns,
        facts.inode,
        int(facts.recheck),
        INDEXED,
        rows.source_hash,
        rows.title,
        int(rows.title_from_name),
        rows.warning,
        rows.metadata,
        rows.anchors,
        rows.links,
    )
    known = document_id_of(connection, path)
    if known is None:
        connection.execute(
            "INSERT INTO documents (path, size, mtime_ns, ctime_ns, inode, recheck, state, source_hash, title,"
            " title_from_name, warning, metadata, anchors, links) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (path.value, *values),
        )
        document_id = connection.last_insert_rowid()
    else:
        document_id = known
        _delete_content(connection, document_id, hooks)
        connection.execute(
            "UPDATE documents SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, recheck = ?, state = ?,"
            " source_hash = ?, title = ?, title_from_name = ?, warning = ?, metadata = ?, anchors = ?, links = ?,"
            " reason = NULL WHERE id = ?",
            (*values, document_id),
        )
    for table, items in (("tags", rows.tags), ("aliases", rows.aliases)):
        if items:
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(document_id, item) for item in items])
    if rows.link_names:
        connection.executemany(
            "INSERT INTO link_names VALUES (?, ?)", [(name, document_id) for name in rows.link_names]
        )
    _write_chunks(connection, document_id, rows, hooks)
    return document_id


def mark_unreadable(
    connection: apsw.Connection, path: RelPath, facts: FileFacts, *, state: str, reason: str, hooks: ChunkHooks
) -> None:
    """Record why a selected file cannot be indexed.

    Args:
        connection: The writing connection, inside a transaction.
        path: The file.
        facts: Its file as it was seen.
        state: ``UNSUPPORTED`` (not a document of ours: its old rows go) or ``FAILED`` (to be tried again: they stay).
        reason: Shown in the status.
        hooks: Told about the chunks that go.
    """
    document_id = _document_row(connection, path, facts)
    if state == UNSUPPORTED:
        _delete_content(connection, document_id, hooks)
        connection.execute(
            "UPDATE documents SET source_hash = NULL, metadata = NULL, warning = NULL, anchors = NULL, links = NULL"
            " WHERE id = ?",
            (document_id,),
        )
    connection.execute("UPDATE documents SET state = ?, reason = ? WHERE id = ?", (state, reason, document_id))


def update_facts(connection: apsw.Connection, document_id: int, facts: FileFacts) -> None:
    """Record that a file was looked at and holds what is indexed."""
    connection.execute(
        "UPDATE documents SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, recheck = ? WHERE id = ?",
        (facts.size, facts.mtime_ns, facts.ctime_ns, facts.inode, int(facts.recheck), document_id),
    )


def move_document(
    connection: apsw.Connection, document_id: int, path: RelPath, facts: FileFacts, *, source_hash: str
) -> bool:
    """Give a document another path. Chunks and vectors stay; only the searchable path is written again.

    False, and nothing is done, where the document's rows are gone or of other content by now, or a row stands at the
    new path: another writer may have been here since the move was thought of.
    """
    row: tuple[str, int] | None = connection.execute(
        "SELECT title, title_from_name FROM documents WHERE id = ? AND source_hash = ?"
        " AND NOT EXISTS (SELECT 1 FROM documents WHERE path = ?)",
        (document_id, source_hash, path.value),
    ).get
    if row is None:
        return False
    title = path.stem if row[1] else row[0]
    connection.execute("UPDATE documents SET path = ?, title = ? WHERE id = ?", (path.value, title, document_id))
    update_facts(connection, document_id, facts)
    aliases = _column(connection, "SELECT alias_folded FROM aliases WHERE document_id = ?", document_id)
    tags = _column(connection, "SELECT tag FROM tags WHERE document_id = ?", document_id)
    fts_title, keys = index_text(title), index_text(key_text(path, aliases, tags))
    dictionary = read_dictionary(connection)
    chunks = list(connection.execute("SELECT id, content FROM chunks WHERE document_id = ?", (document_id,)))
    for chunk_id, content in chunks:
        chunk = unpack_chunk(bytes(content), dictionary)
        connection.execute("DELETE FROM fts WHERE rowid = ?", (chunk_id,))
        connection.execute(
            "INSERT INTO fts (rowid, title, headings, body, keys) VALUES (?, ?, ?, ?, ?)",
            (chunk_id, fts_title, index_text(heading_text(chunk.heading_paths)), index_text(chunk.text), keys),
        )
    return True


def delete_document(connection: apsw.Connection, document_id: int, *, hooks: ChunkHooks) -> None:
    """Delete a document with all its rows."""
    _delete_chunks(connection, document_id, hooks)
    connection.execute("DELETE FROM documents WHERE id = ?", (document_id,))


def read_chunks(connection: apsw.Connection, chunk_ids: Sequence[int]) -> dict[int, StoredChunk]:
    """Stored chunks by id; ids that are gone are left out."""
    if not chunk_ids:
        return {}
    dictionary = read_dictionary(connection)
    found = connection.execute(
        "SELECT c.id, c.document_id, c.ordinal, d.path, d.title, d.source_hash, c.line_start, c.line_end,"
        " c.byte_start, c.byte_end, c.content"
        " FROM chunks AS c JOIN documents AS d ON d.id = c.document_id"
        " WHERE c.id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(chunk_ids)),),
    )
    chunks: dict[int, StoredChunk] = {}
    for row in found:
        content = unpack_chunk(row[10], dictionary)
        chunks[row[0]] = StoredChunk(
            id=row[0],
            document_id=row[1],
            ordinal=row[2],
            path=row[3],
            title=row[4],
            source_hash=row[5],
            lines=(row[6], row[7]),
            range=ByteRange(row[8], row[9]),
            text=content.text,
            lead=content.lead,
            heading_paths=content.heading_paths,
            elements=content.elements,
        )
    return chunks


def read_dictionary(connection: apsw.Connection) -> bytes:
    """What the chunks of this index are compressed with; empty where it has no dictionary."""
    found = connection.execute("SELECT data FROM dictionary").get
    return b"" if found is None else bytes(found)


def write_dictionary(connection: apsw.Connection, dictionary: bytes) -> None:
    """Give an index without chunks its dictionary; it is never changed afterwards."""
    connection.execute("INSERT OR IGNORE INTO dictionary VALUES (1, ?)", (dictionary,))


def key_text(path: RelPath, aliases: Sequence[str], tags: Sequence[str]) -> str:
    """What the ``keys`` column is made of: path without extension, aliases and tags, a line each."""
    stem = f"{path.parent}/{path.stem}" if path.parent else path.stem
    return "\n".join([stem, *aliases, *(f"#{tag}" for tag in tags)])


def heading_text(heading_paths: Sequence[Sequence[str]]) -> str:
    """What the ``headings`` column is made of: every heading around the chunk's elements once, a line each."""
    return "\n".join(dict.fromkeys(heading for path in heading_paths for heading in path))


def document_id_of(connection: apsw.Connection, path: RelPath) -> int | None:
    """The id of a path's row; None where the index does not know it."""
    found = connection.execute("SELECT id FROM documents WHERE path = ?", (path.value,)).get
    return None if found is None else int(found)


def count_revision(connection: apsw.Connection) -> None:
    """Note that rows of documents have changed; once per transaction that wrote, moved or deleted some."""
    connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'revision'")


def _document_row(connection: apsw.Connection, path: RelPath, facts: FileFacts) -> int:
    """The id of the path's row, which is made where there is none, with the facts of its file."""
    known = document_id_of(connection, path)
    if known is not None:
        update_facts(connection, known, facts)
        return known
    connection.execute(
        "INSERT INTO documents (path, size, mtime_ns, ctime_ns, inode, recheck, state, title, title_from_name)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)",
        (
            path.value,
            facts.size,
            facts.mtime_ns,
            facts.ctime_ns,
            facts.inode,
            int(facts.recheck),
            FAILED,
            path.stem,
        ),
    )
    return connection.last_insert_rowid()


def _write_chunks(connection: apsw.Connection, document_id: int, rows: DocumentRows, hooks: ChunkHooks) -> None:
    first = int(connection.execute("SELECT coalesce(max(id), 0) FROM chunks").get) + 1
    connection.executemany(
        "INSERT INTO chunks (id, document_id, ordinal, kinds, line_start, line_end, byte_start, byte_end, embed_hash,"
        " content, embed_state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (first + ordinal, document_id, ordinal, *chunk[:7], _AWAITING if chunk.embed_hash else _NEVER_WANTED)
            for ordinal, chunk in enumerate(rows.chunks)
        ],
    )
    connection.executemany(
        "INSERT INTO fts (rowid, title, headings, body, keys) VALUES (?, ?, ?, ?, ?)",
        [
            (first + ordinal, rows.fts_title, chunk.fts_headings, chunk.fts_body, rows.fts_keys)
            for ordinal, chunk in enumerate(rows.chunks)
        ],
    )
    wanted = [(first + ordinal, chunk.embed_hash) for ordinal, chunk in enumerate(rows.chunks) if chunk.embed_hash]
    if wanted:
        hooks.chunks_written(connection, wanted)


def _delete_content(connection: apsw.Connection, document_id: int, hooks: ChunkHooks) -> None:
    _delete_chunks(connection, document_id, hooks)
    for table in ("tags", "aliases", "link_names"):
        connection.execute(f"DELETE FROM {table} WHERE document_id = ?", (document_id,))


def _delete_chunks(connection: apsw.Connection, document_id: int, hooks: ChunkHooks) -> None:
    ids = [row[0] for row in connection.execute("SELECT id FROM chunks WHERE document_id = ?", (document_id,))]
    if not ids:
        return
    hooks.chunks_deleted(connection, ids)
    connection.executemany("DELETE FROM fts WHERE rowid = ?", [(chunk_id,) for chunk_id in ids])
    connection.execute("DELETE FROM chunks WHERE document_id = ?", (document_id,))


def _column(connection: apsw.Connection, query: str, document_id: int) -> list[str]:
    return [row[0] for row in connection.execute(query, (document_id,))]
