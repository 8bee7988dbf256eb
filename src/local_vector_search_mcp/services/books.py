"""BookService: documents as a PDF book under the root (``kb_create_pdf_book``)."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final, TypeVar

from local_vector_search_mcp.book.language import language_tag
from local_vector_search_mcp.book.process import BookCancelled, BookLimits, BookProcess, BookSupport
from local_vector_search_mcp.book.profiles import ImageProfile
from local_vector_search_mcp.book.settings import BookSettings, BookStyle, PageFormat
from local_vector_search_mcp.errors import InvalidArgument, TimedOut
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.book_chapters import BookRequest, Chapters, gather_chapters
from local_vector_search_mcp.services.book_jobs import Job, JobBoard, Report
from local_vector_search_mcp.services.book_sources import WorkspaceSources
from local_vector_search_mcp.services.mutations import FileStep, Mutations, Proposal

E = TypeVar("E", bound=StrEnum)

_TOOL: Final = "kb_create_pdf_book"
_WAIT_S: Final = 45.0
_WRITING: Final = 0.98


def _tell_nobody(progress: float, message: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookResult:
    """A book that was written, or one that is still being set (``state`` and ``progress`` alone)."""

    path: RelPath | None = None
    bytes: int | None = None
    pages: int | None = None
    warnings: tuple[str, ...] = ()
    change_id: str | None = None
    state: str | None = None
    progress: float | None = None


class BookService:
    """Sets books in a process of their own; the output is the only file that is ever written."""

    def __init__(self, mutations: Mutations, limits: BookLimits | None = None) -> None:
        self._mutations = mutations
        self._limits = limits or BookLimits()
        self._board: JobBoard[BookResult] = JobBoard("book")

    def create(
        self,
        *,
        path: str | None = None,
        paths: Sequence[str] | None = None,
        include_glob: str | Sequence[str] | None = None,
        chapters_from_links: bool = False,
        output_path: str | None = None,
        page_format: str = PageFormat.A5.value,
        style: str = BookStyle.COMPACT.value,
        profile: str = ImageProfile.STANDARD.value,
        toc: bool | None = None,
        cover: bool | None = None,
        number_sections: bool = False,
        language: str | None = None,
        wait_s: float = _WAIT_S,
        report_progress: Report = _tell_nobody,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> BookResult:
        """Make a book, or join the same call that is still at work.

        Args:
            path: One document; with ``chapters_from_links`` the one whose links are the chapters.
            paths: Several documents as chapters, in order.
            include_glob: All documents that one of these globs fits, by path.
            chapters_from_links: Whether the links of ``path`` are the chapters.
            output_path: Where the PDF goes; by default beside the first document, under its name.
            page_format, style, profile: See ``book.settings`` and ``book.profiles``.
            toc, cover: Whether there are contents and a cover; None decides by the content.
            number_sections: Whether headings are numbered.
            language: A language tag; None decides by front matter and text.
            wait_s: How long to wait before answering that it is still running.
            report_progress: Called with a share from 0 to 1 and a few words.
            cancelled: Asked while waiting; the last caller to cancel ends the work.

        Raises:
            InvalidArgument, InvalidPath, NotFound, UnsupportedFormat, UnsupportedEncoding, TooLarge: Wrong arguments
                or documents.
            DependencyMissing: Pango is missing.
            TimedOut: It takes longer than a book may, or it was cancelled.
            IoFailure, Busy, Conflict: The PDF could not be written; an older one is as it was.
        """
        settings = BookSettings(
            page_format=_choice(PageFormat, page_format, "pageFormat"),
            style=_choice(BookStyle, style, "style"),
            profile=_choice(ImageProfile, profile, "profile"),
            toc=toc,
            cover=cover,
            number_sections=number_sections,
            language=_language(language),
        )
        request = BookRequest(
            path=path,
            paths=None if paths is None else tuple(paths),
            include_glob=(include_glob,) if isinstance(include_glob, str) else tuple(include_glob or ()),
            chapters_from_links=chapters_from_links,
            output_path=output_path,
        )
        request.check()
        key = json.dumps([asdict(settings), asdict(request)], sort_keys=True)
        job = self._board.join(key, lambda job: self._make(job, settings, request))
        if not self._board.wait(job, seconds=wait_s, report=report_progress, cancelled=cancelled):
            return BookResult(state="running", progress=round(job.progress, 3))
        if job.error is not None:
            raise job.error
        assert job.result is not None
        return job.result

    def support(self) -> BookSupport:
        """What books are set with on this machine.

        Raises:
            DependencyMissing: Pango is missing; the message names the package.
        """
        return BookProcess(self._limits).probe()

    def close(self) -> None:
        """End every book that is being set."""
        self._board.close()

    def _make(self, job: Job[BookResult], settings: BookSettings, request: BookRequest) -> BookResult:
        chapters = gather_chapters(self._mutations.corpus, request)
        sources = WorkspaceSources(self._mutations.workspace, chapters.names)
        process = BookProcess(self._limits)

        def report(progress: float, message: str) -> None:
            job.report(min(progress, _WRITING), message)
            if job.cancel.is_set():
                process.cancel()

        watch = _CancelWatch(job, process)
        try:
            book = process.set_book(settings, chapters.documents, sources, report, front=chapters.front)
        except BookCancelled as error:
            raise TimedOut("The book was cancelled; nothing was written.") from error
        finally:
            watch.stop()
        job.report(_WRITING, "writing")
        change_id, warnings = self._write(chapters, book.data)
        return BookResult(
            path=chapters.output,
            bytes=len(book.data),
            pages=book.pages,
            warnings=(*chapters.warnings, *book.warnings, *warnings),
            change_id=change_id,
        )

    def _write(self, chapters: Chapters, data: bytes) -> tuple[str | None, tuple[str, ...]]:
        """Put the PDF in its place in one step; what was there is in the history."""
        workspace = self._mutations.workspace
        output = chapters.output

        def plan() -> Proposal[None]:
            before = None
            if workspace.identity(output) is None:
                workspace.check_new(output)
            else:
                before = workspace.read(output)
            count = len(chapters.documents)
            summary = f"Book {output} of {chapters.documents[0].path}" + (f" and {count - 1} more" if count > 1 else "")
            return Proposal(summary=summary, steps=(FileStep(path=output, before=before, after=data),), value=None)

        committed = self._mutations.run(_TOOL, plan)
        return committed.change_id, committed.warnings


class _CancelWatch:
    """Ends the process of a job as soon as the job is cancelled."""

    def __init__(self, job: Job[BookResult], process: BookProcess) -> None:
        self._stopped = threading.Event()
        self._job = job
        self._process = process
        threading.Thread(target=self._watch, name="book-cancel", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(0.1):
            if self._job.cancel.is_set():
                self._process.cancel()
                return


def _choice(kind: type[E], text: str, name: str) -> E:
    try:
        return kind(text)
    except ValueError as error:
        known = ", ".join(member.value for member in kind)
        raise InvalidArgument(f"{name} is {text!r}; it has to be one of {known}.") from error


def _language(text: str | None) -> str:
    if text is None or not text.strip():
        return ""
    tag = language_tag(text)
    if tag is None:
        raise InvalidArgument(f"language is {text[:40]!r}; give a tag such as en or de-CH.")
    return tag
