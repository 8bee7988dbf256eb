"""Links, tags, block ids and heading slugs."""

from urllib.parse import quote

import pytest

from local_vector_search_mcp.markdown.links import (
    Link,
    LinkKind,
    LinkSyntax,
    block_ids,
    extract_links,
    extract_tags,
    heading_slug,
    heading_slugs,
    link_definitions,
    survey,
)
from local_vector_search_mcp.markdown.parser import parse_bytes


def links(text: str) -> tuple[Link, ...]:
    """The links of a text; each one's ranges hold what it says."""
    data = text.encode()
    document = parse_bytes(data)
    found = extract_links(document)
    for link in found:
        assert link.destination.slice(data).decode() == link.target
        assert link.element.range.contains(link.destination)
    return found


def targets(text: str) -> list[tuple[str, str]]:
    """Kind and raw target of each link."""
    return [(link.kind.value, link.target) for link in links(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](b.md)", [("link", "b.md")]),
        ("[a](<b c.md> 'title')", [("link", "b c.md")]),
        ("[a]( b.md\n(title) )", [("link", "b.md")]),
        ("[a]()", [("link", "")]),
        ("[a](<>)", [("link", "")]),
        ("[a](b(c)d)", [("link", "b(c)d")]),
        ("![a](b.png)", [("image", "b.png")]),
        ("[![a](b.png)](c.md)", [("image", "b.png"), ("link", "c.md")]),
        ("[a [b](c.md) d](e.md)", [("link", "c.md")]),
        ("[a][ref]\n\n[ref]: x.md", [("link", "x.md")]),
        ("[a [ref] b](c.md)\n\n[ref]: x.md", [("link", "x.md")]),
        ("[a [no] b](c.md)", [("link", "c.md")]),
        ("[ref][] [ref]\n\n[ref]: <x y.md> 't'", [("link", "x y.md")]),
        ("[a](b c.md)", []),
        ("[a](b", []),
        ("[a](<b)", []),
        ("[a](b 'c)", []),
        ("a](b)", []),
        (r"\[a](b)", []),
        (r"[a\](b)", []),
        (r"[a\]b](c)", [("link", "c")]),
        ("`[a](b)`", []),
        ("``[a](b)` [c](d)``", []),
        ("`[a](b)", [("link", "b")]),
        ("[a`](b)`", []),
        ("    [a](b)", []),
        ("```\n[a](b)\n```", []),
        ("- ```\n  [a](b)\n  ```\n- [c](d)", [("link", "d")]),
        ("> ```\n> [a](b)\n> ```\n> [c](d)", [("link", "d")]),
        ("$$\n[a](b)\n$$", []),
        ("<https://a.b> <me@a.b>", []),
        ("<a href='x.md'>t</a> <img src=y.png alt=z>", [("link", "x.md"), ("image", "y.png")]),
        ("<a [x](y)>", [("link", "y")]),
        ("<a title='[x](y)'>", []),
        ('<div>\n<a\n href="x.md">\n<IMG SRC="y.png">\n</div>', [("link", "x.md"), ("image", "y.png")]),
        ("> <a href='x\n> y.md'> [a](b)", [("link", "b")]),
        ("<!-- <a href='x'> [a](b) -->", []),
        ("a <!-- [x](y) --> [z](w)", [("link", "w")]),
        ("<!-- <a href='x'>", []),
        ("<? [a](b) ?> text", []),
        ("x <?a [b](c) ?> <![CDATA[ [d](e) ]]> <!X [f](g)>", []),
        ("x <!-- [a](b)", [("link", "b")]),
        ("[[Note]]", [("wikilink", "Note")]),
        ("![[pic.png|100]]", [("embed", "pic.png")]),
        ("[[ Note # Head | alias ]]", [("wikilink", "Note # Head")]),
        ("[[1]](#note-1) ![[a]](<b c.png> 't')", [("link", "#note-1"), ("image", "b c.png")]),
        ("[[Note]](x.md) [[Note]](https://a.b/c_(d))", [("link", "x.md"), ("link", "https://a.b/c_(d)")]),
        ("[[1]](a.md)\n\n[1]: b.md", [("link", "b.md")]),
        ("[[Note]](s) [[Note]](e.g. this) [[Note]]() [[Note]] (x.md)", [("wikilink", "Note")] * 4),
        ("[[a[b]] [[]] [[x\ny]]", []),
        ("# [[Note]] [a](b)", [("wikilink", "Note"), ("link", "b")]),
        (
            "| [[N\\|a]] | [b](c\\|d) |\n|---|---|\n| ![e](f) | `[g](h)` |",
            [("wikilink", "N"), ("link", "c\\|d"), ("image", "f")],
        ),
        ("[^1]: see [a](b)", [("link", "b")]),
        ("> [a\n> b](c.md)", [("link", "c.md")]),
        ("- x\n  [a](\n  b.md)", [("link", "b.md")]),
        ("---\nlink: '[a](b)'\n---\n[c](d)", [("link", "d")]),
        ("no links [here] and *there*", []),
        ("[a]: x.md 't'\n[b]:\n  y.md", [("link", "x.md"), ("link", "y.md")]),
    ],
)
def test_links__are_found_with_their_bytes(text: str, found: list[tuple[str, str]]) -> None:
    """Every form of link, none in code, math, comments and front matter."""
    assert targets(text) == found


@pytest.mark.parametrize(
    ("text", "syntax", "path", "path_bytes", "anchor"),
    [
        ("[a](x.md)", LinkSyntax.INLINE, "x.md", "x.md", None),
        ("[a](x%20y.md#h-1)", LinkSyntax.INLINE, "x y.md", "x%20y.md", "h-1"),
        ("[a](<x y.md#H%31>)", LinkSyntax.ANGLE, "x y.md", "x y.md", "H1"),
        ("[a](x\\(1\\).md?raw=1#z)", LinkSyntax.INLINE, "x(1).md", "x\\(1\\).md", "z"),
        ("[a](x&amp;y.md)", LinkSyntax.INLINE, "x&y.md", "x&amp;y.md", None),
        ("[a](#h)", LinkSyntax.INLINE, "", "", "h"),
        ("[a](x.md#)", LinkSyntax.INLINE, "x.md", "x.md", ""),
        ("[a]: <x y.md#h>", LinkSyntax.ANGLE_DEFINITION, "x y.md", "x y.md", "h"),
        ("[a]: é.md", LinkSyntax.DEFINITION, "é.md", "é.md", None),
        ('<a href="x&amp;y%20z.md#h">', LinkSyntax.HTML, "x&y z.md", "x&amp;y%20z.md", "h"),
        ("[[Note 50%#Head|a]]", LinkSyntax.WIKI, "Note 50%", "Note 50%", "Head"),
        ("[[Note#^block]]", LinkSyntax.WIKI, "Note", "Note", "^block"),
        ("[[#Head]]", LinkSyntax.WIKI, "", "", "Head"),
        ("![[a?b.png]]", LinkSyntax.WIKI, "a?b.png", "a?b.png", None),
    ],
)
def test_link__parts(text: str, syntax: LinkSyntax, path: str, path_bytes: str, anchor: str | None) -> None:
    """The path resolved and as written, and the anchor."""
    (link,) = links(text)
    assert (link.syntax, link.path, link.anchor) == (syntax, path, anchor)
    assert link.path_range.slice(text.encode()).decode() == path_bytes
    assert link.is_wiki == (syntax is LinkSyntax.WIKI)


@pytest.mark.parametrize(
    ("target", "is_url"),
    [
        ("https://a.b/c", True),
        ("mailto:me@a.b", True),
        ("//host/path", True),
        ("x.md", False),
        ("/x.md", False),
        ("./a:b.md", False),
        ("#a:b", False),
    ],
)
def test_link__urls(target: str, is_url: bool) -> None:
    """A scheme or a host makes a URL."""
    (link,) = links(f"[a]({target})")
    assert link.is_url == is_url
    assert not links("[[a: b]]")[0].is_url


def test_links__stand_in_their_innermost_element() -> None:
    """A nested item's link is the nested item's."""
    found = links("- [a](1)\n  - [b](2)\n\n  [c](3)\n\n> [d](4)\n")
    assert [link.element.logical for link in found] == ["li1", "li1.li1", "li1", "q1"]
    assert {link.kind for link in found} == {LinkKind.LINK}


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ('#tag and (#two) "#three"', ["tag", "two", "three"]),
        ("# heading #end", ["end"]),
        ("#a/b #a-b #a_b #1a #a1", ["a/b", "a-b", "a_b", "1a", "a1"]),
        ("#中文 #über", ["中文", "über"]),
        ("#a #A #a", ["a", "A"]),
        ("#a, #b. #c! #d: #e/", ["a", "b", "c", "d", "e"]),
        ("#1 #12-3 x#no ##no a/#no &#35; \\#no", ["12-3"]),
        ("http://x.y/#no page.html#no ?q=#no", []),
        ('`#no` [a](#no) <a href="#no"> [[Note#no]]', []),
        ("[#in](x) [[n|#alias]]", ["in", "alias"]),
        ("```\n#no\n```\n\n    #no\n", []),
        ("| #cell |\n|---|\n| `#no` #two |", ["cell", "two"]),
        ("> #quoted\n\n- #item\n\n[^1]: #note", ["quoted", "item", "note"]),
        ("<div>\n#no\n</div>", []),
        ("[a]: #no", []),
        ("---\ntags: [no]\nx: '#no'\n---\n#yes", ["yes"]),
    ],
)
def test_tags__inline(text: str, tags: list[str]) -> None:
    """Letters, digits, ``_``, ``-``, ``/`` with at least one that is no digit; not in code or destinations."""
    document = parse_bytes(text.encode())
    assert list(extract_tags(document)) == tags
    assert extract_tags(document) is extract_tags(document) or not tags


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Hello World", "hello-world"),
        ("  two  spaces", "--two--spaces"),
        ("C++ & C#", "c--c"),
        ("What's new?", "whats-new"),
        ("snake_case-x", "snake_case-x"),
        ("Über 中文 é", "über-中文-é"),
        ("1. One", "1-one"),
        ("😀 smile", "-smile"),
        ("", ""),
    ],
)
def test_slug__by_githubs_rules(text: str, slug: str) -> None:
    """Lower case, no punctuation, hyphens for spaces."""
    assert heading_slug(text) == slug


def slugs(text: str) -> dict[str, str]:
    """Anchors with the addresses of their elements."""
    return {slug: element.logical for slug, element in heading_slugs(parse_bytes(text.encode())).items()}


def test_slugs__twins_are_counted() -> None:
    """``-1`` and ``-2`` in order, also where one is taken already; headings in lists and quotes count."""
    assert slugs("# A\n\n## A\n\n# A\n") == {"a": "1", "a-1": "1.1", "a-2": "2"}
    assert slugs("# A\n\n# A-1\n\n# A\n") == {"a": "1", "a-1": "2", "a-2": "3"}
    assert slugs("# *A* [b](c) `d`\n") == {"a-b-d": "1"}
    assert slugs("- # A\n\n> A\n> ===\n\n# A\n") == {"a": "li1", "a-1": "q1", "a-2": "1"}


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("text ^one\n", {"one": "p1"}),
        ("two\nlines ^id-2  \n", {"id-2": "p1"}),
        ("not ^here but\nthere\n", {}),
        ("x^no y\\^no\n", {}),
        ("- a ^a\n  - b ^b\n", {"a": "li1", "b": "li1.li1"}),
        ("| a |\n|---|\n| 1 |\n\n^tab\n", {"tab": "t1"}),
        ("| a |\n|---|\n| 1 |\n^tab\n", {"tab": "t1"}),
        ("> quote\n\n^q\n", {"q": "q1"}),
        ("- a\n  - b\n\n^list\n", {"list": "li1"}),
        ("^alone\n", {"alone": "p1"}),
        ("---\na: 1\n---\n^alone\n", {"alone": "p1"}),
        ("# Heading ^h\n", {"h": "1"}),
        ("a ^x\n\nb ^x\n", {"x": "p1"}),
        ("> a ^in\n", {"in": "q1"}),
        ("```\na ^no\n```\n", {}),
    ],
)
def test_block_ids__name_elements(text: str, blocks: dict[str, str]) -> None:
    """At the end of a block, or alone after it; the first of equal ones counts."""
    found = block_ids(parse_bytes(text.encode()))
    assert {name: element.logical for name, element in found.items()} == blocks


def test_definitions__of_a_document() -> None:
    """The first of equal labels counts, at any depth."""
    document = parse_bytes(b"> [A  b]: <x y> 'T\\'t'\n\n- [a B]: no\n- [c]: &amp;\n\n[^d]: x\n")
    found = link_definitions(document)
    assert {label: (it.destination, it.title, it.element.logical) for label, it in found.items()} == {
        "A B": ("x y", "T't", "q1"),
        "C": ("&", "", "li2"),
    }


def test_survey__is_everything_at_once() -> None:
    """One pass gives what the single questions give."""
    document = parse_bytes(b"# A #t\n\n[x](y) text ^id\n")
    found = survey(document)
    assert found.links == extract_links(document)
    assert found.tags == extract_tags(document) == ("t",)
    assert found.slugs == heading_slugs(document)
    assert found.blocks == block_ids(document)


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "![",
        "[[",
        "](",
        "[a](",
        "[a](b",
        "[a](<b",
        "[a](b 'c",
        "<",
        "<a ",
        "<!--",
        "<?",
        "`",
        "`a``",
        "\\",
        "#",
        "#a",
        "^",
        "[]",
        "[a]: b\n",
    ],
)
def test_survey__takes_linear_time(unit: str) -> None:
    """Whatever is repeated: with quadratic time none of these would end within the test's limit."""
    document = parse_bytes((unit * (400_000 // len(unit))).encode())
    found = survey(document)
    assert all(link.destination.slice(document.source.data).decode() == link.target for link in found.links)


def test_links__percent_encoding_of_any_name_is_resolved() -> None:
    """What a writer encodes is the name again."""
    for name in ("a b.md", "ü#?.md", "100%.md", "中.md"):
        (link,) = links(f"[a]({quote(name)})")
        assert link.path == name
