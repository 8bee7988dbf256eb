"""Running the command line as a person or a script does: in a process of its own, with pipes."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_TIMEOUT_S: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a command ended; its output as bytes, because exactness is what is tested."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.out.decode("utf-8")

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The last line of standard error."""
        return self.err.decode("utf-8").rstrip("\n").rpartition("\n")[2]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without what would change settings, in a locale that is not UTF-8."""
    dropped = ("LVS_MCP_", "FASTMCP_", "CLAUDE_PROJECT_DIR", "PYTHONIOENCODING", "PYTHONUTF8", "LC_", "LANG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "LC_ALL": "C", **(extra or {})}


def command(*arguments: str) -> list[str]:
    """The words that start the program."""
    return [sys.executable, "-m", "local_vector_search_mcp", *arguments]


def run(
    cwd: Path,
    *arguments: str,
    stdin: bytes = b"",
    environ: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> Finished:
    """Run a command to its end."""
    done = subprocess.run(
        command(*arguments),
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env=clean_environment(environ),
        timeout=_TIMEOUT_S,
        check=False,
    )
    return Finished(code=done.returncode, out=done.stdout, err=done.stderr)
