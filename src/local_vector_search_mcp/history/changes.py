"""Change: one mutation as it is recorded, and the bytes that it replaced. Touches no disk."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.relpath import RelPath

# Bytes after a change are kept for text only: of the rest no diff is ever shown, and undoing needs the bytes before.
_BINARY_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".pdf"})


class ChangeState(StrEnum):
    """How far a change has come."""

    PENDING = "pending"  # Recorded; some, all or none of its files have changed.
    APPLIED = "applied"
    INTERRUPTED = "interrupted"  # A crash cut it off, and other programs changed the files that it still names.


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What a change is going to do to one file.

    ``before`` is None for a new file, ``after`` for one that goes. With ``previous_path`` the file is renamed:
    ``before`` are its bytes at the old path, ``after`` those at the new one, often the same.
    """

    path: RelPath
    before: bytes | None
    after: bytes | None
    previous_path: RelPath | None = None

    def __post_init__(self) -> None:
        if self.before is None and self.after is None:
            raise ValueError("a file change needs bytes before or after")
        if self.previous_path is not None and (self.before is None or self.after is None):
            raise ValueError("a renamed file has bytes before and after")

    @property
    def previous_hash(self) -> str | None:
        """The source hash before; None where there was no file."""
        return None if self.before is None else xxh64_hex(self.before)

    @property
    def new_hash(self) -> str | None:
        """The source hash after; None where there is no file."""
        return None if self.after is None else xxh64_hex(self.after)

    @property
    def keeps_bytes(self) -> bool:
        """Whether a rename left the bytes as they were, so that moving it back is all it takes."""
        return self.previous_path is not None and self.before == self.after

    @property
    def is_text(self) -> bool:
        """Whether its bytes after the change are kept too."""
        return self.path.suffix not in _BINARY_SUFFIXES


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One file of a recorded change."""

    path: RelPath
    previous_path: RelPath | None  # Set for a rename.
    previous_hash: str | None  # None where there was no file.
    new_hash: str | None  # None where there is no file afterwards.


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One recorded mutation."""

    sequence: int  # Rises with every change; the key that lists are sorted and continued by.
    change_id: str
    time_ns: int
    tool: str
    summary: str
    state: ChangeState
    undoes: str | None  # The change that this one took back.
    files: tuple[ChangedFile, ...]

    @property
    def time(self) -> str:
        """When it was recorded, as ``2026-01-31T12:00:00Z``."""
        return datetime.fromtimestamp(self.time_ns // 1_000_000_000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileImages:
    """One file of a recorded change with the bytes that were kept.

    ``before`` is None where there was no file, and for a rename that kept the bytes. ``after`` is None where there is
    no file afterwards, for such a rename, and for images and PDF files, of which only the hash is known.
    """

    file: ChangedFile
    before: bytes | None
    after: bytes | None

    @property
    def keeps_bytes(self) -> bool:
        """Whether it was a rename that left the bytes as they were."""
        return self.file.previous_path is not None and self.file.previous_hash == self.file.new_hash
