"""The pointer grammar."""

import pytest

from local_vector_search_mcp.errors import InvalidPointer
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.pointers import format_pointer, parse_pointer, split_full_pointer

HASH = "0123456789abcdef"
OTHER = "fedcba9876543210"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("document", ElementKind.DOCUMENT),
        ("frontmatter", ElementKind.FRONTMATTER),
        ("1", ElementKind.HEADING),
        ("1.2.10", ElementKind.HEADING),
        ("p1", ElementKind.PARAGRAPH),
        ("1.code2", ElementKind.CODE),
        ("3.1.q1", ElementKind.BLOCK_QUOTE),
        ("t1", ElementKind.TABLE),
        ("html12", ElementKind.HTML),
        ("math1", ElementKind.MATH),
        ("fn1", ElementKind.FOOTNOTE),
        ("ref1", ElementKind.DEFINITION),
        ("hr1", ElementKind.RULE),
        ("li1", ElementKind.LIST_ITEM),
        ("1.li2.li1.li3", ElementKind.LIST_ITEM),
        ("1000000.p1000000", ElementKind.PARAGRAPH),
    ],
)
def test_pointer__bare_and_with_hashes(text: str, kind: ElementKind) -> None:
    """Every form comes back as it was, and its leaf says the kind."""
    pointer = parse_pointer(text)
    assert (pointer.logical, pointer.self_hash, pointer.subtree_hash, pointer.kind) == (text, None, None, kind)
    assert pointer.is_document == (text == "document")
    assert str(pointer) == text
    if text == "document":
        return
    assert str(parse_pointer(f"{text}~{HASH}")) == f"{text}~{HASH}"
    full = parse_pointer(f"{text}~{HASH.upper()}~{OTHER}")
    assert (full.logical, full.self_hash, full.subtree_hash) == (text, HASH, OTHER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1\n",
        "0",
        "01",
        "1.0",
        "1..2",
        ".p1",
        "p",
        "p0",
        "p1.p2",
        "p1.1",
        "p1000001",
        "1000001",
        "li1.p1",
        "1.li1.2",
        "P1",
        "x1",
        "frontmatter1",
        "1.frontmatter",
        f"document~{HASH}",
        "1~",
        f"1~{HASH[:-1]}",
        f"1~{HASH}0",
        f"1~{HASH}~",
        f"1~{HASH}~{OTHER}~{HASH}",
        f"1~{HASH[:-1]}g",
        "１",
        "p１",
        "a.md::p1",
    ],
)
def test_pointer__malformed_is_refused(text: str) -> None:
    """The message shows what a pointer looks like."""
    with pytest.raises(InvalidPointer, match=r"1\.2\.p3~"):
        parse_pointer(text)


def test_pointer__a_long_malformed_one_is_not_echoed_whole() -> None:
    """A message stays short."""
    with pytest.raises(InvalidPointer) as caught:
        parse_pointer("x" * 10_000)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("text", "path", "pointer"),
    [
        ("1.p1", None, "1.p1"),
        ("notes/a.md::1.p1", "notes/a.md", "1.p1"),
        ("odd::name.md::p1", "odd::name.md", "p1"),
        ("a.md::", "a.md", ""),
        ("::p1", "", "p1"),
    ],
)
def test_full_pointer__is_split_at_the_last_separator(text: str, path: str | None, pointer: str) -> None:
    """A path may hold the separator, a pointer may not."""
    assert split_full_pointer(text) == (path, pointer)


def test_pointer__of_an_element_is_its_address_and_hashes() -> None:
    """What is formatted parses to the same parts."""
    element = parse_bytes(b"# A\n\ntext\n").elements[1]
    pointer = parse_pointer(format_pointer(element))
    assert (pointer.logical, pointer.self_hash, pointer.subtree_hash) == (
        "1.p1",
        element.self_hash,
        element.subtree_hash,
    )
