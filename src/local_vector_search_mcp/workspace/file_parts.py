"""Parts of files: the head of one, a range of one, and the digest of one that is too large to hold."""

import hashlib
import os
from typing import Final

from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.os_errors import as_failure

_BLOCK: Final = 1 << 20


def read_head(workspace: Workspace, path: RelPath, most: int) -> bytes:
    """The first bytes of a file, ``most`` at most.

    Raises:
        InvalidPath, NotFound, IoFailure: As ``Workspace.open``.
    """
    with workspace.open(path) as (fd, _):
        return read_range(fd, path, 0, most)


def read_range(fd: int, path: RelPath, offset: int, count: int) -> bytes:
    """A range of an open file; shorter where the file ends.

    Raises:
        IoFailure: The system does not let it be read.
    """
    parts: list[bytes] = []
    missing = count
    try:
        os.lseek(fd, offset, os.SEEK_SET)
        while missing and (part := os.read(fd, min(missing, _BLOCK))):
            parts.append(part)
            missing -= len(part)
    except OSError as error:
        raise as_failure(error, str(path), doing="read") from error
    return b"".join(parts)


def sha256_of(fd: int, path: RelPath) -> str:
    """The SHA-256 of a whole open file, read block by block.

    Raises:
        IoFailure: The system does not let it be read.
    """
    digest = hashlib.sha256()
    position = 0
    while block := read_range(fd, path, position, _BLOCK):
        digest.update(block)
        position += len(block)
    return digest.hexdigest()
