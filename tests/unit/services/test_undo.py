"""kb_history and kb_undo: whole, by elements, refused, and taken back again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.writing import Writing

from local_vector_search_mcp.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from local_vector_search_mcp.history.store import HistorySettings
from local_vector_search_mcp.services.undo import UndoManner

NOTE = "# A\n\none\n\ntwo\n\nthree\n"


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    root = tmp_path / "root"
    root.mkdir()
    place = Writing(root, tmp_path / "history.db")
    place.write("note.md", NOTE)
    yield place
    place.close()


def patched(writing: Writing, kind: str, logical: str, **fields: object) -> str:
    """Patch the note; gives the change id."""
    operation = {"kind": kind, "pointer": writing.pointer("note.md", logical), **fields}
    change_id = writing.patching.patch(path="note.md", operations=[operation]).change_id
    assert change_id is not None
    return change_id


def test_undo__restores_the_exact_bytes_and_redoes(writing: Writing) -> None:
    """An undo is a change: undoing it redoes, as often as one likes."""
    change = patched(writing, "replace_element", "1.p2", markdown="TWO")
    changed = writing.text("note.md")
    for expected in (NOTE, changed, NOTE, changed):
        result = writing.undo.undo(change_id=change)
        assert writing.text("note.md") == expected
        assert (result.undone, result.how) == (change, UndoManner.WHOLE)
        assert result.source_hash == writing.source_hash("note.md")
        assert result.change_id is not None
        change = result.change_id


def test_undo__leaves_no_folder_that_the_change_made(writing: Writing, tmp_path: Path) -> None:
    """Undoing takes folders away that were made for the files; one that holds anything, even a folder, stays."""
    root = tmp_path / "root"
    (root / "kept" / "empty").mkdir(parents=True)
    created = writing.documents.create(path="new/deep/a.md", markdown="# A\n").change_id
    other = writing.documents.create(path="kept/b.md", markdown="# B\n").change_id
    moved = writing.documents.move(path="note.md", target_path="far/off/note.md").change_id
    for change in (moved, other, created):
        assert change is not None
        writing.undo.undo(change_id=change)
    assert writing.text("note.md") == NOTE
    assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_dir()) == [
        "kept",
        "kept/empty",
    ]


ELEMENTS: list[tuple[str, str, dict[str, str], str, str | None]] = [
    ("replace_element", "1.p2", {"markdown": "TWO"}, "# A\n\nONE\n\nTWO\n\nthree\n", "# A\n\nONE\n\ntwo\n\nthree\n"),
    ("delete", "1.p2", {}, "# A\n\nONE\n\none\n\nthree\n\nmore\n", "# A\n\nONE\n\none\n\ntwo\n\nthree\n\nmore\n"),
    (
        "insert_after",
        "1.p2",
        {"markdown": "new"},
        "# B\n\none\n\ntwo\n\nnew\n\nthree\n",
        "# B\n\none\n\ntwo\n\nthree\n",
    ),
    ("delete_section", "1", {}, "new\n", None),
    ("replace_element", "1.p2", {"markdown": "TWO"}, "# A\n\none\n\nTWO changed\n\nthree\n", None),
    ("replace_element", "1.p2", {"markdown": "TWO"}, "# A\n\nTWO\n\nx\n\nTWO\n", None),
    (
        "move_before",
        "1.p3",
        {"target": "1.p1"},
        "# A\n\nthree\n\none\n\ntwo\n\nmore\n",
        "# A\n\none\n\ntwo\n\nthree\n\nmore\n",
    ),
]


@pytest.mark.parametrize(("kind", "logical", "fields", "now", "after"), ELEMENTS)
def test_undo__by_elements(
    writing: Writing, kind: str, logical: str, fields: dict[str, str], now: str, after: str | None
) -> None:
    """In a document that has changed since, the change's elements alone are put back, if they stand unchanged."""
    if "target" in fields:
        fields = {"target": writing.pointer("note.md", fields["target"])}
    change = patched(writing, kind, logical, **fields)
    writing.write("note.md", now)
    if after is None:
        with pytest.raises(Conflict) as caught:
            writing.undo.undo(change_id=change)
        assert caught.value.details["reason"] == "changed"
        assert writing.text("note.md") == now
        return
    result = writing.undo.undo(change_id=change)
    assert result.how is UndoManner.ELEMENTS
    assert writing.text("note.md") == after


def test_undo__of_a_creation(writing: Writing) -> None:
    """A file that was made is deleted only while it is unchanged."""
    change = writing.documents.create(path="new/x.md", markdown="x").change_id
    assert change is not None
    writing.write("new/x.md", "changed\n")
    with pytest.raises(Conflict):
        writing.undo.undo(change_id=change)
    writing.write("new/x.md", "x\n")
    writing.undo.undo(change_id=change)
    assert "new/x.md" not in writing.files()
    with pytest.raises(Conflict):
        writing.undo.undo(change_id=change)


def test_undo__of_a_deletion(writing: Writing) -> None:
    """A deleted file comes back, unless its path is taken, in whatever case."""
    change = writing.documents.delete(path="note.md", expected_source_hash=writing.source_hash("note.md")).change_id
    assert change is not None
    writing.write("NOTE.md", "taken\n")
    with pytest.raises(AlreadyExists):
        writing.undo.undo(change_id=change)
    (writing.root / "NOTE.md").unlink()
    result = writing.undo.undo(change_id=change)
    assert writing.text("note.md") == NOTE
    assert result.previous_source_hash is None


@pytest.mark.parametrize("what", ["patch", "create", "delete", "move"])
def test_undo__of_what_is_undone_already(writing: Writing, what: str) -> None:
    """It is refused with the code that fits, and says by which change and when; what was redone can be undone again."""
    change: str | None
    match what:
        case "patch":
            change = patched(writing, "replace_element", "1.p2", markdown="TWO")
        case "create":
            change = writing.documents.create(path="new.md", markdown="x").change_id
        case "delete":
            seen = writing.source_hash("note.md")
            change = writing.documents.delete(path="note.md", expected_source_hash=seen).change_id
        case _:
            change = writing.documents.move(path="note.md", target_path="moved.md").change_id
    error = AlreadyExists if what == "delete" else Conflict
    assert change is not None
    done = writing.files()
    undo = writing.undo.undo(change_id=change).change_id
    assert undo is not None
    time_text = writing.history.get(undo).time
    with pytest.raises(error) as caught:
        writing.undo.undo(change_id=change)
    assert f"undone already, at {time_text} by the change {undo}" in caught.value.message
    assert (caught.value.details["undoneBy"], caught.value.details["undoneAt"]) == (undo, time_text)
    writing.undo.undo(change_id=undo)
    assert writing.files() == done
    assert writing.undo.undo(change_id=change).applied


def test_undo__back_and_forth_many_times(writing: Writing) -> None:
    """However often a change was undone and redone, it is known which of it stands."""
    change = last = patched(writing, "replace_element", "1.p2", markdown="TWO")
    for number in range(60):
        undo = writing.undo.undo(change_id=last)
        assert undo.change_id is not None
        last = undo.change_id
        stands = writing.history.undone_by(change)
        assert (stands is None) is bool(number % 2)


def test_undo__of_what_was_redone_and_changed(writing: Writing) -> None:
    """A change that was redone and does not stand any more is not said to be undone."""
    change = patched(writing, "replace_element", "1.p2", markdown="TWO")
    undo = writing.undo.undo(change_id=change).change_id
    writing.undo.undo(change_id=undo or "")
    writing.write("note.md", NOTE.replace("two", "another"))
    with pytest.raises(Conflict, match="has changed since"):
        writing.undo.undo(change_id=change)


def test_undo__dry_run_and_plan(writing: Writing) -> None:
    """An undo can be looked at first."""
    change = patched(writing, "replace_element", "1.p2", markdown="TWO")
    dry = writing.undo.undo(change_id=change, dry_run=True)
    assert "-TWO\n+two\n" in dry.diffs[0].diff
    writing.write("note.md", writing.text("note.md") + "\nmore\n")
    with pytest.raises(Conflict) as caught:
        writing.undo.undo(change_id=change, plan_hash=dry.plan_hash)
    assert caught.value.details["reason"] == "plan_changed"


def test_undo__unknown_change(writing: Writing) -> None:
    """There is nothing to undo of a change that is not kept."""
    with pytest.raises(NotFound):
        writing.undo.undo(change_id="nothing")


def test_history__pages_newest_first(writing: Writing) -> None:
    """Pages go on after the last change, whatever is added meanwhile; other filters need a new start."""
    changes = [patched(writing, "insert_after", "1.p1", markdown=f"n{number}") for number in range(5)]
    writing.documents.create(path="other.md", markdown="x")
    first = writing.undo.history(path="note.md", page_size=2)
    assert [entry.change_id for entry in first.changes] == changes[:2:-1]
    patched(writing, "delete", "1.p1")
    second = writing.undo.history(path="note.md", page_size=2, cursor=first.next_cursor)
    assert [entry.change_id for entry in second.changes] == changes[2:0:-1]
    last = writing.undo.history(path="note.md", page_size=2, cursor=second.next_cursor)
    assert [entry.change_id for entry in last.changes] == changes[:1]
    assert last.next_cursor is None
    with pytest.raises(InvalidArgument):
        writing.undo.history(cursor=first.next_cursor)
    with pytest.raises(InvalidArgument):
        writing.undo.history(page_size=101)


def test_history__one_change_with_its_diff(writing: Writing) -> None:
    """One change shows its files with both hashes, and what it did."""
    before = writing.source_hash("note.md")
    change = patched(writing, "replace_element", "1.p2", markdown="TWO")
    result = writing.undo.history(change_id=change)
    assert result.changes == ()
    assert result.change is not None
    assert (result.change.tool, result.change.files[0].path) == ("kb_patch", "note.md")
    assert result.change.files[0].previous_source_hash == before
    assert result.change.files[0].source_hash == writing.source_hash("note.md")
    assert result.diff is not None
    assert "-two\n+TWO\n" in result.diff


def test_history__switched_off(tmp_path: Path) -> None:
    """Without history there is no change id, and edits work as ever."""
    root = tmp_path / "root"
    root.mkdir()
    writing = Writing(root, tmp_path / "history.db", settings=HistorySettings(enabled=False))
    result = writing.documents.create(path="x.md", markdown="x")
    assert (result.applied, result.change_id) == (True, None)
    assert writing.text("x.md") == "x\n"
    assert writing.undo.history().changes == ()
    writing.close()
