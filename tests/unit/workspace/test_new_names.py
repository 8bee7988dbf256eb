"""Names for new files: free in every case and every Unicode form."""

import os
from pathlib import Path

import pytest
from tests.support.trees import write_tree

from local_vector_search_mcp.errors import AlreadyExists, InvalidPath, NotFound
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.files import Workspace

TREE = {"notes/Plan.md": "x", "notes/cafe\u0301.md": "x", "img.png": "x", ".gitignore": "build/\n"}


@pytest.mark.parametrize(
    "path",
    [
        "notes/new.md",
        "notes/Plan2.md",
        "fresh/Plan.md",
        "img2.png",
        "notes/café/x.md",
        "plan.md",
        "build.md",
        "x/build.md",
    ],
)
def test_check_new__free(tmp_path: Path, path: str) -> None:
    """A name that nothing has is free, with or without its folders."""
    Workspace(write_tree(tmp_path, TREE)).check_new(RelPath(path))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("notes/Plan.md", "exists already"),
        ("notes/plan.md", "notes/Plan.md exists, which differs"),
        ("NOTES/new.md", "notes exists, which differs"),
        ("Notes/Plan.md", "notes exists, which differs"),
        ("notes/café.md", "exists already"),
        ("notes/CAFÉ.md", "differs"),
        ("IMG.png", "differs"),
        ("img.png/x.md", "img.png is a file"),
        ("notes", "exists already"),
    ],
)
def test_check_new__taken(tmp_path: Path, path: str, message: str) -> None:
    """A name that differs by case or Unicode form only is as good as taken."""
    with pytest.raises(AlreadyExists, match=message):
        Workspace(write_tree(tmp_path, TREE)).check_new(RelPath(path))


@pytest.mark.parametrize(
    ("old", "new", "free"),
    [
        ("notes/Plan.md", "notes/PLAN.md", True),
        ("notes/Plan.md", "notes/plan.md", True),
        ("notes/Plan.md", "notes/Plan.md", False),
        ("img.png", "notes/plan.md", False),
        ("notes/Plan.md", "Notes/Plan.md", False),
    ],
)
def test_check_new__case_only_rename(tmp_path: Path, old: str, new: str, free: bool) -> None:
    """Only the file itself may take a name that differs from its own in case."""
    workspace = Workspace(write_tree(tmp_path, TREE))
    if free:
        workspace.check_new(RelPath(new), replacing=RelPath(old))
    else:
        with pytest.raises(AlreadyExists):
            workspace.check_new(RelPath(new), replacing=RelPath(old))


@pytest.mark.parametrize("path", ["node_modules/a.md", "build/a.md", "x/.obsidian/a.md", "a.MD"])
def test_check_new__rules(tmp_path: Path, path: str) -> None:
    """A Markdown file is only made where the rules select it."""
    with pytest.raises(NotFound, match="no document of this workspace"):
        Workspace(write_tree(tmp_path, TREE)).check_new(RelPath(path))


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege on Windows")
def test_check_new__link_on_the_way(tmp_path: Path) -> None:
    """A linked folder takes no new files."""
    outside = write_tree(tmp_path / "outside", {})
    root = write_tree(tmp_path / "root", {})
    (root / "link").symlink_to(outside)
    with pytest.raises(InvalidPath, match="link"):
        Workspace(root).check_new(RelPath("link/a.md"))
