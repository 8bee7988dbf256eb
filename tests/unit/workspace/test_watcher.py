"""Watcher: batches, fall-back to polling, and what it tells about itself. Sources are fakes here."""

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


def watched(tmp_path: Path, native: ChangeSource | None, polling: ChangeSource) -> tuple[Watcher, Received]:
    workspace = Workspace(write_tree(tmp_path, {"a.md": "x"}))
    watcher = Watcher(workspace, native=(lambda: native) if native is not None else None, polling=lambda: polling)
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


def test_polling__by_itself(tmp_path: Path) -> None:
    """The thread polls on its own."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "1"}))
    source, told = PollingSource(workspace, interval_s=0.02), Told()
    source.start(told, never)
    (tmp_path / "b.md").write_text("x")
    wait_until(lambda: ("b.md", False) in told.paths)
    source.stop()
