"""Mutations: the one write path. Lock → read again → plan → check → record → swap → announce → answer.

Whoever changes files says what is to become of them (``FileStep``); everything that makes a change safe is
done here once, for every tool alike.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.editing.diff import PlannedFile, plan_hash, unified_diff
from local_vector_search_mcp.errors import Conflict, ConflictReason, KnowledgeBaseError, TimedOut, TooLarge
from local_vector_search_mcp.history.changes import FileChange
from local_vector_search_mcp.history.journal import Journal
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileKind, FileSnapshot
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.late_writes import LateWrite
from local_vector_search_mcp.workspace.locks import WorkspaceLock
from local_vector_search_mcp.workspace.restoring import RestoringFiles

if TYPE_CHECKING:
    from local_vector_search_mcp.history.store import HistoryStore
    from local_vector_search_mcp.services.corpus import Corpus

_log = logging.getLogger(__name__)

_MAX_WARNINGS_KEPT = 20
_NOTHING_TO_DO = "Everything reads so already; nothing was written."

Planned = TypeVar("Planned")


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationSettings:
    """How mutations behave.

    Attributes:
        write_wait_ms: How long an answer waits for the index to hold what was written.
    """

    write_wait_ms: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStep:
    """What is to become of one file.

    Attributes:
        path: Where it stands afterwards; of a deletion, where it stood.
        before: As it was read under the lock; None for a new file.
        after: Its bytes afterwards; None for a deletion.
        previous_path: Where it stood, if it moves.
        create_directories: Whether missing folders are made.
    """

    path: RelPath
    before: FileSnapshot | None
    after: bytes | None
    previous_path: RelPath | None = None
    create_directories: bool = True

    @property
    def changes(self) -> bool:
        """Whether the file is different afterwards."""
        if self.previous_path is not None:
            return True
        return (None if self.before is None else self.before.data) != self.after

    @property
    def previous_hash(self) -> str | None:
        """The hash of its bytes before; None for a new file."""
        return None if self.before is None else xxh64_hex(self.before.data)

    @property
    def new_hash(self) -> str | None:
        """The hash of its bytes afterwards; None for a deletion."""
        return None if self.after is None else xxh64_hex(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Generic[Planned]):
    """What a tool wants to do, checked and complete.

    Attributes:
        summary: One line for the history.
        steps: In the order in which they are carried out.
        value: What the tool's answer is made from.
        warnings: For the answer.
        undoes: The change that this one takes back.
        emptied: Folders that are removed afterwards, as far as nothing is left in them or in their folders.
        left: Folders that are removed afterwards where they hold nothing at all, the deepest first.
    """

    summary: str
    steps: tuple[FileStep, ...]
    value: Planned
    warnings: tuple[str, ...] = ()
    undoes: str | None = None
    emptied: tuple[RelPath, ...] = ()
    left: tuple[RelPath, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """The change of one file as a unified diff."""

    path: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Generic[Planned]):
    """A proposal that was carried out, or with ``dry_run`` would have been."""

    proposal: Proposal[Planned]
    applied: bool
    change_id: str | None
    index_synchronized: bool | None
    warnings: tuple[str, ...]
    diffs: tuple[FileDiff, ...]
    plan_hash: str | None

    @property
    def value(self) -> Planned:
        """What the plan came to."""
        return self.proposal.value


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationResult:
    """What every Markdown mutation answers.

    Attributes:
        applied: False for a dry run.
        change_id: Of the history; None for a dry run, where nothing changed, and without history.
        index_synchronized: Whether the index is known to hold the new state.
        diffs, plan_hash: Of a dry run.
    """

    applied: bool
    change_id: str | None = None
    path: str | None = None
    source_hash: str | None = None
    previous_source_hash: str | None = None
    index_synchronized: bool | None = None
    warnings: tuple[str, ...] = ()
    diffs: tuple[FileDiff, ...] = ()
    plan_hash: str | None = None


class Mutations:
    """Carries out changes of the project's files, one at a time over all processes."""

    def __init__(
        self,
        corpus: "Corpus",
        history: "HistoryStore",
        settings: MutationSettings | None = None,
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.corpus = corpus
        self.history = history
        self.settings = settings or MutationSettings()
        self._journal = Journal(history, RestoringFiles(corpus.workspace))
        self._lock = WorkspaceLock(corpus.workspace.root)
        self._holding = threading.local()
        self._wall_clock = wall_clock
        self._notices: list[str] = []
        self._untold: list[str] = []
        self._notices_lock = threading.Lock()
        corpus.workspace.late_writes.on_late_write = self._keep_late_write

    @property
    def workspace(self) -> Workspace:
        """The project's files."""
        return self.corpus.workspace

    def now_ns(self) -> int:
        """The wall clock, in nanoseconds since 1970."""
        return int(self._wall_clock() * 1_000_000_000)

    @property
    def notices(self) -> tuple[str, ...]:
        """What happened beside the calls and belongs into the status: late writes, changes put back after a crash."""
        with self._notices_lock:
            return tuple(self._notices)

    def load(self, path: RelPath) -> tuple[FileSnapshot, MarkdownDocument]:
        """A document as it is on disk now, read and parsed.

        Raises:
            NotFound, UnsupportedFormat, InvalidPath, TooLarge, IoFailure: As ``Workspace.read_document``.
            UnsupportedEncoding: It is not UTF-8.
        """
        return self.corpus.documents.load(path)

    def remember(self, document: MarkdownDocument) -> None:
        """Keep the parsed result of a mutation, so that the next call need not parse it again."""
        self.corpus.documents.keep(document)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the workspace lock, with every change that a crash cut off finished or put back.

        Raises:
            Busy: Another process holds the lock for too long.
        """
        with self._lock.hold():
            self._holding.now = True
            try:
                self._recover()
                yield
            finally:
                self._holding.now = False

    def recover(self) -> None:
        """Finish or put back what a process that died left behind; for the start of a process that may write."""
        if self.history.has_pending():
            with self.locked():
                pass

    def run(
        self,
        tool: str,
        plan: Callable[[], Proposal[Planned]],
        *,
        dry_run: bool = False,
        plan_hash: str | None = None,
        looks_ahead: bool = False,
    ) -> Committed[Planned]:
        """Plan under the lock and carry the plan out, all or nothing.

        Args:
            tool: The tool's name, for the history.
            plan: Reads what is on disk now, checks everything and says what is to be done.
            dry_run: Whether only to say it.
            plan_hash: Of a dry run; another plan is refused.
            looks_ahead: Whether to plan before the lock is taken, too: for a ``plan`` that takes long and is short
                when it is called again, as it remembers what it has read. What it says then counts for nothing.

        Raises:
            Conflict: The plan is another one (``plan_changed``), or a file changed in the last moment.
            TooLarge: A document would be larger than documents may be.
            KnowledgeBaseError: Whatever ``plan`` refuses; nothing was changed.
        """
        if looks_ahead:
            try:
                plan()
            except TimedOut:
                # It would take as long under the lock, for nothing.
                raise
            except KnowledgeBaseError:
                # Half of somebody else's change may be seen here, so that a refusal counts for nothing either.
                pass
        with self.locked():
            proposal = plan()
            planned = _plan_hash(proposal.steps)
            if plan_hash is not None and plan_hash != planned:
                raise Conflict(
                    "The plan is no longer the one of that dry run, because a file it touches has changed or the "
                    "arguments are others; make a new dry run and look at it.",
                    reason=ConflictReason.PLAN_CHANGED,
                )
            self._check_sizes(proposal.steps)
            steps = tuple(step for step in proposal.steps if step.changes)
            if dry_run:
                return Committed(
                    proposal=proposal,
                    applied=False,
                    change_id=None,
                    index_synchronized=False,
                    warnings=(*proposal.warnings, *self._take_untold()),
                    diffs=self._diffs(steps),
                    plan_hash=planned,
                )
            change_id = self._carry_out(tool, proposal, steps) if steps else None
        warnings = (*proposal.warnings, *self._take_untold(), *(() if steps else (_NOTHING_TO_DO,)))
        return Committed(
            proposal=proposal,
            applied=True,
            change_id=change_id,
            index_synchronized=self._announce(proposal.steps),
            warnings=warnings,
            diffs=(),
            plan_hash=None,
        )

    def _carry_out(self, tool: str, proposal: Proposal[Planned], steps: Sequence[FileStep]) -> str | None:
        files = [
            FileChange(
                path=step.path,
                before=None if step.before is None else step.before.data,
                after=step.after,
                previous_path=step.previous_path,
            )
            for step in steps
        ]
        summary = proposal.summary
        with self._journal.step(tool=tool, summary=summary, files=files, undoes=proposal.undoes) as journalled:
            for step in steps:
                self._write(step)
                journalled.wrote(step.path)
        self._remove_folders(proposal.emptied, self.workspace.remove_empty_folders)
        self._remove_folders(proposal.left, self.workspace.remove_folder_if_empty)
        return journalled.change_id

    @staticmethod
    def _remove_folders(folders: Sequence[RelPath], remove: Callable[[RelPath], None]) -> None:
        for folder in folders:
            try:
                remove(folder)
            except KnowledgeBaseError as error:
                # The change is made; a folder that stays is no harm.
                _log.warning("%s could not be removed: %s", folder, error.code)

    def _write(self, step: FileStep) -> None:
        workspace = self.workspace
        if step.before is None:
            assert step.after is not None
            workspace.create(step.path, step.after, create_directories=step.create_directories)
        elif step.after is None:
            workspace.delete(step.path, step.before.identity)
        elif step.previous_path is None:
            workspace.swap(step.path, step.after, step.before.identity)
        else:
            identity = workspace.move(
                step.previous_path,
                step.path,
                expected=step.before.identity,
                create_directories=step.create_directories,
            )
            if step.after != step.before.data:
                workspace.swap(step.path, step.after, identity)

    def _check_sizes(self, steps: Sequence[FileStep]) -> None:
        limit = self.workspace.rules.max_file_bytes
        for step in steps:
            size = len(step.after or b"")
            if size > limit and self.workspace.kind_of(step.path) is FileKind.MARKDOWN and step.changes:
                raise TooLarge(
                    f"{step.path} would have {size} bytes, more than the {limit} that a document may have; split it.",
                    details={"bytes": size, "maxBytes": limit},
                )

    def _diffs(self, steps: Sequence[FileStep]) -> tuple[FileDiff, ...]:
        return tuple(
            FileDiff(path=step.path.value, diff=_diff(step, self.workspace.kind_of(step.path))) for step in steps
        )

    def _announce(self, steps: Sequence[FileStep]) -> bool | None:
        """Tell the indexer what was written and wait for it a little; None where no document was touched."""
        states: dict[RelPath, str | None] = {}
        for step in steps:
            if step.previous_path is not None and self.workspace.is_document(step.previous_path):
                states[step.previous_path] = None
            if self.workspace.is_document(step.path):
                states[step.path] = step.new_hash
        if not states:
            return None
        indexer = self.corpus.indexer
        indexer.notify_paths(states)
        deadline = time.monotonic() + self.settings.write_wait_ms / 1000
        return all(
            indexer.wait_indexed(path, state, timeout_ms=max(0, int((deadline - time.monotonic()) * 1000)))
            for path, state in states.items()
        )

    def _recover(self) -> None:
        recoveries = self._journal.recover()
        if not recoveries:
            return
        paths = {file.path for recovery in recoveries for file in recovery.change.files}
        paths |= {
            file.previous_path
            for recovery in recoveries
            for file in recovery.change.files
            if file.previous_path is not None
        }
        self.corpus.indexer.notify_paths(path for path in paths if self.workspace.is_document(path))
        for recovery in recoveries:
            self._note(recovery.message)

    # -- late writes

    def _keep_late_write(self, late: LateWrite) -> None:
        """Keep what an editor wrote into a file that had just been replaced, as a file of its own."""
        try:
            if getattr(self._holding, "now", False):
                self._write_conflict(late)
            else:
                with self.locked():
                    self._write_conflict(late)
        except KnowledgeBaseError as error:
            _log.warning("what an editor saved to %s late could not be kept: %s", late.path, error.code)
            self._note(
                f"An editor saved {late.path} while it was being replaced, and its text could not be kept: "
                f"{error.message}"
            )

    def _write_conflict(self, late: LateWrite) -> None:
        if self._present_bytes(late.path) == late.data:
            return
        path = self._conflict_path(late.path)
        change = FileChange(path=path, before=None, after=late.data)
        summary = f"An editor saved {late.path} while it was being replaced; its text is in {path}."
        with self._journal.step(tool="late_write", summary=summary, files=[change]):
            self.workspace.create(path, late.data)
        _log.warning("%s", summary)
        self._note(summary + " Compare the two and merge what is wanted.")
        if self.workspace.is_document(path):
            self.corpus.indexer.notify_paths([path])

    def _present_bytes(self, path: RelPath) -> bytes | None:
        return self.workspace.read(path).data if self.workspace.identity(path) is not None else None

    def _conflict_path(self, path: RelPath) -> RelPath:
        time_text = datetime.fromtimestamp(self._wall_clock(), tz=UTC).strftime("%Y%m%dT%H%M%SZ")
        suffix = path.name[len(path.stem) :] or ".md"
        folder = f"{path.parent}/" if path.parent else ""
        number = 1
        while True:
            more = "" if number == 1 else f"-{number}"
            candidate = RelPath(f"{folder}{path.stem}.conflict-{time_text}{more}{suffix}")
            if not self.workspace.exists(candidate):
                return candidate
            number += 1

    def _note(self, message: str) -> None:
        with self._notices_lock:
            for kept in (self._notices, self._untold):
                kept.append(message)
                del kept[:-_MAX_WARNINGS_KEPT]

    def _take_untold(self) -> tuple[str, ...]:
        with self._notices_lock:
            untold = tuple(self._untold)
            self._untold.clear()
        return untold


def check_source_hash(snapshot: FileSnapshot, expected: str | None) -> None:
    """Refuse when a file is not the one that the caller has seen.

    Raises:
        Conflict: Its hash is another (``source_changed``).
    """
    if expected is None:
        return
    now = xxh64_hex(snapshot.data)
    if now != expected.lower():
        raise Conflict(
            f"{snapshot.path} has changed since it was read: its source hash is {now} now. Read it again.",
            reason=ConflictReason.SOURCE_CHANGED,
            details={"sourceHash": now, "candidates": []},
        )


def result_fields(committed: Committed[Planned], step: FileStep | None = None) -> dict[str, Any]:
    """The fields of ``MutationResult`` for an answer about one file, or about none in particular."""
    fields: dict[str, Any] = {
        "applied": committed.applied,
        "change_id": committed.change_id,
        "index_synchronized": committed.index_synchronized,
        "warnings": committed.warnings,
        "diffs": committed.diffs,
        "plan_hash": committed.plan_hash,
    }
    if step is not None:
        fields.update(path=step.path.value, source_hash=step.new_hash, previous_source_hash=step.previous_hash)
    return fields


def _plan_hash(steps: Sequence[FileStep]) -> str:
    files: list[PlannedFile] = []
    for step in steps:
        if step.previous_path is None:
            files.append(PlannedFile(path=step.path.value, previous_hash=step.previous_hash, new_hash=step.new_hash))
        else:
            files.append(PlannedFile(path=step.previous_path.value, previous_hash=step.previous_hash, new_hash=None))
            files.append(PlannedFile(path=step.path.value, previous_hash=None, new_hash=step.new_hash))
    return plan_hash(files)


def _diff(step: FileStep, kind: FileKind) -> str:
    before = None if step.before is None else step.before.data
    previous = None if step.previous_path is None else step.previous_path.value
    if kind is FileKind.MARKDOWN:
        return unified_diff(step.path.value, before, step.after, previous_path=previous)
    if previous is not None:
        return f"{previous} is moved to {step.path}.\n"
    return (
        f"{step.path} ({len(before or step.after or b'')} bytes) is {'deleted' if step.after is None else 'written'}.\n"
    )
