"""The process that sets books: composes and prints one book, watches its own memory, and ends with its parent.

Started by ``process.py`` as ``python -m local_vector_search_mcp.book.worker``. It reads its job and answers to its
questions from standard input, and writes frames to what was standard output; native libraries that print go to
standard error instead. It never opens a file of the workspace.
"""

import contextlib
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from local_vector_search_mcp.book.frames import BrokenPipe, Frame, FramePipe
from local_vector_search_mcp.book.profiles import ImageProfile
from local_vector_search_mcp.book.settings import BookSettings, BookStyle, PageFormat
from local_vector_search_mcp.book.sources import ChapterSource, FoundFile, Unavailable
from local_vector_search_mcp.errors import KnowledgeBaseError

EXIT_MEMORY: Final = 86
"""The exit status of a process that took more memory than it may."""
_EXIT_ORPHAN: Final = 87
_CHECK_S: Final = 0.25
_STACK_BYTES: Final = 256 * 1024 * 1024
# Deep nesting of quotes and lists is recursion in the layout.
_RECURSION: Final = 60_000
_COMPOSED: Final = 0.2
_LAID_OUT: Final = 0.9
# Letters on a page of A5 in the compact style: for an honest guess at the number of pages.
_LETTERS_PER_MM2: Final = 0.11
_PAGES_PER_PICTURE: Final = 0.4


def main() -> None:
    """Set one book for the parent process."""
    pipe = FramePipe(sys.stdin.buffer, _private_stdout())
    threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(_RECURSION)
    desk = _Desk(pipe)
    worker = threading.Thread(target=desk.work, name="book")
    worker.start()
    desk.read_replies()


class _Desk:
    """The child's end of the pipe: takes the job, asks for files, reports."""

    def __init__(self, pipe: FramePipe) -> None:
        self._pipe = pipe
        self._replies: queue.Queue[Frame] = queue.Queue()
        self._progress = 0.0

    def read_replies(self) -> None:
        """Pass on what the parent sends until it is gone; then so are we, whatever is still at work."""
        try:
            while True:
                self._replies.put(self._pipe.receive())
        except BrokenPipe:
            os._exit(_EXIT_ORPHAN)

    def work(self) -> None:
        """Do the job and end the process."""
        status = 0
        try:
            self._do(self._replies.get())
        except BrokenPipe:
            status = _EXIT_ORPHAN
        except KnowledgeBaseError as error:
            self._say("failed", {"code": error.code, "message": error.message})
        except MemoryError:
            status = EXIT_MEMORY
        except Exception as error:  # noqa: BLE001 (the door of this process: the parent reports an incident)
            self._say("crashed", {"where": _without_values(error)})
        # Threads that wait for the parent are not waited for.
        os._exit(status)

    def _do(self, job: Frame) -> None:
        _watch_memory(int(job.values["max_memory_bytes"]))
        if job.kind == "probe":
            from local_vector_search_mcp.book.pdf import pdf_support

            support = pdf_support()
            self._say("support", {"weasyprint": support.weasyprint, "pango": support.pango})
            return
        self._set_book(job)

    def _set_book(self, job: Frame) -> None:
        from local_vector_search_mcp.book.compose import compose
        from local_vector_search_mcp.book.fonts import font_warnings
        from local_vector_search_mcp.book.pdf import print_book

        settings = _settings(job)
        documents = [
            ChapterSource(path=path, data=data) for path, data in zip(job.values["paths"], job.parts, strict=True)
        ]
        front = documents.pop() if job.values["has_front"] else None
        self._report(0.01, "composing")
        composed = compose(
            settings,
            documents,
            _AskedSources(self._ask),
            lambda done: self._report(_COMPOSED * done / len(documents), "composing"),
            front=front,
        )
        pages = _expected_pages(composed.job.html, settings)

        def on_page(number: int) -> None:
            share = min(1.0, number / pages)
            self._report(_COMPOSED + (_LAID_OUT - _COMPOSED) * share * 0.97, f"page {number}")

        printed = print_book(composed.job, on_page)
        warnings = (*composed.warnings, *font_warnings(printed.messages))
        self._say("done", {"pages": printed.pages, "warnings": warnings, "language": composed.language}, [printed.data])

    def _report(self, progress: float, message: str) -> None:
        self._progress = max(self._progress, progress)
        self._say("progress", {"progress": round(self._progress, 4), "message": message})

    def _say(self, kind: str, values: dict[str, object], parts: list[bytes] | None = None) -> None:
        self._pipe.send(kind, values, parts or [])

    def _ask(self, kind: str, values: dict[str, object]) -> Frame:
        self._say(kind, values)
        return self._replies.get()


class _AskedSources:
    """The files of the workspace, each asked of the parent."""

    def __init__(self, ask: Callable[[str, dict[str, object]], Frame]) -> None:
        self._ask = ask

    def resolve(self, target: str, from_path: str, *, wiki: bool) -> str | None:
        """The root-relative path that a link leads to, or ``None``."""
        path = self._ask("resolve", {"target": target, "from": from_path, "wiki": wiki}).values["path"]
        return None if path is None else str(path)

    def note(self, target: str, from_path: str) -> FoundFile | Unavailable:
        """The document that an embed names."""
        return _found(self._ask("note", {"target": target, "from": from_path}))

    def image(self, target: str, from_path: str, *, wiki: bool) -> FoundFile | Unavailable:
        """The bytes of a local image."""
        return _found(self._ask("image", {"target": target, "from": from_path, "wiki": wiki}))


def _found(reply: Frame) -> FoundFile | Unavailable:
    if reply.kind == "unavailable":
        return Unavailable(reason=str(reply.values["reason"]))
    return FoundFile(path=str(reply.values["path"]), data=reply.parts[0])


def _settings(job: Frame) -> BookSettings:
    values = job.values
    return BookSettings(
        page_format=PageFormat(values["page_format"]),
        style=BookStyle(values["style"]),
        profile=ImageProfile(values["profile"]),
        toc=values["toc"],
        cover=values["cover"],
        number_sections=values["number_sections"],
        language=values["language"],
    )


def _expected_pages(html: str, settings: BookSettings) -> int:
    from local_vector_search_mcp.book.compose import visible_text
    from local_vector_search_mcp.book.settings import geometry

    page = geometry(settings)
    letters = page.column_mm * page.column_height_mm * _LETTERS_PER_MM2 * (9.0 / page.body_pt) ** 2
    return max(1, round(len(visible_text(html)) / letters + html.count("<img") * _PAGES_PER_PICTURE))


def _private_stdout() -> IO[bytes]:
    """The pipe to the parent under a descriptor of its own; standard output becomes standard error."""
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "wb")


def _watch_memory(limit: int) -> None:
    """End the process when it takes more than ``limit`` bytes of memory."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        # A second line of defence for what allocates faster than the watch looks; address space is not memory.
        resource.setrlimit(resource.RLIMIT_AS, (limit * 2 + 4 * _STACK_BYTES, resource.RLIM_INFINITY))

    def watch() -> None:
        pause = threading.Event()
        while not pause.wait(_CHECK_S):
            if _peak_memory() > limit:
                os._exit(EXIT_MEMORY)

    threading.Thread(target=watch, name="memory-watch", daemon=True).start()


def _peak_memory() -> int:
    if sys.platform == "win32":
        return _windows_peak_memory()
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _windows_peak_memory() -> int:
    import ctypes
    from ctypes import wintypes

    class Counters(ctypes.Structure):
        _fields_ = [
            ("cb", wintypes.DWORD),
            ("PageFaultCount", wintypes.DWORD),
            *((name, ctypes.c_size_t) for name in ("PeakWorkingSetSize", "WorkingSetSize")),
            *((f"Pool{number}", ctypes.c_size_t) for number in range(4)),
            *((name, ctypes.c_size_t) for name in ("PagefileUsage", "PeakPagefileUsage")),
        ]

    counters = Counters()
    counters.cb = ctypes.sizeof(counters)
    windows: Any = getattr(ctypes, "WinDLL")("kernel32")  # noqa: B009 (known on Windows only)
    windows.GetCurrentProcess.restype = wintypes.HANDLE
    read = windows.K32GetProcessMemoryInfo
    read.argtypes = [wintypes.HANDLE, ctypes.c_void_p, wintypes.DWORD]
    read(windows.GetCurrentProcess(), ctypes.byref(counters), counters.cb)
    return int(counters.PeakPagefileUsage)


def _without_values(error: BaseException) -> str:
    """Where an error happened, without its message: that may hold text of a document."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    places = " > ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    return f"{type(error).__name__} at {places}"


if __name__ == "__main__":
    main()
