"""Cursors: they hold a key, belong to one list, and anything else is refused."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.workspace.cursors import decode_cursor, encode_cursor

FILTERS = {"prefix": "docs", "globs": ["*.md"], "sort": "path"}


def test_decode__gives_the_key() -> None:
    """What went in comes out, whatever the order of the filters."""
    cursor = encode_cursor((-5, "a/ü.md"), FILTERS)
    assert decode_cursor(cursor, dict(reversed(FILTERS.items())), shape=(int, str)) == (-5, "a/ü.md")


def test_decode__no_cursor() -> None:
    """No cursor is the beginning."""
    assert decode_cursor(None, FILTERS, shape=(str,)) is None


@pytest.mark.parametrize("other", [{}, {**FILTERS, "prefix": ""}, {**FILTERS, "globs": []}, {**FILTERS, "more": None}])
def test_decode__other_filters(other: dict[str, object]) -> None:
    """A cursor of another list is told as such."""
    with pytest.raises(InvalidArgument, match="other filters"):
        decode_cursor(encode_cursor(("a",), FILTERS), other, shape=(str,))


def raw(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "!", "é", "====", "AAAA", "x" * 10_000, raw("1"), raw("[]"), raw('{"a": 1}'), raw("[1, 2]")),
        *(raw("[" * 3000), raw('["x", "\\ud800"]'), raw("[" + "9" * 5000 + "]")),
        encode_cursor((1,), FILTERS),
        encode_cursor(("a", "b"), FILTERS),
        encode_cursor((), FILTERS),
        encode_cursor((True,), FILTERS),
    ],
)
def test_decode__malformed(cursor: str) -> None:
    """What is no cursor of this list's shape is refused."""
    with pytest.raises(InvalidArgument, match="malformed"):
        decode_cursor(cursor, FILTERS, shape=(str,))


@given(st.text(max_size=40))
def test_decode__any_text(text: str) -> None:
    """Any text at all is refused in words."""
    with pytest.raises(InvalidArgument):
        decode_cursor(text, FILTERS, shape=(str,))
