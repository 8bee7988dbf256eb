"""Standard input and output as lines of bytes for an event loop, with the standard descriptors closed to the protocol.

Knows nothing of what the lines mean.
"""

import asyncio
import os
import stat
import sys
import threading
from collections import deque
from typing import Final

import anyio

MAX_LINE_BYTES: Final = 64 << 20
_QUEUED_LINES = 64
_CHUNK = 1 << 16


def take_standard_streams() -> tuple[int, int]:
    """Move the protocol to descriptors of its own: the read side and the write side.

    Afterwards descriptor 0 is empty and descriptor 1 is standard error, for this process, its native libraries and
    its children.
    """
    read_fd, write_fd = os.dup(0), os.dup(1)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    os.close(devnull)
    os.dup2(2, 1)
    return read_fd, write_fd


class LineWriter:
    """Writes whole lines: once begun, a line is written to its end even if the writer is cancelled."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = anyio.Lock()
        self._polls = _is_pipe(fd)
        if self._polls:
            os.set_blocking(fd, False)

    async def write(self, line: bytes) -> None:
        """Write a line and its ending.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more.
        """
        async with self._lock:
            with anyio.CancelScope(shield=True):
                await self._write_all(line + b"\n")

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


class LineReader(asyncio.Protocol):
    """Cuts the input into lines; a line that is too long is given as its first part."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False
        self._queue: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._transport: asyncio.ReadTransport | None = None
        self._paused = False

    async def open(self, fd: int) -> None:
        """Begin to read."""
        loop = asyncio.get_running_loop()
        if _is_pipe(fd, terminals=True):
            source = os.fdopen(fd, "rb", buffering=0)
            self._transport, _ = await loop.connect_read_pipe(lambda: self, source)
        else:
            # Files, and all of Windows, cannot be waited for.
            threading.Thread(target=self._read_blocking, args=(fd, loop), daemon=True, name="stdin").start()

    async def next_line(self) -> bytes | None:
        """The next line without its ending; None when the input has ended."""
        while not self._queue:
            if self._ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        line = self._queue.popleft()
        if self._paused and self._transport is not None and len(self._queue) < _QUEUED_LINES // 2:
            self._paused = False
            self._transport.resume_reading()
        return line

    def close(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Cut what has come into lines."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._end_line(data[start:end])
            start = end + 1
        if not self._skipping:
            self._rest += data[start:]
            if len(self._rest) > MAX_LINE_BYTES:
                self._skipping = True
                self._put(bytes(self._rest[:_CHUNK]))
                self._rest.clear()

    def eof_received(self) -> None:
        """The other side has closed; a last line without its ending still counts."""
        if self._rest and not self._skipping:
            self._put(bytes(self._rest))
            self._rest.clear()
        self._ended = True
        self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The pipe is gone."""
        self.eof_received()

    def _end_line(self, tail: bytes) -> None:
        if self._skipping:
            self._skipping = False
            return
        self._rest += tail
        line = bytes(self._rest)
        self._rest.clear()
        self._put(line)

    def _put(self, line: bytes) -> None:
        if not line.strip():
            return
        self._queue.append(line)
        self._arrived.set()
        if len(self._queue) > _QUEUED_LINES and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _read_blocking(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        while chunk := os.read(fd, _CHUNK):
            asyncio.run_coroutine_threadsafe(self._take_when_room(chunk), loop).result()
        loop.call_soon_threadsafe(self.eof_received)

    async def _take_when_room(self, chunk: bytes) -> None:
        self.data_received(chunk)
        while len(self._queue) > _QUEUED_LINES:
            await asyncio.sleep(0.01)


def _is_pipe(fd: int, *, terminals: bool = False) -> bool:
    """Whether a descriptor can be waited for: a pipe or socket (or a terminal), and not on Windows."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (terminals and os.isatty(fd))
