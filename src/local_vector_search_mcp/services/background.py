"""Indexer: the one background worker of an index, driven by events, requests, timers and the lease.

Only the holder of the indexing lease writes. A process without it hands its changes over and asks for the lease once
a second, so that it takes over soon after the holder has left, however that ended.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from local_vector_search_mcp.errors import IndexNotReady, InvalidArgument, InvalidPath, IoFailure, KnowledgeBaseError
from local_vector_search_mcp.index import state
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.home import IndexHome, is_never_indexed
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.embedding import EmbeddingBacklog
from local_vector_search_mcp.services.embedding_worker import EmbeddingWorker
from local_vector_search_mcp.services.handover import Board, BoardEntry, Letter, Mailbox
from local_vector_search_mcp.services.inbox import Changes, Inbox
from local_vector_search_mcp.services.index_state import IndexerSnapshot, IndexState
from local_vector_search_mcp.services.job_state import (
    ActiveRun,
    RunOutcome,
    RunPhase,
    RunRequest,
    RunResult,
    RunScope,
    RunTicket,
)
from local_vector_search_mcp.services.latency import LatencySamples
from local_vector_search_mcp.services.memory import give_back_memory
from local_vector_search_mcp.services.reconcile import Reconciler, Tally
from local_vector_search_mcp.services.run_ledger import RunLedger, RunProgress
from local_vector_search_mcp.services.runs import RunParts, Runs
from local_vector_search_mcp.services.schedule import GUARD_RETRY_S, Schedule
from local_vector_search_mcp.workspace.locks import IndexingLease

_LOG = logging.getLogger(__name__)

_POLL_S: Final = 0.1
_SEEK_LEASE_S: Final = 1.0
_WATCH_ROW_S: Final = 0.02
_BOARD_S: Final = 0.5
_STOP_S: Final = 1.5
_AFTER_FAILURE_S: Final = 1.0
# More changed paths than this are found faster by a walk.
_MOST_PATHS: Final = 500
_ROOT_IS_GONE: Final = "The root is gone. What was indexed is kept, and everything is looked at when it is back."


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
        one_at_a_time: Held while a run reads and writes; shared by the indexers of a process.
        root_is_there: Whether the root stands in its place; while it does not, nothing is done.
        prepare_storage: Makes the storage directory where it is missing.
    """

    home: IndexHome
    reconciler: Reconciler
    lease: IndexingLease
    mailbox: Mailbox
    board: Board
    backlog_of: "Callable[[IndexDatabase], EmbeddingBacklog] | None" = None
    watching: Watching | None = None
    reconcile_on_start: bool = True
    one_at_a_time: threading.Lock = field(default_factory=threading.Lock)
    root_is_there: Callable[[], bool] = lambda: True
    prepare_storage: Callable[[], object] = lambda: None


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
        self._sought_lease = False
        self._ledger = RunLedger(clock)
        self._inbox = Inbox()
        self._latency = LatencySamples()
        self._warnings: dict[str, str] = {}
        self._has_run = False
        self._root_is_gone = False
        self._schedule = Schedule()
        self._seek_at = 0.0
        self._board_at = 0.0
        self._embedding = (
            EmbeddingWorker(parts.backlog_of, progress=self._ledger.embedding_progress, changed=self._wake, clock=clock)
            if parts.backlog_of is not None
            else None
        )
        self._runs = Runs(
            RunParts(
                home=parts.home,
                reconciler=parts.reconciler,
                embedding=self._embedding,
                may_end=self._ledger.close,
                meanwhile=self._meanwhile,
                turn=parts.one_at_a_time,
                now_s=now_s,
            )
        )

        self._control = _Control(
            should_stop=lambda: self._stopping,
            asked=self._ledger.is_asked,
            progress=self._moved_on,
            embedding=lambda: self._moved_on(RunPhase.EMBED, 0, 0),
            urgent=self._take_urgent,
            written=self._wake,
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
            if self._parts.watching is not None:
                self._parts.watching.stop()
        self._home.database.close()

    def request(self, *, scope: str = RunScope.CHANGED.value, force: bool = False) -> RunTicket:
        """Ask for a run, or join the one that does what is asked.

        Raises:
            InvalidArgument: Unknown scope.
            IoFailure: The index cannot be written here, or the root is gone.
        """
        if scope not in tuple(RunScope):
            raise InvalidArgument(f"scope is {scope!r}; use changed or all.")
        if self._read_only:
            raise IoFailure("The index is on a read-only file system or cannot be made, so nothing can be indexed.")
        if not self._parts.root_is_there():
            raise IoFailure(_ROOT_IS_GONE)
        wanted = RunRequest(scope=RunScope(scope), force=force, asked=True)
        name = uuid.uuid4().hex[:16]
        with self._condition:
            # A worker that has just begun does not know yet whether it is the one that indexes.
            self._condition.wait_for(
                lambda: self._sought_lease or self._thread is None or self._stopping, timeout=_SEEK_LEASE_S
            )
        if self._thread is None or self._parts.lease.held:
            ticket = self._ledger.request(wanted, name=name)
            self._wake()
            return ticket
        return self._ask_holder(wanted, name)

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
            if result is not None or left <= 0 or self._stopping:
                return result or RunResult(run_id=run_id, outcome=RunOutcome.RUNNING)
            now = self._progress()
            if progress is not None and now is not None:
                progress(now)
            with self._condition:
                if self._ledger.result(run_id) is None:
                    self._condition.wait(min(left, 0.5 if self._parts.lease.held else _POLL_S))

    def notify_paths(self, paths: Iterable[RelPath]) -> None:
        """Documents were just written, moved or deleted by this process: they are indexed before anything else."""
        wanted = tuple(paths)
        if self._read_only or not wanted:
            return
        if self._parts.lease.held:
            self._inbox.announce(wanted)
            self._wake()
        else:
            # Whoever holds the lease, or takes it next, this process included, reads the letter.
            self._parts.mailbox.send(Letter(paths=wanted))

    def changes_seen(self, paths: Sequence[str] | None, first_at_s: float) -> None:
        """The files changed, as the watcher tells.

        Events are hints: what is indexed is decided by the files as they are then.

        Args:
            paths: Root-relative files and folders; None means that anything may have changed.
            first_at_s: When the first of these events came, in seconds since 1970-01-01.
        """
        at = self._clock() - max(self._now_s() - first_at_s, 0.0)
        if paths is None or len(paths) > _MOST_PATHS:
            self._inbox.notice_everything(at)
        else:
            self._notice(paths, at)
        self._wake()

    def wait_indexed(self, path: RelPath, source_hash: str | None, *, timeout_ms: int) -> bool:
        """Whether the index holds a document in this state, waiting for it a while.

        Args:
            path: The document.
            source_hash: Its content; None waits for its absence.
            timeout_ms: Longest wait.
        """
        deadline = self._clock() + timeout_ms / 1000
        while not self._is_indexed(path, source_hash):
            left = deadline - self._clock()
            if left <= 0 or self._thread is None or self._stopping or self._inbox.is_frozen(path):
                return False
            with self._condition:
                self._condition.wait(min(left, _WATCH_ROW_S))
        return True

    def wait_first_run(self, timeout_s: float) -> bool:
        """Whether a whole run has ended well for this index, waiting for it a while."""
        deadline = self._clock() + timeout_s
        while not self._has_ever_run():
            left = deadline - self._clock()
            if left <= 0 or self._thread is None or not self._first_run_comes():
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
        active, last = self._ledger.job.active, self._ledger.job.last
        error = self._embedding.error if self._embedding is not None and holder else board.embedding_error
        started_at = active.started_at if active is not None else board.started_at if board.run_id else None
        return IndexerSnapshot(
            state=self._state(rebuilding=active.request.force if active is not None else board.force),
            running=started_at is not None,
            progress=self._progress(),
            started_at=started_at,
            last=last or (board.results[-1][1] if board.results else None),
            latency=self._latency.summary(),
            embedding_error=error,
            holder=holder,
            warnings=(*self._warnings.values(), *board.warnings),
        )

    # -- answers ----------------------------------------------------------------------------------------------

    def _ask_holder(self, wanted: RunRequest, name: str) -> RunTicket:
        board = self._parts.board.read()
        self._ledger.sent(name, wanted)
        if not self._parts.mailbox.send(Letter(run_id=name, run=wanted)):
            raise IoFailure("The run could not be asked of the process that indexes; the storage cannot be written.")
        return RunTicket(run_id=name, joined=bool(board.run_id))

    def _result(self, run_id: str) -> RunResult | None:
        result = self._ledger.result(run_id)
        if result is None and self._ledger.was_sent(run_id):
            result = self._parts.board.read().result_of(run_id)
            if result is not None:
                self._ledger.learn(run_id, result)
        return result

    def _progress(self) -> RunProgress | None:
        progress = self._ledger.running()
        if progress is not None or self._parts.lease.held or self._thread is None:
            return progress
        board = self._parts.board.read()
        if not board.run_id:
            return None
        return RunProgress(phase=board.phase, processed=board.processed, total=board.total, eta_seconds=None)

    def _is_indexed(self, path: RelPath, source_hash: str | None) -> bool:
        if self._inbox.is_urgent(path):
            return False
        try:
            with self._home.database.reader() as connection:
                if source_hash is None:
                    return state.document(connection, path) is None
                return state.indexed_hash(connection, path) == source_hash
        except IndexNotReady:
            return False

    def _has_ever_run(self) -> bool:
        if self._has_run:
            return True
        try:
            if not self._home.compatibility().searchable:
                return True
            with self._home.database.reader() as connection:
                self._has_run = state.completed_runs(connection) > 0
        except IndexNotReady:
            return False
        return self._has_run

    def _first_run_comes(self) -> bool:
        """Whether a run goes on or is about to begin, so that waiting for it is of use."""
        job = self._ledger.job
        return job.active is not None or job.queued is not None or not (self._sought_lease and self._parts.lease.held)

    def _state(self, *, rebuilding: bool) -> IndexState:
        if rebuilding:
            return IndexState.REBUILDING
        try:
            if not self._home.compatibility().searchable:
                return IndexState.INCOMPATIBLE
            with self._home.database.reader() as connection:
                if is_never_indexed(connection):
                    return IndexState.EMPTY
                if not self._inbox.is_empty or self._schedule.awaits_retry or not state.completed_runs(connection):
                    return IndexState.STALE
        except IndexNotReady:
            return IndexState.EMPTY
        return IndexState.READY

    def _notice(self, paths: Iterable[str], at: float) -> None:
        found: list[RelPath] = []
        for text in paths:
            # No document can have a name that is no path.
            with suppress(InvalidPath):
                found.append(RelPath.parse(text, directory=True))
        if any(path.name == ".gitignore" for path in found):
            self._inbox.notice_everything(at)
        self._inbox.notice([path for path in found if path.name != ".gitignore"], at)

    # -- the loop ---------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        try:
            if self._parts.watching is not None:
                self._parts.watching.start(self.changes_seen)
            while not self._stopping:
                if not self._guarded_step():
                    with self._condition:
                        if not self._stopping:
                            self._condition.wait(_POLL_S)
        finally:
            self._parts.lease.release()

    def _guarded_step(self) -> bool:
        try:
            return self._step()
        except KnowledgeBaseError as error:
            self._failed(f"Indexing stopped for now: {error.message}")
        except Exception as error:  # noqa: BLE001  (the thread must live on; the next run begins anew)
            _LOG.exception("Indexing failed unexpectedly")
            self._failed(f"Indexing failed ({type(error).__name__}); the log says more.")
        return False

    def _failed(self, why: str) -> None:
        """A step has failed: it is told, and done again after a moment, as whatever failed is likely to fail again."""
        if self._warnings.get("worker") != why:
            _LOG.warning("%s", why)
        self._warnings["worker"] = why
        self._schedule.retry_later(self._clock())
        with self._condition:
            self._condition.wait_for(lambda: self._stopping, timeout=_AFTER_FAILURE_S)

    def _step(self) -> bool:
        """Do the next thing; whether there may be more to do at once."""
        if not self._sees_root():
            return False
        if not self._keep_lease() and not self._take_lease():
            self._hand_over()
            return False
        self._read_mail()
        if self._home.database.damaged.is_set():
            self._heal(damaged=True)
        active = self._ledger.start(started_at=self._iso_now())
        if active is not None:
            self._run(active)
            return True
        since = self._inbox.take_everything()
        if since is not None and self._indexes_by_itself():
            self._look_at_everything(since)
            return True
        if self._inbox.has_documents:
            self._update()
            return True
        self._keep_time()
        return False

    def _sees_root(self) -> bool:
        """Whether the root stands in its place; when it is back, everything is looked at.

        While it is gone nothing is tried: the index may have gone with it, and a storage directory that is made in its
        place would stand in the way of its return.
        """
        there = self._parts.root_is_there()
        if there and self._root_is_gone:
            _LOG.info("The root is back")
            self._root_is_gone = False
            self._warnings.pop("root", None)
            self._schedule.all_well()
            self._inbox.notice_everything(self._clock())
        elif not there and not self._root_is_gone:
            _LOG.warning("%s", _ROOT_IS_GONE)
            self._root_is_gone = True
            self._warnings["root"] = _ROOT_IS_GONE
        return there

    def _keep_lease(self) -> bool:
        """Whether this process still holds the lease; one whose file has gone from its place is given back."""
        now = self._clock()
        if self._parts.lease.held and now >= self._seek_at:
            self._seek_at = now + _SEEK_LEASE_S
            if self._parts.lease.release_if_misplaced():
                _LOG.warning("The storage directory was moved or removed; it is made again")
                self._seek_at = now
        return self._parts.lease.held

    def _take_lease(self) -> bool:
        """Become the holder where nobody is; then everything is looked at, as changes may have gone unnoticed."""
        now = self._clock()
        if now < self._seek_at:
            return False
        self._seek_at = now + _SEEK_LEASE_S
        try:
            self._parts.prepare_storage()
            taken = self._parts.lease.try_acquire()
            if taken:
                self._begin_holding(now)
        finally:
            with self._condition:
                self._sought_lease = True
                self._condition.notify_all()
        return taken

    def _begin_holding(self, now: float) -> None:
        self._schedule.begin_period(now)
        board = self._parts.board.read()
        for name, wanted in self._ledger.take_sent().items():
            result = board.result_of(name)
            if result is None:
                self._ledger.request(wanted, name=name)
            else:
                self._ledger.learn(name, result)
        self._heal(damaged=False)
        self._home.remove_unused()
        if self._home.has_unfinished_rebuild():
            self._request_run(RunRequest(force=True))
        elif self._parts.reconcile_on_start:
            self._request_run(RunRequest(asked=False))
        self._show()

    def _hand_over(self) -> None:
        """Give what this process knows to the holder."""
        changes = self._inbox.take()
        rescan = self._inbox.take_everything() is not None
        if changes.paths or rescan:
            self._parts.mailbox.send(Letter(paths=changes.paths, rescan=rescan))

    def _read_mail(self) -> None:
        for letter in self._parts.mailbox.collect():
            self._inbox.announce(letter.paths)
            if letter.rescan:
                self._inbox.notice_everything(self._clock())
            if letter.run is not None:
                self._ledger.request(letter.run, name=letter.run_id)

    def _heal(self, *, damaged: bool) -> None:
        self._home.database.damaged.clear()
        if not self._home.heal(damaged=damaged):
            return
        _LOG.warning("%s", self._home.damage)
        self._warnings["damage"] = self._home.damage or ""
        self._has_run = False
        self._request_run(RunRequest(asked=False))

    def _keep_time(self) -> None:
        """Start what its time has come for."""
        now = self._clock()
        if self._indexes_by_itself() and self._schedule.take_run(now):
            self._request_run(RunRequest(asked=False))
        elif self._has_run and not self._home.database.exists():
            # Somebody deleted the index, as anybody may at any time.
            self._has_run = False
            self._request_run(RunRequest(asked=False))
        elif self._schedule.take_trim(now):
            self._home.database.trim()
            give_back_memory()

    def _indexes_by_itself(self) -> bool:
        """Whether changes are followed: not before the first run where that waits to be asked for."""
        return self._parts.reconcile_on_start or self._ledger.was_asked or self._has_ever_run()

    def _request_run(self, wanted: RunRequest) -> None:
        self._ledger.request(wanted, name=uuid.uuid4().hex[:16])

    # -- runs -------------------------------------------------------------------------------------------------

    def _look_at_everything(self, since: float) -> None:
        self._request_run(RunRequest(asked=False))
        active = self._ledger.start(started_at=self._iso_now())
        if active is not None:
            self._run(active)
            self._latency.add(self._clock() - since)

    def _run(self, active: ActiveRun) -> None:
        began = self._clock()
        tally, outcome, message = Tally(), RunOutcome.FAILED, None
        self._inbox.forget_noticed()
        self._show()
        try:
            tally = self._runs.carry_out(active.request, self._control)
            outcome = RunOutcome.CANCELLED if tally.interrupted else RunOutcome.SUCCEEDED
        except KnowledgeBaseError as error:
            message = error.message
            _LOG.warning("A run failed: %s", error.message)
        except Exception as error:  # noqa: BLE001  (reported as the run's outcome)
            message = f"The run failed ({type(error).__name__}); the log says more."
            _LOG.exception("A run failed unexpectedly")
        self._after_run(tally, outcome, rebuilt=active.request.force)
        self._ledger.finish(
            RunResult(
                run_id=active.run_id,
                outcome=outcome,
                changed=tally.changed,
                removed=tally.removed,
                failed=tally.failed,
                seconds=round(self._clock() - began, 3),
                ended_at=self._iso_now(),
                message=message,
            )
        )
        self._show()
        self._wake()

    def _after_run(self, tally: Tally, outcome: RunOutcome, *, rebuilt: bool) -> None:
        self._schedule.has_worked(self._clock())
        if outcome is RunOutcome.FAILED or tally.to_retry:
            self._schedule.retry_later(self._clock())
        if outcome is not RunOutcome.SUCCEEDED:
            return
        self._has_run = True
        self._warnings.pop("worker", None)
        if rebuilt:
            self._inbox.thaw()
            self._warnings.pop("damage", None)
        if not tally.to_retry:
            self._schedule.all_well()
        self._warnings.pop("guard", None)
        if tally.held_back:
            self._schedule.retry_in(GUARD_RETRY_S, self._clock())
            self._warnings["guard"] = (
                f"{tally.held_back} documents are gone from the disk, more than half of the index. They stay indexed "
                "and are looked for again in a minute; kb_reindex drops them."
            )

    def _meanwhile(self) -> bool:
        """Let a moment pass and index what changes; False where another run waits or the end has come."""
        self._read_mail()
        if self._inbox.has_documents:
            self._update()
        with self._condition:
            self._condition.wait(_POLL_S / 2)
        return not (self._stopping or self._ledger.job.queued is not None or self._inbox.has_everything)

    # -- single documents -------------------------------------------------------------------------------------

    def _update(self) -> None:
        """Index the documents that are known to have changed."""
        changes = self._inbox.take()
        try:
            self._index(changes)
        except BaseException:
            self._inbox.put_back(changes, now=self._clock())
            raise
        now = self._clock()
        for since in changes.noticed.values():
            self._latency.add(now - since)
        self._schedule.has_worked(now)
        self._wake()

    def _index(self, changes: Changes) -> None:
        reconciler, database = self._parts.reconciler, self._home.database
        folders = reconciler.names_folder(database, changes.noticed)
        if not self._home.compatibility().rows_writable:
            self._inbox.freeze(changes.paths)
            return
        if not self._indexes_by_itself():
            return
        self._home.ensure()
        # Whoever waits for a document has taken it away; what merely vanished, a run judges as a whole.
        vanished = reconciler.mass_deletion(database, changes.noticed.keys() - set(changes.urgent))
        if folders or vanished:
            self._request_run(RunRequest(asked=False))
        paths = [path for path in changes.paths if path not in vanished]
        tally = reconciler.update(database, paths, control=self._control)
        if tally.to_retry:
            self._schedule.retry_later(self._clock())
        if self._embedding is not None and self._home.compatibility().vectors_usable:
            self._embedding.wake(database)

    # -- telling ----------------------------------------------------------------------------------------------

    def _moved_on(self, phase: RunPhase, processed: int, total: int) -> None:
        self._ledger.progress(phase, processed, total)
        if self._clock() >= self._board_at:
            self._show()

    def _take_urgent(self) -> tuple[RelPath, ...]:
        self._read_mail()
        return self._inbox.take_urgent()

    def _wake(self) -> None:
        with self._condition:
            self._condition.notify_all()

    def _show(self) -> None:
        """Put the present state on the board for the processes that do not index."""
        self._board_at = self._clock() + _BOARD_S
        error = None if self._embedding is None else self._embedding.error
        self._parts.board.put(
            replace(self._ledger.entry(), warnings=tuple(self._warnings.values()), embedding_error=error)
        )

    def _iso_now(self) -> str:
        return datetime.fromtimestamp(self._now_s(), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Control:
    """What a run sees of its indexer. Implements ``RunControl``."""

    should_stop: Callable[[], bool]
    asked: Callable[[], bool]
    progress: Callable[[RunPhase, int, int], None]
    embedding: Callable[[], None]
    urgent: Callable[[], Sequence[RelPath]]
    written: Callable[[], None]
