"""Link reference definitions, read as the library reads them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from local_vector_search_mcp.markdown.definitions import LinkDefinition, read_definition

_PIECES = [
    "[",
    "]",
    ":",
    "a",
    "B c",
    "\\",
    "\n",
    "  ",
    "<",
    ">",
    "(",
    ")",
    "'",
    '"',
    "/url",
    "t",
    "&amp;",
    "é",
    "]: ",
    "[a]",
]


def read(text: str) -> LinkDefinition | None:
    """The definition at the start of a paragraph of several lines."""
    lines = [line + "\n" for line in text.rstrip("\n").split("\n")]
    rest = iter(lines[1:])
    return read_definition(lines[0], lambda: next(rest, None))


@pytest.mark.parametrize(
    ("text", "lines", "label", "destination", "title"),
    [
        ("[a]: /url", 1, "a", "/url", ""),
        ("[a]:/url  ", 1, "a", "/url", ""),
        ("[a b]: <x y> 'ti tle'", 1, "a b", "x y", "ti tle"),
        ('[a]: <> "t"', 1, "a", "", "t"),
        ("[a]: u (t)", 1, "a", "u", "t"),
        ("[a]:\nu\n't'", 3, "a", "u", "t"),
        ("[a\nb]: u", 2, "a\nb", "u", ""),
        ("[a]: u 'one\ntwo'\nnext", 2, "a", "u", "one\ntwo"),
        ("[a]: u\n't' no", 1, "a", "u", ""),
        ("[a]: u\n't", 1, "a", "u", ""),
        ("[a\\]b]: u\\)", 1, "a\\]b", "u\\)", ""),
        ("[a]: u(v(w))", 1, "a", "u(v(w))", ""),
        ("[ a\0 ]: \0u", 1, " a\0 ", "\0u", ""),
        ("[a]: data:image/png;x", 1, "a", "data:image/png;x", ""),
    ],
)
def test_definition__is_read(text: str, lines: int, label: str, destination: str, title: str) -> None:
    """Label, destination and title as written, over as many lines as they take."""
    found = read(text)
    assert found is not None
    start, end = found.destination
    assert (found.lines, found.label, text[start:end], found.title) == (lines, label, destination, title)


@pytest.mark.parametrize(
    "text",
    [
        "[a]",
        "[a] : u",
        "[]: u",
        "[ \t]: u",
        "[a[b]: u",
        "[a]:",
        "[a]:\n",
        "[a]: u v",
        "[a]: <u",
        "[a]: <u<v>",
        "[a]: <u\nv>",
        "[a]: u 't' x",
        '[a]: u\n"" x',
        "[a]: u(v",
        "[a]: " + "(" * 33 + ")" * 33,
        "[a]: javascript:x",
        "[a]: &#106;avascript:x",
        "[a",
        "[a\\",
    ],
)
def test_definition__is_none(text: str) -> None:
    """What looks like one and is a paragraph."""
    assert read(text) is None


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12))
def test_definition__takes_the_lines_that_the_library_takes(pieces: list[str]) -> None:
    """The library's rule alone, over the same paragraph; its one slip with titles glued to a destination left out."""
    text = "[" + "".join(pieces)
    lines = [line.strip(" \t") for line in text.split("\n")]
    end = next((place for place, line in enumerate(lines) if not line), len(lines))
    paragraph = "\n".join(lines[:end]) + "\n"
    if any(glued in paragraph for glued in (">'", '>"', ">(")):
        return
    parser = MarkdownIt("commonmark")
    parser.block.ruler.enableOnly(["reference", "paragraph"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    environment: dict[str, dict[str, dict[str, list[int]]]] = {}
    parser.parse(paragraph, environment)
    spans = [entry["map"] for entry in environment.get("references", {}).values()]
    expected = next((last for first, last in spans if first == 0), None)
    found = read(paragraph)
    assert (found.lines if found is not None else None) == expected
