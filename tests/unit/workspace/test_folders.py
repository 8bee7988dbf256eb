"""Folder: the same steps by descriptor and by path."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.trees import read_tree, write_tree

from local_vector_search_mcp.workspace import native_rename
from local_vector_search_mcp.workspace.folders import DescriptorFolder, Folder, LinkRefused, PathFolder, open_folder


def by_descriptor(path: Path) -> Folder:
    folder = open_folder(path)
    if not isinstance(folder, DescriptorFolder):
        pytest.skip("this system has no descriptors for directories")
    return folder


def by_path(path: Path) -> Folder:
    return PathFolder(path)


both = pytest.mark.parametrize("opened", [by_descriptor, by_path])
Opened = Callable[[Path], Folder]


@both
def test_read__regular_file(tmp_path: Path, opened: Opened) -> None:
    """A regular file is opened for reading."""
    write_tree(tmp_path, {"a.md": "text"})
    with opened(tmp_path) as folder:
        fd = folder.open_to_read("a.md")
        assert os.read(fd, 10) == b"text"
        os.close(fd)
        assert folder.stat("a.md").st_size == 4
        assert folder.names() == ["a.md"]


@both
@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege on Windows")
def test_links__are_refused(tmp_path: Path, opened: Opened) -> None:
    """Neither a linked file nor a linked folder is opened."""
    write_tree(tmp_path, {"real/a.md": "x"})
    (tmp_path / "file").symlink_to(tmp_path / "real" / "a.md")
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    with opened(tmp_path) as folder:
        with pytest.raises(LinkRefused):
            folder.open_to_read("file")
        with pytest.raises(LinkRefused):
            folder.folder("folder")


@both
@pytest.mark.skipif(os.name == "nt", reason="POSIX file kinds")
def test_read__other_kinds(tmp_path: Path, opened: Opened) -> None:
    """A folder and a pipe are refused before anything is opened."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with opened(tmp_path) as folder:
        with pytest.raises(IsADirectoryError):
            folder.open_to_read("folder")
        with pytest.raises(OSError, match="regular") as refused:
            folder.open_to_read("pipe")
        assert refused.value.errno == errno.ENXIO


@both
def test_folder__missing_and_no_folder(tmp_path: Path, opened: Opened) -> None:
    """What is no folder cannot be entered."""
    write_tree(tmp_path, {"a.md": "x"})
    with opened(tmp_path) as folder:
        with pytest.raises(FileNotFoundError):
            folder.folder("none")
        with pytest.raises(NotADirectoryError):
            folder.folder("a.md")


@both
def test_create__never_an_existing_file(tmp_path: Path, opened: Opened) -> None:
    """A taken name is an error."""
    write_tree(tmp_path, {"a.md": "x"})
    with opened(tmp_path) as folder:
        with pytest.raises(FileExistsError):
            folder.create("a.md", 0o600)
        os.close(folder.create("b.md", 0o600))
    assert read_tree(tmp_path) == {"a.md": b"x", "b.md": b""}


@both
def test_rename__never_over_a_file(tmp_path: Path, opened: Opened) -> None:
    """A rename to a taken name is an error and changes nothing; to a free one it moves."""
    write_tree(tmp_path, {"a.md": "a", "b.md": "b", "sub/c.md": "c"})
    with opened(tmp_path) as folder, folder.folder("sub") as sub:
        for target, name in ((folder, "b.md"), (sub, "c.md")):
            with pytest.raises(FileExistsError):
                folder.rename("a.md", target, name)
        folder.rename("a.md", sub, "a.md")
        folder.replace("b.md", sub, "c.md")
        folder.flush()
    assert read_tree(tmp_path) == {"sub/a.md": b"a", "sub/c.md": b"b"}


@both
def test_folders__make_and_remove(tmp_path: Path, opened: Opened) -> None:
    """Folders are made and removed by name, full ones are not."""
    with opened(tmp_path) as folder:
        folder.make_folder("new")
        with folder.folder("new") as new:
            os.close(new.create("a.md", 0o600))
        with pytest.raises(OSError):
            folder.remove_folder("new")
        with folder.folder("new") as new:
            new.remove("a.md")
        folder.remove_folder("new")
    assert list(tmp_path.iterdir()) == []


def test_exchange__both_or_nothing(tmp_path: Path) -> None:
    """Two names change places, or the answer is that they cannot."""
    write_tree(tmp_path, {"a.md": "a", "b.md": "b"})
    with by_descriptor(tmp_path) as folder:
        done = folder.exchange("a.md", "b.md")
    assert read_tree(tmp_path) == ({"a.md": b"b", "b.md": b"a"} if done else {"a.md": b"a", "b.md": b"b"})
    with by_path(tmp_path) as folder:
        assert not folder.exchange("a.md", "b.md")


class Refusing:
    """``os.link`` on a file system that has none."""

    def __call__(self, *arguments: object, **options: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.skipif(os.name == "nt", reason="Windows refuses a taken name by itself")
@pytest.mark.parametrize("links", [True, False])
def test_rename__without_the_system_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """Where the exclusive rename is unknown, a second link does as well, and without links a look."""
    monkeypatch.setattr(native_rename, "_native_call", lambda: None)
    if not links:
        monkeypatch.setattr(os, "link", Refusing())
    write_tree(tmp_path, {"a.md": "a", "b.md": "b"})
    with by_descriptor(tmp_path) as folder:
        with pytest.raises(FileExistsError):
            folder.rename("a.md", folder, "b.md")
        folder.rename("a.md", folder, "c.md")
        assert not folder.exchange("b.md", "c.md")
    assert read_tree(tmp_path) == {"c.md": b"a", "b.md": b"b"}


def test_mixed_kinds__are_a_mistake(tmp_path: Path) -> None:
    """A rename between folders opened in two ways is no rename."""
    write_tree(tmp_path, {"a.md": "a"})
    with by_descriptor(tmp_path) as one, by_path(tmp_path) as other:
        with pytest.raises(TypeError):
            one.rename("a.md", other, "b.md")
        with pytest.raises(TypeError):
            other.rename("a.md", one, "b.md")
