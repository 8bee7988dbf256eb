"""``book``: a PDF book of one document or several."""

import time
from typing import Any

import click

from local_vector_search_mcp.cli.calls import call_tool, opened
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Command, given
from local_vector_search_mcp.cli.render import screen

_LOOK_AGAIN_S = 0.5


@click.command("book", cls=Command, short_help="Make a PDF book.")
@click.argument("paths", nargs=-1)
@click.option("--glob", "include_glob", multiple=True, help="Take all documents that match; repeatable.")
@click.option("--chapters-from-links", is_flag=True, help="The links of the one document are the chapters.")
@click.option("-o", "--output", help="Path of the PDF under the root. [the source's name]")
@click.option("--page-format", type=click.Choice(["a4", "a5", "a6", "b5", "letter"]), help="Page size. [a5]")
@click.option(
    "--style",
    type=click.Choice(["compact", "classic", "modern", "technical", "academic"]),
    help="Typography. [compact]",
)
@click.option("--profile", type=click.Choice(["screen", "standard", "print"]), help="Image quality. [standard]")
@click.option("--toc/--no-toc", default=None, help="Table of contents. [from two headings on]")
@click.option("--cover/--no-cover", default=None, help="Cover page. [where front matter has one]")
@click.option("--number-sections", is_flag=True, help="Number the headings.")
@click.option("--language", help="Language tag for hyphenation, such as en.")
@click.pass_context
def book_command(context: click.Context, /, *, paths: tuple[str, ...], **options: Any) -> int:
    """Set one document, or several as chapters in the order given, as a PDF book."""
    chosen = given(context)
    arguments = {
        "path": paths[0] if len(paths) == 1 else None,
        "paths": paths if len(paths) > 1 else None,
        "includeGlob": options["include_glob"],
        "chaptersFromLinks": options["chapters_from_links"] or None,
        "outputPath": options["output"],
        "pageFormat": options["page_format"],
        "style": options["style"],
        "profile": options["profile"],
        "toc": options["toc"],
        "cover": options["cover"],
        "numberSections": options["number_sections"] or None,
        "language": options["language"],
    }
    with opened(chosen) as app, screen.progress("setting the book") as show:
        while True:
            result = call_tool(app, "kb_create_pdf_book", arguments, report_progress=show)
            if result.get("state") != "running":
                break
            time.sleep(_LOOK_AGAIN_S)
    if chosen.as_json:
        screen.json(result)
        return ExitCode.DONE
    for warning in result["warnings"]:
        screen.line(f"Note: {warning}", style="yellow")
    screen.line(f"{result['path']}: {result['pages']} pages, {result['bytes']:,} bytes", style="green")
    return ExitCode.DONE
