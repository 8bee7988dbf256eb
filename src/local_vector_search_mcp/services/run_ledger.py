"""The runs of an index: asked for, going on, ended; by whatever name somebody waits for them. Thread-safe."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from local_vector_search_mcp.services.handover import BoardEntry
from local_vector_search_mcp.services.job_state import (
    ActiveRun,
    JobState,
    RunPhase,
    RunRequest,
    RunResult,
    RunTicket,
)

_KEPT: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run is."""

    phase: RunPhase
    processed: int
    total: int
    eta_seconds: int | None


class RunLedger:
    """Keeps ``job_state`` and the results of the last runs.

    Args:
        clock: A monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._job = JobState()
        self._aliases: dict[str, str] = {}
        self._results: dict[str, RunResult] = {}
        self._sent: dict[str, RunRequest] = {}
        self.was_asked = False
        """Whether somebody has asked for a run since the start."""

    @property
    def job(self) -> JobState:
        """The present state."""
        return self._job

    def request(self, wanted: RunRequest, *, name: str) -> RunTicket:
        """Ask for a run; a name that was used before gives the same run again."""
        with self._lock:
            self.was_asked = self.was_asked or wanted.asked
            known = self._known(name)
            if known is not None:
                return RunTicket(run_id=known, joined=True)
            self._job, ticket = self._job.request(wanted, run_id=name)
            if ticket.run_id != name:
                self._aliases[name] = ticket.run_id
            return ticket

    def start(self, *, started_at: str) -> ActiveRun | None:
        """Begin the run that waits; the active run, if there is one now."""
        with self._lock:
            self._job = self._job.start(started_at=started_at, now_s=self._clock())
            return self._job.active

    def progress(self, phase: RunPhase, processed: int, total: int) -> None:
        """Record how far the active run is."""
        with self._lock:
            self._job = self._job.progress(phase, processed, total, now_s=self._clock())

    def embedding_progress(self, processed: int, total: int) -> None:
        """Record how far embedding is, once the active run has come to it."""
        with self._lock:
            if self._job.active is not None and self._job.active.phase is RunPhase.EMBED:
                self._job = self._job.progress(RunPhase.EMBED, processed, total, now_s=self._clock())

    def is_asked(self) -> bool:
        """Whether somebody asked for the active run."""
        active = self._job.active
        return active is not None and active.request.asked

    def close(self) -> bool:
        """Whether the active run may end; otherwise somebody joined it, and it must look at the tree once more."""
        with self._lock:
            self._job, may_end = self._job.close()
            return may_end

    def finish(self, result: RunResult) -> None:
        """End the active run."""
        with self._lock:
            self._job = self._job.finish(result)
            self._results[result.run_id] = result
            _trim(self._results)
            _trim(self._aliases)

    # -- runs that another process does -----------------------------------------------------------------------

    def sent(self, name: str, wanted: RunRequest) -> None:
        """A run was asked of another process under this name."""
        with self._lock:
            self._sent[name] = wanted

    def was_sent(self, name: str) -> bool:
        """Whether a run of this name was asked of another process and has not ended as far as is known."""
        return name in self._sent

    def take_sent(self) -> dict[str, RunRequest]:
        """The runs that were asked of another process; they are this process's own now."""
        with self._lock:
            sent, self._sent = self._sent, {}
            return sent

    def learn(self, name: str, result: RunResult) -> None:
        """Another process has ended a run."""
        with self._lock:
            self._sent.pop(name, None)
            self._results[name] = result

    # -- answers ----------------------------------------------------------------------------------------------

    def result(self, name: str) -> RunResult | None:
        """How a run ended; None while it goes on or is unknown."""
        return self._results.get(name) or self._results.get(self._aliases.get(name, ""))

    def running(self) -> RunProgress | None:
        """How far the active run is; None without one."""
        active = self._job.active
        if active is None:
            return None
        eta = active.eta_s(self._clock())
        return RunProgress(
            phase=active.phase,
            processed=active.processed,
            total=active.total,
            eta_seconds=None if eta is None else round(eta),
        )

    def entry(self) -> BoardEntry:
        """What other processes are shown."""
        with self._lock:
            entry = BoardEntry(results=tuple(self._results.items()), aliases=tuple(self._aliases.items()))
            active = self._job.active
        if active is None:
            return entry
        return replace(
            entry,
            run_id=active.run_id,
            force=active.request.force,
            phase=active.phase,
            processed=active.processed,
            total=active.total,
            started_at=active.started_at,
        )

    def _known(self, name: str) -> str | None:
        active, queued = self._job.active, self._job.queued
        if name in self._results or (active is not None and active.run_id == name):
            return name
        if queued is not None and queued.run_id == name:
            return name
        return self._aliases.get(name)


def _trim(kept: "dict[str, RunResult] | dict[str, str]") -> None:
    while len(kept) > _KEPT:
        del kept[next(iter(kept))]
