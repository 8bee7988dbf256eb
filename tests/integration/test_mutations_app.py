"""Mutations through the whole app: the index follows, and two apps on one workspace lose nothing."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_vector_search_mcp.app import App, open_app
from local_vector_search_mcp.config.loader import load_config
from local_vector_search_mcp.errors import Conflict
from local_vector_search_mcp.services.job_state import RunOutcome
from local_vector_search_mcp.services.reading import ReadPage

_WAIT_MS = 10_000


class Project:
    """A project folder, and the apps that are open on it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self._storage = folder / "storage"
        self._apps: list[App] = []

    def open(self) -> App:
        """One more app on the project, running as a server does, its index up to date."""
        config = load_config(
            config_file=None,
            environ={"LVS_MCP_INDEX__WRITE_WAIT_MS": str(_WAIT_MS)},
            overrides={
                "--embedding-provider": "none",
                "--allow-writes": True,
                "--watch-files": False,
                "--storage-path": str(self._storage),
            },
            project_root=self.root,
        )
        app = open_app(config, for_server=True, environ={})
        self._apps.append(app)
        app.start()
        ticket = app.indexer.request()
        assert app.indexer.wait(ticket.run_id, timeout_s=30).outcome is RunOutcome.SUCCEEDED
        return app

    def close(self) -> None:
        """Close all apps."""
        for app in self._apps:
            app.close()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    place = Project(tmp_path)
    (place.root / "note.md").write_text("# Note\n\nkettle\n", encoding="utf-8")
    (place.root / "other.md").write_text("[n](note.md)\n", encoding="utf-8")
    yield place
    place.close()


def hits(app: App, query: str) -> list[str]:
    return [str(hit.path) for hit in app.searching.search(query=query, mode="lexical").results]


def pointer(app: App, path: str, logical: str) -> str:
    page = app.reading.read(path=path, pointer=logical)
    assert isinstance(page, ReadPage)
    assert page.elements is not None
    return page.elements[0].pointer


def append(app: App, path: str, text: str) -> None:
    app.patching.patch(path=path, operations=[{"kind": "insert_after", "pointer": "document", "markdown": text}])


def test_mutations__the_index_follows(project: Project) -> None:
    """What was written is found once the answer says that the index is synchronized; what went is not."""
    app = project.open()
    operation = {"kind": "replace_element", "pointer": pointer(app, "note.md", "1.p1"), "markdown": "samovar"}
    assert app.patching.patch(path="note.md", operations=[operation]).index_synchronized is True
    assert hits(app, "samovar") == ["note.md"]
    assert hits(app, "kettle") == []
    moved = app.documents.move(path="note.md", target_path="sub/renamed.md")
    assert moved.index_synchronized is True
    assert hits(app, "samovar") == ["sub/renamed.md"]
    links = app.links.links(path="sub/renamed.md", direction="incoming").links
    assert [(link.path, link.target) for link in links] == [("other.md", "sub/renamed.md")]
    deleted = app.documents.delete(path="sub/renamed.md", expected_source_hash=moved.source_hash or "")
    assert deleted.index_synchronized is True
    assert [link.path for link in deleted.broken_links] == ["other.md"]
    assert hits(app, "samovar") == []
    assert app.undo.undo(change_id=deleted.change_id or "").index_synchronized is True
    assert hits(app, "samovar") == ["sub/renamed.md"]


def test_mutations__two_apps_lose_nothing(project: Project) -> None:
    """Two servers and an editor that writes by renaming work on one document at once: every text arrives."""
    first, second = project.open(), project.open()
    errors: list[BaseException] = []

    def work(app: App, name: str) -> None:
        try:
            for number in range(10):
                append(app, "note.md", f"{name}{number}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in ((first, "a"), (second, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    text = (project.root / "note.md").read_text(encoding="utf-8")
    assert sorted(text.split()) == sorted(["#", "Note", "kettle", *[f"{name}{n}" for name in "ab" for n in range(10)]])
    newest = first.undo.history().changes[0]
    assert second.undo.history().changes[0] == newest
    assert second.undo.undo(change_id=newest.change_id).applied


def test_mutations__a_stale_pointer_of_the_other_app_is_a_conflict(project: Project) -> None:
    """What one app read and the other changed is never overwritten."""
    first, second = project.open(), project.open()
    operation = {"kind": "replace_element", "pointer": pointer(first, "note.md", "1.p1"), "markdown": "mine"}
    second.patching.patch(path="note.md", operations=[{**operation, "markdown": "theirs"}])
    with pytest.raises(Conflict) as caught:
        first.patching.patch(path="note.md", operations=[operation])
    assert caught.value.details["currentText"] == "theirs"
