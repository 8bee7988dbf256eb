"""A whole app on a disk that fills, and with a root that goes away: clear words, nothing lost, and it recovers."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.small_disk import small_disk
from tests.support.trees import read_tree, write_tree

from local_vector_search_mcp.app import App, open_app
from local_vector_search_mcp.config.loader import load_config
from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.services.job_state import RunOutcome, RunResult

TREE: dict[str, bytes] = {f"n{number}.md": f"# Note {number}\n\nsome words\n".encode() for number in range(5)}


@contextmanager
def opened(root: Path) -> Generator[App]:
    overrides = {"--embedding-provider": "none", "--allow-writes": True, "--watch-files": False}
    config = load_config(config_file=None, environ={}, overrides=overrides, project_root=root)
    app = open_app(config, for_server=True, environ={})
    try:
        app.start()
        app.indexer.wait_first_run(20)
        yield app
    finally:
        app.close()


def run(app: App) -> RunResult:
    return app.indexer.wait(app.indexer.request().run_id, timeout_s=20)


def patch(app: App) -> None:
    operation = {"kind": "insert_after", "pointer": "document", "markdown": "zebra"}
    app.patching.patch(path="n1.md", operations=[operation])


def contents(root: Path) -> dict[str, bytes]:
    return {path: data for path, data in read_tree(root).items() if path.endswith(".md")}


def test_app__full_disk(tmp_path: Path) -> None:
    """Changes and runs say that the disk is full; what reads goes on; with room everything works."""
    with small_disk(tmp_path / "disk", kib=2048) as disk:
        write_tree(disk.path, TREE)
        with opened(disk.path) as app:
            disk.fill()
            with pytest.raises(IoFailure, match="disk is full"):
                patch(app)
            assert app.undo.history(page_size=5).changes == ()
            assert app.searching.search(query="words").results
            assert contents(disk.path) == TREE
            disk.make_room()
            patch(app)
            assert len(app.undo.history(page_size=5).changes) == 1
            assert run(app).outcome is RunOutcome.SUCCEEDED
            assert app.searching.search(query="zebra").results


def test_app__full_disk_from_the_start(tmp_path: Path) -> None:
    """A run that finds no room for an index says so."""
    with small_disk(tmp_path / "disk") as disk:
        write_tree(disk.path, TREE)
        disk.fill()
        with opened(disk.path) as app:
            failed = run(app)
            assert failed.outcome is RunOutcome.FAILED
            assert "full" in (failed.message or "")
            disk.make_room()
            assert run(app).outcome is RunOutcome.SUCCEEDED


def test_app__root_goes_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A run without a root is refused in words of its own, makes nothing there, and works when the root is back."""
    root = write_tree(tmp_path / "root", TREE)
    with opened(root) as app:
        root.rename(tmp_path / "away")
        with pytest.raises(IoFailure, match="root is gone"):
            run(app)
        with pytest.raises(IoFailure):
            patch(app)
        assert not root.exists()
        assert contents(tmp_path / "away") == TREE
        (tmp_path / "away").rename(root)
        patch(app)
        assert run(app).outcome is RunOutcome.SUCCEEDED
        assert app.searching.search(query="zebra").results
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
