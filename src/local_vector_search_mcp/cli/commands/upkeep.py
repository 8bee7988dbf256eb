"""Bringing the index in line before a command uses it, and after one changed files."""

from typing import TYPE_CHECKING

import click

from local_vector_search_mcp.cli.commands.maintenance import run_index
from local_vector_search_mcp.config.models import OnStart
from local_vector_search_mcp.errors import Busy, IndexIncompatible, IoFailure

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App


def bring_up_to_date(app: "App") -> None:
    """Index what changed since the last run, unless the settings leave that to the person.

    A read-only file system, or another process at work on the index, is no reason to fail: what is there is used.
    """
    if app.config.index.on_start is OnStart.NONE:
        return
    try:
        run_index(app, {})
    except (Busy, IoFailure, IndexIncompatible) as error:
        click.echo(f"note: the index is used as it is: {' '.join(error.message.split())}", err=True)
