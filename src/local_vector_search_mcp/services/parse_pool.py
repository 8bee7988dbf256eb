"""Parsing in other processes, so that a run uses every core and searches stay responsive.

The workers are plain child processes that speak over their own pipes. They end when the pipe from the parent ends,
whatever became of the parent, and never see the protocol's standard streams. A document that brings a worker down
costs one retry and is then reported; where no process can be started, documents are parsed in this one.
"""

import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias

from local_vector_search_mcp.services.indexing import IndexingSettings, ParsedDocument, parse_documents
from local_vector_search_mcp.services.parse_worker import read_message, write_message

_LOG = logging.getLogger(__name__)

# Longer than any document may take; only a parser that never ends runs into it.
_LONGEST_BATCH_S: Final = 300.0
_GLANCE_S: Final = 0.1
# A process has one batch at hand besides the one that it parses, and more are read meanwhile, so that none waits
# while rows are written.
_BATCHES_SENT: Final = 2
_BATCHES_AHEAD: Final = 4
_PIPE_BYTES: Final = 1024 * 1024
# Compressing a chunk takes and leaves a quarter of a megabyte. glibc gives that back to the system each time, and
# taking it anew costs as much as compressing. Other allocators do not know these names.
_KEEP_MEMORY: Final = {"MALLOC_TRIM_THRESHOLD_": str(16 << 20), "MALLOC_MMAP_THRESHOLD_": str(4 << 20)}
_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[2]
# -P keeps the working directory, which is not trusted, out of the import path.
_START: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from local_vector_search_mcp.services.parse_worker import main; main()"
)


@dataclass(frozen=True, slots=True)
class ParseJob:
    """One document to parse."""

    path: str
    data: bytes


_Batch: TypeAlias = Sequence[ParseJob]
_Answer: TypeAlias = bytes | list[ParsedDocument]


class ParsePool:
    """Worker processes that live as long as one run.

    Args:
        settings: How documents are indexed.
        workers: How many processes.
    """

    def __init__(self, settings: IndexingSettings, *, workers: int) -> None:
        self._tasks: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._workers = [_Worker(settings, self._stopping) for _ in range(workers)]
        self._threads = [
            threading.Thread(target=worker.serve, args=(self._tasks, self._results), name="parse-pool", daemon=True)
            for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def parse(self, batches: Iterable[_Batch]) -> Iterator[list[ParsedDocument]]:
        """Parse batches as they come; results come in the order in which they are done.

        Only a few batches are taken ahead, so that memory stays bounded. While a long document is parsed, an empty
        result comes now and then, so that whoever waits can do what is due.
        """
        ahead = _BATCHES_AHEAD * len(self._workers)
        waiting = 0
        for batch in batches:
            self._tasks.put(batch)
            waiting += 1
            while waiting >= ahead:
                answer = self._next()
                yield answer or []
                waiting -= answer is not None
        while waiting:
            answer = self._next()
            yield answer or []
            waiting -= answer is not None

    def _next(self) -> list[ParsedDocument] | None:
        """The next result; None where there is none yet."""
        for worker in self._workers:
            worker.end_if_overdue()
        try:
            answer = self._results.get(timeout=_GLANCE_S)
        except queue.Empty:
            return None
        # Unpacked here and not where it was received, as each thread would keep memory of its own for it.
        return _unpacked(answer)

    def close(self) -> None:
        """End the processes, in the middle of their work if need be."""
        self._stopping.set()
        for _ in self._threads:
            self._tasks.put(None)
        for worker in self._workers:
            worker.kill()
        for thread in self._threads:
            thread.join(timeout=1.0)


class _Worker:
    """One child process, started when it is first needed and again after it broke down.

    The next batch is sent before the last one is answered, so that the process need not wait until this process's
    threads have their turn.
    """

    def __init__(self, settings: IndexingSettings, stopping: threading.Event) -> None:
        self._settings = settings
        self._stopping = stopping
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._sent: deque[_Batch] = deque()
        self._busy_since: float | None = None

    def serve(self, tasks: "queue.SimpleQueue[_Batch | None]", results: "queue.SimpleQueue[_Answer]") -> None:
        """Answer batches until None comes."""
        try:
            while not self._stopping.is_set():
                while len(self._sent) < _BATCHES_SENT:
                    try:
                        batch = tasks.get(block=not self._sent)
                    except queue.Empty:
                        break
                    if batch is None:
                        return
                    self._sent.append(batch)
                    if not self._send(batch):
                        break
                for answer in self._answers():
                    results.put(answer)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the process at once."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _end(process)

    def end_if_overdue(self) -> None:
        """End the process where it is at work on one batch for longer than any may take."""
        since = self._busy_since
        if since is not None and time.monotonic() - since > _LONGEST_BATCH_S:
            with self._lock:
                if self._process is not None:
                    self._process.kill()

    def _answers(self) -> "Iterator[_Answer]":
        """The answer to the first batch that was sent; to all of them, where the process is gone."""
        is_suspect = self._process is not None
        answer = self._receive()
        if answer is not None:
            self._sent.popleft()
            yield answer
            return
        lost, self._sent = self._sent, deque()
        for batch in lost:
            yield self._each_alone(batch) if is_suspect else self._parse(batch)
            is_suspect = False

    def _parse(self, batch: _Batch) -> "_Answer":
        """Parse a batch with nothing else sent; a document that no process survives is reported as failed."""
        answer = self._ask(batch)
        return self._each_alone(batch) if answer is None else answer

    def _each_alone(self, batch: _Batch) -> list[ParsedDocument]:
        found: list[ParsedDocument] = []
        for job in batch:
            if self._stopping.is_set():
                break
            answer = self._ask([job])
            if answer is None:
                found.append(ParsedDocument.failed(job.path, "parsing it ended the parser process"))
            else:
                found.extend(_unpacked(answer))
        return found

    def _ask(self, batch: _Batch) -> "_Answer | None":
        """The answer to a batch, parsed in this process where there is no other; None where the process broke down."""
        if self._running() is None:
            return [] if self._stopping.is_set() else parse_documents(_pairs(batch), self._settings)
        return self._receive() if self._send(batch) else None

    def _send(self, batch: _Batch) -> bool:
        """Send a batch; False where there is no process, or not any more."""
        process = self._running()
        if process is None:
            return False
        # One that lets none of its threads run takes nothing in.
        self._busy_since = time.monotonic()
        try:
            write_message(_pipe(process.stdin), pickle.dumps(_pairs(batch), pickle.HIGHEST_PROTOCOL))
        except (OSError, ValueError):
            self.kill()
            return False
        finally:
            self._busy_since = None
        return True

    def _receive(self) -> bytes | None:
        """The process's next answer, packed as it came; None where it broke down, or there is none."""
        process = self._process
        if process is None:
            return None
        self._busy_since = time.monotonic()
        try:
            return read_message(_pipe(process.stdout))
        except (OSError, EOFError, ValueError):
            self.kill()
            return None
        finally:
            self._busy_since = None

    def _running(self) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._stopping.is_set():
                return None
            if self._process is None:
                self._process = _start(self._settings)
            return self._process


def _start(settings: IndexingSettings) -> "subprocess.Popen[bytes] | None":
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, str(_PACKAGE_PARENT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            creationflags=flags,
            env={**os.environ, **_KEEP_MEMORY},
        )
        _widen(_pipe(process.stdout))
        write_message(_pipe(process.stdin), pickle.dumps(settings))
    except OSError as error:
        _LOG.warning("No parser process could be started (%s); parsing in the server itself.", error.strerror)
        return None
    return process


def _widen(pipe: "IO[bytes]") -> None:
    """Let a whole answer stand in the pipe, so that the process goes on at once; where the system lets us."""
    if sys.platform == "linux":
        # Loaded here because other systems lack it.
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue  # Unsent bytes of a process that is gone.


def _pipe(pipe: "IO[bytes] | None") -> "IO[bytes]":
    if pipe is None:
        raise ValueError("the process was started without this pipe")
    return pipe


def _unpacked(answer: "_Answer") -> list[ParsedDocument]:
    if isinstance(answer, list):
        return answer
    unpacked: list[ParsedDocument] = pickle.loads(answer)
    return unpacked


def _pairs(batch: _Batch) -> list[tuple[str, bytes]]:
    return [(job.path, job.data) for job in batch]
