"""Table layout: the physical form of a table while it is edited, its lines, pipes, padding and widths."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from local_vector_search_mcp.markdown.elements import Element, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.table_rows import Alignment
from local_vector_search_mcp.markdown.tables import TableLine, parse_table, project_table


@dataclass(slots=True, kw_only=True)
class LineDraft:
    """One line of the table while it is edited.

    Attributes:
        original: Its bytes; written unchanged unless ``touched``.
        indent, tail: What stands before the leading pipe and after the trailing one.
        cells: The cells with their padding.
        spaced: Whether blanks stand inside of the pipes.
    """

    original: bytes
    indent: bytes
    tail: bytes
    cells: list[bytes]
    leading: bool
    trailing: bool
    ending: bytes
    spaced: bool
    touched: bool = False

    def render(self) -> bytes:
        """The line without its ending."""
        if not self.touched:
            return self.original
        cells = [_apart(cell) for cell in self.cells]
        if not self.trailing and cells:
            cells[-1] = self.cells[-1]
        left, right = b"|" if self.leading else b"", b"|" if self.trailing else b""
        return self.indent + left + b"|".join(cells) + right + self.tail

    def in_pipes(self) -> None:
        """Put pipes around the row, with blanks inside of them where the row has blanks."""
        blank = b" " if self.spaced else b""
        if not self.leading and self.cells and not self.cells[0][:1].isspace():
            self.cells[0] = blank + self.cells[0]
        if not self.trailing and self.cells and not self.cells[-1][-1:].isspace():
            self.cells[-1] += blank
        self.leading = self.trailing = self.touched = True


@dataclass(slots=True, kw_only=True)
class TableDraft:
    """A table while it is edited: its lines, and what a reader is to see."""

    header: LineDraft
    delimiter: LineDraft
    rows: list[LineDraft]
    names: list[str]
    alignments: list[Alignment]
    texts: list[list[str]]
    free: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    free_names: set[int] = field(default_factory=set[int])

    @property
    def lines(self) -> list[LineDraft]:
        """Header, delimiter row and data rows."""
        return [self.header, self.delimiter, *self.rows]

    def render(self) -> bytes:
        """The table's text without its last line ending."""
        lines = self.lines
        parts = [part for line in lines[:-1] for part in (line.render(), line.ending)]
        return b"".join([*parts, lines[-1].render()])


def load_table(document: MarkdownDocument, element: Element) -> TableDraft:
    """A table element, ready to be edited."""
    source = parse_table(document, element)
    # Read alone, as the new table will be: the document's link definitions change what some cells show.
    alone = parse_bytes(b"\n" + element.own_bytes)
    projection = project_table(alone, alone.elements[0])
    return TableDraft(
        header=_line(document, source.header),
        delimiter=_line(document, source.delimiter),
        rows=[_line(document, row) for row in source.rows],
        names=[column.name for column in projection.columns],
        alignments=[column.alignment for column in projection.columns],
        texts=[list(row.cells) for row in projection.rows],
    )


def _line(document: MarkdownDocument, line: TableLine) -> LineDraft:
    data = document.source.data
    start, end = line.range.start, line.range.end
    if line.cells:
        first = line.cells[0].padded.start - line.leading_pipe
        last = line.cells[-1].padded.end + line.trailing_pipe
    else:
        first = start + len(data[start:end]) - len(data[start:end].lstrip(b" \t"))
        last = first + data[first:end].count(b"|")
    ending = document.source.line_ending(line.line) or ""
    cells = [cell.padded.slice(data) for cell in line.cells]
    return LineDraft(
        original=data[start:end],
        indent=data[start:first],
        tail=data[last:end],
        cells=cells,
        spaced=any(cell[:1].isspace() or cell[-1:].isspace() for cell in cells),
        leading=line.leading_pipe,
        trailing=line.trailing_pipe,
        ending=ending.encode("ascii"),
    )


def with_content(padded: bytes, content: str) -> bytes:
    """A cell with other content in its own padding."""
    core = padded.strip(b" \t")
    new = content.encode("utf-8")
    if not core:
        if not new:
            return padded
        left = padded[:1]
        right = padded[1:2]
        return left + new + right + b" " * max(0, len(padded) - len(left + right) - len(content))
    start = padded.index(core)
    return padded[:start] + new + padded[start + len(core) :]


def padded_like(cells: Sequence[bytes], content: str, alignment: Alignment) -> bytes:
    """A new cell of a column: as wide as the others where those are all of one width, else padded as the first is."""
    first = cells[0] if cells else b"  "
    widths = {_width(cell) for cell in cells}
    left, right = _padding(first)
    if len(cells) > 1 and len(widths) == 1:
        width = widths.pop()
        before = 1 if all(cell[:1] in (b" ", b"") for cell in cells) else 0
        after = 1 if all(cell[-1:] in (b" ", b"") for cell in cells) else 0
        free = width - len(content) - before - after
        if free >= 0:
            if alignment is Alignment.RIGHT:
                before += free
            elif alignment is Alignment.CENTER:
                before += free // 2
            return (" " * before + content).ljust(width).encode("utf-8")
    return left + content.encode("utf-8") + right


def padded_beside(line: LineDraft, column: int, content: str) -> bytes:
    """A cell of a new column: padded as the cell beside it is."""
    if column >= len(line.cells):
        return f" {content} ".encode()
    left, right = _padding(line.cells[column])
    if not left and not right and any(other != other.strip(b" ") for other in line.cells):
        left = right = b" "
    return (left or right) + content.encode("utf-8") + (right or left)


def _padding(cell: bytes) -> tuple[bytes, bytes]:
    if not cell.strip(b" \t"):
        return (b" ", b" ") if len(cell) > 1 else (b"", b"")
    return (b" " if cell[:1] in (b" ", b"\t") else b""), (b" " if cell[-1:] in (b" ", b"\t") else b"")


def _width(cell: bytes) -> int:
    return len(cell.decode("utf-8"))


def delimiter_like(cell: bytes, alignment: Alignment) -> bytes:
    """A delimiter cell with another alignment, of the same width and padding where that can be."""
    core = cell.strip(b" \t")
    start = cell.index(core)
    left = b":" if alignment in (Alignment.LEFT, Alignment.CENTER) else b""
    right = b":" if alignment in (Alignment.RIGHT, Alignment.CENTER) else b""
    dashes = b"-" * max(1, len(core) - len(left) - len(right))
    return cell[:start] + left + dashes + right + cell[start + len(core) :]


def _apart(cell: bytes) -> bytes:
    """A cell whose content does not end in a backslash right before the next pipe."""
    return cell + b" " if cell.endswith(b"\\") else cell
