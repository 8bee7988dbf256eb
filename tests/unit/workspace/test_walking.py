"""Walking: what is found, what is passed over, and what is told about the rest."""

import os
import unicodedata
from pathlib import Path

import pytest
from tests.support.permissions import need_enforced_modes
from tests.support.trees import write_tree

from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.workspace.entries import FileKind
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.guard import OwnPaths
from local_vector_search_mcp.workspace.listing import SelectionRules

linux = pytest.mark.skipif(os.name == "nt" or os.uname().sysname != "Linux", reason="names that only Linux holds")

TREE: dict[str, str | bytes | None] = {
    "a.md": "1",
    "docs/b.md": "22",
    "docs/pic.png": "333",
    "docs/deep/c.md": "4444",
    "docs/notes.txt": "5",
    ".github/d.md": "6",
    ".github/e.png": "7",
    ".env": "8",
    ".obsidian/f.md": "9",
    ".git/g.md": "10",
    "node_modules/x/h.md": "11",
    "sub/node_modules/i.md": "12",
    ".store/index.db": "13",
    ".store/j.md": "14",
    ".lvs-tmp-1-a.md": "15",
    "empty": None,
}


def build(tmp_path: Path, **rules: tuple[str, ...]) -> Workspace:
    root = write_tree(tmp_path, TREE)
    return Workspace(root, SelectionRules(**rules), own=OwnPaths(directories=(root / ".store",)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "documents"),
    [
        ({}, ".github/d.md a.md docs/b.md docs/deep/c.md"),
        ({"include": ("docs/**/*.md",)}, "docs/b.md docs/deep/c.md"),
        ({"include": ("docs/*.md",)}, "docs/b.md"),
        ({"include": ("**/*.txt", "a.md")}, "a.md docs/notes.txt"),
        ({"include": ("**/*",)}, ".github/d.md a.md docs/b.md docs/deep/c.md"),
        ({"include": ()}, ""),
        ({"exclude": ("docs/deep/**", "**/.git*/**", "**/.obsidian/**", "**/node_modules/**")}, "a.md docs/b.md"),
        ({"exclude": ("**/[bc].md", "**/.*/**", "**/node_modules/**")}, "a.md"),
        ({"exclude": ("**",)}, ""),
        (
            {"exclude": ()},
            ".github/d.md .obsidian/f.md a.md docs/b.md docs/deep/c.md node_modules/x/h.md sub/node_modules/i.md",
        ),
    ],
)
def test_scan_documents__rules(tmp_path: Path, rules: dict[str, tuple[str, ...]], documents: str) -> None:
    """Exactly the documents that the rules select, and each of them passes the check for one path."""
    workspace = build(tmp_path, **rules)
    found = sorted(workspace.scan_documents().documents)
    assert found == documents.split()
    every = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert (
        sorted(path for path in every if ".git/" not in path and workspace.is_document(workspace.parse(path))) == found
    )


def test_scan_documents__states(tmp_path: Path) -> None:
    """Each with its size, times and inode."""
    workspace = build(tmp_path)
    status = (tmp_path / "docs" / "b.md").stat()
    found = workspace.scan_documents().documents["docs/b.md"]
    assert found == (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def test_walk__lists_files_of_all_kinds(tmp_path: Path) -> None:
    """Documents, images and others; hidden, excluded and own files are not there."""
    found = {entry.path.value: entry.kind for entry in build(tmp_path).walk().files}
    assert found == {
        "a.md": FileKind.MARKDOWN,
        "docs/b.md": FileKind.MARKDOWN,
        "docs/deep/c.md": FileKind.MARKDOWN,
        "docs/pic.png": FileKind.IMAGE,
        "docs/notes.txt": FileKind.OTHER,
        ".github/d.md": FileKind.MARKDOWN,
    }


@pytest.mark.parametrize(
    ("below", "documents"),
    [
        ("docs", "docs/b.md docs/deep/c.md"),
        ("docs/deep", "docs/deep/c.md"),
        ("doc", ""),
        ("docs/b.md", ""),
        ("empty", ""),
        ("nowhere", ""),
        ("node_modules", ""),
        (".github", ".github/d.md"),
    ],
)
def test_scan_documents__below(tmp_path: Path, below: str, documents: str) -> None:
    """Only what lies in one folder, whose name is never a part of a name."""
    workspace = build(tmp_path)
    assert sorted(workspace.scan_documents(below).documents) == documents.split()
    listed = [entry.path.value for entry in workspace.walk(below).files if entry.kind is FileKind.MARKDOWN]
    assert sorted(listed) == documents.split()


def test_folders__those_that_walks_enter(tmp_path: Path) -> None:
    """The root first, each folder before those in it, and none that is excluded."""
    workspace = build(tmp_path)
    found = [path for path, _ in workspace.folders()]
    assert found[0] == ""
    assert sorted(found) == ["", ".github", "docs", "docs/deep", "empty", "sub"]
    assert found.index("docs") < found.index("docs/deep")
    assert sorted(path for path, _ in workspace.folders("docs")) == ["docs", "docs/deep"]
    assert list(workspace.folders("node_modules")) == []


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege on Windows")
def test_walk__links_are_told_and_not_followed(tmp_path: Path) -> None:
    """A linked document is passed over with the reason; what it leads to is not looked at."""
    outside = write_tree(tmp_path / "outside", {"x.md": "secret"})
    root = write_tree(tmp_path / "root", {"a.md": ""})
    (root / "l.md").symlink_to(outside / "x.md")
    (root / "folder").symlink_to(outside)
    scan = Workspace(root).scan_documents()
    assert set(scan.documents) == {"a.md"}
    assert [skipped.path for skipped in scan.skipped] == ["l.md"]
    assert {entry.path.value for entry in Workspace(root).walk().files} == {"a.md"}


@linux
def test_walk__names_that_no_path_can_mean(tmp_path: Path) -> None:
    """Such files are told with a name that can be shown, and the others are found."""
    for name in (b"bad\xff.md", b"line\nbreak.md", b"back\\slash.md", b"c:x.md", b"%2e%2e.md", b"ok.md"):
        (tmp_path / os.fsdecode(name)).write_text("x")
    scan = Workspace(tmp_path).scan_documents()
    assert set(scan.documents) == {"ok.md", "%2e%2e.md"}
    assert len(scan.skipped) == 4
    assert all(skipped.path.isprintable() for skipped in scan.skipped)


@linux
def test_walk__unicode_forms(tmp_path: Path) -> None:
    """Every path is in NFC, once, whichever form is on disk; the form that a path means is the one counted."""
    nfd = unicodedata.normalize("NFD", "é.md")
    write_tree(tmp_path, {"é.md": "composed", nfd: "decomposed!", unicodedata.normalize("NFD", "ü/ä.md"): "x"})
    workspace = Workspace(tmp_path)
    scan = workspace.scan_documents()
    assert set(scan.documents) == {"é.md", "ü/ä.md"}
    assert scan.documents["é.md"][0] == len("composed")
    assert workspace.read(workspace.parse("é.md")).data == b"composed"
    assert [skipped.reason for skipped in scan.skipped] == ["another spelling of the same name stands beside it"]


def test_walk__unreadable_folder(tmp_path: Path) -> None:
    """A folder that cannot be read is told, not taken for empty."""
    need_enforced_modes(tmp_path)
    write_tree(tmp_path, {"a.md": "", "closed/b.md": ""})
    (tmp_path / "closed").chmod(0)
    try:
        scan = Workspace(tmp_path).scan_documents()
    finally:
        (tmp_path / "closed").chmod(0o700)
    assert set(scan.documents) == {"a.md"}
    assert [skipped.path for skipped in scan.unreadable] == ["closed"]


def test_walk__failing_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that fails while it is listed is told, not taken for empty; the walk goes on."""
    write_tree(tmp_path, {"a.md": "", "bad/b.md": "", "good/c.md": ""})
    bad = (tmp_path / "bad").stat().st_ino
    scandir = os.scandir

    def failing(place: int) -> object:
        if os.fstat(place).st_ino == bad:
            raise OSError(5, "Input/output error")
        return scandir(place)

    monkeypatch.setattr(os, "scandir", failing)
    monkeypatch.setattr(os, "supports_fd", {failing})
    scan = Workspace(tmp_path).scan_documents()
    assert set(scan.documents) == {"a.md", "good/c.md"}
    assert [(skipped.path, "input/output" in skipped.reason) for skipped in scan.unreadable] == [("bad", True)]


def test_walk__very_deep_tree(tmp_path: Path) -> None:
    """What lies deeper than any real tree is told; nothing runs out of descriptors or stack."""
    deep = tmp_path
    for _ in range(200):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("x")
    (tmp_path / "a.md").write_text("x")
    scan = Workspace(tmp_path).scan_documents()
    assert set(scan.documents) == {"a.md"}
    assert len(scan.unreadable) == 1


def test_walk__vanished_root(tmp_path: Path) -> None:
    """A root that is gone is an error, never an empty tree."""
    root = write_tree(tmp_path / "root", {})
    workspace = Workspace(root)
    root.rmdir()
    for walk in (workspace.scan_documents, workspace.walk, lambda: list(workspace.folders())):
        with pytest.raises(IoFailure):
            walk()
