"""Text search: matches of literals and expressions as edits, whatever the line endings and characters."""

import pytest

from local_vector_search_mcp.editing.text_edits import TextEdits
from local_vector_search_mcp.editing.text_search import Query, Searcher
from local_vector_search_mcp.errors import InvalidArgument, TimedOut, TooLarge
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.parser import parse_bytes

TEXT = "é one\ntwo é\nthree\n\n- four\n  five\n"


def replaced(text: str, query: str, replacement: str, *, is_regex: bool) -> str:
    """A text with every match replaced."""
    document = parse_bytes(text.encode())
    searcher = Searcher(Query(text=query, replacement=replacement, is_regex=is_regex))
    return TextEdits(searcher.edits(document, frozenset(ElementKind))).apply(document.source.data).decode()


CASES = [
    ("one\ntwo", "1\n2", False, "é 1\n2 é\nthree\n\n- four\n  five\n"),
    ("é$", "e!", True, "é one\ntwo e!\nthree\n\n- four\n  five\n"),
    (r"^(\w+)$", r"<\1>", True, "é one\ntwo é\n<three>\n\n- four\n  five\n"),
    (r"one\ntwo", "X", True, "é X é\nthree\n\n- four\n  five\n"),
    (r"four\s+five", r"4\n  5", True, "é one\ntwo é\nthree\n\n- 4\n  5\n"),
    (r"(?r)t", "T", True, "é one\nTwo é\nThree\n\n- four\n  five\n"),
    (r"(?<a>t)", r"\g<a>\g<a>", True, "é one\nttwo é\ntthree\n\n- four\n  five\n"),
]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("query", "replacement", "is_regex", "after"), CASES)
def test_searcher__line_endings_are_one(ending: str, query: str, replacement: str, is_regex: bool, after: str) -> None:
    """A line feed in a query fits every ending, and what is put in has the document's."""
    text = TEXT.replace("\n", ending)
    assert replaced(text, query, replacement, is_regex=is_regex) == after.replace("\n", ending)


def test_searcher__one_time_limit_for_all_documents() -> None:
    """The time that one document took is not there for the next."""
    seconds = iter([0.0, 1.5, 1.5, 3.0, 3.0])
    searcher = Searcher(Query(text="one", replacement="1", is_regex=True), clock=lambda: next(seconds))
    document = parse_bytes(b"one\n")
    for _ in range(2):
        assert len(list(searcher.edits(document, frozenset(ElementKind)))) == 1
    with pytest.raises(TimedOut):
        searcher.edits(document, frozenset(ElementKind))


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", True),
        (r"\d{4}-\d{2}-\d{2}", True),
        (r"a{0,100000}", True),
        (r"[{]{3}\{100000\}", True),
        (r"(a{1000}){1000}", False),
        (r"(?:x[)]{500}){500}", False),
    ],
)
def test_searcher__counts_within_counts(pattern: str, fits: bool) -> None:
    """An expression whose counts multiply beyond measure is refused before it is compiled."""
    query = Query(text=pattern, replacement="", is_regex=True)
    if fits:
        Searcher(query)
        return
    with pytest.raises(InvalidArgument, match="counts"):
        Searcher(query)


def test_query__may_occur() -> None:
    """Documents without the literal's lines are passed over; an expression may occur anywhere."""
    literal = Query(text="one\ntwo", replacement="", is_regex=False)
    assert literal.may_occur_in(b"x one\r\ntwo")
    assert not literal.may_occur_in(b"one\n")
    assert Query(text="x", replacement="", is_regex=True).may_occur_in(b"")


@pytest.mark.parametrize("pattern", ["(?R)", "(?0)", "((?1))", "x|(?R)y", "(?<n>(?&n))", "(?P<n>(?P>n))", "(a)(?-1)"])
def test_searcher__an_expression_that_calls_itself(pattern: str) -> None:
    """It could use up all memory before a time limit is looked at."""
    with pytest.raises(InvalidArgument, match="call"):
        replaced("abc abc\n", pattern, "x", is_regex=True)


@pytest.mark.parametrize("pattern", [r"\(\?R", "[(?R]+", "(a)(?(1)b|c)", "(?i)B"])
def test_searcher__what_only_looks_like_a_call(pattern: str) -> None:
    """Marks behind a backslash or in a set, and conditions, call nothing."""
    assert "X" in replaced("(?R abc\n", pattern, "X", is_regex=True)


@pytest.mark.parametrize(
    ("query", "replacement", "is_regex"),
    [("a", "b" * 40_000, False), ("a", "b" * 40_000, True), ("(a+)", r"\1" * 40_000, True)],
)
def test_searcher__a_short_call_makes_no_huge_text(query: str, replacement: str, is_regex: bool) -> None:
    """What all replacements would have together is bounded before it is made."""
    with pytest.raises(TooLarge, match="fewer places"):
        replaced("a" * 10_000 + "\n", query, replacement, is_regex=is_regex)
