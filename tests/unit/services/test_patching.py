"""kb_patch, kb_edit_table and kb_edit_frontmatter on files: results, conflicts, dry runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.writing import Writing

from local_vector_search_mcp.errors import (
    Conflict,
    InvalidArgument,
    InvalidPath,
    InvalidPointer,
    KnowledgeBaseError,
    NotFound,
    TooLarge,
    UnsupportedEdit,
    UnsupportedEncoding,
    UnsupportedFormat,
)
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.listing import SelectionRules

NOTE = "# A\n\nold\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    root = tmp_path / "root"
    root.mkdir()
    place = Writing(root, tmp_path / "history.db", rules=SelectionRules(max_file_bytes=10_000))
    place.write("note.md", NOTE)
    yield place
    place.close()


def replace_old(writing: Writing, markdown: str = "new") -> list[dict[str, object]]:
    return [{"kind": "replace_element", "pointer": writing.pointer("note.md", "1.p1"), "markdown": markdown}]


def test_patch__writes_and_answers(writing: Writing) -> None:
    """The file has the new bytes; the answer has its hashes, a change id and good pointers."""
    before = writing.source_hash("note.md")
    result = writing.patching.patch(path="note.md", operations=replace_old(writing))
    assert writing.text("note.md") == NOTE.replace("old", "new")
    assert result.applied
    assert result.path == "note.md"
    assert result.previous_source_hash == before
    assert result.source_hash == writing.source_hash("note.md")
    assert result.index_synchronized is True
    assert result.change_id == writing.undo.history().changes[0].change_id
    assert result.operations[0].pointers == (writing.pointer("note.md", "1.p1"),)
    assert result.operations[0].enclosing == (writing.pointer("note.md", "1"),)
    assert (result.diffs, result.plan_hash) == ((), None)
    assert writing.indexer.told == [RelPath("note.md")]


@pytest.mark.parametrize("name", ["Waiting", "## waiting ", "Board/Waiting", "note.md::Waiting", "waiting #home~0~0"])
def test_patch__a_heading_named_by_its_text(writing: Writing, name: str) -> None:
    """Nothing is written, and the refusal shows the real heading with its pointer."""
    text = "# Board\n\n## Waiting #home #soon\n\n- water the ferns\n\n## Done\n"
    writing.write("note.md", text)
    pointer = writing.pointer("note.md", "1.1")
    operation: dict[str, object] = {"kind": "append_to_section", "pointer": name, "markdown": "- new"}
    with pytest.raises(InvalidPointer) as caught:
        writing.patching.patch(path="note.md", operations=[operation])
    assert caught.value.details == {"operation": 0, "candidates": [pointer]}
    assert f"'Waiting #home #soon' is {pointer}" in caught.value.message
    with pytest.raises(InvalidPointer) as caught:
        writing.patching.patch(path="note.md", operations=[{**operation, "pointer": "Absent"}])
    assert "candidates" not in caught.value.details
    assert writing.text("note.md") == text


def test_patch__edits_chain(writing: Writing) -> None:
    """The pointers of an answer are good for the next call without reading again."""
    pointer = writing.pointer("note.md", "1.p1")
    for text in ("one", "two", "three"):
        operation = {"kind": "replace_element", "pointer": pointer, "markdown": text}
        pointer = writing.patching.patch(path="note.md", operations=[operation]).operations[0].pointers[0]
    assert writing.text("note.md") == NOTE.replace("old", "three")


def test_patch__full_pointers_bring_the_path(writing: Writing) -> None:
    """A full pointer works without a path; one that contradicts the path is refused."""
    operation = {"kind": "delete", "pointer": f"note.md::{writing.pointer('note.md', '1.p1')}"}
    with pytest.raises(InvalidArgument, match=r"other\.md"):
        writing.patching.patch(path="other.md", operations=[operation])
    assert writing.patching.patch(operations=[operation]).path == "note.md"
    with pytest.raises(InvalidArgument, match="needs the path"):
        writing.patching.patch(operations=[{"kind": "delete", "pointer": "p1"}])


def test_patch__dry_run_then_the_same_plan(writing: Writing) -> None:
    """A dry run writes nothing and shows the diff; its plan hash lets exactly that plan through."""
    operations = replace_old(writing)
    dry = writing.patching.patch(path="note.md", operations=operations, dry_run=True)
    assert (dry.applied, dry.change_id, dry.index_synchronized) == (False, None, False)
    assert writing.text("note.md") == NOTE
    assert dry.diffs[0].path == "note.md"
    assert "-old\n+new\n" in dry.diffs[0].diff
    with pytest.raises(Conflict) as caught:
        writing.patching.patch(path="note.md", operations=replace_old(writing, "else"), plan_hash=dry.plan_hash)
    assert caught.value.details["reason"] == "plan_changed"
    done = writing.patching.patch(path="note.md", operations=operations, plan_hash=dry.plan_hash)
    assert (done.applied, done.source_hash) == (True, dry.source_hash)


def test_patch__plan_of_a_changed_document_is_refused(writing: Writing) -> None:
    """A document that changed elsewhere makes another plan."""
    operations = replace_old(writing)
    dry = writing.patching.patch(path="note.md", operations=operations, dry_run=True)
    writing.write("note.md", NOTE + "\nmore\n")
    with pytest.raises(Conflict) as caught:
        writing.patching.patch(path="note.md", operations=operations, plan_hash=dry.plan_hash)
    assert caught.value.details["reason"] == "plan_changed"


def test_patch__an_editors_change_elsewhere_is_kept(writing: Writing) -> None:
    """An unrelated change is no hindrance and stays; a change of the target is a conflict."""
    operations = replace_old(writing)
    writing.write("note.md", "intro\n\n" + NOTE)
    result = writing.patching.patch(path="note.md", operations=operations)
    assert writing.text("note.md") == "intro\n\n" + NOTE.replace("old", "new")
    assert result.operations[0].relocated_from is None
    with pytest.raises(Conflict) as caught:
        writing.patching.patch(path="note.md", operations=operations)
    assert caught.value.details["reason"] == "changed"
    assert caught.value.details["currentText"] == "new"


def test_patch__what_changes_nothing_writes_nothing(writing: Writing) -> None:
    """The file stays the same file, and there is no change to undo."""
    before = (writing.root / "note.md").stat()
    result = writing.patching.patch(path="note.md", operations=replace_old(writing, "old"))
    assert result.applied
    assert result.change_id is None
    assert "nothing was written" in result.warnings[0]
    assert (writing.root / "note.md").stat() == before


REFUSALS: list[tuple[str, type[KnowledgeBaseError]]] = [
    ("absent.md", NotFound),
    ("../note.md", InvalidPath),
    ("image.png", UnsupportedFormat),
    ("latin.md", UnsupportedEncoding),
    ("big.md", TooLarge),
    ("node_modules/x.md", NotFound),
]


@pytest.mark.parametrize(("path", "error"), REFUSALS)
def test_patch__paths_that_are_no_documents(writing: Writing, path: str, error: type[KnowledgeBaseError]) -> None:
    """Each is refused by its own code, and nothing is written."""
    writing.write("latin.md", b"caf\xe9\n")
    writing.write("big.md", "x" * 10_001)
    writing.write("node_modules/x.md", "x\n")
    before = writing.files()
    with pytest.raises(error):
        writing.patching.patch(path=path, operations=[{"kind": "insert_after", "pointer": "document", "markdown": "x"}])
    assert writing.files() == before


def test_patch__a_result_beyond_the_limit_is_refused(writing: Writing) -> None:
    """A document may not grow beyond what documents may have."""
    with pytest.raises(TooLarge, match="would have"):
        writing.patching.patch(path="note.md", operations=replace_old(writing, "x" * 10_000))
    assert writing.text("note.md") == NOTE


def test_edit_table__writes_and_chains(writing: Writing) -> None:
    """The answer carries the table's new pointer."""
    pointer = writing.pointer("note.md", "1.t1")
    first = writing.tables.edit(path="note.md", pointer=pointer, action="insert_row", values=["x", "y"])
    second = writing.tables.edit(
        path="note.md", pointer=first.pointer, action="rename_column", column="a", name="A|", dry_run=False
    )
    assert writing.text("note.md").endswith("| A\\| | b |\n|---|---|\n| 1 | 2 |\n| x | y |\n")
    assert second.pointer == writing.pointer("note.md", "1.t1")
    assert second.enclosing == (writing.pointer("note.md", "1"),)
    with pytest.raises(UnsupportedEdit, match="paragraph"):
        writing.tables.edit(
            path="note.md", pointer=writing.pointer("note.md", "1.p1"), action="delete_row", row_index=0
        )
    with pytest.raises(Conflict):
        writing.tables.edit(path="note.md", pointer=pointer, action="delete_row", row_index=0)


def test_edit_table__twins(writing: Writing) -> None:
    """With another source hash, a table that has an equal twin is ambiguous."""
    table = "| a |\n|---|\n| 1 |\n"
    writing.write("twins.md", f"{table}\n{table}")
    pointer, seen = writing.pointer("twins.md", "t2"), writing.source_hash("twins.md")
    arguments = {"pointer": f"twins.md::{pointer}", "action": "insert_row", "expected_source_hash": seen}
    writing.write("twins.md", f"{table}\n{table}\nmore\n")
    with pytest.raises(Conflict) as caught:
        writing.tables.edit(**arguments, values=["x"])  # type: ignore[arg-type]
    assert caught.value.details["reason"] == "ambiguous"
    writing.write("twins.md", f"{table}\n{table}")
    writing.tables.edit(**arguments, values=["x"])  # type: ignore[arg-type]
    assert writing.text("twins.md") == f"{table}\n{table}| x |\n"


def test_edit_frontmatter__sets_and_unsets(writing: Writing) -> None:
    """The answer has the pointer and what the front matter says now."""
    made = writing.frontmatter.edit(path="note.md", set={"tags": ["a"], "due": "2026-01-31"})
    assert writing.text("note.md") == "---\ntags:\n  - a\ndue: 2026-01-31\n---\n\n" + NOTE
    assert made.pointer == writing.pointer("note.md", "frontmatter")
    assert made.metadata == {"tags": ["a"], "due": "2026-01-31"}
    gone = writing.frontmatter.edit(path="note.md", unset=["tags", "due"], expected_source_hash=made.source_hash)
    assert writing.text("note.md") == NOTE
    assert (gone.pointer, gone.metadata) == (None, {})


def test_edit_frontmatter__refusals(writing: Writing) -> None:
    """A stale hash and a call without keys are refused."""
    with pytest.raises(Conflict) as caught:
        writing.frontmatter.edit(path="note.md", set={"a": 1}, expected_source_hash="0" * 16)
    assert caught.value.details["reason"] == "source_changed"
    with pytest.raises(InvalidArgument):
        writing.frontmatter.edit(path="note.md")
    assert writing.text("note.md") == NOTE
