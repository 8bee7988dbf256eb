"""``search``: find passages from a terminal."""

import json
from typing import Any

import click

from local_vector_search_mcp.cli.calls import call_tool, opened
from local_vector_search_mcp.cli.commands.upkeep import bring_up_to_date
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Command, given
from local_vector_search_mcp.cli.render import screen
from local_vector_search_mcp.config.models import ModeName


@click.command("search", cls=Command, short_help="Find passages by words and meaning.")
@click.argument("query", nargs=-1, required=True)
@click.option("--mode", type=click.Choice([mode.value for mode in ModeName]), help="How to look.")
@click.option("-n", "--limit", "--top-k", "top_k", type=int, help="Most results. [10]")
@click.option("--path-prefix", help="Only this directory or file.")
@click.option("--glob", "include_glob", multiple=True, help="Only documents that match; repeatable.")
@click.option("--not-glob", "exclude_glob", multiple=True, help="No documents that match; repeatable.")
@click.option("--tag", "tags", multiple=True, help="Only documents with this tag; repeatable, all must be there.")
@click.option("--where", metavar="JSON", help='Conditions on front matter, such as {"status": "draft"}.')
@click.option("--kind", "kinds", multiple=True, help="Only chunks with an element of this kind; repeatable.")
@click.option("--modified-after", metavar="DATE", help="Only documents changed after this date or time.")
@click.option("--collection", "collections", multiple=True, help="Only this collection; repeatable. [all]")
@click.option("--snippet-bytes", type=int, help="Size of each snippet. [400]")
@click.option("--group-by", type=click.Choice(["document", "none"]), help="Keep one document from filling the list.")
@click.option("--explain", metavar="PATH", help="Tell why this document is found or not.")
@click.option("--no-update", is_flag=True, help="Search the index as it is, without looking for changed files.")
@click.pass_context
def search_command(context: click.Context, /, *, query: tuple[str, ...], no_update: bool, **options: Any) -> int:
    """Find passages in the project's Markdown.

    Quotes make a phrase and a leading hyphen excludes: search '"edit loop" -draft'.
    The index is brought up to date first.
    """
    chosen = given(context)
    arguments = {
        "query": " ".join(query),
        "mode": options["mode"],
        "topK": options["top_k"],
        "pathPrefix": options["path_prefix"],
        "includeGlob": options["include_glob"],
        "excludeGlob": options["exclude_glob"],
        "tags": options["tags"],
        "where": _conditions(options["where"]),
        "kinds": options["kinds"],
        "modifiedAfter": options["modified_after"],
        "collections": options["collections"],
        "snippetBytes": options["snippet_bytes"],
        "groupBy": options["group_by"],
        "explain": options["explain"],
    }
    with opened(chosen) as app:
        if not no_update:
            bring_up_to_date(app)
        result = call_tool(app, "kb_search", arguments)
    if chosen.as_json:
        screen.json(result)
    else:
        _show(result)
    return ExitCode.DONE


def _conditions(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter("give a JSON object.", param_hint="--where") from error


def _show(result: dict[str, Any]) -> None:
    for hit in result["results"]:
        first, last = hit["lines"]
        where = f"{hit['path']}:{first}-{last}"
        if hit.get("collection"):
            where = f"[{hit['collection']}] {where}"
        screen.line(f"{hit['rank']}. {where}{'  (changed since)' if hit.get('stale') else ''}", style="bold cyan")
        if hit["headingPath"]:
            screen.line(f"   {' > '.join(hit['headingPath'])}", style="bold")
        screen.snippet(hit.get("snippet", ""), indent="   ")
        screen.line(f"   {hit['fullPointer']}", style="dim")
    if not result["results"]:
        screen.line("Nothing found.")
    if result["missingTerms"]:
        screen.line(f"Not in the index: {', '.join(result['missingTerms'])}", style="yellow")
    for warning in result["warnings"]:
        screen.line(f"Note: {warning}", style="yellow")
    if result.get("explanation"):
        rows = [
            (key, value if isinstance(value, str) else json.dumps(value))
            for key, value in result["explanation"].items()
        ]
        screen.table(("why", ""), rows)
