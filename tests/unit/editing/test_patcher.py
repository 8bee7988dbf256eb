"""The patcher: what every operation makes of a document, byte for byte."""

import pytest
from tests.support.patching import Operation, check, op, patched

PARENT = "- parent\n  - child\n\n  tail\n- sibling\n"

REPLACEMENTS = [
    pytest.param(
        "# A\n\nold\n\nnext\n", [op("replace_element", "1.p1", "new")], "# A\n\nnew\n\nnext\n", id="paragraph"
    ),
    pytest.param("old\n", [op("replace", "p1", "new\n")], "new\n", id="alias-and-one-ending-dropped"),
    pytest.param("old", [op("replace_element", "p1", "\n\nnew\n\n \n")], "new", id="blank-ends-dropped"),
    pytest.param("old\n", [op("replace_element", "p1", "\ufeffnew")], "new\n", id="leading-bom-dropped"),
    pytest.param("a\n\nb\n", [op("replace_element", "p2", "> q")], "a\n\n> q\n", id="kind-changes"),
    pytest.param("a\n\nb\n", [op("replace_element", "p1", "- x")], "- x\n\nb\n", id="paragraph-becomes-item"),
    pytest.param("# A\n\nbody\n", [op("replace_element", "1", "# B")], "# B\n\nbody\n", id="heading-keeps-body"),
    pytest.param("A\n===\n\nbody\n", [op("replace_element", "1", "# B")], "# B\n\nbody\n", id="setext-to-atx"),
    pytest.param("# A\nbody\n", [op("replace_element", "1", "B\n=")], "B\n=\nbody\n", id="atx-to-setext"),
    pytest.param(
        "---\na: 1\n---\n\nx\n",
        [op("replace_element", "frontmatter", "---\nb: 2\n---\n")],
        "---\nb: 2\n---\n\nx\n",
        id="front-matter",
    ),
    pytest.param("- a\n- b\n- c\n", [op("replace_element", "li2", "- B")], "- a\n- B\n- c\n", id="item"),
    pytest.param("1. a\n2. b\n", [op("replace_element", "li2", "7. B")], "1. a\n7. B\n", id="number-as-written"),
    pytest.param(
        "- a\n  - b\n",
        [op("replace_element", "li1.li1", "  - B\n    more")],
        "- a\n  - B\n    more\n",
        id="nested-item",
    ),
    pytest.param("-\n- b\n", [op("replace_element", "li1", "- now")], "- now\n- b\n", id="empty-item"),
    pytest.param(
        PARENT,
        [op("replace_element", "li1", "- PARENT")],
        PARENT.replace("parent", "PARENT"),
        id="item-keeps-child-and-tail",
    ),
    pytest.param(PARENT, [op("replace_element", "li1", "- parent\n  tail")], PARENT, id="item-by-its-whole-own-text"),
    pytest.param(
        PARENT, [op("replace_subtree", "li1", "- p\n  - q\n  - r")], "- p\n  - q\n  - r\n- sibling\n", id="subtree"
    ),
    pytest.param(
        "- - a\n  - b\n",
        [op("replace_subtree", "li1.li1", "- z\n    more")],
        "- - z\n    more\n  - b\n",
        id="inner-item-of-a-shared-line",
    ),
    pytest.param(
        "- - a\n", [op("replace_subtree", "li1", "- x\n  - y")], "- x\n  - y\n", id="outer-item-of-a-shared-line"
    ),
    pytest.param(
        "# A\n\n## B\n\nb\n\n### C\n\n## D\n",
        [op("replace_section", "1.1", "## B2\n\n#### deep\n\nx\n")],
        "# A\n\n## B2\n\n#### deep\n\nx\n\n## D\n",
        id="section",
    ),
    pytest.param(
        "## T\n\nold\n",
        [op("replace_section", "1", "## T\n\nnew")],
        "## T\n\nnew\n",
        id="section-starts-with-its-heading",
    ),
    pytest.param(
        "see [a]\n\n[a]: /x\n",
        [op("replace_element", "ref1", "[a]: /y")],
        "see [a]\n\n[a]: /y\n",
        id="definition-leads-elsewhere",
    ),
    pytest.param(
        "# A\nbody\n", [op("replace_element", "1.p1", "<div>\nx\n</div>")], "# A\n<div>\nx\n</div>\n", id="html"
    ),
    pytest.param(
        "***\npara\n",
        [op("replace_element", "hr1", "<div>\nx\n</div>")],
        "<div>\nx\n</div>\n\npara\n",
        id="blank-line-added-where-wanted",
    ),
    pytest.param(
        "text\n```\ncode\n```\n",
        [op("replace_element", "code1", "more")],
        "text\n\nmore\n",
        id="blank-line-added-before",
    ),
    pytest.param(
        "- a\n\n- b\n", [op("replace_element", "li1", "- x\n\n")], "- x\n\n\n- b\n", id="items-keep-blank-ends"
    ),
]

TEXTS = [
    pytest.param("a b c\n", [op("replace_text", "p1", find="b", replace="B")], "a B c\n", id="once"),
    pytest.param("x x x\n", [op("replace_text", "p1", find="x", replace="yy", count=3)], "yy yy yy\n", id="counted"),
    pytest.param("aaaa\n", [op("replace_text", "p1", find="aa", replace="b", count=2)], "bb\n", id="no-overlap"),
    pytest.param(
        "a\r\nb\r\n", [op("replace_text", "p1", find="a\nb", replace="c\nd")], "c\r\nd\r\n", id="any-line-ending"
    ),
    pytest.param(
        "# Old title\n\nx\n", [op("replace_text", "1", find="Old", replace="New")], "# New title\n\nx\n", id="heading"
    ),
    pytest.param(
        "```py\nx = 1\n```\n", [op("replace_text", "code1", find="1", replace="2")], "```py\nx = 2\n```\n", id="code"
    ),
    pytest.param(
        PARENT,
        [op("replace_text", "li1", find="tail", replace="end")],
        PARENT.replace("tail", "end"),
        id="later-segment",
    ),
    pytest.param("- - a\n", [op("replace_text", "li1.li1", find="a", replace="b")], "- - b\n", id="inner-item"),
    pytest.param(
        "---\na: [\n---\n\nx\n",
        [op("replace_text", "frontmatter", find="a: [", replace="a: 1")],
        "---\na: 1\n---\n\nx\n",
        id="broken-front-matter",
    ),
    pytest.param("a\nb\n\nc\n", [op("replace_text", "p1", find="\nb", replace="")], "a\n\nc\n", id="shorter"),
    pytest.param(
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        [op("replace_text", "t1", find="1", replace="3")],
        "| a | b |\n|---|---|\n| 3 | 2 |\n",
        id="table",
    ),
    pytest.param(
        "a\n",
        [op("replace_text", "p1", find="a", replace="\\1 $& \\g<0>")],
        "\\1 $& \\g<0>\n",
        id="replacement-is-literal",
    ),
]

DELETIONS = [
    pytest.param("a\n\nb\n\nc\n", [op("delete", "p2")], "a\n\nc\n", id="middle"),
    pytest.param("a\n\nb\n", [op("delete", "p1")], "b\n", id="first"),
    pytest.param("\n\na\n\nb\n", [op("delete", "p1")], "\n\nb\n", id="first-after-blank-lines"),
    pytest.param("a\n\n\nb\n", [op("delete", "p2")], "a\n", id="last"),
    pytest.param("a\n\nb", [op("delete", "p2")], "a", id="last-without-ending"),
    pytest.param("a\n\nb\n\n\n", [op("delete", "p2")], "a\n\n\n", id="last-keeps-the-tail"),
    pytest.param("a\n", [op("delete", "p1")], "", id="only"),
    pytest.param("a\n\n\nb\n\nc\n", [op("delete", "p2")], "a\n\n\nc\n", id="shorter-gap-after"),
    pytest.param("a\n\nb\n\n\nc\n", [op("delete", "p2")], "a\n\n\nc\n", id="shorter-gap-before"),
    pytest.param("# A\nx\n***\ny\n", [op("delete", "1.hr1")], "# A\nx\n\ny\n", id="blank-line-added-where-wanted"),
    pytest.param("# A\nx\n\n***\n\ny\n", [op("delete", "1.hr1")], "# A\nx\n\ny\n", id="no-blank-line-to-spare"),
    pytest.param("- a\n- b\n- c\n", [op("delete", "li2")], "- a\n- c\n", id="item"),
    pytest.param("- a\n  - b\n    - c\n- d\n", [op("delete", "li1.li1")], "- a\n- d\n", id="item-with-its-subtree"),
    pytest.param("1. a\n2. b\n3. c\n", [op("delete", "li2")], "1. a\n3. c\n", id="numbers-stay"),
    pytest.param("- - a\n  - b\n", [op("delete", "li1.li1")], "-\n  - b\n", id="inner-item-of-a-shared-line"),
    pytest.param("- a\n\n\nplum\n", [op("delete", "li1")], "plum\n", id="list-before-blank-lines"),
    pytest.param("# A\n\nx\n\n## B\n\ny\n\n# C\n", [op("delete_section", "1")], "# C\n", id="section"),
    pytest.param(
        "# A\n\nx\n\n## B\n\ny\n\n# C\n", [op("delete_section", "1.1")], "# A\n\nx\n\n# C\n", id="inner-section"
    ),
    pytest.param("---\na: 1\n---\n\n# A\n", [op("delete", "frontmatter")], "# A\n", id="front-matter"),
    pytest.param("---\na: [\n---\n# A\n", [op("delete", "frontmatter")], "# A\n", id="broken-front-matter"),
    pytest.param("a\r\n\r\nb\r\n\nc\n", [op("delete", "p2")], "a\r\n\r\nc\n", id="mixed-endings"),
    pytest.param("\ufeffa\n\nb\n", [op("delete", "p1")], "\ufeffb\n", id="bom-stays"),
    pytest.param("a\n\nb\n\n\nc\n\nd\n", [op("delete", "p2"), op("delete", "p3")], "a\n\n\nd\n", id="neighbours"),
    pytest.param("a\n\nb\n\nc\n", [op("delete", "p1"), op("delete", "p2"), op("delete", "p3")], "", id="all"),
]

INSERTIONS = [
    pytest.param("a\n\nb\n", [op("insert_after", "p1", "x")], "a\n\nx\n\nb\n", id="after"),
    pytest.param("a\n\nb\n", [op("insert_before", "p2", "x")], "a\n\nx\n\nb\n", id="before"),
    pytest.param("a\n\n\nb\n", [op("insert_after", "p1", "x")], "a\n\nx\n\n\nb\n", id="after-keeps-the-other-gap"),
    pytest.param("a\n\n\nb\n", [op("insert_before", "p2", "x")], "a\n\n\nx\n\nb\n", id="before-keeps-the-other-gap"),
    pytest.param("# A\nb\n", [op("insert_after", "1", "x")], "# A\n\nx\n\nb\n", id="under-a-heading-without-gap"),
    pytest.param("a", [op("insert_after", "p1", "x")], "a\n\nx", id="no-final-ending"),
    pytest.param("a\n\n\n", [op("insert_after", "p1", "x")], "a\n\nx\n\n\n", id="last-keeps-the-tail"),
    pytest.param("a\n", [op("insert_before", "p1", "x\n\ny\n")], "x\n\ny\n\na\n", id="several-elements"),
    pytest.param("\n\na\n", [op("insert_before", "p1", "x")], "\n\nx\n\na\n", id="before-the-first-keeps-blank-lines"),
    pytest.param("", [op("insert_after", "document", "x\n")], "x", id="empty-document"),
    pytest.param("\n", [op("insert_before", "document", "x")], "x\n\n", id="blank-document"),
    pytest.param("\ufeff", [op("insert_before", "document", "x")], "\ufeffx", id="bom-alone"),
    pytest.param("a\n", [op("insert_before", "document", "x")], "x\n\na\n", id="document-start"),
    pytest.param("a\n", [op("insert_after", "document", "x")], "a\n\nx\n", id="document-end"),
    pytest.param(
        "---\nt: 1\n---\n\na\n",
        [op("insert_before", "document", "x")],
        "---\nt: 1\n---\n\nx\n\na\n",
        id="start-is-after-front-matter",
    ),
    pytest.param(
        "---\nt: 1\n---\n",
        [op("insert_before", "document", "x")],
        "---\nt: 1\n---\n\nx\n",
        id="start-of-front-matter-alone",
    ),
    pytest.param(
        "---\nt: 1\n---\na\n",
        [op("insert_after", "frontmatter", "x")],
        "---\nt: 1\n---\n\nx\n\na\n",
        id="after-front-matter",
    ),
    pytest.param("p\n", [op("insert_after", "p1", "---\n\n## Two")], "p\n\n---\n\n## Two\n", id="rule-is-no-underline"),
    pytest.param("- a\n- b\n", [op("insert_after", "li1", "- x")], "- a\n- x\n- b\n", id="item-after"),
    pytest.param("- a\n- b\n", [op("insert_before", "li1", "- x")], "- x\n- a\n- b\n", id="item-before"),
    pytest.param(
        "- a\n  - n\n- b\n",
        [op("insert_after", "li1", "- x\n  - y")],
        "- a\n  - n\n- x\n  - y\n- b\n",
        id="after-all-that-is-nested",
    ),
    pytest.param(
        "- a\n  - n\n- b\n", [op("insert_before", "li1.li1", "  - m")], "- a\n  - m\n  - n\n- b\n", id="nested-item"
    ),
    pytest.param(
        "- pear\n\n\nplum\n",
        [op("insert_after", "li1", "- fig")],
        "- pear\n- fig\n\n\nplum\n",
        id="item-before-blank-lines",
    ),
    pytest.param("- a", [op("insert_after", "li1", "- b")], "- a\n- b", id="item-without-final-ending"),
    pytest.param("# A\n\n- a\n", [op("append_to_section", "1", "- b")], "# A\n\n- a\n- b\n", id="appended-item-joins"),
    pytest.param(
        "# A\n\n- a\n", [op("append_to_section", "1", "* b")], "# A\n\n- a\n\n* b\n", id="another-marker-does-not-join"
    ),
    pytest.param(
        "p\n\n- b\n", [op("insert_after", "p1", "- a")], "p\n\n- a\n- b\n", id="inserted-item-joins-what-follows"
    ),
    pytest.param(
        "- a\n\np\n", [op("insert_before", "p1", "- b")], "- a\n- b\n\np\n", id="inserted-item-joins-what-precedes"
    ),
    pytest.param(
        "# A\n\nx\n\n## B\n\ny\n",
        [op("append_to_section", "1", "new")],
        "# A\n\nx\n\nnew\n\n## B\n\ny\n",
        id="append-before-subsections",
    ),
    pytest.param(
        "# A\n\nx\n\n## B\n\ny\n",
        [op("append_to_section", "1", "new", afterSubsections=True)],
        "# A\n\nx\n\n## B\n\ny\n\nnew\n",
        id="append-after-subsections",
    ),
    pytest.param(
        "# A\n## B\n", [op("append_to_section", "1", "x")], "# A\n\nx\n\n## B\n", id="append-to-an-empty-section"
    ),
    pytest.param("a\r\n\r\nb\n", [op("insert_after", "p1", "x\ny")], "a\r\n\r\nx\r\ny\r\n\r\nb\n", id="crlf"),
    pytest.param("a\r\rb\r", [op("insert_after", "p1", "x\ny")], "a\r\rx\ry\r\rb\r", id="lone-cr"),
    pytest.param(
        "a\n\nb\n",
        [op("insert_after", "p1", "one"), op("insert_after", "p1", "two")],
        "a\n\none\n\ntwo\n\nb\n",
        id="one-place-in-order",
    ),
    pytest.param(
        "a\n\nb\n",
        [op("insert_before", "p2", "one"), op("insert_before", "p2", "two")],
        "a\n\none\n\ntwo\n\nb\n",
        id="before-in-order",
    ),
    pytest.param(
        "a\n\nb\n",
        [op("insert_before", "p2", "two"), op("insert_after", "p1", "one")],
        "a\n\none\n\ntwo\n\nb\n",
        id="each-beside-its-element",
    ),
    pytest.param(
        "a\n\nb\n\nc\n",
        [op("delete", "p2"), op("insert_after", "p2", "x")],
        "a\n\nx\n\nc\n",
        id="beside-a-deleted-element",
    ),
    pytest.param(
        "a\n\nb\n",
        [op("replace_element", "p1", "A"), op("insert_after", "p1", "x")],
        "A\n\nx\n\nb\n",
        id="beside-a-replaced-element",
    ),
    pytest.param(
        "- a\n- b\n", [op("delete", "li1"), op("insert_before", "li1", "- x")], "- x\n- b\n", id="beside-a-deleted-item"
    ),
    pytest.param(
        "- a\n  - b\n",
        [op("insert_after", "li1", "- d"), op("insert_after", "li1.li1", "  - c")],
        "- a\n  - b\n  - c\n- d\n",
        id="inner-siblings-first",
    ),
]

MOVES = [
    pytest.param("a\n\nb\n\nc\n", [op("move_after", "p1", target="p3")], "b\n\nc\n\na\n", id="paragraph-down"),
    pytest.param("a\n\nb\n\nc\n", [op("move_before", "p3", target="p1")], "c\n\na\n\nb\n", id="paragraph-up"),
    pytest.param("a\n\nb", [op("move_before", "p2", target="p1")], "b\n\na", id="the-last-ending-stays"),
    pytest.param(
        "- a\n  - n\n- b\n", [op("move_after", "li1", target="li2")], "- b\n- a\n  - n\n", id="item-with-its-subtree"
    ),
    pytest.param(
        "- a\n  - n\n- b\n  - m\n",
        [op("move_before", "li1.li1", target="li2.li1")],
        "- a\n- b\n  - n\n  - m\n",
        id="nested-item-to-another-parent",
    ),
    pytest.param(
        "# A\n\na\n\n# B\n\nb\n",
        [op("move_before", "2", target="1", section=True)],
        "# B\n\nb\n\n# A\n\na\n",
        id="section-up",
    ),
    pytest.param(
        "# A\n\na\n\n# B\n\nb\n",
        [op("move_after", "1", target="2", section=True)],
        "# B\n\nb\n\n# A\n\na\n",
        id="section-after-a-section",
    ),
    pytest.param(
        "# A\n\na\n\n# B\n\nb\n",
        [op("move_after", "1", target="2.p1", section=True)],
        "# B\n\nb\n\n# A\n\na\n",
        id="section-after-an-element",
    ),
    pytest.param(
        "# A\n\na\n\n# B\n\nb\n",
        [op("move_after", "1.p1", target="2")],
        "# A\n\n# B\n\na\n\nb\n",
        id="element-under-a-heading",
    ),
    pytest.param("a  \n\tb\n\nc\n", [op("move_after", "p1", target="p2")], "c\n\na  \n\tb\n", id="exact-bytes"),
]


@pytest.mark.parametrize(("before", "operations", "after"), REPLACEMENTS)
def test_patch__replacements(before: str, operations: list[Operation], after: str) -> None:
    """Only the target's bytes are replaced."""
    check(before, operations, after)


@pytest.mark.parametrize(("before", "operations", "after"), TEXTS)
def test_patch__texts(before: str, operations: list[Operation], after: str) -> None:
    """A literal text is replaced inside one element's own bytes."""
    check(before, operations, after)


@pytest.mark.parametrize(("before", "operations", "after"), DELETIONS)
def test_patch__deletions(before: str, operations: list[Operation], after: str) -> None:
    """The element's lines go, and the shorter of the gaps beside it."""
    outcome = check(before, operations, after)
    assert all(operation.pointers == () for operation in outcome.operations)


@pytest.mark.parametrize(("before", "operations", "after"), INSERTIONS)
def test_patch__insertions(before: str, operations: list[Operation], after: str) -> None:
    """Insertions are set off by blank lines, keep the gap that was there, and join lists."""
    check(before, operations, after)


@pytest.mark.parametrize(("before", "operations", "after"), MOVES)
def test_patch__moves(before: str, operations: list[Operation], after: str) -> None:
    """What moves keeps its bytes and leaves one gap behind."""
    check(before, operations, after)


ANSWERS: list[tuple[str, list[Operation], list[list[str]], list[list[str]]]] = [
    (
        "# A\n\n## B\n\nold\n",
        [op("replace_element", "1.1.p1", "new")],
        [["1.1.p1"]],
        [["1", "1.1"]],
    ),
    ("- a\n  - b\n", [op("replace_element", "li1.li1", "  - c")], [["li1.li1"]], [["li1"]]),
    (
        "# A\n\nx\n\n## B\n",
        [op("insert_after", "1.p1", "- y\n  - z\n\n## N")],
        [["1.li1", "1.li1.li1", "1.1"]],
        [["1"]],
    ),
    ("# A\n\nx\n\n# B\n\ny\n", [op("delete", "1.p1")], [[]], [["1"]]),
    ("# A\n\n## B\n\nx\n\n## C\n\ny\n", [op("delete", "1.2")], [[]], [["1", "1.1"]]),
    ("# A\n\nx\n\n# B\n\ny\n", [op("move_after", "1.p1", target="2.p1")], [["2.p2"]], [["1", "2"]]),
    ("# A\n\nx\n", [op("replace_section", "1", "# A\n\ny\n\n## S")], [["1", "1.p1", "1.1"]], [[]]),
]


@pytest.mark.parametrize(("before", "operations", "pointers", "enclosing"), ANSWERS)
def test_patch__answers(
    before: str, operations: list[Operation], pointers: list[list[str]], enclosing: list[list[str]]
) -> None:
    """The answer has the pointers of what stands there, and of what encloses it."""
    outcome = patched(before, *operations)
    assert [[pointer.split("~")[0] for pointer in each.pointers] for each in outcome.operations] == pointers
    assert [[pointer.split("~")[0] for pointer in each.enclosing] for each in outcome.operations] == enclosing


RESECTIONED = [
    ("# A\n\nx\n", [op("replace_element", "1.p1", "y")], 0),
    ("# A\n\n## B\n\nx\n\ny\n", [op("delete", "1.1")], 2),
    ("# A\n\nx\n\ny\n", [op("insert_after", "1.p1", "## N")], 1),
    ("# A\n\n## B\n\nx\n", [op("delete", "1")], 2),
    ("# A\n\nx\n\n## B\n\ny\n", [op("insert_after", "1.p1", "z")], 0),
    ("# A\n\n## B\n\nx\n\n# C\n\ny\n", [op("move_before", "2", target="1", section=True)], 0),
    ("# A\n\nx\n", [op("replace_element", "1", "# Z")], 0),
]


@pytest.mark.parametrize(("before", "operations", "count"), RESECTIONED)
def test_patch__resectioned(before: str, operations: list[Operation], count: int) -> None:
    """Elements that come under other headings are counted, and only those."""
    assert patched(before, *operations).resectioned == count


def test_patch__relocated_element_is_found() -> None:
    """A pointer whose element has moved is followed, and the answer says from where."""
    old = "a\n\ntarget\n"
    pointer = str(patched(old, op("replace_element", "p2", "target")).operations[0].pointers[0])
    outcome = check("new\n\na\n\ntarget\n", [op("replace_element", pointer, "done")], "new\n\na\n\ndone\n")
    assert outcome.operations[0].relocated_from == "p2"


def test_patch__deletion_that_joins_bullet_lists_says_so() -> None:
    """Two bullet lists that a deletion joins are named in a warning."""
    outcome = check("- a\n\npara\n\n- b\n", [op("delete", "p1")], "- a\n\n- b\n")
    assert "joined two bullet lists" in outcome.warnings[0]


def test_patch__deletion_of_a_used_definition_says_so() -> None:
    """A definition that others use may go; the answer names one that used it."""
    outcome = check("see [x]\n\n[x]: /u\n", [op("delete", "ref1")], "see [x]\n")
    assert "[x]" in outcome.warnings[0]
    assert "p1" in outcome.warnings[0]
