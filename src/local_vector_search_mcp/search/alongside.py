"""Alongside: one piece of work in a thread beside the caller's own."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Alongside(Generic[Result]):
    """Work that goes on while the ``with`` block runs. Leaving the block waits for its end.

    Args:
        work: Called once, in a thread of its own.
    """

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="alongside", daemon=True)

    def __enter__(self) -> "Alongside[Result]":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.join()

    def result(self) -> Result:
        """What the work gave, once it has ended. What it raised is raised here."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001  (raised again where the result is asked for)
            self._error = error
