"""``doctor``: what works on this machine, and how to mend what does not."""

import logging
import os
from typing import Any

import click

from local_vector_search_mcp.cli.calls import log_to_stderr
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Command, given
from local_vector_search_mcp.cli.render import screen

_STYLES = {"ok": "green", "limited": "yellow", "failed": "bold red"}
_PROVIDER = "embedding provider"


@click.command("doctor", cls=Command, short_help="Check what the program rests on, and say how to mend it.")
@click.pass_context
def doctor_command(context: click.Context, /) -> int:
    """Check SQLite, sqlite-vec, the embedding provider, file watching, Pango and fonts, and permissions.

    Ends with 0 where everything needed works, with 5 where only the embedding provider does not, and with 1 otherwise.
    """
    chosen = given(context)
    config = chosen.config()
    log_to_stderr(config, least=None if "--log-level" in chosen.values else logging.CRITICAL)
    from local_vector_search_mcp.app import check_health

    found: list[dict[str, Any]] = []
    for check in check_health(config, os.environ):
        entry = {"name": check.name, "health": check.health.value, "found": check.found}
        if check.remedy is not None:
            entry["remedy"] = check.remedy
        found.append(entry)
        if not chosen.as_json:
            screen.line(f"{check.health.value:8} {check.name}: {check.found}", style=_STYLES[check.health.value])
            if check.remedy is not None:
                screen.line(f"         {check.remedy}")
    if chosen.as_json:
        screen.json({"checks": found})
    failed = {entry["name"] for entry in found if entry["health"] == "failed"}
    if not failed:
        return ExitCode.DONE
    return ExitCode.UNAVAILABLE if failed == {_PROVIDER} else ExitCode.FAILED
