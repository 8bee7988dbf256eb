"""Shared options: before the command, after it, and what they become."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from local_vector_search_mcp.cli.main import program
from local_vector_search_mcp.cli.options import Command, Given, given, shared_options
from local_vector_search_mcp.config.layers import OPTION_KEYS
from local_vector_search_mcp.scopes import Scope


def parse(arguments: Sequence[str]) -> Given:
    """What a program with one command that says nothing of its own is given."""
    seen: list[Given] = []

    @click.group(invoke_without_command=True)
    @click.pass_context
    def group(context: click.Context, /) -> None:
        if context.invoked_subcommand is None:
            seen.append(given(context))

    @click.command("probe", cls=Command)
    @click.argument("words", nargs=-1)
    @click.pass_context
    def probe(context: click.Context, /, words: tuple[str, ...]) -> None:
        assert not any(word.startswith("--") for word in words)
        seen.append(given(context))

    group.params.extend(shared_options())
    group.add_command(probe)
    group.main(args=list(arguments), standalone_mode=False)
    assert len(seen) == 1
    return seen[0]


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ([], {}),
        (["probe"], {}),
        (["--root", "a"], {"--root": "a"}),
        (["--root", "a", "probe"], {"--root": "a"}),
        (["probe", "--root", "a"], {"--root": "a"}),
        (["probe", "word", "--root", "a", "word"], {"--root": "a"}),
        (["--root", "a", "probe", "--root", "b"], {"--root": "b"}),
        (["--root", "a", "probe", "--scope", "edit"], {"--root": "a", "--scope": "edit"}),
        (["--include", "a", "--include", "b"], {"--include": ("a", "b")}),
        (["--include", "a", "probe", "--include", "b"], {"--include": ("b",)}),
        (["--watch-files"], {"--watch-files": True}),
        (["--no-watch-files"], {"--watch-files": False}),
        (["--allow-writes", "probe"], {"--allow-writes": True}),
        (["probe", "--json"], {"--json": True}),
        (["--port", "0"], {"--port": 0}),
        (["--scope", "FULL"], {"--scope": "full"}),
        (["--log-level", "Debug"], {"--log-level": "debug"}),
        (["--embedding-provider", "openai-compatible"], {"--embedding-provider": "openai-compatible"}),
    ],
)
def test_options__before_and_after_the_command(arguments: Sequence[str], values: dict[str, Any]) -> None:
    """An option means the same wherever it stands; the place after the command wins."""
    assert parse(arguments).values == values


@pytest.mark.parametrize(
    "arguments",
    [
        ["--scope", "all"],
        ["--port", "65536"],
        ["--port", "x"],
        ["--transport", "sse"],
        ["--embedding-provider", "openai"],
        ["--search-mode", "fuzzy"],
        ["--log-level", "loud"],
        ["--root"],
        ["--rooot", "a"],
    ],
)
def test_options__refused(arguments: Sequence[str]) -> None:
    """A wrong option is refused before anything runs."""
    with pytest.raises(click.UsageError):
        parse(arguments)


def test_options__become_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given on the command line is in the configuration."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    (tmp_path / "docs").mkdir()
    config = parse(
        [
            *("--project-root", str(tmp_path), "--root", "docs", "--storage-path", "s", "--include", "*.md"),
            *("--exclude", "x", "--embedding-provider", "ollama", "--embedding-endpoint", "http://[::1]:1"),
            *("--embedding-model", "m", "--search-mode", "lexical", "--no-watch-files", "--scope", "edit"),
            *("--host", "::1", "--port", "9", "--log-level", "error"),
        ]
    ).config()
    assert config.root == tmp_path.resolve() / "docs"
    assert (config.storage.path, config.knowledge_base.include, config.knowledge_base.exclude) == (
        "s",
        ("*.md",),
        ("x",),
    )
    embedding = config.embedding
    assert (embedding.provider, embedding.endpoint, embedding.model) == ("ollama", "http://[::1]:1", "m")
    assert (config.search.default_mode, config.knowledge_base.watch_files) == ("lexical", False)
    assert config.scope is Scope.EDIT
    assert (config.http.host, config.http.port, config.server.log_level) == ("::1", 9, "error")


def test_options__every_setting_has_its_option() -> None:
    """What the configuration says comes from an option is an option, and the other way round."""
    names = {name for option in shared_options() for name in option.opts}
    assert set(OPTION_KEYS) <= names
    assert names - set(OPTION_KEYS) == {"--project-root", "--config", "--transport", "--connect", "--json"}


@pytest.mark.parametrize("name", program.list_commands(click.Context(program)))
def test_options__every_command_takes_them(name: str) -> None:
    """No command lacks a shared option, and none has two of one name."""
    command = program.get_command(click.Context(program), name)
    assert command is not None
    names = [option for parameter in command.params for option in parameter.opts if option.startswith("-")]
    assert len(names) == len(set(names))
    assert {name for option in shared_options() for name in option.opts} <= set(names)
