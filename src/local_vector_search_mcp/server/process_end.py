"""Ending the process: on signals, with its parent, and in time whatever hangs."""

import asyncio
import functools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

logger = logging.getLogger(__name__)

# From the moment that an end is known: the end of the input, a signal, the death of the parent.
END_WITHIN_S = 1.4
_PARENT_EVERY_S = 0.5


def run_and_leave(serving: Callable[[], Coroutine[Any, Any, None]], *, with_parent: bool) -> NoReturn:
    """Serve until that ends by itself, a signal comes or the parent dies; then leave the process.

    Leaving is immediate: worker threads, and what they wait for, are not joined.

    Args:
        serving: What to run; it is cancelled to end it.
        with_parent: Whether the death of the parent process is an end too.
    """
    code = 0
    try:
        asyncio.run(_serve_until_end(serving, with_parent=with_parent))
    except Exception:
        logger.exception("the server failed")
        code = 1
    sys.stderr.flush()
    os._exit(code)


def end_in_time() -> None:
    """The process is about to end: see that it does, whatever hangs on the way."""
    threading.Thread(target=_leave, daemon=True, name="exit").start()


async def _serve_until_end(serving: Callable[[], Coroutine[Any, Any, None]], *, with_parent: bool) -> None:
    ended = asyncio.Event()
    _end_on_signals(ended)
    work = asyncio.create_task(serving())
    waiting = asyncio.create_task(ended.wait())
    watching = asyncio.create_task(_watch_parent(ended)) if with_parent else waiting
    await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
    end_in_time()
    for task in (work, waiting, watching):
        task.cancel()
    (outcome,) = await asyncio.gather(work, return_exceptions=True)
    if isinstance(outcome, Exception):
        raise outcome


def _end_on_signals(ended: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, ended.set)
        except NotImplementedError:  # Windows
            signal.signal(number, functools.partial(_end_from_handler, loop, ended))


def _end_from_handler(loop: asyncio.AbstractEventLoop, ended: asyncio.Event, *_: object) -> None:
    loop.call_soon_threadsafe(ended.set)


async def _watch_parent(ended: asyncio.Event) -> None:
    """A killed client cannot always close its end: another process may hold the pipe open."""
    if sys.platform == "win32":
        return
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_EVERY_S)
    logger.info("the parent process has ended")
    ended.set()


def _leave() -> None:
    time.sleep(END_WITHIN_S)
    os._exit(0)
