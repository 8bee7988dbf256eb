"""Tables that fit their page, whatever they hold."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_vector_search_mcp.book.raw_html import Sanitizer
from local_vector_search_mcp.book.tables import Cell, TableContent, TablePlan, Turn, plan_table, table_html
from local_vector_search_mcp.book.text_width import columns, longest_word_em, text_em


def content(header: list[str], rows: list[list[str]]) -> TableContent:
    def cells(texts: list[str]) -> tuple[Cell, ...]:
        return tuple(Cell(html=text, text=text) for text in texts)

    return TableContent(header=cells(header), rows=tuple(map(cells, rows)), alignments=("",) * len(header))


def plan(header: list[str], rows: list[list[str]], column: float = 38.0, turned: float | None = 60.0) -> TablePlan:
    return plan_table(content(header, rows), column_em=column, turned_em=turned)


def test_plan__a_small_table_is_as_wide_as_its_content() -> None:
    """No widths are forced on it, and it is kept whole."""
    small = plan(["Name", "Amount"], [["apple", "1.50"]] * 5)
    assert (small.turn, small.widths, small.size, small.whole) == (Turn.UPRIGHT, ((),), 0.9, True)
    assert not plan(["Name"], [["apple"]] * 200).whole


def test_plan__a_wide_table_wraps_before_it_turns() -> None:
    """Long text takes the width that short columns leave."""
    wide = plan(["Key", "Text"], [["k", "many words of text " * 10]])
    assert wide.turn is Turn.UPRIGHT
    key, text = wide.widths[0]
    assert text > 4 * key


def test_plan__many_columns_turn_the_page() -> None:
    """Twelve columns do not fit upright, and do fit across."""
    header = [f"Column {number}" for number in range(12)]
    twelve = plan(header, [[f"value number {number}" for number in range(12)]])
    assert (twelve.turn, len(twelve.groups)) == (Turn.TURNED, 1)
    nested = plan(header, [[f"value number {number}" for number in range(12)]], turned=None)
    assert nested.turn is Turn.UPRIGHT


def test_plan__too_many_columns_are_cut_into_parts() -> None:
    """The first column stands in each part, and every column in some part."""
    cut = plan([f"c{number}" for number in range(100)], [["cell"] * 100])
    assert len(cut.groups) > 1
    assert all(group[0] == 0 for group in cut.groups)
    assert sorted({index for group in cut.groups for index in group}) == list(range(100))


WORDS = st.text(st.sampled_from("abcdefgh XYZ.,-_/夜间"), max_size=60)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 40).flatmap(
        lambda count: st.tuples(
            st.lists(WORDS, min_size=count, max_size=count),
            st.lists(st.lists(WORDS, min_size=count, max_size=count), max_size=4),
        )
    ),
    st.floats(8, 60),
    st.one_of(st.none(), st.floats(20, 90)),
)
def test_plan__every_table_fits(table: tuple[list[str], list[list[str]]], column: float, turned: float | None) -> None:
    """Widths are shares of the page, no column is lost, and the HTML holds every cell."""
    header, rows = table
    made = plan(header, rows, column, turned)
    assert {index for group in made.groups for index in group} == set(range(len(header)))
    for group, widths in zip(made.groups, made.widths, strict=True):
        assert widths == () or (len(widths) == len(group) and abs(sum(widths) - 1) < 1e-6 and min(widths) > 0)
    sanitizer = Sanitizer()
    html = table_html(content(header, rows), made, sanitizer)
    cleaned = sanitizer.clean(html, prefix="", resolve=lambda _: None)
    assert len(re.findall("<td", cleaned)) >= len(header) * len(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0.0), ("a b", 0.6), ("well-known", 3.5), ("夜间模式", 1.1), ("a" * 100, 60.0), ("one\u200btwo", 1.8)],
)
def test_longest_word__is_what_does_not_break(text: str, expected: float) -> None:
    """Blanks, hyphens and full-width characters break."""
    assert abs(longest_word_em(text) - expected) < 0.6


def test_text_width__grows_with_the_text() -> None:
    """Full-width characters are two columns; combining ones none."""
    assert text_em("mm") > text_em("ii") > 0
    assert [columns("abc"), columns("夜a"), columns("e\u0301")] == [3, 3, 1]
