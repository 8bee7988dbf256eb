"""Watcher: batches, fall-back to polling, and what it tells about itself. Sources are fakes here."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.trees import write_tree

from local_vector_search_mcp.workspace import watcher as watcher_module
from local_vector_search_mcp.workspace.changes_seen import SeenChanges
from local_vector_search_mcp.workspace.entries import Skipped
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.walking import TreeScan
from local_vector_search_mcp.workspace.watch_polling import PollingSource
from local_vector_search_mcp.workspace.watcher import ChangeSource, Report, Watcher, WatchFailed, WatchState

_DEADLINE_S = 20


class FakeSource:
    """A source whose events the test makes."""

    def __init__(self, *, refuses: str | None = None) -> None:
        self.refuses = refuses
        self.alive = False
        self.stopped = 0
        self.report: Report = lambda path, folder: None
        self.failed: Callable[[str], None] = lambda reason: None

    def start(self, report: Report, failed: Callable[[str], None]) -> None:
        if self.refuses is not None:
            raise WatchFailed(self.refuses)
        self.report, self.failed, self.alive = report, failed, True

    def is_alive(self) -> bool:
        return self.alive

    def stop(self) -> None:
        self.alive = False
        self.stopped += 1


class Received:
    """Batches as they are delivered, to be waited for."""

    def __init__(self) -> None:
        self.batches: list[SeenChanges] = []
        self._arrived = threading.Condition()

    def __call__(self, changes: SeenChanges) -> None:
        with self._arrived:
            self.batches.append(changes)
            self._arrived.notify_all()

    def wait(self, count: int = 1) -> list[SeenChanges]:
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.batches) >= count, _DEADLINE_S)
        return self.batches


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


class Clock:
    """A clock that the test puts forward; it goes by itself too."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


def watched(
    tmp_path: Path, native: ChangeSource | None, polling: ChangeSource, clock: Callable[[], float] = time.monotonic
) -> tuple[Watcher, Received]:
    workspace = Workspace(write_tree(tmp_path, {"a.md": "x"}))
    watcher = Watcher(
        workspace, native=(lambda: native) if native is not None else None, polling=lambda: polling, clock=clock
    )
    received = Received()
    watcher.start(received)
    return watcher, received


def test_native__delivers_batches(tmp_path: Path) -> None:
    """Changes come in batches; the state is native, and the time of the last event is known."""
    native = FakeSource()
    watcher, received = watched(tmp_path, native, FakeSource())
    assert (watcher.state, watcher.reason, watcher.last_event_at) == (WatchState.NATIVE, None, None)
    native.report("a.md", False)
    native.report("b.md", False)
    assert received.wait()[0].paths == {"a.md", "b.md"}
    native.report("n", True)
    assert received.wait(2)[1].folders == {"n"}
    assert watcher.last_event_at is not None
    assert watcher.is_alive()
    watcher.stop()
    assert native.stopped == 1
    assert (watcher.state, watcher.is_alive()) == (WatchState.OFF, False)


def test_native__refused(tmp_path: Path) -> None:
    """Where native events cannot be had, it polls, and says why."""
    polling = FakeSource()
    watcher, received = watched(tmp_path, FakeSource(refuses="the limit is reached"), polling)
    assert (watcher.state, watcher.reason) == (WatchState.POLLING, "the limit is reached")
    polling.report("a.md", False)
    assert received.wait()[0].paths == {"a.md"}
    watcher.stop()


@pytest.mark.parametrize("how", ["told", "died"])
def test_native__fails_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """A source that stops working is replaced by polling, and everything is looked at once."""
    monkeypatch.setattr(watcher_module, "_LIVENESS_S", 0.05)
    native, polling = FakeSource(), FakeSource()
    watcher, received = watched(tmp_path, native, polling)
    if how == "told":
        native.failed("the limit of inotify watches is reached")
    else:
        native.alive = False
    assert received.wait()[0].everything
    assert watcher.state is WatchState.POLLING
    assert watcher.reason is not None
    assert ("limit" if how == "told" else "died") in watcher.reason
    assert native.stopped == 1
    assert watcher.is_alive()
    watcher.stop()


def test_native__silent_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that does not tell of all changes native events are not even tried."""
    monkeypatch.setattr(watcher_module, "silent_mount", lambda path: "nfs4")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    native = FakeSource()
    watcher, _ = watched(tmp_path, native, FakeSource())
    assert watcher.state is WatchState.POLLING
    assert "nfs4" in (watcher.reason or "")
    assert not native.alive
    watcher.stop()


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder with open files")
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("comes", ["back", "anew"])
def test_native__root_that_goes_and_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool, comes: str
) -> None:
    """A root that goes is polled, whether or not events tell it; when one stands there again it is watched natively."""
    monkeypatch.setattr(watcher_module, "_LIVENESS_S", 0.02)
    root, native, polling = tmp_path / "root", FakeSource(), FakeSource()
    watcher, received = watched(root, native, polling)
    root.rename(tmp_path / "away")
    if told:
        native.failed(watcher_module.ROOT_GONE)
    wait_until(lambda: watcher.state is WatchState.POLLING)
    assert (watcher.state, watcher.reason) == (WatchState.POLLING, watcher_module.ROOT_GONE)
    assert received.wait()[0].everything
    if comes == "back":
        (tmp_path / "away").rename(root)
    else:
        root.mkdir()
    wait_until(lambda: watcher.state is WatchState.NATIVE)
    assert (watcher.reason, native.alive, polling.alive) == (None, True, False)
    assert received.wait(2)[1].everything
    native.report("a.md", False)
    assert received.wait(3)[2].paths == {"a.md"}
    watcher.stop()


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder with open files")
def test_native__another_directory_in_the_root_s_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of a directory that no longer stands there are not taken for those of the one that does."""
    monkeypatch.setattr(watcher_module, "_LIVENESS_S", 0.02)
    root, native = tmp_path / "root", FakeSource()
    watcher, received = watched(root, native, FakeSource())
    (tmp_path / "other").mkdir()
    root.rename(tmp_path / "away")
    (tmp_path / "other").rename(root)
    assert received.wait()[0].everything
    wait_until(lambda: native.stopped == 1 and watcher.state is WatchState.NATIVE)
    watcher.stop()


def test_native__is_tried_again_after_some_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Native events that were refused are tried again every ten minutes, and polling goes on until they can be had."""
    monkeypatch.setattr(watcher_module, "_LIVENESS_S", 0.02)
    tried: list[str] = []

    class Refusing(FakeSource):
        def start(self, report: Report, failed: Callable[[str], None]) -> None:
            tried.append("start")
            super().start(report, failed)

    native, polling, clock = Refusing(refuses="the limit is reached"), FakeSource(), Clock()
    watcher, received = watched(tmp_path, native, polling, clock)
    clock.ahead = 590
    polling.report("a.md", False)
    received.wait(1)
    assert (watcher.state, len(tried)) == (WatchState.POLLING, 1)
    native.refuses = "the limit is still reached"
    clock.ahead = 601
    wait_until(lambda: watcher.reason == "the limit is still reached")
    assert (watcher.state, len(tried), polling.alive) == (WatchState.POLLING, 2, True)
    native.refuses = None
    clock.ahead = 1202
    wait_until(lambda: watcher.state is WatchState.NATIVE)
    assert (watcher.reason, len(tried), polling.alive) == (None, 3, False)
    watcher.stop()


def test_stop__is_quick_and_final(tmp_path: Path) -> None:
    """After stopping nothing is delivered; it can be started again."""
    native = FakeSource()
    watcher, received = watched(tmp_path, native, FakeSource())
    native.report("a.md", False)
    watcher.stop()
    watcher.stop()
    assert received.batches == []
    watcher.start(received)
    assert watcher.state is WatchState.NATIVE
    with pytest.raises(RuntimeError):
        watcher.start(received)
    watcher.stop()


class Told:
    """What a source reported."""

    def __init__(self) -> None:
        self.paths: list[tuple[str, bool]] = []

    def __call__(self, path: str, folder: bool) -> None:
        self.paths.append((path, folder))

    def take(self) -> set[tuple[str, bool]]:
        taken, self.paths = set(self.paths), []
        return taken


def never(reason: str) -> None:
    raise AssertionError(reason)


def test_polling__reports_differences(tmp_path: Path) -> None:
    """New, changed and removed documents are told; what is no document is not."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "1", "n/b.md": "2", "c.md": "3"}))
    source, told = PollingSource(workspace, interval_s=3600), Told()
    source.start(told, never)
    source.poll()
    assert told.take() == set()
    (tmp_path / "a.md").write_text("longer")
    (tmp_path / "c.md").unlink()
    write_tree(tmp_path, {"d.md": "", "x.txt": "", "node_modules/e.md": ""})
    source.poll()
    assert told.take() == {("a.md", False), ("c.md", False), ("d.md", False)}
    assert source.is_alive()
    source.stop()
    assert not source.is_alive()


def test_polling__unreadable_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a folder held that cannot be read now is not told to be gone; nor is anything if the root is away."""
    workspace = Workspace(write_tree(tmp_path / "root", {"a.md": "1", "n/b.md": "2"}))
    source, told = PollingSource(workspace, interval_s=3600), Told()
    source.start(told, never)
    scan = workspace.scan_documents()

    def without_n(below: str = "") -> object:
        return TreeScan(documents={"a.md": scan.documents["a.md"]}, unreadable=[Skipped("n", "closed")])

    with monkeypatch.context() as patched:
        patched.setattr(workspace, "scan_documents", without_n)
        source.poll()
    assert told.take() == set()
    (tmp_path / "root").rename(tmp_path / "away")
    source.poll()
    (tmp_path / "away").rename(tmp_path / "root")
    source.poll()
    assert told.take() == set()
    source.stop()


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder with open files")
def test_polling__root_that_was_never_seen(tmp_path: Path) -> None:
    """A root that was away from the start may hold anything when it comes; after that only differences are told."""
    workspace = Workspace(write_tree(tmp_path / "root", {"a.md": "1"}))
    (tmp_path / "root").rename(tmp_path / "away")
    source, told = PollingSource(workspace, interval_s=3600), Told()
    source.start(told, never)
    assert told.take() == set()
    (tmp_path / "away").rename(tmp_path / "root")
    source.poll()
    assert told.take() == {("", True)}
    source.poll()
    assert told.take() == set()
    source.stop()


def test_polling__by_itself(tmp_path: Path) -> None:
    """The thread polls on its own."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "1"}))
    source, told = PollingSource(workspace, interval_s=0.02), Told()
    source.start(told, never)
    (tmp_path / "b.md").write_text("x")
    wait_until(lambda: ("b.md", False) in told.paths)
    source.stop()
