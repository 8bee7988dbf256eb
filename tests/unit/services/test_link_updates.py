"""Moves and deletions look for links before the workspace lock is taken, and again at what has changed since."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.writing import Writing, act_before_lock, note_reads

from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.locks import WorkspaceLock

Files = Mapping[str, str]
Act = Callable[[Writing], None]

TREE: Files = {
    "a/target.md": "---\naliases: [Other name]\n---\n\n# Target\n\n![p](p.png) [l](linker.md)\n",
    "a/linker.md": "See [t](target.md#target), [[target]] and [[Other name]].\n",
    "b/linker.md": "- [t](../a/target.md)\n- `[t](../a/target.md)`\n",
    "b/plain.md": "No link in here.\n",
}


@pytest.fixture(params=["settled", "fresh"])
def clock(request: pytest.FixtureRequest) -> Callable[[], float]:
    """The time of day, or a minute later: then no file has been written shortly before it is read."""
    ahead = 60.0 if request.param == "settled" else 0.0
    return lambda: time.time() + ahead


def workspace(folder: Path, clock: Callable[[], float], files: Files = TREE) -> Writing:
    (folder / "root").mkdir(parents=True)
    writing = Writing(folder / "root", folder / "history.db", wall_clock=clock)
    for path, text in files.items():
        writing.write(path, text)
    return writing


def write(path: str, text: str) -> Act:
    return lambda writing: writing.write(path, text)


def remove(path: str) -> Act:
    return lambda writing: (writing.root / path).unlink()


def rename(old: str, new: str) -> Act:
    def act(writing: Writing) -> None:
        (writing.root / old).rename(writing.root / new)

    return act


def write_unseen(path: str, text: str) -> Act:
    """Another text of the same length, with the times of the old one as far as a program can set them."""

    def act(writing: Writing) -> None:
        place = writing.root / path
        before = place.stat()
        assert before.st_size == len(text.encode())
        place.write_text(text, encoding="utf-8")
        os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))

    return act


def save_by_rename(path: str, text: str) -> Act:
    def act(writing: Writing) -> None:
        writing.write(f"{path}.tmp", text)
        (writing.root / f"{path}.tmp").replace(writing.root / path)

    return act


ACTS: dict[str, Act] = {
    "gains a link": write("b/plain.md", "Now a [link](../a/target.md).\n"),
    "gains a link unseen": write_unseen("b/plain.md", "[g](/a/target.md)"),
    "gains a link by a rename": save_by_rename("b/plain.md", "[g](/a/target.md)\n"),
    "loses its link": write("b/linker.md", "None any more.\n"),
    "is changed": write("b/linker.md", "# New text\n\nand [two](../a/target.md), [links](/a/target.md)\n"),
    "is removed": remove("b/linker.md"),
    "is renamed": rename("b/linker.md", "a/renamed.md"),
    "is no text any more": lambda writing: writing.write("b/linker.md", b"\xff\xfe[t](../a/target.md)"),
    "is new": write("c/new.md", "[[target]] and [t](../a/target.md)\n"),
    "takes the new name": write("b/moved.md", "# Another\n"),
    "takes the alias": write("b/other.md", "---\naliases: [Other name]\n---\n"),
    "is a new file that is linked to": lambda writing: writing.write("a/p.png", b"png"),
    "is the moved document": write("a/target.md", "# Target\n\nAnother text with a [link](../b/plain.md).\n"),
    "is the moved document and has another alias": write("a/target.md", "---\naliases: [Plain]\n---\n\n# Target\n"),
}
MOVES: dict[str, Mapping[str, Any]] = {
    "a document": {"path": "a/target.md", "target_path": "d/moved.md"},
    "a folder": {"path": "a/", "target_path": "d/e/"},
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_move__what_happens_between_the_looks(
    tmp_path: Path, clock: Callable[[], float], act: Act, move: Mapping[str, Any]
) -> None:
    """A move ends as if everything that came before the lock had come before the move; undoing it brings that back."""
    files = {**TREE, "b/plain.md": "A text of 17 byte"}
    after = workspace(tmp_path / "after", clock, files)
    act(after)
    expected = after.documents.move(**move)
    between = workspace(tmp_path / "between", clock, files)
    act_before_lock(between, act)
    result = between.documents.move(**move)
    assert between.files() == after.files()
    assert result.updated_links == expected.updated_links
    assert (result.warnings, result.moved) == (expected.warnings, expected.moved)
    assert result.change_id is not None
    after.undo.undo(change_id=expected.change_id or "")
    between.undo.undo(change_id=result.change_id)
    assert between.files() == after.files()
    for writing in (after, between):
        writing.close()


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_delete__what_happens_between_the_looks(tmp_path: Path, clock: Callable[[], float], act: Act) -> None:
    """The links that a deletion breaks are those that there are under the lock; another text of it is refused."""
    files = {**TREE, "b/plain.md": "A text of 17 byte"}
    after, between = workspace(tmp_path / "after", clock, files), workspace(tmp_path / "between", clock, files)
    act(after)
    seen = after.source_hash("a/target.md")
    expected = after.documents.delete(path="a/target.md", expected_source_hash=seen)
    act_before_lock(between, act)
    result = between.documents.delete(path="a/target.md", expected_source_hash=seen)
    assert result.broken_links == expected.broken_links
    assert between.files() == after.files()
    for writing in (after, between):
        writing.close()


def test_move__a_folder_that_gains_a_document(tmp_path: Path, clock: Callable[[], float]) -> None:
    """What comes into a folder before the lock moves with it, and links to it are updated in documents read before."""
    writing = workspace(tmp_path, clock, {**TREE, "b/early.md": "[n](../a/new.md)\n"})
    act_before_lock(writing, write("a/new.md", "[[plain]] [p](../b/plain.md)\n"))
    result = writing.documents.move(path="a/", target_path="d/e/")
    assert "d/e/new.md" in {each.path for each in result.moved}
    assert writing.text("b/early.md") == "[n](../d/e/new.md)\n"
    assert writing.text("d/e/new.md") == "[[plain]] [p](../../b/plain.md)\n"
    writing.close()


def test_move__a_refusal_of_the_first_look_counts_for_nothing(tmp_path: Path, clock: Callable[[], float]) -> None:
    """What stood in the way and has gone before the lock refuses nothing; the plan is made under the lock."""
    writing = workspace(tmp_path, clock, {**TREE, "moved.md": "taken\n"})
    act_before_lock(writing, remove("moved.md"))
    assert writing.documents.move(path="a/target.md", target_path="moved.md").applied
    assert writing.text("b/linker.md").startswith("- [t](../moved.md)\n")
    writing.close()


def test_move__documents_that_stay_the_same_are_read_without_the_lock(tmp_path: Path) -> None:
    """Every document is read once, while other processes may write; under the lock none is read for its links again."""
    writing = workspace(tmp_path, lambda: time.time() + 60)
    paths: list[str] = []

    def noted(path: RelPath) -> None:
        with WorkspaceLock(writing.root, wait_s=0).hold():
            paths.append(path.value)

    note_reads(writing.workspace, noted)
    writing.documents.move(path="a/target.md", target_path="moved.md")
    assert sorted(paths) == sorted(TREE)
    writing.close()


def test_move__documents_just_written_are_read_again(tmp_path: Path) -> None:
    """A file that was written within two seconds of being read may have changed unseen, and is read under the lock."""
    writing = workspace(tmp_path, time.time)
    paths: list[str] = []
    note_reads(writing.workspace, lambda path: paths.append(path.value))
    writing.documents.move(path="a/target.md", target_path="moved.md")
    assert sorted(paths) == sorted([*TREE, *TREE])
    writing.close()
