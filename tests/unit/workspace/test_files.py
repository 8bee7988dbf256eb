"""Workspace: reading and changing files, and what each refuses."""

import itertools
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.permissions import need_enforced_modes
from tests.support.trees import read_tree, write_tree

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import (
    AlreadyExists,
    Conflict,
    InvalidPath,
    IoFailure,
    KnowledgeBaseError,
    NotFound,
    TooLarge,
    UnsupportedFormat,
)
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace import files, guard, reading
from local_vector_search_mcp.workspace.atomic_write import read_fully
from local_vector_search_mcp.workspace.entries import FileIdentity, FileKind
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.folders import PathFolder
from local_vector_search_mcp.workspace.guard import OwnPaths
from local_vector_search_mcp.workspace.listing import SelectionRules
from local_vector_search_mcp.workspace.restoring import RestoringFiles

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX file kinds and modes")
P = RelPath


def known(workspace: Workspace, text: str) -> FileIdentity:
    identity = workspace.identity(P(text))
    assert identity is not None
    return identity


# -- reading


def test_read__gives_bytes_and_identity(tmp_path: Path) -> None:
    """A reading holds the exact bytes and says of which file they are."""
    data = b"\xef\xbb\xbf# A\r\n\0\xff"
    workspace = Workspace(write_tree(tmp_path, {"a.md": data}))
    snapshot = workspace.read(P("a.md"))
    status = (tmp_path / "a.md").stat()
    assert snapshot.data == data
    assert (snapshot.identity.inode, snapshot.identity.size) == (status.st_ino, len(data))


def test_read__empty_and_large(tmp_path: Path) -> None:
    """Both ends of the size range come whole."""
    large = os.urandom(3_000_000)
    workspace = Workspace(write_tree(tmp_path, {"e.md": b"", "l.md": large}))
    assert workspace.read(P("e.md")).data == b""
    assert workspace.read(P("l.md")).data == large


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))


@posix
@pytest.mark.parametrize("make", [make_fifo, make_device, make_folder])
def test_read__only_regular_files(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A pipe, a device or a folder is refused at once, and never waited for."""
    try:
        make(tmp_path / "x.md")
    except PermissionError:
        pytest.skip("making devices needs a privilege")
    with pytest.raises(InvalidPath, match=r"regular|folder"):
        Workspace(tmp_path).read(P("x.md"))


def test_read__missing_names_near_paths(tmp_path: Path) -> None:
    """A path that does not exist comes with what may have been meant."""
    workspace = Workspace(write_tree(tmp_path, {"notes/Plan.md": "", "other/plan.md": "", "x.png": b""}))
    with pytest.raises(NotFound, match=r"notes/Plan\.md") as missing:
        workspace.read(P("notes/plan.md"))
    assert missing.value.details["nearPaths"][0] == "notes/Plan.md"


def test_read__too_large(tmp_path: Path) -> None:
    """A file above the limit is told with both sizes, and not read."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "12345"}))
    assert workspace.read(P("a.md"), max_bytes=5).data == b"12345"
    with pytest.raises(TooLarge) as refused:
        workspace.read(P("a.md"), max_bytes=4)
    assert refused.value.details == {"bytes": 5, "maxBytes": 4}


@posix
def test_read__own_file_under_another_name(tmp_path: Path) -> None:
    """A hard link to the history does not open it."""
    write_tree(tmp_path, {".store/history.db": "deleted text"})
    os.link(tmp_path / ".store" / "history.db", tmp_path / "a.md")
    workspace = Workspace(tmp_path, own=OwnPaths(directories=(tmp_path / ".store",)))
    with pytest.raises(InvalidPath, match="own files"):
        workspace.read(P("a.md"))


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("a.md", None, ""),
        ("drafts/a.md", NotFound, "'drafts/\\*\\*'"),
        ("b.txt", UnsupportedFormat, "no Markdown"),
        ("x.MD", NotFound, "no include pattern"),
        ("build/a.md", NotFound, "'build/' of .gitignore"),
        ("node_modules/m/r.md", NotFound, "drafts|node_modules"),
        ("missing.md", NotFound, "no file missing.md"),
        ("img.png", UnsupportedFormat, "no Markdown"),
    ],
)
def test_read_document__names_the_rule(
    tmp_path: Path, path: str, error: type[KnowledgeBaseError] | None, message: str
) -> None:
    """A Markdown file that is kept out is not found, and the message says by which rule."""
    files = dict.fromkeys(["a.md", "drafts/a.md", "b.txt", "x.MD", "build/a.md", "node_modules/m/r.md", "img.png"], "x")
    write_tree(tmp_path, {**files, ".gitignore": "build/\n"})
    workspace = Workspace(tmp_path, SelectionRules(exclude=("drafts/**", "**/node_modules/**")))
    if error is None:
        assert workspace.read_document(P(path)).data == b"x"
        return
    with pytest.raises(error, match=message):
        workspace.read_document(P(path))


@pytest.mark.parametrize(
    ("path", "visible"),
    [
        (".env", False),
        (".vscode/settings.json", False),
        ("a/.hidden/x.png", False),
        ("a/x.png", True),
        ("secret.json", True),
        (".github/README.md", True),
        (".github/x.png", False),
        ("kept.md", True),
    ],
)
def test_check_visible__dot_names(tmp_path: Path, path: str, visible: bool) -> None:
    """Names that begin with a dot are hidden unless an include pattern selects them."""
    workspace = Workspace(write_tree(tmp_path, {path: "x"}))
    if visible:
        workspace.check_visible(P(path))
        assert workspace.visible_file(P(path)) is not None
    else:
        with pytest.raises(NotFound, match="hidden"):
            workspace.check_visible(P(path))
        assert workspace.visible_file(P(path)) is None
    assert (path in {entry.path.value for entry in workspace.walk().files}) is visible


def test_stat__kinds(tmp_path: Path) -> None:
    """The kind goes by the name; folders and nothing have none."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "1", "b.JPG": "22", "c.bin": "", "d": None}))
    kinds = {name: workspace.stat(P(name)) for name in ("a.md", "b.JPG", "c.bin", "d", "e")}
    assert {name: entry and entry.kind for name, entry in kinds.items()} == {
        "a.md": FileKind.MARKDOWN,
        "b.JPG": FileKind.IMAGE,
        "c.bin": FileKind.OTHER,
        "d": None,
        "e": None,
    }
    assert workspace.is_folder(P("d"))
    assert not workspace.is_folder(P("a.md"))
    assert workspace.exists(P("d"))
    assert not workspace.exists(P("e/f"))


# -- swapping


def test_swap__replaces_bytes(tmp_path: Path) -> None:
    """The new bytes stand under the old name, nothing else is left, and the new identity is told."""
    workspace = Workspace(write_tree(tmp_path, {"n/a.md": "old"}))
    identity = workspace.swap(P("n/a.md"), b"new", known(workspace, "n/a.md"))
    assert read_tree(tmp_path) == {"n/a.md": b"new"}
    assert identity == workspace.identity(P("n/a.md"))


def edit_in_place(path: Path) -> None:
    path.write_text("editor")


def save_by_rename(path: Path) -> None:
    path.with_name("t~").write_text("editor")
    path.with_name("t~").replace(path)


def delete(path: Path) -> None:
    path.unlink()


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("save", [edit_in_place, save_by_rename, delete, touch])
@pytest.mark.parametrize("change", ["swap", "delete", "move"])
def test_change__refuses_a_stale_reading(tmp_path: Path, save: Callable[[Path], None], change: str) -> None:
    """What another program did between reading and writing stays, and is a conflict."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    expected = known(workspace, "a.md")
    save(tmp_path / "a.md")
    before = read_tree(tmp_path)
    with pytest.raises((Conflict, NotFound)) as refused:
        if change == "swap":
            workspace.swap(P("a.md"), b"new", expected)
        elif change == "delete":
            workspace.delete(P("a.md"), expected)
        else:
            workspace.move(P("a.md"), P("b.md"), expected=expected)
    if change != "move" or save is not delete:
        assert refused.value.details["reason"] == "source_changed"
    assert read_tree(tmp_path) == before


@posix
@pytest.mark.parametrize("mode", [0o640, 0o600, 0o644, 0o755, 0o4755])
def test_swap__keeps_the_mode(tmp_path: Path, mode: int) -> None:
    """The file keeps its permissions."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    (tmp_path / "a.md").chmod(mode)
    workspace.swap(P("a.md"), b"new", known(workspace, "a.md"))
    assert stat.S_IMODE((tmp_path / "a.md").stat().st_mode) == mode


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes are reached on Linux only")
def test_swap__keeps_attributes(tmp_path: Path) -> None:
    """The file keeps its extended attributes."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    try:
        os.setxattr(tmp_path / "a.md", "user.tag", b"blue")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    workspace.swap(P("a.md"), b"new", known(workspace, "a.md"))
    assert os.getxattr(tmp_path / "a.md", "user.tag") == b"blue"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only the superuser can give files away")
def test_swap__keeps_the_owner(tmp_path: Path) -> None:
    """The file keeps its owner where the system lets it."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    os.chown(tmp_path / "a.md", 1234, 2345)
    workspace.swap(P("a.md"), b"new", known(workspace, "a.md"))
    status = (tmp_path / "a.md").stat()
    assert (status.st_uid, status.st_gid) == (1234, 2345)


@posix
def test_swap__refuses_hard_links(tmp_path: Path) -> None:
    """A file with two names is not written, and both keep their bytes."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "old"}))
    os.link(tmp_path / "a.md", tmp_path / "b.md")
    with pytest.raises(InvalidPath, match="hard link"):
        workspace.swap(P("a.md"), b"new", known(workspace, "a.md"))
    assert read_tree(tmp_path) == {"a.md": b"old", "b.md": b"old"}


# -- creating


def test_create__makes_file_and_folders(tmp_path: Path) -> None:
    """The file stands with its bytes, readable as any new file."""
    workspace = Workspace(tmp_path)
    identity = workspace.create(P("x/y/a.md"), b"new")
    assert read_tree(tmp_path) == {"x/y/a.md": b"new"}
    assert identity == workspace.identity(P("x/y/a.md"))


@posix
def test_create__mode_follows_the_mask(tmp_path: Path) -> None:
    """A new file has the mode that any program would give it."""
    old = os.umask(0o027)
    try:
        Workspace(tmp_path).create(P("a.md"), b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.md").stat().st_mode) == 0o640


def test_create__without_folders(tmp_path: Path) -> None:
    """A missing folder is an error if folders are not to be made."""
    with pytest.raises(NotFound, match="'x'"):
        Workspace(tmp_path).create(P("x/a.md"), b"new", create_directories=False)
    assert read_tree(tmp_path) == {}


@pytest.mark.parametrize("taken", ["file", "folder"])
def test_create__never_overwrites(tmp_path: Path, taken: str) -> None:
    """A taken name is refused, and folders made for it go again."""
    write_tree(tmp_path, {"a.md": "old" if taken == "file" else None})
    with pytest.raises(AlreadyExists):
        Workspace(tmp_path).create(P("a.md"), b"new")
    assert read_tree(tmp_path) == ({"a.md": b"old"} if taken == "file" else {})


def test_create__file_in_the_way(tmp_path: Path) -> None:
    """A file cannot hold a file."""
    write_tree(tmp_path, {"a.md": "old"})
    with pytest.raises(AlreadyExists, match=r"a\.md is a file"):
        Workspace(tmp_path).create(P("a.md/b.md"), b"new")


# -- moving


def test_move__renames(tmp_path: Path) -> None:
    """The file stands under its new name, in folders made for it, and is the same file."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "text"}))
    before = known(workspace, "a.md")
    after = workspace.move(P("a.md"), P("x/b.md"), expected=before)
    assert read_tree(tmp_path) == {"x/b.md": b"text"}
    assert after.inode == before.inode


@pytest.mark.parametrize("taken", ["b.md", "x/b.md"])
def test_move__never_overwrites(tmp_path: Path, taken: str) -> None:
    """A taken name is refused, and both files stay."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "one", taken: "two"}))
    with pytest.raises(AlreadyExists):
        workspace.move(P("a.md"), P(taken))
    assert read_tree(tmp_path) == {"a.md": b"one", taken: b"two"}


def test_move__case_only(tmp_path: Path) -> None:
    """A rename that changes case only ends with the new case, on every system."""
    workspace = Workspace(write_tree(tmp_path, {"config.md": "x"}))
    workspace.check_new(P("Config.md"), replacing=P("config.md"))
    workspace.move(P("config.md"), P("Config.md"))
    assert [path.name for path in tmp_path.iterdir()] == ["Config.md"]


def test_move__missing(tmp_path: Path) -> None:
    """What is not there cannot be moved, and no folder is made for it."""
    with pytest.raises(NotFound):
        Workspace(tmp_path).move(P("a.md"), P("x/b.md"))
    assert list(tmp_path.iterdir()) == []


# -- deleting


def test_delete__removes_the_file_alone(tmp_path: Path) -> None:
    """The file goes, its folder and neighbours stay."""
    workspace = Workspace(write_tree(tmp_path, {"n/a.md": "x", "n/b.md": "y"}))
    workspace.delete(P("n/a.md"), known(workspace, "n/a.md"))
    assert read_tree(tmp_path) == {"n/b.md": b"y"}


def test_remove_empty_folders(tmp_path: Path) -> None:
    """Empty folders go, from the innermost out; what holds anything stays."""
    workspace = Workspace(write_tree(tmp_path, {"a/b/c": None, "a/d": None, "k/e": None, "k/x.txt": "x"}))
    workspace.remove_empty_folders(P("a"))
    workspace.remove_empty_folders(P("k"))
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == ["k", "k/x.txt"]


# -- what holds for all changes

CLOSED = ["link.md", "folder/x.md", "folder/new.md", ".git/x.md", ".store/x.md", ".lvs-tmp-1-a"]
CHANGES: dict[str, Callable[[Workspace, RelPath], object]] = {
    "swap": lambda workspace, path: workspace.swap(path, b"new", FileIdentity.of(workspace.root.stat())),
    "create": lambda workspace, path: workspace.create(path, b"new"),
    "move from": lambda workspace, path: workspace.move(path, P("fresh.md")),
    "move to": lambda workspace, path: workspace.move(P("real.md"), path),
    "delete": lambda workspace, path: workspace.delete(path, FileIdentity.of(workspace.root.stat())),
}


@posix
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "path", ["link.md", "folder/x.md", "folder/new.md", ".git/x.md", ".store/x.md", ".lvs-tmp-1-a"]
)
def test_changes__refuse_closed_paths(tmp_path: Path, change: str, path: str) -> None:
    """No change goes through a link or to a closed place, and nothing outside is touched."""
    outside = write_tree(tmp_path / "outside", {"x.md": "secret"})
    root = write_tree(tmp_path / "root", {"real.md": "x", ".store/x.md": "own", ".git/x.md": "git"})
    (root / "link.md").symlink_to(outside / "x.md")
    (root / "folder").symlink_to(outside)
    before = read_tree(tmp_path)
    workspace = Workspace(root, own=OwnPaths(directories=(root / ".store",)))
    with pytest.raises(InvalidPath):
        CHANGES[change](workspace, P(path))
    assert read_tree(tmp_path) == before


def test_remove_leftovers__only_temporary_files(tmp_path: Path) -> None:
    """What a crash left goes; everything else stays, whatever it is called."""
    dead = ".lvs-tmp-4194399-abc"
    kept = {"a.md": b"x", "lvs-tmp-1.md": b"x", "n/b.md": b"y", "n/lvs-tmp": b"z"}
    write_tree(tmp_path, {**kept, dead: "1", f"n/{dead}": "2", ".lvs-tmp-folder/x.md": "3"})
    assert Workspace(tmp_path).remove_leftovers() == 2
    assert read_tree(tmp_path) == {**kept, ".lvs-tmp-folder/x.md": b"3"}


@posix
def test_remove_leftovers__spares_a_living_process(tmp_path: Path) -> None:
    """Another process's file is not taken away under its hands."""
    write_tree(tmp_path, {f".lvs-tmp-{os.getppid()}-abc": "1"})
    assert Workspace(tmp_path).remove_leftovers() == 0


# -- systems without descriptors for directories


@pytest.fixture
def by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace that does everything by path, and keeps no replaced file open, as on Windows."""
    monkeypatch.setattr(guard, "open_folder", PathFolder)
    monkeypatch.setattr(files, "_OPEN_FILES_MAY_GO", False)
    return Workspace(write_tree(tmp_path, {"a.md": "a", "n/b.md": "b", "n/c.png": b"c", ".gitignore": "x/"}))


def test_by_path__all_changes(by_path: Workspace) -> None:
    """The whole life of a file, with the same results."""
    by_path.swap(P("a.md"), b"new", known(by_path, "a.md"))
    created = by_path.create(P("d/e/f.md"), b"made")
    moved = by_path.move(P("d/e/f.md"), P("g.md"), expected=created)
    by_path.remove_empty_folders(P("d"))
    assert read_tree(by_path.root) == {
        "a.md": b"new",
        "g.md": b"made",
        "n/b.md": b"b",
        "n/c.png": b"c",
        ".gitignore": b"x/",
    }
    by_path.delete(P("g.md"), moved)
    assert set(by_path.scan_documents().documents) == {"a.md", "n/b.md"}
    assert {entry.path.value for entry in by_path.walk("n").files} == {"n/b.md", "n/c.png"}
    assert by_path.late_writes.watching == 0
    assert not (by_path.root / "d").exists()


def test_by_path__refusals(by_path: Workspace, tmp_path: Path) -> None:
    """What is refused elsewhere is refused here."""
    with pytest.raises(AlreadyExists):
        by_path.create(P("a.md"), b"")
    with pytest.raises(AlreadyExists):
        by_path.move(P("a.md"), P("n/b.md"))
    with pytest.raises(Conflict):
        by_path.swap(P("a.md"), b"", known(by_path, "n/b.md"))
    with pytest.raises(AlreadyExists, match="differs"):
        by_path.check_new(P("N/x.md"))
    if os.name != "nt":
        (by_path.root / "l.md").symlink_to(by_path.root / "a.md")
        (by_path.root / "m").symlink_to(by_path.root / "n")
        for path in ("l.md", "m/b.md"):
            with pytest.raises(InvalidPath, match="link"):
                by_path.read(P(path))


# -- odds and ends


def test_read__while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes during the reading is read again, until bytes and identity belong together."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "one"}))
    texts = iter(["two two", "three three three"])

    def meanwhile(fd: int) -> bytes:
        data = read_fully(fd)
        for text in texts:
            (tmp_path / "a.md").write_text(text)
            break
        return data

    monkeypatch.setattr(reading, "read_fully", meanwhile)
    snapshot = workspace.read(P("a.md"))
    assert snapshot.data == b"three three three"
    assert snapshot.identity == workspace.identity(P("a.md"))


def test_read__never_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes all the time is read, and no write can be based on that reading."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "0"}))
    sizes = itertools.count(2)

    def meanwhile(fd: int) -> bytes:
        data = read_fully(fd)
        (tmp_path / "a.md").write_text("x" * next(sizes))
        return data

    monkeypatch.setattr(reading, "read_fully", meanwhile)
    snapshot = workspace.read(P("a.md"))
    monkeypatch.undo()
    with pytest.raises(Conflict):
        workspace.swap(P("a.md"), b"new", snapshot.identity)


def test_read__refused_by_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the system does not let be read is no missing file."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "x"}))

    def refuse(fd: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reading, "read_fully", refuse)
    with pytest.raises(IoFailure, match="permit"):
        workspace.read(P("a.md"))


def test_read_present__without_near_paths(tmp_path: Path) -> None:
    """A file that has just gone is told plainly."""
    with pytest.raises(NotFound) as missing:
        Workspace(write_tree(tmp_path, {"a.md": ""})).read_present(P("b.md"))
    assert missing.value.details == {}


def test_restoring_files__check_by_content(tmp_path: Path) -> None:
    """What the journal does to files is done only to those that have the hash it knows."""
    restoring = RestoringFiles(Workspace(write_tree(tmp_path, {"a.md": "one", "folder.md/x": ""})))
    assert restoring.read_bytes(P("a.md")) == b"one"
    assert restoring.read_bytes(P("none.md")) is None
    with pytest.raises(InvalidPath):
        restoring.read_bytes(P("folder.md"))
    known_hash, other = xxh64_hex(b"one"), xxh64_hex(b"other")
    with pytest.raises(Conflict):
        restoring.put(P("a.md"), b"x", expected_hash=other)
    with pytest.raises(AlreadyExists):
        restoring.put(P("a.md"), b"x", expected_hash=None)
    with pytest.raises(Conflict):
        restoring.take_away(P("a.md"), expected_hash=other)
    with pytest.raises(Conflict):
        restoring.rename(P("a.md"), P("b.md"), expected_hash=other)
    restoring.put(P("a.md"), b"two", expected_hash=known_hash)
    restoring.rename(P("a.md"), P("b.md"), expected_hash=xxh64_hex(b"two"))
    restoring.take_away(P("b.md"), expected_hash=xxh64_hex(b"two"))
    restoring.put(P("c.md"), b"made", expected_hash=None)
    assert read_tree(tmp_path) == {"c.md": b"made", "folder.md/x": b""}


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_read__without_permission(tmp_path: Path, closed: str) -> None:
    """A file that may not be read is told as such by path, and is no missing file."""
    need_enforced_modes(tmp_path)
    workspace = Workspace(write_tree(tmp_path, {"n/a.md": "x"}))
    place = tmp_path / "n" / "a.md" if closed == "file" else tmp_path / "n"
    place.chmod(0)
    try:
        with pytest.raises(IoFailure, match=r"n/a\.md could not be (read|opened): the system does not permit it"):
            workspace.read_document(P("n/a.md"))
    finally:
        place.chmod(0o700)


@pytest.mark.parametrize("change", ["create", "swap", "delete", "move"])
def test_changes__without_permission(tmp_path: Path, change: str) -> None:
    """In a folder that may not be written nothing changes."""
    need_enforced_modes(tmp_path)
    workspace = Workspace(write_tree(tmp_path, {"n/a.md": "x"}))
    identity = known(workspace, "n/a.md")
    (tmp_path / "n").chmod(0o500)
    steps: dict[str, Callable[[], object]] = {
        "create": lambda: workspace.create(P("n/b.md"), b"new"),
        "swap": lambda: workspace.swap(P("n/a.md"), b"new", identity),
        "delete": lambda: workspace.delete(P("n/a.md"), identity),
        "move": lambda: workspace.move(P("n/a.md"), P("b.md")),
    }
    try:
        with pytest.raises(IoFailure, match="permit"):
            steps[change]()
    finally:
        (tmp_path / "n").chmod(0o700)
    assert read_tree(tmp_path) == {"n/a.md": b"x"}
