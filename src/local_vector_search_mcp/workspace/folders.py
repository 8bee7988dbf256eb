"""Folder: an open directory, and the few steps that are done inside it by name.

On systems with descriptors for directories every step is relative to one, and none follows a link: a folder that is
swapped for a link between a check and its use leads nowhere. Elsewhere (Windows) paths are checked before each step.
"""

import errno
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from local_vector_search_mcp.workspace.native_rename import exchange_names, rename_exclusively

# The flags that a system lacks are 0 there and change nothing.
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
_NOCTTY: int = getattr(os, "O_NOCTTY", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)
_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
READ_FLAGS = os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _CLOEXEC | _NOCTTY | _BINARY
CREATE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC | _BINARY


class LinkRefused(OSError):
    """A name turned out to be a symbolic link or a junction."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ELOOP, "is a link", name)


class Folder(ABC):
    """An open directory. Every method raises ``OSError`` as the system gives it; links are ``LinkRefused``."""

    is_held: ClassVar[bool]
    """Whether it stays the directory that was opened, whatever stands at its path by now."""

    @abstractmethod
    def folder(self, name: str) -> "Folder":
        """Open a folder inside this one."""

    @abstractmethod
    def stat(self, name: str) -> os.stat_result:
        """What a name stands for, links not followed."""

    @abstractmethod
    def scan(self) -> "list[os.DirEntry[str]]":
        """All entries, in the system's order. Only valid while the folder is open."""

    @abstractmethod
    def open_to_read(self, name: str) -> int:
        """A descriptor of a regular file; anything else is an error before it is opened."""

    @abstractmethod
    def create(self, name: str, mode: int) -> int:
        """A descriptor of a new, empty file open for reading and writing; ``FileExistsError`` if the name is taken."""

    @abstractmethod
    def make_folder(self, name: str) -> None:
        """Make a folder; ``FileExistsError`` if the name is taken."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file."""

    @abstractmethod
    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""

    @abstractmethod
    def replace(self, name: str, target: "Folder", target_name: str) -> None:
        """Rename, over what is there."""

    @abstractmethod
    def rename(self, name: str, target: "Folder", target_name: str) -> None:
        """Rename; ``FileExistsError`` if the new name is taken."""

    @abstractmethod
    def exchange(self, name: str, other_name: str) -> bool:
        """Let two names of this folder change places in one step; False, with nothing done, where no such step is."""

    @abstractmethod
    def flush(self) -> None:
        """Bring the folder's own entries to disk, where the system can."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the directory."""

    def names(self) -> list[str]:
        """The names of all entries."""
        return [entry.name for entry in self.scan()]

    def __enter__(self) -> "Folder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_folder(path: Path) -> Folder:
    """Open a directory by its path, which is not checked any further.

    Raises:
        OSError: It is missing, no directory, or may not be read.
    """
    if os.open in os.supports_dir_fd and os.scandir in os.supports_fd:
        return DescriptorFolder(os.open(path, os.O_RDONLY | _DIRECTORY | _CLOEXEC))
    return PathFolder(path)


class DescriptorFolder(Folder):
    """A directory by its descriptor."""

    __slots__ = ("_fd",)
    is_held = True

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def folder(self, name: str) -> "DescriptorFolder":
        try:
            fd = os.open(name, os.O_RDONLY | _DIRECTORY | _NOFOLLOW | _CLOEXEC, dir_fd=self._fd)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and stat.S_ISLNK(self.stat(name).st_mode):
                raise LinkRefused(name) from error
            raise
        return DescriptorFolder(fd)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def scan(self) -> "list[os.DirEntry[str]]":
        with os.scandir(self._fd) as entries:
            return list(entries)

    def open_to_read(self, name: str) -> int:
        _expect_regular(name, self.stat(name))
        # The look before keeps devices from being opened at all; the one after decides.
        fd = os.open(name, READ_FLAGS, dir_fd=self._fd)
        with _closing_on_error(fd):
            _expect_regular(name, os.fstat(fd))
        return fd

    def create(self, name: str, mode: int) -> int:
        return os.open(name, CREATE_FLAGS, mode, dir_fd=self._fd)

    def make_folder(self, name: str) -> None:
        os.mkdir(name, dir_fd=self._fd)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._fd)

    def remove_folder(self, name: str) -> None:
        os.rmdir(name, dir_fd=self._fd)

    def replace(self, name: str, target: Folder, target_name: str) -> None:
        os.rename(name, target_name, src_dir_fd=self._fd, dst_dir_fd=_descriptor(target))

    def rename(self, name: str, target: Folder, target_name: str) -> None:
        rename_exclusively(self._fd, name, _descriptor(target), target_name)

    def exchange(self, name: str, other_name: str) -> bool:
        return exchange_names(self._fd, name, other_name)

    def flush(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as error:
            # Some network file systems cannot flush a directory; its files were flushed one by one.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
                raise

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class PathFolder(Folder):
    """A directory by its path, for systems without directory descriptors."""

    __slots__ = ("_path",)
    is_held = False

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        self._path = path

    def folder(self, name: str) -> "PathFolder":
        if is_link(self.stat(name)):
            raise LinkRefused(name)
        return PathFolder(self._path / name)

    def stat(self, name: str) -> os.stat_result:
        return (self._path / name).lstat()

    def scan(self) -> "list[os.DirEntry[str]]":
        with os.scandir(self._path) as entries:
            return list(entries)

    def open_to_read(self, name: str) -> int:
        _expect_regular(name, self.stat(name))
        fd = os.open(self._path / name, READ_FLAGS)
        with _closing_on_error(fd):
            _expect_regular(name, os.fstat(fd))
        return fd

    def create(self, name: str, mode: int) -> int:
        return os.open(self._path / name, CREATE_FLAGS, mode)

    def make_folder(self, name: str) -> None:
        (self._path / name).mkdir()

    def remove(self, name: str) -> None:
        (self._path / name).unlink()

    def remove_folder(self, name: str) -> None:
        (self._path / name).rmdir()

    def replace(self, name: str, target: Folder, target_name: str) -> None:
        (self._path / name).replace(_path(target) / target_name)

    def rename(self, name: str, target: Folder, target_name: str) -> None:
        wanted = _path(target) / target_name
        # Windows refuses a taken name by itself; elsewhere this look leaves a moment open.
        if sys.platform != "win32" and os.path.lexists(wanted):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(wanted))
        (self._path / name).rename(wanted)

    def exchange(self, name: str, other_name: str) -> bool:
        return False

    def flush(self) -> None:
        return

    def close(self) -> None:
        return


def is_link(status: os.stat_result) -> bool:
    """Whether a stat result is that of a symbolic link or, on Windows, of a junction or another reparse point."""
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) != 0


def _expect_regular(name: str, status: os.stat_result) -> None:
    if is_link(status):
        raise LinkRefused(name)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, "is no regular file", name)


def _descriptor(folder: Folder) -> int:
    if not isinstance(folder, DescriptorFolder):
        raise TypeError("both folders must be open in the same way")
    return folder._fd  # pyright: ignore[reportPrivateUsage]


def _path(folder: Folder) -> Path:
    if not isinstance(folder, PathFolder):
        raise TypeError("both folders must be open in the same way")
    return folder._path  # pyright: ignore[reportPrivateUsage]


@contextmanager
def _closing_on_error(fd: int) -> Generator[None]:
    try:
        yield
    except BaseException:
        os.close(fd)
        raise
