"""Table edits: an action on a pipe table as the table's new text, with as few bytes changed as it takes.

Cells that are not edited keep their bytes. A row whose style cannot hold a value gets outer pipes. What comes
out is read again, and is right only if a reader sees exactly what the action says.
"""

import re
from collections.abc import Sequence
from typing import assert_never

from local_vector_search_mcp.editing.cell_text import ValueFormat, cell_content, shown_text
from local_vector_search_mcp.editing.table_actions import (
    ColumnRef,
    DeleteColumn,
    DeleteRow,
    InsertColumn,
    InsertRow,
    RenameColumn,
    RowRef,
    SetAlignment,
    SortRows,
    TableAction,
    UpdateCells,
)
from local_vector_search_mcp.editing.table_layout import (
    LineDraft,
    TableDraft,
    delimiter_like,
    load_table,
    padded_beside,
    padded_like,
    with_content,
)
from local_vector_search_mcp.editing.text_matches import check_new_size
from local_vector_search_mcp.errors import InvalidArgument, TableLookupFailed, UnsupportedEdit
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.table_rows import Alignment
from local_vector_search_mcp.markdown.tables import TableProjection, project_table

_NUMBER = re.compile(r"\s*([-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+−]?\.\d+)(?!\d|[.,-]\d)")
_MAX_ROWS_SHOWN = 20


def edit_table(document: MarkdownDocument, element: Element, action: TableAction) -> bytes:
    """The table's new text.

    Args:
        document: The document.
        element: The table.
        action: What to do; lookups see the table as it is.

    Raises:
        UnsupportedEdit: The element is no table, or the table has cells beyond its columns.
        TableLookupFailed: No row or column fits a lookup, or several do.
        InvalidArgument: An index is out of range, a cell is given twice, or a value does not fit a cell.
    """
    if element.kind is not ElementKind.TABLE:
        raise UnsupportedEdit(f"{element.logical} is a {element.kind.value}; kb_edit_table takes a table's pointer.")
    projection = project_table(document, element)
    extra = [row.index for row in projection.rows if row.extra_cells]
    if extra:
        raise UnsupportedEdit(
            f"The table has cells beyond its {len(projection.columns)} columns (rows {_listed(extra)}), which no "
            "reader shows; an unescaped | makes them. Mend those rows with kb_patch first.",
            details={"rows": extra[:_MAX_ROWS_SHOWN]},
        )
    table = load_table(document, element)
    _Action(table, projection).apply(action)
    return _verified(table)


class _Action:
    """Applies one action to a table; lookups see the table as it was read."""

    def __init__(self, table: TableDraft, projection: TableProjection) -> None:
        self.table = table
        self.names = [column.name for column in projection.columns]
        self.texts = [list(row.cells) for row in projection.rows]

    def apply(self, action: TableAction) -> None:
        match action:
            case UpdateCells():
                self._update(action)
            case InsertRow():
                self._insert_row(action)
            case DeleteRow():
                self._delete_row(self._row(action.row))
            case InsertColumn():
                self._insert_column(action)
            case DeleteColumn():
                self._delete_column(self._column(action.column))
            case RenameColumn():
                self._rename(action)
            case SetAlignment():
                self._align(self._column(action.column), action.alignment)
            case SortRows():
                self._sort(action)
            case _:
                assert_never(action)

    def _update(self, action: UpdateCells) -> None:
        table = self.table
        places: dict[tuple[int, int], int] = {}
        for number, update in enumerate(action.updates):
            place = (self._row(update.row), self._column(update.column))
            if place in places:
                raise InvalidArgument(
                    f"updates[{places[place]}] and updates[{number}] name the same cell (row {place[0]}, column "
                    f"{place[1]}); give it once."
                )
            places[place] = number
            row, column = place
            if update.value_format is ValueFormat.LITERAL and _same_text(update.value, self.texts[row][column]):
                continue
            content = cell_content(update.value, update.value_format)
            self._set_cell(table.rows[row], column, content)
            if update.value_format is ValueFormat.LITERAL:
                table.texts[row][column] = shown_text(content)
            else:
                table.free.add(place)

    def _set_cell(self, line: LineDraft, column: int, content: str) -> None:
        if column < len(line.cells):
            line.cells[column] = with_content(line.cells[column], content)
        elif content:
            self._fill(line, column)
            line.cells.append(self._new_cell(column, content))
        else:
            return
        line.touched = True

    def _fill(self, line: LineDraft, column: int) -> None:
        """Give a short row empty cells up to a column."""
        if not line.cells:
            line.leading = line.trailing = True
        while len(line.cells) < column:
            line.cells.append(self._new_cell(len(line.cells), ""))

    def _new_cell(self, column: int, content: str) -> bytes:
        """A new cell, padded as the cells of its column are."""
        lines = [self.table.header, *self.table.rows]
        cells = [line.cells[column] for line in lines if column < len(line.cells)]
        return padded_like(cells, content, self.table.alignments[column])

    def _insert_row(self, action: InsertRow) -> None:
        table = self.table
        at = len(table.rows) if action.at is None else action.at
        if at > len(table.rows):
            raise InvalidArgument(
                f"rowIndex is {at}; the table has {len(table.rows)} rows, so at most {len(table.rows)}."
            )
        values = self._row_values(action)
        contents = [cell_content(value, action.value_format) for value in values]
        before = table.lines[at + 1]
        before.ending = before.ending or table.header.ending
        cells = [self._new_cell(column, content) for column, content in enumerate(contents)]
        line = LineDraft(
            original=b"",
            indent=table.header.indent,
            tail=b"",
            cells=cells,
            leading=table.header.leading,
            trailing=table.header.trailing,
            ending=before.ending,
            spaced=table.header.spaced,
            touched=True,
        )
        if not line.leading:
            line.cells[0] = line.cells[0].lstrip(b" ")
        if not line.trailing:
            line.cells[-1] = line.cells[-1].rstrip(b" ")
        table.rows.insert(at, line)
        literal = action.value_format is ValueFormat.LITERAL
        table.texts.insert(at, [shown_text(content) for content in contents])
        table.free = {(row + (row >= at), column) for row, column in table.free}
        if not literal:
            table.free |= {(at, column) for column in range(len(contents))}

    def _row_values(self, action: InsertRow) -> list[str]:
        count = len(self.names)
        if isinstance(action.values, tuple):
            if len(action.values) > count:
                raise InvalidArgument(f"values holds {len(action.values)} values; the table has {count} columns.")
            return [*action.values, *[""] * (count - len(action.values))]
        result = [""] * count
        for name, value in action.values.items():
            result[self._column(ColumnRef(name=name))] = value
        return result

    def _delete_row(self, row: int) -> None:
        table = self.table
        del table.rows[row]
        del table.texts[row]

    def _insert_column(self, action: InsertColumn) -> None:
        table = self.table
        count = len(self.names)
        if action.before is None:
            at = count
        elif action.before.index is not None:
            at = action.before.index
            if at > count:
                raise InvalidArgument(f"columnIndex is {at}; the table has {count} columns, so at most {count}.")
        else:
            at = self._column(action.before)
        name = cell_content(action.name, action.value_format)
        default = cell_content(action.default, action.value_format)
        check_new_size(len(default) * len(table.rows))
        beside = [at - 1] if at else [0]
        for line in table.lines:
            line_content = name if line is table.header else default
            if line is table.delimiter:
                cell = delimiter_like(line.cells[beside[0]], action.alignment)
            elif at > len(line.cells) and not line_content:
                continue
            else:
                self._fill(line, at)
                cell = padded_beside(line, beside[0], line_content)
            self._insert_cell(line, at, cell)
        table.names.insert(at, shown_text(name))
        table.alignments.insert(at, action.alignment)
        for text in table.texts:
            text.insert(at, shown_text(default))
        if action.value_format is ValueFormat.MARKDOWN:
            table.free |= {(row, at) for row in range(len(table.rows))}
            table.free_names.add(at)

    @staticmethod
    def _insert_cell(line: LineDraft, at: int, cell: bytes) -> None:
        """Put a cell in, with blanks where a row without outer pipes has its inner and outer edges."""
        padding = b" " if any(b" " in (other[:1], other[-1:]) for other in line.cells) else b""
        if not line.leading and at == 0:
            cell = cell.lstrip(b" ")
            if line.cells and padding and not line.cells[0].startswith(b" "):
                line.cells[0] = padding + line.cells[0]
            if cell and padding and not cell.endswith(b" "):
                cell += padding
        if not line.trailing and at == len(line.cells):
            cell = cell.rstrip(b" ")
            if line.cells and padding and not line.cells[-1].endswith(b" "):
                line.cells[-1] += padding
            if cell and padding and not cell.startswith(b" "):
                cell = padding + cell
        line.cells.insert(at, cell)
        line.touched = True

    def _delete_column(self, column: int) -> None:
        table = self.table
        if len(self.names) == 1:
            raise UnsupportedEdit("The table has one column, which cannot go; delete the table with kb_patch.")
        for line in table.lines:
            if column >= len(line.cells):
                continue
            del line.cells[column]
            if line.cells and not line.leading and column == 0:
                line.cells[0] = line.cells[0].lstrip(b" ")
            if line.cells and not line.trailing and column == len(line.cells):
                line.cells[-1] = line.cells[-1].rstrip(b" ")
            line.touched = True
        del table.names[column]
        del table.alignments[column]
        for text in table.texts:
            del text[column]

    def _rename(self, action: RenameColumn) -> None:
        column = self._column(action.column)
        literal = action.value_format is ValueFormat.LITERAL
        if literal and _same_text(action.name, self.names[column]):
            return
        content = cell_content(action.name, action.value_format)
        header = self.table.header
        header.cells[column] = with_content(header.cells[column], content)
        header.touched = True
        self.table.names[column] = shown_text(content)
        if not literal:
            self.table.free_names.add(column)

    def _align(self, column: int, alignment: Alignment) -> None:
        table = self.table
        if table.alignments[column] is alignment:
            return
        line = table.delimiter
        line.cells[column] = delimiter_like(line.cells[column], alignment)
        line.touched = True
        table.alignments[column] = alignment

    def _sort(self, action: SortRows) -> None:
        table = self.table
        column = self._column(action.column)
        order = _order([text[column] for text in self.texts], action)
        endings = [row.ending for row in table.rows]
        table.rows = [table.rows[place] for place in order]
        table.texts = [table.texts[place] for place in order]
        for row, ending in zip(table.rows, endings, strict=True):
            row.ending = ending

    def _column(self, ref: ColumnRef) -> int:
        if ref.index is not None:
            if ref.index >= len(self.names):
                raise TableLookupFailed(
                    f"There is no column {ref.index}; the table has {len(self.names)} columns, from 0."
                )
            return ref.index
        found = [index for index, name in enumerate(self.names) if name == ref.name]
        if len(found) == 1:
            return found[0]
        if not found:
            raise TableLookupFailed(
                f"No column is named {ref.name!r}; there are {', '.join(map(repr, self.names[:_MAX_ROWS_SHOWN]))}.",
                details={"columns": self.names[:_MAX_ROWS_SHOWN]},
            )
        raise TableLookupFailed(
            f"The columns {_listed(found)} are all named {ref.name!r}; use columnIndex.",
            details={"columnIndexes": found},
        )

    def _row(self, ref: RowRef) -> int:
        if ref.index is not None:
            if ref.index >= len(self.texts):
                raise TableLookupFailed(f"There is no row {ref.index}; the table has {len(self.texts)} rows, from 0.")
            return ref.index
        column = self._column(ColumnRef(name=ref.column))
        wanted = ref.equals or ""
        found = [index for index, text in enumerate(self.texts) if text[column] == wanted]
        if len(found) == 1:
            return found[0]
        if not found:
            raise TableLookupFailed(
                f"No row has {ref.equals!r} in the column {ref.column!r}; the comparison is exact and case-sensitive "
                "on the text that is shown."
            )
        raise TableLookupFailed(
            f"The rows {_listed(found)} all have {ref.equals!r} in the column {ref.column!r}; use rowIndex.",
            details={"rowIndexes": found[:_MAX_ROWS_SHOWN]},
        )


def _verified(table: TableDraft) -> bytes:
    """The table's text, after rows that do not read as they must got outer pipes."""
    wrong = _wrong_lines(table)
    if wrong:
        for line in wrong:
            line.in_pipes()
        if _wrong_lines(table):
            raise InvalidArgument(
                "A value does not fit into one cell of this table: it would be read as more than that cell. Give it "
                "with valueFormat literal, or without the marks that open what another cell closes."
            )
    return table.render()


def _wrong_lines(table: TableDraft) -> list[LineDraft]:
    """The touched lines that a reader would see otherwise; all touched ones where it is no table any more."""
    touched = [line for line in table.lines if line.touched]
    document = parse_bytes(b"\n" + table.render())
    elements = document.elements
    if len(elements) != 1 or elements[0].kind is not ElementKind.TABLE:
        return touched or table.lines
    projection = project_table(document, elements[0])
    names = [column.name for column in projection.columns]
    alignments = [column.alignment for column in projection.columns]
    if len(names) != len(table.names) or len(projection.rows) != len(table.rows) or alignments != table.alignments:
        return touched or table.lines
    wrong: list[LineDraft] = []
    if any(name != table.names[index] for index, name in enumerate(names) if index not in table.free_names):
        wrong.append(table.header)
    for index, row in enumerate(projection.rows):
        expected = table.texts[index]
        same = all(
            text == expected[column] for column, text in enumerate(row.cells) if (index, column) not in table.free
        )
        if row.extra_cells or not same:
            wrong.append(table.rows[index])
    return wrong


def _same_text(value: str, shown: str) -> bool:
    return value.replace("\r\n", "\n").replace("\r", "\n") == shown


def _order(texts: Sequence[str], action: SortRows) -> list[int]:
    places = range(len(texts))
    if not action.numeric:
        return sorted(places, key=lambda place: texts[place], reverse=action.descending)
    numbers = {place: number for place in places if (number := _number(texts[place])) is not None}
    without = [place for place in places if place not in numbers]
    return [*sorted(numbers, key=lambda place: numbers[place], reverse=action.descending), *without]


def _number(text: str) -> float | None:
    match = _NUMBER.match(text)
    if match is None:
        return None
    return float(match.group(1).replace(",", "").replace("−", "-"))


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MAX_ROWS_SHOWN]))
    return shown + (", …" if len(numbers) > _MAX_ROWS_SHOWN else "")
