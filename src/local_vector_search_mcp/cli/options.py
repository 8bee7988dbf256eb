"""The options that every command shares. They may stand before or after the command's name; the later place wins."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from local_vector_search_mcp.config.layers import OPTION_KEYS
from local_vector_search_mcp.config.loader import load_config
from local_vector_search_mcp.config.models import Config, LogLevel, ModeName, ProviderName
from local_vector_search_mcp.scopes import Scope

TRANSPORTS: Final = ("stdio", "http")


@dataclass(slots=True)
class Given:
    """What the shared options of one command line say: option name to value, only where it was given."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def as_json(self) -> bool:
        """Whether the result is wanted as JSON."""
        return bool(self.values.get("--json"))

    def config(self) -> Config:
        """The settings in force.

        Raises:
            ConfigError: Something in a file, the environment or the options is wrong.
        """
        config_file = self.values.get("--config")
        project_root = self.values.get("--project-root")
        return load_config(
            config_file=None if config_file is None else Path(config_file),
            environ=os.environ,
            overrides={name: value for name, value in self.values.items() if name in OPTION_KEYS},
            project_root=None if project_root is None else Path(project_root),
        )


def given(context: click.Context) -> Given:
    """What was given on this command line."""
    return context.find_root().ensure_object(Given)


class Command(click.Command):
    """A command that also takes the shared options."""

    def __init__(self, *arguments: Any, shown: frozenset[str] = frozenset({"--json"}), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        own = {name for parameter in self.params for name in parameter.opts}
        # Those that a person gives to a command stand in its help; the others work and do not crowd it.
        self.params.extend(
            option for option in shared_options(shown=_SHOWN_WITH_COMMANDS | shown) if not own.intersection(option.opts)
        )


def shared_options(*, shown: frozenset[str] | None = None) -> list[click.Option]:
    """Fresh options; ``shown`` says which of them help lists, None all."""
    options: list[click.Option] = []
    for names, settings in _SHARED:
        settings = dict(settings)
        hidden = shown is not None and names[0] not in shown
        option = click.Option(
            names, expose_value=False, hidden=hidden, callback=_keep(names[0].partition("/")[0]), **settings
        )
        options.append(option)
    return options


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            given(context).values[name] = value
        return value

    return keep


def _choice(values: Sequence[str]) -> click.Choice[str]:
    return click.Choice(values, case_sensitive=False)


_SHOWN_WITH_COMMANDS: Final = frozenset({"--config", "--project-root", "--root"})

_SHARED: Final[tuple[tuple[tuple[str, ...], dict[str, Any]], ...]] = (
    (
        ("--project-root",),
        {
            "type": click.Path(file_okay=False),
            "help": "Project directory; relative paths start there. [CLAUDE_PROJECT_DIR, else the working directory]",
        },
    ),
    (("--config",), {"type": click.Path(dir_okay=False), "help": "Configuration file; none is loaded by itself."}),
    (("--root",), {"type": click.Path(file_okay=False), "help": "The Markdown tree. [the project root]"}),
    (
        ("--storage-path",),
        {"type": click.Path(), "help": "Directory of the index, or the index file. [.local-vector-search-mcp]"},
    ),
    (("--include",), {"multiple": True, "metavar": "GLOB", "help": "Documents to index; repeatable. [**/*.md]"}),
    (
        ("--exclude",),
        {"multiple": True, "metavar": "GLOB", "help": "What to leave out; repeatable; replaces the default list."},
    ),
    (
        ("--embedding-provider",),
        {"type": _choice([name.value for name in ProviderName]), "help": "Where vectors come from. [local]"},
    ),
    (("--embedding-endpoint",), {"metavar": "URL", "help": "Endpoint of ollama or openai-compatible."}),
    (("--embedding-model",), {"metavar": "NAME", "help": "Embedding model, or the folder of an ONNX one."}),
    (
        ("--search-mode",),
        {"type": _choice([mode.value for mode in ModeName]), "help": "Mode where a search does not name one. [auto]"},
    ),
    (("--watch-files/--no-watch-files",), {"default": None, "help": "Follow changes by other programs. [watch]"}),
    (("--allow-writes",), {"is_flag": True, "default": None, "help": "Let clients change files."}),
    (
        ("--scope",),
        {
            "type": _choice([scope.value for scope in Scope]),
            "help": "What clients may do; wins over --allow-writes. [read]",
        },
    ),
    (
        ("--transport",),
        {"type": _choice(TRANSPORTS), "help": "How to serve. [stdio; http with the command serve]"},
    ),
    (("--host",), {"help": "Address to serve HTTP on. [127.0.0.1]"}),
    (("--port",), {"type": click.IntRange(0, 65_535), "help": "Port to serve HTTP on. [8001]"}),
    (("--connect",), {"metavar": "URL", "help": "Serve stdio by relaying to a running HTTP server."}),
    (("--log-level",), {"type": _choice([level.value for level in LogLevel]), "help": "Least to log. [info]"}),
    (("--json",), {"is_flag": True, "default": None, "help": "Print exactly the tool's structured result."}),
)
