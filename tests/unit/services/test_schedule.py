"""The worker's times: periods, tries that grow apart, and rest."""

from local_vector_search_mcp.services.schedule import FIRST_RETRY_S, GUARD_RETRY_S, PERIOD_S, TRIM_AFTER_S, Schedule


def test_period__comes_again_and_again() -> None:
    """Every ten minutes there is a look at everything; the first one is due at once."""
    schedule = Schedule()
    assert schedule.take_run(1.0)
    assert not schedule.take_run(PERIOD_S)
    assert schedule.take_run(PERIOD_S + 1.0)
    schedule.begin_period(2_000.0)
    assert not schedule.take_run(2_000.0 + PERIOD_S - 1)


def test_retry__grows_apart_up_to_a_period() -> None:
    """Each failure in a row waits twice as long, never longer than a period; success begins anew."""
    schedule = Schedule()
    schedule.begin_period(10**9)
    waits: list[float] = []
    for _ in range(7):
        schedule.retry_later(0.0)
        assert schedule.awaits_retry
        waits.append(next(float(now) for now in range(1_000) if schedule.take_run(float(now))))
        schedule.begin_period(10**9)
        assert not schedule.awaits_retry
    assert waits == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    schedule.retry_later(0.0)
    schedule.all_well()
    assert not schedule.awaits_retry
    schedule.retry_later(0.0)
    assert not schedule.take_run(FIRST_RETRY_S - 1)
    assert schedule.take_run(FIRST_RETRY_S)


def test_retry_in__a_given_time() -> None:
    """After a mass deletion that was held back there is another look in a minute."""
    schedule = Schedule()
    schedule.begin_period(0.0)
    schedule.retry_in(GUARD_RETRY_S, 5.0)
    assert not schedule.take_run(64.0)
    assert schedule.take_run(65.0)


def test_trim__after_rest() -> None:
    """Memory is given back once, when nothing was done for a while."""
    schedule = Schedule()
    assert not schedule.take_trim(99.0)
    schedule.has_worked(1.0)
    schedule.has_worked(3.0)
    assert not schedule.take_trim(3.0 + TRIM_AFTER_S - 0.1)
    assert schedule.take_trim(3.0 + TRIM_AFTER_S)
    assert not schedule.take_trim(99.0)
