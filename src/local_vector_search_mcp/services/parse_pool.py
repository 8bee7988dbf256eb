"""Parsing in other processes, so that a run uses every core and searches stay responsive.

The workers are plain child processes that speak over their own pipes. They end when the pipe from the parent ends,
whatever became of the parent, and never see the protocol's standard streams. A document that brings a worker down
costs one retry and is then reported; where no process can be started, documents are parsed in this one.
"""

import logging
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from local_vector_search_mcp.services.indexing import IndexingSettings, ParsedDocument, parse_documents
from local_vector_search_mcp.services.parse_worker import read_message, write_message

_LOG = logging.getLogger(__name__)

# Longer than any document may take; only a parser that never ends runs into it.
_LONGEST_BATCH_S: Final = 300.0
_GLANCE_S: Final = 0.1
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


class ParsePool:
    """Worker processes that live as long as one run.

    Args:
        settings: How documents are indexed.
        workers: How many processes.
    """

    def __init__(self, settings: IndexingSettings, *, workers: int) -> None:
        self._settings = settings
        self._tasks: queue.SimpleQueue[Sequence[ParseJob] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[bytes | list[ParsedDocument]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._workers = [_Worker(settings, self._stopping) for _ in range(workers)]
        self._threads = [
            threading.Thread(target=self._serve, args=(worker,), name="parse-pool", daemon=True)
            for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def parse(self, batches: Iterable[Sequence[ParseJob]]) -> Iterator[list[ParsedDocument]]:
        """Parse batches as they come; results come in the order in which they are done.

        Only a few batches are taken ahead, so that memory stays bounded. While a long document is parsed, an empty
        result comes now and then, so that whoever waits can do what is due.
        """
        ahead = 2 * len(self._workers)
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
        try:
            answer = self._results.get(timeout=_GLANCE_S)
        except queue.Empty:
            return None
        if isinstance(answer, bytes):
            # Unpacked here and not where it was received, as each thread would keep memory of its own for it.
            unpacked: list[ParsedDocument] = pickle.loads(answer)
            return unpacked
        return answer

    def close(self) -> None:
        """End the processes, in the middle of their work if need be."""
        self._stopping.set()
        for _ in self._threads:
            self._tasks.put(None)
        for worker in self._workers:
            worker.kill()
        for thread in self._threads:
            thread.join(timeout=1.0)

    def _serve(self, worker: "_Worker") -> None:
        try:
            while (batch := self._tasks.get()) is not None and not self._stopping.is_set():
                self._results.put(worker.parse(batch))
        finally:
            worker.kill()


class _Worker:
    """One child process, started when it is first needed and again after it broke down."""

    def __init__(self, settings: IndexingSettings, stopping: threading.Event) -> None:
        self._settings = settings
        self._stopping = stopping
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def parse(self, batch: Sequence[ParseJob]) -> "bytes | list[ParsedDocument]":
        """Parse a batch; a document that no process survives is reported as failed."""
        answer = self._ask(batch)
        if answer is not None:
            return answer
        found: list[ParsedDocument] = []
        for job in batch:
            if self._stopping.is_set():
                break
            again = self._ask([job])
            if again is None:
                found.append(ParsedDocument.failed(job.path, "parsing it ended the parser process"))
            else:
                found.extend(pickle.loads(again) if isinstance(again, bytes) else again)
        return found

    def kill(self) -> None:
        """End the process at once."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _ask(self, batch: Sequence[ParseJob]) -> "bytes | list[ParsedDocument] | None":
        """The process's answer, packed as it came; None where it broke down."""
        process = self._running()
        if process is None:
            return [] if self._stopping.is_set() else parse_documents(_pairs(batch), self._settings)
        alarm = threading.Timer(_LONGEST_BATCH_S, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            write_message(_pipe(process.stdin), pickle.dumps(_pairs(batch), pickle.HIGHEST_PROTOCOL))
            return read_message(_pipe(process.stdout))
        except (OSError, EOFError, ValueError):
            self.kill()
            return None
        finally:
            alarm.cancel()

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
        )
        write_message(_pipe(process.stdin), pickle.dumps(settings))
    except OSError as error:
        _LOG.warning("No parser process could be started (%s); parsing in the server itself.", error.strerror)
        return None
    return process


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


def _pairs(batch: Sequence[ParseJob]) -> list[tuple[str, bytes]]:
    return [(job.path, job.data) for job in batch]
