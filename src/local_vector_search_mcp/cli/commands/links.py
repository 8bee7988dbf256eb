"""``links``: what a document links to, what links to it, what is broken, what nothing links to."""

from typing import Any

import click

from local_vector_search_mcp.cli.calls import call_tool, opened
from local_vector_search_mcp.cli.commands.upkeep import bring_up_to_date
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Command, given
from local_vector_search_mcp.cli.render import screen


@click.command("links", cls=Command, short_help="List links, broken ones first of all.")
@click.argument("path", required=False)
@click.option(
    "--direction",
    type=click.Choice(["outgoing", "incoming", "broken", "orphans"]),
    help="What to list. [broken; with PATH outgoing]",
)
@click.option("--collection", help="The collection to look in. [project]")
@click.option("--page-size", type=int, help="Most entries; without it everything is listed.")
@click.option("--cursor", help="Go on after an earlier page.")
@click.option("--no-update", is_flag=True, help="Use the index as it is, without looking for changed files.")
@click.pass_context
def links_command(context: click.Context, /, *, path: str | None, no_update: bool, **options: Any) -> int:
    """List the links of the project, or of the document PATH."""
    chosen = given(context)
    arguments = {
        "path": path,
        "direction": options["direction"] or ("outgoing" if path else "broken"),
        "collection": options["collection"],
        "pageSize": options["page_size"],
        "cursor": options["cursor"],
    }
    with opened(chosen) as app:
        if not no_update:
            bring_up_to_date(app)
        result = call_tool(app, "kb_links", arguments)
        if chosen.as_json:
            screen.json(result)
            return ExitCode.DONE
        _show(result)
        while options["page_size"] is None and result.get("nextCursor"):
            result = call_tool(app, "kb_links", {**arguments, "cursor": result["nextCursor"]})
            _show(result)
    if result.get("nextCursor"):
        click.echo(f"next: --cursor {result['nextCursor']}", err=True)
    return ExitCode.DONE


def _show(result: dict[str, Any]) -> None:
    for document in result["documents"]:
        screen.line(document)
    rows = [
        (
            link["path"],
            link["kind"],
            link["target"],
            link.get("resolvedPath", ""),
            link.get("problem", ""),
            link["pointer"],
        )
        for link in result["links"]
    ]
    if rows:
        screen.table(("document", "kind", "target", "resolves to", "problem", "pointer"), rows, whole=(5,))
    elif screen.is_terminal and not result["documents"]:
        screen.line("None.")
