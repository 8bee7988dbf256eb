"""Replaced files, kept open for a few seconds: an editor that was saving in place meets a file that is no longer there.

Its bytes would be lost without a word. So whoever replaces a file hands the old one over, still open, and what is
written to it within the time is reported.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.atomic_write import read_fully
from local_vector_search_mcp.workspace.entries import FileIdentity

_WATCH_S = 5.0
_LOOK_EVERY_S = 0.25
# A writer that has been silent for so long is taken to be done.
_SETTLED_S = 1.0
# Many replaced files at once (a folder that is moved) would use up the descriptors; the oldest are let go early.
_MOST_OPEN = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class LateWrite:
    """What another program wrote to a file after it had been replaced or deleted."""

    path: RelPath
    data: bytes


@dataclass(slots=True, kw_only=True, eq=False)
class _Kept:
    path: RelPath
    fd: int
    seen: FileIdentity  # As last known and reported.
    content_hash: str  # Of the bytes then: a program that only sets the times has written nothing.
    until: float
    moved: FileIdentity | None = None  # Another state, seen and not yet reported.
    moved_at: float = 0.0
    closed: bool = False
    # Held while the file is looked at, never while somebody is told.
    lock: threading.Lock = field(default_factory=threading.Lock)


class LateWrites:
    """Watches replaced files of one workspace; one thread runs while there are any."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, watch_s: float = _WATCH_S) -> None:
        # Called from the watching thread, once for each late write. Without one, what is found waits in ``take``.
        self.on_late_write: Callable[[LateWrite], None] | None = None
        self._clock = clock
        self._watch_s = watch_s
        self._kept: deque[_Kept] = deque()
        self._found: list[LateWrite] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._closing = False

    def keep(self, path: RelPath, fd: int, identity: FileIdentity, content_hash: str) -> None:
        """Take over the open descriptor of a file that has just been replaced.

        Args:
            path: Where it stood.
            fd: Open for reading; closed here in the end.
            identity: As it was when it was read.
            content_hash: XXH64 of its bytes before it was replaced.
        """
        until = self._clock() + self._watch_s
        kept = _Kept(path=path, fd=fd, seen=identity, content_hash=content_hash, until=until)
        early: list[_Kept] = []
        with self._lock:
            if self._closing:
                early.append(kept)
            else:
                self._kept.append(kept)
            while len(self._kept) > _MOST_OPEN:
                early.append(self._kept.popleft())
            if self._thread is None and self._kept:
                self._thread = threading.Thread(target=self._run, name="late-writes", daemon=True)
                self._thread.start()
        for each in early:
            self._settle(each)

    def look(self) -> None:
        """Look at all kept files now; those whose time is over are let go."""
        now = self._clock()
        with self._lock:
            kept = list(self._kept)
        for each in kept:
            if now >= each.until:
                with self._lock:
                    if each not in self._kept:
                        continue
                    self._kept.remove(each)
                self._settle(each)
            else:
                self._look_at(each, now)

    def take(self) -> tuple[LateWrite, ...]:
        """What was found while nobody was to be told; given once."""
        with self._lock:
            found, self._found = tuple(self._found), []
        return found

    @property
    def watching(self) -> int:
        """How many files are kept open."""
        with self._lock:
            return len(self._kept)

    def close(self) -> None:
        """Look once more at every kept file, and let go of all."""
        with self._lock:
            self._closing = True
            kept, self._kept = list(self._kept), deque()
            self._changed.notify_all()
            thread = self._thread
        for each in kept:
            self._settle(each)
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=2)

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._closing or not self._kept:
                    self._thread = None
                    return
                self._changed.wait(timeout=_LOOK_EVERY_S)
            self.look()

    def _look_at(self, kept: _Kept, now: float) -> None:
        with kept.lock:
            late = None if kept.closed else _settled_write(kept, now)
        self._tell(late)

    def _settle(self, kept: _Kept) -> None:
        with kept.lock:
            try:
                late = _write_since(kept)
            finally:
                kept.closed = True
                os.close(kept.fd)
        self._tell(late)

    def _tell(self, late: LateWrite | None) -> None:
        if late is None:
            return
        told = self.on_late_write
        if told is None:
            with self._lock:
                self._found.append(late)
        else:
            told(late)


def _settled_write(kept: _Kept, now: float) -> LateWrite | None:
    """What was written, once it has been quiet for a while."""
    state = FileIdentity.of(os.fstat(kept.fd))
    if state.same_content_as(kept.seen):
        kept.moved = None
    elif kept.moved is None or not state.same_content_as(kept.moved):
        kept.moved, kept.moved_at = state, now
    elif now - kept.moved_at >= _SETTLED_S:
        return _write_since(kept)
    return None


def _write_since(kept: _Kept) -> LateWrite | None:
    """What was written since the last report; None where the bytes are the same."""
    state = FileIdentity.of(os.fstat(kept.fd))
    if state.same_content_as(kept.seen):
        return None
    kept.seen, kept.moved = state, None
    data = read_fully(kept.fd)
    content_hash = xxh64_hex(data)
    if content_hash == kept.content_hash:
        return None
    kept.content_hash = content_hash
    return LateWrite(path=kept.path, data=data)
