"""Running the work of one call in a thread: progress while it lasts, an answer in time, and joining what goes on.

Clients give up on a call after a minute. A call that takes longer is answered with ``TIMEOUT`` in time, its work goes
on, and the same call made again waits for that work and returns its result.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from local_vector_search_mcp.errors import TimedOut
from local_vector_search_mcp.server.results import json_text
from local_vector_search_mcp.server.toolspec import Answer

ANSWER_WITHIN_S = 45.0
WORK_WAITS_S = 40.0  # What services are told, so that their own state comes before ours.
PROGRESS_EVERY_S = 4.0
_LOOK_EVERY_S = 0.25
_KEEP_RESULT_S = 900.0
_MAX_THREADS = 32

SendProgress = Callable[[float, float | None, str | None], Awaitable[None]]


class Progress:
    """What a call has got done: written from its thread, sent from the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: tuple[float, float | None, str | None] = (0.0, None, None)
        self._sent: tuple[float, float | None, str | None] | None = None
        self._last_value = 0.0
        self._last_sent = time.monotonic()

    def report(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Take the newest state of the work."""
        with self._lock:
            self._state = (done, total, message)

    async def send_if_due(self, send: SendProgress) -> None:
        """Send the state if it is new, or if the client has heard nothing for a while."""
        with self._lock:
            state = self._state
        now = time.monotonic()
        news = state != (self._sent or (0.0, None, None))
        if not news and now - self._last_sent < PROGRESS_EVERY_S:
            return
        done, total, message = state
        # The protocol wants every value to be larger than the one before.
        self._last_value = max(done, self._last_value + 0.001)
        self._sent, self._last_sent = state, now
        await send(self._last_value, total, message)


class CallRunner:
    """Runs calls in threads of its own (``threads``); remembers those that were answered before they had ended."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="tool")
        self._running_on: dict[str, tuple[asyncio.Future[Answer], float]] = {}

    async def run(
        self,
        name: str,
        arguments: Mapping[str, Any],
        work: Callable[[Progress], Answer],
        send_progress: SendProgress | None,
    ) -> Answer:
        """Do the work of a call, or join the same call that is still being worked on.

        A client that cancels stops waiting; the work goes on to its end.

        Raises:
            TimedOut: It is not done in time; it goes on.
        """
        progress = Progress()
        key = json_text([name, arguments]) if self._running_on else ""
        future = self._join(key)
        if future is None:
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self.threads, work, progress)
        if await _finish(future, progress, send_progress):
            return future.result()
        self._running_on[json_text([name, arguments])] = (future, time.monotonic())
        raise TimedOut(
            f"{name} is still at work after {ANSWER_WITHIN_S:.0f} s and goes on; make the same call again to get its "
            "result.",
            details={"state": "running"},
        )

    def close(self) -> None:
        """Take no more calls; what runs is left to end with the process."""
        self.threads.shutdown(wait=False, cancel_futures=True)

    def _join(self, key: str) -> asyncio.Future[Answer] | None:
        now = time.monotonic()
        for stale in [
            k for k, (done, since) in self._running_on.items() if done.done() and now - since > _KEEP_RESULT_S
        ]:
            self._running_on.pop(stale)
        found = self._running_on.pop(key, None)
        return found[0] if found else None


async def _finish(future: asyncio.Future[Answer], progress: Progress, send_progress: SendProgress | None) -> bool:
    """Wait for the work, telling the client that it goes on; false if it takes too long."""
    until = time.monotonic() + ANSWER_WITHIN_S
    while True:
        left = until - time.monotonic()
        pause = min(left, _LOOK_EVERY_S) if send_progress is not None else left
        await asyncio.wait((future,), timeout=max(pause, 0.0))
        if future.done():
            return True
        if time.monotonic() >= until:
            return False
        if send_progress is not None:
            await progress.send_if_due(send_progress)
