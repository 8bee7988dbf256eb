"""Opening and reading regular files below the root, whatever the selection rules say."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager

from local_vector_search_mcp.errors import InvalidPath, NotFound, TooLarge
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.atomic_write import read_fully
from local_vector_search_mcp.workspace.entries import FileIdentity, FileSnapshot
from local_vector_search_mcp.workspace.folders import LinkRefused
from local_vector_search_mcp.workspace.guard import Place, WorkspaceGuard, link_refused
from local_vector_search_mcp.workspace.os_errors import as_failure

_ATTEMPTS = 3


class FileReader:
    """Reads files of one root."""

    def __init__(self, guard: WorkspaceGuard) -> None:
        self._guard = guard

    def read(self, path: RelPath, *, max_bytes: int | None = None) -> FileSnapshot:
        """All bytes of a regular file.

        Raises:
            InvalidPath: No tool may touch it, it passes through a link, or it is no regular file.
            NotFound: There is none.
            TooLarge: It has more than ``max_bytes``.
            IoFailure: The system does not let it be read.
        """
        with self.open(path) as (fd, identity):
            if max_bytes is not None and identity.size > max_bytes:
                raise TooLarge(
                    f"{path} has {identity.size} bytes, more than the {max_bytes} that are taken.",
                    details={"bytes": identity.size, "maxBytes": max_bytes},
                )
            try:
                data, identity = _read_steadily(fd)
            except OSError as error:
                raise as_failure(error, str(path), doing="read") from error
            return FileSnapshot(path=path, data=data, identity=identity)

    @contextmanager
    def open(self, path: RelPath) -> Generator[tuple[int, FileIdentity]]:
        """A regular file open for reading, as a descriptor and its identity.

        Raises:
            InvalidPath, NotFound, IoFailure: As ``read``.
        """
        with self._guard.at(path) as place:
            fd = open_place(place)
        try:
            status = os.fstat(fd)
            # The server's own files stay closed under a second name, too.
            if status.st_nlink > 1 and self._guard.is_own_file(status):
                raise InvalidPath(f"The path {path} is refused: it is another name of one of this server's own files.")
            yield fd, FileIdentity.of(status)
        finally:
            os.close(fd)

    def status(self, path: RelPath) -> os.stat_result | None:
        """What a path stands for now; None where there is nothing.

        Raises:
            InvalidPath: No tool may touch it, or it passes through a link.
            IoFailure: A folder on the way cannot be read.
        """
        try:
            with self._guard.at(path) as place:
                return place.status
        except NotFound:
            return None

    def identity(self, path: RelPath) -> FileIdentity | None:
        """The identity of a regular file now, or None.

        Raises:
            InvalidPath, IoFailure: As ``status``.
        """
        status = self.status(path)
        return FileIdentity.of(status) if status is not None and stat.S_ISREG(status.st_mode) else None


def open_place(place: Place) -> int:
    """A descriptor of the regular file at a place.

    Raises:
        InvalidPath: It is a folder, a link, or nothing regular.
        NotFound: There is none.
        IoFailure: The system does not let it be read.
    """
    if not stat.S_ISREG(place.found.st_mode):
        kind = "a folder" if stat.S_ISDIR(place.found.st_mode) else "no regular file"
        raise InvalidPath(f"{place.path} is {kind}; give the path of a file.")
    try:
        return place.folder.open_to_read(place.name)
    except LinkRefused as error:
        raise link_refused(place.path) from error
    except OSError as error:
        raise as_failure(error, str(place.path), doing="read") from error


def _read_steadily(fd: int) -> tuple[bytes, FileIdentity]:
    """The bytes of an open file and the identity that they belong to, read again if a program writes meanwhile."""
    before = FileIdentity.of(os.fstat(fd))
    for _ in range(_ATTEMPTS - 1):
        data = read_fully(fd)
        after = FileIdentity.of(os.fstat(fd))
        if after.same_content_as(before):
            return data, before
        before = after
    # It is written to all the time; the identity from before makes any write based on this reading a conflict.
    return read_fully(fd), before
