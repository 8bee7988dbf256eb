"""Native events of the real system: what editors, sync clients and git do to a tree is noticed."""

import os
import shutil
import threading
import time
import unicodedata
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from tests.support.trees import write_tree

from local_vector_search_mcp.workspace import watch_native
from local_vector_search_mcp.workspace import watcher as watcher_module
from local_vector_search_mcp.workspace.changes_seen import SeenChanges
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.guard import OwnPaths
from local_vector_search_mcp.workspace.watch_polling import PollingSource
from local_vector_search_mcp.workspace.watcher import ChangeSource, Watcher, WatchFailed, WatchState

_DEADLINE_S = 20
linux = pytest.mark.skipif(not Path("/proc/sys/fs/inotify").is_dir(), reason="inotify is a part of Linux")


class Heard:
    """All that was delivered, to be waited for."""

    def __init__(self) -> None:
        self._changes: list[SeenChanges] = []
        self._arrived = threading.Condition()

    def __call__(self, changes: SeenChanges) -> None:
        with self._arrived:
            self._changes.append(changes)
            self._arrived.notify_all()

    def covers(self, path: str) -> bool:
        """Whether a path was told, or a folder above it."""
        folders = {""} | {path[:place] for place, character in enumerate(path) if character == "/"}
        return any(path in seen.paths or path in seen.folders or folders & seen.folders for seen in self._changes)

    def wait(self, *paths: str) -> None:
        """Wait until all paths were told."""
        with self._arrived:
            told = self._arrived.wait_for(lambda: all(map(self.covers, paths)), _DEADLINE_S)
            assert told, [path for path in paths if not self.covers(path)]

    def take(self) -> list[SeenChanges]:
        with self._arrived:
            taken, self._changes = self._changes, []
        return taken


class Tree:
    """A watched tree."""

    def __init__(self, root: Path, make: Callable[[Workspace], ChangeSource]) -> None:
        self.root = root
        self.workspace = Workspace(root, own=OwnPaths(directories=(root / ".store",)))
        self.heard = Heard()
        self.watcher = Watcher(
            self.workspace, native=lambda: make(self.workspace), polling=lambda: PollingSource(self.workspace)
        )
        self.watcher.start(self.heard)
        assert self.watcher.state is WatchState.NATIVE, self.watcher.reason

    def fence(self) -> list[SeenChanges]:
        """All that was told up to now: a marker file is written and waited for."""
        (self.root / "marker.md").write_text(str(time.monotonic_ns()))
        self.heard.wait("marker.md")
        return self.heard.take()


def unheard(*arguments: object) -> None:
    return


def observer(workspace: Workspace) -> ChangeSource:
    return watch_native.ObserverSource(workspace)


# On Linux, which has a source of its own here, watchdog's observer may meet a new folder twice at the same time: by its
# event and by a walk. It warns of that in its reading thread, which the warning as an error would end.
_MET_TWICE = pytest.mark.filterwarnings("ignore:Callback with id .* already exists:RuntimeWarning")


@pytest.fixture(params=[watch_native.native_source, pytest.param(observer, marks=_MET_TWICE)])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Tree]:
    """A watched tree, by the best source of this system and by watchdog's own observer."""
    root = write_tree(
        tmp_path / "root",
        {"a.md": "a", "n/b.md": "b", "n/deep/c.md": "c"}
        | {"node_modules/m/d.md": "d", ".store/index.db": "", ".git/x": ""},
    )
    watched = Tree(root, request.param)
    yield watched
    watched.watcher.stop()


def test_native__save_in_place(tree: Tree) -> None:
    """A file that is written is told."""
    (tree.root / "a.md").write_text("new")
    tree.heard.wait("a.md")
    assert tree.watcher.last_event_at is not None


def test_native__save_by_renaming(tree: Tree) -> None:
    """A temporary file that is renamed over a note tells of the note."""
    (tree.root / "n" / "t~").write_text("new")
    (tree.root / "n" / "t~").replace(tree.root / "n" / "b.md")
    tree.heard.wait("n/b.md")


def test_native__deleted_and_made_again(tree: Tree) -> None:
    """An editor that deletes and makes the file anew tells of it."""
    (tree.root / "a.md").unlink()
    (tree.root / "a.md").write_text("new")
    tree.heard.wait("a.md")


def test_native__new_folders_with_files(tree: Tree) -> None:
    """What is put into a folder in the moment that it is made is covered, and what comes later is told."""
    write_tree(tree.root, {f"new/{number}/x.md": "x" for number in range(20)})
    tree.heard.wait(*(f"new/{number}/x.md" for number in range(20)))
    tree.fence()
    (tree.root / "new" / "7" / "x.md").write_text("later")
    tree.heard.wait("new/7/x.md")


def test_native__folder_renamed(tree: Tree) -> None:
    """A renamed folder tells of both names, and is watched under the new one."""
    (tree.root / "n").rename(tree.root / "m")
    tree.heard.wait("n/b.md", "m/b.md", "n/deep/c.md", "m/deep/c.md")
    tree.fence()
    (tree.root / "m" / "deep" / "c.md").write_text("later")
    tree.heard.wait("m/deep/c.md")


def test_native__folder_moved_out(tree: Tree) -> None:
    """A folder that leaves the tree is told with all that it held."""
    (tree.root / "n").rename(tree.root.parent / "outside")
    tree.heard.wait("n/b.md", "n/deep/c.md")


def test_native__folder_removed(tree: Tree) -> None:
    """A removed folder is told with all that it held."""
    shutil.rmtree(tree.root / "n")
    tree.heard.wait("n/b.md", "n/deep/c.md")


def test_native__thousands_of_files(tree: Tree) -> None:
    """A checkout of many files is told, and not one by one."""
    write_tree(tree.root, {f"many/{number % 40}/{number}.md": "x" for number in range(3000)})
    tree.heard.wait(*(f"many/{number % 40}/{number}.md" for number in range(3000)))


def test_native__reading_is_no_change(tree: Tree) -> None:
    """Walking and reading raise nothing; nor do excluded folders, own files and temporary files."""
    tree.fence()
    for path in ("a.md", "n/b.md", "n/deep/c.md"):
        tree.workspace.read(tree.workspace.parse(path))
    tree.workspace.scan_documents()
    write_tree(tree.root, {"node_modules/m/e.md": "e", ".store/index.db-wal": "w", ".git/y": "y"})
    write_tree(tree.root, {".lvs-tmp-1-a.md": "t"})
    assert all(seen.paths == {"marker.md"} and not seen.folders for seen in tree.fence())


def test_native__own_swap_tells_of_the_document_alone(tree: Tree) -> None:
    """A swap tells of the document, and not of its temporary file."""
    tree.fence()
    path = tree.workspace.parse("n/b.md")
    tree.workspace.swap(path, b"new", tree.workspace.read(path).identity)
    tree.heard.wait("n/b.md")
    told = {path for seen in tree.fence() for path in seen.paths}
    assert told <= {"n/b.md", "marker.md"}


def test_native__gitignore(tree: Tree) -> None:
    """A changed .gitignore concerns all that lies beside and below it."""
    (tree.root / "n" / ".gitignore").write_text("c.md\n")
    tree.heard.wait("n/deep/c.md")


@linux
def test_inotify__watches_no_excluded_folder(tmp_path: Path) -> None:
    """Watches are scarce: excluded and ignored folders get none, until a rule lets them in."""
    inotify = pytest.importorskip("local_vector_search_mcp.workspace.watch_inotify")
    nfd = unicodedata.normalize("NFD", "é")
    root = write_tree(
        tmp_path,
        {"a/b/x.md": "", "node_modules/c/x.md": "", "build/d/x.md": "", f"{nfd}/x.md": "", ".gitignore": "build/"},
    )
    source = inotify.InotifySource(Workspace(root))
    source.start(unheard, unheard)
    try:
        assert source.watched == {"", "a", "a/b", "é"}
        (root / ".gitignore").write_text("")
        deadline = time.monotonic() + _DEADLINE_S
        while "build/d" not in source.watched:
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
        assert "node_modules" not in source.watched
    finally:
        source.stop()


@linux
def test_inotify__folder_moved_out(tmp_path: Path) -> None:
    """A folder that has left the tree is watched no longer."""
    tree = Tree(write_tree(tmp_path / "root", {"n/b.md": "b"}), watch_native.native_source)
    (tree.root / "n").rename(tmp_path / "outside")
    tree.heard.wait("n/b.md")
    tree.fence()
    (tmp_path / "outside" / "b.md").write_text("later")
    assert all(seen.paths == {"marker.md"} and not seen.folders for seen in tree.fence())
    tree.watcher.stop()


@linux
@pytest.mark.parametrize(("code", "reason"), [(28, "max_user_watches"), (24, "max_user_instances"), (13, "denied")])
def test_inotify__limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, reason: str) -> None:
    """A limit that is reached at the start makes it poll, with the reason and the remedy."""
    from watchdog.observers.inotify_c import InotifyFD

    def refuse(*arguments: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(InotifyFD, "add_callback", refuse)
    workspace = Workspace(write_tree(tmp_path, {"a.md": ""}))
    watcher = Watcher(
        workspace,
        native=lambda: watch_native.native_source(workspace),
        polling=lambda: PollingSource(workspace, interval_s=0.02),
    )
    heard = Heard()
    watcher.start(heard)
    assert watcher.state is WatchState.POLLING
    assert reason in (watcher.reason or "")
    (tmp_path / "b.md").write_text("x")
    heard.wait("b.md")
    watcher.stop()


@linux
def test_inotify__limit_reached_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that a new folder reaches makes it poll from then on; nothing is missed."""
    from watchdog.observers.inotify_c import InotifyFD

    tree = Tree(write_tree(tmp_path, {"a.md": ""}), watch_native.native_source)

    def refuse(*arguments: object) -> int:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(InotifyFD, "add_callback", refuse)
    write_tree(tmp_path, {"new/x.md": "x"})
    tree.heard.wait("new/x.md")
    deadline = time.monotonic() + _DEADLINE_S
    while tree.watcher.state is not WatchState.POLLING:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    assert "max_user_watches" in (tree.watcher.reason or "")
    tree.watcher.stop()


def test_native__vanished_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A root that goes makes it poll; everything is looked at, and when it is back it is watched natively again."""
    monkeypatch.setattr(watcher_module, "_LIVENESS_S", 0.05)
    tree = Tree(write_tree(tmp_path / "root", {"a.md": ""}), watch_native.native_source)
    (tmp_path / "root").rename(tmp_path / "away")
    tree.heard.wait("a.md")
    assert tree.watcher.is_alive()
    tree.heard.take()
    write_tree(tmp_path / "away", {"n/meanwhile.md": ""})
    (tmp_path / "away").rename(tmp_path / "root")
    deadline = time.monotonic() + _DEADLINE_S
    while tree.watcher.state is not WatchState.NATIVE:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    tree.heard.wait("n/meanwhile.md")
    tree.fence()
    write_tree(tmp_path / "root", {"n/later.md": ""})
    tree.heard.wait("n/later.md")
    tree.watcher.stop()


def test_native__missing_root(tmp_path: Path) -> None:
    """A root that is gone before the start cannot be watched natively."""
    root = write_tree(tmp_path / "root", {})
    source = watch_native.native_source(Workspace(root))
    root.rmdir()
    with pytest.raises(WatchFailed):
        source.start(unheard, unheard)
    source.stop()
