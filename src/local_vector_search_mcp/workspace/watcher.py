"""Watcher: tells when files of the tree change, by native events where they can be had and by polling elsewhere."""

import logging
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from local_vector_search_mcp.workspace.changes_seen import Debouncer, SeenChanges
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.mounts import silent_mount

_log = logging.getLogger(__name__)

_LIVENESS_S = 5.0
# Native events that could not be had may be had later: when a limit was raised, or other programs gave watches back.
_NATIVE_AGAIN_S = 600.0

ROOT_GONE: Final = "the root was moved or removed"


class WatchState(StrEnum):
    """How changes are noticed."""

    NATIVE = "native"
    POLLING = "polling"
    OFF = "off"


class WatchFailed(Exception):
    """Native events cannot be had; the text says why, for status."""


Report = Callable[[str, bool], None]  # A root-relative path, and whether anything below it may have changed.


class ChangeSource(Protocol):
    """Something that notices changes: native events of two kinds, or polling."""

    def start(self, report: Report, failed: Callable[[str], None]) -> None:
        """Begin; ``failed`` is called, from any thread, with the reason if it stops working later.

        Raises:
            WatchFailed: It cannot begin.
        """
        ...

    def is_alive(self) -> bool:
        """Whether it still works."""
        ...

    def stop(self) -> None:
        """End, and wait for its threads."""
        ...


class Watcher:
    """Delivers changes of one workspace in batches.

    Args:
        workspace: The tree.
        native: Makes the native source; None polls from the start.
        polling: Makes the source that is used where native events cannot be had.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        native: Callable[[], ChangeSource] | None,
        polling: Callable[[], ChangeSource],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._workspace = workspace
        self._native = native
        self._polling = polling
        self._clock = clock
        self._wall = wall
        self._debouncer = Debouncer()
        self._changed = threading.Condition()
        self._source: ChangeSource | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._broken: str | None = None
        self._root: tuple[int, int] | None = None  # Which directory it was when last looked at; None if none.
        self._native_at = 0.0
        self.state = WatchState.OFF
        self.reason: str | None = None  # Why it is not native, in words.
        self.last_event_at: float | None = None  # Seconds since 1970.

    def start(self, on_changes: Callable[[SeenChanges], None]) -> None:
        """Begin to watch; ``on_changes`` is called from one thread of the watcher's own, one batch at a time."""
        if self._thread is not None:
            raise RuntimeError("the watcher runs already")
        self._stopping = False
        self._begin()
        self._thread = threading.Thread(target=self._run, args=(on_changes,), name="watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; nothing is delivered afterwards."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)
        source, self._source = self._source, None
        if source is not None:
            source.stop()
        self.state = WatchState.OFF

    def is_alive(self) -> bool:
        """Whether it is running and its source still works."""
        thread, source = self._thread, self._source
        return thread is not None and thread.is_alive() and source is not None and source.is_alive()

    def report(self, path: str, folder: bool) -> None:
        """Take in one change; for sources."""
        with self._changed:
            self.last_event_at = self._wall()
            self._debouncer.add(path, folder=folder, now=self._clock(), wall=self.last_event_at)
            self._changed.notify_all()

    def _begin(self) -> None:
        self._root = _directory(self._workspace.root)
        source = self._native_source()
        if source is None:
            self._poll(self.reason or "native events cannot be had")
        else:
            self._source, self.state = source, WatchState.NATIVE

    def _native_source(self) -> ChangeSource | None:
        """A native source at work; None where there can be none now, and then ``reason`` says why."""
        self._native_at = self._clock() + _NATIVE_AGAIN_S
        kind = silent_mount(self._workspace.root)
        if self._native is None:
            self.reason = "native events are switched off"
        elif kind is not None:
            self.reason = f"the root lies on a file system ({kind}) that does not tell of all changes"
        else:
            source = self._native()
            try:
                source.start(self.report, self._on_failure)
            except WatchFailed as error:
                source.stop()
                self.reason = str(error)
            else:
                self.reason = None
                return source
        return None

    def _poll(self, reason: str) -> None:
        source = self._polling()
        source.start(self.report, self._on_failure)
        self._source, self.state, self.reason = source, WatchState.POLLING, reason
        _log.warning("Watching by polling: %s", reason)

    def _on_failure(self, reason: str) -> None:
        with self._changed:
            self._broken = reason
            self._changed.notify_all()

    def _run(self, on_changes: Callable[[SeenChanges], None]) -> None:
        while True:
            with self._changed:
                due = self._debouncer.due_in(self._clock())
                if not self._stopping and self._broken is None and (due is None or due > 0):
                    self._changed.wait(timeout=_LIVENESS_S if due is None else due)
                if self._stopping:
                    return
                broken, self._broken = self._broken, None
                ready = self._debouncer.due_in(self._clock()) == 0
                changes = self._debouncer.take() if ready else None
            if broken is None and self._source is not None and not self._source.is_alive():
                broken = "the thread that receives events has died"
            root = _directory(self._workspace.root)
            if broken is None and self.state is WatchState.NATIVE and root != self._root:
                # Its events are those of the directory that stood there before.
                broken = ROOT_GONE
            if broken is not None:
                self._fall_back(broken)
            elif self.state is WatchState.POLLING:
                self._try_native_again(root)
            if changes is not None:
                on_changes(changes)

    def _fall_back(self, reason: str) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.stop()
        self._poll(reason)
        if reason == ROOT_GONE:
            # Whatever stands there next is a root that has come back.
            self._root = None
        # What happened since the last event was heard is not known.
        self.report("", True)

    def _try_native_again(self, root: tuple[int, int] | None) -> None:
        """Watch natively where that may be possible by now: the root is back, or some time has passed."""
        is_back = root is not None and root != self._root
        self._root = root
        if self._native is None or root is None or not (is_back or self._clock() >= self._native_at):
            return
        source = self._native_source()
        if source is None:
            return
        polling, self._source, self.state = self._source, source, WatchState.NATIVE
        if polling is not None:
            polling.stop()
        _log.info("Watching by native events again")
        # What happened between the last walk and the first event is not known.
        self.report("", True)


def _directory(path: Path) -> tuple[int, int] | None:
    """Which directory stands at a path; None where none does."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def make_watcher(workspace: Workspace) -> Watcher:
    """A watcher with native events for this system, and polling behind it."""
    # Loaded here because watchdog is slow to load, and not every process watches.
    from local_vector_search_mcp.workspace.watch_native import native_source
    from local_vector_search_mcp.workspace.watch_polling import PollingSource

    return Watcher(workspace, native=lambda: native_source(workspace), polling=lambda: PollingSource(workspace))
