"""Renames that the system does in one step and Python does not offer: never over a file, and two names exchanged."""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

_LINUX_NOREPLACE, _LINUX_EXCHANGE = 1, 2
_DARWIN_SWAP, _DARWIN_EXCLUSIVE = 2, 4
# The call, or this file system, does not know the flag.
_UNKNOWN = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def rename_exclusively(source_fd: int, source: str, target_fd: int, target: str) -> None:
    """Rename between two open directories; ``FileExistsError`` if the target's name is taken."""
    flag = _DARWIN_EXCLUSIVE if sys.platform == "darwin" else _LINUX_NOREPLACE
    if _rename_with(flag, source_fd, source, target_fd, target):
        return
    try:
        # A second link can never replace anything, and then the first one goes.
        os.link(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EMLINK, *_UNKNOWN):
            raise
        _rename_after_look(source_fd, source, target_fd, target)
    else:
        os.unlink(source, dir_fd=source_fd)


def exchange_names(folder_fd: int, one: str, other: str) -> bool:
    """Let two existing names of an open directory change places; False, with nothing done, where that cannot be."""
    flag = _DARWIN_SWAP if sys.platform == "darwin" else _LINUX_EXCHANGE
    return _rename_with(flag, folder_fd, one, folder_fd, other)


def _rename_after_look(source_fd: int, source: str, target_fd: int, target: str) -> None:
    # File systems without links (FAT) leave a moment between the look and the rename.
    try:
        os.stat(target, dir_fd=target_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)


def _rename_with(flag: int, source_fd: int, source: str, target_fd: int, target: str) -> bool:
    call = _native_call()
    if call is None:
        return False
    ctypes.set_errno(0)
    if call(source_fd, os.fsencode(source), target_fd, os.fsencode(target), flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNKNOWN:
        return False
    raise OSError(code, os.strerror(code), source, None, target)


@cache
def _native_call() -> Callable[..., Any] | None:
    name = {"linux": "renameat2", "darwin": "renameatx_np"}.get(sys.platform)
    if name is None:
        return None
    call: Callable[..., Any] | None = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)  # type: ignore[attr-defined]
        call.restype = ctypes.c_int  # type: ignore[attr-defined]
    return call
