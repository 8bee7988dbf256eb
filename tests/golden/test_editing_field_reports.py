"""Edits of the field reports' own input files: only the addressed bytes change, or nothing does."""

import pytest
from tests.support.patching import Operation, op, patched
from tests.support.shared_data import shared_root

from local_vector_search_mcp.editing.patcher import PatchOutcome
from local_vector_search_mcp.editing.table_actions import read_action
from local_vector_search_mcp.editing.table_edits import edit_table
from local_vector_search_mcp.errors import (
    Conflict,
    KnowledgeBaseError,
    StructureChanged,
    UnsupportedEdit,
    UnsupportedEncoding,
)
from local_vector_search_mcp.markdown.parser import parse_bytes


def read(name: str) -> bytes:
    """A field report's file."""
    return next((shared_root() / "cases" / "files").glob(f"{name}-*.md")).read_bytes()


def changed(before: bytes, old: bytes, new: bytes) -> bytes:
    """The bytes with the one occurrence of a text replaced."""
    assert before.count(old) == 1
    return before.replace(old, new)


EDITS = [
    ("f01", [op("replace_element", "1.p1", "new one\nnew two")], None),
    ("f02", [op("replace_element", "1.p2", "GAMMA")], (b"gamma", b"GAMMA")),
    ("f03", [op("replace_element", "1.p1", "new")], None),
    ("f06", [op("replace_element", "1", "# Other")], None),
    ("f10", [op("replace_element", "li1", "- kiwi")], (b"- pear", b"- kiwi")),
    ("f10", [op("insert_after", "li1", "- kiwi")], (b"- pear\n", b"- pear\n- kiwi\n")),
    ("f10", [op("delete", "li1")], (b"- pear\n\n\n", b"")),
    ("f11", [op("insert_after", "li1", "- z")], (b"- a\n", b"- a\n- z\n")),
    ("f12", [op("replace_element", "li2", "2. edited")], (b"2. B", b"2. edited")),
    ("f12", [op("delete", "li2")], (b"2. B\n", b"")),
    ("f13", [op("replace_element", "li1", "- PARENT")], (b"- parent", b"- PARENT")),
    ("f14", [op("replace_element", "li2", "- green")], (b"-\n", b"- green\n")),
    ("f31", [op("replace_element", "q1", "> [!tip] Other\n> text")], None),
    ("f32", [op("replace_element", "li1", "- OUTER")], (b"- outer", b"- OUTER")),
]


@pytest.mark.parametrize(
    ("name", "operations", "difference"), EDITS, ids=[f"{case[0]}-{number}" for number, case in enumerate(EDITS)]
)
def test_field_report__only_the_target_changes(
    name: str, operations: list[Operation], difference: tuple[bytes, bytes] | None
) -> None:
    """What stands around the target is the same byte for byte."""
    before = read(name)
    outcome = patched(before, *operations)
    if difference is not None:
        assert outcome.source == changed(before, *difference)
    for edit in outcome.edits:
        assert before[: edit.range.start] == outcome.source[: edit.range.start]
    assert outcome.edits.inverse(before).apply(outcome.source) == before


def kinds(outcome: PatchOutcome) -> list[str]:
    """The kinds of a result's elements."""
    return [element.kind.value for element in outcome.document.elements]


def test_fr002__a_rule_makes_no_heading_of_the_paragraph() -> None:
    """The paragraph stays one, and a new heading stands below the rule."""
    outcome = patched(read("f09"), op("insert_after", "1.1.p1", "---\n\n## Two"))
    assert kinds(outcome)[-3:] == ["paragraph", "rule", "heading"]


REFUSED = [
    ("f09", op("replace_element", "1.1.p1", "Bread\n---"), "fragment"),
    ("f11", op("replace_element", "li1", "- a\n<!-- y -->"), "fragment"),
    ("f11", op("replace_element", "li1", "- a\n\n<!-- y -->"), "fragment"),
    ("f12", op("replace_element", "li2", "2) edited"), "fragment"),
    ("f13", op("delete", "li1.li1"), "neighbour"),
    ("f31", op("replace_element", "q1", "> one\n\n> two"), "fragment"),
]


@pytest.mark.parametrize(("name", "operation", "reason"), REFUSED)
def test_field_report__other_structures_are_refused(name: str, operation: Operation, reason: str) -> None:
    """What would become, split or join another element is not written."""
    with pytest.raises(StructureChanged) as caught:
        patched(read(name), operation)
    assert caught.value.details["reason"] == reason


@pytest.mark.parametrize("text", ["## Testing\n\nnew", "## Testing\nnew", "\n\n## Testing\n\nnew\n\n"])
def test_fr003__a_heading_in_the_text_is_not_doubled(text: str) -> None:
    """A replaced section has the heading of the text alone, and what stands below it stays."""
    outcome = patched(b"# T\n\n## Testing\n\nrun it\n\n## Other\n\nx\n", op("replace_section", "1.1", text))
    assert outcome.source == f"# T\n\n{text.strip()}\n\n## Other\n\nx\n".encode()


def test_fr009__equal_twins_are_never_guessed() -> None:
    """Twins that have moved are told apart by nothing; unmoved ones by their place."""
    before = read("f07")
    document = parse_bytes(before)
    second = document.headings[2]
    outcome = patched(before, op("delete", second.pointer))
    assert outcome.source != before
    with pytest.raises(Conflict) as caught:
        patched(
            before.replace(b"## Day", b"inserted\n\n## Top\n\n## Day", 1), op("delete", document.headings[1].pointer)
        )
    assert caught.value.details["reason"] == "ambiguous"
    assert len(caught.value.details["candidates"]) == 2


@pytest.mark.parametrize(("name", "pointer"), [("f15", "t1"), ("f16", "t1")])
def test_fr017__tables_with_extra_cells_are_read_only(name: str, pointer: str) -> None:
    """A row with a cell beyond the columns makes the table read-only for table edits."""
    document = parse_bytes(read(name))
    table = document.by_logical(pointer)
    assert table is not None
    with pytest.raises(UnsupportedEdit):
        edit_table(document, table, read_action("delete_row", {"rowIndex": 0}))


def test_fr020__rows_keep_their_own_style() -> None:
    """One row is edited, the others keep their pipes, and the last line stays without an ending."""
    before = read("f17")
    document = parse_bytes(before)
    update = {"where": {"column": "fruit", "equals": "kiwi"}, "column": "count", "value": 8}
    after = edit_table(document, document.elements[0], read_action("update_cells", {"updates": [update]}))
    assert after == changed(before, b"|kiwi|7|", b"|kiwi|8|")


def test_fr023__empty_cells_count() -> None:
    """A lookup can match the empty string, and columns do not shift."""
    before = read("f19")
    document = parse_bytes(before)
    update = {"where": {"column": "", "equals": ""}, "column": "z", "value": "N"}
    after = edit_table(document, document.elements[0], read_action("update_cells", {"updates": [update]}))
    assert after + b"\n" == changed(before, b"|m||n|", b"|m||N|")


def test_fr028__nothing_goes_before_front_matter() -> None:
    """The block stays at the first byte."""
    before = read("f20")
    outcome = patched(before, op("insert_before", "document", "new"))
    assert kinds(outcome)[:2] == ["frontmatter", "paragraph"]
    assert outcome.source.startswith(before[: before.index(b"---\n\n# Doc") + 3])


def test_fr031__supplied_lines_take_the_ending_in_use() -> None:
    """A CRLF document has no other endings afterwards."""
    outcome = patched(read("f01"), op("insert_after", "document", "one\ntwo"))
    assert outcome.source.count(b"\n") == outcome.source.count(b"\r\n")


def test_fr032__what_is_not_utf8_is_refused() -> None:
    """The bytes are never written again."""
    with pytest.raises(UnsupportedEncoding):
        patched(read("f04"), op("insert_after", "document", "x"))


def test_fr035__a_line_end_is_added_between() -> None:
    """Texts do not join, and the document's last line stays without an ending."""
    before = read("f27")
    outcome = patched(before, op("insert_after", "document", "more"))
    assert outcome.source == before + b"\n\nmore"


@pytest.mark.parametrize("name", ["f25", "f26"])
def test_fr038__definitions_and_footnotes_are_kept(name: str) -> None:
    """No edit of another element drops or moves what has no token in the parser."""
    before = read(name)
    document = parse_bytes(before)
    for element in document.elements:
        try:
            outcome = patched(before, op("delete", element.pointer))
        except KnowledgeBaseError:
            continue
        left = [(other.kind, other.own_bytes) for other in document.elements if other is not element]
        assert [(other.kind, other.own_bytes) for other in outcome.document.elements] == left
