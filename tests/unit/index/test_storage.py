"""The storage directory: made private, or refused where it is not ours."""

import os
import stat
import sys
from pathlib import Path

import pytest

from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.index.storage import StorageAccess, prepare_storage

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and owners")


def test_prepare_storage__makes_it_private(tmp_path: Path) -> None:
    """A directory that we make has mode 0700 and a .gitignore that ignores everything, whatever the umask."""
    before = os.umask(0o000)
    try:
        directory = tmp_path / "deep" / ".store"
        assert prepare_storage(directory) is StorageAccess.WRITABLE
    finally:
        os.umask(before)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert (directory / ".gitignore").read_text() == "*\n"


def test_prepare_storage__takes_what_is_there(tmp_path: Path) -> None:
    """A directory that is there is used as it is."""
    (tmp_path / "s").mkdir(mode=0o755)
    assert prepare_storage(tmp_path / "s") is StorageAccess.WRITABLE
    assert list((tmp_path / "s").iterdir()) == []
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o755


def test_prepare_storage__refuses_links_and_files(tmp_path: Path) -> None:
    """A link or a file in its place refuses the start, and the link's target is left alone."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    for name in ("link", "dangling", "file"):
        with pytest.raises(IoFailure, match=name):
            prepare_storage(tmp_path / name)
    assert list((tmp_path / "real").iterdir()) == []


def test_prepare_storage__refuses_another_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of another user is refused."""
    (tmp_path / "s").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "s").stat().st_uid + 1)
    with pytest.raises(IoFailure, match="another user"):
        prepare_storage(tmp_path / "s")


def test_prepare_storage__read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written, what is there can be read, and what is not there is absent."""
    (tmp_path / "s").mkdir()

    def refuse(*_: object, **__: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    assert prepare_storage(tmp_path / "s") is StorageAccess.READ_ONLY
    monkeypatch.setattr(os, "mkdir", refuse)
    assert prepare_storage(tmp_path / "other") is StorageAccess.ABSENT


def test_prepare_storage__makes_no_root(tmp_path: Path) -> None:
    """Folders are made below a project root and elsewhere, never the root itself."""
    root = tmp_path / "root"
    for inside in ("s", "deep/er/s"):
        assert prepare_storage(root / inside, project_root=root) is StorageAccess.ABSENT
    assert not root.exists()
    assert prepare_storage(tmp_path / "far/away/s", project_root=root) is StorageAccess.WRITABLE
    root.mkdir()
    for inside in ("s", "deep/er/s"):
        assert prepare_storage(root / inside, project_root=root) is StorageAccess.WRITABLE
