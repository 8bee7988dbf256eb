"""Book process: has a book set by a child process, answers its questions, and ends it in time."""

import contextlib
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from local_vector_search_mcp.book.frames import BrokenPipe, Frame, FramePipe
from local_vector_search_mcp.book.settings import BookSettings
from local_vector_search_mcp.book.sources import BookSources, ChapterSource, FoundFile, Unavailable
from local_vector_search_mcp.book.worker import EXIT_MEMORY
from local_vector_search_mcp.errors import (
    DependencyMissing,
    InvalidArgument,
    TimedOut,
    TooLarge,
    UnsupportedEncoding,
)

_log = logging.getLogger(__name__)

# Dates inside a PDF and its fonts are taken from this, so that the same book has the same bytes.
_SOURCE_DATE_EPOCH: Final = "946684800"
_PROBE_S: Final = 60.0
_ERRORS: Final = {error.code: error for error in (DependencyMissing, InvalidArgument, TooLarge, UnsupportedEncoding)}


class BookCancelled(Exception):
    """The book was not wanted any more."""


class BookCrashed(RuntimeError):
    """The process ended without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookLimits:
    """How long a book may take to be set, and how much memory."""

    seconds: float = 1800.0
    memory_bytes: int = 4 * 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBook:
    """A finished book."""

    data: bytes
    pages: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookSupport:
    """The libraries that set books on this machine."""

    weasyprint: str
    pango: str


class BookProcess:
    """One run of the child process."""

    def __init__(self, limits: BookLimits) -> None:
        self._limits = limits
        self._child: subprocess.Popen[bytes] | None = None
        self._ending = threading.Lock()
        self._ended_by = ""

    def set_book(
        self,
        settings: BookSettings,
        chapters: Sequence[ChapterSource],
        sources: BookSources,
        on_progress: Callable[[float, str], None],
        *,
        front: ChapterSource | None = None,
    ) -> SetBook:
        """Set a book; blocks until it is done. The arguments are those of ``compose``.

        Raises:
            TimedOut, TooLarge: It took more time or memory than it may.
            BookCancelled: ``cancel`` was called.
            DependencyMissing: Pango is missing.
            UnsupportedEncoding: No chapter is valid UTF-8.
            BookCrashed: The process ended by itself.
        """
        documents = [*chapters, front] if front is not None else list(chapters)
        values = {
            "paths": [document.path for document in documents],
            "has_front": front is not None,
            "page_format": settings.page_format.value,
            "style": settings.style.value,
            "profile": settings.profile.value,
            "toc": settings.toc,
            "cover": settings.cover,
            "number_sections": settings.number_sections,
            "language": settings.language,
        }
        with self._running(self._limits.seconds) as pipe:
            self._send_job(pipe, "book", values, [document.data for document in documents])
            while True:
                frame = self._receive(pipe)
                match frame.kind:
                    case "progress":
                        on_progress(float(frame.values["progress"]), str(frame.values["message"]))
                    case "done":
                        return SetBook(
                            data=frame.parts[0],
                            pages=int(frame.values["pages"]),
                            warnings=tuple(map(str, frame.values["warnings"])),
                        )
                    case _:
                        self._answer(pipe, frame, sources)

    def probe(self) -> BookSupport:
        """What books are set with, found out in a process of its own.

        Raises:
            DependencyMissing: Pango is missing; the message names the package.
            TimedOut, BookCrashed: As ``set_book``.
        """
        with self._running(_PROBE_S) as pipe:
            self._send_job(pipe, "probe", {}, [])
            values = self._receive(pipe).values
            return BookSupport(weasyprint=str(values["weasyprint"]), pango=str(values["pango"]))

    def cancel(self) -> None:
        """End the process, from any thread; ``set_book`` then raises ``BookCancelled``."""
        self._end("cancelled")

    @contextlib.contextmanager
    def _running(self, seconds: float) -> Generator[FramePipe]:
        with tempfile.TemporaryDirectory(prefix="lvs-book-", ignore_cleanup_errors=True) as folder:
            with self._ending:
                if self._ended_by:
                    raise BookCancelled
                child = self._child = _spawn(folder)
            assert child.stdin is not None and child.stdout is not None
            timer = threading.Timer(seconds, self._end, ("timeout",))
            timer.daemon = True
            timer.start()
            try:
                yield FramePipe(child.stdout, child.stdin)
            finally:
                timer.cancel()
                with contextlib.suppress(OSError):
                    child.stdin.close()
                child.kill()
                child.wait()
                child.stdout.close()

    def _end(self, reason: str) -> None:
        with self._ending:
            self._ended_by = self._ended_by or reason
            if self._child is not None:
                self._child.kill()

    def _send_job(self, pipe: FramePipe, kind: str, values: Mapping[str, object], parts: list[bytes]) -> None:
        try:
            pipe.send(kind, {**values, "max_memory_bytes": self._limits.memory_bytes}, parts)
        except BrokenPipe:
            raise self._why_it_ended() from None

    def _receive(self, pipe: FramePipe) -> Frame:
        try:
            frame = pipe.receive()
        except BrokenPipe:
            raise self._why_it_ended() from None
        if frame.kind == "failed":
            error = _ERRORS.get(str(frame.values["code"]), InvalidArgument)
            raise error(str(frame.values["message"]))
        if frame.kind == "crashed":
            raise BookCrashed(f"setting the book failed: {frame.values['where']}")
        return frame

    def _answer(self, pipe: FramePipe, frame: Frame, sources: BookSources) -> None:
        target, from_path = str(frame.values["target"]), str(frame.values["from"])
        try:
            if frame.kind == "resolve":
                pipe.send("path", {"path": sources.resolve(target, from_path, wiki=bool(frame.values["wiki"]))})
                return
            if frame.kind == "note":
                found = sources.note(target, from_path)
            elif frame.kind == "image":
                found = sources.image(target, from_path, wiki=bool(frame.values["wiki"]))
            else:
                raise BookCrashed(f"the process asked for {frame.kind!r}")
            if isinstance(found, Unavailable):
                pipe.send("unavailable", {"reason": found.reason})
            else:
                assert isinstance(found, FoundFile)
                pipe.send("file", {"path": found.path}, [found.data])
        except BrokenPipe:
            raise self._why_it_ended() from None

    def _why_it_ended(self) -> Exception:
        child = self._child
        assert child is not None
        try:
            status = child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            status = child.wait()
        if self._ended_by == "cancelled":
            return BookCancelled()
        if self._ended_by == "timeout":
            return TimedOut(
                f"The book was not done within {self._limits.seconds:g} s; make it of fewer documents at a time."
            )
        # Killed by the system, or ended by a library that could not get memory.
        if status == EXIT_MEMORY or status in (-9, -6, -5):
            return TooLarge(
                f"The book took more than {self._limits.memory_bytes // 1024**2} MiB of memory; "
                "make it of fewer documents at a time, or with the profile screen."
            )
        return BookCrashed(f"the process that sets the book ended with status {status}")


def _spawn(folder: str) -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": _SOURCE_DATE_EPOCH,
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
    }
    # -P and a folder of our own: nothing that lies in the working directory can pose as a module.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "local_vector_search_mcp.book.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
        start_new_session=os.name == "posix",
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
