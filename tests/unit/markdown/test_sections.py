"""The outline and what sections hold."""

import pytest

from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.sections import OutlineNode, outline, section_elements

DOCUMENT = parse_bytes(b"intro\n\n# A\n\n### B\n\n- x\n  - y\n\n## C\n\ntext\n\n#### D\n\n# E\n\n\n")


def shape(nodes: tuple[OutlineNode, ...]) -> list[object]:
    """Addresses with those of the children."""
    return [(node.element.logical, shape(node.children)) if node.children else node.element.logical for node in nodes]


def test_outline__is_the_tree_of_headings() -> None:
    """Children stand under their parents, in order."""
    assert shape(outline(DOCUMENT)) == [("1", ["1.1", ("1.2", ["1.2.1"])]), "2"]
    assert outline(parse_bytes(b"text\n")) == ()


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(1, ["1", "2"]), (2, [("1", ["1.1", "1.2"]), "2"]), (6, [("1", ["1.1", ("1.2", ["1.2.1"])]), "2"])],
)
def test_outline__stops_at_a_depth_of_the_tree(depth: int, expected: list[object]) -> None:
    """Depth counts levels of the tree, not of the headings."""
    assert shape(outline(DOCUMENT, max_depth=depth)) == expected


def test_outline__from_one_heading() -> None:
    """That heading is the top, and depth counts from it."""
    assert shape(outline(DOCUMENT, DOCUMENT.by_logical("1.2"))) == [("1.2", ["1.2.1"])]
    assert shape(outline(DOCUMENT, DOCUMENT.by_logical("1.2"), max_depth=1)) == ["1.2"]
    assert shape(outline(DOCUMENT, DOCUMENT.by_logical("2"))) == ["2"]


def test_outline__sizes_and_counts() -> None:
    """Bytes of the section range; elements with nested items and deeper sections, the heading included."""
    first, second = outline(DOCUMENT)
    b, c = first.children
    assert (first.bytes, first.elements) == (DOCUMENT.headings[0].subtree_range.length, 7)
    assert (b.bytes, b.elements) == (len("### B\n\n- x\n  - y"), 3)
    assert (c.elements, second.elements, second.bytes) == (3, 1, 3)


def test_section_elements__in_order() -> None:
    """The heading first, everything deeper included."""
    heading = DOCUMENT.by_logical("1.2")
    assert heading is not None
    assert [element.logical for element in section_elements(DOCUMENT, heading)] == ["1.2", "1.2.p1", "1.2.1"]
    with pytest.raises(ValueError, match="p1 is no heading"):
        section_elements(DOCUMENT, DOCUMENT.elements[0])
