"""Writing a file so that it is there whole or not at all: a temporary file beside it, flushed, then renamed.

What each step leaves behind if it is the last one: the old file, untouched.
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from local_vector_search_mcp.errors import Conflict, ConflictReason, InvalidPath
from local_vector_search_mcp.workspace.entries import TEMPORARY_PREFIX, FileIdentity
from local_vector_search_mcp.workspace.folders import Folder
from local_vector_search_mcp.workspace.guard import Place
from local_vector_search_mcp.workspace.os_errors import is_sharing_violation

_RETRY_S = 1.0
_RETRY_PAUSE_S = 0.05
# Attributes that the system sets by itself or lets only some write.
_SKIPPED_ATTRIBUTES = ("security.selinux", "security.ima", "security.evm", "com.apple.provenance")


def read_fully(fd: int) -> bytes:
    """All bytes of an open regular file from its start."""
    size = os.fstat(fd).st_size
    os.lseek(fd, 0, os.SEEK_SET)
    pieces: list[bytes] = []
    while piece := os.read(fd, max(size + 1, 65_536)):
        pieces.append(piece)
        size = 0
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def refuse_shared(place: Place) -> None:
    """Refuse to write a file that has a second name.

    Raises:
        InvalidPath: It has; the other name would keep the old text, or get the new one unasked.
    """
    if place.found.st_nlink > 1:
        raise InvalidPath(f"{place.path} is a hard link: the same file has another name; edit a copy of it.")


def expect(place: Place, expected: FileIdentity) -> None:
    """Refuse when the file is no longer the one that was read.

    Raises:
        Conflict: It changed; ``source_changed``.
    """
    if place.status is None or not FileIdentity.of(place.status).same_content_as(expected):
        raise changed(place)


def changed(place: Place) -> Conflict:
    """The refusal for a file that another program changed between reading and writing."""
    return Conflict(
        f"{place.path} was changed by another program in this moment; nothing was written. Read it again.",
        reason=ConflictReason.SOURCE_CHANGED,
    )


@contextmanager
def temporary_file(folder: Folder, data: bytes, *, mode: int, like: int | None = None) -> Generator[str]:
    """A flushed temporary file in a folder, by name; removed at the end if it is still there.

    Args:
        folder: Where it is made.
        data: Its bytes.
        mode: The mode that it is made with, before the process's mask.
        like: A descriptor of the file whose mode, owner and attributes it gets.
    """
    name = f"{TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
    fd = folder.create(name, mode)
    try:
        try:
            _write_fully(fd, data)
            if like is not None:
                copy_metadata(like, fd)
            os.fsync(fd)
        finally:
            os.close(fd)
        yield name
    finally:
        with suppress(FileNotFoundError):
            folder.remove(name)


def copy_metadata(source: int, target: int) -> None:
    """Give one open file the mode of another, and its owner, attributes and ACL where the system lets it."""
    status = os.fstat(source)
    own = os.fstat(target)
    if hasattr(os, "fchown") and (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        for owner in ((status.st_uid, status.st_gid), (-1, status.st_gid)):
            try:
                os.fchown(target, *owner)
            except OSError:
                # Only the superuser may give files away; the group alone may still be possible.
                continue
            break
    if hasattr(os, "fchmod"):
        os.fchmod(target, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        _copy_attributes(source, target)


def _copy_attributes(source: int, target: int) -> None:
    try:
        names = os.listxattr(source)
    except OSError:
        # The file system has no attributes.
        return
    for name in names:
        if name.startswith(_SKIPPED_ATTRIBUTES):
            continue
        with suppress(OSError):
            os.setxattr(target, name, os.getxattr(source, name))


def with_retries(step: Callable[[], None], *, clock: Callable[[], float] = time.monotonic) -> None:
    """Do a step again for a second while Windows says that another program has the file open."""
    deadline = clock() + _RETRY_S
    while True:
        try:
            step()
        except OSError as error:
            if not is_sharing_violation(error) or clock() >= deadline:
                raise
            time.sleep(_RETRY_PAUSE_S)
        else:
            return


def _write_fully(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.write(fd, view)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]
