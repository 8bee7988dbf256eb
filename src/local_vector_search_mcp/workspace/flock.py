"""``flock`` on files and directories. Loaded on POSIX systems only, because others have no ``fcntl``."""

import errno
import fcntl
import os
from pathlib import Path

from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.workspace.os_errors import cannot_lock

# What a file system says that cannot lock a directory, or anything.
_UNSUPPORTED = frozenset(
    {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES}
)
_CONTENDED = frozenset({errno.EWOULDBLOCK, errno.EAGAIN})


def directory_lock(path: Path) -> "DescriptorLock | None":
    """A lock on a directory; None where its file system has no such locks.

    Raises:
        IoFailure: The directory cannot be opened.
    """
    lock = DescriptorLock(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, contended=_CONTENDED)
    return lock if lock.is_supported() else None


def file_lock(path: Path) -> "DescriptorLock":
    """A lock on a file, which is made where there is none; a link in its place is refused."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    # Where a network file system lays locks on files upon another kind of lock, that one's word for "taken" counts too.
    return DescriptorLock(path, flags, contended=_CONTENDED | {errno.EACCES})


class DescriptorLock:
    """``flock`` on an open file or directory: every opening is a holder of its own, threads included."""

    def __init__(self, path: Path, flags: int, *, contended: frozenset[int]) -> None:
        self._path = path
        self._flags = flags
        self._contended = contended  # The errors that mean that somebody else has it.
        self._fd: int | None = None

    def is_supported(self) -> bool:
        """Whether the file system can lock this at all."""
        try:
            if self.try_acquire():
                self.release()
        except _CannotLock:
            return False
        return True

    def try_acquire(self) -> bool:
        """Take it if nobody has it.

        Raises:
            IoFailure: It cannot be opened, or not be locked at all.
        """
        try:
            fd = os.open(self._path, self._flags, 0o600)
        except OSError as error:
            raise cannot_lock(self._path, error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in self._contended:
                return False
            if error.errno in _UNSUPPORTED:
                raise _CannotLock(f"{self._path} cannot be locked: {error.strerror}.") from error
            raise cannot_lock(self._path, error) from error
        self._fd = fd
        return True

    def is_in_place(self) -> bool:
        """Whether what is locked still stands at its path."""
        if self._fd is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._fd), self._path.lstat())
        except OSError:
            return False

    def release(self) -> None:
        """Give it back."""
        if self._fd is not None:
            # Said aloud, because a child process may have inherited the descriptor and would keep the lock.
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = None


class _CannotLock(IoFailure):
    """This file system has no such locks."""
