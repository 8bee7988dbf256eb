"""Changes that were seen in the tree, gathered until it is quiet (pure)."""

from dataclasses import dataclass, field

_MOST_PATHS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenChanges:
    """What may have changed since the last delivery. Hints only: the files on disk decide."""

    paths: frozenset[str] = frozenset()  # Root-relative files that were made, written, moved or removed.
    folders: frozenset[str] = frozenset()  # Folders below which anything may have changed; "" is the root.
    first_at: float  # When the first of them was seen, in seconds since 1970.

    @property
    def everything(self) -> bool:
        """Whether the whole tree has to be looked at."""
        return "" in self.folders


@dataclass(slots=True, kw_only=True)
class Debouncer:
    """Holds changes back until none has come for ``quiet_s``, at most ``most_s`` after the first."""

    quiet_s: float = 0.25
    most_s: float = 2.0
    _paths: set[str] = field(default_factory=set[str])
    _folders: set[str] = field(default_factory=set[str])
    _first: float = 0.0
    _last: float = 0.0
    _first_at: float = 0.0

    def add(self, path: str, *, folder: bool, now: float, wall: float) -> None:
        """Take in one change.

        Args:
            path: Root-relative; ``""`` is the root.
            folder: Whether anything below ``path`` may have changed.
            now: A clock that never goes back, in seconds.
            wall: The time of day, in seconds since 1970.
        """
        if not self.pending:
            self._first, self._first_at = now, wall
        self._last = now
        (self._folders if folder else self._paths).add(path)
        if len(self._paths) > _MOST_PATHS:
            # One walk is cheaper than so many looks.
            self._paths.clear()
            self._folders = {""}

    @property
    def pending(self) -> bool:
        """Whether anything waits."""
        return bool(self._paths or self._folders)

    def due_in(self, now: float) -> float | None:
        """Seconds until delivery, 0 if it is time; None while nothing waits."""
        if not self.pending:
            return None
        return max(0.0, min(self._last + self.quiet_s, self._first + self.most_s) - now)

    def take(self) -> SeenChanges:
        """All that waits, which then waits no longer. Paths inside a named folder are not named twice."""
        folders = {""} if "" in self._folders else self._folders
        paths = self._paths if not folders else {path for path in self._paths if not _is_below(path, folders)}
        changes = SeenChanges(paths=frozenset(paths), folders=frozenset(folders), first_at=self._first_at)
        self._paths, self._folders = set(), set()
        return changes


def _is_below(path: str, folders: set[str]) -> bool:
    if "" in folders:
        return True
    parent = path
    while parent:
        if parent in folders:
            return True
        parent = parent.rpartition("/")[0]
    return False
