"""``patch``: edit a document by pointers, with operations from a JSON file or standard input."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from local_vector_search_mcp.cli.calls import call_tool, opened
from local_vector_search_mcp.cli.commands.changes import report_change
from local_vector_search_mcp.cli.options import Command, given
from local_vector_search_mcp.server.json_types import is_array, is_object

_MAX_BYTES = 64 << 20


@click.command("patch", cls=Command, short_help="Edit a document by pointers.")
@click.argument("path")
@click.argument("operations", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--expected-source-hash", help="Refuse unless the document still has this hash.")
@click.option("--dry-run", is_flag=True, help="Check everything, print the diff, write nothing.")
@click.option("--plan-hash", help="Carry out exactly the plan that a dry run gave.")
@click.pass_context
def patch_command(context: click.Context, /, *, path: str, operations: str, **options: Any) -> int:
    """Apply operations to the document PATH: all of them or none.

    OPERATIONS is a JSON file, or - for standard input: a list of operations as kb_patch takes them, such as
    [{"kind": "replace_element", "pointer": "1.p1~…~…", "markdown": "New text."}].
    """
    chosen = given(context)
    arguments = {
        "path": path,
        "operations": _operations(operations),
        "expectedSourceHash": options["expected_source_hash"],
        "dryRun": options["dry_run"] or None,
        "planHash": options["plan_hash"],
    }
    with opened(chosen) as app:
        return report_change(chosen, app, call_tool(app, "kb_patch", arguments))


def _operations(name: str) -> list[Any]:
    try:
        data = sys.stdin.buffer.read(_MAX_BYTES) if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror}.") from error
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"The operations are not JSON: {error}.") from error
    operations: Any = value["operations"] if is_object(value) and "operations" in value else value
    return list(operations) if is_array(operations) else [operations]
