"""Book jobs: work that goes on in a thread while calls come and go; the same call joins it and takes its result."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from local_vector_search_mcp.errors import Busy

R = TypeVar("R")

_KEEP_S: Final = 900.0
_LOOK_S: Final = 0.25
_HEARTBEAT_S: Final = 4.0

Report = Callable[[float, str], None]


@dataclass(slots=True, kw_only=True)
class Job(Generic[R]):
    """One piece of work: its progress, and in the end its result or its error."""

    key: str
    cancel: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    progress: float = 0.0
    message: str = "waiting"
    result: R | None = None
    error: BaseException | None = None
    waiting: int = 0
    left_at: float = 0.0

    def report(self, progress: float, message: str) -> None:
        """Say how far it is; never goes back."""
        self.progress = max(self.progress, progress)
        self.message = message


class JobBoard(Generic[R]):
    """The jobs of a service by key; one works at a time, because each of them takes the machine."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[str, Job[R]] = {}
        self._turn = threading.Semaphore(1)
        self._closed = False

    def join(self, key: str, work: Callable[[Job[R]], R]) -> Job[R]:
        """The job of a key: the one that runs or whose result nobody has taken yet, else a new one.

        Raises:
            Busy: The board is closed.
        """
        with self._lock:
            if self._closed:
                raise Busy("The server is ending; make the call again when it runs.")
            now = self._clock()
            for old in [job for job in self._jobs.values() if job.done.is_set() and now - job.left_at > _KEEP_S]:
                del self._jobs[old.key]
            job = self._jobs.get(key)
            if job is None or job.cancel.is_set():
                job = self._jobs[key] = Job(key=key)
                thread = threading.Thread(target=self._run, args=(job, work), name=self._name, daemon=True)
                thread.start()
            job.waiting += 1
            return job

    def wait(self, job: Job[R], *, seconds: float, report: Report, cancelled: Callable[[], bool]) -> bool:
        """Wait for a job, passing its progress on; whether it is done.

        The last waiter that is cancelled ends the job.
        """
        until = self._clock() + seconds
        told = (-1.0, "")
        told_at = 0.0
        try:
            while not job.done.wait(min(_LOOK_S, max(0.0, until - self._clock()))):
                now = self._clock()
                state = (job.progress, job.message)
                if state != told or now - told_at >= _HEARTBEAT_S:
                    report(*state)
                    told, told_at = state, now
                if cancelled():
                    self._leave(job, cancel=True)
                    return False
                if now >= until:
                    self._leave(job, cancel=False)
                    return False
        except BaseException:
            self._leave(job, cancel=False)
            raise
        with self._lock:
            job.waiting -= 1
            if self._jobs.get(job.key) is job and not job.waiting:
                del self._jobs[job.key]
        return True

    def close(self) -> None:
        """Cancel everything that runs and wait a moment for it to end."""
        with self._lock:
            self._closed = True
            jobs = list(self._jobs.values())
        for job in jobs:
            job.cancel.set()
        for job in jobs:
            job.done.wait(1.0)

    def _leave(self, job: Job[R], *, cancel: bool) -> None:
        with self._lock:
            job.waiting -= 1
            job.left_at = self._clock()
            if cancel and not job.waiting:
                job.cancel.set()

    def _run(self, job: Job[R], work: Callable[[Job[R]], R]) -> None:
        with self._turn:
            try:
                job.result = work(job)
            except BaseException as error:  # noqa: BLE001 (raised again in the thread of whoever takes the result)
                job.error = error
            finally:
                job.left_at = self._clock()
                job.done.set()
