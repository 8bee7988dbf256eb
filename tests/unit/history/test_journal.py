"""Journal: changes as one step, put back after a failure, finished or put back after a crash."""

import logging
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import AlreadyExists, Conflict, ConflictReason, InvalidPath, IoFailure, NotFound
from local_vector_search_mcp.history.changes import ChangeState, FileChange
from local_vector_search_mcp.history.journal import Journal, RecoveryOutcome
from local_vector_search_mcp.history.store import HistorySettings, HistoryStore
from local_vector_search_mcp.relpath import RelPath

P = RelPath


class MemoryFiles:
    """Files in memory, with the checks of real ones; ``refused`` paths cannot be touched."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = dict(files)
        self.refused: set[str] = set()

    def read_bytes(self, path: RelPath) -> bytes | None:
        if path.value in self.refused:
            raise InvalidPath(path.value)
        return self.files.get(path.value)

    def put(self, path: RelPath, data: bytes, *, expected_hash: str | None) -> None:
        if expected_hash is None:
            if path.value in self.files:
                raise AlreadyExists(path.value)
        else:
            self._expect(path, expected_hash)
        self.files[path.value] = data

    def take_away(self, path: RelPath, *, expected_hash: str) -> None:
        self._expect(path, expected_hash)
        del self.files[path.value]

    def rename(self, old: RelPath, new: RelPath, *, expected_hash: str) -> None:
        self._expect(old, expected_hash)
        if new.value in self.files:
            raise AlreadyExists(new.value)
        self.files[new.value] = self.files.pop(old.value)

    def _expect(self, path: RelPath, expected_hash: str) -> None:
        if path.value not in self.files:
            raise NotFound(path.value)
        if xxh64_hex(self.files[path.value]) != expected_hash:
            raise Conflict(path.value, reason=ConflictReason.SOURCE_CHANGED)


EDIT = FileChange(path=P("a.md"), before=b"old a", after=b"new a")
MAKE = FileChange(path=P("n/c.md"), before=None, after=b"new c")
DROP = FileChange(path=P("d.md"), before=b"old d", after=None)
MOVE = FileChange(path=P("x/m.md"), previous_path=P("m.md"), before=b"old m", after=b"old m")
TURN = FileChange(path=P("x/t.md"), previous_path=P("t.md"), before=b"old t", after=b"new t")
BEFORE = {"a.md": b"old a", "d.md": b"old d", "m.md": b"old m", "t.md": b"old t", "other.md": b"other"}

# For each change the states that its files go through: before, perhaps between, after. None takes a file away.
Steps = list[dict[str, bytes | None]]
PASSES: list[tuple[FileChange, Steps]] = [
    (EDIT, [{}, {"a.md": b"new a"}]),
    (MAKE, [{}, {"n/c.md": b"new c"}]),
    (DROP, [{}, {"d.md": None}]),
    (MOVE, [{}, {"m.md": None, "x/m.md": b"old m"}]),
    (
        TURN,
        [
            {},
            {"t.md": None, "x/t.md": b"old t"},
            {"x/t.md": b"new t"},
            {"t.md": None, "x/t.md": b"new t"},
        ],
    ),
]


def on_disk(*differences: dict[str, bytes | None]) -> dict[str, bytes]:
    """The files of before, with differences."""
    merged: dict[str, bytes | None] = dict(BEFORE)
    for difference in differences:
        merged.update(difference)
    return {path: data for path, data in merged.items() if data is not None}


def crashed(tmp_path: Path, changes: Sequence[FileChange], files: dict[str, bytes]) -> tuple[Journal, MemoryFiles]:
    """A journal with one open change, as a process that died left it, and the files."""
    store = HistoryStore(tmp_path / "history.db")
    store.begin(tool="kb_move", summary="Move things", files=changes)
    memory = MemoryFiles(files)
    return Journal(HistoryStore(tmp_path / "history.db"), memory), memory


ALONE = [(change, step, steps) for change, steps in PASSES for step in range(len(steps))]


@pytest.mark.parametrize(("change", "step", "steps"), ALONE)
def test_recover__one_file(
    tmp_path: Path,
    change: FileChange,
    step: int,
    steps: list[dict[str, bytes | None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Wherever the crash came, the file is as before or as after, and the history knows which."""
    journal, memory = crashed(tmp_path, [change], on_disk(steps[step]))
    (recovery,) = journal.recover()
    last = step == len(steps) - 1
    assert memory.files == (on_disk(steps[-1]) if last else BEFORE)
    expected = RecoveryOutcome.FINISHED if last else RecoveryOutcome.NOTHING if step == 0 else RecoveryOutcome.PUT_BACK
    assert recovery.outcome is expected
    assert len(HistoryStore(tmp_path / "history.db").list()) == int(last)
    assert journal.recover() == ()
    assert recovery.message in caplog.text


def test_recover__every_mixture(tmp_path: Path) -> None:
    """A change to several files is whole or not at all, in every mixture of how far each had come."""
    changes = [change for change, _ in PASSES]
    store = HistoryStore(tmp_path / "history.db")
    for mixture in product(*(steps for _, steps in PASSES)):
        store.begin(tool="t", summary="", files=changes)
        memory = MemoryFiles(on_disk(*mixture))
        (recovery,) = Journal(store, memory).recover()
        complete = all(step is steps[-1] for step, (_, steps) in zip(mixture, PASSES, strict=True))
        assert memory.files == (on_disk(*mixture) if complete else BEFORE), mixture
        assert (recovery.outcome is RecoveryOutcome.FINISHED) is complete


def test_recover__leaves_what_others_changed(tmp_path: Path) -> None:
    """A file that an editor has changed since stays; the rest is put back, and the old bytes stay recorded."""
    journal, memory = crashed(tmp_path, [EDIT, MAKE, DROP], on_disk({"a.md": b"editor", "n/c.md": b"new c"}))
    (recovery,) = journal.recover()
    assert recovery.outcome is RecoveryOutcome.LEFT
    assert [file.path.value for file in recovery.left] == ["a.md"]
    assert "a.md" in recovery.message
    assert memory.files == on_disk({"a.md": b"editor"})
    store = HistoryStore(tmp_path / "history.db")
    (change,) = store.list()
    assert change.state is ChangeState.INTERRUPTED
    assert [each.before for each in store.images(change.change_id)] == [b"old a"]


@pytest.mark.parametrize("taken", [{"d.md": b"editor"}, {"m.md": b"editor", "x/m.md": b"old m"}])
def test_recover__never_over_a_new_file(tmp_path: Path, taken: dict[str, bytes | None]) -> None:
    """Where an editor has put another file in the old place, that file stays."""
    journal, memory = crashed(tmp_path, [DROP, MOVE, EDIT], on_disk({"d.md": None, "a.md": b"new a"}, taken))
    (recovery,) = journal.recover()
    assert recovery.outcome is RecoveryOutcome.LEFT
    for path, data in taken.items():
        assert memory.files[path] == data
    assert memory.files["a.md"] == b"old a"


@pytest.mark.parametrize("path", ["script.py", "n/.env", "x.md.sh", "history.db"])
def test_recover__only_markdown_images_and_books(tmp_path: Path, path: str) -> None:
    """A record that names another kind of file is not believed, and the file stays as it is."""
    forged = FileChange(path=P(path), before=b"evil", after=b"present")
    journal, memory = crashed(tmp_path, [forged, EDIT], {**on_disk(), path: b"present"})
    (recovery,) = journal.recover()
    assert memory.files == {**on_disk(), path: b"present"}
    assert recovery.outcome is RecoveryOutcome.LEFT


def test_recover__refused_paths(tmp_path: Path) -> None:
    """A path that the rules refuse now is left alone, and the others are put back."""
    journal, memory = crashed(tmp_path, [EDIT, MAKE, DROP], on_disk({"a.md": b"new a", "n/c.md": b"new c"}))
    memory.refused.add("a.md")
    (recovery,) = journal.recover()
    assert recovery.outcome is RecoveryOutcome.LEFT
    assert memory.files == on_disk({"a.md": b"new a"})


def test_recover__nothing_open(tmp_path: Path) -> None:
    """Without an open change nothing is done and no file is made."""
    assert Journal(HistoryStore(tmp_path / "none" / "history.db"), MemoryFiles({})).recover() == ()
    assert not (tmp_path / "none").exists()


def test_recover__several_open(tmp_path: Path) -> None:
    """Changes that were left open on one file are unwound from the newest."""
    store = HistoryStore(tmp_path / "history.db")
    first = FileChange(path=P("a.md"), before=b"one", after=b"two")
    second = FileChange(path=P("a.md"), before=b"two", after=b"three")
    store.begin(tool="t", summary="", files=[first, MAKE])
    store.begin(tool="t", summary="", files=[second, MAKE])
    memory = MemoryFiles({"a.md": b"three"})
    outcomes = [recovery.outcome for recovery in Journal(store, memory).recover()]
    assert outcomes == [RecoveryOutcome.PUT_BACK, RecoveryOutcome.PUT_BACK]
    assert memory.files == {"a.md": b"one"}


def apply(memory: MemoryFiles, *differences: dict[str, bytes | None]) -> None:
    for difference in differences:
        for path, data in difference.items():
            if data is None:
                memory.files.pop(path, None)
            else:
                memory.files[path] = data


@pytest.mark.parametrize("enabled", [True, False])
def test_step__done(tmp_path: Path, enabled: bool) -> None:
    """A step that ends is in the history, if there is one."""
    store = HistoryStore(tmp_path / "history.db", HistorySettings(enabled=enabled))
    memory = MemoryFiles(BEFORE)
    with Journal(store, memory).step(tool="kb_patch", summary="s", files=[EDIT], undoes="x") as step:
        assert store.has_pending()
        apply(memory, {"a.md": b"new a"})
    assert not store.has_pending()
    assert (step.change_id is not None) is enabled
    assert [change.change_id for change in store.list()] == ([step.change_id] if enabled else [])


@pytest.mark.parametrize("done", range(6))
@pytest.mark.parametrize("error", [IoFailure("full"), KeyboardInterrupt()])
def test_step__fails(tmp_path: Path, done: int, error: BaseException) -> None:
    """A step that fails puts back what it had done, however much that was, and lets the error go on."""
    store, memory = HistoryStore(tmp_path / "history.db"), MemoryFiles(BEFORE)
    changes = [change for change, _ in PASSES]
    with pytest.raises(type(error)), Journal(store, memory).step(tool="t", summary="s", files=changes) as step:
        for change, steps in PASSES[:done]:
            apply(memory, steps[-1])
            step.wrote(change.path)
        raise error
    assert memory.files == BEFORE
    assert store.list() == ()
    assert not store.has_pending()


def test_step__conflict_is_not_its_doing(tmp_path: Path) -> None:
    """A file that an editor changed before it could be written was never written: no record of it stays."""
    store, memory = HistoryStore(tmp_path / "history.db"), MemoryFiles(BEFORE)
    with (
        pytest.raises(Conflict),
        Journal(store, memory).step(tool="t", summary="s", files=[MAKE, EDIT]) as step,
    ):
        apply(memory, {"n/c.md": b"new c", "a.md": b"editor"})
        step.wrote(P("n/c.md"))
        raise Conflict("a.md", reason=ConflictReason.SOURCE_CHANGED)
    assert memory.files == on_disk({"a.md": b"editor"})
    assert store.list() == ()


def test_step__editor_over_a_written_file(tmp_path: Path) -> None:
    """A file that was written and then changed by an editor keeps the editor's version, and its old bytes recorded."""
    store, memory = HistoryStore(tmp_path / "history.db"), MemoryFiles(BEFORE)
    with pytest.raises(IoFailure), Journal(store, memory).step(tool="t", summary="s", files=[EDIT, MAKE]) as step:
        apply(memory, {"a.md": b"new a"})
        step.wrote(P("a.md"))
        apply(memory, {"a.md": b"editor"})
        raise IoFailure("full")
    assert memory.files == on_disk({"a.md": b"editor"})
    (change,) = store.list()
    assert [each.before for each in store.images(change.change_id)] == [b"old a"]


class FullDisk(MemoryFiles):
    """Files of which none can be written while the disk is full."""

    full = True

    def put(self, path: RelPath, data: bytes, *, expected_hash: str | None) -> None:
        if self.full:
            raise IoFailure("full")
        super().put(path, data, expected_hash=expected_hash)


def test_step__cannot_be_put_back_now(tmp_path: Path) -> None:
    """What a full disk does not let be put back stays open, and is put back when there is room again."""
    store, memory = HistoryStore(tmp_path / "history.db"), FullDisk(BEFORE)
    journal = Journal(store, memory)
    with pytest.raises(IoFailure), journal.step(tool="t", summary="s", files=[EDIT, MAKE]) as step:
        apply(memory, {"a.md": b"new a", "n/c.md": b"new c"})
        step.wrote(P("a.md"))
        raise IoFailure("full")
    assert memory.files == on_disk({"a.md": b"new a"})
    assert [recovery.outcome for recovery in journal.recover()] == [RecoveryOutcome.POSTPONED]
    memory.full = False
    assert [recovery.outcome for recovery in journal.recover()] == [RecoveryOutcome.PUT_BACK]
    assert memory.files == BEFORE
    assert journal.recover() == ()


def test_step__cannot_be_recorded(tmp_path: Path) -> None:
    """A change that cannot be recorded is not made."""
    (tmp_path / "history.db").write_bytes(b"no database" * 100)
    ran: list[int] = []
    with (
        pytest.raises(IoFailure),
        Journal(HistoryStore(tmp_path / "history.db"), MemoryFiles({})).step(tool="t", summary="s", files=[EDIT]),
    ):
        ran.append(1)
    assert ran == []


def test_step__mark_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """If only the mark of being done cannot be written, the change stands, and recovery finds it complete."""
    store, memory = HistoryStore(tmp_path / "history.db"), MemoryFiles(BEFORE)
    journal = Journal(store, memory)

    def full(change_id: str) -> None:
        raise IoFailure("full")

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(store, "finish", full)
        with journal.step(tool="t", summary="s", files=[EDIT]):
            apply(memory, {"a.md": b"new a"})
    assert "IO_ERROR" in caplog.text
    assert [recovery.outcome for recovery in journal.recover()] == [RecoveryOutcome.FINISHED]
    assert len(store.list()) == 1
