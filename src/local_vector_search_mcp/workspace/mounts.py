"""Which file systems never tell of changes that others make: network drives and folders shared into a container."""

import os
import re
from pathlib import Path

_MOUNTINFO = Path("/proc/self/mountinfo")
_SILENT = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "drvfs", "vboxsf", "vmhgfs", "prl_fs", "virtiofs"}
    | {"fakeowner", "grpcfuse", "osxfs", "ceph", "lustre", "glusterfs", "davfs", "beegfs", "gpfs"}
)
_OCTAL = re.compile(r"\\([0-7]{3})")


def silent_mount(path: Path) -> str | None:
    """The type of file system that a path lies on, if changes there may pass without an event; else None."""
    if os.name == "nt":
        return "network share" if str(path).startswith("\\\\") else None
    try:
        text = _MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        # No such list on this system; whatever it is, native events are tried.
        return None
    kind = mount_type(text, str(path))
    return kind if kind is not None and is_silent(kind) else None


def is_silent(kind: str) -> bool:
    """Whether a file system of this type may change without an event."""
    # Whatever a user-space driver shows may change behind it; fuseblk (NTFS on a local disk) may not.
    return kind in _SILENT or kind.startswith("fuse.")


def mount_type(mountinfo: str, path: str) -> str | None:
    """The type of the mount that holds a path, by the text of ``/proc/self/mountinfo``; the last such line counts."""
    best, kind = -1, None
    for line in mountinfo.split("\n"):
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5:
            continue
        place = _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), fields[4])
        holds = path == place or path.startswith(place if place.endswith("/") else f"{place}/")
        if holds and len(place) >= best:
            best, kind = len(place), right.split(" ")[0]
    return kind
