"""Writing whole or not at all: a failure at every step leaves the old file and nothing else."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.trees import read_tree, write_tree

from local_vector_search_mcp.errors import AlreadyExists, Busy, Conflict, IoFailure
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace import atomic_write
from local_vector_search_mcp.workspace.entries import FileIdentity
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.folders import DescriptorFolder, Folder

P = RelPath
TREE: dict[str, str | bytes | None] = {"a.md": "old", "n/b.md": "other"}

CHANGES: dict[str, Callable[[Workspace], object]] = {
    "swap": lambda workspace: workspace.swap(P("a.md"), b"new", identity(workspace, "a.md")),
    "create": lambda workspace: workspace.create(P("fresh/folder/c.md"), b"new"),
    "move": lambda workspace: workspace.move(P("a.md"), P("fresh/c.md"), expected=identity(workspace, "a.md")),
    "delete": lambda workspace: workspace.delete(P("a.md"), identity(workspace, "a.md")),
}
# The steps that each change takes, and at which the system may refuse.
STEPS = [
    *(("swap", "write"), ("swap", "fsync"), ("swap", "create"), ("swap", "exchange")),
    *(("create", "write"), ("create", "fsync"), ("create", "create"), ("create", "rename"), ("create", "make_folder")),
    *(("move", "rename"), ("move", "make_folder")),
    ("delete", "rename"),
]
REASONS = {
    errno.ENOSPC: "disk is full",
    errno.EDQUOT: "disk is full",
    errno.EROFS: "read-only",
    errno.EACCES: "permit",
    errno.EIO: "input/output error",
}


def identity(workspace: Workspace, text: str) -> FileIdentity:
    found = workspace.identity(P(text))
    assert found is not None
    return found


class Failing:
    """A step of the system that fails."""

    def __init__(self, code: int) -> None:
        self._code = code

    def __call__(self, *arguments: object, **options: object) -> int:
        raise OSError(self._code, os.strerror(self._code))


def no_exchange(self: Folder, name: str, other: str) -> bool:
    return False


def no_replace(self: Folder, name: str, target: Folder, target_name: str) -> None:
    return


def no_sleep(seconds: float) -> None:
    return


def fail(monkeypatch: pytest.MonkeyPatch, step: str, code: int) -> None:
    if step in ("write", "fsync"):
        monkeypatch.setattr(os, step, Failing(code))
    else:
        monkeypatch.setattr(DescriptorFolder, step, Failing(code))


@pytest.mark.skipif(os.name == "nt", reason="fails steps of the POSIX implementation")
@pytest.mark.parametrize("code", REASONS)
@pytest.mark.parametrize(("change", "step"), STEPS)
def test_failure__changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, step: str, code: int
) -> None:
    """A full disk, a read-only or failing one: one clear error, all files as before, no temporary file, no folder."""
    workspace = Workspace(write_tree(tmp_path, TREE))
    with monkeypatch.context() as patched:
        fail(patched, step, code)
        with pytest.raises(IoFailure, match=REASONS[code]) as refused:
            CHANGES[change](workspace)
    assert "nothing was changed" in refused.value.message
    assert read_tree(tmp_path) == {"a.md": b"old", "n/b.md": b"other"}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.md", "b.md", "n"]
    assert workspace.late_writes.watching == 0


def test_write__short_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that writes a little at a time gets everything written; one that writes nothing is a full disk."""
    write = os.write

    def three_bytes(fd: int, data: memoryview) -> int:
        return write(fd, data[:3])

    def no_bytes(fd: int, data: memoryview) -> int:
        return 0

    monkeypatch.setattr(os, "write", three_bytes)
    workspace = Workspace(write_tree(tmp_path, TREE))
    workspace.create(P("c.md"), b"0123456789")
    assert (tmp_path / "c.md").read_bytes() == b"0123456789"
    monkeypatch.setattr(os, "write", no_bytes)
    with pytest.raises(IoFailure, match="full"):
        workspace.create(P("d.md"), b"0123456789")


class SharingViolation(OSError):
    """As Windows raises it while another program has a file open."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "The process cannot access the file")
        self.winerror = 32


def test_with_retries__until_the_other_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file held for a moment is tried again."""
    monkeypatch.setattr(time, "sleep", no_sleep)
    tries: list[int] = []

    def step() -> None:
        tries.append(1)
        if len(tries) < 4:
            raise SharingViolation

    atomic_write.with_retries(step, clock=lambda: 0.0)
    assert len(tries) == 4


def test_with_retries__for_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that stays open elsewhere is busy, and all is as before."""
    monkeypatch.setattr(atomic_write, "_RETRY_S", 0.1)
    monkeypatch.setattr(DescriptorFolder, "exchange", no_exchange)

    def replace(self: Folder, name: str, target: Folder, target_name: str) -> None:
        raise SharingViolation

    monkeypatch.setattr(DescriptorFolder, "replace", replace)
    workspace = Workspace(write_tree(tmp_path, TREE))
    with pytest.raises(Busy, match="another program"):
        CHANGES["swap"](workspace)
    assert read_tree(tmp_path) == {"a.md": b"old", "n/b.md": b"other"}


def editor_saves(path: Path) -> None:
    path.with_name("editor~").write_text("editor")
    path.with_name("editor~").replace(path)


@pytest.mark.parametrize("change", ["swap", "delete", "move"])
def test_last_moment__editor_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """A save between the last look and the rename is noticed afterwards, and put back."""
    name = "exchange" if change == "swap" else "rename"
    step = getattr(DescriptorFolder, name)
    saves = iter([editor_saves])

    def after_a_save(self: Folder, *arguments: object) -> object:
        for save in saves:
            save(tmp_path / "a.md")
        return step(self, *arguments)

    monkeypatch.setattr(DescriptorFolder, name, after_a_save)
    workspace = Workspace(write_tree(tmp_path, TREE))
    with pytest.raises(Conflict):
        CHANGES[change](workspace)
    monkeypatch.undo()
    assert read_tree(tmp_path) == {"a.md": b"editor", "n/b.md": b"other"}


def test_last_moment__name_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that appears while another of that name is being made stays."""
    flush = os.fsync

    def after_a_save(fd: int) -> None:
        (tmp_path / "c.md").write_text("editor")
        flush(fd)

    monkeypatch.setattr(os, "fsync", after_a_save)
    with pytest.raises(AlreadyExists):
        Workspace(write_tree(tmp_path, TREE)).create(P("c.md"), b"new")
    monkeypatch.undo()
    assert read_tree(tmp_path)["c.md"] == b"editor"


def test_swap__without_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where names cannot be exchanged, a plain rename replaces the file."""
    monkeypatch.setattr(DescriptorFolder, "exchange", no_exchange)
    workspace = Workspace(write_tree(tmp_path, TREE))
    CHANGES["swap"](workspace)
    assert read_tree(tmp_path) == {"a.md": b"new", "n/b.md": b"other"}


def test_move__to_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between file systems the file is copied whole, and then the old one goes."""
    rename = DescriptorFolder.rename

    def across(self: DescriptorFolder, name: str, target: Folder, target_name: str) -> None:
        if not name.startswith(".lvs-tmp-") and not target_name.startswith(".lvs-tmp-"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(self, name, target, target_name)

    monkeypatch.setattr(DescriptorFolder, "rename", across)
    CHANGES["move"](Workspace(write_tree(tmp_path, TREE)))
    assert read_tree(tmp_path) == {"fresh/c.md": b"old", "n/b.md": b"other"}


def test_rename_case__where_the_system_takes_it_for_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case-only rename that a system swallows is done in two steps."""
    write_tree(tmp_path, {"config.md": "x"})
    stat = DescriptorFolder.stat

    def ignoring_case(self: DescriptorFolder, name: str) -> os.stat_result:
        return stat(self, "config.md" if name == "Config.md" and not (tmp_path / "Config.md").exists() else name)

    monkeypatch.setattr(DescriptorFolder, "stat", ignoring_case)
    monkeypatch.setattr(DescriptorFolder, "replace", no_replace)
    Workspace(tmp_path).move(P("config.md"), P("Config.md"))
    assert [path.name for path in tmp_path.iterdir()] == ["Config.md"]
