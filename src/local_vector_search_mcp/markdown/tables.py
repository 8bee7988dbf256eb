"""Tables: rows, cells, alignment, visible text and cell ranges of a table element."""

from dataclasses import dataclass

from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.inline import cell_text
from local_vector_search_mcp.markdown.source import ByteRange
from local_vector_search_mcp.markdown.table_rows import WHITESPACE, Alignment, delimiter_alignments, split_row


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """One physical cell.

    Attributes:
        padded: Everything between its pipes, or between a pipe and the line's end.
        content: Without the white space around; of an empty cell an empty range inside the padding.
    """

    padded: ByteRange
    content: ByteRange


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """One physical line of a table, header and delimiter row included.

    Attributes:
        line: Its 1-based number in the document.
        range: The line without its ending.
        cells: All physical cells, in order, those beyond the columns included.
        leading_pipe, trailing_pipe: Whether a pipe stands before the first cell and after the last.
    """

    line: int
    range: ByteRange
    cells: tuple[TableCell, ...]
    leading_pipe: bool
    trailing_pipe: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """The physical form of a table, for edits of its cells."""

    header: TableLine
    delimiter: TableLine
    rows: tuple[TableLine, ...]
    alignments: tuple[Alignment, ...]  # One for each column.

    @property
    def column_count(self) -> int:
        """How many columns the header makes."""
        return len(self.alignments)

    @property
    def lines(self) -> tuple[TableLine, ...]:
        """Header, delimiter row and data rows, in order."""
        return (self.header, self.delimiter, *self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column; its index counts from 0."""

    index: int
    name: str
    alignment: Alignment


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A data row: the plain text of a cell for each column, and of the physical cells beyond them."""

    index: int
    cells: tuple[str, ...]
    extra_cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProjection:
    """What a reader sees of a table."""

    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]


def parse_table(document: MarkdownDocument, element: Element) -> TableSource:
    """The physical lines and cells of a table element."""
    _require_table(element)
    first, last = element.lines
    header, delimiter, *rows = (_line(document, number) for number in range(first, last + 1))
    return TableSource(
        header=header, delimiter=delimiter, rows=tuple(rows), alignments=_alignments(document, delimiter)
    )


def project_table(document: MarkdownDocument, element: Element, rows: range | None = None) -> TableProjection:
    """The columns and rows of a table element as plain text; missing cells are empty.

    Args:
        document: The document.
        element: A table in it.
        rows: The indexes of the data rows that are wanted, inside the table; None means all.
    """
    _require_table(element)
    first, last = element.lines
    header = _line(document, first)
    alignments = _alignments(document, _line(document, first + 1))
    names = [cell_plain_text(document, cell) for cell in header.cells]
    wanted = range(last - first - 1) if rows is None else rows
    return TableProjection(
        columns=tuple(
            TableColumn(index=index, name=name, alignment=alignment)
            for index, (name, alignment) in enumerate(zip(names, alignments, strict=True))
        ),
        rows=tuple(_row(document, first + 2 + index, index, len(names)) for index in wanted),
    )


def cell_plain_text(document: MarkdownDocument, cell: TableCell) -> str:
    """The plain text of a cell: escaped pipes resolved, ``<br>`` as a line break."""
    return _shown(document, _text(document, cell.content))


def _shown(document: MarkdownDocument, content: str) -> str:
    return cell_text(content.replace("\\|", "|"), document.labels)


def _require_table(element: Element) -> None:
    if element.kind is not ElementKind.TABLE:
        raise ValueError(f"{element.logical} is no table")


def _alignments(document: MarkdownDocument, delimiter: TableLine) -> tuple[Alignment, ...]:
    return tuple(delimiter_alignments(_text(document, delimiter.range).strip(" \t")) or ())


def _row(document: MarkdownDocument, number: int, index: int, columns: int) -> TableRow:
    text = _text(document, document.source.line_range(number))
    texts = [_shown(document, text[start:end].strip(WHITESPACE)) for start, end in split_row(text)[0]]
    missing = ("",) * (columns - len(texts))
    return TableRow(index=index, cells=(*texts[:columns], *missing), extra_cells=tuple(texts[columns:]))


def _line(document: MarkdownDocument, number: int) -> TableLine:
    line = document.source.line_range(number)
    text = _text(document, line)
    cells, leading, trailing = split_row(text)
    offsets = _Offsets(text, line.start)
    return TableLine(
        line=number,
        range=line,
        cells=tuple(_cell(text, start, end, offsets) for start, end in cells),
        leading_pipe=leading,
        trailing_pipe=trailing,
    )


def _cell(text: str, start: int, end: int, offsets: "_Offsets") -> TableCell:
    padding = text[start:end]
    inner = padding.strip(WHITESPACE)
    if inner:
        content_start = start + len(padding) - len(padding.lstrip(WHITESPACE))
    else:
        # The content of an empty cell stands after one character of padding, where a writer would put it.
        content_start = min(start + 1, end)
    return TableCell(
        padded=ByteRange(offsets.byte(start), offsets.byte(end)),
        content=ByteRange(offsets.byte(content_start), offsets.byte(content_start + len(inner))),
    )


class _Offsets:
    """Character offsets of one line to byte offsets of the document; asked for in any order, cheap in rising order."""

    __slots__ = ("ascii", "base", "last_byte", "last_char", "text")

    def __init__(self, text: str, base: int) -> None:
        self.text = text
        self.base = base
        self.ascii = text.isascii()
        self.last_char = 0
        self.last_byte = base

    def byte(self, char: int) -> int:
        """The byte offset of a character."""
        if self.ascii:
            return self.base + char
        if char < self.last_char:
            self.last_byte -= len(self.text[char : self.last_char].encode("utf-8"))
        else:
            self.last_byte += len(self.text[self.last_char : char].encode("utf-8"))
        self.last_char = char
        return self.last_byte


def _text(document: MarkdownDocument, where: ByteRange) -> str:
    return document.source.decode(where.start, where.end)
