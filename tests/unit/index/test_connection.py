"""IndexDatabase: snapshots, one writer, errors of ours, read-only and damaged files."""

import importlib.util
import threading
from pathlib import Path

import apsw
import pytest

from local_vector_search_mcp.errors import Busy, IndexNotReady, IoFailure
from local_vector_search_mcp.index import connection as room
from local_vector_search_mcp.index.connection import IndexDamaged, IndexDatabase, find_vector_library, translated


def make(path: Path, **options: bool) -> IndexDatabase:
    def tables(connection: apsw.Connection) -> None:
        connection.execute("CREATE TABLE IF NOT EXISTS t (x)")

    return IndexDatabase(path, on_open=tables, **options)


@pytest.fixture
def database(tmp_path: Path) -> IndexDatabase:
    made = make(tmp_path / "index.db")
    with made.writer() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    return made


def count(database: IndexDatabase) -> int:
    with database.reader() as connection:
        return int(connection.execute("SELECT count(*) FROM t").get)


def test_reader__sees_one_state(database: IndexDatabase) -> None:
    """A reader is not blocked by a writer and sees the state from before it, to its end."""
    with database.reader() as connection:
        before = connection.execute("SELECT count(*) FROM t").get
        with database.writer() as writer:
            writer.execute("INSERT INTO t VALUES (2)")
            assert count(database) == 1
        assert connection.execute("SELECT count(*) FROM t").get == before == 1
    assert count(database) == 2


def test_reader__cannot_write(database: IndexDatabase) -> None:
    """A reading connection refuses to write."""
    with pytest.raises(IoFailure), database.reader() as connection:
        connection.execute("INSERT INTO t VALUES (2)")


def test_writer__undoes_what_failed(database: IndexDatabase) -> None:
    """An error inside takes everything back; a nested writer is part of the outer one."""
    with pytest.raises(ZeroDivisionError), database.writer() as connection:
        connection.execute("INSERT INTO t VALUES (2)")
        with database.writer() as nested:
            nested.execute("INSERT INTO t VALUES (3)")
        raise ZeroDivisionError
    assert count(database) == 1
    with database.writer() as connection, database.writer() as nested:
        assert nested is connection
        nested.execute("INSERT INTO t VALUES (3)")
    assert count(database) == 2


def test_writer__many_threads(database: IndexDatabase) -> None:
    """Threads that write and read at once all come through."""

    def work() -> None:
        for _ in range(20):
            with database.writer() as connection:
                connection.execute("INSERT INTO t VALUES (2)")
            assert count(database) >= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(database) == 121


def test_writer__waits_for_another_process(database: IndexDatabase, tmp_path: Path) -> None:
    """While another connection writes, the writer waits; it never says that the database is locked."""
    other = apsw.Connection(str(tmp_path / "index.db"))
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    timer.start()
    with database.writer() as connection:
        connection.execute("INSERT INTO t VALUES (2)")
    timer.join()
    other.close()
    assert count(database) == 2


def test_writer__gives_up_in_the_end(database: IndexDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that waits too long says that the index is in use."""
    monkeypatch.setattr(room, "BUSY_TIMEOUT_S", 0.05)
    database.reopen()
    other = apsw.Connection(str(tmp_path / "index.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy), database.writer():
        pass
    other.execute("ROLLBACK")
    other.close()


def test_reader__without_an_index(tmp_path: Path) -> None:
    """There is no index until something is written; an empty file is none either."""
    database = make(tmp_path / "index.db")
    assert not database.exists()
    with pytest.raises(IndexNotReady), database.reader():
        pass
    (tmp_path / "index.db").touch()
    with pytest.raises(IndexNotReady), database.reader():
        pass


def test_database__notices_another_file(database: IndexDatabase, tmp_path: Path) -> None:
    """When the file is deleted, or another one takes its place, the next use sees that."""
    epoch = database.epoch
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(IndexNotReady), database.reader():
        pass
    with database.writer() as connection:
        connection.execute("INSERT INTO t VALUES (7)")
    assert count(database) == 1
    assert database.epoch > epoch


def test_database__refuses_a_link(tmp_path: Path) -> None:
    """A link in place of the index is not followed."""
    (tmp_path / "elsewhere.db").touch()
    (tmp_path / "index.db").symlink_to(tmp_path / "elsewhere.db")
    database = make(tmp_path / "index.db")
    for use in (database.reader, database.writer):
        with pytest.raises(IoFailure, match="link"), use():
            pass


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be one" * 40, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_database__damaged(tmp_path: Path, content: bytes) -> None:
    """A file that is no database is reported as damaged, by readers and writers."""
    (tmp_path / "index.db").write_bytes(content)
    database = make(tmp_path / "index.db")
    for use in (database.reader, database.writer):
        database.damaged.clear()
        with pytest.raises(IndexDamaged), use():
            pass
        assert database.damaged.is_set()


def test_database__read_only(database: IndexDatabase, tmp_path: Path) -> None:
    """A read-only index is read, and writing it is refused."""
    database.close()
    reading = make(tmp_path / "index.db", read_only=True)
    assert count(reading) == 1
    with pytest.raises(IoFailure, match="read-only"), reading.writer():
        pass
    reading.close()


def test_database__trims_and_closes(database: IndexDatabase) -> None:
    """Idle connections can be given back and come again; after closing nothing works."""
    count(database)
    database.trim()
    assert count(database) == 1
    with database.reader() as connection:
        database.close()
        assert connection.execute("SELECT count(*) FROM t").get == 1
    for use in (database.reader, database.writer):
        with pytest.raises(IndexNotReady, match="ending"), use():
            pass


def test_trim__empties_the_log(database: IndexDatabase, tmp_path: Path) -> None:
    """The write-ahead log gives its room back, with the index open elsewhere; one that is read in stays."""
    log = tmp_path / "index.db-wal"
    elsewhere = make(tmp_path / "index.db")
    with elsewhere.reader() as connection:
        assert connection.execute("SELECT count(*) FROM t").get == 1
        with database.writer() as writer:
            writer.execute("INSERT INTO t VALUES (2)")
        database.trim()
        assert log.stat().st_size > 0
    with database.writer() as writer:
        writer.execute("INSERT INTO t VALUES (3)")
    database.trim()
    assert log.stat().st_size == 0
    assert count(database) == count(elsewhere) == 3
    elsewhere.close()
    database.close()


def test_vectors__library_is_found_without_its_package(database: IndexDatabase) -> None:
    """sqlite-vec is loaded into every connection from where its package lies."""
    assert find_vector_library().reason is None
    with database.reader() as connection:
        assert str(connection.execute("SELECT vec_version()").get).startswith("v")
        with pytest.raises(apsw.SQLError):
            connection.execute("SELECT load_extension('x')")
    assert database.vectors_available
    assert database.vectors_reason is None


def test_vectors__missing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library everything else works, and the reason is told."""

    def find_nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    database = make(tmp_path / "index.db")
    with database.writer() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert count(database) == 1
    assert not database.vectors_available
    assert "sqlite-vec" in (database.vectors_reason or "")


def test_vectors__broken_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that cannot be loaded is told, and everything else works."""
    (tmp_path / "broken.so").write_bytes(b"nonsense")
    broken = room.VectorSupport(library=str(tmp_path / "broken.so"), reason=None)
    monkeypatch.setattr(room, "find_vector_library", lambda: broken)
    database = make(tmp_path / "index.db")
    with database.writer() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert count(database) == 1
    assert "cannot be loaded" in (database.vectors_reason or "")


def test_translated__every_error_of_apsw() -> None:
    """Each exception of the library becomes one of ours, or is named here as a programming error."""
    programming = {
        "SQLError", "ConstraintError", "MismatchError", "MisuseError", "RangeError", "TooBigError", "AbortError",
        "InternalError", "InterruptError", "NotFoundError", "EmptyError", "SchemaChangeError", "AuthError",
        "BindingsError", "ConnectionClosedError", "ConnectionNotClosedError", "CursorClosedError", "ExecTraceAbort",
        "ExecutionCompleteError", "ExtensionLoadingError", "ForkingViolationError", "IncompleteExecutionError",
        "InvalidContextError", "NoFTS5Error", "ThreadingViolationError", "VFSFileClosedError", "VFSNotImplementedError",
        "VTableNotImplementedError", "UnknownSQLiteResultError",
    }  # fmt: skip
    known = {
        "BusyError": Busy, "LockedError": Busy, "ProtocolError": Busy,
        "CorruptError": IndexDamaged, "NotADBError": IndexDamaged, "FormatError": IndexDamaged,
        "CantOpenError": IndexNotReady,
        "FullError": IoFailure, "IOError": IoFailure, "ReadOnlyError": IoFailure, "PermissionsError": IoFailure,
        "NoLFSError": IoFailure, "NoMemError": IoFailure,
    }  # fmt: skip
    errors = {
        name: kind
        for name, kind in vars(apsw).items()
        if isinstance(kind, type) and issubclass(kind, apsw.Error) and kind is not apsw.Error
    }
    assert set(errors) - programming - set(known) == set()
    for name, ours in known.items():
        with pytest.raises(ours) as caught, translated("testing"):
            raise errors[name]("why")
        assert isinstance(caught.value.__cause__, errors[name])
    with pytest.raises(apsw.SQLError), translated("testing"):
        raise apsw.SQLError("why")
