"""Locks between threads, objects and processes."""

import errno
import os
import threading
from pathlib import Path

import pytest
from tests.support.other_process import other_process

from local_vector_search_mcp.errors import Busy, IoFailure
from local_vector_search_mcp.workspace import flock, locks
from local_vector_search_mcp.workspace.locks import IndexingLease, WorkspaceLock

_DEADLINE_S = 30
HOLD_LOCK = """
from pathlib import Path
from local_vector_search_mcp.workspace.locks import WorkspaceLock
with WorkspaceLock(Path(sys.argv[1])).hold():
    ready()
"""
HOLD_LEASE = """
from pathlib import Path
from local_vector_search_mcp.workspace.locks import IndexingLease
lease = IndexingLease(Path(sys.argv[1]))
assert lease.try_acquire()
ready()
"""


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def impatient(root: Path) -> WorkspaceLock:
    clock = Clock()
    return WorkspaceLock(root, wait_s=0.2, clock=clock, sleep=clock.sleep)


def is_free(root: Path) -> bool:
    """Whether nobody holds the lock of a root."""
    try:
        with impatient(root).hold():
            return True
    except Busy:
        return False


def test_workspace_lock__one_holder(tmp_path: Path) -> None:
    """While one holds it, others wait and then are told that it is busy; afterwards it is free."""
    with WorkspaceLock(tmp_path).hold(), pytest.raises(Busy, match="Try again"), impatient(tmp_path).hold():
        raise AssertionError
    assert is_free(tmp_path)


def test_workspace_lock__released_by_error(tmp_path: Path) -> None:
    """An error in the body gives it back."""
    with pytest.raises(ValueError), WorkspaceLock(tmp_path).hold():
        raise ValueError
    assert is_free(tmp_path)


def test_workspace_lock__other_roots_are_free(tmp_path: Path) -> None:
    """Each root has a lock of its own, also one inside another."""
    (tmp_path / "below").mkdir()
    with WorkspaceLock(tmp_path).hold():
        assert is_free(tmp_path / "below")


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege on Windows")
def test_workspace_lock__by_resolved_root(tmp_path: Path) -> None:
    """A root reached through a link is the same root."""
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "root")
    with WorkspaceLock(tmp_path / "link").hold():
        assert not is_free(tmp_path / "root")


def test_workspace_lock__not_twice_in_one_thread(tmp_path: Path) -> None:
    """Taking it twice in one thread is a mistake that is told at once."""
    lock = WorkspaceLock(tmp_path)
    with lock.hold(), pytest.raises(RuntimeError, match="already held"), lock.hold():
        raise AssertionError


def test_workspace_lock__leaves_nothing_in_the_root(tmp_path: Path) -> None:
    """No file appears in the workspace."""
    with WorkspaceLock(tmp_path).hold():
        assert list(tmp_path.iterdir()) == []


def test_workspace_lock__threads_take_turns(tmp_path: Path) -> None:
    """Threads that share one lock, or have their own, never hold it together."""
    shared = WorkspaceLock(tmp_path)
    inside: list[int] = []
    most: list[int] = []

    def work(lock: WorkspaceLock) -> None:
        for _ in range(20):
            with lock.hold():
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work, args=(lock,)) for lock in (shared, shared, WorkspaceLock(tmp_path))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_DEADLINE_S)
    assert len(most) == 60
    assert max(most) == 1


def test_workspace_lock__vanished_root(tmp_path: Path) -> None:
    """A root that is gone cannot be locked, and is not waited for."""
    (tmp_path / "root").mkdir()
    lock = WorkspaceLock(tmp_path / "root")
    (tmp_path / "root").rmdir()
    with pytest.raises(IoFailure), lock.hold():
        raise AssertionError


@pytest.mark.parametrize("ending", ["told", "killed"])
def test_workspace_lock__between_processes(tmp_path: Path, ending: str) -> None:
    """Another process keeps it until it is done, or until it is killed."""
    with other_process(HOLD_LOCK, str(tmp_path)) as holder:
        assert not is_free(tmp_path)
        if ending == "told":
            holder.let_go()
        else:
            holder.kill()
        assert is_free(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="this is the only way on Windows")
def test_workspace_lock__file_where_directories_cannot_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a directory cannot be locked, a file in the user's own folder is, named after the root."""
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("HOME", str(state))
    monkeypatch.setattr(flock, "directory_lock", lambda path: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with WorkspaceLock(root).hold():
        assert not is_free(root)
    assert is_free(root)
    assert len([path for path in state.rglob("*.lock") if path.is_file()]) == 1


@pytest.mark.skipif(os.name == "nt", reason="flock is a part of POSIX systems")
@pytest.mark.parametrize("code", [errno.EBADF, errno.EINVAL, errno.EACCES, errno.ENOLCK, errno.EOPNOTSUPP])
def test_directory_lock__unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A file system that cannot lock a directory says so in several ways, none of which means that it is taken."""
    import fcntl

    def refuse(fd: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert flock.directory_lock(tmp_path) is None


def test_lease__one_holder(tmp_path: Path) -> None:
    """One of two has it; when that one leaves, the other gets it at its next try."""
    one, other = IndexingLease(tmp_path), IndexingLease(tmp_path)
    assert one.try_acquire()
    assert one.try_acquire()
    assert not other.try_acquire()
    assert (one.held, other.held) == (True, False)
    one.release()
    one.release()
    assert other.try_acquire()
    other.release()


def test_lease__released_by_a_killed_process(tmp_path: Path) -> None:
    """A crash gives it back at once."""
    lease = IndexingLease(tmp_path)
    with other_process(HOLD_LEASE, str(tmp_path)) as holder:
        assert not lease.try_acquire()
        holder.kill()
        assert lease.try_acquire()
    lease.release()


def test_lease__makes_its_folder(tmp_path: Path) -> None:
    """The storage need not be there yet, but what it lies in, which may come back, is never made."""
    lease = IndexingLease(tmp_path / "storage")
    assert lease.try_acquire()
    lease.release()
    with pytest.raises(IoFailure):
        IndexingLease(tmp_path / "gone" / "storage").try_acquire()
    assert not (tmp_path / "gone").exists()


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege on Windows")
def test_lease__link_in_its_place(tmp_path: Path) -> None:
    """A link where the lock file should be is not followed."""
    (tmp_path / "indexing.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IoFailure):
        IndexingLease(tmp_path).try_acquire()
    assert not (tmp_path / "elsewhere").exists()


def test_library_lock__works_alike(tmp_path: Path) -> None:
    """The lock that Windows uses has one holder, too."""
    one = locks._LibraryLock(tmp_path / "x.lock")  # pyright: ignore[reportPrivateUsage]
    other = locks._LibraryLock(tmp_path / "x.lock")  # pyright: ignore[reportPrivateUsage]
    assert one.try_acquire()
    assert not other.try_acquire()
    one.release()
    assert other.try_acquire()
    other.release()


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no file that is open")
@pytest.mark.parametrize("how", ["moved", "removed", "replaced", "moved and back"])
def test_lease__whose_file_has_gone(tmp_path: Path, how: str) -> None:
    """A lease whose file stands elsewhere, or nowhere, is given back, as others would lock another file."""
    storage = tmp_path / "storage"
    lease = IndexingLease(storage)
    assert not lease.release_if_misplaced()
    assert lease.try_acquire()
    assert not lease.release_if_misplaced()
    match how:
        case "moved" | "moved and back":
            storage.rename(tmp_path / "away")
        case "removed":
            (storage / "indexing.lock").unlink()
        case _:
            (storage / "new").touch()
            (storage / "new").replace(storage / "indexing.lock")
    if how == "moved and back":
        (tmp_path / "away").rename(storage)
        assert not lease.release_if_misplaced()
        assert lease.held
    else:
        assert lease.release_if_misplaced()
        assert not lease.held
        assert lease.try_acquire()
        assert not IndexingLease(storage).try_acquire()
    lease.release()
