"""Events that come late: what the watches stand for when the tree went on before they were told."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.trees import write_tree

pytest.importorskip("watchdog.observers.inotify_c", reason="inotify is a part of Linux", exc_type=ImportError)

from watchdog.observers.inotify_c import CallbackId, InotifyConstants, InotifyEvent, Mask, WatchDescriptor

from local_vector_search_mcp.workspace import watch_inotify
from local_vector_search_mcp.workspace.files import Workspace

FROM = InotifyConstants.IN_MOVED_FROM | InotifyConstants.IN_ISDIR
TO = InotifyConstants.IN_MOVED_TO | InotifyConstants.IN_ISDIR
WRITTEN = InotifyConstants.IN_CLOSE_WRITE


class Reader:
    """The system's side: a folder keeps its watch descriptor under any name, as inodes do."""

    def __init__(self) -> None:
        self.watched: set[WatchDescriptor] = set()

    def start(self) -> None:
        return

    def is_alive(self) -> bool:
        return False

    def stop(self) -> None:
        return

    def add_callback(self, path: bytes, _mask: Mask, _callback: object, _id: CallbackId) -> WatchDescriptor:
        descriptor = WatchDescriptor(Path(os.fsdecode(path)).stat().st_ino)
        self.watched.add(descriptor)
        return descriptor

    def remove_callbacks(self, callbacks: Sequence[tuple[WatchDescriptor, CallbackId]]) -> None:
        for descriptor, _ in callbacks:
            self.watched.remove(descriptor)


class Late:
    """A watched tree whose events are handed over by hand, as late as a test likes."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reader = Reader()
        monkeypatch.setattr(watch_inotify, "InotifyFD", lambda: self.reader)
        self.root = write_tree(root, {"n/b.md": "b", "n/deep/c.md": "c"})
        self.told: list[str] = []
        self.failures: list[str] = []
        self.source = watch_inotify.InotifySource(Workspace(self.root))
        self.source.start(lambda path, _folder: self.told.append(path), self.failures.append)

    def descriptor(self, folder: str) -> WatchDescriptor:
        return WatchDescriptor((self.root / folder).stat().st_ino)

    def tell(self, folder: str, mask: int, name: str) -> None:
        self.source.on_event(InotifyEvent(self.descriptor(folder), Mask(mask), 0, name.encode()))

    def check(self, *folders: str) -> None:
        """The watched folders are these, each has a watch of the system, and a save in each is told by its name."""
        assert self.source.watched == {"", *folders}
        assert self.reader.watched == {self.descriptor(folder) for folder in ("", *folders)}
        for folder in folders:
            self.told.clear()
            self.tell(folder, WRITTEN, "x.md")
            assert self.told == [f"{folder}/x.md"]
        assert not self.failures


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Late:
    return Late(tmp_path / "root", monkeypatch)


def test_late__moved_before_it_is_told(late: Late) -> None:
    """The walk finds a moved folder before its events come: its watch goes on under the new name."""
    (late.root / "n").rename(late.root / "m")
    late.source.on_queue_overflow()
    late.tell("", FROM, "n")
    late.tell("", TO, "m")
    late.check("m", "m/deep")


def test_late__moved_twice_before_it_is_told(late: Late) -> None:
    """A folder that is known under two names for a moment is forgotten once, and watched under the last."""
    (late.root / "n").rename(late.root / "m")
    late.source.on_queue_overflow()
    (late.root / "m").rename(late.root / "k")
    late.source.on_queue_overflow()
    for old, new in (("n", "m"), ("m", "k")):
        late.tell("", FROM, old)
        late.tell("", TO, new)
    late.check("k", "k/deep")


def test_late__moved_there_and_back(late: Late) -> None:
    """A folder that is where it was again is watched when all is told."""
    (late.root / "n").rename(late.root / "m")
    late.source.on_queue_overflow()
    (late.root / "m").rename(late.root / "n")
    for old, new in (("n", "m"), ("m", "n")):
        late.tell("", FROM, old)
        late.tell("", TO, new)
    late.check("n", "n/deep")


def test_late__another_takes_its_place(late: Late) -> None:
    """A folder moves away and a new one takes its name before either is told: both are watched."""
    (late.root / "n").rename(late.root / "m")
    write_tree(late.root, {"n/b.md": "new"})
    late.source.on_queue_overflow()
    late.tell("", FROM, "n")
    late.tell("", TO, "m")
    late.tell("", InotifyConstants.IN_CREATE | InotifyConstants.IN_ISDIR, "n")
    late.check("m", "m/deep", "n")


def test_late__gone_from_the_tree(late: Late) -> None:
    """A folder that left the tree is watched no more."""
    (late.root / "n").rename(late.root.parent / "elsewhere")
    late.tell("", FROM, "n")
    late.check()
