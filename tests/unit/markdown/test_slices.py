"""Pages of a document: joined they are its exact text, whatever the limits."""

import random

import pytest

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.slices import Page, PageLimits, read_page

DOCUMENTS = [
    b"",
    b"\n\n  \n",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf\r\n\r\n# Title\r\n\r\ntext\r\n",
    b"one paragraph without an end",
    b"# A\n\np1\n\n## B\n\np2\n\n- a\n  - b\n\n  tail of a\n- c\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    b"- parent\n  - child\n  tail\n- next",
    b"a\rb\r\rc\r\n\r\nd",
    "# 标题\n\n一段没有空格的长文本。\n".encode() * 20,
    b"---\ntitle: x\n---\n\n" + b"word " * 500 + b"\n\nend\n",
    b"\n" * 700 + b"text\n",
    b"x" * 1000 + b"\r\n" + b"y" * 1000,
]


def walk(document: MarkdownDocument, limits: PageLimits) -> list[Page]:
    """All pages from the document's start on, as a reader would follow them."""
    pages = [read_page(document, None, limits=limits)]
    while True:
        page = pages[-1]
        if page.truncated:
            assert page.next_offset is not None
            start = page.elements[0] if page.elements else None
            pages.append(read_page(document, start, limits=limits, offset=page.next_offset))
        elif page.next_element is not None:
            pages.append(read_page(document, page.next_element, limits=limits))
        else:
            return pages


@pytest.mark.parametrize("data", DOCUMENTS)
@pytest.mark.parametrize("max_bytes", [1, 7, 200, 12_000])
@pytest.mark.parametrize("max_elements", [1, 3, 200])
def test_pages__joined_are_the_exact_text(data: bytes, max_bytes: int, max_elements: int) -> None:
    """No gap, no repeat, and no page above the limit, but for a single character that is longer."""
    document = parse_bytes(data)
    pages = walk(document, PageLimits(max_elements=max_elements, max_bytes=max_bytes))
    assert b"".join(data[page.start : page.end] for page in pages) == data[document.source.bom_len :]
    for page in pages:
        data[page.start : page.end].decode("utf-8")
        assert page.end - page.start <= max(max_bytes, 4)
        assert len(page.elements) <= max_elements
        assert len(page.texts) == len(page.elements)
    shown = [element for page in pages for element in page.elements]
    assert list(dict.fromkeys(shown)) == list(document.elements)


@pytest.mark.parametrize("data", DOCUMENTS)
def test_pages__every_element_can_be_the_first(data: bytes) -> None:
    """From each element on the pages joined are the rest of the document."""
    document = parse_bytes(data)
    for element in document.elements:
        at = element.start
        page = read_page(document, element, limits=PageLimits(max_elements=2, max_bytes=100_000))
        assert page.start == at
        while page.next_element is not None:
            assert page.end == page.next_element.start
            page = read_page(document, page.next_element, limits=PageLimits(max_elements=2, max_bytes=100_000))
        assert page.end == len(data)


def test_page__texts_are_the_elements_own_source() -> None:
    """An item's text is its own segments; its later ones stand in the Markdown at their place."""
    document = parse_bytes(b"- parent\n  - child\n\n  tail\n- next\n")
    page = read_page(document, None, limits=PageLimits())
    assert page.texts == ("- parent\n  tail", "  - child", "- next")


def test_page__a_long_element_is_cut_at_line_ends() -> None:
    """A code block above the limit comes in pieces of whole lines, alone, each saying where to go on."""
    lines = [f"line {number} of the block" for number in range(40)]
    data = ("intro\n\n```\n" + "\n".join(lines) + "\n```\n\nafter\n").encode()
    document = parse_bytes(data)
    code = document.elements[1]
    offset = 0
    pieces: list[str] = []
    while True:
        page = read_page(document, code, limits=PageLimits(max_bytes=200), offset=offset)
        assert [element.logical for element in page.elements] == ["code1"]
        assert page.previous_element is document.elements[0]
        assert page.next_element is document.elements[2]
        pieces.append(page.texts[0])
        if not page.truncated:
            break
        assert data[page.end - 1 : page.end] == b"\n"
        offset = page.next_offset or 0
    assert len(pieces) > 3
    assert "".join(pieces) == code.text


@pytest.mark.parametrize(
    ("before", "max_bytes", "shown"),
    [(0, 1000, ["p3", "p4"]), (1, 1000, ["p2", "p3", "p4"]), (50, 1000, ["p1", "p2", "p3", "p4"]),
     (2, 12, ["p3", "p4"]), (2, 16, ["p2", "p3", "p4"])],
)  # fmt: skip
def test_page__elements_before_come_in_addition(before: int, max_bytes: int, shown: list[str]) -> None:
    """They do not take the place of others, and the farthest are dropped first where bytes run out."""
    document = parse_bytes(b"one\n\ntwo\n\ntri\n\nfor\n\nfiv\n")
    limits = PageLimits(max_elements=2, max_bytes=max_bytes, before=before)
    page = read_page(document, document.elements[2], limits=limits)
    assert [element.logical for element in page.elements] == shown
    first = document.elements.index(page.elements[0])
    assert page.previous_element is (document.elements[first - 1] if first else None)


def test_page__a_section_ends_with_its_range() -> None:
    """Deeper sections are in it, the next heading and the blank lines before it are not."""
    data = b"# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n\n## D\n\nd\n"
    document = parse_bytes(data)
    heading = document.by_logical("1.1")
    assert heading is not None
    page = read_page(document, heading, limits=PageLimits(), section_only=True)
    assert data[page.start : page.end] == b"## B\n\nb\n\n### C\n\nc"
    assert page.next_element is None
    first = read_page(document, heading, limits=PageLimits(max_elements=1), section_only=True)
    assert data[first.start : first.end] == b"## B\n\n"
    assert first.next_element is document.by_logical("1.1.p1")


@pytest.mark.parametrize("offset", [7, 8, 10_000])
def test_page__an_offset_beyond_the_element_is_refused(offset: int) -> None:
    """Going on where nothing is left says so."""
    document = parse_bytes(b"first\n\nsecond\n")
    with pytest.raises(InvalidArgument, match="nextOffset"):
        read_page(document, document.elements[0], limits=PageLimits(), offset=offset)


def test_page__an_offset_inside_a_character_is_refused() -> None:
    """A piece never begins in the middle of a character."""
    document = parse_bytes("é\n".encode())
    with pytest.raises(InvalidArgument):
        read_page(document, document.elements[0], limits=PageLimits(), offset=1)


def test_pages__random_documents_and_limits() -> None:
    """Random mixtures of lines give exact pages too."""
    rng = random.Random(11)
    parts = ["- a", "  - b", "text", "", "", "# h", "> q", "```", "| a |", "|---|", "é" * 30, "\t", "x" * 90]
    for _ in range(300):
        ending = rng.choice(["\n", "\r\n", "\r"])
        data = ending.join(rng.choices(parts, k=rng.randrange(30))).encode()
        document = parse_bytes(data)
        limits = PageLimits(max_elements=rng.randrange(1, 6), max_bytes=rng.randrange(4, 60))
        assert b"".join(data[page.start : page.end] for page in walk(document, limits)) == data
