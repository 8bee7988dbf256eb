"""Indexer: the one background worker of an index. It drives ``job_state`` over events, timers and the lease.

Only the holder of the indexing lease writes. A process without it hands its changes over and asks for the lease once
a second, so that it takes over soon after the holder has left, however that ended.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Protocol

from local_vector_search_mcp.errors import IndexNotReady, InvalidArgument, InvalidPath, IoFailure, KnowledgeBaseError
from local_vector_search_mcp.index import state
from local_vector_search_mcp.index.connection import IndexDamaged, IndexDatabase
from local_vector_search_mcp.index.home import IndexHome, is_never_indexed
from local_vector_search_mcp.index.manifest import Compatibility
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.embedding import EmbeddingBacklog
from local_vector_search_mcp.services.embedding_worker import EmbeddingWorker
from local_vector_search_mcp.services.handover import Board, BoardEntry, Letter, Mailbox
from local_vector_search_mcp.services.job_state import (
    JobState,
    RunOutcome,
    RunPhase,
    RunRequest,
    RunResult,
    RunScope,
    RunTicket,
)
from local_vector_search_mcp.services.latency import LatencySamples, WatchLatency
from local_vector_search_mcp.services.reconcile import Reconciler, Tally
from local_vector_search_mcp.workspace.locks import IndexingLease

_LOG = logging.getLogger(__name__)

_POLL_S: Final = 0.1
_SEEK_LEASE_S: Final = 1.0
_WATCH_ROW_S: Final = 0.02
_BOARD_S: Final = 0.5
_PERIOD_S: Final = 600.0
_GUARD_RETRY_S: Final = 60.0
_FIRST_RETRY_S: Final = 30.0
_TRIM_AFTER_S: Final = 5.0
_STOP_S: Final = 1.5
# More changed paths than this are found faster by a walk.
_MOST_PATHS: Final = 500


class IndexState(StrEnum):
    """The state of an index, as it is shown."""

    EMPTY = "empty"  # Never indexed.
    READY = "ready"  # In line with the files, vectors awaited or not.
    STALE = "stale"  # Changes are known and not yet indexed.
    INCOMPATIBLE = "incompatible"
    REBUILDING = "rebuilding"


class Watching(Protocol):
    """What the indexer needs of a source of file events."""

    def start(self, seen: "Callable[[Sequence[str] | None, float], None]") -> None:
        """Begin; ``seen`` is called with root-relative paths, or with None where everything may have changed, and
        with the time of the first event in seconds since 1970-01-01.
        """
        ...

    def stop(self) -> None:
        """End."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run is."""

    phase: RunPhase
    processed: int
    total: int
    eta_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerSnapshot:
    """What the worker is doing, for the status. ``holder`` says whether this process is the one that indexes."""

    state: IndexState
    running: bool
    progress: RunProgress | None
    started_at: str | None
    last: RunResult | None
    latency: WatchLatency | None
    embedding_error: str | None
    holder: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerParts:
    """What an indexer works with.

    Attributes:
        home: The index on disk.
        reconciler: Brings it in line with the files.
        lease: The right to write it.
        mailbox: Where processes without the lease leave their changes.
        board: Where the holder says what it is doing.
        backlog_of: Makes the embedding backlog of an index; None without embeddings.
        watching: File events; None where they are not wanted.
        reconcile_on_start: Look at all files when the worker starts.
        one_at_a_time: Held during a run; shared by the indexers of a process.
    """

    home: IndexHome
    reconciler: Reconciler
    lease: IndexingLease
    mailbox: Mailbox
    board: Board
    backlog_of: "Callable[[IndexDatabase], EmbeddingBacklog] | None" = None
    watching: Watching | None = None
    reconcile_on_start: bool = True
    one_at_a_time: AbstractContextManager[object] = field(default_factory=nullcontext)


class Indexer:
    """Keeps one index in line with its files, in a thread of its own.

    Args:
        parts: What it works with.
        read_only: The index cannot be written; nothing is ever started.
        clock: A monotonic clock in seconds.
        now_s: The wall clock in seconds since 1970-01-01.
    """

    def __init__(
        self,
        parts: IndexerParts,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._parts = parts
        self._home = parts.home
        self._read_only = read_only
        self._clock = clock
        self._now_s = now_s
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._job = JobState()
        self._urgent: dict[RelPath, None] = {}
        self._dirty: dict[RelPath, float] = {}  # With the time of the first event.
        self._rescan_since: float | None = None
        self._sent: dict[str, RunRequest] = {}  # Runs asked of another process, by the name given to them.
        self._aliases: dict[str, str] = {}
        self._results: dict[str, RunResult] = {}
        self._latency = LatencySamples()
        self._warnings: dict[str, str] = {}
        self._frozen: set[RelPath] = set()
        self._first_run_ended = False
        self._next_period = 0.0
        self._retry_at: float | None = None
        self._retry_s = _FIRST_RETRY_S
        self._seek_at = 0.0
        self._board_at = 0.0
        self._trim_at: float | None = None
        self._embedding = (
            EmbeddingWorker(parts.backlog_of, progress=self._embedded, changed=self._wake, clock=clock)
            if parts.backlog_of is not None
            else None
        )

    # -- for services -----------------------------------------------------------------------------------------

    @property
    def home(self) -> IndexHome:
        """The index on disk."""
        return self._home

    def start(self) -> None:
        """Begin working and watching; returns at once."""
        if self._read_only or self._thread is not None:
            return
        self._thread = threading.Thread(target=self._loop, name="indexer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End within two seconds, in the middle of a run too; what was indexed stays."""
        with self._condition:
            self._stopping = True
            thread = self._thread
            self._condition.notify_all()
        if self._embedding is not None:
            self._embedding.stop(timeout_s=0 if thread is None else _STOP_S / 2)
        if thread is not None:
            thread.join(timeout=_STOP_S)
        if self._parts.watching is not None and thread is not None:
            self._parts.watching.stop()
        self._home.database.close()

    def request(self, *, scope: str = RunScope.CHANGED.value, force: bool = False) -> RunTicket:
        """Ask for a run, or join the one that does what is asked.

        Raises:
            InvalidArgument: Unknown scope.
            IoFailure: The index cannot be written here.
        """
        if scope not in tuple(RunScope):
            raise InvalidArgument(f"scope is {scope!r}; use changed or all.")
        if self._read_only:
            raise IoFailure("The index is on a read-only file system or cannot be made, so nothing can be indexed.")
        return self._request(RunRequest(scope=RunScope(scope), force=force, asked=True))

    def wait(
        self, run_id: str, *, timeout_s: float, progress: Callable[[RunProgress], None] | None = None
    ) -> RunResult:
        """How a run ended, or an outcome of ``running`` when the time is up.

        Args:
            run_id: Of the ticket.
            timeout_s: Longest wait.
            progress: Called about twice a second while the run goes on.
        """
        deadline = self._clock() + timeout_s
        while True:
            result = self._result(run_id)
            left = deadline - self._clock()
            if result is not None or left <= 0:
                return result or RunResult(run_id=run_id, outcome=RunOutcome.RUNNING)
            now = self._progress()
            if progress is not None and now is not None:
                progress(now)
            with self._condition:
                if self._result_here(run_id) is None:
                    self._condition.wait(min(left, 0.5 if self._parts.lease.held else _POLL_S))

    def notify_paths(self, paths: Iterable[RelPath]) -> None:
        """Documents were just written, moved or deleted by this process: they are indexed before anything else."""
        wanted = tuple(paths)
        if self._read_only or not wanted:
            return
        if not self._parts.lease.held:
            self._parts.mailbox.send(Letter(paths=wanted))
        with self._condition:
            # Kept even when handed over: this process may become the holder before the letter is read.
            if self._parts.lease.held:
                self._urgent.update(dict.fromkeys(wanted))
            self._condition.notify_all()

    def changes_seen(self, paths: Sequence[str] | None, first_at_s: float) -> None:
        """The files changed, as the watcher tells.

        Events are hints: what is indexed is decided by the files as they are then.

        Args:
            paths: Root-relative files and folders; None means that anything may have changed.
            first_at_s: When the first of these events came, in seconds since 1970-01-01.
        """
        now = self._clock() - max(self._now_s() - first_at_s, 0.0)
        with self._condition:
            if paths is None or len(paths) > _MOST_PATHS:
                self._rescan_since = now if self._rescan_since is None else self._rescan_since
            else:
                for text in paths:
                    self._note_change(text, now)
            self._condition.notify_all()

    def wait_indexed(self, path: RelPath, source_hash: str | None, *, timeout_ms: int) -> bool:
        """Whether the index holds a document in this state, waiting for it a while.

        Args:
            path: The document.
            source_hash: Its content; None waits for its absence.
            timeout_ms: Longest wait.
        """
        deadline = self._clock() + timeout_ms / 1000
        while True:
            with self._condition:
                if self._is_indexed(path, source_hash):
                    return True
                left = deadline - self._clock()
                if left <= 0 or self._thread is None or self._stopping or path in self._frozen:
                    return False
                self._condition.wait(min(left, _WATCH_ROW_S))

    def wait_first_run(self, timeout_s: float) -> bool:
        """Whether a whole run has ended well for this index, waiting for it a while."""
        deadline = self._clock() + timeout_s
        while not self._has_run():
            left = deadline - self._clock()
            if left <= 0 or self._thread is None:
                return False
            with self._condition:
                self._condition.wait(min(left, _POLL_S))
        return True

    def files_to_come(self) -> int:
        """How many files the active run has still to index."""
        progress = self._progress()
        return 0 if progress is None or progress.phase is RunPhase.EMBED else progress.total - progress.processed

    def snapshot(self) -> IndexerSnapshot:
        """What the worker is doing now."""
        holder = self._parts.lease.held
        board = BoardEntry() if holder or self._thread is None else self._parts.board.read()
        with self._condition:
            job = self._job
            waiting = bool(self._urgent or self._dirty or self._frozen) or self._rescan_since is not None
            warnings = tuple(self._warnings.values())
        active = job.active
        progress = self._progress()
        started_at = active.started_at if active is not None else board.started_at if board.run_id else None
        rebuilding = active.request.force if active is not None else bool(board.run_id) and board.force
        last = job.last or (board.results[-1][1] if board.results else None)
        error = self._embedding.error if self._embedding is not None and holder else board.embedding_error
        return IndexerSnapshot(
            state=self._state(rebuilding=rebuilding, waiting=waiting or self._retry_at is not None),
            running=started_at is not None,
            progress=progress,
            started_at=started_at,
            last=last,
            latency=self._latency.summary(),
            embedding_error=error,
            holder=holder,
            warnings=(*warnings, *board.warnings),
        )

    # -- requests and waits -----------------------------------------------------------------------------------

    def _request(self, wanted: RunRequest, *, run_id: str = "") -> RunTicket:
        name = run_id or uuid.uuid4().hex[:16]
        if not self._parts.lease.held and self._thread is not None and not self._take_lease():
            return self._ask_holder(wanted, name)
        with self._condition:
            self._job, ticket = self._job.request(wanted, run_id=name)
            if ticket.run_id != name:
                self._aliases[name] = ticket.run_id
            self._condition.notify_all()
        return ticket

    def _ask_holder(self, wanted: RunRequest, name: str) -> RunTicket:
        board = self._parts.board.read()
        if not self._parts.mailbox.send(Letter(run_id=name, run=wanted)):
            raise IoFailure("The run could not be asked of the process that indexes; the storage cannot be written.")
        with self._condition:
            self._sent[name] = wanted
        return RunTicket(run_id=name, joined=bool(board.run_id))

    def _result(self, run_id: str) -> RunResult | None:
        with self._condition:
            result = self._result_here(run_id)
            asked_elsewhere = run_id in self._sent
        if result is None and asked_elsewhere:
            result = self._parts.board.read().result_of(run_id)
            if result is not None:
                with self._condition:
                    self._sent.pop(run_id, None)
                    self._results[run_id] = result
        return result

    def _result_here(self, run_id: str) -> RunResult | None:
        return self._results.get(run_id) or self._results.get(self._aliases.get(run_id, ""))

    def _progress(self) -> RunProgress | None:
        with self._condition:
            active = self._job.active
        if active is None:
            if self._parts.lease.held or self._thread is None:
                return None
            board = self._parts.board.read()
            if not board.run_id:
                return None
            return RunProgress(phase=board.phase, processed=board.processed, total=board.total, eta_seconds=None)
        eta = active.eta_s(self._clock())
        return RunProgress(
            phase=active.phase,
            processed=active.processed,
            total=active.total,
            eta_seconds=None if eta is None else round(eta),
        )

    def _is_indexed(self, path: RelPath, source_hash: str | None) -> bool:
        if path in self._urgent:
            return False
        try:
            with self._home.database.reader() as connection:
                if source_hash is None:
                    return state.document(connection, path) is None
                return state.indexed_hash(connection, path) == source_hash
        except IndexNotReady:
            return False

    def _has_run(self) -> bool:
        if self._first_run_ended:
            return True
        try:
            if not self._home.compatibility().searchable:
                return True
            with self._home.database.reader() as connection:
                self._first_run_ended = state.completed_runs(connection) > 0
        except IndexNotReady:
            return False
        return self._first_run_ended

    def _state(self, *, rebuilding: bool, waiting: bool) -> IndexState:
        if rebuilding:
            return IndexState.REBUILDING
        try:
            if not self._home.compatibility().searchable:
                return IndexState.INCOMPATIBLE
            with self._home.database.reader() as connection:
                if is_never_indexed(connection):
                    return IndexState.EMPTY
                if waiting or state.completed_runs(connection) == 0:
                    return IndexState.STALE
        except IndexNotReady:
            return IndexState.EMPTY
        return IndexState.READY

    def _note_change(self, text: str, now: float) -> None:
        try:
            path = RelPath.parse(text, directory=True)
        except InvalidPath:
            return  # No document can have such a name.
        if path.name == ".gitignore":
            self._rescan_since = now if self._rescan_since is None else self._rescan_since
        else:
            self._dirty.setdefault(path, now)

    # -- the loop ---------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        try:
            if self._parts.watching is not None:
                self._parts.watching.start(self.changes_seen)
            while not self._stopping:
                busy = False
                try:
                    busy = self._step()
                except KnowledgeBaseError as error:
                    _LOG.warning("Indexing stopped for now: %s", error.message)
                    self._warn("worker", f"Indexing stopped for now: {error.message}")
                    self._retry_later()
                except Exception as error:  # noqa: BLE001  (the thread must live on; the next run begins anew)
                    _LOG.exception("Indexing failed unexpectedly")
                    self._warn("worker", f"Indexing failed ({type(error).__name__}); the log says more.")
                    self._retry_later()
                if not busy:
                    with self._condition:
                        if not self._stopping:
                            self._condition.wait(_POLL_S)
        finally:
            self._parts.lease.release()

    def _step(self) -> bool:
        """Do the next thing; whether there may be more to do at once."""
        if not self._parts.lease.held and not self._take_lease():
            return self._hand_over()
        self._read_mail()
        if self._home.database.damaged.is_set():
            self._heal()
        if self._due_run():
            self._run()
            return True
        if self._take_rescan():
            return True
        if self._has_changes():
            self._update()
            return True
        self._keep_time()
        return False

    def _take_lease(self) -> bool:
        """Become the holder where nobody is; then everything is looked at, as changes may have gone unnoticed."""
        now = self._clock()
        with self._condition:
            if self._parts.lease.held:
                return True
            if now < self._seek_at:
                return False
            self._seek_at = now + _SEEK_LEASE_S
            if not self._parts.lease.try_acquire():
                return False
            self._next_period = now + _PERIOD_S
            sent, self._sent = self._sent, {}
        self._heal()
        for name, wanted in sent.items():
            result = self._parts.board.read().result_of(name)
            if result is None:
                self._request(wanted, run_id=name)
            else:
                self._results[name] = result
        self._home.remove_unused()
        if self._home.has_unfinished_rebuild():
            self._request(RunRequest(force=True, asked=True))
        elif self._parts.reconcile_on_start or self._home.damage is not None:
            self._request(RunRequest(asked=False))
        return True

    def _hand_over(self) -> bool:
        """Give what this process knows to the holder."""
        with self._condition:
            paths = (*self._urgent, *self._dirty)
            rescan = self._rescan_since is not None
            self._urgent, self._dirty, self._rescan_since = {}, {}, None
        # The holder watches the same files; only what it may not see is worth a letter.
        if paths or rescan:
            self._parts.mailbox.send(Letter(paths=paths, rescan=rescan))
        return False

    def _read_mail(self) -> None:
        for letter in self._parts.mailbox.collect():
            with self._condition:
                self._urgent.update(dict.fromkeys(letter.paths))
                if letter.rescan and self._rescan_since is None:
                    self._rescan_since = self._clock()
            if letter.run is not None:
                self._request(letter.run, run_id=letter.run_id)

    def _heal(self) -> None:
        damaged = self._home.database.damaged.is_set()
        self._home.database.damaged.clear()
        if not self._home.heal(damaged=damaged):
            return
        _LOG.warning("%s", self._home.damage)
        self._warn("damage", self._home.damage or "")
        self._first_run_ended = False
        self._request(RunRequest(asked=False))

    def _keep_time(self) -> None:
        """Start what its time has come for."""
        now = self._clock()
        if now >= self._next_period or (self._retry_at is not None and now >= self._retry_at):
            self._request(RunRequest(asked=False))
            self._next_period = now + _PERIOD_S
            self._retry_at = None
        elif self._first_run_ended and not self._home.database.exists():
            # Somebody deleted the index, as anybody may at any time.
            self._first_run_ended = False
            self._request(RunRequest(asked=False))
        elif self._trim_at is not None and now >= self._trim_at:
            self._trim_at = None
            self._home.database.trim()

    # -- runs -------------------------------------------------------------------------------------------------

    def _due_run(self) -> bool:
        with self._condition:
            self._job = self._job.start(started_at=self._iso_now(), now_s=self._clock())
            return self._job.active is not None

    def _take_rescan(self) -> bool:
        with self._condition:
            since, self._rescan_since = self._rescan_since, None
        if since is None:
            return False
        self._request(RunRequest(asked=False))
        with self._condition:
            self._dirty.clear()
            self._job = self._job.start(started_at=self._iso_now(), now_s=self._clock())
        self._run()
        self._latency.add(self._clock() - since)
        return True

    def _run(self) -> None:
        active = self._job.active
        if active is None:
            return
        began = self._clock()
        tally, outcome, message = Tally(), RunOutcome.FAILED, None
        with self._condition:
            # A walk of everything covers what was noted before it.
            self._dirty.clear()
        self._show()
        try:
            with self._parts.one_at_a_time:
                tally = self._reconciled(active.request)
            outcome = RunOutcome.CANCELLED if tally.interrupted else RunOutcome.SUCCEEDED
        except KnowledgeBaseError as error:
            message = error.message
            _LOG.warning("A run failed: %s", error.message)
        except Exception as error:  # noqa: BLE001  (reported as the run's outcome)
            message = f"The run failed ({type(error).__name__}); the log says more."
            _LOG.exception("A run failed unexpectedly")
        self._conclude(active.run_id, tally, outcome, message, seconds=self._clock() - began)

    def _reconciled(self, request: RunRequest) -> Tally:
        if request.force:
            return self._rebuild()
        compatibility = self._home.compatibility()
        if not compatibility.rows_writable:
            if request.asked:
                raise IndexNotReady(f"{' '.join(compatibility.warnings())}")
            return Tally()
        self._home.ensure()
        database = self._home.database
        tally = self._look(database, request)
        while not tally.interrupted and self._rescan_asked():
            again = self._look(database, replace(request, scope=RunScope.CHANGED))
            tally.changed += again.changed
            tally.removed += again.removed
            tally.interrupted = again.interrupted
        if not tally.interrupted:
            with database.writer() as connection:
                state.count_run(connection)
            self._embed(database)
        return tally

    def _look(self, database: IndexDatabase, request: RunRequest) -> Tally:
        return self._parts.reconciler.run(
            database, request.scope, asked=request.asked, control=_Control(self), live=database
        )

    def _rescan_asked(self) -> bool:
        with self._condition:
            self._job, asked = self._job.take_rescan()
            return asked

    def _rebuild(self) -> Tally:
        """Fill a new generation beside the old one, which answers until the new one is complete."""
        compatibility = self._compatibility_or_none()
        new = self._home.begin_rebuild()
        try:
            self._home.adopt_vectors(new, today=int(self._now_s() // 86_400))
            live = self._home.database if compatibility is not None and compatibility.rows_writable else new
            tally = self._parts.reconciler.run(new, RunScope.CHANGED, asked=True, control=_Control(self), live=live)
            if tally.interrupted:
                return tally
            with new.writer() as connection:
                state.count_run(connection)
            if compatibility is not None and compatibility.vectors_usable:
                # The old generation answers by meaning; the new one must, before it takes over.
                self._embed(new)
            self._home.finish_rebuild(new)
        finally:
            new.close()
        with self._condition:
            self._frozen.clear()
            self._warnings.pop("damage", None)
        self._home.remove_unused()
        self._request(RunRequest(asked=False))
        self._embed(self._home.database)
        return tally

    def _compatibility_or_none(self) -> Compatibility | None:
        try:
            return self._home.compatibility() if self._home.database.exists() else None
        except IndexDamaged:
            return None

    def _embed(self, database: IndexDatabase) -> None:
        """Let vectors follow; the run goes on until they are there, unless something else has to be done."""
        worker = self._embedding
        if worker is None or not self._home.compatibility().vectors_usable:
            return
        worker.wake(database)
        while worker.busy and not self._stopping and self._job.queued is None:
            self._read_mail()
            if self._has_changes():
                self._update()
            with self._condition:
                self._condition.wait(_POLL_S / 2)

    def _conclude(self, run_id: str, tally: Tally, outcome: RunOutcome, message: str | None, *, seconds: float) -> None:
        result = RunResult(
            run_id=run_id,
            outcome=outcome,
            changed=tally.changed,
            removed=tally.removed,
            failed=tally.failed,
            seconds=round(seconds, 3),
            ended_at=self._iso_now(),
            message=message,
        )
        with self._condition:
            self._job = self._job.finish(result)
            self._results[run_id] = result
            self._first_run_ended = self._first_run_ended or outcome is RunOutcome.SUCCEEDED
            self._after_run(tally, outcome)
            self._condition.notify_all()
        self._trim_at = self._clock() + _TRIM_AFTER_S
        self._show()

    def _after_run(self, tally: Tally, outcome: RunOutcome) -> None:
        if outcome is RunOutcome.FAILED or tally.failed:
            self._retry_later()
        elif outcome is RunOutcome.SUCCEEDED:
            self._warnings.pop("worker", None)
            self._retry_at, self._retry_s = None, _FIRST_RETRY_S
        if tally.held_back:
            self._retry_at = self._clock() + _GUARD_RETRY_S
            self._warn(
                "guard",
                f"{tally.held_back} documents are gone from the disk, more than half of the index. They stay indexed "
                "and are looked for again in a minute; kb_reindex drops them.",
            )
        elif outcome is RunOutcome.SUCCEEDED:
            self._warnings.pop("guard", None)

    def _retry_later(self) -> None:
        self._retry_at = self._clock() + self._retry_s
        self._retry_s = min(self._retry_s * 2, _PERIOD_S)

    # -- single documents -------------------------------------------------------------------------------------

    def _has_changes(self) -> bool:
        with self._condition:
            return bool(self._urgent or self._dirty)

    def _update(self) -> None:
        """Index the documents that are known to have changed."""
        with self._condition:
            urgent, dirty = self._urgent, self._dirty
            self._urgent, self._dirty = {}, {}
        if not self._home.compatibility().rows_writable:
            with self._condition:
                self._frozen.update(urgent, dirty)
            return
        self._home.ensure()
        if self._names_folders(dirty):
            self._request(RunRequest(asked=False))
        database = self._home.database
        try:
            self._parts.reconciler.update(database, (*urgent, *dirty), control=_Control(self))
        except BaseException:
            with self._condition:
                self._dirty = {**dict.fromkeys(urgent, self._clock()), **dirty, **self._dirty}
            raise
        now = self._clock()
        for since in dirty.values():
            self._latency.add(now - since)
        self._wake()
        self._trim_at = now + _TRIM_AFTER_S
        if self._embedding is not None and self._home.compatibility().vectors_usable:
            self._embedding.wake(database)

    def _names_folders(self, paths: Iterable[RelPath]) -> bool:
        """Whether a path is, or was, a folder: then only a walk tells what changed."""
        workspace = self._parts.reconciler.workspace
        with self._home.database.reader() as connection:
            for path in paths:
                if state.documents_under(connection, path.value) or workspace.is_folder(path):
                    return True
        return False

    def _take_urgent(self) -> tuple[RelPath, ...]:
        self._read_mail()
        with self._condition:
            urgent, self._urgent = tuple(self._urgent), {}
        return urgent

    # -- telling ----------------------------------------------------------------------------------------------

    def _moved_on(self, phase: RunPhase, processed: int, total: int) -> None:
        with self._condition:
            self._job = self._job.progress(phase, processed, total, now_s=self._clock())
        if self._clock() >= self._board_at:
            self._show()

    def _embedded(self, done: int, total: int) -> None:
        with self._condition:
            if self._job.active is not None and self._job.active.phase is not RunPhase.SCAN:
                self._job = self._job.progress(RunPhase.EMBED, done, total, now_s=self._clock())

    def _wake(self) -> None:
        with self._condition:
            self._condition.notify_all()

    def _warn(self, key: str, message: str) -> None:
        self._warnings[key] = message

    def _show(self) -> None:
        """Put the present state on the board for the processes that do not index."""
        self._board_at = self._clock() + _BOARD_S
        with self._condition:
            active = self._job.active
            entry = BoardEntry(
                results=tuple(self._results.items()),
                aliases=tuple(self._aliases.items()),
                warnings=tuple(self._warnings.values()),
                embedding_error=None if self._embedding is None else self._embedding.error,
            )
            if active is not None:
                entry = replace(
                    entry,
                    run_id=active.run_id,
                    force=active.request.force,
                    phase=active.phase,
                    processed=active.processed,
                    total=active.total,
                    started_at=active.started_at,
                )
        self._parts.board.put(entry)

    def _iso_now(self) -> str:
        return datetime.fromtimestamp(self._now_s(), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Control:
    """What a run sees of its indexer. Implements ``RunControl``."""

    def __init__(self, indexer: Indexer) -> None:
        self._indexer = indexer

    def should_stop(self) -> bool:
        return self._indexer._stopping  # pyright: ignore[reportPrivateUsage]

    def progress(self, phase: RunPhase, processed: int, total: int) -> None:
        self._indexer._moved_on(phase, processed, total)  # pyright: ignore[reportPrivateUsage]

    def urgent(self) -> Sequence[RelPath]:
        return self._indexer._take_urgent()  # pyright: ignore[reportPrivateUsage]

    def written(self) -> None:
        self._indexer._wake()  # pyright: ignore[reportPrivateUsage]
