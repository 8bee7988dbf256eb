"""IgnoreFile and IgnoreCache: agreement with git, hostile lines, and reading again when a file changes."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.trees import write_tree

from local_vector_search_mcp.workspace import ignore
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.ignore import IgnoreCache, IgnoreFile
from local_vector_search_mcp.workspace.listing import SelectionRules


@pytest.mark.parametrize("line", ["*a" * 40 + "b", "*" + "?*" * 60 + "b", "**/a*a*a*/" * 12 + "b", "[a-z]*" * 40 + "0"])
def test_hostile_lines__cannot_hang(line: str) -> None:
    """A line made to make a matcher backtrack costs a bounded time, and then the file is passed over."""
    rules = IgnoreFile(line, place=".gitignore")
    names = ["a" * 200, "ab" * 100, "a/" * 300 + "c.md"]
    began = time.perf_counter()
    for name in names * 20:
        rules.verdict(name, name.rpartition("/")[2], folder=False)
    rules.may_speak_of("a/" * 100 + "a", ["a" * 200 + ".md"])
    assert time.perf_counter() - began < 5


def test_slow_file__is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose lines take too long says nothing any more, about any name."""
    monkeypatch.setattr(ignore, "_TIME_LIMIT_S", 1e-9)
    rules = IgnoreFile("*.md\n" + "*a" * 20 + "b\n" + "x/*" + "*a" * 20 + "b", place=".gitignore")
    name = "a" * 2000
    assert rules.may_speak_of("", [name])
    assert rules.verdict(name, name, folder=False) is None
    assert rules.too_slow
    assert rules.verdict("b.md", "b.md", folder=False) is None
    assert not rules.may_speak_of("", ["b.md"])


_names = st.sampled_from(["a", "b.md", "build", "keep.md", "x.log"])
_lines = st.lists(
    st.sampled_from(
        [
            "*.md",
            "!keep.md",
            "build/",
            "/a",
            "a/b.md",
            "**/build",
            "a/**",
            "!b.md",
            "*.log",
            "build/*",
            "/*/a",
            "keep.*",
        ]
    ),
    max_size=4,
).map("\n".join)


@given(lines=_lines, folder=st.lists(_names, max_size=2), names=st.lists(_names, min_size=1, max_size=4, unique=True))
def test_may_speak_of__is_sound(lines: str, folder: list[str], names: list[str]) -> None:
    """Where one look says that no line fits any file of a folder, no line fits any of them."""
    rules = IgnoreFile(lines, place=".gitignore")
    here = "/".join(folder)
    if not rules.may_speak_of(here, names):
        for name in names:
            assert rules.verdict(f"{here}/{name}" if here else name, name, folder=False) is None
        # Asked again with the same names, it answers from memory.
        assert not rules.may_speak_of(here, names)


_TREE = {
    "a/b.md": "",
    "a/keep.md": "",
    "a/build/b.md": "",
    "a/a/b.md": "",
    "b.md": "",
    "build/keep.md": "",
    "build/a/b.md": "",
    "keep.md": "",
}


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git, which is not installed")
@settings(max_examples=25, deadline=None)
@given(outer=_lines, inner=_lines)
def test_walk__agrees_with_git(tmp_path_factory: pytest.TempPathFactory, outer: str, inner: str) -> None:
    """The documents found are those that git would not ignore."""
    root = write_tree(tmp_path_factory.mktemp("git"), {**_TREE, ".gitignore": outer, "a/.gitignore": inner})
    subprocess.run(["git", "init", "-q", str(root)], check=True, capture_output=True)
    listed = subprocess.run(
        ["git", "-C", str(root), "-c", "core.excludesFile=", "ls-files", "-o", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    expected = {path for path in listed.stdout.split("\n") if path.endswith(".md")}
    workspace = Workspace(root)
    found = set(workspace.scan_documents().documents)
    assert found == expected
    assert {path for path in _TREE if workspace.is_document(workspace.parse(path))} == expected


def test_cache__reads_again_on_change() -> None:
    """A file is read when it is new or changed, and forgotten when it goes."""
    contents: dict[str, bytes] = {".gitignore": b"a.md"}
    asked: list[str] = []

    def read(place: str) -> bytes | None:
        asked.append(place)
        return contents.get(place)

    cache = IgnoreCache(read)
    first = cache.get("", (4, 1, 1, 1))
    assert first is not None
    assert cache.get("", (4, 1, 1, 1)) is first
    contents[".gitignore"] = b"b.md"
    second = cache.get("", (4, 2, 2, 1))
    assert second is not None
    assert second.verdict("b.md", "b.md", folder=False) is not None
    assert cache.get("", None) is None
    assert cache.get("x", (4, 1, 1, 1)) is None
    assert asked == [".gitignore", ".gitignore", "x/.gitignore"]


def test_cache__does_not_read_giants() -> None:
    """A .gitignore of many megabytes is none."""

    def read(place: str) -> bytes | None:
        raise AssertionError(place)

    assert IgnoreCache(read).get("", (50_000_000, 1, 1, 1)) is None


def test_gitignore__changes_take_effect(tmp_path: Path) -> None:
    """An edited .gitignore counts at the next walk."""
    workspace = Workspace(write_tree(tmp_path, {"a.md": "", "b.md": "", ".gitignore": "a.md\n"}))
    assert set(workspace.scan_documents().documents) == {"b.md"}
    (tmp_path / ".gitignore").write_text("nothing-of-this-length\n")
    assert set(workspace.scan_documents().documents) == {"a.md", "b.md"}


def test_gitignore__switched_off(tmp_path: Path) -> None:
    """Without respectGitignore it says nothing."""
    write_tree(tmp_path, {"a.md": "", ".gitignore": "a.md\n"})
    workspace = Workspace(tmp_path, SelectionRules(respect_gitignore=False))
    assert set(workspace.scan_documents().documents) == {"a.md"}
    assert workspace.is_document(workspace.parse("a.md"))


def test_gitignore__link_or_folder_in_its_place(tmp_path: Path) -> None:
    """Only a regular file holds rules; a link is not followed out of the root."""
    outside = write_tree(tmp_path / "outside", {"rules": "*.md\n"})
    root = write_tree(tmp_path / "root", {"a.md": "", "x/.gitignore": None, "x/b.md": ""})
    (root / ".gitignore").symlink_to(outside / "rules")
    workspace = Workspace(root)
    assert set(workspace.scan_documents().documents) == {"a.md", "x/b.md"}
    assert workspace.is_document(workspace.parse("x/b.md"))
