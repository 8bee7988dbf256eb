"""``read`` and ``outline``: a document as it is now, in slices, and its headings."""

from collections.abc import Sequence
from typing import Any

import click

from local_vector_search_mcp.cli.calls import call_tool, opened
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Command, given
from local_vector_search_mcp.cli.render import screen


@click.command("read", cls=Command, short_help="Print a document, or the slice at a pointer.")
@click.argument("path", required=False)
@click.argument("pointer", required=False)
@click.option("--max-elements", type=int, help="Most elements of a page. [20]")
@click.option("--max-bytes", type=int, help="Most bytes of a page. [12000]")
@click.option("--before", type=int, help="Elements before the pointer, in addition. [0]")
@click.option("--section", is_flag=True, help="On a heading: stay inside its section.")
@click.option("--offset", type=int, help="Byte to go on at inside an element that was cut.")
@click.option("--collection", help="The collection to read from. [project]")
@click.option("--pointers", multiple=True, help="A full pointer (path::pointer) to read instead; repeatable.")
@click.option("--include", "parts", type=click.Choice(["text", "markdown"]), multiple=True, help="Parts of --json.")
@click.pass_context
def read_command(context: click.Context, /, **options: Any) -> int:
    """Print Markdown exactly as it stands in the file.

    PATH may be a full pointer (path::pointer), as search prints it. A whole document is printed to its end; with a
    pointer, or with a limit, one page is.
    """
    chosen = given(context)
    paged = any(
        options[name] is not None for name in ("pointer", "max_elements", "max_bytes", "before", "offset")
    ) or "::" in (options["path"] or "")
    arguments = {
        **_place(options),
        "maxElements": options["max_elements"],
        "maxBytes": options["max_bytes"],
        "before": options["before"],
        "section": options["section"] or None,
        "offset": options["offset"],
        "collection": options["collection"],
        "pointers": options["pointers"],
    }
    with opened(chosen) as app:
        if chosen.as_json:
            screen.json(call_tool(app, "kb_read", {**arguments, "include": options["parts"]}))
            return ExitCode.DONE
        if options["parts"]:
            raise click.UsageError("--include goes with --json; without it the Markdown is printed.")
        arguments["include"] = ("markdown",)
        if not paged and not options["pointers"]:
            arguments.update(maxElements=200, maxBytes=200_000)
        result = call_tool(app, "kb_read", arguments)
        if options["pointers"]:
            return _show_slices(result["slices"])
        screen.exact(result.get("markdown", ""))
        while not paged and (further := _further(result)):
            result = call_tool(app, "kb_read", {**arguments, **further})
            screen.exact(result.get("markdown", ""))
    if paged and result.get("nextPointer"):
        click.echo(f"next: {result['path']}::{result['nextPointer']}", err=True)
    return ExitCode.DONE


@click.command("outline", cls=Command, short_help="Print the tree of a document's headings.")
@click.argument("path")
@click.argument("pointer", required=False)
@click.option("--max-depth", type=int, help="Levels of the tree. [6]")
@click.option("--collection", help="The collection to read from. [project]")
@click.pass_context
def outline_command(context: click.Context, /, **options: Any) -> int:
    """Print the headings of PATH with their lines and pointers; POINTER makes one of them the top."""
    chosen = given(context)
    arguments = {**_place(options), "maxDepth": options["max_depth"], "collection": options["collection"]}
    with opened(chosen) as app:
        result = call_tool(app, "kb_outline", arguments)
    if chosen.as_json:
        screen.json(result)
        return ExitCode.DONE
    if not result["headings"]:
        screen.line("No headings.")
    rows: list[tuple[str, str, str]] = []
    _flatten(result["headings"], 0, rows)
    screen.table(("line", "heading", "pointer"), rows, numbers=(0,), whole=(2,))
    return ExitCode.DONE


def _place(options: dict[str, Any]) -> dict[str, Any]:
    """Path and pointer as the tools take them, a full pointer taken apart."""
    path, pointer = options["path"], options["pointer"]
    if path and pointer is None and "::" in path:
        path, _, pointer = path.rpartition("::")
    return {"path": path, "pointer": pointer}


def _further(page: dict[str, Any]) -> dict[str, Any] | None:
    """Where the text goes on after a page; None at the end."""
    if page.get("truncated"):
        return {"pointer": page["elements"][0]["pointer"] if page["elements"] else None, "offset": page["nextOffset"]}
    if page.get("nextPointer"):
        return {"pointer": page["nextPointer"], "offset": None}
    return None


def _show_slices(slices: Sequence[dict[str, Any]]) -> int:
    failed = False
    for part in slices:
        if "error" in part:
            failed = True
            click.echo(f"error: {part['error'].get('code')}: {part['error'].get('message')}", err=True)
        else:
            screen.exact(part.get("markdown", ""))
    return ExitCode.FAILED if failed else ExitCode.DONE


def _flatten(headings: Sequence[dict[str, Any]], depth: int, rows: list[tuple[str, str, str]]) -> None:
    for heading in headings:
        rows.append((str(heading["line"]), f"{'  ' * depth}{heading['text']}", heading["pointer"]))
        _flatten(heading["children"], depth + 1, rows)
