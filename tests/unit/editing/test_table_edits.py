"""Table edits: what every action makes of a table, and what is refused."""

from typing import Any

import pytest

from local_vector_search_mcp.editing.table_actions import read_action
from local_vector_search_mcp.editing.table_edits import edit_table
from local_vector_search_mcp.errors import (
    InvalidArgument,
    KnowledgeBaseError,
    TableLookupFailed,
    TooLarge,
    UnsupportedEdit,
)
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.tables import project_table

PIPED = "| Name | Qty |\n| --- | --- |\n| fig | 2 |\n| kiwi | 7 |\n"
BARE = "fruit|count\n---|---\nfig|2\n|kiwi|7|\nlime|9"
SPACED = "a | b\n--- | ---\n1 | 2\n"
ALIGNED = "| item  |  n |\n|-------|---:|\n| fig   |  2 |\n| apple | 10 |\n"
SHORT = "| a | b | c |\n|---|---|---|\n| 1 |\n"
COMPACT = "|a|b|\n|-|-|\n|1|2|\n"


def edited(text: str, action: str, **arguments: Any) -> str:
    """The table's text after an action."""
    document = parse_bytes(text.encode())
    table = next(element for element in document.elements if element.kind is ElementKind.TABLE)
    return edit_table(document, table, read_action(action, arguments)).decode()


def cells(text: str) -> list[list[str]]:
    """A table as a reader sees it, header first."""
    document = parse_bytes(text.encode())
    projection = project_table(document, document.elements[0])
    return [[column.name for column in projection.columns], *[list(row.cells) for row in projection.rows]]


CHANGES = [
    (
        PIPED,
        "update_cells",
        {"updates": [{"where": {"column": "Name", "equals": "fig"}, "column": "Qty", "value": 3}]},
        "| Name | Qty |\n| --- | --- |\n| fig | 3 |\n| kiwi | 7 |",
    ),
    (
        PIPED,
        "update_cells",
        {"updates": [{"rowIndex": 1, "columnIndex": 0, "value": True}]},
        "| Name | Qty |\n| --- | --- |\n| fig | 2 |\n| true | 7 |",
    ),
    (
        PIPED,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "Qty", "value": "a|b\\"}]},
        "| Name | Qty |\n| --- | --- |\n| fig | a\\|b\\\\ |\n| kiwi | 7 |",
    ),
    (
        PIPED,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "Name", "value": "x"}, {"rowIndex": 0, "column": "Qty", "value": "y"}]},
        "| Name | Qty |\n| --- | --- |\n| x | y |\n| kiwi | 7 |",
    ),
    (
        COMPACT,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "a", "value": "x\\"}]},
        "|a|b|\n|-|-|\n|x\\\\ |2|",
    ),
    (COMPACT, "update_cells", {"updates": [{"rowIndex": 0, "column": "b", "value": ""}]}, "|a|b|\n|-|-|\n|1||"),
    (
        COMPACT,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "a", "value": "`a | b`"}], "valueFormat": "markdown"},
        "|a|b|\n|-|-|\n|`a \\| b`|2|",
    ),
    (
        COMPACT,
        "update_cells",
        {
            "updates": [
                {"rowIndex": 0, "column": "a", "value": "*x*", "valueFormat": "markdown"},
                {"rowIndex": 0, "column": "b", "value": "*y*"},
            ]
        },
        "|a|b|\n|-|-|\n|*x*|\\*y\\*|",
    ),
    (
        BARE,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "fruit", "value": "- x"}]},
        "fruit|count\n---|---\n|- x|2|\n|kiwi|7|\nlime|9",
    ),
    (SPACED, "update_cells", {"updates": [{"rowIndex": 0, "column": "a", "value": ""}]}, "a | b\n--- | ---\n| | 2 |"),
    (
        BARE,
        "update_cells",
        {"updates": [{"rowIndex": 2, "column": "count", "value": ""}]},
        "fruit|count\n---|---\nfig|2\n|kiwi|7|\nlime|",
    ),
    (
        SHORT,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "c", "value": "v"}]},
        "| a | b | c |\n|---|---|---|\n| 1 |  | v |",
    ),
    (
        SHORT,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "c", "value": ""}]},
        "| a | b | c |\n|---|---|---|\n| 1 |",
    ),
    (PIPED, "insert_row", {"values": ["x", 1]}, "| Name | Qty |\n| --- | --- |\n| fig | 2 |\n| kiwi | 7 |\n| x | 1 |"),
    (
        PIPED,
        "insert_row",
        {"values": {"Qty": 5}, "rowIndex": 0},
        "| Name | Qty |\n| --- | --- |\n|  | 5 |\n| fig | 2 |\n| kiwi | 7 |",
    ),
    (
        PIPED,
        "insert_row",
        {"valuesByColumn": {"Name": "z"}, "beforeRowIndex": 1},
        "| Name | Qty |\n| --- | --- |\n| fig | 2 |\n| z |  |\n| kiwi | 7 |",
    ),
    (BARE, "insert_row", {"values": ["a", "b"]}, "fruit|count\n---|---\nfig|2\n|kiwi|7|\nlime|9\na|b"),
    (BARE, "insert_row", {"values": ["", "b"], "rowIndex": 1}, "fruit|count\n---|---\nfig|2\n||b|\n|kiwi|7|\nlime|9"),
    (ALIGNED, "insert_row", {"values": ["nut", "3"]}, ALIGNED + "| nut   |  3 |"),
    (ALIGNED, "insert_row", {"values": ["pineapple", "3"]}, ALIGNED + "| pineapple |  3 |"),
    ("| a |\n|---|\n", "insert_row", {"values": ["x"]}, "| a |\n|---|\n| x |"),
    (
        "| a | b |\n|---|---|\n|\n",
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "b", "value": "x"}]},
        "| a | b |\n|---|---|\n|  | x |",
    ),
    ("| a | b |\n|---|---|\n|\n", "delete_column", {"column": "b"}, "| a |\n|---|\n|"),
    ("|  a  |\n|:---:|\n|  b  |\n", "insert_row", {"values": ["c"]}, "|  a  |\n|:---:|\n|  b  |\n|  c  |"),
    (
        "|   | b |\n|---|---|\n| 1 | 2 |\n",
        "insert_column",
        {"name": "x", "columnIndex": 0},
        "| x |   | b |\n|---|---|---|\n|  | 1 | 2 |",
    ),
    (
        "| a |   |\n|---|---|\n| 1 |   |\n",
        "update_cells",
        {"updates": [{"rowIndex": 0, "columnIndex": 1, "value": "x"}]},
        "| a |   |\n|---|---|\n| 1 | x |",
    ),
    ("| a | b |\n|---|---|\n", "sort_rows", {"column": "a"}, "| a | b |\n|---|---|"),
    (
        "a | b\n--- | ---\n1 | 2\n",
        "insert_column",
        {"name": "c", "default": "3"},
        "a | b | c\n--- | --- | ---\n1 | 2 | 3",
    ),
    ("a | b\n--- | ---\n1 | 2\n", "delete_column", {"column": "a"}, "| b |\n| --- |\n| 2 |"),
    (PIPED, "delete_row", {"rowIndex": 0}, "| Name | Qty |\n| --- | --- |\n| kiwi | 7 |"),
    (BARE, "delete_row", {"where": {"column": "fruit", "equals": "lime"}}, "fruit|count\n---|---\nfig|2\n|kiwi|7|"),
    (
        PIPED,
        "insert_column",
        {"name": "Unit", "default": "kg"},
        "| Name | Qty | Unit |\n| --- | --- | --- |\n| fig | 2 | kg |\n| kiwi | 7 | kg |",
    ),
    (
        PIPED,
        "insert_column",
        {"name": "#", "columnIndex": 0, "alignment": "right"},
        "| # | Name | Qty |\n| --: | --- | --- |\n|  | fig | 2 |\n|  | kiwi | 7 |",
    ),
    (
        PIPED,
        "insert_column",
        {"newName": "N", "beforeColumn": "Qty", "defaultValue": 1},
        "| Name | N | Qty |\n| --- | --- | --- |\n| fig | 1 | 2 |\n| kiwi | 1 | 7 |",
    ),
    (
        BARE,
        "insert_column",
        {"name": "new", "default": "d"},
        "fruit|count|new\n---|---|---\nfig|2|d\n|kiwi|7|d|\nlime|9|d",
    ),
    (
        BARE,
        "insert_column",
        {"name": "new", "columnIndex": 0},
        "new|fruit|count\n---|---|---\n||fig|2|\n||kiwi|7|\n||lime|9|",
    ),
    (SHORT, "insert_column", {"name": "d"}, "| a | b | c | d |\n|---|---|---|---|\n| 1 |"),
    (SHORT, "insert_column", {"name": "d", "default": "x"}, "| a | b | c | d |\n|---|---|---|---|\n| 1 |  |  | x |"),
    (PIPED, "delete_column", {"column": "Name"}, "| Qty |\n| --- |\n| 2 |\n| 7 |"),
    (BARE, "delete_column", {"columnIndex": 1}, "|fruit|\n|---|\n|fig|\n|kiwi|\n|lime|"),
    (SHORT, "delete_column", {"column": "c"}, "| a | b |\n|---|---|\n| 1 |"),
    (
        PIPED,
        "rename_column",
        {"column": "Qty", "name": "Count"},
        "| Name | Count |\n| --- | --- |\n| fig | 2 |\n| kiwi | 7 |",
    ),
    (
        PIPED,
        "rename_column",
        {"columnIndex": 1, "newName": "a|b"},
        "| Name | a\\|b |\n| --- | --- |\n| fig | 2 |\n| kiwi | 7 |",
    ),
    (BARE, "rename_column", {"column": "count", "name": ""}, "|fruit||\n---|---\nfig|2\n|kiwi|7|\nlime|9"),
    (
        PIPED,
        "set_alignment",
        {"column": "Qty", "alignment": "center"},
        "| Name | Qty |\n| --- | :-: |\n| fig | 2 |\n| kiwi | 7 |",
    ),
    (
        ALIGNED,
        "set_alignment",
        {"column": "n", "alignment": "none"},
        "| item  |  n |\n|-------|----|\n| fig   |  2 |\n| apple | 10 |",
    ),
    (
        PIPED,
        "sort_rows",
        {"column": "Name", "order": "desc"},
        "| Name | Qty |\n| --- | --- |\n| kiwi | 7 |\n| fig | 2 |",
    ),
    (
        BARE,
        "sort_rows",
        {"column": "count", "order": "desc", "numeric": True},
        "fruit|count\n---|---\nlime|9\n|kiwi|7|\nfig|2",
    ),
]


@pytest.mark.parametrize(("before", "action", "arguments", "after"), CHANGES)
def test_edit_table__actions(before: str, action: str, arguments: dict[str, Any], after: str) -> None:
    """Only what the action names changes."""
    assert edited(before, action, **arguments) == after


UNCHANGED = [
    (PIPED, "update_cells", {"updates": [{"rowIndex": 0, "column": "Qty", "value": "2"}]}),
    (
        "| `a` | b |\n|---|---|\n|*x*|  y|\n",
        "update_cells",
        {"updates": [{"rowIndex": 0, "columnIndex": 0, "value": "x"}]},
    ),
    (PIPED, "rename_column", {"column": "Qty", "name": "Qty"}),
    (PIPED, "set_alignment", {"column": "Qty", "alignment": "none"}),
    (PIPED, "sort_rows", {"column": "Name"}),
]


@pytest.mark.parametrize(("before", "action", "arguments"), UNCHANGED)
def test_edit_table__what_is_shown_already_stays(before: str, action: str, arguments: dict[str, Any]) -> None:
    """Writing what a reader sees anyway changes no byte."""
    assert edited(before, action, **arguments) == before.rstrip("\n")


REFUSALS: list[tuple[str, str, dict[str, Any], type[KnowledgeBaseError], str]] = [
    (
        PIPED,
        "update_cells",
        {"updates": [{"where": {"column": "Name", "equals": "FIG"}, "column": "Qty", "value": 1}]},
        TableLookupFailed,
        "exact",
    ),
    (PIPED, "update_cells", {"updates": [{"rowIndex": 9, "column": "Qty", "value": 1}]}, TableLookupFailed, "row 9"),
    (PIPED, "update_cells", {"updates": [{"rowIndex": 0, "column": "qty", "value": 1}]}, TableLookupFailed, "'Qty'"),
    (
        PIPED,
        "update_cells",
        {"updates": [{"rowIndex": 0, "columnIndex": 2, "value": 1}]},
        TableLookupFailed,
        "column 2",
    ),
    (
        "|a|a|\n|-|-|\n|1|2|\n",
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "a", "value": 1}]},
        TableLookupFailed,
        "columnIndex",
    ),
    ("|a|b|\n|-|-|\n|1|2|\n|1|3|\n", "delete_row", {"where": {"column": "a", "equals": 1}}, TableLookupFailed, "0, 1"),
    (
        PIPED,
        "update_cells",
        {
            "updates": [
                {"rowIndex": 0, "column": "Qty", "value": 1},
                {"where": {"column": "Name", "equals": "fig"}, "columnIndex": 1, "value": 2},
            ]
        },
        InvalidArgument,
        "same cell",
    ),
    (PIPED, "update_cells", {"updates": []}, InvalidArgument, "1 to 500"),
    (PIPED, "update_cells", {"updates": [{"rowIndex": 0, "column": "Qty"}]}, InvalidArgument, "value"),
    (PIPED, "update_cells", {"updates": [{"rowIndex": 0, "column": "Qty", "value": [1]}]}, InvalidArgument, "string"),
    (PIPED, "update_cells", {"updates": [{"column": "Qty", "value": 1}]}, InvalidArgument, "rowIndex"),
    (PIPED, "update_cells", {"updates": [{"rowIndex": 0, "value": 1}]}, InvalidArgument, "columnIndex"),
    (
        PIPED,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "Qty", "value": "a\nb", "valueFormat": "markdown"}]},
        InvalidArgument,
        "<br>",
    ),
    (
        PIPED,
        "update_cells",
        {"updates": [{"rowIndex": 0, "column": "Qty", "value": "x"}], "valueFormat": "html"},
        InvalidArgument,
        "literal or markdown",
    ),
    (PIPED, "insert_row", {"values": ["a", "b", "c"]}, InvalidArgument, "2 columns"),
    (PIPED, "insert_row", {"values": {"Nope": "a"}}, TableLookupFailed, "Nope"),
    (PIPED, "insert_row", {"values": ["a"], "rowIndex": 3}, InvalidArgument, "at most 2"),
    (PIPED, "insert_row", {}, InvalidArgument, "values"),
    (PIPED, "insert_row", {"values": ["a"], "column": "Qty"}, InvalidArgument, "takes no column"),
    (PIPED, "insert_row", {"values": ["a"], "valuesByColumn": {"Qty": 1}}, InvalidArgument, "twice"),
    (PIPED, "delete_row", {}, InvalidArgument, "where or rowIndex"),
    (PIPED, "delete_row", {"rowIndex": 0, "where": {"column": "Qty", "equals": 2}}, InvalidArgument, "not both"),
    (PIPED, "insert_column", {}, InvalidArgument, "name"),
    (PIPED, "insert_column", {"name": "x", "columnIndex": 3}, InvalidArgument, "at most 2"),
    ("| a |\n|---|\n", "delete_column", {"column": "a"}, UnsupportedEdit, "cannot go"),
    (PIPED, "set_alignment", {"column": "Qty"}, InvalidArgument, "alignment"),
    (PIPED, "set_alignment", {"column": "Qty", "alignment": "top"}, InvalidArgument, "alignment"),
    (PIPED, "sort_rows", {"column": "Qty", "order": "up"}, InvalidArgument, "order"),
    (PIPED, "sort_rows", {"column": "Qty", "numeric": 1}, InvalidArgument, "numeric"),
    (PIPED, "shuffle", {}, InvalidArgument, "'shuffle'"),
    ("| a | b |\n|---|---|\n| `x | y` | z |\n", "delete_row", {"rowIndex": 0}, UnsupportedEdit, "beyond"),
]


@pytest.mark.parametrize(("before", "action", "arguments", "error", "word"), REFUSALS)
def test_edit_table__refusals(
    before: str, action: str, arguments: dict[str, Any], error: type[KnowledgeBaseError], word: str
) -> None:
    """Lookups that fail, contradicting arguments and tables with extra cells change nothing."""
    with pytest.raises(error) as caught:
        edited(before, action, **arguments)
    assert word in caught.value.message


def test_edit_table__a_short_call_makes_no_huge_table() -> None:
    """What one default for every row would have together is bounded before it is made."""
    before = "| a |\n|---|\n" + "| 1 |\n" * 2_000
    with pytest.raises(TooLarge, match="fewer places"):
        edited(before, "insert_column", name="b", default="d" * 100_000)


SORTS: list[tuple[list[str], dict[str, Any], list[str]]] = [
    (["10", "9", "-1.5", "1e3", "n/a", ""], {"numeric": True}, ["-1.5", "9", "10", "1e3", "n/a", ""]),
    (["10", "9", "n/a", "2"], {"numeric": True, "order": "desc"}, ["10", "9", "2", "n/a"]),
    (["1,200", "30 kg", "2024-01-05", "7%"], {"numeric": True}, ["7%", "30 kg", "1,200", "2024-01-05"]),
    (["b", "B", "a", "é"], {}, ["B", "a", "b", "é"]),
    (["b", "B", "a", "é"], {"order": "desc"}, ["é", "b", "a", "B"]),
]


@pytest.mark.parametrize(("values", "arguments", "after"), SORTS)
def test_edit_table__sorting(values: list[str], arguments: dict[str, Any], after: list[str]) -> None:
    """By code points of the plain text, or by number with the rest last."""
    table = "| v | n |\n|---|---|\n" + "".join(f"| {value} | {number} |\n" for number, value in enumerate(values))
    assert [row[0] for row in cells(edited(table, "sort_rows", column="v", **arguments))[1:]] == after


def test_edit_table__sorting_is_stable() -> None:
    """Equal rows keep their order, in both directions."""
    table = "| v | n |\n|---|---|\n| x | 1 |\n| a | 2 |\n| x | 3 |\n"
    for order in ("asc", "desc"):
        rows = cells(edited(table, "sort_rows", column="v", order=order))[1:]
        assert [row[1] for row in rows if row[0] == "x"] == ["1", "3"]


def test_edit_table__line_endings_stay() -> None:
    """Every line keeps its ending; a new one takes that of the line before."""
    table = "|a|b|\r\n|-|-|\r\n|1|2|\n|3|4|"
    assert edited(table, "insert_row", values=["x", "y"]) == "|a|b|\r\n|-|-|\r\n|1|2|\n|3|4|\r\n|x|y|"
    assert edited(table, "sort_rows", column="a", order="desc") == "|a|b|\r\n|-|-|\r\n|3|4|\n|1|2|"


STYLES = [PIPED, BARE, SPACED, ALIGNED, COMPACT]
VALUES = [
    "a|b",
    "\\",
    "a\\",
    " x ",
    "*x*",
    "<br>",
    "&amp;",
    "a\nb",
    "| y",
    "- z",
    "> q",
    "# h",
    "```",
    "1. n",
    "`",
    "[x]: y",
    "---",
    ":-",
    "",
]


@pytest.mark.parametrize("table", STYLES)
@pytest.mark.parametrize("value", VALUES)
def test_edit_table__a_literal_value_reads_back(table: str, value: str) -> None:
    """In every table style, in every cell, a literal value is shown as what was written, and nothing else changes."""
    shown = cells(table)
    for row in range(len(shown) - 1):
        for column in range(2):
            update = {"rowIndex": row, "columnIndex": column, "value": value}
            expected = [list(line) for line in shown]
            expected[row + 1][column] = value
            assert cells(edited(table, "update_cells", updates=[update])) == expected
    inserted = cells(edited(table, "insert_row", values=[value, value]))
    assert inserted == [*shown, [value, value]]
    widened = cells(edited(table, "insert_column", name=value, columnIndex=0, default=value))
    assert widened == [[value, *line] for line in shown]
