"""IndexDatabase: pooled connections to the index file, and the one place where apsw's errors become ours.

Many readers, one writer, write-ahead logging. Readers are never blocked by the writer, and a busy database is
waited for, so that ``database is locked`` never reaches a caller. Which file holds the rows now is said by
``generations``; a switch made by another process is noticed at the next use.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import importlib.util
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from local_vector_search_mcp.errors import Busy, IndexNotReady, IoFailure, KnowledgeBaseError
from local_vector_search_mcp.index.generations import current_file

BUSY_TIMEOUT_S: Final = 20.0
_READ_CACHE_KIB: Final = 8 * 1024
_WRITE_CACHE_KIB: Final = 2 * 1024
_IDLE_READERS: Final = 4


class IndexDamaged(IndexNotReady):
    """The index file is no database, or its pages contradict each other; it has to be set aside and rebuilt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSupport:
    """Whether sqlite-vec can be loaded, and if not, why."""

    library: str | None  # Absolute path for load_extension.
    reason: str | None


def find_vector_library() -> VectorSupport:
    """Locate the sqlite-vec library without importing its package, which would import numpy."""
    spec = importlib.util.find_spec("sqlite_vec")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not folders:
        return VectorSupport(library=None, reason="The package sqlite-vec is not installed; install it again.")
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    library = Path(folders[0]) / f"vec0{suffix}"
    if not library.is_file():
        return VectorSupport(
            library=None, reason=f"The package sqlite-vec holds no {library.name} for this platform; install it again."
        )
    return VectorSupport(library=str(library), reason=None)


@contextmanager
def translated(action: str) -> Generator[None, None, None]:
    """Raise apsw's errors as ours.

    Raises:
        Busy: Another process held the database longer than the busy timeout.
        IndexDamaged: The file is corrupt or no database.
        IoFailure: Full disk, read-only, no permission, failing device.
    """
    try:
        yield
    except (apsw.BusyError, apsw.LockedError, apsw.ProtocolError) as error:
        raise Busy(f"The index was in use by another process while {action}; try again.") from error
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError) as error:
        raise IndexDamaged(f"The index file is damaged ({error}); it is rebuilt from the Markdown files.") from error
    except apsw.CantOpenError as error:
        raise IndexNotReady(f"The index file cannot be opened ({error}); run kb_reindex.") from error
    except (
        apsw.FullError,
        apsw.IOError,
        apsw.ReadOnlyError,
        apsw.PermissionsError,
        apsw.AuthError,
        apsw.NoLFSError,
        apsw.NoMemError,
    ) as error:
        raise IoFailure(f"The index could not be used while {action}: {error}. Nothing was changed.") from error


class _Generation:
    """The open connections of one index file."""

    def __init__(self, file: Path, inode: tuple[int, int]) -> None:
        self.file = file
        self.inode = inode
        self.readers: list[apsw.Connection] = []
        self.writer: apsw.Connection | None = None
        self.busy = 0
        self.retired = False


class IndexDatabase:
    """Connections to one index, safe to use from several threads.

    Args:
        path: The index file. Where a pointer file beside it names a later generation, that one is used.
        read_only: Never write, not even side files where that can be avoided.
        create: Make the file when it is first written.
        load_vectors: Load sqlite-vec into every connection.
        on_open: Called with every new writer connection and its file; makes or checks tables.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        create: bool = True,
        load_vectors: bool = True,
        follow_generations: bool = True,
        on_open: Callable[[apsw.Connection], None] | None = None,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._create = create
        self._follow = follow_generations
        self._on_open = on_open
        self._support = find_vector_library() if load_vectors else VectorSupport(library=None, reason="not asked for")
        self._load_failure: str | None = None
        self._lock = threading.Lock()
        self._writer_lock = threading.RLock()
        self._writer_depth = 0
        self._generation: _Generation | None = None
        self._closed = False
        self.damaged = threading.Event()
        """Set when a use finds the file damaged; cleared by whoever mends it."""
        self.epoch = 0
        """Grows whenever another file takes the place of the one in use."""

    # -- what can be done -------------------------------------------------------------------------------------

    @property
    def vectors_available(self) -> bool:
        """Whether vec0 tables can be used on these connections."""
        return self._support.library is not None and self._load_failure is None

    @property
    def vectors_reason(self) -> str | None:
        """Why vec0 tables cannot be used; None where they can."""
        return self._support.reason or self._load_failure

    @property
    def file(self) -> Path:
        """The file that holds the rows now."""
        return current_file(self.path) if self._follow else self.path

    def exists(self) -> bool:
        """Whether there is an index file to read."""
        try:
            return self.file.stat().st_size > 0
        except OSError:
            return False

    # -- connections ------------------------------------------------------------------------------------------

    @contextmanager
    def reader(self) -> Generator[apsw.Connection, None, None]:
        """A connection inside one read transaction: all its queries see the same state.

        Raises:
            IndexNotReady: There is no index file.
            Busy, IndexDamaged, IoFailure: As ``translated``.
        """
        with self._noticing_damage(), translated("reading"):
            generation, connection = self._take_reader()
            healthy = False
            try:
                connection.execute("BEGIN")
                yield connection
                healthy = True
            finally:
                self._give_back(generation, connection, healthy=healthy)

    @contextmanager
    def writer(self) -> Generator[apsw.Connection, None, None]:
        """The one writing connection inside one immediate transaction; committed at the end, undone on any error.

        Nested use by the same thread joins the outer transaction.

        Raises:
            IoFailure: The index is read-only, the disk is full, or it cannot be written.
            Busy, IndexDamaged: As ``translated``.
        """
        if self.read_only:
            raise IoFailure("The index is on a read-only file system, so it cannot be changed.")
        with self._writer_lock, self._noticing_damage(), translated("writing"):
            generation = self._enter_generation(for_writing=True)
            try:
                connection = self._writing_connection(generation)
                if self._writer_depth:
                    yield connection
                    return
                _begin_immediate(connection)
                self._writer_depth += 1
                try:
                    yield connection
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                else:
                    connection.execute("COMMIT")
                finally:
                    self._writer_depth -= 1
            except apsw.CorruptError:
                self._drop_writer(generation)
                raise
            finally:
                self._leave_generation(generation)

    @contextmanager
    def maintenance(self) -> Generator[apsw.Connection, None, None]:
        """The writing connection outside any transaction, for checkpoints and pragmas."""
        with self._writer_lock, self._noticing_damage(), translated("maintaining"):
            generation = self._enter_generation(for_writing=True)
            try:
                yield self._writing_connection(generation)
            finally:
                self._leave_generation(generation)

    def trim(self) -> None:
        """Give back memory that idle connections hold, and the room of the write-ahead log where nobody reads in it."""
        with self._lock:
            generation = self._generation
            if generation is None:
                return
            idle, generation.readers = generation.readers, []
        for connection in idle:
            connection.close()
        if self._writer_lock.acquire(blocking=False):
            try:
                if generation.writer is not None:
                    _empty_log(generation.writer)
                self._drop_writer(generation)
            finally:
                self._writer_lock.release()

    def reopen(self) -> None:
        """Close what is open, so that the next use looks at the files anew."""
        with self._lock:
            self._retire()

    def close(self) -> None:
        """Close every connection; those in use close when they are given back. No use may follow."""
        with self._writer_lock, self._lock:
            self._closed = True
            self._retire()

    @contextmanager
    def _noticing_damage(self) -> Generator[None, None, None]:
        try:
            yield
        except IndexDamaged:
            self.damaged.set()
            raise

    # -- generations ------------------------------------------------------------------------------------------

    def _enter_generation(self, *, for_writing: bool) -> _Generation:
        file = self.file
        inode = _inode(file)
        with self._lock:
            if self._closed:
                raise IndexNotReady("The index is closed because the server is ending.")
            generation = self._generation
            if generation is not None and generation.file == file and generation.inode == inode:
                generation.busy += 1
                return generation
            if inode is None:
                if not (for_writing and self._create):
                    raise IndexNotReady("There is no index yet; wait for the first run or start kb_reindex.")
                _make(file)
                inode = _inode(file)
            self._retire()
            self._generation = generation = _Generation(file, inode or (0, 0))
            self.epoch += 1
            generation.busy += 1
            return generation

    def _leave_generation(self, generation: _Generation) -> None:
        with self._lock:
            generation.busy -= 1
            if generation.retired and generation.busy == 0:
                _close_all(generation)

    def _retire(self) -> None:
        generation, self._generation = self._generation, None
        if generation is None:
            return
        generation.retired = True
        if generation.busy == 0:
            _close_all(generation)

    # -- opening ----------------------------------------------------------------------------------------------

    def _take_reader(self) -> tuple[_Generation, apsw.Connection]:
        generation = self._enter_generation(for_writing=False)
        try:
            with self._lock:
                if generation.readers:
                    return generation, generation.readers.pop()
            return generation, self._open_reader(generation.file)
        except BaseException:
            self._leave_generation(generation)
            raise

    def _give_back(self, generation: _Generation, connection: apsw.Connection, *, healthy: bool) -> None:
        kept = False
        if healthy:
            if connection.in_transaction:
                connection.execute("COMMIT")
            with self._lock:
                kept = not generation.retired and len(generation.readers) < _IDLE_READERS
                if kept:
                    generation.readers.append(connection)
        if not kept:
            connection.close(True)
        self._leave_generation(generation)

    def _open_reader(self, file: Path) -> apsw.Connection:
        connection = self._open_read_only(file) if self.read_only else self._open_beside_writer(file)
        if connection.execute("SELECT count(*) FROM sqlite_schema").get == 0:
            connection.close(True)
            raise IndexNotReady("Nothing is indexed yet; wait for the first run or start kb_reindex.")
        return connection

    def _open_beside_writer(self, file: Path) -> apsw.Connection:
        # A reader of a database in WAL mode writes its side files, so it may not be opened read-only.
        return self._configured(str(file), apsw.SQLITE_OPEN_READWRITE, cache_kib=_READ_CACHE_KIB, query_only=True)

    def _open_read_only(self, file: Path) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        address = f"file:{quote(str(file))}"
        try:
            return self._configured(f"{address}?mode=ro", flags, cache_kib=_READ_CACHE_KIB, query_only=True)
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            # Without its side files a database in WAL mode can only be read as one that nobody changes.
            return self._configured(f"{address}?immutable=1", flags, cache_kib=_READ_CACHE_KIB, query_only=True)

    def _writing_connection(self, generation: _Generation) -> apsw.Connection:
        if generation.writer is None:
            flags = apsw.SQLITE_OPEN_READWRITE
            connection = self._configured(str(generation.file), flags, cache_kib=_WRITE_CACHE_KIB, query_only=False)
            try:
                _use_wal(connection)
                if self._on_open is not None:
                    self._on_open(connection)
            except BaseException:
                connection.close(True)
                raise
            generation.writer = connection
        return generation.writer

    def _drop_writer(self, generation: _Generation) -> None:
        writer, generation.writer = generation.writer, None
        if writer is not None:
            writer.close(True)

    def _configured(self, name: str, flags: int, *, cache_kib: int, query_only: bool) -> apsw.Connection:
        connection = apsw.Connection(name, flags=flags)
        try:
            connection.set_busy_timeout(int(BUSY_TIMEOUT_S * 1000))
            connection.execute(
                f"PRAGMA trusted_schema=OFF; PRAGMA foreign_keys=ON; PRAGMA synchronous=NORMAL;"
                f"PRAGMA temp_store=MEMORY; PRAGMA cache_size=-{cache_kib}; PRAGMA query_only={int(query_only)}"
            )
            # The first real read finds out whether the file is a database at all.
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            self._load_vectors(connection)
        except BaseException:
            connection.close(True)
            raise
        return connection

    def _load_vectors(self, connection: apsw.Connection) -> None:
        if self._support.library is None or self._load_failure is not None:
            return
        try:
            connection.enable_load_extension(True)
            connection.load_extension(self._support.library)
        except (apsw.ExtensionLoadingError, apsw.SQLError) as error:
            self._load_failure = f"sqlite-vec cannot be loaded: {error}"
        finally:
            connection.enable_load_extension(False)


def _close_all(generation: _Generation) -> None:
    for connection in generation.readers:
        connection.close(True)
    generation.readers.clear()
    if generation.writer is not None:
        generation.writer.close(True)
        generation.writer = None


def _empty_log(writer: apsw.Connection) -> None:
    # Otherwise the log keeps the length of its longest time for as long as any process has the index open.
    writer.set_busy_timeout(0)
    # Where somebody reads in it, or the disk is at fault, it stays as it is.
    with suppress(apsw.Error):
        writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _begin_immediate(connection: apsw.Connection) -> None:
    """Start writing; SQLite gives up at once where waiting could deadlock, so it is asked again."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


def _use_wal(connection: apsw.Connection) -> None:
    if connection.pragma("journal_mode") == "wal":
        return
    # Has an effect only in a new file, and only now: pages that merges leave empty can be given back later.
    connection.pragma("auto_vacuum", "incremental")
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


def _make(file: Path) -> None:
    try:
        file.touch(mode=0o600)
    except OSError as error:
        reason = (error.strerror or "unknown").lower()
        raise IoFailure(f"The index {file.name} cannot be made: {reason}; nothing was indexed.") from error


def _inode(file: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(file)
    except OSError:
        return None
    if stat.S_ISLNK(found.st_mode):
        raise IoFailure(f"The index file {file.name} is a link, which is not followed; remove it.")
    return (found.st_dev, found.st_ino)


def as_index_error(error: apsw.Error) -> KnowledgeBaseError | None:
    """The error of ours that ``translated`` would raise; None for a programming error."""
    try:
        with translated("working"):
            raise error
    except KnowledgeBaseError as ours:
        return ours
    except apsw.Error:
        return None
