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
    name = temporary_name()
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


def replace_expected(place: Place, temporary: str, expected: FileIdentity) -> None:
    """Put a temporary file in the place of an existing one, if that is still the one that was read.

    Where the system can, the two change places in one step, and then what came out is looked at: a version that another
    program saved in the last moment goes back where it was. (The old file is named first, so that a watcher sees its
    name come last, as in any save by renaming.)

    Raises:
        Conflict: It changed; ``source_changed``.
        OSError: The system refused.
    """
    folder = place.folder
    if not FileIdentity.of(folder.stat(place.name)).same_content_as(expected):
        raise changed(place)
    if not folder.exchange(place.name, temporary):
        with_retries(lambda: folder.replace(temporary, folder, place.name))
        return
    if not FileIdentity.of(folder.stat(temporary)).same_content_as(expected):
        folder.exchange(place.name, temporary)
        raise changed(place)


def take_out_expected(place: Place, expected: FileIdentity) -> None:
    """Remove a file, if it is still the one that was read: renamed first, looked at, then removed.

    Raises:
        Conflict: It changed; ``source_changed``.
        OSError: The system refused.
    """
    folder = place.folder
    expect(place, expected)
    aside = temporary_name()
    with_retries(lambda: folder.rename(place.name, folder, aside))
    if not FileIdentity.of(folder.stat(aside)).same_content_as(expected):
        folder.rename(aside, folder, place.name)
        raise changed(place)
    folder.remove(aside)


def move_expected(source: Place, target: Place, expected: FileIdentity | None) -> None:
    """Rename a file to a free name, if it is still the one that was read.

    Raises:
        Conflict: It changed; ``source_changed``.
        OSError: The system refused; ``FileExistsError`` where the name is taken.
    """
    try:
        with_retries(lambda: source.folder.rename(source.name, target.folder, target.name))
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_over(source, target, expected)
        return
    if expected is not None and not FileIdentity.of(target.folder.stat(target.name)).same_content_as(expected):
        target.folder.rename(target.name, source.folder, source.name)
        raise changed(source)


def rename_case(source: Place, target: Place) -> None:
    """Rename a file to a name that the file system takes for the same one, such as another case of it.

    Raises:
        OSError: The system refused.
    """
    wanted = target.path.name
    with_retries(lambda: source.folder.replace(source.name, target.folder, wanted))
    if wanted not in target.folder.names():
        # Some systems take the rename for no change at all, and need a step in between.
        aside = temporary_name()
        source.folder.rename(source.name, target.folder, aside)
        target.folder.rename(aside, target.folder, wanted)


def _copy_over(source: Place, target: Place, expected: FileIdentity | None) -> None:
    """Move a file to another file system below the root: a whole copy first, then the old one goes."""
    fd = source.folder.open_to_read(source.name)
    try:
        known = expected or FileIdentity.of(os.fstat(fd))
        with temporary_file(target.folder, read_fully(fd), mode=0o600, like=fd) as temporary:
            target.folder.rename(temporary, target.folder, target.name)
    finally:
        os.close(fd)
    try:
        take_out_expected(source, known)
    except (Conflict, OSError):
        target.folder.remove(target.name)
        raise


def temporary_name() -> str:
    """A fresh name for a temporary file; it tells which process made it."""
    return f"{TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"


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
