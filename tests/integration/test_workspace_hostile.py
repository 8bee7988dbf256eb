"""Hostile paths and hostile file systems: nothing outside the root is ever opened, listed or changed."""

import itertools
import os
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.trees import read_tree, write_tree

from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.guard import OwnPaths

pytestmark = pytest.mark.skipif(os.name == "nt", reason="builds the tree from POSIX links and pipes")

_DEADLINE_S = 20
SECRET = b"secret-4e1d"


class Opened:
    """Every path that the process opens or lists, while recording is on."""

    def __init__(self) -> None:
        self.recording = False
        self.paths: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.recording and event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, bytes)):
            self.paths.append(os.fsdecode(arguments[0]))

    @contextmanager
    def record(self) -> Generator[list[str]]:
        self.paths, self.recording = [], True
        try:
            yield self.paths
        finally:
            self.recording = False


# An audit hook stays for the life of the process, so there is one for all tests.
OPENED = Opened()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Path]:
    """A root full of ways out, and the place outside that they lead to."""
    base = tmp_path_factory.mktemp("hostile")
    outside = write_tree(base / "outside", {"x.md": SECRET, "a/x.md": SECRET, "secret.md": SECRET})
    root = write_tree(
        base / "root",
        {"a.md": "a", "a/b/x.md": "x", "n/x.md": "n", ".store/history.db": SECRET, ".git/x.md": SECRET, ".env": "e"},
    )
    (root / "link.md").symlink_to(outside / "x.md")
    (root / "out").symlink_to(outside)
    (root / "a" / "up").symlink_to("../..")
    (root / "n" / "loop").symlink_to(".")
    (root / "abs.md").symlink_to("/etc/passwd")
    (root / "dangling.md").symlink_to(outside / "nowhere.md")
    os.link(root / ".store" / "history.db", root / "hard.md")
    os.mkfifo(root / "pipe.md")
    return Workspace(root, own=OwnPaths(directories=(root / ".store",))), outside


_parts = st.sampled_from(
    [
        *("..", ".", "", "a", "b", "n", "x.md", "a.md", "link.md", "out", "up", "loop", "abs.md", "dangling.md"),
        *(
            ".git",
            ".GIT",
            ".store",
            ".Store",
            "history.db",
            "hard.md",
            "pipe.md",
            ".env",
            "%2e%2e",
            "%2E",
            "%252e%252e",
        ),
        *("root", "outside", "secret.md", "~", "\\", "..\\..", "C:", "\0", "\n", "a\u0301", "\ud800", "CON", "x" * 300),
        *(".lvs-tmp-1-a", "\u202e", "\uff0e\uff0e", "/etc/passwd", "..;"),
    ]
)
_paths = st.one_of(st.lists(_parts, min_size=1, max_size=6).map("/".join), st.text(max_size=30))

CALLS: dict[str, Callable[[Workspace, RelPath], object]] = {
    "read": lambda workspace, path: workspace.read(path).data,
    "read_document": lambda workspace, path: workspace.read_document(path).data,
    "stat": lambda workspace, path: workspace.stat(path),
    "exists": lambda workspace, path: workspace.exists(path),
    "why_excluded": lambda workspace, path: workspace.why_excluded(path),
    "visible_file": lambda workspace, path: workspace.visible_file(path),
    "check_new": lambda workspace, path: workspace.check_new(path),
    "scan_documents": lambda workspace, path: workspace.scan_documents(path.value).documents,
    "walk": lambda workspace, path: workspace.walk(path.value).files,
    "folders": lambda workspace, path: list(workspace.folders(path.value)),
}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=_paths, call=st.sampled_from(sorted(CALLS)))
def test_reading__never_leaves_the_root(hostile: tuple[Workspace, Path], text: str, call: str) -> None:
    """Any text in any reading call: only known errors, no secret, and no path opened but the root and names below.

    (The server's own folder is listed to tell whether a second name belongs to one of its files.)
    """
    workspace, _ = hostile
    with OPENED.record() as opened:
        try:
            answer: object = CALLS[call](workspace, workspace.parse(text))
        except KnowledgeBaseError as error:
            answer = error.message
    assert SECRET.decode() not in str(answer)
    allowed = {str(workspace.root), str(workspace.root / ".store")}
    assert [path for path in opened if path not in allowed and ("/" in path or path == "..")] == []


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=_paths)
def test_writing__never_leaves_the_root(hostile: tuple[Workspace, Path], text: str) -> None:
    """Any text as the path of a new file: made inside and removed again, or refused; the outside stays."""
    workspace, outside = hostile
    before, inside = read_tree(outside), read_tree(workspace.root)
    try:
        path = workspace.parse_new(text)
        identity = workspace.create(path, b"new")
    except KnowledgeBaseError:
        assert read_tree(workspace.root) == inside
    else:
        workspace.delete(path, identity)
        if path.parent:
            workspace.remove_empty_folders(RelPath(path.parts[0]))
    assert read_tree(outside) == before


def test_walking__finds_no_secret(hostile: tuple[Workspace, Path]) -> None:
    """What is listed lies inside, and the ways out are not entered."""
    workspace, _ = hostile
    with OPENED.record() as opened:
        listed = {entry.path.value for entry in workspace.walk().files}
        folders = {path for path, _ in workspace.folders()}
    assert listed == {"a.md", "a/b/x.md", "n/x.md", "hard.md"}
    assert folders == {"", "a", "a/b", "n"}
    assert all("/" not in path or path == str(workspace.root) for path in opened)


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_race__a_link_between_check_and_use(tmp_path: Path, swapped: str) -> None:
    """A folder or file that turns into a link and back all the time never leads out."""
    outside = write_tree(tmp_path / "outside", {"f/x.md": SECRET})
    root = write_tree(tmp_path / "root", {"f/x.md": "inside"})
    target = root / "f" if swapped == "folder" else root / "f" / "x.md"
    elsewhere = outside / "f" if swapped == "folder" else outside / "f" / "x.md"
    aside = tmp_path / "aside"
    workspace, path = Workspace(root), RelPath("f/x.md")
    done = threading.Event()

    def toggle() -> None:
        while not done.is_set():
            target.rename(aside)
            target.symlink_to(elsewhere)
            target.unlink()
            aside.rename(target)

    toggling = threading.Thread(target=toggle)
    toggling.start()
    seen: set[bytes] = set()
    try:
        deadline = time.monotonic() + _DEADLINE_S
        for step in itertools.count():
            # A while in any case, and until the file was met in its place.
            if (step > 1500 and seen) or time.monotonic() > deadline:
                break
            try:
                snapshot = workspace.read(path)
                seen.add(snapshot.data)
                if step % 3 == 0:
                    workspace.swap(path, b"inside", snapshot.identity)
                if step % 3 == 1:
                    list(workspace.scan_documents().documents)
            except KnowledgeBaseError:
                continue
    finally:
        done.set()
        toggling.join(20)
    workspace.close()
    assert seen == {b"inside"}
    assert read_tree(outside) == {"f/x.md": SECRET}


def test_unicode__one_file_under_both_forms(tmp_path: Path) -> None:
    """A file stored decomposed is read, written, moved and deleted by its composed name."""
    stored = unicodedata.normalize("NFD", "Ordner ü/Käse é.md")
    workspace = Workspace(write_tree(tmp_path, {stored: "old"}))
    path = workspace.parse(unicodedata.normalize("NFC", stored))
    assert set(workspace.scan_documents().documents) == {path.value}
    workspace.swap(path, b"new", workspace.read_document(path).identity)
    assert list(read_tree(tmp_path).values()) == [b"new"]
    moved = workspace.parse("Ordner ü/Ä.md")
    workspace.move(path, moved)
    workspace.delete(moved, workspace.read(moved).identity)
    assert read_tree(tmp_path) == {}
    workspace.close()
