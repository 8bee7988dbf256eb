"""Full and read-only file systems, real ones: clear errors, nothing lost, and it goes on when they are mended."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.trees import read_tree, write_tree

from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.history.changes import FileChange
from local_vector_search_mcp.history.journal import Journal
from local_vector_search_mcp.history.store import HistoryStore
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.locks import IndexingLease, WorkspaceLock
from local_vector_search_mcp.workspace.restoring import RestoringFiles

P = RelPath
TREE: dict[str, str | bytes | None] = {"a.md": "old", "n/b.md": "b" * 5000}
LARGE = b"x" * 100_000


def swap(workspace: Workspace) -> object:
    return workspace.swap(P("a.md"), LARGE, workspace.read(P("a.md")).identity)


CHANGES: dict[str, Callable[[Workspace], object]] = {
    "swap": swap,
    "create": lambda workspace: workspace.create(P("c.md"), LARGE),
    "create in a folder": lambda workspace: workspace.create(P("x/y/c.md"), LARGE),
}
MORE: dict[str, Callable[[Workspace], object]] = {
    "move": lambda workspace: workspace.move(P("a.md"), P("c.md")),
    "delete": lambda workspace: workspace.delete(P("a.md"), workspace.read(P("a.md")).identity),
}


def without_filler(disk: SmallDisk) -> dict[str, bytes]:
    return {path: data for path, data in read_tree(disk.path).items() if path != "filler.bin"}


@pytest.mark.parametrize("change", CHANGES)
def test_full_disk__changes_nothing(tmp_path: Path, change: str) -> None:
    """A full disk is told, every file is whole, nothing half-made stays, and with room it works."""
    with small_disk(tmp_path / "disk") as disk:
        write_tree(disk.path, TREE)
        before = read_tree(disk.path)
        workspace = Workspace(disk.path)
        disk.fill()
        with pytest.raises(IoFailure, match="disk is full"):
            CHANGES[change](workspace)
        assert without_filler(disk) == before
        assert sorted(path.name for path in disk.path.iterdir()) == ["a.md", "filler.bin", "n"]
        disk.make_room()
        CHANGES[change](workspace)
        workspace.close()


def test_full_disk__reading_and_listing_go_on(tmp_path: Path) -> None:
    """Nothing that only reads needs room."""
    with small_disk(tmp_path / "disk") as disk:
        workspace = Workspace(write_tree(disk.path, TREE))
        disk.fill()
        assert workspace.read_document(P("a.md")).data == b"old"
        assert len(workspace.walk().files) == 3
        with WorkspaceLock(disk.path).hold():
            assert set(workspace.scan_documents().documents) == {"a.md", "n/b.md"}


def test_full_disk__in_the_middle_of_a_step(tmp_path: Path) -> None:
    """A change to several files that fills the disk is put back; what cannot be is put back when there is room."""
    with small_disk(tmp_path / "disk") as disk:
        workspace = Workspace(write_tree(disk.path, TREE))
        store = HistoryStore(tmp_path / "storage" / "history.db")
        journal = Journal(store, RestoringFiles(workspace))
        before = read_tree(disk.path)
        files = (
            FileChange(path=P("a.md"), before=b"old", after=b"new"),
            FileChange(path=P("c.md"), before=None, after=LARGE),
        )
        with pytest.raises(IoFailure), journal.step(tool="t", summary="s", files=files):
            workspace.swap(P("a.md"), b"new", workspace.read(P("a.md")).identity)
            disk.fill()
            workspace.create(P("c.md"), LARGE)
        disk.make_room()
        journal.recover()
        assert read_tree(disk.path) == before
        assert not store.has_pending()
        assert store.list() == ()
        store.close()
        workspace.close()


def test_full_disk__history_cannot_be_written(tmp_path: Path) -> None:
    """Where the history has no room, the change is not made."""
    with small_disk(tmp_path / "disk") as disk:
        workspace = Workspace(write_tree(tmp_path / "root", TREE))
        store = HistoryStore(disk.path / "history.db")
        journal = Journal(store, RestoringFiles(workspace))
        with journal.step(tool="t", summary="s", files=(FileChange(path=P("z.md"), before=None, after=b"z"),)):
            workspace.create(P("z.md"), b"z")
        disk.fill()
        change = FileChange(path=P("a.md"), before=bytes(range(256)) * 4000, after=b"new")
        with pytest.raises(IoFailure, match="full"), journal.step(tool="t", summary="s", files=(change,)):
            raise AssertionError
        assert (tmp_path / "root" / "a.md").read_bytes() == b"old"
        disk.make_room()
        assert len(store.list()) == 1
        store.close()
        workspace.close()


@pytest.mark.parametrize("change", [*CHANGES, *MORE])
def test_read_only__changes_nothing(tmp_path: Path, change: str) -> None:
    """A read-only file system is told; reading goes on; when it is writable again, so does writing."""
    with small_disk(tmp_path / "disk") as disk:
        write_tree(disk.path, TREE)
        before = read_tree(disk.path)
        workspace = Workspace(disk.path)
        disk.make_read_only()
        with pytest.raises(IoFailure, match="read-only"):
            {**CHANGES, **MORE}[change](workspace)
        assert read_tree(disk.path) == before
        assert workspace.read_document(P("a.md")).data == b"old"
        disk.make_writable()
        {**CHANGES, **MORE}[change](workspace)
        workspace.close()


def test_read_only__locks_and_history(tmp_path: Path) -> None:
    """On a read-only file system the workspace lock works, the lease says why it cannot, the history is read."""
    with small_disk(tmp_path / "disk") as disk:
        write_tree(disk.path, TREE)
        store = HistoryStore(disk.path / "storage" / "history.db")
        change = FileChange(path=P("a.md"), before=b"old", after=b"new")
        store.finish(store.begin(tool="t", summary="s", files=(change,)))
        store.close()
        disk.make_read_only()
        with WorkspaceLock(disk.path).hold():
            pass
        with pytest.raises(IoFailure, match="read-only"):
            IndexingLease(disk.path / "storage").try_acquire()
        store = HistoryStore(disk.path / "storage" / "history.db")
        assert len(store.list()) == 1
        with pytest.raises(IoFailure, match="read-only"):
            store.begin(tool="t", summary="s", files=(change,))
        store.close()
        assert HistoryStore(disk.path / "none" / "history.db").list() == ()
