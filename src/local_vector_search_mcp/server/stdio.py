"""Serving MCP over standard input and output, with streams of our own.

Nothing but protocol goes to standard output: while this serves, descriptor 1 is standard error and descriptor 0 is
empty, for native libraries and child processes too. Every line is answered, even one that is no message. The end of
input, SIGTERM, SIGINT and the death of the parent all end the process cleanly and soon.
"""

import asyncio
import json
import logging
import os
import re
import signal
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from local_vector_search_mcp.server.door import KnowledgeBaseServer

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 << 20
_QUEUED_LINES = 64
_FINISH_AFTER_EOF_S = 1.0
_CLOSE_WITHIN_S = 1.5
_PARENT_EVERY_S = 0.5
_CHUNK = 1 << 16
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]){0,200}"|-?\d{1,18}(?=\s*[,}]))')
# These requests last as long as the connection; nobody waits for their answer.
_LASTING = frozenset({"subscriptions/listen"})


def serve(server: KnowledgeBaseServer) -> None:
    """Serve until the input ends or the process is told to end, then leave the process.

    Leaving is immediate: worker threads and what they wait for are not joined.
    """
    code = 0
    try:
        asyncio.run(_serve(server))
    except Exception:
        logger.exception("the server failed")
        code = 1
    sys.stderr.flush()
    os._exit(code)


async def _serve(server: KnowledgeBaseServer) -> None:
    read_fd, write_fd = _take_standard_streams()
    wire = _Wire(write_fd)
    lines = _Lines(wire)
    ended = asyncio.Event()
    _end_on_signals(ended)
    serving = asyncio.create_task(_run(server, lines, wire))
    await lines.open(read_fd)
    watching = asyncio.create_task(_watch_parent(ended))
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
    # From here on the process ends in time, whatever hangs.
    _exit_later(_CLOSE_WITHIN_S)
    for task in (serving, waiting, watching):
        task.cancel()
    results = await asyncio.gather(serving, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _run(server: KnowledgeBaseServer, lines: "_Lines", wire: "_Wire") -> None:
    low = server._mcp_server  # pyright: ignore[reportPrivateUsage]
    async with server._lifespan_manager():  # pyright: ignore[reportPrivateUsage]
        await low.run(lines, wire, low.create_initialization_options())


def _take_standard_streams() -> tuple[int, int]:
    """Move the protocol to descriptors of its own, and close the standard ones to it."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    os.close(devnull)
    os.dup2(2, 1)
    return read_fd, write_fd


def _end_on_signals(ended: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, ended.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(ended.set))


async def _watch_parent(ended: asyncio.Event) -> None:
    """End when the process that started this one is gone; a killed client cannot close its pipes in every setup."""
    if sys.platform == "win32":
        return
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_EVERY_S)
    ended.set()


def _exit_later(seconds: float) -> None:
    def leave() -> None:
        time.sleep(seconds)
        os._exit(0)

    threading.Thread(target=leave, daemon=True, name="exit").start()


class _Wire:
    """The write side: one message a line, whole lines only."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = anyio.Lock()
        self._polls = _is_pipe(fd)
        if self._polls:
            os.set_blocking(fd, False)
        self.answered: Callable[[JSONRPCMessage], None] = lambda _: None

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; once begun, it is written to its end even if the sender is cancelled."""
        await self.write(item.message)

    async def write(self, message: JSONRPCMessage) -> None:
        """Write a message."""
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._write_all(data)
        self.answered(message)

    async def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                if self._polls:
                    written = os.write(self._fd, rest)
                else:
                    written = await anyio.to_thread.run_sync(os.write, self._fd, rest)
            except BlockingIOError:
                await anyio.wait_writable(self._fd)
                continue
            except OSError as error:
                raise anyio.BrokenResourceError from error
            rest = rest[written:]

    async def aclose(self) -> None:
        """Nothing to do: the descriptor closes with the process."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class _Lines(asyncio.Protocol):
    """The read side: cuts the input into lines and gives each as a message, or answers it where it is none."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire
        self._rest = bytearray()
        self._skipping = False
        self._queue: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._transport: asyncio.ReadTransport | None = None
        self._paused = False
        self._open_requests: set[Any] = set()
        self._all_answered = asyncio.Event()
        wire.answered = self._note_answer

    async def open(self, fd: int) -> None:
        """Begin to read."""
        loop = asyncio.get_running_loop()
        if _is_pipe(fd, terminals=True):
            source = os.fdopen(fd, "rb", buffering=0)
            self._transport, _ = await loop.connect_read_pipe(lambda: self, source)
        else:
            # Files, and all of Windows, cannot be waited for.
            threading.Thread(target=self._read_blocking, args=(fd, loop), daemon=True, name="stdin").start()

    def _read_blocking(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        while chunk := os.read(fd, _CHUNK):
            asyncio.run_coroutine_threadsafe(self._take_when_room(chunk), loop).result()
        loop.call_soon_threadsafe(self.eof_received)

    async def _take_when_room(self, chunk: bytes) -> None:
        self.data_received(chunk)
        while len(self._queue) > _QUEUED_LINES:
            await asyncio.sleep(0.01)

    # The side of the pipe.

    def data_received(self, data: bytes) -> None:
        """Cut what has come into lines."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._line_ended(data[start:end])
            start = end + 1
        if not self._skipping:
            self._rest += data[start:]
            if len(self._rest) > MAX_LINE_BYTES:
                self._skipping = True
                self._put(bytes(self._rest[:_CHUNK]))
                self._rest.clear()

    def _line_ended(self, tail: bytes) -> None:
        if self._skipping:
            self._skipping = False
            return
        self._rest += tail
        line = bytes(self._rest)
        self._rest.clear()
        self._put(line)

    def _put(self, line: bytes) -> None:
        self._queue.append(line)
        self._arrived.set()
        if len(self._queue) > _QUEUED_LINES and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """The client has closed its end; a last line without its ending still counts."""
        if self._rest and not self._skipping:
            self._put(bytes(self._rest))
            self._rest.clear()
        self._ended = True
        self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The pipe is gone."""
        self.eof_received()

    # The side of the server.

    async def receive(self) -> SessionMessage:
        """The next message.

        Raises:
            anyio.EndOfStream: The input has ended, and what was asked has been answered or has had time to be.
        """
        while True:
            while not self._queue:
                if self._ended:
                    await self._let_answers_out()
                    raise anyio.EndOfStream
                self._arrived.clear()
                await self._arrived.wait()
            line = self._queue.popleft()
            if self._paused and self._transport is not None and len(self._queue) < _QUEUED_LINES // 2:
                self._paused = False
                self._transport.resume_reading()
            if not line.strip():
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                await self._refuse(line)
                continue
            if isinstance(message, JSONRPCRequest) and message.method not in _LASTING:
                self._open_requests.add(message.id)
            return SessionMessage(message)

    async def _refuse(self, line: bytes) -> None:
        error = ErrorData(code=PARSE_ERROR, message="Parse error: the line is no JSON-RPC message")
        try:
            await self._wire.write(JSONRPCError(jsonrpc="2.0", id=request_id_of(line), error=error))
        except anyio.BrokenResourceError:
            logger.debug("the client is gone; a line that is no message stays unanswered")

    def _note_answer(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._open_requests.discard(message.id)
            if not self._open_requests:
                self._all_answered.set()

    async def _let_answers_out(self) -> None:
        """Let calls end that a client made right before it closed its end, as a script does."""
        if self._open_requests:
            self._all_answered.clear()
            with anyio.move_on_after(_FINISH_AFTER_EOF_S):
                await self._all_answered.wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def request_id_of(line: bytes) -> str | int | None:
    """The id of a request that could not be read, as far as it can be told."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        # The id is usually first; one inside the arguments would come after "params".
        before = line.partition(b'"params"')[0]
        found = _ID.search(before) or _ID.search(line[-1000:])
        return None if found is None else _usable_id(json.loads(found[1]))
    return _usable_id(parsed.get("id")) if isinstance(parsed, dict) else None


def _usable_id(value: Any) -> str | int | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return None
    elif abs(value) >= 1 << 63:
        return None
    return value


def _is_pipe(fd: int, *, terminals: bool = False) -> bool:
    """Whether a descriptor can be waited for: a pipe or socket (or a terminal), and not on Windows."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (terminals and os.isatty(fd))
