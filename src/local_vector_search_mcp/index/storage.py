"""The directory of the server's own files: made private, or refused where it is not ours."""

import contextlib
import os
import stat
import sys
from enum import StrEnum
from pathlib import Path

from local_vector_search_mcp.errors import IoFailure


class StorageAccess(StrEnum):
    """What can be done in the storage directory."""

    WRITABLE = "writable"
    READ_ONLY = "read_only"  # It is there, and an index in it can be read.
    ABSENT = "absent"  # It is not there and cannot be made: files are read, nothing is searched.


def prepare_storage(directory: Path, *, project_root: Path | None = None) -> StorageAccess:
    """Make the directory, with mode 0700 and a ``.gitignore`` holding ``*``, or take the one that is there.

    Args:
        directory: The directory.
        project_root: Never made, where the directory lies in it: one that is gone may come back.

    Raises:
        IoFailure: A link, a file, or another user's directory stands in its place.
    """
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return _make(directory, project_root)
    except OSError as error:
        raise IoFailure(f"The storage directory {directory} cannot be looked at: {error.strerror}.") from error
    _check_own(directory, found)
    return StorageAccess.WRITABLE if _can_write(directory) else StorageAccess.READ_ONLY


def _make(directory: Path, project_root: Path | None) -> StorageAccess:
    try:
        if project_root is None or not directory.is_relative_to(project_root):
            directory.parent.mkdir(parents=True, exist_ok=True)
        else:
            for above in reversed(directory.parents):
                if project_root in above.parents:
                    above.mkdir(exist_ok=True)
        directory.mkdir(mode=0o700)
    except FileExistsError:
        # Another server made it in the meantime; a file in place of its parent is an error of its own.
        if not directory.is_dir():
            raise IoFailure(f"The storage directory {directory} cannot be made: a file is in the way.") from None
        return prepare_storage(directory, project_root=project_root)
    except OSError:
        return StorageAccess.ABSENT
    with contextlib.suppress(OSError):
        directory.chmod(0o700)  # Whatever the umask took away or a parent's default ACL added.
        (directory / ".gitignore").write_text("*\n", encoding="utf-8")
    return StorageAccess.WRITABLE


def _check_own(directory: Path, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", False):
        raise IoFailure(
            f"The storage directory {directory} is a link, which is not followed; remove it or set storage.path."
        )
    if not stat.S_ISDIR(found.st_mode):
        raise IoFailure(f"The storage path {directory} is no directory; remove it or set storage.path.")
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise IoFailure(
            f"The storage directory {directory} belongs to another user; remove it or set storage.path to your own."
        )


def _can_write(directory: Path) -> bool:
    # os.access does not know of read-only mounts under every system, so a file is really made.
    probe = directory / f".probe-{os.getpid()}"
    try:
        descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return True
    except OSError:
        return False
    os.close(descriptor)
    with contextlib.suppress(OSError):
        probe.unlink()
    return True
