"""Rows of one document: written, moved and deleted together, and what the state tells of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import pytest

from local_vector_search_mcp.index import rows, state
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.rows import FAILED, UNSUPPORTED, FileFacts
from local_vector_search_mcp.index.schema import create_schema, schema_version
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.indexing import IndexingSettings, index_document

FACTS = FileFacts(size=1, mtime_ns=1_700_000_000 * 10**9, ctime_ns=3, inode=4)


class Hooks:
    """Records what it is told."""

    def __init__(self) -> None:
        self.written: list[tuple[int, bytes]] = []
        self.deleted: list[int] = []

    def chunks_written(self, connection: apsw.Connection, chunks: Sequence[tuple[int, bytes]]) -> None:
        del connection
        self.written.extend(chunks)

    def chunks_deleted(self, connection: apsw.Connection, chunk_ids: Sequence[int]) -> None:
        del connection
        self.deleted.extend(chunk_ids)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    database = IndexDatabase(tmp_path / "index.db", on_open=create_schema)
    with database.writer() as made:
        yield made
    database.close()


def write(
    connection: apsw.Connection, path: str, text: str, hooks: Hooks, *, embeds: bool = True, facts: FileFacts = FACTS
) -> int:
    content = index_document(RelPath(path), text.encode(), IndexingSettings(embeds=embeds))
    return rows.write_document(connection, RelPath(path), facts, content, hooks=hooks)


def count(connection: apsw.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").get)


TEXT = "---\ntags: [x, Y]\naliases: [Other]\nstatus: draft\n---\n\n# Head\n\ntext [[Link]] #z ^b\n"


def test_write__puts_everything_in_its_place(connection: apsw.Connection) -> None:
    """All rows of a document come together, and its chunks can be read back."""
    hooks = Hooks()
    document_id = write(connection, "a/b.md", TEXT, hooks)
    record = state.document(connection, RelPath("a/b.md"))
    assert record is not None
    assert (record.id, record.title, record.state) == (document_id, "Head", "indexed")
    assert record.file_state == (FACTS.size, FACTS.mtime_ns, FACTS.ctime_ns, FACTS.inode)
    assert [row[0] for row in connection.execute("SELECT tag FROM tags ORDER BY tag")] == ["x", "y", "z"]
    assert connection.execute("SELECT alias_folded FROM aliases").get == "other"
    assert connection.execute("SELECT metadata ->> 'status' FROM documents").get == "draft"
    assert connection.execute("SELECT modified FROM documents").get == "2023-11-14T22:13:20Z"
    assert count(connection, "link_names") == 1
    ids = [chunk_id for chunk_id, _ in hooks.written]
    chunks = rows.read_chunks(connection, [*ids, 999])
    assert sorted(chunks) == ids
    chunk = chunks[ids[0]]
    assert (chunk.path, chunk.title, chunk.source_hash) == ("a/b.md", "Head", record.source_hash)
    assert "text [[Link]]" in chunk.text
    assert rows.read_chunks(connection, []) == {}


@pytest.mark.parametrize(
    ("meanwhile", "moved"), [("", True), ("gone", False), ("other content", False), ("place taken", False)]
)
def test_move__only_what_still_stands(connection: apsw.Connection, meanwhile: str, moved: bool) -> None:
    """A move that was thought of before another writer came is not carried out on what it left."""
    document_id = write(connection, "a.md", "# A\n", Hooks())
    record = state.document(connection, RelPath("a.md"))
    assert record is not None
    assert record.source_hash is not None
    if meanwhile == "gone":
        rows.delete_document(connection, document_id, hooks=Hooks())
    elif meanwhile == "other content":
        write(connection, "a.md", "other\n", Hooks())
    elif meanwhile == "place taken":
        write(connection, "b.md", "there already\n", Hooks())
    before = [tuple(row) for row in connection.execute("SELECT id, path FROM documents ORDER BY id")]
    result = rows.move_document(connection, document_id, RelPath("b.md"), FACTS, source_hash=record.source_hash)
    assert result is moved
    after = [tuple(row) for row in connection.execute("SELECT id, path FROM documents ORDER BY id")]
    assert after == ([(document_id, "b.md")] if moved else before)


def test_write__replaces_what_was_there(connection: apsw.Connection) -> None:
    """Writing a path again keeps the document's id and leaves nothing of the old content."""
    hooks = Hooks()
    first = write(connection, "a.md", TEXT, hooks)
    assert write(connection, "a.md", "plain\n", hooks) == first
    assert hooks.deleted == [hooks.written[0][0]]
    assert [count(connection, table) for table in ("documents", "chunks", "tags", "aliases", "link_names")] == [
        1,
        1,
        0,
        0,
        0,
    ]
    assert connection.execute("SELECT count(*) FROM fts WHERE fts MATCH 'head'").get == 0
    assert connection.execute("SELECT metadata FROM documents").get is None


def test_write__without_vectors_nothing_awaits(connection: apsw.Connection) -> None:
    """An index without embeddings has no backlog and tells no hook."""
    hooks = Hooks()
    write(connection, "a.md", "text\n", hooks, embeds=False)
    assert hooks.written == []
    counts = state.counts(connection)
    assert (counts.chunks, counts.awaiting, counts.embedded) == (1, 0, 0)


def test_delete__takes_everything_along(connection: apsw.Connection) -> None:
    """Deleting a document deletes every row of it and tells the hooks."""
    hooks = Hooks()
    document_id = write(connection, "a.md", TEXT, hooks)
    rows.delete_document(connection, document_id, hooks=hooks)
    for table in ("documents", "chunks", "tags", "aliases", "link_names", "fts"):
        assert count(connection, table) == 0
    assert hooks.deleted == [chunk_id for chunk_id, _ in hooks.written]
    rows.delete_document(connection, document_id, hooks=hooks)


def test_mark_unreadable__by_kind(connection: apsw.Connection) -> None:
    """What can never be indexed loses its rows; what failed for now keeps them and is listed."""
    hooks = Hooks()
    write(connection, "a.md", TEXT, hooks)
    rows.mark_unreadable(connection, RelPath("a.md"), FACTS, state=FAILED, reason="busy", hooks=hooks)
    assert count(connection, "chunks") == 1
    assert state.paths_to_recheck(connection) == {"a.md"}
    assert state.indexed_hash(connection, RelPath("a.md")) is None
    rows.mark_unreadable(connection, RelPath("a.md"), FACTS, state=UNSUPPORTED, reason="no text", hooks=hooks)
    assert (count(connection, "chunks"), count(connection, "tags")) == (0, 0)
    rows.mark_unreadable(connection, RelPath("new.md"), FACTS, state=UNSUPPORTED, reason="no text", hooks=hooks)
    assert state.unsupported(connection, limit=1) == [("a.md", "no text")]
    assert state.counts(connection).unsupported == 2
    write(connection, "a.md", "text\n", hooks)
    record = state.document(connection, RelPath("a.md"))
    assert record is not None
    assert (record.state, record.reason) == ("indexed", None)


def test_state__folders_and_twins(connection: apsw.Connection) -> None:
    """Documents are found by folder, never by part of a name, and by content."""
    hooks = Hooks()
    for path in ("a/x.md", "a/b/y.md", "ab/z.md", "a.md"):
        write(connection, path, "same\n", hooks)
    assert [one.path for one in state.documents_under(connection, "a")] == ["a/b/y.md", "a/x.md"]
    assert len(state.documents_under(connection, "")) == 4
    record = state.document(connection, RelPath("a.md"))
    assert record is not None
    assert record.source_hash is not None
    assert [one.path for one in state.documents_with_hash(connection, record.source_hash)] == [
        "a.md",
        "a/b/y.md",
        "a/x.md",
        "ab/z.md",
    ]
    assert state.document(connection, RelPath("none.md")) is None


def test_settle__only_while_nothing_changes(connection: apsw.Connection) -> None:
    """A signature counts until a row changes."""
    assert state.settled_signature(connection) is None
    state.settle(connection, "abc")
    assert state.settled_signature(connection) == "abc"
    rows.count_revision(connection)
    assert state.settled_signature(connection) is None
    state.settle(connection, "def")
    assert state.settled_signature(connection) == "def"
    assert state.completed_runs(connection) == 0
    state.count_run(connection)
    assert state.completed_runs(connection) == 1


def test_schema__is_made_once(connection: apsw.Connection) -> None:
    """A database that has tables is left as it is."""
    version = schema_version(connection)
    assert version > 0
    connection.execute("COMMIT")
    create_schema(connection)
    connection.execute("BEGIN")
    assert schema_version(connection) == version
