"""The patcher refuses what would change more than it says, and lets the harmless twin of each through."""

import pytest
from tests.support.patching import Operation, addressed, check, op, patched, refused

from local_vector_search_mcp.editing.operations import read_operations
from local_vector_search_mcp.editing.patcher import patch
from local_vector_search_mcp.errors import (
    Conflict,
    InvalidArgument,
    InvalidPointer,
    KnowledgeBaseError,
    OverlappingOperations,
    PointerNotFound,
    StructureChanged,
    TooLarge,
    UnsupportedEdit,
)
from local_vector_search_mcp.markdown.parser import parse_bytes

NEIGHBOURS = [
    pytest.param("a\n***\n", [op("replace_element", "hr1", "x\n---")], ["heading"], id="kind-of-text-becomes-heading"),
    pytest.param(
        "x\n\nb\n",
        [op("replace_element", "p1", "```\nx")],
        ["p2", "swallowed", "code", "Close the fence"],
        id="unclosed-fence",
    ),
    pytest.param(
        "x\n\npara\n\nrest\n", [op("replace_element", "p1", "<!-- open")], ["p2", "html"], id="unclosed-comment"
    ),
    pytest.param("- a\n\npara\n\n    code\n", [op("delete", "p1")], ["code1"], id="code-falls-into-the-item"),
    pytest.param(
        "1. a\n\npara\n\n2. b\n", [op("delete", "p1")], ["li2", "merged", "list"], id="ordered-lists-are-not-joined"
    ),
    pytest.param(
        "- a\n\npara\n\n- b\n", [op("replace_element", "p1", "- x")], ["merged"], id="a-replacement-joins-no-lists"
    ),
    pytest.param(
        "- a\n\npara\n\n- b\n\nend\n", [op("move_after", "p1", target="p2")], ["merged"], id="a-move-joins-no-lists"
    ),
    pytest.param(
        "- parent\n  - child\n\n  tail\n",
        [op("delete", "li1.li1")],
        ["li1", "replace_subtree"],
        id="own-text-would-be-joined",
    ),
    pytest.param("x\n\n---\nkey: 1\n---\n", [op("delete", "p1")], ["front matter"], id="rules-become-front-matter"),
    pytest.param(
        "# A\n",
        [op("insert_before", "document", "---\nkey: 1\n---")],
        ["kb_edit_frontmatter"],
        id="inserted-front-matter",
    ),
    pytest.param("```\nopen", [op("insert_after", "document", "x")], ["fence"], id="after-an-unclosed-fence"),
    pytest.param(
        "1. a\n   - child\n", [op("replace_element", "li1", "100. a")], ["li1.li1"], id="child-loses-its-parent"
    ),
    pytest.param(
        "see [x] here\n\nb\n",
        [op("insert_after", "p2", "new\n\n[x]: /u")],
        ["[x]", "p1", "label"],
        id="definition-makes-a-link",
    ),
    pytest.param(
        "see [x]\n\nb\n\n[x]: /u\n",
        [op("replace_element", "p2", "[X]: /other")],
        ["p1"],
        id="definition-goes-before-another",
    ),
    pytest.param(
        "see [x]\n\n[x]: /1\n\nb\n\n[x]: /2\n",
        [op("move_after", "ref1", target="ref2")],
        ["[x]"],
        id="a-move-changes-the-first-definition",
    ),
]

HARMLESS = [
    pytest.param("x\n\nb\n", [op("replace_element", "p1", "```\nx\n```")], "```\nx\n```\n\nb\n", id="closed-fence"),
    pytest.param("a\n\nx\n", [op("replace_element", "p2", "```\nx")], "a\n\n```\nx\n", id="unclosed-fence-at-the-end"),
    pytest.param(
        "a\n\nx\n", [op("replace_element", "p2", "<!-- open")], "a\n\n<!-- open\n", id="unclosed-comment-at-the-end"
    ),
    pytest.param(
        "- a\n\n- b\n",
        [op("replace_element", "li1", "- a\n\n  <!-- in the item -->")],
        "- a\n\n  <!-- in the item -->\n\n- b\n",
        id="indented-comment",
    ),
    pytest.param("> q\n\nx\n", [op("replace_element", "p1", "> z")], "> q\n\n> z\n", id="quotes-with-a-blank-line"),
    pytest.param(
        "> [!note] T\n> - a\n> body\n\nrest\n",
        [op("replace_element", "q1", "> [!tip] T\n> - b")],
        "> [!tip] T\n> - b\n\nrest\n",
        id="callout",
    ),
    pytest.param(
        "see [y]\n\nb\n",
        [op("insert_after", "p2", "[x]: /u")],
        "see [y]\n\nb\n\n[x]: /u\n",
        id="definition-that-nobody-uses",
    ),
    pytest.param(
        "see [x]\n\nb\n",
        [op("replace_element", "p1", "now [x]"), op("insert_after", "p2", "[x]: /u")],
        "now [x]\n\nb\n\n[x]: /u\n",
        id="definition-with-its-user",
    ),
    pytest.param(
        "`[x]`\n\nb\n", [op("insert_after", "p2", "[x]: /u")], "`[x]`\n\nb\n\n[x]: /u\n", id="definition-and-code"
    ),
    pytest.param("text\n***\nmore\n", [op("replace_element", "hr1", "___")], "text\n___\nmore\n", id="another-rule"),
    pytest.param(
        "1. a\n   - child\n", [op("replace_element", "li1", "2. b")], "2. b\n   - child\n", id="marker-of-equal-width"
    ),
]

FRAGMENTS = [
    pytest.param("a\nb\n", [op("replace_element", "p1", "x\n\ny")], ["exactly one", "2"], id="two-for-one"),
    pytest.param("a\n", [op("replace_element", "p1", "")], ["no Markdown element", "delete"], id="nothing"),
    pytest.param("a\n", [op("insert_after", "p1", " \n\n")], ["no Markdown element"], id="blank"),
    pytest.param("a\n\nb\n", [op("replace_element", "p1", "a\n---")], ["heading"], id="setext"),
    pytest.param("# A\n", [op("replace_element", "1", "## A")], ["level-1", "level-2"], id="heading-level"),
    pytest.param("# A\n", [op("replace_element", "1", "text")], ["paragraph"], id="heading-becomes-text"),
    pytest.param("# A\n", [op("replace_element", "1", "# A\n\ntext")], ["exactly one"], id="heading-with-body"),
    pytest.param(
        "- a\n", [op("replace_element", "li1", "text")], ["list item", "no list marker"], id="item-becomes-text"
    ),
    pytest.param("- a\n", [op("replace_element", "li1", "* a")], ["'-'", "'*'"], id="marker"),
    pytest.param("1. a\n", [op("replace_element", "li1", "1) a")], ["'.'", "')'"], id="delimiter"),
    pytest.param("- a\n", [op("replace_element", "li1", "- a\n- b")], ["exactly one list item"], id="two-items"),
    pytest.param("- a\n", [op("replace_element", "li1", "- a\n  - b")], ["nested", "replace_subtree"], id="nested"),
    pytest.param("- a\n  - b\n", [op("replace_element", "li1.li1", "- c")], ["indentation"], id="indentation-missing"),
    pytest.param("- a\n", [op("replace_element", "li1", "  - c")], ["indentation"], id="indentation-too-much"),
    pytest.param("- a\n- b\n", [op("insert_after", "li1", "para")], ["list item"], id="paragraph-beside-an-item"),
    pytest.param("- a\n- b\n", [op("insert_after", "li1", "- c\n- d")], ["exactly one list item"], id="two-siblings"),
    pytest.param(
        "- a\n\npara\n",
        [op("replace_element", "li1", "- a\n\n<!-- c -->")],
        ["exactly one list item"],
        id="comment-splits-the-list",
    ),
    pytest.param(
        "- a\n\npara\n",
        [op("replace_element", "li1", "- a\n\npara")],
        ["exactly one list item"],
        id="item-with-unindented-text",
    ),
    pytest.param(
        "## A\n", [op("replace_section", "1", "text")], ["level-2", "paragraph"], id="section-without-heading"
    ),
    pytest.param("## A\n", [op("replace_section", "1", "# A")], ["level-2", "level-1"], id="section-of-another-level"),
    pytest.param("## A\n", [op("replace_section", "1", "## A\n\n## B")], ["deeper than level 2"], id="two-sections"),
    pytest.param(
        "## A\n\nx\n", [op("insert_after", "1", "# B")], ["would end the section"], id="heading-under-a-heading"
    ),
    pytest.param(
        "## A\n\nx\n", [op("append_to_section", "1", "y\n\n## B")], ["would end the section"], id="heading-appended"
    ),
    pytest.param(
        "---\na: 1\n---\n",
        [op("replace_element", "frontmatter", "text")],
        ["front matter"],
        id="front-matter-becomes-text",
    ),
    pytest.param(
        "---\na: 1\n---\n",
        [op("replace_element", "frontmatter", "---\na: 1\n---\n\nx")],
        ["nothing else"],
        id="front-matter-with-body",
    ),
    pytest.param("a\n", [op("replace_text", "p1", find="a", replace="")], ["delete"], id="text-takes-all"),
    pytest.param("a b\n", [op("replace_text", "p1", find=" ", replace="\n\n")], ["one paragraph"], id="text-splits"),
    pytest.param(
        "# A\n", [op("replace_text", "1", find="# ", replace="## ")], ["level 1"], id="text-changes-the-level"
    ),
    pytest.param(
        "# A\n", [op("replace_text", "1", find="# ", replace="#")], ["paragraph"], id="text-takes-the-heading"
    ),
    pytest.param("- a\n", [op("replace_text", "li1", find="- ", replace="")], ["marker"], id="text-takes-the-marker"),
    pytest.param(
        "```\nx\n```\n",
        [op("replace_text", "code1", find="x\n", replace="```\ny\n")],
        ["one code"],
        id="text-closes-the-fence",
    ),
    pytest.param(
        "- a\n- b\n\n1. c\n", [op("move_after", "li1", target="li3")], ["marker"], id="move-to-another-marker"
    ),
]


@pytest.mark.parametrize(("before", "operations", "words"), NEIGHBOURS)
def test_patch__neighbours_are_kept(before: str, operations: list[Operation], words: list[str]) -> None:
    """An edit that would swallow, split or merge another element is refused by that element's name."""
    error = refused(before, operations, StructureChanged, *words)
    assert error.details["operation"] in range(len(operations))
    assert error.details["reason"] in ("neighbour", "fragment")


@pytest.mark.parametrize(("before", "operations", "after"), HARMLESS)
def test_patch__harmless_twins(before: str, operations: list[Operation], after: str) -> None:
    """What looks alike and changes nothing else is done."""
    check(before, operations, after)


@pytest.mark.parametrize(("before", "operations", "words"), FRAGMENTS)
def test_patch__fragments(before: str, operations: list[Operation], words: list[str]) -> None:
    """A text that is not what its operation takes is refused on its own."""
    error = refused(before, operations, StructureChanged, *words)
    assert error.details["reason"] == "fragment"
    assert error.details["operation"] == 0


UNSUPPORTED = [
    ("a\n", [op("delete", "document")], "document"),
    ("a\n", [op("move_after", "p1", target="document")], "document"),
    ("a\n", [op("replace_section", "p1", "x")], "heading"),
    ("a\n", [op("delete_section", "p1")], "heading"),
    ("a\n", [op("append_to_section", "p1", "x")], "heading"),
    ("a\n", [op("replace_subtree", "p1", "x")], "list item"),
    ("# A\n", [op("replace_subtree", "1", "x")], "replace_section"),
    ("a\n\nb\n", [op("move_after", "p1", target="p2", section=True)], "heading"),
    ("---\na: 1\n---\n\nx\n", [op("move_after", "frontmatter", target="p1")], "Front matter"),
    ("---\na: 1\n---\n\nx\n", [op("insert_before", "frontmatter", "x")], "front matter"),
    ("---\na: 1\n---\n\nx\n\ny\n", [op("move_before", "p1", target="frontmatter")], "front matter"),
    ("- a\n\nb\n", [op("move_after", "p1", target="li1")], "list item"),
    ("- a\n\nb\n", [op("move_after", "li1", target="p1")], "list item"),
    ("- - a\n", [op("replace_element", "li1", "- x")], "replace_subtree"),
    ("- - a\n", [op("replace_element", "li1.li1", "- x")], "parent's line"),
    ("- - a\n", [op("insert_after", "li1.li1", "  - x")], "parent's line"),
    ("- - a\n  - b\n", [op("move_after", "li1.li1", target="li1.li2")], "parent's line"),
]


@pytest.mark.parametrize(("before", "operations", "word"), UNSUPPORTED)
def test_patch__targets_that_an_operation_does_not_take(before: str, operations: list[Operation], word: str) -> None:
    """The refusal says what the operation takes, or what to use."""
    refused(before, operations, UnsupportedEdit, word)


OVERLAPS = [
    ("a\n\nb\n", [op("delete", "p1"), op("replace_element", "p1", "x")]),
    ("# A\n\nx\n", [op("delete_section", "1"), op("replace_element", "1.p1", "y")]),
    ("# A\n\nx\n", [op("replace_section", "1", "# A"), op("insert_after", "1.p1", "y")]),
    ("# A\n\nx\n", [op("replace_section", "1", "# A"), op("insert_after", "1", "y")]),
    ("# A\n\nx\n", [op("replace_section", "1", "# A"), op("append_to_section", "1", "y")]),
    ("# A\n\n## B\n", [op("delete_section", "1"), op("delete_section", "1.1")]),
    ("- a\n  - b\n", [op("delete", "li1"), op("delete", "li1.li1")]),
    ("- a\n  - b\n", [op("replace_subtree", "li1", "- x"), op("insert_after", "li1.li1", "  - c")]),
    ("# A\n\nx\n\n# B\n", [op("move_after", "1", target="1.p1", section=True)]),
    ("a\n\nb\n", [op("move_after", "p1", target="p1")]),
    ("a\n\nb\n\nc\n", [op("move_after", "p1", target="p2"), op("replace_element", "p1", "x")]),
    ("# A\n\nx\n\n# B\n", [op("delete_section", "1"), op("move_after", "2", target="1.p1")]),
]


@pytest.mark.parametrize(("before", "operations"), OVERLAPS)
def test_patch__overlaps(before: str, operations: list[Operation]) -> None:
    """Targets of one call are disjoint."""
    error = refused(before, operations, OverlappingOperations)
    assert error.details["operations"]


DISJOINT = [
    ("# A\n\nx\n", [op("replace_element", "1", "# B"), op("replace_element", "1.p1", "y")], "# B\n\ny\n"),
    ("# A\n\nx\n", [op("delete", "1"), op("replace_element", "1.p1", "y")], "y\n"),
    ("# A\n\nx\n", [op("replace_element", "1", "# B"), op("append_to_section", "1", "y")], "# B\n\nx\n\ny\n"),
    ("- a\n  - b\n", [op("replace_element", "li1", "- A"), op("replace_element", "li1.li1", "  - B")], "- A\n  - B\n"),
    ("- a\n  - b\n", [op("replace_element", "li1", "- A"), op("delete", "li1.li1")], "- A\n"),
    ("# A\n\nx\n\n# B\n", [op("delete_section", "1"), op("insert_before", "1", "# N")], "# N\n\n# B\n"),
    ("# A\n\nx\n\n# B\n", [op("delete_section", "1"), op("insert_before", "2", "# N")], "# N\n\n# B\n"),
    ("a\n\nb\n\nc\n", [op("replace_element", "p1", "A"), op("replace_element", "p2", "B")], "A\n\nB\n\nc\n"),
]


@pytest.mark.parametrize(("before", "operations", "after"), DISJOINT)
def test_patch__neighbouring_targets(before: str, operations: list[Operation], after: str) -> None:
    """A heading alone does not contain its section, an item's own text not its nested items."""
    check(before, operations, after)


def test_patch__all_or_nothing() -> None:
    """One refused operation refuses the call, and is named."""
    error = refused("a\n\nb\n", [op("replace_element", "p1", "x"), op("replace_element", "p2", "")], StructureChanged)
    assert error.details["operation"] == 1


HASHES: list[tuple[str, str, str, dict[str, object]]] = [
    ("a\n", "delete", "p1", {}),
    ("- a\n", "delete", "li1~{self}", {}),
    ("# A\n", "delete_section", "1~{self}", {}),
    ("# A\n", "replace_section", "1~{self}", {"markdown": "# B"}),
    ("- a\n", "replace_subtree", "li1~{self}", {"markdown": "- b"}),
    ("a\n\nb\n", "move_after", "p1~{self}", {"target": "p2"}),
    ("a\n", "replace_element", "p1", {"markdown": "b"}),
]


@pytest.mark.parametrize(("before", "kind", "pointer", "fields"), HASHES)
def test_patch__needed_hashes(before: str, kind: str, pointer: str, fields: dict[str, object]) -> None:
    """A pointer that lacks a hash that the operation needs is refused."""
    document = parse_bytes(before.encode())
    target = document.elements[0]
    given = pointer.format(self=target.self_hash)
    operation = dict(addressed(document, [{"kind": kind, "pointer": "document", **fields}])[0])
    operations = read_operations([{**operation, "pointer": given}])
    with pytest.raises(InvalidPointer) as caught:
        patch(document, operations)
    assert caught.value.details["reason"] == "hash_required"


@pytest.mark.parametrize(
    ("kind", "pointer", "fields"),
    [
        ("delete", "p1~{self}", {}),
        ("replace_element", "p1~{self}", {"markdown": "b"}),
        ("replace_text", "p1~{self}", {"find": "a", "replace": "b"}),
        ("insert_after", "p1~{self}", {"markdown": "b"}),
        ("delete", "p1~{self}~0123456789abcdef", {}),
    ],
)
def test_patch__self_hash_is_enough(kind: str, pointer: str, fields: dict[str, object]) -> None:
    """Operations that need the self hash alone take a pointer without the other, or with a stale one."""
    document = parse_bytes(b"a\n")
    given = pointer.format(self=document.elements[0].self_hash)
    assert patch(document, read_operations([{"kind": kind, "pointer": given, **fields}])).source != b"a\n"


def test_patch__subtree_that_changed() -> None:
    """Where both hashes are needed, another subtree hash is a conflict that shows the present pointer."""
    old = parse_bytes(b"# A\n\nx\n")
    new = parse_bytes(b"# A\n\nx changed\n")
    with pytest.raises(Conflict) as caught:
        patch(new, read_operations([{"kind": "delete_section", "pointer": old.elements[0].pointer}]))
    assert caught.value.details["reason"] == "subtree_changed"
    assert caught.value.details["currentPointer"] == new.elements[0].pointer


def test_patch__stale_pointer_shows_what_stands_there() -> None:
    """A changed target is a conflict with its present text; nothing stands at a missing one."""
    old = parse_bytes(b"a\n\nb\n")
    operations = [{"kind": "delete", "pointer": old.elements[1].pointer}]
    with pytest.raises(Conflict) as caught:
        patch(parse_bytes(b"a\n\nchanged\n"), read_operations(operations))
    assert caught.value.details["reason"] == "changed"
    assert caught.value.details["currentText"] == "changed"
    assert caught.value.details["operation"] == 0
    with pytest.raises(Conflict) as caught:
        patch(parse_bytes(b"a\n"), read_operations(operations))
    assert caught.value.details["reason"] == "missing"


TWINS = "x\n\nsame\n\ny\n\nsame\n"


def test_patch__twins_by_their_place() -> None:
    """In an unchanged document, twins are told apart by their addresses."""
    check(TWINS, [op("delete", "p2")], "x\n\ny\n\nsame\n")
    check(TWINS, [op("delete", "p4")], "x\n\nsame\n\ny\n")


@pytest.mark.parametrize(
    ("now", "expect_hash", "outcome"),
    [
        (TWINS, True, "x\n\ny\n\nsame\n"),
        ("changed\n\nsame\n\ny\n\nsame\n", False, "changed\n\ny\n\nsame\n"),
        ("changed\n\nsame\n\ny\n\nsame\n", True, None),
        ("changed\n\nsame\n\ny\n", True, "changed\n\ny\n"),
        ("new\n\nx\n\nsame\n\ny\n\nsame\n", False, None),
    ],
)
def test_patch__expected_source_hash(now: str, expect_hash: bool, outcome: str | None) -> None:
    """Another document with the hash of the first is no hindrance, unless the target has an equal twin."""
    first = parse_bytes(TWINS.encode())
    target = first.by_logical("p2")
    assert target is not None
    operations = read_operations([{"kind": "delete", "pointer": target.pointer}])
    expected = first.source_hash if expect_hash else None
    document = parse_bytes(now.encode())
    if outcome is not None:
        assert patch(document, operations, expected_source_hash=expected).source == outcome.encode()
        return
    with pytest.raises(Conflict) as caught:
        patch(document, operations, expected_source_hash=expected)
    assert caught.value.details["reason"] == "ambiguous"
    assert caught.value.details["candidates"]


def test_patch__text_that_is_not_there() -> None:
    """The closest line and the first difference are shown."""
    error = refused("alpha beta\ngamma\n", [op("replace_text", "p1", find="alpha bta", replace="x")], Conflict)
    assert error.details["reason"] == "text_not_found"
    assert error.details["closestLine"] == "alpha beta"
    assert error.details["line"] == 1
    assert "'eta'" in str(error.details["firstDifference"])


@pytest.mark.parametrize(("count", "found"), [(1, 2), (3, 2)])
def test_patch__text_that_is_there_more_or_less_often(count: int, found: int) -> None:
    """The number of occurrences must be the one given."""
    error = refused("x x\n", [op("replace_text", "p1", find="x", replace="y", count=count)], Conflict, str(found))
    assert error.details["reason"] == "text_count"
    assert error.details["found"] == found


def test_patch__a_short_call_makes_no_huge_text() -> None:
    """What all replacements would have together is bounded before it is made."""
    operation = op("replace_text", "p1", find="x", replace="y" * 40_000, count=10_000)
    refused("x" * 10_000 + "\n", [operation], TooLarge, "fewer places")


def test_patch__text_over_two_segments() -> None:
    """A match lies inside one own segment."""
    refused("- a\n  - b\n\n  c\n", [op("replace_text", "li1", find="a\n  c", replace="x")], Conflict)


MALFORMED: list[tuple[list[dict[str, object]], type[KnowledgeBaseError], str]] = [
    ([], InvalidArgument, "0 objects"),
    ([{"kind": "delete", "pointer": "p1"}] * 101, InvalidArgument, "101"),
    ([{"pointer": "p1"}], InvalidArgument, "kind"),
    ([{"kind": "remove", "pointer": "p1"}], InvalidArgument, "'remove'"),
    ([{"kind": "delete"}], InvalidArgument, "pointer"),
    ([{"kind": "delete", "pointer": "p0"}], InvalidPointer, "p0"),
    ([{"kind": "delete", "pointer": "p1", "markdown": "x"}], InvalidArgument, "'markdown'"),
    ([{"kind": "replace_element", "pointer": "p1"}], InvalidArgument, "markdown"),
    ([{"kind": "replace_text", "pointer": "p1", "find": "", "replace": "x"}], InvalidArgument, "empty find"),
    ([{"kind": "replace_text", "pointer": "p1", "find": "a", "replace": "x", "count": 0}], InvalidArgument, "count"),
    ([{"kind": "replace_text", "pointer": "p1", "find": "a", "replace": "x", "count": True}], InvalidArgument, "count"),
    ([{"kind": "move_after", "pointer": "p1"}], InvalidArgument, "target"),
    ([{"kind": "move_after", "pointer": "p1", "target": "p2", "section": "yes"}], InvalidArgument, "section"),
    ([{"kind": "delete", "pointer": "other.md::p1"}], InvalidArgument, "other.md"),
    ([{"kind": "replace_element", "pointer": "p1", "markdown": "a", "text": "b"}], InvalidArgument, "twice"),
]


@pytest.mark.parametrize(("items", "error", "word"), MALFORMED)
def test_read_operations__malformed(items: list[dict[str, object]], error: type[KnowledgeBaseError], word: str) -> None:
    """What no operation can be is refused with the operation's index and the field."""
    with pytest.raises(error) as caught:
        read_operations(items, path="note.md")
    assert word in caught.value.message


def test_patch__bare_address_of_nothing() -> None:
    """A bare pointer is never enough to edit by."""
    with pytest.raises((InvalidPointer, PointerNotFound)):
        patch(parse_bytes(b"a\n"), read_operations([{"kind": "delete", "pointer": "p9"}]))


def test_patch__lone_surrogates_are_refused() -> None:
    """Text that no file can hold is refused."""
    with pytest.raises(InvalidArgument):
        patched("a\n", op("replace_element", "p1", "\ud800"))
