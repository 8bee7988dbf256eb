"""Late writes: what an editor still writes to a file that was replaced under it."""

import os
from pathlib import Path

import pytest
from tests.support.trees import write_tree

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileIdentity
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.late_writes import LateWrite, LateWrites

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows does not let an open file be replaced")
P = RelPath


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_swap__late_write_in_place(tmp_path: Path) -> None:
    """An editor that had the file open and writes after the swap is heard, with all its bytes."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    with (tmp_path / "a.md").open("r+b") as editor:
        workspace.swap(P("a.md"), b"new", FileIdentity.of((tmp_path / "a.md").stat()))
        editor.write(b"what the person typed")
    workspace.close()
    assert workspace.late_writes.take() == (LateWrite(path=P("a.md"), data=b"what the person typed"),)
    assert (tmp_path / "a.md").read_bytes() == b"new"


def test_delete__late_write_in_place(tmp_path: Path) -> None:
    """A deleted file is watched alike."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    with (tmp_path / "a.md").open("r+b") as editor:
        workspace.delete(P("a.md"), FileIdentity.of((tmp_path / "a.md").stat()))
        editor.write(b"typed")
    workspace.close()
    assert [late.data for late in workspace.late_writes.take()] == [b"typed"]


def test_swap__no_late_write(tmp_path: Path) -> None:
    """Where nobody writes, nothing is reported, and nothing stays open."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    workspace.swap(P("a.md"), b"new", FileIdentity.of((tmp_path / "a.md").stat()))
    assert workspace.late_writes.watching == 1
    workspace.close()
    assert workspace.late_writes.watching == 0
    assert workspace.late_writes.take() == ()


def test_swap__times_alone_are_no_write(tmp_path: Path) -> None:
    """A program that only sets the times of the old file has written nothing."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    with (tmp_path / "a.md").open("r+b") as editor:
        workspace.swap(P("a.md"), b"new", FileIdentity.of((tmp_path / "a.md").stat()))
        os.utime(editor.fileno(), ns=(1, 1))
    workspace.close()
    assert workspace.late_writes.take() == ()


def test_swap__refused_keeps_nothing(tmp_path: Path) -> None:
    """A swap that was refused replaced nothing, so nothing is watched."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    os.link(tmp_path / "a.md", tmp_path / "b.md")
    with pytest.raises(Exception, match="hard link"):
        workspace.swap(P("a.md"), b"new", FileIdentity.of((tmp_path / "a.md").stat()))
    assert workspace.late_writes.watching == 0


def keep(late: LateWrites, path: Path) -> int:
    fd = os.open(path, os.O_RDWR)
    late.keep(P("a.md"), fd, FileIdentity.of(os.fstat(fd)), xxh64_hex(path.read_bytes()))
    return os.open(path, os.O_RDWR)


def still(late: LateWrites) -> LateWrites:
    """Without its thread: the test looks itself."""
    late._thread = object()  # type: ignore[assignment]  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    return late


def test_look__waits_until_the_writer_is_done(tmp_path: Path) -> None:
    """A write is reported when it has been quiet for a second, once; what comes after, once more."""
    clock = Clock()
    late = still(LateWrites(clock=clock))
    told: list[bytes] = []
    late.on_late_write = lambda each: told.append(each.data)
    write_tree(tmp_path, {"a.md": "old"})
    editor = keep(late, tmp_path / "a.md")
    late.look()
    for step, text in enumerate([b"one", b"one two", b"one two three"]):
        os.pwrite(editor, text, 0)
        os.utime(editor, ns=(step, step))
        late.look()
        clock.now += 0.3
    late.look()
    assert told == []
    clock.now += 1
    late.look()
    late.look()
    assert told == [b"one two three"]
    os.pwrite(editor, b"again and again", 0)
    os.utime(editor, ns=(9, 9))
    clock.now += 5
    late.look()
    assert told == [b"one two three", b"again and again"]
    assert late.watching == 0
    os.close(editor)


def test_keep__many_at_once(tmp_path: Path) -> None:
    """The number of open files is bounded; the oldest is looked at once more before it is let go."""
    late = still(LateWrites(clock=Clock()))
    write_tree(tmp_path, {f"{number}.md": "old" for number in range(60)})
    first = keep(late, tmp_path / "0.md")
    os.ftruncate(first, 0)
    os.pwrite(first, b"late", 0)
    os.utime(first, ns=(9, 9))
    others = [keep(late, tmp_path / f"{number}.md") for number in range(1, 60)]
    assert late.watching < 60
    assert [each.data for each in late.take()] == [b"late"]
    late._thread = None  # pyright: ignore[reportPrivateUsage]
    late.close()
    for fd in (first, *others):
        os.close(fd)


def test_thread__ends_by_itself(tmp_path: Path) -> None:
    """The watching thread runs only while there is something to watch."""
    late = LateWrites(watch_s=0.3)
    write_tree(tmp_path, {"a.md": "old"})
    editor = keep(late, tmp_path / "a.md")
    thread = late._thread  # pyright: ignore[reportPrivateUsage]
    assert thread is not None
    os.pwrite(editor, b"late", 0)
    os.utime(editor, ns=(9, 9))
    os.close(editor)
    thread.join(20)
    assert not thread.is_alive()
    assert late.watching == 0
    assert [each.data for each in late.take()] == [b"late"]
