"""kill -9 and several processes: every document is old or new, no update is lost, and the next start heals."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.trees import read_tree, write_tree

from local_vector_search_mcp.history.journal import Journal
from local_vector_search_mcp.history.store import HistoryStore
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.locks import WorkspaceLock
from local_vector_search_mcp.workspace.restoring import RestoringFiles

_DEADLINE_S = 50

# Changes pairs of files together, over and over: text of generation n in both, or moved, or made and deleted.
WRITER = """
import sys
from pathlib import Path
from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.history.changes import FileChange
from local_vector_search_mcp.history.journal import Journal
from local_vector_search_mcp.history.store import HistoryStore
from local_vector_search_mcp.relpath import RelPath as P
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.locks import WorkspaceLock
from local_vector_search_mcp.workspace.restoring import RestoringFiles

root, storage = Path(sys.argv[1]), Path(sys.argv[2])
workspace = Workspace(root)
journal = Journal(HistoryStore(storage / "history.db"), RestoringFiles(workspace))
lock = WorkspaceLock(root)
print("ready", flush=True)
for number in range(100000):
    with lock.hold():
        journal.recover()
        if workspace.exists(P("made.md")):
            # The process before was killed between its two changes.
            left = workspace.read(P("made.md"))
            with journal.step(tool="t", summary="s", files=(FileChange(path=left.path, before=left.data, after=None),)):
                workspace.delete(left.path, left.identity)
        one, two = (workspace.read(P(name)) for name in ("one.md", "two.md"))
        here, there = P("here/m.md"), P("there/m.md")
        old, new = (here, there) if workspace.exists(here) else (there, here)
        moving = workspace.read(old)
        text = b"%08d\\n" % number + b"x" * 20000
        files = (
            FileChange(path=one.path, before=one.data, after=text),
            FileChange(path=two.path, before=two.data, after=text),
            FileChange(path=new, previous_path=old, before=moving.data, after=text),
            FileChange(path=P("made.md"), before=None, after=text),
        )
        with journal.step(tool="t", summary="s", files=files):
            workspace.swap(one.path, text, one.identity)
            workspace.swap(two.path, text, two.identity)
            identity = workspace.move(old, new, expected=moving.identity)
            workspace.swap(new, text, identity)
            identity = workspace.create(P("made.md"), text)
        with journal.step(tool="t", summary="s", files=(FileChange(path=P("made.md"), before=text, after=None),)):
            workspace.delete(P("made.md"), identity)
"""


def run_and_kill(root: Path, storage: Path, seconds: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(storage)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # There is no state to wait for: the moment is meant to be any.
        time.sleep(seconds)
        assert process.poll() is None, "the writer ended by itself"
        process.kill()


def heal(root: Path, storage: Path) -> None:
    """What the next start does."""
    workspace = Workspace(root)
    store = HistoryStore(storage / "history.db")
    with WorkspaceLock(root).hold():
        Journal(store, RestoringFiles(workspace)).recover()
        workspace.remove_leftovers()
    assert not store.has_pending()
    store.close()
    workspace.close()


def kill_many(tmp_path: Path, kills: int) -> None:
    root, storage = tmp_path / "root", tmp_path / "storage"
    write_tree(root, {"one.md": "start", "two.md": "start", "here/m.md": "start"})
    chance = random.Random(kills)
    for _ in range(kills):
        run_and_kill(root, storage, chance.uniform(0.005, 0.12))
        heal(root, storage)
        found = read_tree(root)
        moved = {path for path in found if path.endswith("/m.md")}
        assert len(moved) == 1
        assert set(found) - moved - {"made.md"} == {"one.md", "two.md"}
        # All files of one change, whole or not at all.
        assert len(set(found.values())) == 1
        assert len(found["one.md"]) in (5, 20_009)
    assert HistoryStore(storage / "history.db").list() != ()


@pytest.mark.skipif(os.name == "nt", reason="kills as POSIX systems do")
def test_kill__at_any_moment(tmp_path: Path) -> None:
    """A writer killed at random moments leaves every change whole or undone, and no temporary file."""
    kill_many(tmp_path, 12)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.skipif(os.name == "nt", reason="kills as POSIX systems do")
def test_kill__five_hundred_times(tmp_path: Path) -> None:
    """The same, for long."""
    kill_many(tmp_path, 500)


COUNTER = """
import sys
from pathlib import Path
from local_vector_search_mcp.history.changes import FileChange
from local_vector_search_mcp.history.journal import Journal
from local_vector_search_mcp.history.store import HistoryStore
from local_vector_search_mcp.relpath import RelPath as P
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.locks import WorkspaceLock
from local_vector_search_mcp.workspace.restoring import RestoringFiles

root, storage, rounds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
workspace = Workspace(root)
journal = Journal(HistoryStore(storage / "history.db"), RestoringFiles(workspace))
lock = WorkspaceLock(root)
for _ in range(rounds):
    with lock.hold():
        journal.recover()
        read = workspace.read(P("count.md"))
        text = b"%d" % (int(read.data) + 1)
        with journal.step(tool="t", summary="s", files=(FileChange(path=read.path, before=read.data, after=text),)):
            workspace.swap(read.path, text, read.identity)
workspace.close()
"""


def test_processes__lose_no_update(tmp_path: Path) -> None:
    """Processes that count in one file, each with a history of its own or a shared one, count every round."""
    root = write_tree(tmp_path / "root", {"count.md": "0"})
    rounds = 40
    processes = [
        subprocess.Popen([sys.executable, "-c", COUNTER, str(root), str(tmp_path / storage), str(rounds)])
        for storage in ("shared", "shared", "own")
    ]
    assert [process.wait(_DEADLINE_S) for process in processes] == [0, 0, 0]
    assert (root / "count.md").read_text() == str(3 * rounds)
    assert len(HistoryStore(tmp_path / "shared" / "history.db").list(limit=1000)) == 2 * rounds


EDITOR = """
import os, sys
from pathlib import Path
path = Path(sys.argv[1])
for number in range(int(sys.argv[2])):
    # A save by renaming, as editors do it: whatever stood there is replaced without a look.
    text = path.read_text()
    path.with_name("note.md~").write_text(text + f"editor {number}\\n")
    os.replace(path.with_name("note.md~"), path)
"""


def test_editor__is_never_overwritten(tmp_path: Path) -> None:
    """Beside an editor that saves all the time, no save is replaced by a swap that had not seen it."""
    root = write_tree(tmp_path / "root", {"note.md": "start\n"})
    workspace, path = Workspace(root), RelPath("note.md")
    rounds = 300
    editor = subprocess.Popen([sys.executable, "-c", EDITOR, str(root / "note.md"), str(rounds)])
    swaps = conflicts = 0
    try:
        while editor.poll() is None:
            read = workspace.read(path)
            try:
                # The swap keeps every line, so a line that is missing in the end was overwritten unseen.
                workspace.swap(path, read.data + b"server\n", read.identity)
                swaps += 1
            except Exception as error:
                assert getattr(error, "code", "") in ("CONFLICT", "NOT_FOUND")
                conflicts += 1
    finally:
        editor.wait(_DEADLINE_S)
        workspace.close()
    lines = (root / "note.md").read_text().split("\n")
    assert [line for line in lines if line.startswith("editor")] == [f"editor {number}" for number in range(rounds)]
    assert swaps + conflicts > 0
