"""Serving: over standard input and output, over HTTP, or as a relay to a running server."""

import os

import click

from local_vector_search_mcp.cli.calls import log_to_stderr
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Command, Given, given
from local_vector_search_mcp.config.models import Config
from local_vector_search_mcp.config.settings import http_token

_SHOWN = frozenset({"--host", "--port", "--scope", "--log-level"})


@click.command("serve", cls=Command, shown=_SHOWN, short_help="Serve MCP over HTTP to several clients at once.")
@click.pass_context
def serve_command(context: click.Context, /) -> int:
    """Serve MCP over Streamable HTTP, by default on 127.0.0.1:8001 at /mcp.

    Local clients can then share one index and one embedding model: register
    local-vector-search-mcp --connect http://127.0.0.1:8001/mcp with each of them.
    """
    return serve(given(context), default_transport="http")


def serve(chosen: Given, *, default_transport: str) -> int:
    """Serve until the client or a signal ends it.

    Most ways of serving leave the process by themselves.

    Raises:
        ConfigError: The settings are wrong.
        IoFailure: The root cannot be opened.
    """
    transport = chosen.values.get("--transport", default_transport)
    url = chosen.values.get("--connect")
    if url is not None and (transport == "http" or default_transport == "http"):
        raise click.UsageError("--connect serves stdio, so it goes neither with serve nor with --transport http.")
    config = chosen.config()
    log_to_stderr(config)
    if url is not None:
        from local_vector_search_mcp.server.relay import relay

        relay(url, token=_token(config), root=config.root, scope=config.scope.value)
    from local_vector_search_mcp.app import open_app

    # Opened before the protocol library is imported: what is wrong with the project is told at once.
    app = open_app(config, for_server=True)
    if transport == "http":
        from local_vector_search_mcp.server.http import serve_http

        serve_http(app, token=_token(config))
    from local_vector_search_mcp.server.build import serve_stdio

    serve_stdio(app)
    return ExitCode.DONE


def _token(config: Config) -> str | None:

    return http_token(config, os.environ)
