"""Building the app: where its own files lie, what is shared, and what is refused."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local_vector_search_mcp.app import App, open_app
from local_vector_search_mcp.config.loader import load_config
from local_vector_search_mcp.errors import ConfigError, InvalidArgument, IoFailure
from local_vector_search_mcp.services.job_state import RunOutcome

Open = Callable[..., App]


@pytest.fixture
def open_project(tmp_path: Path) -> Iterator[Open]:
    """Opens the project in ``project``, with embeddings off; everything is closed at the end."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nKettle.\n", encoding="utf-8")
    opened: list[App] = []

    def open_with(text: str = "", *, for_server: bool = False, **options: object) -> App:
        file = tmp_path / "settings.yaml"
        file.write_text(text, encoding="utf-8")
        overrides = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
        config = load_config(
            config_file=file,
            environ={},
            overrides={"--embedding-provider": "none", **overrides},
            project_root=root,
        )
        app = open_app(config, for_server=for_server, environ={})
        opened.append(app)
        return app

    yield open_with
    for app in opened:
        app.close()


def indexed(app: App) -> App:
    app.start()
    for corpus in app.corpora:
        ticket = corpus.indexer.request()
        assert corpus.indexer.wait(ticket.run_id, timeout_s=20).outcome is RunOutcome.SUCCEEDED
    return app


def listed(app: App) -> list[str]:
    return [str(file.path) for file in app.listing.list_files().files]


def found(app: App, query: str = "kettle", **arguments: Any) -> list[str]:
    return [str(hit.path) for hit in app.searching.search(query=query, **arguments).results]


def test_service__is_built_once_by_many_threads(open_project: Open) -> None:
    """Threads that come at the same moment get the same service."""
    app = open_project()
    start = threading.Barrier(8)
    seen: list[object] = []

    def look() -> None:
        start.wait()
        seen.append(app.mutations)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len({id(one) for one in seen}) == 1


def test_close__twice(open_project: Open) -> None:
    """Closing what is closed does nothing."""
    app = indexed(open_project(for_server=True))
    app.close()
    app.close()


@pytest.mark.parametrize("storage", [".local-vector-search-mcp", "state", ".", "kb.db", "sub/kb.db", "a.db/"])
def test_storage__own_files_are_never_listed(open_project: Open, storage: str, tmp_path: Path) -> None:
    """Wherever the index lies, tools see the project's files alone, and the index works."""
    app = indexed(open_project(storage_path=storage))
    app.documents.create(path="b.md", markdown="Another kettle.")
    assert listed(app) == ["a.md", "b.md"]
    assert found(app) == ["a.md"] or sorted(found(app)) == ["a.md", "b.md"]
    layout = tmp_path / "project" / storage
    assert layout.exists()


def test_storage__outside_the_root(open_project: Open, tmp_path: Path) -> None:
    """An absolute place outside works, and is made."""
    app = indexed(open_project(storage_path=str(tmp_path / "elsewhere" / "deep")))
    assert found(app) == ["a.md"]
    assert (tmp_path / "elsewhere" / "deep" / "index.db").is_file()


def test_storage__a_link_is_refused(open_project: Open, tmp_path: Path) -> None:
    """A repository must not be able to send the index elsewhere."""
    (tmp_path / "target").mkdir()
    (tmp_path / "project" / ".local-vector-search-mcp").symlink_to(tmp_path / "target")
    with pytest.raises(IoFailure, match="link"):
        open_project()


@pytest.mark.parametrize("root", ["absent", "a.md"])
def test_root__must_be_a_directory(open_project: Open, root: str) -> None:
    """A root that is none is a wrong setting, which stops the start."""
    with pytest.raises(ConfigError, match=rf"^knowledgeBase\.root: .*{root}"):
        open_project(root=root)


def test_embedding__settings_that_contradict(open_project: Open) -> None:
    """What only shows when the provider is made stops the start too."""
    with pytest.raises(ConfigError):
        open_project("embedding: {apiKey: a, apiKeyEnv: B}")
    with pytest.raises(ConfigError, match="allowRemoteEndpoint"):
        open_project(embedding_provider="ollama", embedding_endpoint="http://192.0.2.1:1")


def test_collections__have_their_own_index(open_project: Open, tmp_path: Path) -> None:
    """Collections are indexed by themselves, searched together, and refused by a wrong name."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"# {name}\n\nThe kettle of {name}.\n", encoding="utf-8")
    app = indexed(open_project("collections: [{name: one, root: ../one}, {name: two, root: ../two}]\n"))
    assert sorted(found(app)) == ["a.md", "one.md", "two.md"]
    assert found(app, collections=["two"]) == ["two.md"]
    assert found(app, collections=["project"]) == ["a.md"]
    assert len({corpus.database.path for corpus in app.corpora}) == 3
    assert [corpus.collection for corpus in app.corpora] == [None, "one", "two"]
    with pytest.raises(InvalidArgument, match="project, one, two"):
        app.corpora.get("three")
    assert [info.name for info in app.status.status().collections] == ["one", "two"]


def test_collections__root_must_be_there(open_project: Open) -> None:
    """A collection that cannot be opened stops the start and is named."""
    with pytest.raises(ConfigError, match=r"x: root: .*gone"):
        open_project("collections: [{name: x, root: ../gone}]\n")


def test_server__follows_changes(open_project: Open, tmp_path: Path) -> None:
    """A server indexes at start and then what other programs change, without being asked."""
    app = open_project(for_server=True)
    app.start()
    assert app.indexer.wait_first_run(20)
    (tmp_path / "project" / "new.md").write_text("A quixotic note.\n", encoding="utf-8")
    deadline = threading.Event()
    for _ in range(200):
        if found(app, "quixotic") == ["new.md"]:
            break
        deadline.wait(0.05)
    assert found(app, "quixotic") == ["new.md"]
    assert app.status.status().watching in ("native", "polling")


def test_server__without_start_run_or_watching(open_project: Open) -> None:
    """``onStart: none`` and ``watchFiles: false`` leave everything to a request."""
    app = open_project("index: {onStart: none}\nknowledgeBase: {watchFiles: false}\n", for_server=True)
    app.start()
    assert not app.indexer.wait_first_run(0.3)
    assert app.status.status().watching == "off"
    assert found(indexed(app)) == ["a.md"]
