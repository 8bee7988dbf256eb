"""Runs under all their names: asked for here, joined, or asked of another process."""

from local_vector_search_mcp.services.job_state import RunOutcome, RunPhase, RunRequest, RunResult, RunScope
from local_vector_search_mcp.services.run_ledger import RunLedger, RunProgress


def result(run_id: str) -> RunResult:
    return RunResult(run_id=run_id, outcome=RunOutcome.SUCCEEDED)


def test_request__a_name_means_one_run() -> None:
    """The same name gives the same run, while it waits, goes on and has ended."""
    ledger = RunLedger(lambda: 0.0)
    assert not ledger.request(RunRequest(), name="one").joined

    def check_known() -> None:
        again = ledger.request(RunRequest(), name="one")
        assert (again.run_id, again.joined) == ("one", True)

    check_known()
    ledger.start(started_at="t")
    check_known()
    ledger.finish(result("one"))
    check_known()
    assert ledger.job.queued is None


def test_result__under_every_name() -> None:
    """Whoever joined finds the result under the name that was given to it."""
    ledger = RunLedger(lambda: 0.0)
    ledger.request(RunRequest(), name="one")
    ledger.start(started_at="t")
    assert ledger.request(RunRequest(), name="two").run_id == "one"
    assert ledger.result("two") is None
    ledger.finish(result("one"))
    assert ledger.result("one") == ledger.result("two") == result("one")
    assert ledger.result("three") is None
    assert dict(ledger.entry().aliases) == {"two": "one"}


def test_entry__shows_the_active_run() -> None:
    """Others are shown what goes on, and how earlier runs ended."""
    now = [0.0]
    ledger = RunLedger(lambda: now[0])
    assert ledger.running() is None
    assert not ledger.is_asked()
    ledger.request(RunRequest(scope=RunScope.ALL, force=True), name="one")
    ledger.start(started_at="t")
    ledger.progress(RunPhase.PARSE, 0, 10)
    now[0] = 2.0
    ledger.progress(RunPhase.PARSE, 5, 10)
    assert ledger.is_asked()
    assert ledger.running() == RunProgress(phase=RunPhase.PARSE, processed=5, total=10, eta_seconds=2)
    ledger.embedding_progress(7, 9)  # Not yet: the rows are still being written.
    entry = ledger.entry()
    assert (entry.run_id, entry.force, entry.phase, entry.processed, entry.total) == (
        "one",
        True,
        RunPhase.PARSE,
        5,
        10,
    )
    ledger.progress(RunPhase.EMBED, 0, 0)
    ledger.embedding_progress(7, 9)
    assert ledger.entry().processed == 7
    ledger.finish(result("one"))
    assert (ledger.entry().run_id, ledger.entry().results) == ("", (("one", result("one")),))


def test_sent__runs_of_another_process() -> None:
    """Runs asked of another process are known until it has ended them, or until they are this one's own."""
    ledger = RunLedger(lambda: 0.0)
    for name in ("one", "two"):
        ledger.sent(name, RunRequest())
    ledger.learn("one", result("else"))
    assert ledger.result("one") == result("else")
    assert (ledger.was_sent("one"), ledger.was_sent("two")) == (False, True)
    assert ledger.take_sent() == {"two": RunRequest()}
    assert ledger.take_sent() == {}


def test_close__waits_for_those_who_joined() -> None:
    """Who joins keeps the run from ending before it has looked once more; who comes later gets a run of its own."""
    ledger = RunLedger(lambda: 0.0)
    assert ledger.close()
    ledger.request(RunRequest(), name="one")
    ledger.start(started_at="t")
    ledger.request(RunRequest(), name="two")
    assert not ledger.close()
    assert ledger.close()
    assert ledger.request(RunRequest(), name="three").run_id == "three"


def test_ledger__forgets_old_runs() -> None:
    """Only the latest results are kept."""
    ledger = RunLedger(lambda: 0.0)
    for number in range(100):
        ledger.request(RunRequest(), name=str(number))
        ledger.start(started_at="t")
        ledger.finish(result(str(number)))
    assert ledger.result("0") is None
    assert ledger.result("99") is not None
