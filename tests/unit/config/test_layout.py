"""Where the server's own files lie."""

from pathlib import Path

import pytest

from local_vector_search_mcp.config.layout import StorageLayout
from local_vector_search_mcp.config.loader import load_config
from local_vector_search_mcp.errors import ConfigError


def layout(root: Path, storage_path: str | None = None) -> StorageLayout:
    options = {"--storage-path": storage_path}
    return StorageLayout.of(load_config(config_file=None, environ={}, overrides=options, project_root=root))


@pytest.mark.parametrize(
    ("given", "index", "history"),
    [
        (None, ".local-vector-search-mcp/index.db", ".local-vector-search-mcp/history.db"),
        ("state", "state/index.db", "state/history.db"),
        ("state/", "state/index.db", "state/history.db"),
        ("state.db/", "state.db/index.db", "state.db/history.db"),
        ("state/my.db", "state/my.db", "state/my.history.db"),
        ("state/index.db", "state/index.db", "state/history.db"),
        ("my.sqlite3", "my.sqlite3", "my.history.db"),
        ("there.db", "there.db/index.db", "there.db/history.db"),
        ("present", "present", "present.history.db"),
    ],
)
def test_layout__file_or_directory(tmp_path: Path, given: str | None, index: str, history: str) -> None:
    """What exists decides; else a database suffix means a file, all else a directory."""
    (tmp_path / "there.db").mkdir()
    (tmp_path / "present").write_bytes(b"")
    found = layout(tmp_path, given)
    assert (found.index_path, found.history_path) == (tmp_path / index, tmp_path / history)


def test_layout__two_files_in_one_directory_share_nothing(tmp_path: Path) -> None:
    """Index files of two projects may lie side by side."""
    one, two = layout(tmp_path, "s/a.db"), layout(tmp_path, "s/b.db")
    assert one.directory == two.directory
    assert one.history_path != two.history_path
    assert one.state_directory != two.state_directory


def test_layout__collections_do_not_share(tmp_path: Path) -> None:
    """Names that look alike after cleaning have directories of their own."""
    found = layout(tmp_path)
    names = ("a.b", "a-b", "A-b", "日本", "日木")
    assert len({found.collection_directory(name) for name in names}) == len(names)
    assert all(found.collection_directory(name).is_relative_to(found.directory) for name in names)


@pytest.mark.parametrize("name", ["note.md", "photo.png", "notes.db", "short"])
def test_layout__file_of_somebody_else_is_no_index(tmp_path: Path, name: str) -> None:
    """A note that storage.path names is refused as index, and stays as it is."""
    (tmp_path / name).write_bytes(b"# Mine")
    found = layout(tmp_path, name)
    with pytest.raises(ConfigError, match=r"storage\.path: .* left alone"):
        found.check_index_file()
    assert (tmp_path / name).read_bytes() == b"# Mine"


@pytest.mark.parametrize("head", [b"", b"SQLite format 3\0more"])
@pytest.mark.parametrize("name", ["present", "my.db"])
def test_layout__index_file_may_be_used(tmp_path: Path, name: str, head: bytes) -> None:
    """A database, an empty file and none at all may be the index."""
    layout(tmp_path, "new.db").check_index_file()
    (tmp_path / name).write_bytes(head)
    layout(tmp_path, name).check_index_file()


def test_layout__damaged_index_may_be_healed(tmp_path: Path) -> None:
    """A file that was the server's own, which the directory beside it tells, is healed whatever it holds now."""
    (tmp_path / "my.db").write_bytes(b"garbage")
    (tmp_path / "my.db.d").mkdir()
    layout(tmp_path, "my.db").check_index_file()
    (tmp_path / "index.db").write_bytes(b"garbage")
    layout(tmp_path, "index.db").check_index_file()
