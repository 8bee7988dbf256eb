"""Inline content as plain text."""

import pytest

from local_vector_search_mcp.markdown.inline import DefinedLabels, cell_text, heading_content, plain_text


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("", ""),
        ("  plain  ", "plain"),
        ("*em* **strong** _u_ ~~gone~~", "em strong u gone"),
        ("a `code * b` c", "a code * b c"),
        ("``a ` b``", "a ` b"),
        ("[text *em*](url 'title')", "text em"),
        ("![alt *em*](src)", "alt em"),
        ("<https://a.b/c>", "https://a.b/c"),
        ("&amp; &#65; &copy; &nosuch;", "& A © &nosuch;"),
        (r"\*not\* \\ \a", r"*not* \ \a"),
        ("one\ntwo  \nthree\\\nfour", "one two three four"),
        ("one\r\ntwo\rthree", "one two three"),
        ("a <b>bold</b><br> c <!-- x -->d", "a bold c d"),
        ("see[^1] there", "see there"),
        ("[[Note#Head|alias]] ![[image.png]]", "[[Note#Head|alias]] ![[image.png]]"),
        ("[[a *b* c]]", "[[a *b* c]]"),
        ("[open [[ ]", "[open [[ ]"),
        ("[label] and [text][label]", "[label] and [text][label]"),
        ("a_b_c 2 * 3 < 4", "a_b_c 2 * 3 < 4"),
        ("%%comment%% #tag ^id", "%%comment%% #tag ^id"),
        ("中文 *字*", "中文 字"),
    ],
)
def test_plain_text__what_a_reader_sees(markdown: str, text: str) -> None:
    """Marks go, text stays, breaks are spaces."""
    assert plain_text(markdown) == text


def test_plain_text__labels_decide_about_brackets() -> None:
    """A reference to a defined label is its text; a mark is one of a footnote where that is defined."""
    labels = DefinedLabels()
    labels.links.extend(["La  Bel", "Ünder"])
    labels.footnotes.add("1")
    assert plain_text("[one][la bel] [üNDER] [three][no] x[^1] y[^2]", labels) == "one üNDER [three][no] x y[^2]"


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("a\0 *b*", "a\0 b"),
        ("*a\0* \ufffd \ufffc &#0;", "a\0 \ufffd \ufffc \ufffd"),
        ("`\0` [x\0y](z)", "\0 x\0y"),
        ("\0\\*", "\0*"),
    ],
)
def test_plain_text__a_nul_is_ordinary_text(markdown: str, text: str) -> None:
    """It stays, whatever stands beside it, and is not mixed up with the sign that the parser reads for it."""
    assert plain_text(markdown) == text


def test_plain_text__labels_with_a_nul() -> None:
    """A reference finds its definition and a mark its footnote where both hold one."""
    labels = DefinedLabels()
    labels.links.extend(["a\0", "b"])
    labels.footnotes.add("c\0")
    assert plain_text("[x][a\0] [y][b] z[^c\0]", labels) == "x y z"


def test_plain_text__a_huge_text_is_left_as_it_is() -> None:
    """Above the limit nothing is parsed, so that no heading can keep a tool busy."""
    assert plain_text("[" * 1_000_000) == "[" * 1_000_000


@pytest.mark.parametrize(
    ("markdown", "text"),
    [("a<br>b<BR/>c<br />d", "a\nb\nc\nd"), ("a `<br>`", "a <br>"), ("a <b>b</b>", "a b"), ("plain", "plain")],
)
def test_cell_text__breaks_are_line_breaks(markdown: str, text: str) -> None:
    """``<br>`` is how a cell has several lines."""
    assert cell_text(markdown) == text


@pytest.mark.parametrize(
    ("source", "content"),
    [
        ("# A", "A"),
        ("   ##  A  ##  ", "A"),
        ("# A #b", "A #b"),
        ("#", ""),
        ("## ##", ""),
        ("#\tA\t#", "A"),
        ("A\n===", "A"),
        ("A\r\n  B\r\n---", "A\nB"),
        ("# not\n===", "# not"),
    ],
)
def test_heading_content__both_forms(source: str, content: str) -> None:
    """The inline Markdown of a heading without its marks."""
    assert heading_content(source) == content
