"""``init``: a commented configuration file, and how to register the server with each client."""

import json
import os
from pathlib import Path
from typing import Any, cast

import click

from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Command, Given, given
from local_vector_search_mcp.cli.registrations import SERVER_KEY, Registration, registrations
from local_vector_search_mcp.cli.render import screen
from local_vector_search_mcp.config.loader import find_project_root
from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.server.json_types import is_object

_FILE_NAME = ".local-vector-search-mcp.yaml"
_CLIENTS = ("claude-code", "codex", "claude-desktop", "vscode", "cursor")
# These say where init works, or how it prints; the server is not started with them.
_NOT_PASSED_ON = frozenset({"--project-root", "--config", "--json", "--transport", "--host", "--port", "--connect"})


@click.command("init", cls=Command, short_help="Write a configuration file and print how to register the server.")
@click.option("--client", "clients", type=click.Choice(_CLIENTS), multiple=True, help="Only this client; repeatable.")
@click.option("--write", is_flag=True, help="Also write the project's own client files (.mcp.json and the like).")
@click.pass_context
def init_command(context: click.Context, /, *, clients: tuple[str, ...], write: bool) -> int:
    """Prepare a project.

    Writes .local-vector-search-mcp.yaml with every setting as a comment, unless it is there, and prints what
    registers the server with Claude Code, Codex, Claude Desktop, VS Code and Cursor. Options such as --scope edit
    become part of the registration.
    """
    chosen = given(context)
    root = find_project_root(_path(chosen, "--project-root"), os.environ)
    config_file = root / (_path(chosen, "--config") or _FILE_NAME)
    written = _write_new(config_file, _commented_config())
    shown = config_file.relative_to(root) if config_file.is_relative_to(root) else config_file
    found = [
        registration
        for registration in registrations(project_root=root, arguments=["--config", str(shown), *_passed_on(chosen)])
        if not clients or registration.key in clients
    ]
    outcomes = {one.key: _write_entry(root, one) for one in found if one.project_file} if write else {}
    if chosen.as_json:
        screen.json(_as_json(config_file, written, found, outcomes))
    else:
        _show(config_file, written, found, outcomes)
    return ExitCode.DONE


def _commented_config() -> str:
    from local_vector_search_mcp.config.example import example_text

    return example_text(commented_out=True)


def _path(chosen: Given, name: str) -> Path | None:
    value = chosen.values.get(name)
    return None if value is None else Path(value)


def _passed_on(chosen: Given) -> list[str]:
    words: list[str] = []
    for name, value in chosen.values.items():
        if name in _NOT_PASSED_ON:
            continue
        if name == "--watch-files":
            words.append(name if value else "--no-watch-files")
        elif value is True:
            words.append(name)
        else:
            items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            for item in items:
                words += [name, str(item)]
    return words


def _write_new(path: Path, text: str) -> bool:
    """Write a file that is not there yet; whether it was written.

    Raises:
        IoFailure: It cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise IoFailure(f"{path} cannot be written: {error.strerror}.") from error
    return True


def _write_entry(root: Path, registration: Registration) -> str:
    """Put the server into a client's project file, beside what is there; what was done, in words."""
    assert registration.project_file is not None
    path = root / registration.project_file
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (ValueError, OSError):
        return "not written: it is there and is no plain JSON; add the entry by hand"
    servers: Any = content.get(registration.section, {}) if is_object(content) else None
    if not is_object(content) or not is_object(servers):
        return "not written: its content is not what this client writes; add the entry by hand"
    if SERVER_KEY in servers:
        same = servers[SERVER_KEY] == registration.entry
        return "unchanged: it has this entry" if same else f"not written: it has another server named {SERVER_KEY}"
    content = {**content, registration.section: {**servers, SERVER_KEY: registration.entry}}
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise IoFailure(f"{path} cannot be written: {error.strerror}.") from error
    return "written"


def _as_json(config_file: Path, written: bool, found: list[Registration], outcomes: dict[str, str]) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    for one in found:
        entry = {"client": one.key, "target": one.target, "text": one.text}
        if one.key in outcomes:
            entry["file"] = f"{one.project_file}: {outcomes[one.key]}"
        entries.append(entry)
    return {"config": str(config_file), "written": written, "registrations": entries}


def _show(config_file: Path, written: bool, found: list[Registration], outcomes: dict[str, str]) -> None:
    screen.line(f"{'Wrote' if written else 'Kept'} {config_file}", style="green")
    for one in found:
        screen.line()
        screen.line(f"{one.client} ({one.target}):", style="bold")
        for line in one.text.splitlines():
            screen.line(f"  {line}")
        if one.key in outcomes:
            screen.line(f"  {one.project_file}: {outcomes[one.key]}", style="dim")
