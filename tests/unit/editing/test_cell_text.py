"""Cell text: literal values read back as themselves; Markdown values keep their marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.editing.cell_text import ValueFormat, cell_content, literal_content, shown_text
from local_vector_search_mcp.errors import InvalidArgument

LITERALS = [
    ("plain", "plain"),
    ("a|b", r"a\|b"),
    ("a\\|b", r"a\\\|b"),
    ("ends in \\", r"ends in \\"),
    ("C:\\temp", r"C:\temp"),
    ("*bold*", r"\*bold\*"),
    ("snake_case_name", "snake_case_name"),
    ("_em_", r"\_em\_"),
    ("`code`", r"\`code\`"),
    ("<b>x</b>", r"\<b>x\</b>"),
    ("&amp; AT&T & co", r"\&amp; AT\&T & co"),
    ("[a](b)", r"\[a\](b)"),
    ("[[note|alias]]", r"\[\[note\|alias\]\]"),
    ("~~gone~~", r"\~\~gone\~\~"),
    ("[^1]", r"\[^1\]"),
    (" x ", "&#32;x&#32;"),
    ("\t", "&#9;"),
    ("a\nb", "a<br>b"),
    ("a\r\nb", "a<br>b"),
    ("a \n b", "a&#32;<br>&#32;b"),
    ("", ""),
]


@pytest.mark.parametrize(("value", "content"), LITERALS)
def test_literal_content__escapes_what_markdown_would_read(value: str, content: str) -> None:
    """Marks are escaped, blanks at the ends become references, a line break becomes ``<br>``."""
    assert literal_content(value) == content
    assert shown_text(content) == value.replace("\r\n", "\n")


@given(st.text(alphabet="|\\`*_<>&;[]!~ab \n#1^()-+\t:.é", max_size=12))
def test_literal_content__reads_back(value: str) -> None:
    """Every literal value is shown as exactly what was written."""
    content = literal_content(value)
    assert shown_text(content) == value
    assert "\n" not in content


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("**b** `a | b`", r"**b** `a \| b`"),
        (r"already \| escaped", r"already \| escaped"),
        ("  padded  ", "padded"),
        ("a<br>b", "a<br>b"),
    ],
)
def test_cell_content__markdown_keeps_its_marks(value: str, content: str) -> None:
    """Only a raw pipe is escaped."""
    assert cell_content(value, ValueFormat.MARKDOWN) == content


@pytest.mark.parametrize("value", ["a\nb", "a\rb"])
def test_cell_content__markdown_with_a_line_break_is_refused(value: str) -> None:
    """A cell is one line."""
    with pytest.raises(InvalidArgument, match="<br>"):
        cell_content(value, ValueFormat.MARKDOWN)


@pytest.mark.parametrize("value", ["\va", "a\v"])
def test_literal_content__what_no_cell_can_hold(value: str) -> None:
    """The refusal names the character that Markdown itself drops and has no reference for."""
    with pytest.raises(InvalidArgument, match="vertical tab"):
        cell_content(value, ValueFormat.LITERAL)


@pytest.mark.parametrize(
    "value", ["a\0 ", " \0", "a\0*x*", "\0&amp;", "\0\nb ", "\0\\", "\0<b>", "\0[x](y)", "\0\ufffd`"]
)
def test_literal_content__a_nul_beside_marks(value: str) -> None:
    """A NUL is ordinary text, and reads back with all that stands beside it."""
    assert shown_text(cell_content(value, ValueFormat.LITERAL)) == value
