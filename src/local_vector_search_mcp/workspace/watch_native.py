"""Native events through watchdog: inotify folder by folder on Linux, the system's own recursion elsewhere."""

import os
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import TEMPORARY_PREFIX
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.listing import nfc
from local_vector_search_mcp.workspace.watcher import ChangeSource, Report, WatchFailed

# Opening and closing without writing is what our own reading does, and is no change.
_EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    FileClosedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]


def native_source(workspace: Workspace) -> ChangeSource:
    """The best native source of this system."""
    if os.name == "posix" and Path("/proc/sys/fs/inotify").is_dir():
        try:
            from local_vector_search_mcp.workspace.watch_inotify import InotifySource
        except ImportError:
            # Another version of watchdog; its recursive observer does as well, and only watches more than it need.
            return ObserverSource(workspace)
        return InotifySource(workspace)
    return ObserverSource(workspace)


class ObserverSource:
    """watchdog's observer, recursive over the whole root; what lies in excluded folders is dropped."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._observer = Observer()

    def start(self, report: Report, failed: Callable[[str], None]) -> None:
        """Begin to watch.

        Raises:
            WatchFailed: The system refuses.
        """
        handler = _Handler(self._workspace, report)
        try:
            self._observer.schedule(handler, str(self._workspace.root), recursive=True, event_filter=_EVENTS)
            self._observer.start()
        except OSError as error:
            raise WatchFailed(f"native events cannot be had: {(error.strerror or str(error)).lower()}") from error

    def is_alive(self) -> bool:
        """Whether its threads run."""
        return self._observer.is_alive() and all(emitter.is_alive() for emitter in self._observer.emitters)

    def stop(self) -> None:
        """End, and wait for the threads."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join(timeout=5)


class _Handler(FileSystemEventHandler):
    def __init__(self, workspace: Workspace, report: Report) -> None:
        self._workspace = workspace
        self._report = report

    def on_any_event(self, event: FileSystemEvent) -> None:
        for path in (event.src_path, event.dest_path):
            if path:
                self._tell(os.fsdecode(path), folder=event.is_directory)

    def _tell(self, abs_path: str, *, folder: bool) -> None:
        try:
            relative = nfc(Path(abs_path).relative_to(self._workspace.root).as_posix())
        except ValueError:
            return
        if relative == ".":
            self._report("", True)
        else:
            tell(self._workspace, self._report, relative, folder=folder)


def tell(workspace: Workspace, report: Report, path: str, *, folder: bool) -> None:
    """Report a change, unless it concerns what is never looked at; a changed ``.gitignore`` concerns its folder."""
    name = path.rpartition("/")[2]
    if name.startswith(TEMPORARY_PREFIX) or workspace.guard.refusal(RelPath(path)) is not None:
        return
    if name == ".gitignore":
        report(path.rpartition("/")[0], True)
    elif not workspace.is_in_excluded_folder(path):
        report(path, folder)
