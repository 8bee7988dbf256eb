"""How results are shown: colour, tables and progress bars on a terminal, plain text in a pipe, JSON when asked for.

Everything that came from a file is cleaned of control characters before it reaches a terminal, which would obey them.
"""

import json
import re
import sys
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from local_vector_search_mcp.cli.calls import ProgressCallback

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# What is left at least to the columns that may be broken.
_LEAST_WIDTH = 10
_MATCH = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)


class Screen:
    """Standard output, as a person or a program reads it."""

    @cached_property
    def is_terminal(self) -> bool:
        """Whether a person looks at it."""
        return sys.stdout.isatty()

    @cached_property
    def _console(self) -> "Console":
        from rich.console import Console

        return Console(highlight=False)

    def json(self, value: Any) -> None:
        """Print a structured result as it is."""
        click.echo(json.dumps(value, ensure_ascii=False, indent=2 if self.is_terminal else None))

    def line(self, text: str = "", *, style: str = "") -> None:
        """Print a line; ``style`` is rich's and shows on terminals only."""
        if self.is_terminal:
            from rich.text import Text

            # Lines are left to the terminal to wrap: a command or a pointer that is copied stays in one piece.
            self._console.print(Text(clean(text), style=style), soft_wrap=True)
        else:
            click.echo(text)

    def exact(self, text: str) -> None:
        """Print text as it is, adding nothing; on a terminal without its control characters."""
        # In a pipe click would take colour codes out of the text unless told that they are wanted.
        click.echo(clean(text) if self.is_terminal else text, nl=False, color=not self.is_terminal or None)
        if self.is_terminal and not text.endswith("\n"):
            click.echo()

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        numbers: Collection[int] = (),
        whole: Collection[int] = (),
    ) -> None:
        """Print rows: a table on a terminal, else one line each with tabs between and no header.

        A terminal is shown no column that is empty in every row.

        Args:
            columns: The header.
            rows: As many cells each as there are columns.
            numbers: Indexes of columns that are set to the right.
            whole: Indexes of columns that people copy from, and that are not broken where there is room.
        """
        if not self.is_terminal:
            for row in rows:
                click.echo("\t".join(" ".join(cell.split()) for cell in row))
            return
        from rich import box
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        widths = [max((cell_len(clean(row[index])) for row in rows), default=0) for index in range(len(columns))]
        kept = [index for index in range(len(columns)) if widths[index] or not rows]
        least = sum(widths[index] if index in whole else min(widths[index], _LEAST_WIDTH) for index in kept)
        has_room = least + 3 * len(kept) <= self._console.width
        for index in kept:
            table.add_column(
                columns[index],
                justify="right" if index in numbers else "left",
                overflow="fold",
                no_wrap=has_room and index in whole,
            )
        for row in rows:
            table.add_row(*(Text(clean(row[index])) for index in kept))
        self._console.print(table)

    def snippet(self, text: str, *, indent: str) -> None:
        """Print a snippet, its matches shown instead of marked where there is colour."""
        lines = [line for line in text.splitlines() if line.strip()]
        if not self.is_terminal:
            for line in lines:
                click.echo(f"{indent}{line}")
            return
        from rich.padding import Padding

        self._console.print(Padding(_with_matches(clean("\n".join(lines))), (0, 0, 0, len(indent))))

    @contextmanager
    def progress(self, what: str) -> Generator[ProgressCallback, None, None]:
        """Show how far work has got, on standard error and only to a person."""
        if not sys.stderr.isatty():
            yield _show_nothing
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)

            def show(done: float, total: float | None, message: str | None) -> None:
                bar.update(task, completed=done, total=total or None, description=clean(message or what))

            yield show


def clean(text: str) -> str:
    """The text with every control character but line ends and tabs made harmless."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))


def _with_matches(text: str) -> "Text":
    from rich.text import Text

    shown = Text(style="dim")
    end = 0
    for match in _MATCH.finditer(text):
        shown.append(text[end : match.start()])
        shown.append(match[1], style="not dim bold yellow")
        end = match.end()
    shown.append(text[end:])
    return shown


def _show_nothing(_done: float, _total: float | None, _message: str | None) -> None:
    """Nobody looks."""


screen = Screen()
