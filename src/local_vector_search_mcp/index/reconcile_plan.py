"""Files against rows → what to look at, what to drop, and whether so much may be dropped. Pure.

Times and inodes are hints: they say which files need not be read. What a file holds is decided by its hash.
"""

import marshal
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import xxhash

from local_vector_search_mcp.index.state import FileState

RACY_NS: Final = 2_000_000_000
"""A file that changed so shortly before it was read may change again without another time."""

_GUARDED_DOCUMENTS: Final = 50
_AT_ONCE: Final = 2048
_BEHIND: Final = b"\0"  # No system has it in a name.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilePlan:
    """What a run has to do.

    Attributes:
        look_at: Files to read and hash, in order of their paths: new ones, and those whose state differs.
        gone: Indexed paths that the walk did not find, and that it would have found.
    """

    look_at: tuple[str, ...]
    gone: tuple[str, ...]


class PackedPaths:
    """Many paths in little memory, to be gone through in their order."""

    def __init__(self, paths: Sequence[str]) -> None:
        packed = bytearray()
        for path in paths:
            packed += path.encode("utf-8", "surrogatepass")
            packed += _BEHIND
        self._packed = bytes(packed)
        self._count = len(paths)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        start = 0
        for _ in range(self._count):
            end = self._packed.find(_BEHIND, start)
            yield self._packed[start:end].decode("utf-8", "surrogatepass")
            start = end + 1


def plan(
    files: dict[str, FileState],
    indexed: Iterable[tuple[str, FileState]],
    *,
    recheck: Collection[str],
    unreadable: Sequence[str],
    read_all: bool = False,
) -> ReconcilePlan:
    """Compare a walk with the index.

    Args:
        files: Every selected file that the walk found; those of them that need no look are taken out, as a second
            table of all files would be as large as the first.
        indexed: Every file that the index knows.
        recheck: Indexed files to read again whatever their state.
        unreadable: Folders that could not be read (``""`` is the root): what they held is unknown, not gone.
        read_all: Read every file.
    """
    gone: list[str] = []
    for path, state in indexed:
        found = files.get(path)
        if found is None:
            if not _lies_in(path, unreadable):
                gone.append(path)
        elif found == state and not read_all and path not in recheck:
            del files[path]
    return ReconcilePlan(look_at=tuple(sorted(files)), gone=tuple(sorted(gone)))


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
    digest = xxhash.xxh64()
    entries = iter(files.items())
    while part := list(islice(entries, _AT_ONCE)):
        # Version 2 of the format writes no back references, which would depend on who else holds the values.
        digest.update(marshal.dumps(part, 2))
    return digest.hexdigest()


def _lies_in(path: str, folders: Sequence[str]) -> bool:
    return any(not folder or path == folder or path.startswith(f"{folder}/") for folder in folders)
