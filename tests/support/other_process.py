"""A second Python process that holds something until it is told to let go, or is killed."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

_DEADLINE_S = 30


class OtherProcess:
    """A process that has said it is ready."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def let_go(self) -> None:
        """Close its input, which ends it, and wait."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(_DEADLINE_S)

    def kill(self) -> None:
        """Kill it without warning, and wait."""
        self._process.kill()
        self._process.wait(_DEADLINE_S)


@contextmanager
def other_process(code: str, *arguments: str) -> Generator[OtherProcess]:
    """Run code that calls ``ready()`` when it holds what it should; that returns when it is told to let go."""
    prelude = "import sys\ndef ready():\n    print('ready', flush=True)\n    sys.stdin.read()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", prelude + code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("the other process did not get ready")
            yield OtherProcess(process)
        finally:
            process.kill()
            process.wait(_DEADLINE_S)
