"""Files against rows → what to look at, what to drop, and whether so much may be dropped. Pure.

Times and inodes are hints: they say which files need not be read. What a file holds is decided by its hash.
"""

import marshal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.index.state import FileState

RACY_NS: Final = 2_000_000_000
"""A file that changed so shortly before it was read may change again without another time."""

_GUARDED_DOCUMENTS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilePlan:
    """What a run has to do.

    Attributes:
        look_at: Files to read and hash, in order of their paths: new ones, and those whose state differs.
        gone: Indexed paths that the walk did not find, and that it would have found.
    """

    look_at: tuple[str, ...]
    gone: tuple[str, ...]


def plan(
    files: Mapping[str, FileState],
    indexed: Mapping[str, FileState],
    *,
    recheck: Collection[str],
    unreadable: Sequence[str],
    read_all: bool = False,
) -> ReconcilePlan:
    """Compare a walk with the index.

    Args:
        files: Every selected file that the walk found.
        indexed: Every file that the index knows.
        recheck: Indexed files to read again whatever their state.
        unreadable: Folders that could not be read (``""`` is the root): what they held is unknown, not gone.
        read_all: Read every file.
    """
    if read_all:
        look_at = list(files)
    else:
        known = indexed.get
        look_at = [path for path, state in files.items() if known(path) != state or path in recheck]
    gone = [path for path in indexed.keys() - files.keys() if not _lies_in(path, unreadable)]
    return ReconcilePlan(look_at=tuple(sorted(look_at)), gone=tuple(sorted(gone)))


def may_drop(*, dropped: int, indexed: int, found: int, asked: bool) -> bool:
    """Whether so many documents may leave the index.

    Args:
        dropped: Documents that would go.
        indexed: Documents that the index holds now.
        found: Documents that the walk found.
        asked: Somebody asked for this run.
    """
    if dropped == 0:
        return True
    if asked:
        return found > 0
    return indexed < _GUARDED_DOCUMENTS or dropped * 2 <= indexed


def needs_recheck(state: FileState, *, read_at_ns: int) -> bool:
    """Whether a file was changed so close to its reading that it must be read again on the next run."""
    _, mtime_ns, ctime_ns, _ = state
    return abs(read_at_ns - mtime_ns) <= RACY_NS or abs(read_at_ns - ctime_ns) <= RACY_NS


def tree_signature(files: Mapping[str, FileState]) -> str:
    """A digest of all paths and states of a walk; another order of the same files gives another one."""
    # Version 2 of the format writes no back references, which would depend on who else holds the values.
    return xxh64_hex(marshal.dumps(dict(files), 2))


def _lies_in(path: str, folders: Sequence[str]) -> bool:
    return any(not folder or path == folder or path.startswith(f"{folder}/") for folder in folders)
