"""Tables: physical cells and what a reader sees."""

import pytest

from local_vector_search_mcp.markdown.elements import ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.table_rows import Alignment, begins_table, delimiter_alignments, split_row
from local_vector_search_mcp.markdown.tables import TableLine, parse_table, project_table


def contents(document: MarkdownDocument, line: TableLine) -> list[tuple[str, str]]:
    """The padded and the bare text of each cell."""
    data = document.source.data
    return [(cell.padded.slice(data).decode(), cell.content.slice(data).decode()) for cell in line.cells]


@pytest.mark.parametrize(
    ("row", "cells", "leading", "trailing"),
    [
        ("a|b", ["a", "b"], False, False),
        ("| a | b |", [" a ", " b "], True, True),
        ("  |a", ["a"], True, False),
        ("a|  ", ["a"], False, True),
        ("|", [], True, False),
        ("||", [""], True, True),
        ("|||", ["", ""], True, True),
        ("| |", [" "], True, True),
        ("a \\| b|c", ["a \\| b", "c"], False, False),
        ("a \\\\| b", ["a \\\\| b"], False, False),
        ("`a|b`", ["`a", "b`"], False, False),
        ("text", ["text"], False, False),
        ("\u00a0a | b\u00a0", ["a ", " b"], False, False),
    ],
)
def test_row__is_split_at_unescaped_pipes(row: str, cells: list[str], leading: bool, trailing: bool) -> None:
    """A code span does not protect a pipe, a backslash does; outer pipes make no cells."""
    ranges, has_leading, has_trailing = split_row(row)
    assert [row[start:end] for start, end in ranges] == cells
    assert (has_leading, has_trailing) == (leading, trailing)


@pytest.mark.parametrize(
    ("line", "alignments"),
    [
        ("---|---", ["none", "none"]),
        ("|:-|-:|:-:|-|", ["left", "right", "center", "none"]),
        (":-", ["left"]),
        ("| --- |", ["none"]),
        ("--", ["none"]),
        ("-", None),
        ("- | -", None),
        ("|-|-|x", None),
        ("|--||--|", None),
        ("|:|", None),
        ("|-:-|", None),
        ("===", None),
        ("|", None),
        ("", None),
    ],
)
def test_delimiter_row__gives_alignments(line: str, alignments: list[str] | None) -> None:
    """Hyphens with colons at their ends, and nothing else."""
    found = delimiter_alignments(line)
    assert found == (None if alignments is None else [Alignment(name) for name in alignments])


@pytest.mark.parametrize(
    ("header", "delimiter", "is_table"),
    [
        ("a|b", "- | -", False),
        ("a|b", "-|-", True),
        ("a|b", "--|--", True),
        ("|a", "--", True),
        ("a", "--", False),
        ("a|b|c", "--|--", False),
    ],
)
def test_table__begins_where_header_and_delimiter_agree(header: str, delimiter: str, is_table: bool) -> None:
    """The header has a pipe and as many cells as the delimiter row."""
    assert begins_table(header, delimiter) == is_table


def test_table__physical_cells_have_exact_ranges() -> None:
    """Padding and content of every line, header and delimiter row included, in bytes."""
    document = parse_bytes("text é\n\n | é | *b* |\r\n |:--|--:|\r\n1|\r\n || x \\| y | z\r\n".encode())
    element = document.elements[1]
    table = parse_table(document, element)
    assert table.alignments == (Alignment.LEFT, Alignment.RIGHT)
    assert table.column_count == 2
    assert [contents(document, line) for line in table.lines] == [
        [(" é ", "é"), (" *b* ", "*b*")],
        [(":--", ":--"), ("--:", "--:")],
        [("1", "1")],
        [("", ""), (" x \\| y ", "x \\| y"), (" z", "z")],
    ]
    assert [(line.leading_pipe, line.trailing_pipe) for line in table.lines] == [
        (True, True),
        (True, True),
        (False, True),
        (True, False),
    ]
    assert [line.line for line in table.lines] == [3, 4, 5, 6]
    assert [line.range.slice(document.source.data) for line in table.rows] == [b"1|", b" || x \\| y | z"]


def test_table__an_empty_cells_content_stands_after_one_blank() -> None:
    """That is where a value is written."""
    document = parse_bytes(b"|a|b|c|d|\n|-|-|-|-|\n|| |  |    |\n")
    row = parse_table(document, document.elements[0]).rows[0]
    offsets = [(cell.content.start - cell.padded.start, cell.padded.length) for cell in row.cells]
    assert offsets == [(0, 0), (1, 1), (1, 2), (1, 4)]
    assert all(cell.content.length == 0 for cell in row.cells)


def test_projection__missing_and_extra_cells() -> None:
    """Missing trailing cells are empty, extra ones stand beside the row."""
    document = parse_bytes(b"| *a* | b |\n|---|:-:|\n| 1 |\n| `x | y` | z \\| w |\n| a<br>b | [l](u) |\n")
    table = project_table(document, document.elements[0])
    assert [(column.index, column.name, column.alignment) for column in table.columns] == [
        (0, "a", "none"),
        (1, "b", "center"),
    ]
    assert [(row.index, row.cells, row.extra_cells) for row in table.rows] == [
        (0, ("1", ""), ()),
        (1, ("`x", "y`"), ("z | w",)),
        (2, ("a\nb", "l"), ()),
    ]


def test_table__other_elements_have_none() -> None:
    """Asking for the table of a paragraph is a mistake of the caller."""
    document = parse_bytes(b"text\n")
    assert document.elements[0].kind is ElementKind.PARAGRAPH
    with pytest.raises(ValueError, match="p1 is no table"):
        parse_table(document, document.elements[0])
