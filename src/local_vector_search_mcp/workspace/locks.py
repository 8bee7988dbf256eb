"""Locks between processes: one for changing a workspace, one for indexing it. A crash releases both.

The workspace lock belongs to the resolved root, whatever the storage path of the processes that want it. Where the
system can lock a directory, the root itself is what is locked, so that it makes no difference which user, home or
sandbox a process runs in, and nothing has to be written anywhere. Elsewhere (Windows, some network drives) a lock file
named after the root stands in the user's own folder.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from local_vector_search_mcp.errors import Busy
from local_vector_search_mcp.workspace.os_errors import cannot_lock

_WAIT_S = 10.0
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.05
_HAS_FLOCK = os.name == "posix"


class _OsLock(Protocol):
    """A lock of the operating system: held by one holder at a time over all processes, and gone when its holder is."""

    def try_acquire(self) -> bool:
        """Take it if nobody has it."""
        ...

    def is_in_place(self) -> bool:
        """Whether what is locked is still what stands at its path, and not something that was moved away or removed."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...


class WorkspaceLock:
    """The right to change a workspace: one thread of one process at a time.

    Args:
        root: The root; links in it are resolved.
        wait_s: How long ``hold`` waits.
    """

    def __init__(
        self,
        root: Path,
        *,
        wait_s: float = _WAIT_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root = root.resolve()
        self._wait_s = wait_s
        self._clock = clock
        self._sleep = sleep
        self._threads = threading.Lock()
        self._holder: int | None = None

    @contextmanager
    def hold(self) -> Generator[None]:
        """Hold the lock for the ``with`` body.

        Raises:
            Busy: Another thread or process has held it for too long.
            IoFailure: The root cannot be locked at all.
            RuntimeError: This thread holds it already.
        """
        if self._holder == threading.get_ident():
            raise RuntimeError("the workspace lock is already held by this thread")
        deadline = self._clock() + self._wait_s
        if not self._threads.acquire(timeout=max(self._wait_s, 0)):
            raise self._busy()
        try:
            self._holder = threading.get_ident()
            lock = self._acquire(deadline)
            try:
                yield
            finally:
                lock.release()
        finally:
            self._holder = None
            self._threads.release()

    def _acquire(self, deadline: float) -> _OsLock:
        lock = _workspace_lock(self._root)
        pause = _FIRST_PAUSE_S
        while not lock.try_acquire():
            if self._clock() >= deadline:
                raise self._busy()
            self._sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        return lock

    def _busy(self) -> Busy:
        return Busy(
            f"Another process has been changing this workspace for {self._wait_s:g} s; nothing was done. Try again."
        )


class IndexingLease:
    """The right to index: one process at a time per storage directory. A waiter asks again with ``try_acquire``."""

    def __init__(self, storage: Path) -> None:
        self._path = storage / "indexing.lock"
        self._lock: _OsLock | None = None
        self._threads = threading.Lock()

    @property
    def held(self) -> bool:
        """Whether this object holds it."""
        return self._lock is not None

    def try_acquire(self) -> bool:
        """Take the lease if nobody has it; True as well if this object has it.

        Raises:
            IoFailure: The lock file cannot be made, as on a read-only file system; nobody can index there.
        """
        with self._threads:
            if self._lock is not None:
                return True
            lock = _file_lock(self._path)
            if not lock.try_acquire():
                return False
            self._lock = lock
            return True

    def release_if_misplaced(self) -> bool:
        """Give the lease back if its file no longer stands in its place, where others would take another; whether so.

        That happens when the storage directory, or the root around it, is moved away or removed.
        """
        with self._threads:
            if self._lock is None or self._lock.is_in_place():
                return False
            self._lock.release()
            self._lock = None
            return True

    def release(self) -> None:
        """Give the lease back; nothing happens if it is not held."""
        with self._threads:
            if self._lock is not None:
                self._lock.release()
                self._lock = None


def _workspace_lock(root: Path) -> _OsLock:
    if _HAS_FLOCK:
        from local_vector_search_mcp.workspace.flock import directory_lock

        lock = directory_lock(root)
        if lock is not None:
            return lock
    return _file_lock(_per_user_place(root), parents=True)


def _file_lock(path: Path, *, parents: bool = False) -> _OsLock:
    try:
        # A root around the storage that goes away in this moment must not be made again.
        path.parent.mkdir(mode=0o700, parents=parents, exist_ok=True)
    except OSError as error:
        raise cannot_lock(path, error) from error
    if _HAS_FLOCK:
        from local_vector_search_mcp.workspace.flock import file_lock

        return file_lock(path)
    return _LibraryLock(path)


def _per_user_place(root: Path) -> Path:
    # Loaded here because only systems that cannot lock a directory need it.
    from platformdirs import user_state_path

    name = hashlib.sha256(os.fsencode(os.path.normcase(root))).hexdigest()[:32]
    return user_state_path("local-vector-search-mcp", appauthor=False) / "locks" / f"{name}.lock"


class _LibraryLock:
    """filelock's lock, for systems without ``flock``."""

    def __init__(self, path: Path) -> None:
        # Loaded here because it is slow to load, and needed on Windows alone.
        from filelock import FileLock

        self._path = path
        self._lock = FileLock(path, thread_local=False)

    def try_acquire(self) -> bool:
        from filelock import Timeout

        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            return False
        except OSError as error:
            raise cannot_lock(self._path, error) from error
        return True

    def is_in_place(self) -> bool:
        return True  # Windows moves or removes no file that is open.

    def release(self) -> None:
        self._lock.release()
