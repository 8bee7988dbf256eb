"""The write path: identity, atomicity, late writes, crashes and other processes."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.writing import Writing

from local_vector_search_mcp.errors import Busy, Conflict, InvalidPath, IoFailure
from local_vector_search_mcp.history.changes import FileChange
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.mutations import FileStep, Proposal
from local_vector_search_mcp.workspace.late_writes import LateWrites
from local_vector_search_mcp.workspace.locks import WorkspaceLock


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    root = tmp_path / "root"
    root.mkdir()
    place = Writing(root, tmp_path / "history.db")
    place.write("note.md", "old\n")
    yield place
    place.close()


def replace_step(writing: Writing, path: str, after: bytes) -> FileStep:
    return FileStep(path=RelPath(path), before=writing.workspace.read(RelPath(path)), after=after)


def proposal(*steps: FileStep) -> Proposal[None]:
    return Proposal(summary="test", steps=steps, value=None)


def test_run__an_editors_save_in_between_is_a_conflict(writing: Writing) -> None:
    """A file that changes between reading and writing keeps the editor's version, and nothing is recorded."""

    def plan() -> Proposal[None]:
        step = replace_step(writing, "note.md", b"new\n")
        writing.write("note.md", "the editor's\n")
        return proposal(step)

    with pytest.raises(Conflict) as caught:
        writing.mutations.run("test", plan)
    assert caught.value.details["reason"] == "source_changed"
    assert writing.text("note.md") == "the editor's\n"
    assert writing.undo.history().changes == ()


def test_run__several_files_are_all_or_nothing(writing: Writing) -> None:
    """A failure at the last file puts the first ones back."""
    writing.write("a.md", "a\n")

    def plan() -> Proposal[None]:
        steps = [replace_step(writing, "a.md", b"A\n"), replace_step(writing, "note.md", b"new\n")]
        writing.write("note.md", "the editor's\n")
        return proposal(*steps)

    with pytest.raises(Conflict):
        writing.mutations.run("test", plan)
    assert writing.files() == {"a.md": b"a\n", "note.md": b"the editor's\n"}
    assert writing.undo.history().changes == ()


def test_run__modes_are_kept_and_nothing_is_left_behind(writing: Writing) -> None:
    """The new file has the old one's mode, and no temporary file stays."""
    (writing.root / "note.md").chmod(0o640)
    writing.mutations.run("test", lambda: proposal(replace_step(writing, "note.md", b"new\n")))
    assert (writing.root / "note.md").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in writing.root.iterdir()] == ["note.md"]


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_run__links_are_refused(writing: Writing, kind: str) -> None:
    """A file with a second name is never written through either."""
    other = writing.root / "other.md"
    if kind == "symbolic":
        other.symlink_to("note.md")
    else:
        other.hardlink_to(writing.root / "note.md")
    with pytest.raises(InvalidPath):
        writing.patching.patch(
            path="other.md", operations=[{"kind": "insert_after", "pointer": "document", "markdown": "x"}]
        )
    assert writing.text("note.md") == "old\n"


def test_run__a_folder_that_may_not_be_written_changes_nothing(writing: Writing) -> None:
    """A system that refuses the write is an error of its own code."""
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    writing.root.chmod(0o500)
    try:
        with pytest.raises(IoFailure):
            writing.mutations.run("test", lambda: proposal(replace_step(writing, "note.md", b"new\n")))
    finally:
        writing.root.chmod(0o700)
    assert writing.text("note.md") == "old\n"
    assert writing.undo.history().changes == ()


def test_run__waits_for_the_lock_and_gives_up(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another holder of the workspace lock makes a mutation wait, and then answer BUSY."""
    monkeypatch.setattr(writing.mutations, "_lock", WorkspaceLock(writing.root, wait_s=0.05))
    with WorkspaceLock(writing.root).hold(), pytest.raises(Busy):
        writing.mutations.run("test", lambda: proposal(replace_step(writing, "note.md", b"new\n")))
    assert writing.text("note.md") == "old\n"


def test_run__threads_take_turns(writing: Writing) -> None:
    """Edits from many threads at once are all made, none is lost."""
    errors: list[BaseException] = []

    def insert(number: int) -> None:
        operation = {"kind": "insert_after", "pointer": "document", "markdown": f"text {number}"}
        try:
            writing.patching.patch(path="note.md", operations=[operation])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(writing.text("note.md").split()) == sorted(["old", *["text"] * 12, *map(str, range(12))])


def test_late_write__is_kept_beside_the_document(writing: Writing) -> None:
    """What an editor writes into the replaced file becomes a file and a change of its own, and is told."""
    told = writing.workspace.late_writes.on_late_write
    writing.workspace.late_writes = LateWrites(watch_s=60)
    writing.workspace.late_writes.on_late_write = told
    with (writing.root / "note.md").open("r+b") as editor:
        writing.mutations.run("test", lambda: proposal(replace_step(writing, "note.md", b"new\n")))
        editor.write(b"the editor's text\n")
    writing.workspace.late_writes.close()
    (conflict,) = (path for path in writing.files() if "conflict" in path)
    assert conflict.startswith("note.conflict-")
    assert conflict.endswith("Z.md")
    assert writing.text(conflict) == "the editor's text\n"
    assert writing.text("note.md") == "new\n"
    assert conflict in writing.mutations.notices[0]
    assert [change.tool for change in writing.undo.history().changes] == ["late_write", "test"]
    result = writing.documents.create(path="x.md", markdown="x")
    assert conflict in result.warnings[0]
    assert writing.documents.create(path="y.md", markdown="y").warnings == ()


def test_late_write__of_what_stands_there_is_nothing(writing: Writing) -> None:
    """An editor that wrote the same text leaves nothing to keep."""
    with (writing.root / "note.md").open("r+b") as editor:
        writing.mutations.run("test", lambda: proposal(replace_step(writing, "note.md", b"new\n")))
        editor.write(b"new\n")
    writing.workspace.late_writes.close()
    assert set(writing.files()) == {"note.md"}
    assert writing.mutations.notices == ()


def test_recover__what_a_crash_cut_off_is_put_back(writing: Writing, caplog: pytest.LogCaptureFixture) -> None:
    """The next mutation, or the next start, finds a change that was cut off and takes it back."""
    writing.write("a.md", "a\n")
    files = [
        FileChange(path=RelPath("a.md"), before=b"a\n", after=b"A\n"),
        FileChange(path=RelPath("note.md"), before=b"old\n", after=b"new\n"),
    ]
    writing.history.begin(tool="kb_move", summary="cut off", files=files)
    writing.write("a.md", "A\n")
    writing.mutations.recover()
    assert writing.files() == {"a.md": b"a\n", "note.md": b"old\n"}
    assert "has been put back" in writing.mutations.notices[0]
    assert writing.undo.history().changes == ()
    assert sorted(map(str, writing.indexer.told)) == ["a.md", "note.md"]
    assert "cut off" in caplog.text
    caplog.clear()


def test_recover__what_was_complete_is_kept(writing: Writing, caplog: pytest.LogCaptureFixture) -> None:
    """A change whose files had all been written is in the history, and can be undone."""
    files = [FileChange(path=RelPath("note.md"), before=b"old\n", after=b"new\n")]
    change_id = writing.history.begin(tool="kb_patch", summary="complete", files=files)
    writing.write("note.md", "new\n")
    writing.undo.undo(change_id=writing.documents.create(path="x.md", markdown="x").change_id or "")
    writing.undo.undo(change_id=change_id)
    assert writing.text("note.md") == "old\n"
    caplog.clear()


@pytest.mark.parametrize("synchronized", [True, False])
def test_run__says_whether_the_index_holds_it(writing: Writing, synchronized: bool) -> None:
    """The answer never waits for the index beyond its time, and says what is known."""
    writing.indexer.synchronized = synchronized
    result = writing.documents.create(path="x.md", markdown="x")
    assert result.index_synchronized is synchronized


def test_run__files_that_are_no_documents_say_nothing_of_the_index(writing: Writing) -> None:
    """Where no Markdown is touched, the index does not come into it."""
    step = FileStep(path=RelPath("image.png"), before=None, after=b"png")
    committed = writing.mutations.run("kb_save_image", lambda: proposal(step))
    assert committed.index_synchronized is None
    assert writing.indexer.told == []
