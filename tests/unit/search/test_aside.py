"""Work in another thread gives its result, its error, or is done by whoever asks for it."""

import threading

import pytest

from local_vector_search_mcp.search.aside import MOST_THREADS, aside


def test_aside__another_thread_works() -> None:
    """The caller goes on, and has the result when it asks."""
    begun = threading.Event()

    def work() -> int:
        begun.set()
        return threading.get_ident()

    result = aside(work)
    assert begun.wait(20)
    assert result() != threading.get_ident()


def test_aside__errors_reach_the_caller() -> None:
    """What the work raises is raised where the result is asked for."""

    def work() -> int:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        aside(work)()


def test_aside__no_thread_is_free() -> None:
    """Nobody waits for the work of others: what has not begun is done at once."""
    go_on = threading.Event()
    begun = threading.Semaphore(0)

    def wait() -> bool:
        begun.release()
        return go_on.wait(20)

    others = [aside(wait) for _ in range(MOST_THREADS)]
    for _ in others:
        assert begun.acquire(timeout=20)
    assert aside(threading.get_ident)() == threading.get_ident()
    go_on.set()
    assert all(other() for other in others)
