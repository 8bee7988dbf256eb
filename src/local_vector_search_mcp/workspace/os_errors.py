"""Operating-system errors in the project's own words."""

import errno
from pathlib import Path

from local_vector_search_mcp.errors import AlreadyExists, Busy, IoFailure, KnowledgeBaseError, NotFound

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EACCES, errno.EPERM})
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EILSEQ})
# 32: used by another process; 33: a part of the file is locked.
_SHARING_VIOLATIONS = frozenset({32, 33})


def as_failure(error: OSError, path: str, *, doing: str) -> KnowledgeBaseError:
    """The error to raise for an ``OSError``; nothing was changed where it is an ``IoFailure``.

    Args:
        error: What the system said.
        path: What it was about, as the caller knows it.
        doing: A verb form such as ``"read"``, for the message.
    """
    if is_sharing_violation(error):
        return Busy(f"{path} is held open by another program; close it there or try again.")
    if error.errno in _ABSENT:
        return NotFound(f"There is no file {path}.")
    if error.errno == errno.EEXIST:
        return AlreadyExists(f"{path} exists already; choose another path.")
    return IoFailure(f"{path} could not be {doing}: {_reason(error)}; nothing was changed.")


def cannot_lock(path: Path, error: OSError) -> IoFailure:
    """The error to raise where a lock can be neither had nor waited for."""
    return IoFailure(f"{path} cannot be locked: {_reason(error)}; nothing was changed.")


def is_absent(error: OSError) -> bool:
    """Whether the system says that there is nothing of that name."""
    return error.errno in _ABSENT


def is_sharing_violation(error: OSError) -> bool:
    """Whether Windows refused because another program has the file open."""
    return getattr(error, "winerror", None) in _SHARING_VIOLATIONS


def _reason(error: OSError) -> str:
    if error.errno in _FULL:
        return "the disk is full"
    if error.errno == errno.EROFS:
        return "the file system is read-only"
    if error.errno in _DENIED:
        return "the system does not permit it"
    return (error.strerror or "the system reported an error").lower()
