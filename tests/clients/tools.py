"""What every test with a real client needs: the clients, a scratch home, the installed command, a small workspace."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.stdio_client import SOURCE

REPOSITORY = Path(__file__).resolve().parents[2]
ALPHA = "---\ntags: [idea]\n---\n\n# Alpha\n\nSome text about caching and [beta](b.md).\n"
BETA = "# Beta\n\nText of beta.\n"


class ClientTools:
    """The clients of one folder, run with a home of their own and an otherwise empty environment."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        self.root = home / "project"
        self.root.mkdir(parents=True)
        (self.root / "a.md").write_text(ALPHA, encoding="utf-8", newline="\n")
        (self.root / "b.md").write_text(BETA, encoding="utf-8", newline="\n")
        self._write_command()

    @property
    def environment(self) -> dict[str, str]:
        """What a client starts with."""
        path = (self.home / "bin", self.folder / "node_modules" / ".bin", os.environ["PATH"])
        return {"HOME": str(self.home), "PATH": os.pathsep.join(map(str, path))}

    def run(
        self, *command: str, variables: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a client in the project, with more variables if given; its output, errors included, as text."""
        return subprocess.run(
            command,
            cwd=self.root,
            env={**self.environment, **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout_s,
            check=False,
        )

    def server(self, *options: str) -> Sequence[str]:
        """The command line of the server over the project."""
        return ("local-vector-search-mcp", "--project-root", str(self.root), "--embedding-provider", "none", *options)

    def _write_command(self) -> None:
        """The command as an installation would put it on the path."""
        command = self.home / "bin" / "local-vector-search-mcp"
        command.parent.mkdir()
        python = f'exec env PYTHONPATH="{SOURCE}" "{sys.executable}" -m local_vector_search_mcp "$@"'
        command.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
        command.chmod(0o755)


def client_tools(home: Path) -> ClientTools:
    """The clients; skips the calling test where they are not installed."""
    folder = os.environ.get("LVS_CLIENT_TOOLS")
    if not folder or not (Path(folder) / "node_modules" / ".bin").is_dir():
        pytest.skip("no client programs; run python -m tests.clients.install FOLDER and set LVS_CLIENT_TOOLS=FOLDER")
    return ClientTools(Path(folder).resolve(), home)
