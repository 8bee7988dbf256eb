"""Snippets and the element that a hit points to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.index.chunks import ChunkElement
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.search.matches import Match
from local_vector_search_mcp.search.snippets import best_element, make_snippet


def element(start: int, end: int, kind: ElementKind = ElementKind.PARAGRAPH, pointer: str = "p1") -> ChunkElement:
    """An element of a chunk by its characters."""
    return ChunkElement(logical=pointer, kind=kind, start=start, end=end, heading_path=0, text="")


def matches_of(text: str, *words: str) -> list[Match]:
    """Every place where one of the words stands, in order."""
    found = [
        Match(start, start + len(word), number, 1.0)
        for number, word in enumerate(words)
        for start in range(len(text))
        if text.startswith(word, start)
    ]
    return sorted(found)


def check(text: str, words: str, expected: str, *, max_bytes: int = 60) -> None:
    """The snippet of a text of one element."""
    made = make_snippet(text, matches_of(text, *words.split()), element=element(0, len(text)), max_bytes=max_bytes)
    assert made == expected
    assert len(made.encode("utf-8")) <= max_bytes


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("short text", "text", "short **text**"),
        ("short text", "", "short text"),
        ("two  blanks\n\nand a line", "line", "two blanks and a **line**"),
        ("**bold** word", "bold", "**bold** word"),
        ("a bold, bold word", "bold", "a **bold**, **bold** word"),
        ("foobar", "foo bar", "**foobar**"),
        ("  lead", "lead", "**lead**"),
    ],
)
def test_make_snippet__whole(text: str, words: str, expected: str) -> None:
    """A text that fits is given whole, on one line, matches marked once."""
    check(text, words, expected)


def test_make_snippet__cut_at_words() -> None:
    """A longer text is cut at word boundaries around the match, and shows that it was cut."""
    text = "The quick brown fox jumps over the lazy dog and then it sleeps under the tree until evening."
    check(text, "lazy", "…jumps over the **lazy** dog and then it sleeps under…")
    check(text, "evening", "…until **evening**.", max_bytes=24)
    check(text, "quick", "The **quick** brown fox…", max_bytes=30)


def test_make_snippet__densest_place() -> None:
    """The place with most of the words is shown, not the first match."""
    text = "alpha stands alone here. " + "filler " * 30 + "alpha meets beta and gamma at last."
    made = make_snippet(text, matches_of(text, "alpha", "beta", "gamma"), element=element(0, len(text)), max_bytes=90)
    assert "**alpha** meets **beta** and **gamma**" in made


def test_make_snippet__within_its_element() -> None:
    """The match in the element pointed to is shown, and what follows it."""
    text = "# word\n\nfirst word here\n\nsecond word there"
    made = make_snippet(text, matches_of(text, "word"), element=element(25, len(text)), max_bytes=60)
    assert made == "…second **word** there"


@pytest.mark.parametrize("size", [0, 1, 5, 7, 10, 13, 20, 50, 400, 4000])
def test_make_snippet__never_above_size(size: int) -> None:
    """Bytes are counted, whatever the script."""
    for text in ("番茄與羅勒幼苗" * 100, "word " * 300, "x" * 3000, "é" * 500, "ภาษาไทย" * 60):
        for word in ("番茄", "word", "x", "é", "ไทย", "nothing"):
            found = matches_of(text, word)[:60]
            made = make_snippet(text, found, element=element(0, len(text)), max_bytes=size)
            assert len(made.encode("utf-8")) <= size


@given(
    st.text(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(1, 9)), max_size=20), st.integers(0, 200)
)
def test_make_snippet__any_text(text: str, places: list[tuple[int, int]], size: int) -> None:
    """Any text and any matches give a snippet within its size."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    found = sorted(
        Match(start, min(start + length, len(text)), number % 3, 1.0)
        for number, (start, length) in enumerate(places)
        if start < len(text)
    )
    made = make_snippet(text, found, element=element(0, len(text)), max_bytes=size)
    assert len(made.encode("utf-8")) <= size


HEADING = element(0, 10, ElementKind.HEADING, "1")
PARAGRAPH = element(12, 40, pointer="1.p1")
CODE = element(42, 80, ElementKind.CODE, "1.code1")
ITEM = element(82, 120, ElementKind.LIST_ITEM, "1.li1")
NESTED = element(100, 120, ElementKind.LIST_ITEM, "1.li1.li1")
ALL = (HEADING, PARAGRAPH, CODE, ITEM, NESTED)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([(15, 0)], "1.p1"),
        ([(2, 0), (15, 1), (20, 0)], "1.p1"),
        ([(2, 0), (15, 0)], "1.p1"),
        ([(2, 0), (45, 0), (50, 1)], "1.code1"),
        ([(105, 0)], "1.li1.li1"),
        ([(85, 1), (105, 0)], "1.li1"),
        ([(2, 0)], "1"),
        ([], "1.p1"),
    ],
)
def test_best_element__most_of_the_query(places: list[tuple[int, int]], expected: str) -> None:
    """The element with most of the words is pointed to, the innermost of nested ones; else the first with content."""
    found = sorted(Match(start, start + 3, unit, 1.0) for start, unit in places)
    # A heading and a paragraph with the same words: the heading comes first.
    if places == [(2, 0), (15, 0)]:
        expected = "1"
    assert best_element(ALL, found).logical == expected


def test_best_element__kinds() -> None:
    """With a filter on kinds, an element of these kinds is pointed to."""
    found = sorted(Match(start, start + 3, 0, 1.0) for start in (2, 15))
    assert best_element(ALL, found, kinds=frozenset({ElementKind.CODE})).logical == "1.code1"
    assert best_element(ALL, found, kinds=frozenset({ElementKind.TABLE})).logical == "1"
