"""Work that is done in another thread while its caller goes on.

SQLite and numpy let other threads run meanwhile, so two branches of a search take little longer than one.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

Result = TypeVar("Result")

MOST_THREADS: Final = 4
"""So many pieces of work go on at the same time."""


def aside(work: Callable[[], Result]) -> Callable[[], Result]:
    """Begin to work.

    Returns:
        What waits for the result. Where no thread has been free, it does the work itself.
    """
    future = _threads().submit(work)

    def result() -> Result:
        return work() if future.cancel() else future.result()

    return result


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="search")
