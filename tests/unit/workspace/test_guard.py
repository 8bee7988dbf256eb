"""WorkspaceGuard: what a path may lead to, and what it never may."""

import os
import unicodedata
from pathlib import Path

import pytest
from tests.support.trees import write_tree

from local_vector_search_mcp.errors import InvalidPath, IoFailure, NotFound
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.guard import OwnPaths, WorkspaceGuard

needs_links = pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege on Windows")


def guarded(root: Path, own: OwnPaths | None = None) -> WorkspaceGuard:
    return WorkspaceGuard(root, own)


def leads_to(guard: WorkspaceGuard, text: str) -> bool:
    """Whether there is something at a path; raises where the guard refuses."""
    with guard.at(RelPath(text)) as place:
        return place.status is not None


def test_at__finds_files_and_free_names(tmp_path: Path) -> None:
    """A place is given for what is there and for what is not yet."""
    guard = guarded(write_tree(tmp_path, {"a/b.md": "x"}))
    assert leads_to(guard, "a/b.md")
    assert leads_to(guard, "a")
    assert not leads_to(guard, "a/c.md")


def test_at__missing_folder(tmp_path: Path) -> None:
    """A folder that does not exist is named."""
    with pytest.raises(NotFound, match="'b' does not exist"):
        leads_to(guarded(write_tree(tmp_path, {"a": None})), "a/b/c.md")


def test_at__file_as_folder(tmp_path: Path) -> None:
    """A file holds no files."""
    with pytest.raises(NotFound):
        leads_to(guarded(write_tree(tmp_path, {"a.md": "x"})), "a.md/b.md")


@needs_links
@pytest.mark.parametrize("path", ["link.md", "folder", "folder/x.md", "folder/deep/x.md", "inside/link/x.md", "loop/x"])
def test_at__refuses_links(tmp_path: Path, path: str) -> None:
    """A link in any segment is refused, wherever it leads."""
    outside = write_tree(tmp_path / "outside", {"x.md": "secret", "deep/x.md": "secret"})
    root = write_tree(tmp_path / "root", {"inside/real/x.md": "x"})
    (root / "link.md").symlink_to(outside / "x.md")
    (root / "folder").symlink_to(outside)
    (root / "inside" / "link").symlink_to(root / "inside" / "real")
    (root / "loop").symlink_to(root)
    with pytest.raises(InvalidPath, match="link"):
        leads_to(guarded(root), path)


@needs_links
def test_root__may_be_a_link(tmp_path: Path) -> None:
    """The root itself is resolved once."""
    real = write_tree(tmp_path / "real", {"a.md": "x"})
    (tmp_path / "link").symlink_to(real)
    guard = guarded(tmp_path / "link")
    assert guard.root == real.resolve()
    assert leads_to(guard, "a.md")


@pytest.mark.parametrize("text", [".git/config", "a/.GIT/x", ".git", ".lvs-tmp-1-abc", "a/.LVS-tmp-x.md"])
def test_check__refuses_what_is_never_touched(tmp_path: Path, text: str) -> None:
    """``.git`` and temporary files are closed, whatever their case."""
    with pytest.raises(InvalidPath, match="refused"):
        guarded(tmp_path).check(RelPath(text))


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (".store", True),
        (".store/index.db", True),
        (".STORE/index.db", True),
        (".store/deep/x.md", True),
        (".store.example.yaml", False),
        (".stored/x", False),
        ("kb.db", True),
        ("KB.db", True),
        ("kb.db-wal", True),
        ("kb.db-shm", True),
        ("kb.db.lock", True),
        ("kb.dbx", False),
        ("notes/kb.db", False),
    ],
)
def test_check__own_files(tmp_path: Path, text: str, own: bool) -> None:
    """The server's own files are closed with all that stands beside a database; their neighbours are open."""
    guard = guarded(tmp_path, OwnPaths(directories=(tmp_path / ".store",), files=(tmp_path / "kb.db",)))
    assert (guard.refusal(RelPath(text)) is not None) is own


def test_own_paths__outside_the_root_are_harmless(tmp_path: Path) -> None:
    """A storage elsewhere closes nothing here; nor does the root itself."""
    root = write_tree(tmp_path / "root", {"a.md": ""})
    guard = guarded(root, OwnPaths(directories=(tmp_path / "elsewhere", root)))
    assert guard.refusal(RelPath("a.md")) is None


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="the system itself finds both forms")
@pytest.mark.parametrize("stored", ["NFC", "NFD"])
def test_at__finds_other_unicode_form(tmp_path: Path, stored: str) -> None:
    """A name in another Unicode form is the same file, in every segment."""
    name = unicodedata.normalize(stored, "Überblick")  # type: ignore[arg-type]
    write_tree(tmp_path, {f"{name}/{name}.md": "x"})
    with guarded(tmp_path).at(RelPath.parse("Überblick/Überblick.md")) as place:
        assert place.status is not None
        assert place.name == f"{name}.md"


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="needs both forms side by side")
def test_at__prefers_the_composed_form(tmp_path: Path) -> None:
    """Where both forms stand side by side, the composed one is meant."""
    write_tree(tmp_path, {"\u00e9.md": "composed", "e\u0301.md": "decomposed"})
    with guarded(tmp_path).at(RelPath("\u00e9.md")) as place:
        assert place.name == "\u00e9.md"


def test_at_new__makes_folders_and_takes_them_back(tmp_path: Path) -> None:
    """Folders made on the way to a new file go again if it is not made."""
    guard = guarded(write_tree(tmp_path, {"a": None}))
    with pytest.raises(RuntimeError), guard.at_new(RelPath("a/b/c/x.md")) as (place, made):
        assert made == ["a/b", "a/b/c"]
        assert place.status is None
        raise RuntimeError
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a"]


def test_at_new__keeps_folders_that_others_use(tmp_path: Path) -> None:
    """A folder in which somebody else has put a file meanwhile stays."""
    with pytest.raises(RuntimeError), guarded(tmp_path).at_new(RelPath("a/b/x.md")):
        (tmp_path / "a" / "other.md").write_text("x")
        raise RuntimeError
    assert (tmp_path / "a" / "other.md").exists()
    assert not (tmp_path / "a" / "b").exists()


@pytest.mark.parametrize("below", ["", "sub/"])
def test_parse__absolute_path_under_the_root(tmp_path: Path, below: str) -> None:
    """An absolute path under the root is refused with the relative one to use."""
    with pytest.raises(InvalidPath, match=f"{below}a.md") as refused:
        guarded(tmp_path).parse(str(tmp_path / below / "a.md"))
    assert refused.value.details == {"relativePath": f"{below}a.md"}


@pytest.mark.parametrize("text", ["/etc/passwd", "/", "../x.md"])
def test_parse__other_refusals_stay(tmp_path: Path, text: str) -> None:
    """What does not lie under the root is refused without a hint."""
    with pytest.raises(InvalidPath) as refused:
        guarded(tmp_path).parse(text)
    assert refused.value.details == {}


def test_root__missing(tmp_path: Path) -> None:
    """A root that is not there is an error at once."""
    with pytest.raises(IoFailure, match="cannot be opened"):
        guarded(tmp_path / "nowhere")


def test_root__vanished(tmp_path: Path) -> None:
    """A root that goes later is an error, not an empty tree."""
    root = write_tree(tmp_path / "root", {})
    guard = guarded(root)
    root.rmdir()
    with pytest.raises(IoFailure, match="cannot be read"):
        leads_to(guard, "a.md")


@needs_links
def test_is_own_file__by_hard_link(tmp_path: Path) -> None:
    """One of the own files is known under any name."""
    root = write_tree(tmp_path / "root", {".store/history.db": "secret", "a.md": "x"})
    os.link(root / ".store" / "history.db", root / "innocent.png")
    guard = guarded(root, OwnPaths(directories=(root / ".store",)))
    assert guard.is_own_file((root / "innocent.png").stat())
    assert not guard.is_own_file((root / "a.md").stat())


@needs_links
def test_is_own_file__single_files(tmp_path: Path) -> None:
    """A database that stands in the root by itself is known under any name, too."""
    root = write_tree(tmp_path, {"kb.db": "secret", "a.md": "x"})
    os.link(root / "kb.db", root / "b.md")
    guard = guarded(root, OwnPaths(directories=(root / "none",), files=(root / "gone.db", root / "kb.db")))
    assert guard.is_own_file((root / "b.md").stat())
    assert not guard.is_own_file((root / "a.md").stat())


def test_root__is_a_file(tmp_path: Path) -> None:
    """A file is no root."""
    write_tree(tmp_path, {"a.md": "x"})
    with pytest.raises(IoFailure, match="no directory"):
        guarded(tmp_path / "a.md")
