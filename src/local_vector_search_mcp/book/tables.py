"""Tables that fit their page: smaller type, then a turned page, then groups of columns; nothing is ever cut off."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from local_vector_search_mcp.book.raw_html import Sanitizer
from local_vector_search_mcp.book.text_width import longest_word_em, text_em

# Sizes of table type in em of the body type, largest first.
SIZES: Final = (0.9, 0.8, 0.7, 0.6)
_PADDING_EM: Final = 1.1
_TIGHT_PADDING_EM: Final = 0.6
_BREAKABLE_EM: Final = 9.0
_SHORTEST_EM: Final = 2.4
# A column wider than this reads no better for it.
_WIDEST_EM: Final = 32.0


@dataclass(frozen=True, slots=True)
class _Choice:
    """A way to set a table: type size, padding, and the longest word that is kept whole."""

    size: float
    tight: bool
    longest: float

    def padding(self, columns: int) -> float:
        return columns * (_TIGHT_PADDING_EM if self.tight else _PADDING_EM)

    def fits(self, shortest: Sequence[float], room: float) -> bool:
        least = sum(min(self.longest, width) for width in shortest)
        return least <= room - self.padding(len(shortest))


@dataclass(frozen=True, slots=True)
class _Settled:
    choice: _Choice
    widths: tuple[float, ...]
    lines: float
    cost: float


_CHOICES: Final = tuple(
    _Choice(size, tight, longest)
    for size, tight in ((0.9, False), (0.8, False), (0.8, True), (0.7, True))
    for longest in (30.0, 18.0, 12.0, _BREAKABLE_EM)
)
# Small type is worth it only where it saves a good part of the height, and so is breaking words.
_SMALL_TYPE: Final = 1.6
_BROKEN_WORD_LINES: Final = 0.6
_ROWS_LOOKED_AT: Final = 60
_ROW_SPACE: Final = 0.45
_SHORT_LINES: Final = 16.0
# Lines are not filled to their end.
_RAGGED: Final = 1.12


class Turn(StrEnum):
    """How a table stands on the page."""

    UPRIGHT = "upright"
    TURNED = "turned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: its HTML and the text that decides how wide it is."""

    html: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """A table: header cells, rows of as many cells, and per column ``left``, ``center``, ``right`` or nothing."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    alignments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """How a table is set.

    ``widths`` holds a share per column, or nothing where the table is as wide as its content; ``groups`` the column
    numbers of each part that the table is cut into. A short table is kept ``whole`` on one page.
    """

    size: float
    turn: Turn
    tight: bool
    groups: tuple[tuple[int, ...], ...]
    widths: tuple[tuple[float, ...], ...]
    whole: bool = False


def plan_table(content: TableContent, *, column_em: float, turned_em: float | None) -> TablePlan:
    """Decide how a table is set.

    Args:
        content: The table.
        column_em: The room between the margins in em of the body type.
        turned_em: The room on a turned page; ``None`` where the table cannot stand on one.
    """
    count = len(content.header)
    shortest, natural = _measure(content)
    everything = tuple(range(count))
    if sum(natural) + count * _PADDING_EM <= column_em / SIZES[0]:
        return TablePlan(
            size=SIZES[0],
            turn=Turn.UPRIGHT,
            tight=False,
            groups=(everything,),
            widths=((),),
            whole=len(content.rows) <= _SHORT_LINES / (1 + _ROW_SPACE),
        )
    rooms = [(Turn.UPRIGHT, column_em)] + ([] if turned_em is None else [(Turn.TURNED, turned_em)])
    for turn, room in rooms:
        fitting = [
            _settled(content, natural, shortest, choice, room / choice.size)
            for choice in _CHOICES
            if choice.fits(shortest, room / choice.size)
        ]
        if fitting:
            best = min(fitting, key=lambda settled: settled.cost)
            return TablePlan(
                size=best.choice.size,
                turn=turn,
                tight=best.choice.tight,
                groups=(everything,),
                widths=(tuple(width / sum(best.widths) for width in best.widths),),
                whole=len(content.rows) <= _ROWS_LOOKED_AT and best.lines <= _SHORT_LINES,
            )
    return _cut(shortest, natural, *rooms[-1])


def table_html(content: TableContent, plan: TablePlan, sanitizer: Sanitizer) -> str:
    """The table as HTML that is still to be cleaned; header rows repeat on every page."""
    own = sanitizer.attribute
    parts: list[str] = []
    for group, widths in zip(plan.groups, plan.widths, strict=True):
        classes = "grid" + (" tight" if plan.tight else "") + (" fixed" if widths else "")
        parts.append(f"<table{own('class', classes)}{own('style', f'font-size:{plan.size:.3g}em')}>")
        if widths:
            columns = "".join(f"<col{own('style', f'width:{100 * width:.2f}%')}>" for width in widths)
            parts.append(f"<colgroup>{columns}</colgroup>")
        if any(content.header[index].html for index in group):
            parts.append(f"<thead>{_row(content.header, group, content.alignments, 'th')}</thead>")
        rows = (_row(row, group, content.alignments, "td") for row in content.rows)
        parts.append(f"<tbody>{''.join(rows)}</tbody></table>")
    box = "turned" if plan.turn is Turn.TURNED else "table-box whole" if plan.whole else "table-box"
    return f"<div{own('class', box)}>{''.join(parts)}</div>"


def _measure(content: TableContent) -> tuple[list[float], list[float]]:
    """Per column the narrowest width that breaks no ordinary word, and the width without any line break."""
    shortest: list[float] = []
    natural: list[float] = []
    for index, head in enumerate(content.header):
        texts = [row[index].text for row in content.rows]
        lines = [line for text in texts for line in text.split("\n")] or [""]
        words = max(longest_word_em(head.text) * 1.08, *(longest_word_em(line) for line in lines))
        whole = max(text_em(head.text) * 1.08, *(text_em(line) for line in lines))
        shortest.append(max(1.0, words))
        natural.append(max(1.0, whole))
    return shortest, natural


def _settled(
    content: TableContent, natural: list[float], shortest: list[float], choice: _Choice, room: float
) -> _Settled:
    """The column widths of a choice, and what it costs: height, smallness and broken words."""
    everything = tuple(range(len(natural)))
    rest = room - choice.padding(len(natural))
    least = [min(choice.longest, width) for width in shortest]
    widths = tuple(share * rest for share in _shares(everything, least, natural, rest))
    lines = 0.0
    for row in content.rows[:_ROWS_LOOKED_AT]:
        tallest = 1.0
        for cell, width in zip(row, widths, strict=True):
            high = sum(math.ceil(text_em(line) * _RAGGED / width) for line in cell.text.split("\n"))
            tallest = max(tallest, high + _BROKEN_WORD_LINES * (longest_word_em(cell.text) > width))
        lines += tallest + _ROW_SPACE
    return _Settled(choice, widths, lines, lines * choice.size * (SIZES[0] / choice.size) ** _SMALL_TYPE)


def _shares(group: tuple[int, ...], shortest: list[float], natural: list[float], room: float) -> tuple[float, ...]:
    """The shares of a group's columns: each its shortest width, and of the rest in proportion to what it wants."""
    base = [shortest[index] for index in group]
    # The square root keeps one very long column from starving the others.
    want = [max(0.0, min(natural[index], _WIDEST_EM) - shortest[index]) ** 0.75 for index in group]
    rest = max(0.0, room - sum(base))
    total = sum(want)
    given = [
        width + (rest * part / total if total else rest / len(base)) for width, part in zip(base, want, strict=True)
    ]
    return tuple(width / sum(given) for width in given)


def _cut(shortest: list[float], natural: list[float], turn: Turn, room: float) -> TablePlan:
    """The smallest type, long words broken, and as many parts as it takes; the first column stands in each."""
    size = SIZES[-1]
    width = room / size
    narrow = [min(length, _BREAKABLE_EM / 2) for length in shortest]
    needed = [max(_SHORTEST_EM, length) + _TIGHT_PADDING_EM for length in narrow]
    groups: list[tuple[int, ...]] = []
    current = [0]
    used = needed[0]
    for index in range(1, len(needed)):
        if used + needed[index] > width and len(current) > 1:
            groups.append(tuple(current))
            current, used = [0], needed[0]
        current.append(index)
        used += needed[index]
    groups.append(tuple(current))
    widths = tuple(_shares(group, narrow, natural, width - len(group) * _TIGHT_PADDING_EM) for group in groups)
    return TablePlan(size=size, turn=turn, tight=True, groups=tuple(groups), widths=widths)


def _row(cells: tuple[Cell, ...], group: tuple[int, ...], alignments: tuple[str, ...], tag: str) -> str:
    parts: list[str] = []
    for index in group:
        align = f" align={alignments[index]}" if alignments[index] else ""
        parts.append(f"<{tag}{align}>{cells[index].html}</{tag}>")
    return f"<tr>{''.join(parts)}</tr>"
