"""The commands of the documents run as they are written."""

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from tests.support.command_line import run
from tests.support.source_tree import ROOT

from local_vector_search_mcp.cli.main import program

PROGRAM = "local-vector-search-mcp"


def code_lines(name: str) -> list[str]:
    """The lines of a document's shell blocks."""
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def test_readme__search_finds_the_answer(tmp_path: Path) -> None:
    """The one command for the main job, on the folder that it names, finds what it asks for."""
    lines = [line for line in code_lines("README.md") if f"/{PROGRAM} --project-root docs search" in line]
    assert len(lines) == 1
    # The index of somebody who has run the command stays behind.
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns(".*"))
    done = run(tmp_path, *shlex.split(lines[0])[1:])
    assert done.code == 0, done.err.decode()
    assert ".md:" in done.text
    assert "undo" in done.text


def test_readme__init_runs(tmp_path: Path) -> None:
    """The command that registers the server names every client."""
    lines = [line for line in code_lines("README.md") if line.endswith(f"/{PROGRAM} init")]
    assert len(lines) == 1
    done = run(tmp_path, *shlex.split(lines[0])[1:])
    assert done.code == 0, done.err.decode()
    for client in ("Claude Code", "Codex", "Claude Desktop", "VS Code", "Cursor"):
        assert client in done.text


def test_readme__two_commands_set_up_and_one_tests() -> None:
    """Setting up stays two lines, and the test command is what CI runs."""
    lines = code_lines("README.md")
    assert sum("apt-get install" in line for line in lines) == 1
    assert sum("pip install ." in line for line in lines) == 1
    tests = next(line for line in lines if "pytest" in line)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert tests.rpartition("bin/")[2] in ci
    packages = next(line for line in lines if "apt-get install" in line).partition("-y ")[2].split()
    assert all(package in ci for package in packages)


def mentioned_options() -> list[tuple[str, str]]:
    """Every option that a document's shell block gives to the program."""
    found: list[tuple[str, str]] = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = path.relative_to(ROOT).as_posix()
        for line in code_lines(name):
            own = line.partition(f"{PROGRAM} ")[2] if f"{PROGRAM} " in line else ""
            found += [(name, option) for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", own)]
    return sorted(set(found))


@pytest.mark.parametrize(("document", "option"), mentioned_options())
def test_document__option_exists(document: str, option: str) -> None:
    """No document shows an option that the program does not take."""
    context = click.Context(program)
    commands = [program, *(program.get_command(context, name) for name in program.list_commands(context))]
    assert option in {name for one in commands if one for parameter in one.params for name in parameter.opts}, document


def test_module__runs_like_the_command(tmp_path: Path) -> None:
    """``python -m local_vector_search_mcp`` is the command."""
    done = run(tmp_path, "--version")
    assert done.code == 0
    assert done.text.startswith(f"{PROGRAM} ")
