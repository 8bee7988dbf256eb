"""TextEdits: order, overlap, application and inverse."""

import pytest

from local_vector_search_mcp.editing.text_edits import TextEdit, TextEdits
from local_vector_search_mcp.markdown.source import ByteRange


def edit(start: int, end: int, text: bytes) -> TextEdit:
    return TextEdit(ByteRange(start, end), text)


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        ([], b"0123456789"),
        ([edit(0, 0, b"a")], b"a0123456789"),
        ([edit(10, 10, b"z")], b"0123456789z"),
        ([edit(2, 4, b"")], b"01456789"),
        ([edit(6, 7, b"X"), edit(1, 3, b"YY")], b"0YY345X789"),
        ([edit(3, 3, b"+"), edit(3, 5, b"-")], b"012+-56789"),
        ([edit(1, 3, b"-"), edit(3, 3, b"+")], b"0-+3456789"),
    ],
)
def test_apply__edits_in_any_order(edits: list[TextEdit], after: bytes) -> None:
    """Edits are made by their place, and the inverse gives the source back."""
    before = b"0123456789"
    made = TextEdits(edits)
    assert made.apply(before) == after
    assert made.inverse(before).apply(after) == before


@pytest.mark.parametrize(
    "edits",
    [[edit(1, 4, b""), edit(3, 5, b"")], [edit(2, 2, b"a"), edit(2, 2, b"b")], [edit(1, 4, b"x"), edit(2, 2, b"")]],
)
def test_text_edits__overlap_is_refused(edits: list[TextEdit]) -> None:
    """Two edits of one byte, or two insertions at one place, have no meaning."""
    with pytest.raises(ValueError, match="overlap"):
        TextEdits(edits)


def test_apply__an_edit_beyond_the_end_is_refused() -> None:
    """Edits belong to one source."""
    with pytest.raises(ValueError, match="ends at 9"):
        TextEdits([edit(1, 9, b"")]).apply(b"short")


def test_without_no_ops__keeps_what_changes_a_byte() -> None:
    """An edit that writes what stands there is none."""
    assert TextEdits([edit(0, 1, b"a"), edit(2, 3, b"x")]).without_no_ops(b"abc") == TextEdits([edit(2, 3, b"x")])


@pytest.mark.parametrize(("offset", "moved"), [(0, 0), (1, 4), (5, 6), (9, 10)])
def test_shifted__counts_the_growth_before(offset: int, moved: int) -> None:
    """An offset behind edits moves by what they add and take."""
    assert TextEdits([edit(1, 1, b"abc"), edit(2, 4, b"")]).shifted(offset) == moved


def test_apply_within__gives_one_range() -> None:
    """A range of the source is edited alone."""
    assert TextEdits([edit(3, 4, b"XY")]).apply_within(b"0123456789", ByteRange(2, 6)) == b"2XY45"
