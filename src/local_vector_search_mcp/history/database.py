"""history.db: opening it privately, its tables, and SQLite's errors in the project's own words."""

import errno
import os
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from local_vector_search_mcp.errors import Busy, IoFailure, KnowledgeBaseError

_VERSION = 1
_BUSY_MS = 10_000
_SCHEMA = """
CREATE TABLE changes(
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    change_id TEXT NOT NULL UNIQUE,
    time_ns INTEGER NOT NULL,
    tool TEXT NOT NULL,
    summary TEXT NOT NULL,
    state TEXT NOT NULL,
    undoes TEXT,
    bytes INTEGER NOT NULL
) STRICT;
CREATE INDEX changes_pending ON changes(sequence) WHERE state = 'pending';
CREATE TABLE files(
    sequence INTEGER NOT NULL REFERENCES changes(sequence) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    path TEXT NOT NULL,
    previous_path TEXT,
    previous_hash TEXT,
    new_hash TEXT,
    before BLOB,
    after BLOB,
    PRIMARY KEY (sequence, ordinal)
) STRICT;
CREATE INDEX files_path ON files(path, sequence);
CREATE INDEX files_previous_path ON files(previous_path, sequence) WHERE previous_path IS NOT NULL;
CREATE TABLE totals(bytes INTEGER NOT NULL) STRICT;
INSERT INTO totals VALUES (0);
CREATE TRIGGER changes_added AFTER INSERT ON changes BEGIN UPDATE totals SET bytes = bytes + new.bytes; END;
CREATE TRIGGER changes_removed AFTER DELETE ON changes BEGIN UPDATE totals SET bytes = bytes - old.bytes; END;
"""


class HistoryDatabase:
    """One connection to ``history.db``, opened when first needed and shared by the threads of a process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None  # Which file the connection has open.
        self._lock = threading.RLock()

    @contextmanager
    def reading(self) -> Generator[apsw.Connection | None]:
        """The connection for queries, or None while there is no file; nothing is made for them.

        Raises:
            IoFailure, Busy: The file cannot be read.
        """
        with self._lock, translated(self.path):
            if self._connection is None and _holds_nothing(self.path):
                yield None
            else:
                yield self._opened()

    @contextmanager
    def writing(self, *, flushed: bool) -> Generator[apsw.Connection]:
        """The connection inside one write transaction, which an error takes back.

        Args:
            flushed: Whether the transaction has to be on disk when this returns. Where it need not, a power cut may
                lose it whole, never in part.

        Raises:
            IoFailure, Busy: The file cannot be written.
        """
        with self._lock, translated(self.path):
            connection = self._opened()
            connection.execute(f"PRAGMA synchronous = {'FULL' if flushed else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        with self._lock, translated(self.path):
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def follow(self) -> None:
        """Let go of a file that no longer stands in its place, removed or moved away with the folder around it.

        What would be written to it nobody would ever find. Not for the middle of a change, which ends where it began.

        Raises:
            IoFailure: The place cannot be looked at.
        """
        with self._lock, translated(self.path):
            connection = self._connection
            if connection is not None and self._file != _file_at(self.path):
                connection.close()
                self._connection = None

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = _open(self.path)
            self._file = _file_at(self.path)
        return self._connection


def _file_at(path: Path) -> tuple[int, int] | None:
    """Which file stands at a path; None where none does."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _holds_nothing(path: Path) -> bool:
    """Whether there is no file, or an empty one, which a full disk leaves of a first change that was not made."""
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return True


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Turn SQLite's and the system's errors into ours."""
    try:
        yield
    except apsw.Error as error:
        raise as_failure(error, path) from error
    except OSError as error:
        raise IoFailure(f"The history {path.name} cannot be used: {error.strerror}; nothing was changed.") from error


def as_failure(error: apsw.Error, path: Path) -> KnowledgeBaseError:
    """The error to raise for one of SQLite's."""
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return Busy("The history is in use by another process; try again.")
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return IoFailure(f"The history {path} is damaged; move it away to start a new one. Nothing was changed.")
    if isinstance(error, apsw.FullError):
        return IoFailure("The history cannot be written: the disk is full; nothing was changed.")
    if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError)):
        return IoFailure(f"The history {path} cannot be written: no permission, or read-only; nothing was changed.")
    return IoFailure(f"The history cannot be used: {str(error) or type(error).__name__}; nothing was changed.")


def _open(path: Path) -> apsw.Connection:
    writable = _make_private(path)
    if writable:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(str(path), flags=flags)
    else:
        # Without write access there is no shared memory, so the file is read as it stands.
        uri = f"{path.absolute().as_uri()}?immutable=1"
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        connection.set_busy_timeout(_BUSY_MS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA foreign_keys = ON")
        if writable:
            _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> bool:
    """Make the file readable by its owner alone, before SQLite writes to it; False where it cannot be written.

    SQLite gives its side files the mode of the database.
    """
    # Never the folders above it: a root that goes away in this moment must not be made again.
    path.parent.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        fd = os.open(path, flags | os.O_CREAT, 0o600)
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) and path.is_file() and not path.is_symlink():
            return False
        raise
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ENXIO, "it is no regular file")
        if hasattr(os, "fchmod") and stat.S_IMODE(status.st_mode) & 0o077:
            os.fchmod(fd, 0o600)
    finally:
        os.close(fd)
    return True


def _prepare(connection: apsw.Connection, path: Path) -> None:
    version = connection.pragma("user_version")
    if version == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA journal_size_limit = 8388608")
    # What was deleted on purpose is not to be found in free pages.
    connection.execute("PRAGMA secure_delete = ON")
    if version == 0:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been first.
            if connection.pragma("user_version") == 0:
                connection.execute(_SCHEMA)
                connection.pragma("user_version", _VERSION)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    elif version != _VERSION:
        raise IoFailure(
            f"The history {path} was written by another version of this program (format {version}, not {_VERSION}); "
            "use that version, or move the file away to start a new one."
        )
