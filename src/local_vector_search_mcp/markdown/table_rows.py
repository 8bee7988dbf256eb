"""One line of a pipe table: its cells by character offsets, and what makes two lines begin a table.

GFM 0.29, 4.10 Tables.
"""

import re
from enum import StrEnum

# What the parser trims from a row and from a cell: the white space of String.prototype.trim without U+FEFF.
WHITESPACE = "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"

_DELIMITER_LINE = re.compile(r"(?:[|:]|-(?![ \t]))[-:|][-:| \t]*|[|:][ \t][-:| \t]*")
_DELIMITER_CELL = re.compile(r":?-+:?")
_PIPE = re.compile(r"(?<!\\)\|")


class Alignment(StrEnum):
    """How the cells of a column are aligned."""

    NONE = "none"
    LEFT = "left"
    CENTER = "center"
    RIGHT = "right"


def split_row(text: str) -> tuple[list[tuple[int, int]], bool, bool]:
    """The cells of a table line between its unescaped pipes.

    Args:
        text: The line without its ending.

    Returns:
        Half-open character ranges of the cells with their padding, whether a pipe stands before the first
        cell, and whether one stands after the last.
    """
    start = len(text) - len(text.lstrip(WHITESPACE))
    end = max(start, len(text.rstrip(WHITESPACE)))
    cells: list[tuple[int, int]] = []
    for match in _PIPE.finditer(text, start, end):
        cells.append((start, match.start()))
        start = match.end()
    cells.append((start, end))
    leading = cells[0][0] == cells[0][1]
    if leading:
        del cells[0]
    trailing = bool(cells) and cells[-1][0] == cells[-1][1]
    if trailing:
        del cells[-1]
        # A pipe alone stands before a cell that is not there, and after none.
        trailing = bool(cells) or not leading
    return cells, leading, trailing


def delimiter_alignments(text: str) -> list[Alignment] | None:
    """The alignments of a delimiter row; None where the line is none.

    Args:
        text: The line without its indentation and its ending.
    """
    if _DELIMITER_LINE.fullmatch(text) is None:
        return None
    alignments: list[Alignment] = []
    parts = text.split("|")
    for place, part in enumerate(parts):
        cell = part.strip(" \t")
        if not cell and place in (0, len(parts) - 1):
            continue
        if _DELIMITER_CELL.fullmatch(cell) is None:
            return None
        alignments.append(_alignment(cell))
    return alignments


def begins_table(header: str, delimiter: str) -> bool:
    """Whether two lines (without indentation and ending) are a table's header and delimiter row."""
    if "|" not in header:
        return False
    alignments = delimiter_alignments(delimiter)
    return bool(alignments) and len(split_row(header)[0]) == len(alignments or ())


def _alignment(cell: str) -> Alignment:
    if cell.endswith(":"):
        return Alignment.CENTER if cell.startswith(":") else Alignment.RIGHT
    return Alignment.LEFT if cell.startswith(":") else Alignment.NONE
