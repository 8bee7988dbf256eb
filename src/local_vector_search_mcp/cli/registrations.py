"""How each client is told of the server: the line to run, or the entry of its configuration file."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SERVER_KEY: Final = "kb"
"""What clients call the server; short, because tool names carry it."""

_PROGRAM: Final = "local-vector-search-mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One client's way of registering the server.

    ``text`` is a command for a shell, or JSON for the file that ``target`` names. ``project_file`` is the file inside
    the project that ``entry`` can be written to, relative to it; None where the client has none.
    """

    client: str
    key: str  # What --client takes.
    target: str
    text: str
    project_file: str | None = None
    section: str = ""
    entry: dict[str, Any] | None = None


def registrations(*, project_root: Path, arguments: Sequence[str]) -> tuple[Registration, ...]:
    """The registrations for a project.

    Args:
        project_root: The project.
        arguments: What the server is given besides the project root.
    """
    found = program_command()
    plain = _PROGRAM if shutil.which(_PROGRAM) else None
    start = [plain] if plain else found
    rooted = ["--project-root", str(project_root), *arguments]
    in_folder = ["--project-root", "${workspaceFolder}", *arguments]
    shell = _shell_line([*start, *rooted])
    desktop = {"mcpServers": {SERVER_KEY: _entry(found, rooted)}}
    code = {"type": "stdio", **_entry(start, in_folder)}
    cursor = _entry(start, in_folder)
    return (
        Registration(
            client="Claude Code",
            key="claude-code",
            target="run in the project",
            text=f"claude mcp add --transport stdio --scope local {SERVER_KEY} -- {shell}",
            project_file=".mcp.json",
            section="mcpServers",
            # Claude Code starts the server in the project and names it in CLAUDE_PROJECT_DIR.
            entry={"type": "stdio", **_entry(start, list(arguments))},
        ),
        Registration(
            client="Codex",
            key="codex",
            target="run anywhere",
            text=f"codex mcp add {SERVER_KEY} -- {shell}",
        ),
        Registration(
            client="Claude Desktop",
            key="claude-desktop",
            target="claude_desktop_config.json (Settings, Developer, Edit Config)",
            text=json.dumps(desktop, indent=2, ensure_ascii=False),
        ),
        Registration(
            client="VS Code",
            key="vscode",
            target=".vscode/mcp.json",
            text=json.dumps({"servers": {SERVER_KEY: code}}, indent=2, ensure_ascii=False),
            project_file=".vscode/mcp.json",
            section="servers",
            entry=code,
        ),
        Registration(
            client="Cursor",
            key="cursor",
            target=".cursor/mcp.json",
            text=json.dumps({"mcpServers": {SERVER_KEY: cursor}}, indent=2, ensure_ascii=False),
            project_file=".cursor/mcp.json",
            section="mcpServers",
            entry=cursor,
        ),
    )


def program_command() -> list[str]:
    """How to start this program from anywhere: absolute, as programs without a shell's PATH need it."""
    beside = Path(sys.executable).with_name(_PROGRAM + (".exe" if sys.platform == "win32" else ""))
    if beside.is_file():
        return [str(beside)]
    found = shutil.which(_PROGRAM)
    return [found] if found else [sys.executable, "-m", "local_vector_search_mcp"]


def _entry(start: Sequence[str], arguments: Sequence[str]) -> dict[str, Any]:
    return {"command": start[0], "args": [*start[1:], *arguments]}


def _shell_line(words: Sequence[str]) -> str:
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
