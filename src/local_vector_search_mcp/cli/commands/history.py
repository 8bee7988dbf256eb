"""``history`` and ``undo``: what was changed, and taking it back."""

from typing import Any

import click

from local_vector_search_mcp.cli.calls import call_tool, opened
from local_vector_search_mcp.cli.commands.changes import report_change, show_diff
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Command, given
from local_vector_search_mcp.cli.render import screen


@click.command("history", cls=Command, short_help="List the changes that were made, newest first.")
@click.argument("path", required=False)
@click.option("--change", "change_id", help="Show one change with its diff.")
@click.option("-n", "--limit", "--page-size", "page_size", type=int, help="Most changes. [20]")
@click.option("--cursor", help="Go on after an earlier page.")
@click.pass_context
def history_command(context: click.Context, /, *, path: str | None, **options: Any) -> int:
    """List changes made through this program, or those of the document PATH."""
    chosen = given(context)
    arguments = {
        "path": path,
        "changeId": options["change_id"],
        "pageSize": options["page_size"],
        "cursor": options["cursor"],
    }
    with opened(chosen) as app:
        result = call_tool(app, "kb_history", arguments)
    if chosen.as_json:
        screen.json(result)
        return ExitCode.DONE
    changes = [result["change"]] if result.get("change") else result["changes"]
    rows = [
        (change["time"], change["changeId"], change["tool"], ", ".join(_paths(change)), change["summary"])
        for change in changes
    ]
    if rows:
        screen.table(("time", "change", "tool", "files", "summary"), rows, whole=(1,))
    elif screen.is_terminal:
        screen.line("No changes.")
    if result.get("diff"):
        show_diff(result["diff"])
    if result.get("nextCursor"):
        click.echo(f"next: --cursor {result['nextCursor']}", err=True)
    return ExitCode.DONE


@click.command("undo", cls=Command, short_help="Take back one change.")
@click.argument("change_id")
@click.option("--dry-run", is_flag=True, help="Check everything, print the diff, write nothing.")
@click.option("--plan-hash", help="Carry out exactly the plan that a dry run gave.")
@click.pass_context
def undo_command(context: click.Context, /, *, change_id: str, dry_run: bool, plan_hash: str | None) -> int:
    """Take back the change CHANGE_ID, as history names it. An undo is a change too: undoing it redoes."""
    chosen = given(context)
    arguments = {"changeId": change_id, "dryRun": dry_run or None, "planHash": plan_hash}
    with opened(chosen) as app:
        return report_change(chosen, app, call_tool(app, "kb_undo", arguments))


def _paths(change: dict[str, Any]) -> list[str]:
    return [str(file["path"]) for file in change["files"]]
