"""NeighbourReader: what it reads and refuses is what reading one file by itself does."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.permissions import need_enforced_modes
from tests.support.trees import write_tree

from local_vector_search_mcp.errors import InvalidPath, IoFailure, KnowledgeBaseError, NotFound, TooLarge
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace import guard, neighbours
from local_vector_search_mcp.workspace.entries import FileSnapshot
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.folders import PathFolder
from local_vector_search_mcp.workspace.guard import OwnPaths

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX links and modes")
MOST = 100
P = RelPath


def outcome(read: Callable[..., FileSnapshot], path: str) -> object:
    try:
        return read(P(path), max_bytes=MOST)
    except KnowledgeBaseError as error:
        return (type(error), error.message, error.details)


def check(workspace: Workspace, *paths: str) -> list[object]:
    """Read files in a row and each by itself; what came of it, which must be the same."""
    with workspace.neighbours() as reader:
        together = [outcome(reader.read, path) for path in paths]
    assert together == [outcome(workspace.read_present, path) for path in paths]
    return [one.data if isinstance(one, FileSnapshot) else one for one in together]


def kinds(outcomes: list[object]) -> list[object]:
    return [one[0] if isinstance(one, tuple) else one for one in outcomes]


def test_read__files_of_several_folders(tmp_path: Path) -> None:
    """Any order of files gives the bytes and identity of each."""
    tree = {"a.md": "a", "b.md": "", "s/a.md": "sa", "s/t/a.md": "sta", "s/z.md": "sz", "ü.md": "umlaut"}
    workspace = Workspace(write_tree(tmp_path, tree))
    for paths in (sorted(tree), sorted(tree, reverse=True), ["a.md", "s/a.md", "a.md", "s/t/a.md", "ü.md"]):
        assert check(workspace, *paths) == [tree[path].encode() for path in paths]


def test_read__refusals_stand_between_readings(tmp_path: Path) -> None:
    """What cannot be read is refused in the words of a single reading, and the next file is read."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "a", "big.md": "x" * (MOST + 1), "f.md/x.md": "x"}))
    found = check(workspace, "a.md", "big.md", "a.md", "f.md", "gone.md", "no/a.md", "f.md/x.md", "a.md/b.md", "a.md")
    assert kinds(found) == [b"a", TooLarge, b"a", InvalidPath, NotFound, NotFound, b"x", NotFound, b"a"]


def test_read__never_touches_own_files(tmp_path: Path) -> None:
    """The server's own files and git's stay closed, their neighbours open."""
    tree = {"a.md": "a", "kb.db": "x", "kb.db-wal": "x", ".git/a.md": "x", ".lvs-tmp-1.md": "x", "own/a.md": "x"}
    root = write_tree(tmp_path, tree)
    workspace = Workspace(root, own=OwnPaths(directories=(root / "own",), files=(root / "kb.db",)))
    found = check(workspace, *tree)
    assert kinds(found) == [b"a", *[InvalidPath] * 5]


def test_read__own_temporary_name_in_a_plain_folder(tmp_path: Path) -> None:
    """Where a folder stays open, too, the names in it are looked at."""
    workspace = Workspace(write_tree(tmp_path, {"s/a.md": "a", "s/.lvs-tmp-1.md": "x", "s/.GIT": "x", "s/b.md": "b"}))
    found = check(workspace, "s/a.md", "s/.lvs-tmp-1.md", "s/.GIT", "s/b.md")
    assert kinds(found) == [b"a", InvalidPath, InvalidPath, b"b"]


@posix
def test_read__links_are_never_followed(tmp_path: Path) -> None:
    """Neither a file nor a folder that is a link is read, and no second name of an own file."""
    root = write_tree(tmp_path / "root", {"a.md": "a", "s/a.md": "sa", "own/kb.md": "own"})
    outside = write_tree(tmp_path / "outside", {"a.md": "secret"})
    (root / "l.md").symlink_to(outside / "a.md")
    (root / "d").symlink_to(outside)
    os.mkfifo(root / "pipe.md")
    os.link(root / "own" / "kb.md", root / "s" / "second.md")
    os.link(root / "a.md", root / "s" / "twin.md")
    workspace = Workspace(root, own=OwnPaths(directories=(root / "own",)))
    found = check(workspace, "a.md", "l.md", "d/a.md", "pipe.md", "s/a.md", "s/second.md", "s/twin.md")
    assert kinds(found) == [b"a", InvalidPath, InvalidPath, InvalidPath, b"sa", InvalidPath, b"a"]


@posix
def test_read__folder_that_becomes_a_link(tmp_path: Path) -> None:
    """After a leave the way is looked at again; before it, the folder that was opened is still the one inside."""
    root = write_tree(tmp_path / "root", {"s/a.md": "a", "s/b.md": "b"})
    outside = write_tree(tmp_path / "outside", {"a.md": "secret", "b.md": "secret"})
    with Workspace(root).neighbours() as reader:
        assert reader.read(P("s/a.md"), max_bytes=MOST).data == b"a"
        (root / "s").rename(root / "moved")
        (root / "s").symlink_to(outside)
        assert reader.read(P("s/b.md"), max_bytes=MOST).data == b"b"
        reader.leave()
        with pytest.raises(InvalidPath, match="link"):
            reader.read(P("s/b.md"), max_bytes=MOST)


@posix
def test_read__folder_that_becomes_a_link_where_folders_are_known_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system holds no folder open, the way to each file is looked at anew."""
    monkeypatch.setattr(guard, "open_folder", PathFolder)
    root = write_tree(tmp_path / "root", {"s/a.md": "a", "s/b.md": "b", "c.md": "c"})
    outside = write_tree(tmp_path / "outside", {"a.md": "secret", "b.md": "secret"})
    with Workspace(root).neighbours() as reader:
        assert reader.read(P("s/a.md"), max_bytes=MOST).data == b"a"
        (root / "s").rename(root / "moved")
        (root / "s").symlink_to(outside)
        with pytest.raises(InvalidPath, match="link"):
            reader.read(P("s/b.md"), max_bytes=MOST)
        assert reader.read(P("c.md"), max_bytes=MOST).data == b"c"


@posix
def test_read__unreadable(tmp_path: Path) -> None:
    """A file or folder without permission is refused with the reason."""
    need_enforced_modes(tmp_path)
    root = write_tree(tmp_path, {"a.md": "a", "closed.md": "x", "s/a.md": "x"})
    (root / "closed.md").chmod(0)
    (root / "s").chmod(0)
    try:
        found = check(Workspace(root), "a.md", "closed.md", "s/a.md", "a.md")
    finally:
        (root / "s").chmod(0o700)
    assert kinds(found) == [b"a", IoFailure, IoFailure, b"a"]


@pytest.mark.parametrize("text", ["longer than before", "two", ""])
def test_read__file_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A file that is written to between the look at it and the reading is read by the closer look."""
    file = write_tree(tmp_path, {"a.md": "one"}) / "a.md"

    def read(fd: int, size: int) -> bytes:
        file.write_text(text)
        os.utime(file, (1, 1))
        return os.read(fd, size)

    monkeypatch.setattr(neighbours, "os", SimpleNamespace(fstat=os.fstat, read=read, close=os.close))
    with Workspace(tmp_path).neighbours() as reader:
        found = reader.read(P("a.md"), max_bytes=MOST)
    assert (found.data, found.identity.mtime_ns) == (text.encode(), 10**9)


def test_read__one_path_for_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system ignores case, a name in another case goes to the closer look."""
    workspace = Workspace(write_tree(tmp_path, {"s/a.md": "a", "s/b.md": "b"}))
    monkeypatch.setattr(neighbours, "CASE_IS_KEPT_ONLY", True)
    assert kinds(check(workspace, "s/a.md", "s/A.md", "s/b.md")) == [b"a", NotFound, b"b"]


def test_leave__closes_the_folder(tmp_path: Path) -> None:
    """No descriptor stays open, whichever way the reader is left; it can be used again."""
    opened = Path("/proc/self/fd")
    if not opened.exists():
        pytest.skip("the system does not list open descriptors")
    workspace = Workspace(write_tree(tmp_path, {"s/a.md": "a", "t/a.md": "b"}))
    before = {file.name for file in opened.iterdir()}
    with workspace.neighbours() as reader:
        for path in ("s/a.md", "t/a.md", "s/a.md"):
            reader.read(P(path), max_bytes=MOST)
        reader.leave()
        assert {file.name for file in opened.iterdir()} == before
        reader.read(P("s/a.md"), max_bytes=MOST)
    assert {file.name for file in opened.iterdir()} == before
