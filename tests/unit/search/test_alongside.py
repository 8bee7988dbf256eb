"""Work beside the caller's own."""

import threading

import pytest

from local_vector_search_mcp.search.alongside import Alongside


def test_alongside__gives_the_result() -> None:
    """The work runs in another thread and its result comes back."""
    with Alongside(threading.get_ident) as beside:
        here = threading.get_ident()
    assert beside.result() != here


def test_alongside__raises_where_asked() -> None:
    """An error of the work is raised where the result is asked for, and nowhere else."""

    def fail() -> int:
        raise KeyError("x")

    with Alongside(fail) as beside:
        pass
    with pytest.raises(KeyError):
        beside.result()


def test_alongside__ends_with_the_block() -> None:
    """Leaving the block by an error waits for the work too."""
    done = threading.Event()
    go_on = threading.Event()

    def work() -> None:
        go_on.wait(10)
        done.set()

    with pytest.raises(ZeroDivisionError), Alongside(work):
        go_on.set()
        raise ZeroDivisionError
    assert done.is_set()
