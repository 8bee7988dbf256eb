"""InotifySource: one watch for each folder that is walked, and none for the others.

watchdog's recursive observer would watch ``node_modules`` and ``.git`` too, of which there may be more than the system
has watches to give, and would not tell that it ran out of them.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterable

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.listing import nfc
from local_vector_search_mcp.workspace.watch_native import tell
from local_vector_search_mcp.workspace.watcher import ROOT_GONE, Report, WatchFailed

_MASK = Mask(
    InotifyConstants.IN_MODIFY
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_MOVED_FROM
    | InotifyConstants.IN_MOVED_TO
    | InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_DONT_FOLLOW
    | InotifyConstants.IN_EXCL_UNLINK
)
_LIMITS = {
    errno.ENOSPC: "the limit of inotify watches is reached; raise fs.inotify.max_user_watches",
    errno.EMFILE: "the limit of inotify instances is reached; raise fs.inotify.max_user_instances",
}


class InotifySource:
    """Watches the folders of one workspace. Its callbacks run in watchdog's reading thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._root = os.fsencode(workspace.root)
        self._id = CallbackId(id(self))
        self._reader: InotifyFD | None = None
        self._report: Report | None = None
        self._failed: Callable[[str], None] | None = None
        self._lock = threading.Lock()
        self._folders: dict[WatchDescriptor, str] = {}
        self._watches: dict[str, WatchDescriptor] = {}

    def start(self, report: Report, failed: Callable[[str], None]) -> None:
        """Begin to watch.

        Raises:
            WatchFailed: A limit of the system is reached, or the root cannot be read.
        """
        self._report, self._failed = report, failed
        try:
            self._reader = InotifyFD()
            # The watches first, so that a limit is noticed before anything relies on them.
            self._reader.start()
            self._watch(self._workspace.folders())
        except (OSError, KnowledgeBaseError) as error:
            raise WatchFailed(_reason(error)) from error

    def is_alive(self) -> bool:
        """Whether the reading thread runs."""
        return self._reader is not None and self._reader.is_alive()

    def stop(self) -> None:
        """End, and wait for the thread."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.stop()
            if reader.is_alive():
                reader.join(timeout=5)

    @property
    def watched(self) -> frozenset[str]:
        """The folders that are watched; ``""`` is the root."""
        with self._lock:
            return frozenset(self._watches)

    # -- called by watchdog

    def on_event(self, event: InotifyEvent) -> None:
        """Take in one event of a watched folder."""
        with self._lock:
            folder = self._folders.get(event.wd)
        if folder is None or self._report is None:
            return
        if event.is_delete_self or event.is_move_self:
            if folder == "":
                self._fail(ROOT_GONE)
            return
        try:
            name = nfc(event.name.decode("utf-8"))
        except UnicodeDecodeError:
            # No path can mean it.
            return
        if not name:
            return
        path = f"{folder}/{name}" if folder else name
        is_folder = event.is_directory
        if is_folder and (event.is_moved_from or event.is_delete):
            self._forget(path)
        if is_folder and (event.is_moved_to or event.is_create):
            self._watch_new(path)
        if name == ".gitignore":
            # It may let folders in that were not watched so far.
            self._watch_new(folder)
        tell(self._workspace, self._report, path, folder=is_folder)

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """A watched folder is gone."""
        with self._lock:
            folder = self._folders.pop(wd, None)
            if folder is not None and self._watches.get(folder) == wd:
                del self._watches[folder]

    def on_queue_overflow(self) -> None:
        """Events were lost: folders made meanwhile are watched, and everything is looked at."""
        if self._report is None:
            return
        self._watch_new("")
        self._report("", True)

    # -- watches

    def _watch_new(self, folder: str) -> None:
        try:
            self._watch(self._workspace.folders(folder))
        except (OSError, KnowledgeBaseError) as error:
            self._fail(_reason(error))

    def _watch(self, folders: Iterable[tuple[str, str]]) -> None:
        reader = self._reader
        if reader is None:
            return
        for folder, disk_path in folders:
            with self._lock:
                known = folder in self._watches
            if known:
                continue
            path = self._root + b"/" + os.fsencode(disk_path) if folder else self._root
            try:
                wd = reader.add_callback(path, _MASK, self, self._id)
            except OSError as error:
                if folder and error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    # It went again in this moment.
                    continue
                raise
            with self._lock:
                former = self._folders.get(wd)
                if former is not None and self._watches.get(former) == wd:
                    # The folder was moved: the system gives the watch that it had under its former name.
                    del self._watches[former]
                self._folders[wd] = folder
                self._watches[folder] = wd

    def _forget(self, folder: str) -> None:
        """Take the watches off a folder that was moved or removed; a moved one is watched anew under its new name."""
        prefix = f"{folder}/"
        with self._lock:
            paths = [path for path in self._watches if path == folder or path.startswith(prefix)]
            gone = [self._watches.pop(path) for path in paths]
            for wd in gone:
                self._folders.pop(wd, None)
        if gone and self._reader is not None:
            self._reader.remove_callbacks([(wd, self._id) for wd in gone])

    def _fail(self, reason: str) -> None:
        if self._failed is not None:
            self._failed(reason)


def _reason(error: OSError | KnowledgeBaseError) -> str:
    if isinstance(error, KnowledgeBaseError):
        return error.message
    return _LIMITS.get(error.errno or 0, f"native events cannot be had: {(error.strerror or str(error)).lower()}")
