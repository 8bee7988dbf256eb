"""Running the work of one call in a thread: progress while it lasts, an answer in time, and joining what goes on.

Clients give up on a call after a minute. A call that takes longer is answered with ``TIMEOUT`` in time, its work goes
on, and the same call made again waits for that work and returns its result.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from local_vector_search_mcp.errors import KnowledgeBaseError, TimedOut
from local_vector_search_mcp.server.results import json_text
from local_vector_search_mcp.server.toolspec import Answer

logger = logging.getLogger(__name__)

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
        self.cancelled = threading.Event()
        self._lock = threading.Lock()
        self._state: tuple[float, float | None, str | None] = (0.0, None, None)
        self._earlier = 0.0  # What the phases before this one have got done.
        self._sent: tuple[float, float | None, str | None] | None = None
        self._last_value = 0.0
        self._last_sent = time.monotonic()

    def report(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Take the newest state of the work. Work in phases begins to count anew; clients hear one count over all."""
        with self._lock:
            if done < self._state[0]:
                self._earlier += self._state[0]
            self._state = (done, total, message)

    async def send_if_due(self, send: SendProgress) -> None:
        """Send the state if it is new, or if the client has heard nothing for a while."""
        with self._lock:
            state, earlier = self._state, self._earlier
        now = time.monotonic()
        news = state != (self._sent or (0.0, None, None))
        if not news and now - self._last_sent < PROGRESS_EVERY_S:
            return
        done, total, message = state
        # The protocol wants every value to be larger than the one before.
        self._last_value = max(earlier + done, self._last_value + 0.001)
        self._sent, self._last_sent = state, now
        # A phase that has just begun may not know yet how much there is, and a total below the value would mislead.
        known_total = earlier + total if total and earlier + total >= self._last_value else None
        await send(self._last_value, known_total, message)


class _Work:
    """Work that goes on in a thread, whoever waits for it."""

    def __init__(self, future: asyncio.Future[Answer], progress: Progress) -> None:
        self.future = future
        self.progress = progress
        self.left_at = time.monotonic()


class CallRunner:
    """Runs calls in threads of its own (``threads``); remembers those that were answered before they had ended."""

    def __init__(self, *, answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self._answer_within_s = answer_within_s
        self.threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="tool")
        self._left: dict[str, _Work] = {}

    async def run(
        self,
        name: str,
        arguments: Mapping[str, Any],
        work: Callable[[Progress], Answer],
        send_progress: SendProgress | None,
        *,
        ends_when_cancelled: bool = False,
    ) -> Answer:
        """Do the work of a call, or join the same call that is still being worked on.

        A client that cancels stops waiting; the work goes on to its end unless ``ends_when_cancelled``.

        Raises:
            TimedOut: It is not done in time; it goes on.
        """
        running = self._join(name, arguments)
        if running is None:
            progress = Progress()
            future = asyncio.get_running_loop().run_in_executor(self.threads, work, progress)
            running = _Work(future, progress)
        try:
            done = await self._finish(running, send_progress)
        except asyncio.CancelledError:
            running.progress.cancelled.set()
            if ends_when_cancelled:
                running.future.add_done_callback(_log_crash)
                raise
            # The same call may come again at once; it joins as long as the work lasts. What it gave to nobody is then
            # forgotten: a file may have changed since.
            key = self._leave(name, arguments, running)
            running.future.add_done_callback(lambda _: self._left.pop(key, None))
            raise
        if done:
            return running.future.result()
        self._leave(name, arguments, running)
        raise TimedOut(
            f"{name} is still at work after {self._answer_within_s:.0f} s and goes on; make the same call again to "
            "get its result.",
            details={"state": "running"},
        )

    def close(self) -> None:
        """Take no more calls; what runs is left to end with the process."""
        self.threads.shutdown(wait=False, cancel_futures=True)

    async def _finish(self, running: _Work, send_progress: SendProgress | None) -> bool:
        """Wait for the work, telling the client that it goes on; false if it takes too long."""
        until = time.monotonic() + self._answer_within_s
        while True:
            left = max(until - time.monotonic(), 0.0)
            pause = min(left, _LOOK_EVERY_S) if send_progress is not None else left
            await asyncio.wait((running.future,), timeout=pause)
            if running.future.done():
                return True
            if time.monotonic() >= until:
                return False
            if send_progress is not None:
                await running.progress.send_if_due(send_progress)

    def _leave(self, name: str, arguments: Mapping[str, Any], running: _Work) -> str:
        key = _key(name, arguments)
        running.left_at = time.monotonic()
        running.future.add_done_callback(_log_crash)
        self._left[key] = running
        return key

    def _join(self, name: str, arguments: Mapping[str, Any]) -> _Work | None:
        if not self._left:
            return None
        now = time.monotonic()
        for key, work in list(self._left.items()):
            if work.future.done() and now - work.left_at > _KEEP_RESULT_S:
                del self._left[key]
        return self._left.pop(_key(name, arguments), None)


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    return json_text([name, arguments])


def _log_crash(future: asyncio.Future[Answer]) -> None:
    """Leave a trace of work that failed when nobody was waiting for it."""
    error = None if future.cancelled() else future.exception()
    if error is not None and not isinstance(error, KnowledgeBaseError):
        logger.error("a call failed after it was left", exc_info=error)
