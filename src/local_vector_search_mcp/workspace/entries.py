"""What a file of the workspace is, seen from outside: its identity, kind and place. Touches no disk."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

from local_vector_search_mcp.relpath import RelPath

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkdn", ".mkd", ".mdwn", ".mdx", ".qmd", ".rmd"})
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif"})
TEMPORARY_PREFIX = ".lvs-tmp-"  # The only names that are ever cleaned up.

# Size, modification time (ns), change time (ns) and inode: what a reconcile compares, as plain as it can be.
FileState: TypeAlias = tuple[int, int, int, int]


class FileKind(StrEnum):
    """What kind of file a name stands for."""

    MARKDOWN = "markdown"
    IMAGE = "image"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """Which file it is and when it last changed, as the system tells it."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "FileIdentity":
        """The identity in a stat result."""
        return cls(
            device=status.st_dev,
            inode=status.st_ino,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
        )

    def same_content_as(self, other: "FileIdentity") -> bool:
        """Same file, size and modification time; a changed mode or link count alone makes no difference."""
        return (self.device, self.inode, self.size, self.mtime_ns) == (
            other.device,
            other.inode,
            other.size,
            other.mtime_ns,
        )

    @property
    def state(self) -> FileState:
        """The part that a reconcile compares."""
        return (self.size, self.mtime_ns, self.ctime_ns, self.inode)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSnapshot:
    """One reading of a file: its bytes and the identity that they were read under."""

    path: RelPath
    data: bytes
    identity: FileIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file as a walk or a stat sees it."""

    path: RelPath
    kind: FileKind
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @property
    def state(self) -> FileState:
        """The part that a reconcile compares."""
        return (self.size, self.mtime_ns, self.ctime_ns, self.inode)

    @property
    def modified(self) -> str:
        """The modification time as ``2026-01-31T12:00:00Z``."""
        return iso_time(self.mtime_ns)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that a walk could not take in, and why, in words."""

    path: str  # As shown to a person; it may hold what no RelPath holds.
    reason: str


def iso_time(time_ns: int) -> str:
    """A time in nanoseconds since 1970 as ``2026-01-31T12:00:00Z``, cut to the second."""
    # Dates that datetime cannot hold occur on damaged disks; the nearest one that it can is shown.
    seconds = min(max(time_ns // 1_000_000_000, -62_135_596_800), 253_402_300_799)
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
