"""The process that parses for another one: settings first, then batches, an answer to each.

It ends as soon as its input does, in the middle of a document too, so that none outlives its parent.
"""

import gc
import os
import pickle
import queue
import signal
import sys
import threading
from typing import IO

_LENGTH_BYTES = 8


def write_message(pipe: "IO[bytes]", data: bytes) -> None:
    """Send bytes behind their length."""
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
    pipe.write(data)
    pipe.flush()


def read_message(pipe: "IO[bytes]") -> bytes:
    """The next message.

    Raises:
        EOFError: The other side is gone.
    """
    length = int.from_bytes(_exactly(pipe, _LENGTH_BYTES), "little")
    return _exactly(pipe, length)


def main() -> None:
    """Serve until standard input ends."""
    # A Ctrl-C in the terminal is the parent's to handle; it ends this process by closing the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not get between the answers.
    os.dup2(2, 1)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(source, requests), daemon=True).start()

    from local_vector_search_mcp.services.indexing import parse_documents

    settings = pickle.loads(requests.get())
    # Nothing that is made here outlives its batch: the collector is asked after each, and sees nothing older.
    gc.disable()
    gc.freeze()
    while True:
        batch = pickle.loads(requests.get())
        answer = parse_documents(batch, settings)
        try:
            write_message(target, pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
        except OSError:
            os._exit(0)
        del batch, answer
        gc.collect()


def _read_requests(source: "IO[bytes]", requests: "queue.SimpleQueue[bytes]") -> None:
    try:
        while True:
            requests.put(read_message(source))
    except (EOFError, OSError):
        os._exit(0)


def _exactly(pipe: "IO[bytes]", count: int) -> bytes:
    data = pipe.read(count)
    if len(data) != count:
        raise EOFError("the other process is gone")
    return data
