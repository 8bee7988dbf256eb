"""What a pointer means in a document that may have changed since."""

from typing import Any

import pytest

from local_vector_search_mcp.errors import Conflict, ConflictReason, PointerNotFound
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.pointers import parse_pointer
from local_vector_search_mcp.markdown.resolve import current_details, equal_twins, resolve


def pointer_in(text: str, logical: str, *, legacy: bool = False) -> str:
    """The pointer of an element of a text; a legacy one has no subtree hash."""
    element = parse_bytes(text.encode()).by_logical(logical)
    assert element is not None
    return element.pointer.rpartition("~")[0] if legacy else element.pointer


def check(before: str, logical: str, after: str, found: str, *, legacy: bool = False) -> None:
    """A pointer taken before means that element afterwards."""
    resolution = resolve(parse_bytes(after.encode()), parse_pointer(pointer_in(before, logical, legacy=legacy)))
    assert resolution.element.logical == found
    assert resolution.relocated_from == (None if found == logical else logical)


def conflict(before: str, logical: str, after: str, *, legacy: bool = False) -> dict[str, Any]:
    """The details of the conflict that a pointer taken before meets."""
    with pytest.raises(Conflict) as caught:
        resolve(parse_bytes(after.encode()), parse_pointer(pointer_in(before, logical, legacy=legacy)))
    assert caught.value.details["reason"] == caught.value.reason.value
    return caught.value.details


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize(
    ("before", "logical", "after", "found"),
    [
        ("a\n\nb\n", "p2", "a\n\nb\n", "p2"),
        ("a\n\nb\n", "p2", "new\n\na\n\nb\n", "p3"),
        ("a\n\nb\n", "p2", "# H\n\nb\n", "1.p1"),
        ("# A\n\ntext\n", "1", "# 0\n\n# A\n\ntext\n", "2"),
        ("- a\n  - b\n", "li1.li1", "- x\n- a\n  - b\n", "li2.li1"),
        # A byte-equal twin: the one at the address is meant.
        ("same\n\nsame\n", "p2", "same\n\nsame\n\nsame\n", "p2"),
        # Equal bytes of another kind are no candidate.
        ("x\n\n- x\n", "li1", "text\n\n- x\n", "li1"),
    ],
)
def test_resolve__finds_the_element(before: str, logical: str, after: str, found: str, legacy: bool) -> None:
    """At its address or, unchanged, at another."""
    check(before, logical, after, found, legacy=legacy)


def test_resolve__the_subtree_tells_equal_headings_apart() -> None:
    """Of several with the self hash, the one with the subtree hash is it, wherever it stands."""
    before = "# Day\n\none\n\n# Day\n\ntwo\n"
    after = "# New\n\n# Day\n\none\n\n# Day\n\ntwo\n"
    check(before, "2", after, "3")
    check(before, "1", after, "2")


def test_resolve__a_changed_subtree_leaves_the_one_candidate() -> None:
    """One element with the self hash is it, whatever its subtree."""
    check("# A\n\nold\n", "1", "# A\n\nnew\n", "1")


def test_resolve__hex_digits_in_either_case() -> None:
    """A pointer may come back in upper case."""
    document = parse_bytes(b"text\n")
    logical, self_hash, subtree_hash = document.elements[0].pointer.split("~")
    pointer = f"{logical}~{self_hash.upper()}~{subtree_hash.upper()}"
    assert resolve(document, parse_pointer(pointer)).element is document.elements[0]


def test_resolve__bare_pointers() -> None:
    """A bare pointer means what stands at its address, or nothing."""
    document = parse_bytes(b"# A\n\ntext\n")
    assert resolve(document, parse_pointer("1.p1")).element.text == "text"
    with pytest.raises(PointerNotFound, match=r"1\.p2"):
        resolve(document, parse_pointer("1.p2"))


def test_conflict__changed() -> None:
    """An element stands at the address and has another text: it is shown."""
    after = "new text\n"
    details = conflict("old\n", "p1", after)
    assert details == {
        "reason": "changed",
        "currentPointer": pointer_in(after, "p1"),
        "currentText": "new text",
        "candidates": [],
    }


def test_conflict__missing() -> None:
    """Nothing stands at the address and nothing has the text."""
    assert conflict("a\n\nb\n", "p2", "a\n") == {"reason": "missing", "candidates": []}


@pytest.mark.parametrize("legacy", [False, True])
def test_conflict__ambiguous(legacy: bool) -> None:
    """Several fit and none stands at the address: at most five are listed, in document order."""
    before = "# H\n\nsame\n"
    after = "x\n\n" + "same\n\n" * 7
    details = conflict(before, "1.p1", after, legacy=legacy)
    assert details["reason"] == ConflictReason.AMBIGUOUS
    assert details["candidates"] == [pointer_in(after, f"p{number}") for number in range(2, 7)]
    assert "currentPointer" not in details


def test_conflict__ambiguous_among_those_with_the_subtree() -> None:
    """Candidates with another subtree are out, also where several are left."""
    before = "# 0\n\n# Day\n\nx\n"
    after = "# Day\n\ny\n\n## 1\n\n# Other\n\n## Day\n\n# Day\n\nx\n\n# Day\n\nx\n"
    details = conflict(before, "2", after)
    assert details["candidates"] == [pointer_in(after, "3"), pointer_in(after, "4")]
    assert details["currentPointer"] == pointer_in(after, "2")


def test_conflict__no_candidate_has_the_subtree() -> None:
    """Several with the self hash, none with the subtree: none may be guessed, not even at the address."""
    before = "# Day\n\na\n"
    after = "# Day\n\nb\n\n# Day\n\nc\n"
    details = conflict(before, "1", after)
    assert details["reason"] == ConflictReason.AMBIGUOUS
    assert details["candidates"] == [pointer_in(after, "1"), pointer_in(after, "2")]


def test_conflict__the_current_text_is_cut_between_characters() -> None:
    """At most 2,000 bytes of it are shown."""
    details = conflict("old\n", "p1", "é" * 1_500 + "\n")
    assert details["currentText"] == "é" * 1_000
    shifted = conflict("old\n", "p1", "a" + "é" * 1_500 + "\n")
    assert shifted["currentText"] == "a" + "é" * 999


def twins(document: MarkdownDocument, logical: str) -> list[str]:
    element = document.by_logical(logical)
    assert element is not None
    return [twin.logical for twin in equal_twins(document, element)]


def test_twins__are_equal_in_kind_and_both_hashes() -> None:
    """A heading with the same text and another section is no twin."""
    document = parse_bytes(b"# Day\n\na\n\n# Day\n\nb\n\n# Day\n\na\n\n- a\n")
    assert twins(document, "1") == []
    assert twins(document, "1.p1") == ["3.p1"]
    assert twins(document, "3.li1") == []
    repeated = parse_bytes(b"# Day\n\na\n\n# Day\n\na\n\n# Other\n")
    assert twins(repeated, "1") == ["2"]


def test_current_details__show_pointer_and_text() -> None:
    """What a conflict found by an edit shows of an element."""
    element = parse_bytes(b"- a\n  - b\n\n  tail\n").elements[0]
    assert current_details(element) == {"currentPointer": element.pointer, "currentText": "- a\n  tail"}
