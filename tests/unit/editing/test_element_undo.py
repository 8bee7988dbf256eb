"""Undo by elements: what a change did, taken back in a document that has changed since."""

import pytest

from local_vector_search_mcp.editing.element_undo import undo_elements
from local_vector_search_mcp.markdown.parser import parse_bytes

CASES = [
    # before, after the change, now, undone
    ("a\n\nb\n", "a\n\nB\n", "x\n\na\n\nB\n\ny\n", "x\n\na\n\nb\n\ny\n"),
    ("a\n\nb\n", "b\n", "b\n\nnew\n", "a\n\nb\n\nnew\n"),
    ("a\n\nb\n", "b\n", "new\n\nb\n", "new\n\na\n\nb\n"),
    ("a\n\nb\n", "a\n", "a\n\nnew\n", "a\n\nb\n\nnew\n"),
    ("a\n\nb\n", "a\n", "new\n\na\n", "new\n\na\n\nb\n"),
    ("a\n\nb\n\nc\n", "a\n\nc\n", "a\n\nnew\n\nc\n", "a\n\nb\n\nnew\n\nc\n"),
    ("a\n\nc\n", "a\n\nb\n\nc\n", "a\n\nb\n\nnew\n", "a\n\nnew\n"),
    ("a\n", "a\n\nb\n", "new\n\nb\n", "new\n"),
    ("a\n", "b\n\na\n", "b\n\nnew\n", "new\n"),
    ("", "a\n", "a\n\nnew\n", "new\n"),
    ("a\n", "", "new\n", None),
    ("a\n\nb\n", "A\n\nB\n", "A\n\nother\n\nB\n", None),
    ("a\n\nb\n\nc\n", "A\n\nb\n\nC\n", "A\n\nb2\n\nC\n", "a\n\nb2\n\nc\n"),
    ("a\n\nb\n", "a\n\nB\n", "a\n\nB\n\nx\n\nB\n", None),
    ("a\n\nb\n", "a\n\nB\n", "x\n\nB\n\ny\n\nB\n", None),
    ("# H\n\n- a\n  - b\n", "# H\n\n- a\n", "# H\n\nnew\n\n- a\n", "# H\n\nnew\n\n- a\n  - b\n"),
    ("a\n\nb\n", "a\n\nc\n\nb\n", "a\r\n\r\nc\r\n\r\nb\r\n\r\nz\r\n", "a\r\n\r\nb\r\n\r\nz\r\n"),
]


@pytest.mark.parametrize(("before", "after", "now", "undone"), CASES)
def test_undo_elements__takes_back_what_the_change_did(before: str, after: str, now: str, undone: str | None) -> None:
    """Elements that stand as the change left them are put back; where one does not, nothing is."""
    result = undo_elements(*(parse_bytes(text.encode()) for text in (before, after, now)))
    if undone is None:
        assert result is None
    else:
        assert result is not None
        shown = [(element.kind, element.text) for element in parse_bytes(result).elements]
        assert shown == [(element.kind, element.text) for element in parse_bytes(undone.encode()).elements]


def test_undo_elements__of_a_rewritten_large_document() -> None:
    """A change of thousands of elements is one step; it comes back only where all of it stands."""
    before = "".join(f"old {number}\n\n" for number in range(1500))
    after = before.replace("old", "new")
    result = undo_elements(*(parse_bytes(text.encode()) for text in (before, after, f"first\n\n{after}")))
    assert result == f"first\n\n{before}".encode()
    changed = after.replace("new 7\n", "other\n")
    assert undo_elements(*(parse_bytes(text.encode()) for text in (before, after, changed))) is None
