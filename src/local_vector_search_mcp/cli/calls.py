"""Calling the server's tools from the command line: same arguments, same checks, same results, no server.

A person is not scoped, so every tool can be called. What comes back is the structured result as a client would get
it, which ``--json`` prints as it is and the commands render.
"""

import logging
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from local_vector_search_mcp.cli.options import Given
from local_vector_search_mcp.config.models import Config

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

# A terminal has no message limit, and a person waits as long as it takes.
_NO_LIMIT_BYTES = 1 << 40
_NO_LIMIT_S = 86_400.0

ProgressCallback = Callable[[float, float | None, str | None], None]


@contextmanager
def opened(chosen: Given) -> Generator["App", None, None]:
    """The app for one command: nothing runs in the background, and everything is closed at the end.

    Raises:
        ConfigError: The settings are wrong.
    """
    config = chosen.config()
    log_to_stderr(config, least=logging.ERROR if "--log-level" not in chosen.values else None)
    from local_vector_search_mcp.app import open_app

    app = open_app(config, for_server=False)
    try:
        yield app
    finally:
        app.close()


def call_tool(
    app: "App", name: str, arguments: Mapping[str, Any], *, report_progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """The structured result of a tool.

    Args:
        app: The opened app.
        name: The tool's name.
        arguments: Its arguments under their wire names; None and empty tuples mean not given.
        report_progress: Called from any thread with what is done, the total, and a message.

    Raises:
        KnowledgeBaseError: What a client would get as an error result.
    """
    from local_vector_search_mcp.server.arguments import read_arguments
    from local_vector_search_mcp.server.json_types import is_array
    from local_vector_search_mcp.server.results import wire_object
    from local_vector_search_mcp.server.tools.catalogue import all_tools
    from local_vector_search_mcp.server.toolspec import Structured, ToolCall

    search = app.config.search
    tools = all_tools(default_mode=search.default_mode.value, max_results=search.max_results)
    spec = next(tool for tool in tools if tool.name == name)
    wanted = {
        key: list(value) if is_array(value) else value
        for key, value in arguments.items()
        if value is not None and value != ()
    }
    call = ToolCall(
        app=app,
        result_limit=_NO_LIMIT_BYTES,
        report_progress=report_progress or _ignore_progress,
        wait_s=_NO_LIMIT_S,
    )
    answer = spec.run(call, read_arguments(spec, wanted))
    assert isinstance(answer, Structured)
    assert spec.output is not None
    return wire_object(answer.value, spec.output)


def log_to_stderr(config: Config, *, least: int | None = None) -> None:
    """Send log records of the configured level and above to standard error.

    Args:
        config: The settings.
        least: Raises the level for a command whose output a person reads.
    """
    level = max(logging.getLevelNamesMapping()[config.server.log_level.value.upper()], least or 0)
    handler = logging.StreamHandler(sys.stderr)
    # Not left to the root logger's level: libraries set levels of their own on theirs.
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)


def _ignore_progress(_done: float, _total: float | None, _message: str | None) -> None:
    """Nobody looks."""
