"""What the background worker has to do and is doing, as values. Pure: no threads, no clock, no disk.

At most one run is active and at most one waits behind it. A request that the active run covers joins it; one that
asks for more waits, and whatever else is asked meanwhile is merged into it.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class RunScope(StrEnum):
    """Which files a run reads."""

    CHANGED = "changed"  # Those whose size, times or inode differ from the index.
    ALL = "all"  # Every file, whatever its times say.


class RunPhase(StrEnum):
    """What a run is doing."""

    SCAN = "scan"
    PARSE = "parse"
    EMBED = "embed"


class RunOutcome(StrEnum):
    """How a run ended; ``running`` where it has not."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a run is asked to do.

    Attributes:
        scope: Which files are read.
        force: Build a new index beside the old one.
        asked: Somebody asked for it, rather than a timer or an event.
    """

    scope: RunScope = RunScope.CHANGED
    force: bool = False
    asked: bool = True

    def covers(self, other: "RunRequest") -> bool:
        """Whether this run reads all that another would; that somebody asked can be added to a run."""
        if other.force and not self.force:
            return False
        return self.force or self.scope is RunScope.ALL or other.scope is RunScope.CHANGED

    def merged(self, other: "RunRequest") -> "RunRequest":
        """One run that does what both would."""
        both = (self.scope, other.scope)
        return RunRequest(
            scope=RunScope.ALL if RunScope.ALL in both else RunScope.CHANGED,
            force=self.force or other.force,
            asked=self.asked or other.asked,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTicket:
    """The run that will do what was asked."""

    run_id: str
    joined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRun:
    """The run that goes on now.

    Attributes:
        rescan: Somebody joined it: before it ends it looks at the tree once more.
        open: It can be joined; no longer once it has looked for the last time.
        phase_started_s: When the phase began, on the clock that ``eta_s`` is asked with.
    """

    run_id: str
    request: RunRequest
    started_at: str
    phase: RunPhase
    phase_started_s: float
    processed: int = 0
    total: int = 0
    rescan: bool = False
    open: bool = True

    def eta_s(self, now_s: float) -> float | None:
        """Seconds that the phase will go on at its pace so far; None while that cannot be told."""
        spent = now_s - self.phase_started_s
        if self.processed <= 0 or spent <= 0 or self.total < self.processed:
            return None
        return (self.total - self.processed) * spent / self.processed


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run ended, with the numbers of its documents."""

    run_id: str
    outcome: RunOutcome
    changed: int = 0
    removed: int = 0
    failed: int = 0
    seconds: float = 0.0
    ended_at: str = ""
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRun:
    """The run that follows the active one."""

    run_id: str
    request: RunRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Active, queued and last run. Every step gives a new value."""

    active: ActiveRun | None = None
    queued: QueuedRun | None = None
    last: RunResult | None = None

    def request(self, wanted: RunRequest, *, run_id: str) -> "tuple[JobState, RunTicket]":
        """Ask for a run.

        Args:
            wanted: What is asked for.
            run_id: The name of the run, if this request makes a new one.
        """
        if self.active is not None and self.active.open and self.active.request.covers(wanted):
            request = replace(self.active.request, asked=self.active.request.asked or wanted.asked)
            joined = replace(self, active=replace(self.active, request=request, rescan=True))
            return joined, RunTicket(run_id=self.active.run_id, joined=True)
        if self.queued is not None:
            merged = replace(self.queued, request=self.queued.request.merged(wanted))
            return replace(self, queued=merged), RunTicket(run_id=merged.run_id, joined=True)
        queued = QueuedRun(run_id=run_id, request=wanted)
        return replace(self, queued=queued), RunTicket(run_id=run_id, joined=False)

    def start(self, *, started_at: str, now_s: float) -> "JobState":
        """Let the queued run begin; without one, or while one is active, nothing changes."""
        if self.active is not None or self.queued is None:
            return self
        active = ActiveRun(
            run_id=self.queued.run_id,
            request=self.queued.request,
            started_at=started_at,
            phase=RunPhase.SCAN,
            phase_started_s=now_s,
        )
        return replace(self, active=active, queued=None)

    def progress(self, phase: RunPhase, processed: int, total: int, *, now_s: float) -> "JobState":
        """Record how far the active run is. A phase that counts anew, having been called away, begins anew."""
        if self.active is None:
            return self
        goes_on = phase is self.active.phase and processed >= self.active.processed
        began = self.active.phase_started_s if goes_on else now_s
        active = replace(self.active, phase=phase, processed=processed, total=total, phase_started_s=began)
        return replace(self, active=active)

    def close(self) -> "tuple[JobState, bool]":
        """Let the active run come to its end, unless somebody joined it since it last looked; whether it may end."""
        if self.active is None:
            return self, True
        if self.active.rescan:
            return replace(self, active=replace(self.active, rescan=False)), False
        return replace(self, active=replace(self.active, open=False)), True

    def finish(self, result: RunResult) -> "JobState":
        """End the active run."""
        return replace(self, active=None, last=result)
