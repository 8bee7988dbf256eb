"""PollingSource: notices changes by walking the tree again and again."""

import threading
import time
from collections.abc import Callable

from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.workspace.entries import FileState
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.watcher import Report

_INTERVAL_S = 2.0
# A walk that takes long is done more seldom, so that polling never costs more than a small part of the time.
_REST_FACTOR = 20


class PollingSource:
    """Compares the states of all documents with those of the walk before."""

    def __init__(
        self, workspace: Workspace, *, interval_s: float = _INTERVAL_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._workspace = workspace
        self._interval_s = interval_s
        self._clock = clock
        self._known: dict[str, FileState] | None = None
        self._missed = False  # Whether a walk was due and could not be done.
        self._report: Report | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, report: Report, failed: Callable[[str], None]) -> None:
        """Begin to poll. It never fails: a root that cannot be read now may be read later."""
        self._report = report
        # At once, so that nothing is missed that changes after this returns.
        self.poll()
        self._thread = threading.Thread(target=self._run, name="watch-polling", daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether it polls."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End, and wait for the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def poll(self) -> None:
        """Walk once, and report what differs from the walk before; the first walk reports nothing."""
        try:
            scan = self._workspace.scan_documents()
        except KnowledgeBaseError:
            # The root is gone for now. What it held is not known to be gone.
            self._missed = True
            return
        before, now = self._known, scan.documents
        unreadable = tuple(skipped.path for skipped in scan.unreadable)
        if before is not None and unreadable:
            now = now | {path: state for path, state in before.items() if path not in now and _below(path, unreadable)}
        self._known = now
        missed, self._missed = self._missed, False
        if self._report is None:
            return
        if before is None:
            if missed:
                # It was polled before, and what it held then is not known.
                self._report("", True)
            return
        for path in before.keys() | now.keys():
            if before.get(path) != now.get(path):
                self._report(path, False)

    def _run(self) -> None:
        pause = self._interval_s
        while not self._stop.wait(pause):
            began = self._clock()
            self.poll()
            pause = max(self._interval_s, (self._clock() - began) * _REST_FACTOR)


def _below(path: str, folders: tuple[str, ...]) -> bool:
    return any(folder == "" or path.startswith(f"{folder}/") for folder in folders)
