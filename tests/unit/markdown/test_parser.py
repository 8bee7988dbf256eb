"""Parsing: sizes and depths that break parsers, and the facts of the small shared case files."""

import pytest
from tests.support.markdown_model import check_promises
from tests.support.shared_data import shared_root

from local_vector_search_mcp.errors import UnsupportedEncoding
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes

Facts = list[tuple[str, int, int]]


def facts(document: MarkdownDocument) -> Facts:
    """Address, first and last line of every element."""
    return [(element.logical, *element.lines) for element in document.elements]


# What ``cases/files/INDEX.md`` says is right, as addresses and lines.
CASES: dict[str, Facts] = {
    "f01-crlf": [("1", 1, 1), ("1.p1", 3, 4), ("1.li1", 6, 6), ("1.li2", 7, 7)],
    "f02-mixed-eol": [("1", 1, 1), ("1.p1", 3, 4), ("1.p2", 6, 6)],
    "f03-bom-heading": [("1", 1, 1), ("1.p1", 3, 3)],
    "f05-fenced-comments": [("1", 1, 1), ("1.code1", 3, 8), ("1.1", 10, 10), ("1.1.p1", 12, 12)],
    "f06-setext": [("1", 1, 2), ("1.p1", 4, 4), ("1.1", 6, 7), ("1.1.p1", 9, 9)],
    "f07-duplicate-headings": [("1", 1, 1), ("1.1", 3, 3), ("1.1.p1", 5, 5), ("1.2", 7, 7), ("1.2.p1", 9, 9)],
    "f08-heading-tags": [
        ("1", 1, 1),
        ("1.1", 3, 3),
        ("1.1.li1", 5, 5),
        ("1.1.li2", 6, 6),
        ("1.2", 8, 8),
        ("1.2.p1", 10, 10),
    ],
    "f09-paragraph-at-end": [("1", 1, 1), ("1.1", 3, 3), ("1.1.p1", 4, 4)],
    "f10-list-blank-lines": [("li1", 1, 1), ("p1", 4, 4)],
    "f11-comment-splits-list": [("li1", 1, 1), ("html1", 3, 3), ("li2", 5, 5)],
    "f12-ordered-numbers": [("li1", 1, 1), ("li2", 2, 2), ("li3", 3, 3)],
    "f13-item-tail": [("li1", 1, 4), ("li1.li1", 2, 2), ("li2", 5, 5)],
    "f14-empty-item": [("li1", 1, 1), ("li2", 2, 2), ("li3", 3, 3)],
    "f15-table-code-pipe": [("t1", 1, 4)],
    "f16-table-wikilink": [("t1", 1, 4)],
    "f17-table-edges": [("t1", 1, 5)],
    "f18-not-a-table": [("p1", 1, 3)],
    "f19-table-empty-cells": [("t1", 1, 3)],
    "f20-frontmatter-dashes": [("frontmatter", 1, 8), ("1", 10, 10), ("1.p1", 12, 12)],
    "f21-frontmatter-and-rules": [
        ("frontmatter", 1, 3),
        ("p1", 5, 5),
        ("hr1", 7, 7),
        ("p2", 9, 9),
        ("hr2", 11, 11),
        ("p3", 13, 13),
    ],
    "f22-frontmatter-unclosed": [("hr1", 1, 1), ("p1", 2, 2), ("1", 4, 4), ("1.p1", 6, 6)],
    "f23-u2028": [("1", 1, 1), ("1.li1", 2, 2), ("2", 4, 4), ("2.li1", 5, 5)],
    "f24-deep-quote": [("q1", 1, 1), ("p1", 3, 3)],
    "f25-footnote-middle": [("1", 1, 1), ("1.p1", 3, 3), ("1.fn1", 5, 6), ("1.p2", 8, 8)],
    "f26-link-definitions": [("p1", 1, 1), ("ref1", 3, 4), ("p2", 6, 6)],
    "f27-no-final-newline": [("1", 1, 1), ("1.p1", 3, 3)],
    "f31-callout": [("q1", 1, 3), ("p1", 5, 5)],
    "f32-nested-fence": [("li1", 1, 7), ("li1.li1", 3, 7), ("p1", 9, 9)],
}


@pytest.mark.parametrize("name", CASES)
def test_parse__shared_case_files(name: str) -> None:
    """The files of the field reports have the elements that their index names."""
    document = check_promises((shared_root() / "cases" / "files" / f"{name}.md").read_bytes())
    assert facts(document) == CASES[name]


def test_parse__shared_case_that_is_not_utf8() -> None:
    """It is refused, and the offset of the bad byte is named."""
    with pytest.raises(UnsupportedEncoding, match="offset 5"):
        parse_bytes((shared_root() / "cases" / "files" / "f04-invalid-utf8.md").read_bytes())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("quotes on a line", b">" * 20_000 + b" deep\n\nafter\n"),
        ("items on a line", b"- " * 20_000 + b"deep\n\nafter\n"),
        ("mixed on a line", b"> - 1. " * 6_000 + b"deep\n\nafter\n"),
        ("footnotes on a line", b"[^a]: " * 5_000 + b"deep\n\nafter\n"),
        ("items on their lines", b"".join(b"  " * n + b"- x\n" for n in range(600)) + b"\nafter\n"),
        ("quotes with lazy lines", b">" * 900 + b" a\n" + b"lazy\n" * 3_000 + b"\nafter\n"),
        ("items with lazy lines", b"- " * 900 + b"a\n" + b"lazy\n" * 3_000 + b"\nafter\n"),
        ("items with blank lines", b"- " * 900 + b"a\n" + b"\n" * 50_000 + b"after\n"),
        ("quotes around quotes", b"".join(b">" * n + b" x\n" for n in range(1, 600)) + b"\nafter\n"),
        ("headings in quotes", b"> # h\nlazy?\n" * 5_000 + b"\nafter\n"),
        ("math without an end", b"$$ x\n# h\n" * 10_000 + b"\nafter\n"),
        ("math in a quote", b"> $$ x\n> # h\n" * 10_000 + b"\nafter\n"),
        ("open brackets", b"[\n" * 20_000 + b"\nafter\n"),
        ("one open bracket", b"[a" + b"b\n" * 20_000 + b"\nafter\n"),
        ("open titles", b"[a]: b\n'" + b"t\n" * 20_000 + b"\nafter\n"),
        ("definitions", b"[label]: /url 'title'\n" * 20_000 + b"\nafter\n"),
        ("attributes", b"<a" + b" b=c" * 50_000 + b"\n\nafter\n"),
        ("one line", b"word " * 200_000 + b"\n\nafter\n"),
        ("a wide table", b"|a" * 20_000 + b"\n" + b"|-" * 20_000 + b"\n\nafter\n"),
        ("a long table", b"|a|b|\n|-|-|\n" + b"|1|\n" * 70_000 + b"\nafter\n"),
        ("items", b"- item\n" * 100_000 + b"\nafter\n"),
        ("alternating markers", b"- a\n* b\n" * 20_000 + b"\nafter\n"),
        ("tabs", b"\t" * 100_000 + b"a\n\nafter\n"),
    ],
)
def test_parse__sizes_and_depths_that_break_parsers(name: str, data: bytes) -> None:
    """It does not recurse and does not take more than linear time, so each of these ends within the test's limit."""
    document = parse_bytes(data)
    last = document.top_level[-1]
    assert (last.kind, last.text) == (ElementKind.PARAGRAPH, "after"), name
    top = [element for element in document.elements if element.parent is None]
    assert tuple(top) == document.top_level


def nested(depth: int) -> bytes:
    """Items inside each other on lines of their own, and one at top level after them."""
    return b"".join(b"  " * level + b"- item %d\n" % (level + 1) for level in range(depth)) + b"- last\n"


@pytest.mark.parametrize("depth", [1, 49, 50, 51, 60, 200])
def test_parse__items_beyond_depth_50_belong_to_the_one_at_50(depth: int) -> None:
    """Its text holds them, and what follows outside is not touched by the limit."""
    document = parse_bytes(nested(depth))
    deepest = max(document.elements, key=lambda element: element.depth)
    assert deepest.depth == min(depth, 50)
    assert deepest.text.count("item") == max(depth - 49, 1)
    assert document.elements[-1].logical == "li2"
    assert deepest.lines[1] == depth


def test_parse__text_after_a_very_deep_item_is_its_own() -> None:
    """Lines that leave 200 nested items leave the one at depth 50 too."""
    document = parse_bytes(nested(200).replace(b"- last\n", b"\ntext\n\n    - not an item\n"))
    assert [(element.kind, element.text) for element in document.top_level[1:]] == [
        (ElementKind.PARAGRAPH, "text"),
        (ElementKind.CODE, "    - not an item"),
    ]


def test_element__attributes_by_kind() -> None:
    """What only headings and items have is absent in the others."""
    document = parse_bytes(b"p\n\n# H\n\n- a\n  1. b\n- c\n\n* d\n")
    p, h, a, b, c, d = document.elements
    assert [element.level for element in document.elements] == [None, 1, None, None, None, None]
    assert [element.parent for element in document.elements] == [None, None, None, 2, None, None]
    assert [element.depth for element in document.elements] == [1, 1, 1, 2, 1, 1]
    assert p.list_id is None
    assert a.list_id == c.list_id
    assert len({a.list_id, b.list_id, d.list_id}) == 3
    assert (p.section, p.heading, p.heading_path, p.heading_text) == ("", None, (), None)
    assert (b.section, b.heading, b.heading_path) == ("1", h, ("H",))
    assert document.children(a) == (b,)
    assert document.children(h) == ()
    assert list(document.descendants(a)) == [b]
    assert repr(b) == "<Element 1.li1.li1 list_item [12, 18)>"


def test_document__finds_elements() -> None:
    """By address, by offset and by self hash."""
    data = b"\xef\xbb\xbf# H\n\n- a\n  - b\n\n  tail\n\nend"
    document = parse_bytes(data)
    found: list[Element | None] = [document.element_at(offset) for offset in range(len(data) + 1)]
    assert [element.logical if element else None for element in found] == [
        *[None] * 3,
        *["1"] * 3,
        *[None] * 2,
        *["1.li1"] * 4,
        *["1.li1.li1"] * 5,
        *["1.li1"] * 8,
        *[None] * 2,
        *["1.p1"] * 3,
        None,
    ]
    assert document.by_logical("1.li1.li1") is found[13]
    assert document.by_logical("2") is None
    end = document.elements[-1]
    assert document.by_self_hash(end.kind, end.self_hash) == [end]
    assert document.by_self_hash(ElementKind.CODE, end.self_hash) == ()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", None),
        ("text\n", None),
        ("## Two\n\n# One\n", "One"),
        ("## Two\n\n### Three\n", "Two"),
        ("---\ntitle: Mine\n---\n# One\n", "Mine"),
        ("---\ntitle: ''\n---\n# One\n", "One"),
        ("---\nbad: [\n---\n# One\n", "One"),
        ("#\n", None),
    ],
)
def test_document__title(text: str, title: str | None) -> None:
    """The front matter's, else the first level-1 heading, else the first heading."""
    assert parse_bytes(text.encode()).title == title


@pytest.mark.parametrize("label", ["a b", "", "a]b"])
def test_footnotes__labels_that_are_none(label: str) -> None:
    """A label has no blank and no bracket, and is not empty; the line is a paragraph then."""
    document = parse_bytes(f"[^{label}]: two words\n".encode())
    assert [element.kind for element in document.elements] == [ElementKind.PARAGRAPH]
