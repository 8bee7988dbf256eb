"""The worker's state: one run at a time, requests join or follow."""

from local_vector_search_mcp.services.job_state import (
    JobState,
    RunOutcome,
    RunPhase,
    RunRequest,
    RunResult,
    RunScope,
    RunTicket,
)

CHANGED = RunRequest()
ALL = RunRequest(scope=RunScope.ALL)
FORCE = RunRequest(force=True)
TIMER = RunRequest(asked=False)


def started(request: RunRequest) -> JobState:
    job, _ = JobState().request(request, run_id="one")
    return job.start(started_at="t", now_s=10.0)


def ask(job: JobState, request: RunRequest, run_id: str = "two") -> tuple[JobState, RunTicket]:
    return job.request(request, run_id=run_id)


def test_request__begins_a_run() -> None:
    """The first request makes a run, which starts once."""
    job, ticket = JobState().request(CHANGED, run_id="one")
    assert ticket == RunTicket(run_id="one", joined=False)
    assert job.active is None
    job = job.start(started_at="t", now_s=1.0)
    assert job.active is not None
    assert (job.active.run_id, job.active.phase, job.queued) == ("one", RunPhase.SCAN, None)
    assert job.start(started_at="u", now_s=2.0) == job


def test_request__joins_the_run_that_covers_it() -> None:
    """A request that the active run covers joins it and makes it look once more."""
    for active, wanted in (
        (CHANGED, CHANGED),
        (ALL, CHANGED),
        (ALL, ALL),
        (FORCE, ALL),
        (FORCE, FORCE),
        (FORCE, CHANGED),
    ):
        job, ticket = ask(started(active), wanted)
        assert ticket == RunTicket(run_id="one", joined=True)
        assert job.queued is None
        job, may_end = job.close()
        assert not may_end
        job, may_end = job.close()
        assert may_end


def test_request__after_the_last_look_follows() -> None:
    """A run that has looked for the last time is not joined: what changed since would be missed."""
    job, may_end = started(CHANGED).close()
    assert may_end
    job, ticket = ask(job, CHANGED)
    assert ticket == RunTicket(run_id="two", joined=False)


def test_request__asking_makes_a_run_asked_for() -> None:
    """A person who joins a run of the timer makes it one that was asked for."""
    job, ticket = ask(started(TIMER), CHANGED)
    assert ticket.joined
    assert job.active is not None
    assert job.active.request.asked


def test_request__follows_where_more_is_wanted() -> None:
    """A request for more than the active run does waits behind it, and later ones are merged into it."""
    for active, wanted in ((CHANGED, ALL), (CHANGED, FORCE), (ALL, FORCE)):
        job, ticket = ask(started(active), wanted)
        assert ticket == RunTicket(run_id="two", joined=False)
        job, ticket = ask(job, FORCE, "three")
        assert ticket == RunTicket(run_id="two", joined=True)
        assert job.queued is not None
        assert job.queued.request.force


def test_request__merges_what_waits() -> None:
    """Requests before the start become one run that does what all of them want."""
    job, _ = JobState().request(TIMER, run_id="one")
    job, ticket = ask(job, ALL)
    assert ticket == RunTicket(run_id="one", joined=True)
    assert job.queued is not None
    assert job.queued.request == RunRequest(scope=RunScope.ALL, force=False, asked=True)


def test_finish__lets_the_next_one_start() -> None:
    """After the end the result is kept and the queued run can start."""
    job, _ = ask(started(CHANGED), FORCE)
    result = RunResult(run_id="one", outcome=RunOutcome.SUCCEEDED)
    job = job.finish(result)
    assert (job.active, job.last) == (None, result)
    job = job.start(started_at="t", now_s=20.0)
    assert job.active is not None
    assert job.active.run_id == "two"


def test_progress__tells_what_is_left() -> None:
    """The estimate follows the pace of the phase; it is unknown before anything is done."""
    job = started(CHANGED).progress(RunPhase.PARSE, 0, 100, now_s=20.0)
    assert job.active is not None
    assert job.active.eta_s(30.0) is None
    job = job.progress(RunPhase.PARSE, 25, 100, now_s=30.0)
    assert job.active is not None
    assert job.active.eta_s(30.0) == 30.0
    job = job.progress(RunPhase.EMBED, 1, 10, now_s=40.0)
    assert job.active is not None
    assert job.active.eta_s(41.0) == 9.0


def test_progress__a_phase_that_counts_anew_begins_anew() -> None:
    """Embedding that was called away by a saved document counts what is left; its pace is that since then."""
    job = started(CHANGED).progress(RunPhase.EMBED, 500, 1_000, now_s=100.0)
    job = job.progress(RunPhase.EMBED, 0, 500, now_s=200.0)
    assert job.active is not None and job.active.eta_s(200.0) is None
    job = job.progress(RunPhase.EMBED, 100, 500, now_s=210.0)
    assert job.active is not None and job.active.eta_s(210.0) == 40.0


def test_progress__without_a_run() -> None:
    """Progress and the end of no run change nothing."""
    assert JobState().progress(RunPhase.SCAN, 1, 1, now_s=1.0) == JobState()
    assert JobState().close() == (JobState(), True)
    assert JobState().start(started_at="t", now_s=1.0) == JobState()
