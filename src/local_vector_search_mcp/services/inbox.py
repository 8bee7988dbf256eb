"""What is known to have changed and is not yet indexed. Safe to use from several threads."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from local_vector_search_mcp.relpath import RelPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Documents to index now.

    Attributes:
        urgent: Those that somebody waits for, first.
        noticed: The others, with the time of the first event of each.
    """

    urgent: tuple[RelPath, ...]
    noticed: dict[RelPath, float]

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """All of them, the urgent ones first, each once."""
        return tuple(dict.fromkeys((*self.urgent, *self.noticed)))


class Inbox:
    """Changed documents, and whether anything else may have changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent: dict[RelPath, None] = {}
        self._noticed: dict[RelPath, float] = {}
        self._everything_since: float | None = None
        self._frozen: set[RelPath] = set()

    def announce(self, paths: Iterable[RelPath]) -> None:
        """Documents that somebody waits for."""
        with self._lock:
            self._urgent.update(dict.fromkeys(paths))

    def notice(self, paths: Iterable[RelPath], at: float) -> None:
        """Documents that changed at a time; those that are told together are taken together."""
        with self._lock:
            for path in paths:
                self._noticed.setdefault(path, at)

    def notice_everything(self, at: float) -> None:
        """Anything may have changed since a time."""
        with self._lock:
            if self._everything_since is None or at < self._everything_since:
                self._everything_since = at

    def take(self) -> Changes:
        """All documents that wait, which then wait no longer."""
        with self._lock:
            changes = Changes(urgent=tuple(self._urgent), noticed=self._noticed)
            self._urgent, self._noticed = {}, {}
            return changes

    def take_urgent(self) -> tuple[RelPath, ...]:
        """The documents that somebody waits for."""
        with self._lock:
            urgent, self._urgent = tuple(self._urgent), {}
            return urgent

    def take_everything(self) -> float | None:
        """Since when anything may have changed; a look at everything covers the noticed documents too."""
        with self._lock:
            since, self._everything_since = self._everything_since, None
            if since is not None:
                self._noticed = {}
            return since

    def put_back(self, changes: Changes, *, now: float) -> None:
        """Let documents wait again, because indexing them failed."""
        with self._lock:
            self._noticed = {**dict.fromkeys(changes.urgent, now), **changes.noticed, **self._noticed}

    def forget_noticed(self) -> None:
        """A look at everything begins, which covers what was noticed before it."""
        with self._lock:
            self._noticed = {}

    def freeze(self, paths: Iterable[RelPath]) -> None:
        """Documents that changed and wait for a rebuild."""
        with self._lock:
            self._frozen.update(paths)

    def thaw(self) -> None:
        """A rebuild has indexed what waited for it."""
        with self._lock:
            self._frozen.clear()

    def is_urgent(self, path: RelPath) -> bool:
        """Whether a document waits to be indexed before the others."""
        with self._lock:
            return path in self._urgent

    def is_frozen(self, path: RelPath) -> bool:
        """Whether a document waits for a rebuild."""
        with self._lock:
            return path in self._frozen

    @property
    def has_documents(self) -> bool:
        """Whether documents wait to be indexed."""
        with self._lock:
            return bool(self._urgent or self._noticed)

    @property
    def has_everything(self) -> bool:
        """Whether everything waits to be looked at."""
        return self._everything_since is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known to have changed."""
        with self._lock:
            return not (self._urgent or self._noticed or self._frozen) and self._everything_since is None
