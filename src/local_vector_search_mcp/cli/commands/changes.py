"""Telling a person what a change did, or would do."""

from typing import TYPE_CHECKING, Any

from local_vector_search_mcp.cli.commands.upkeep import bring_up_to_date
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Given
from local_vector_search_mcp.cli.render import screen

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def report_change(chosen: Given, app: "App", result: dict[str, Any]) -> int:
    """Print the result of a mutation, then bring the index in line with it."""
    if chosen.as_json:
        screen.json(result)
    else:
        show_diffs(result)
        for warning in result.get("warnings", ()):
            screen.line(f"Note: {warning}", style="yellow")
        _summary(result)
    if result.get("applied"):
        bring_up_to_date(app)
    return ExitCode.DONE


def show_diffs(result: dict[str, Any]) -> None:
    """Print the unified diffs of a dry run."""
    for item in result.get("diffs", ()):
        show_diff(item["diff"])


def show_diff(diff: str) -> None:
    """Print one unified diff."""
    if not screen.is_terminal:
        screen.exact(diff if diff.endswith("\n") else f"{diff}\n")
        return
    for line in diff.splitlines():
        screen.line(line, style=_DIFF_STYLES.get(line[:1], ""))


def _summary(result: dict[str, Any]) -> None:
    if not result.get("applied"):
        screen.line(f"Nothing was written. Plan: {result.get('planHash', '')}")
        return
    path = result.get("path", "")
    change = f" as change {result['changeId']}" if result.get("changeId") else ""
    screen.line(f"Changed{f' {path}' if path else ''}{change}.", style="green")
    for operation in result.get("operations", ()):
        for pointer in operation["pointers"]:
            screen.line(f"  {pointer}", style="dim")
