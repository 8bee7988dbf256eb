"""What is remembered of the words of an index holds for one state of it."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from local_vector_search_mcp.index.schema import create_schema
from local_vector_search_mcp.search import vocabulary
from local_vector_search_mcp.search.vocabulary import Vocabulary


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[apsw.Connection]:
    """An index with write-ahead logging."""
    made = apsw.Connection(str(tmp_path / "index.db"))
    made.pragma("journal_mode", "wal")
    create_schema(made)
    yield made
    made.close()


@pytest.fixture
def reader(writer: apsw.Connection) -> Iterator[apsw.Connection]:
    """Another connection to it."""
    made = apsw.Connection(writer.filename)
    yield made
    made.close()


def write(writer: apsw.Connection, number: int, body: str) -> None:
    """One row."""
    writer.execute("INSERT INTO fts (rowid, body) VALUES (?, ?)", (number, body))
    writer.execute(
        "INSERT INTO documents (id, path, size, mtime_ns, ctime_ns, inode, recheck, state, title, title_from_name)"
        " VALUES (?, ?, 0, 0, 0, 0, 0, 'indexed', '', 0)",
        (number, f"{number}.md"),
    )
    writer.execute(
        "INSERT INTO chunks (id, document_id, ordinal, kinds, line_start, line_end, byte_start, byte_end,"
        " embed_state, embed_hash, content) VALUES (?, ?, 0, 0, 1, 1, 0, 1, 1, x'', x'')",
        (number, number),
    )


def counts_of_words(connection: apsw.Connection) -> list[str]:
    """From now on, the statements that count the rows of a word."""
    found: list[str] = []

    def look(_cursor: object, sql: str, _bindings: object) -> bool:
        if "vocabulary" in sql:
            found.append(sql)
        return True

    connection.exec_trace = look
    return found


def test_vocabulary__follows_what_others_write(writer: apsw.Connection, reader: apsw.Connection) -> None:
    """Within a transaction the counts stay, and the next one sees what another connection has written."""
    write(writer, 1, "running")
    reader.execute("BEGIN")
    known = Vocabulary(reader)
    assert (known.chunks, known.rows("runs"), known.rows("walk")) == (1, 1, 0)
    write(writer, 2, "run and walk")
    again = Vocabulary(reader)
    assert (again.chunks, again.rows("runs"), again.rows("walk")) == (1, 1, 0)
    reader.execute("COMMIT")
    later = Vocabulary(reader)
    assert (later.chunks, later.rows("runs"), later.rows("walk")) == (2, 2, 1)


def test_vocabulary__follows_what_its_own_connection_writes(writer: apsw.Connection) -> None:
    """A connection that writes sees its own rows, before and after it commits."""
    write(writer, 1, "word")
    assert Vocabulary(writer).rows("word") == 1
    with writer:
        write(writer, 2, "word")
        assert Vocabulary(writer).rows("word") == 2
    assert (Vocabulary(writer).chunks, Vocabulary(writer).rows("word")) == (2, 2)


def test_vocabulary__counts_a_word_once_for_a_state(writer: apsw.Connection, reader: apsw.Connection) -> None:
    """A word that was counted is not counted again while the index stays as it is."""
    write(writer, 1, "word")
    assert Vocabulary(reader).rows("words") == 1
    counted = counts_of_words(reader)
    assert Vocabulary(reader).rows("word") == 1
    assert counted == []


def test_vocabulary__forgets_above_a_limit(writer: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not more than so many words are remembered from one search to the next."""
    monkeypatch.setattr(vocabulary, "_MOST_WORDS", 2)
    write(writer, 1, "word")
    known = Vocabulary(writer)
    assert [known.rows(word) for word in ("a1", "b2", "word")] == [0, 0, 1]
    counted = counts_of_words(writer)
    assert Vocabulary(writer).rows("word") == 1
    assert counted != []
