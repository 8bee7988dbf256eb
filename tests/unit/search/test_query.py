"""User text → words, phrases and exclusions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.search.query import parse_query


def check(
    text: str,
    words: str = "",
    *,
    phrases: tuple[str, ...] = (),
    excluded: tuple[str, ...] = (),
    symbols: tuple[str, ...] = (),
    embedded: str | None = None,
    as_text: bool = False,
) -> None:
    """What a query is taken for; words and exclusions as their tokens."""
    query = parse_query(text)
    assert " ".join(token for term in query.words for token in term.whole.tokens) == words
    assert tuple(" ".join(term.whole.tokens) for term in query.phrases) == phrases
    assert tuple(" ".join(term.whole.tokens) for term in query.exclusions) == excluded
    assert query.symbols == symbols
    assert query.exclusions_read_as_text is as_text
    if embedded is not None:
        assert query.text_to_embed == embedded


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("edit loop", "edit loop"),
        ("  edit\tloop\n", "edit loop"),
        ("edit edit loop", "edit edit loop"),
        ("REQ-0173", "req 0173"),
        ("can't open boxes", "can t open boxes"),
        ("AND OR NOT NEAR", "and or not near"),
        ("NEAR(a b", "near a b"),
        ("cook::mix", "cook mix"),
        ("tag:work title:x", "tag work title x"),
        ("save_all_rows", "save all rows"),
        ("debian 12.4", "debian 12 4"),
        ("--embedding-provider", "embedding provider"),
        ("a--b", "a b"),
        ("-1", "1"),
        ("x -1", "x 1"),
        ("x -_y", "x y"),
        ("x - y", "x y"),
        ("pre-release", "pre release"),
        ("(-word)", "word"),
        ('5" pipe', "5 pipe"),
        ('say "hello', "say hello"),
        ('x -"open', "x open"),
        ('x "" y', "x y"),
        ('x "***" y', "x y"),
        ("a* ^b {c} col:d + e", "a b c col d e"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_parse_query__words(text: str, words: str) -> None:
    """Everything that is no phrase and no exclusion is words."""
    query = parse_query(text)
    assert not query.phrases
    assert not query.exclusions
    assert " ".join(token for term in query.words for token in term.whole.tokens) == words


@pytest.mark.parametrize(
    ("text", "words", "phrases"),
    [
        ('"edit loop"', "", ("edit loop",)),
        ('the "edit loop" now', "the now", ("edit loop",)),
        ('"REQ-0173"', "", ("req 0173",)),
        ('"a b" "c d"', "", ("a b", "c d")),
        ('title:"a b"', "title", ("a b",)),
        ("“edit loop” x", "x", ("edit loop",)),
        ('"one"two', "two", ("one",)),
    ],
)
def test_parse_query__phrases(text: str, words: str, phrases: tuple[str, ...]) -> None:
    """Double quotes make a phrase where they open a word and are closed."""
    check(text, words, phrases=phrases)


@pytest.mark.parametrize(
    ("text", "words", "excluded", "embedded"),
    [
        ("edit -draft", "edit", ("draft",), "edit"),
        ("-draft edit", "edit", ("draft",), "edit"),
        ('edit -"old plan" loop', "edit loop", ("old plan",), "edit loop"),
        ("edit -foo.bar", "edit", ("foo bar",), "edit"),
        ("edit -Éa", "edit", ("ea",), "edit"),
        ("edit -豆腐", "edit", ("豆腐",), "edit"),
        ("edit -draft,", "edit", ("draft",), "edit"),
    ],
)
def test_parse_query__exclusions(text: str, words: str, excluded: tuple[str, ...], embedded: str) -> None:
    """One hyphen before a letter or a quote excludes, and what is excluded is not embedded."""
    check(text, words, excluded=excluded, embedded=embedded)


@pytest.mark.parametrize(
    ("text", "words", "phrases"),
    [("-draft", "draft", ()), ('-draft -"old plan"', "draft", ("old plan",)), ("-draft *", "draft", ())],
)
def test_parse_query__only_exclusions(text: str, words: str, phrases: tuple[str, ...]) -> None:
    """Where nothing else is asked, exclusions are read as text."""
    query = parse_query(text)
    assert query.exclusions_read_as_text
    assert " ".join(term.text for term in query.words) == words
    assert tuple(" ".join(term.whole.tokens) for term in query.phrases) == phrases


def test_parse_query__embedded_text() -> None:
    """Quotes are not embedded, the words between them are."""
    check('the "edit loop" now', "the now", phrases=("edit loop",), embedded="the edit loop now")


@pytest.mark.parametrize(
    ("text", "symbols"), [("*", ("*",)), ("( *", ("(", "*")), ("** **", ("**",)), ("½🙂x *", ("*",))]
)
def test_parse_query__symbols(text: str, symbols: tuple[str, ...]) -> None:
    """Words without letter or digit are kept apart."""
    assert parse_query(text).symbols == symbols


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000", "a\ud800b"])
def test_parse_query__refused(text: str) -> None:
    """Empty and invalid text is refused."""
    with pytest.raises(InvalidArgument):
        parse_query(text)


def test_parse_query__shown_terms() -> None:
    """Terms are shown as typed, without punctuation around them."""
    query = parse_query('Which slabs? (foo.bar), C++ "edit loop"')
    assert [term.text for term in query.terms] == ['"edit loop"', "Which", "slabs", "foo.bar", "C++"]


def test_parse_query__identifier_forms() -> None:
    """An identifier is looked for whole and by its parts."""
    term = parse_query("KnowledgeBase").words[0]
    assert [piece.tokens for piece in term.pieces] == [("knowledgebase",), ("knowledge", "base")]


@given(st.text(max_size=200))
def test_parse_query__any_text(text: str) -> None:
    """Any text that is not blank is a query, and its terms hold words."""
    if not text.strip():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    query = parse_query(text)
    assert all(term.whole.tokens for term in (*query.terms, *query.exclusions))
    assert query.text_to_embed
    assert not query.with_exclusions_as_text().exclusions


def test_parse_query__huge() -> None:
    """A query of a megabyte is cut, not refused, in little time."""
    assert len(parse_query('"a -b ' * 200_000).words) <= 1_000
