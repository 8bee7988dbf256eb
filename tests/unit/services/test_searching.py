"""kb_search as a service: modes, several trees, stale and vanished files, arguments, explanations."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_embeddings import FakeEmbeddings
from tests.support.indexed_project import Project, wait_until

from local_vector_search_mcp.embeddings.provider import DisabledProvider, EmbeddingProvider
from local_vector_search_mcp.errors import (
    EmbeddingUnavailable,
    IndexIncompatible,
    IndexNotReady,
    InvalidArgument,
    InvalidPath,
    NotFound,
)
from local_vector_search_mcp.search.search import SearchSettings
from local_vector_search_mcp.services.corpus import Corpora, Corpus
from local_vector_search_mcp.services.search_arguments import SearchMode
from local_vector_search_mcp.services.searching import SearchingService, SearchingSettings, SearchResult

NOTES = {
    "rocket.md": "# Rocket\n\nThe rocket flies to the moon.\n",
    "plan.md": "# Plan\n\nWe plan a moon landing.\n",
    "soup.md": "# Soup\n\nBoil the tortoise gently.\n",
}


class Setting:
    """A project, its collections, and the service over them."""

    def __init__(self, folder: Path, provider: EmbeddingProvider | None = None) -> None:
        self._folder = folder
        self._provider = provider
        self.project = self._tree("project", NOTES)
        self.collections: dict[str, Project] = {}

    def add(self, name: str, notes: dict[str, str]) -> Project:
        """A further tree."""
        self.collections[name] = self._tree(name, notes)
        return self.collections[name]

    def service(self, *, default_mode: SearchMode = SearchMode.AUTO) -> SearchingService:
        """The service, over the trees there are now."""
        corpora = Corpora(
            self.project.corpora().project,
            [_renamed(tree.corpora().project, name) for name, tree in self.collections.items()],
        )
        settings = SearchingSettings(ranking=SearchSettings(), default_mode=default_mode)
        return SearchingService(corpora, self._provider or DisabledProvider(), settings)

    def search(self, query: str, **arguments: Any) -> SearchResult:
        """A search with the defaults."""
        return self.service().search(query=query, **arguments)

    def close(self) -> None:
        """Let go of every index."""
        for tree in (self.project, *self.collections.values()):
            tree.indexer.stop()

    def _tree(self, name: str, notes: dict[str, str]) -> Project:
        tree = Project(self._folder / name / "notes", self._folder / name / "store", provider=self._provider)
        for path, text in notes.items():
            tree.put(path, text)
        return tree


def _renamed(corpus: Corpus, name: str) -> Corpus:
    return Corpus(
        name=name,
        workspace=corpus.workspace,
        documents=corpus.documents,
        database=corpus.database,
        indexer=corpus.indexer,
    )


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    """A project with an index and no vectors."""
    made = Setting(tmp_path)
    made.project.start()
    yield made
    made.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Setting]:
    """A project with vectors."""
    made = Setting(tmp_path, FakeEmbeddings())
    made.project.start()
    _await_vectors(made.project)
    yield made
    made.close()


def _await_vectors(project: Project) -> None:
    def done() -> bool:
        with project.database.reader() as connection:
            return not connection.execute("SELECT count(*) FROM chunks WHERE embed_state = 0").get

    wait_until(done)


def paths(result: SearchResult) -> list[str]:
    """The documents found, in order."""
    return [hit.path for hit in result.results]


def test_search__result(setting: Setting) -> None:
    """A hit carries everything that leads on from it."""
    result = setting.search("rocket moon")
    assert result.mode is SearchMode.LEXICAL
    assert result.index == "ready"
    assert result.missing_terms == ()
    assert result.warnings == ()
    first = result.results[0]
    assert (first.rank, first.path, first.kind, first.title) == (1, "rocket.md", "paragraph", "Rocket")
    assert first.full_pointer == f"rocket.md::{first.pointer}"
    assert first.heading_path == ("Rocket",)
    assert first.lines == (3, 3)
    assert first.snippet == "…The **rocket** flies to the **moon**."
    assert not first.stale
    assert first.collection is None
    assert first.read_hint.path == "rocket.md"
    assert [hit.rank for hit in result.results] == [1, 2]


def test_search__stale_hit(setting: Setting) -> None:
    """A file that has changed since is said to be stale; one that was only touched is not."""
    os.utime(setting.project.root / "rocket.md", ns=(1, 1))
    setting.project.put("plan.md", "# Plan\n\nWe plan a moon landing, later.\n")
    stale = {hit.path: hit.stale for hit in setting.search("moon").results}
    assert stale == {"rocket.md": False, "plan.md": True}


def test_search__vanished_file(setting: Setting) -> None:
    """A hit whose file is gone is left out."""
    (setting.project.root / "rocket.md").unlink()
    assert paths(setting.search("moon")) == ["plan.md"]


@pytest.mark.parametrize(
    ("mode", "answered", "warns"),
    [(None, "lexical", False), ("auto", "lexical", False), ("lexical", "lexical", False), ("hybrid", "lexical", True)],
)
def test_search__modes_without_provider(setting: Setting, mode: str | None, answered: str, warns: bool) -> None:
    """Without a provider words answer; a hybrid search says so."""
    result = setting.search("moon", mode=mode)
    assert result.mode.value == answered
    assert bool(result.warnings) is warns
    assert result.results


def test_search__semantic_without_provider(setting: Setting) -> None:
    """Meaning cannot be searched without a provider."""
    with pytest.raises(EmbeddingUnavailable, match="provider"):
        setting.search("moon", mode="semantic")


@pytest.mark.parametrize(
    ("mode", "answered"),
    [(None, "hybrid"), ("auto", "hybrid"), ("lexical", "lexical"), ("hybrid", "hybrid"), ("semantic", "semantic")],
)
def test_search__modes_with_vectors(embedded: Setting, mode: str | None, answered: str) -> None:
    """With vectors every mode answers as asked, each with the scores of its branches."""
    result = embedded.search("rocket flies", mode=mode)
    assert result.mode.value == answered
    assert result.results[0].path == "rocket.md"
    assert result.warnings == ()
    scores = result.results[0].scores
    assert (scores.lexical is not None) is (answered != "semantic")
    assert (scores.semantic is not None) is (answered != "lexical")
    assert (scores.fused is not None) is (answered == "hybrid")


def test_search__semantic_finds_what_words_do_not(embedded: Setting) -> None:
    """A semantic search has no need of common words, and hybrid brings its hits along."""
    assert len(embedded.search("unheard", mode="semantic").results) == 3
    assert len(embedded.search("unheard", mode="hybrid").results) == 3
    assert embedded.search("unheard", mode="hybrid").missing_terms == ("unheard",)
    assert embedded.search("unheard", mode="lexical").results == ()


@pytest.mark.parametrize("mode", ["semantic", "hybrid", "lexical"])
def test_search__exclusions_in_every_mode(embedded: Setting, mode: str) -> None:
    """What is excluded is in no hit, whatever the mode, and is not embedded."""
    found = paths(embedded.search("moon -landing", mode=mode))
    assert "rocket.md" in found
    assert "plan.md" not in found


def test_search__phrase_in_hybrid(embedded: Setting) -> None:
    """A quoted phrase holds for the semantic branch of a hybrid search too."""
    assert paths(embedded.search('"moon landing"', mode="hybrid")) == ["plan.md"]


@pytest.mark.parametrize("mode", ["semantic", "hybrid", "auto"])
def test_search__filters_in_every_mode(embedded: Setting, mode: str) -> None:
    """Filters hold for the semantic branch too."""
    assert paths(embedded.search("moon", mode=mode, path_prefix="soup.md")) == ["soup.md"]


def test_search__without_letters(embedded: Setting) -> None:
    """Signs alone have no meaning: nothing is found, and the answer says by what."""
    for mode in ("auto", "hybrid", "lexical", "semantic"):
        result = embedded.search("* (", mode=mode)
        assert result.results == ()
        assert result.missing_terms == ("*", "(")


def test_search__provider_down(tmp_path: Path) -> None:
    """When the provider is away, words answer and the answer says so; meaning alone is refused."""
    provider = FakeEmbeddings()
    made = Setting(tmp_path, provider)
    made.project.start()
    _await_vectors(made.project)
    provider.down = True
    for mode in ("auto", "hybrid"):
        result = made.search("moon", mode=mode)
        assert result.mode is SearchMode.LEXICAL
        assert result.results
        assert any("words" in warning for warning in result.warnings)
    with pytest.raises(EmbeddingUnavailable):
        made.search("moon", mode="semantic")
    made.close()


def test_search__nothing_embedded_yet(tmp_path: Path) -> None:
    """Before the first vector words answer, with a warning that gives the provider's reason."""
    provider = FakeEmbeddings()
    provider.down = True
    made = Setting(tmp_path, provider)
    made.project.start()
    wait_until(lambda: made.project.indexer.snapshot().embedding_error is not None)
    result = made.search("moon")
    assert result.mode is SearchMode.LEXICAL
    assert result.results
    error = made.project.indexer.snapshot().embedding_error
    assert error is not None
    assert any(error in warning for warning in result.warnings)
    made.close()


def test_search__collections(setting: Setting) -> None:
    """Hits of several trees are fused by rank, the project first among equals, and carry their collection."""
    setting.add("books", {"moon.md": "# Moon\n\nAll about the moon.\n", "zebra.md": "# Zebra\n\nStripes.\n"}).start()
    result = setting.search("moon")
    assert [hit.collection for hit in result.results] == [None, "books", None]
    assert result.results[1].path == "moon.md"
    assert result.results[1].read_hint.collection == "books"
    assert setting.search("zebra rocket").missing_terms == ()
    assert setting.search("unicorn").missing_terms == ("unicorn",)
    assert {hit.collection for hit in setting.search("moon", collections=["books"]).results} == {"books"}
    assert {hit.collection for hit in setting.search("moon", collections=["project"]).results} == {None}
    with pytest.raises(InvalidArgument, match="books"):
        setting.search("moon", collections=["nowhere"])


def test_search__collection_without_index(setting: Setting) -> None:
    """A collection that is not indexed yet does not keep the others from answering."""
    setting.add("books", {"moon.md": "# Moon\n"})
    result = setting.search("moon")
    assert result.results
    assert any("books" in warning for warning in result.warnings)


def test_search__nothing_indexed(tmp_path: Path) -> None:
    """Without any index a search is refused."""
    made = Setting(tmp_path)
    with pytest.raises(IndexNotReady):
        made.search("moon")
    made.close()


def test_search__empty_project(tmp_path: Path) -> None:
    """A project without documents is an answer without hits."""
    made = Setting(tmp_path)
    for name in NOTES:
        (made.project.root / name).unlink()
    made.project.start()
    result = made.search("moon")
    assert (result.results, result.missing_terms) == ((), ("moon",))
    made.close()


def test_search__incompatible_index(setting: Setting) -> None:
    """An index of another root is not searched."""
    with setting.project.database.writer() as connection:
        connection.execute("UPDATE manifest SET value = '\"/elsewhere\"' WHERE key = 'root'")
    with pytest.raises(IndexIncompatible):
        setting.search("moon")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": ""}, InvalidArgument),
        ({"query": "  "}, InvalidArgument),
        ({"top_k": 0}, InvalidArgument),
        ({"top_k": 51}, InvalidArgument),
        ({"snippet_bytes": -1}, InvalidArgument),
        ({"snippet_bytes": 4001}, InvalidArgument),
        ({"mode": "fuzzy"}, InvalidArgument),
        ({"group_by": "path"}, InvalidArgument),
        ({"include_glob": "[a"}, InvalidArgument),
        ({"exclude_glob": [""]}, InvalidArgument),
        ({"path_prefix": "../x"}, InvalidPath),
        ({"where": {"a": {"$x": 1}}}, InvalidArgument),
        ({"modified_after": "soon"}, InvalidArgument),
        ({"explain": "nowhere.md"}, NotFound),
        ({"explain": "../x.md"}, InvalidPath),
    ],
)
def test_search__refused(setting: Setting, arguments: dict[str, Any], error: type[Exception]) -> None:
    """Arguments out of bounds or without meaning are refused."""
    call: dict[str, Any] = {"query": "moon", **arguments}
    with pytest.raises(error):
        setting.service().search(**call)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"include_glob": "r*.md"}, {"rocket.md"}),
        ({"include_glob": ["r*.md", "plan.*"]}, {"rocket.md", "plan.md"}),
        ({"exclude_glob": "r*.md"}, {"plan.md"}),
        ({"include_glob": "*.md", "exclude_glob": ["plan.md"]}, {"rocket.md"}),
        ({"include_glob": "*.txt"}, set[str]()),
    ],
)
def test_search__globs(setting: Setting, arguments: dict[str, Any], expected: set[str]) -> None:
    """Globs are one or a list."""
    assert set(paths(setting.search("moon", **arguments))) == expected


def test_search__snippet_bytes(setting: Setting) -> None:
    """Snippets keep to their size, and 0 leaves them out."""
    assert all(len(hit.snippet.encode()) <= 20 for hit in setting.search("moon", snippet_bytes=20).results)
    assert {hit.snippet for hit in setting.search("moon", snippet_bytes=0).results} == {""}


def test_search__explain(setting: Setting) -> None:
    """An explanation tells whether a document is selected and indexed, what it lacks, and where it stands."""
    found = setting.search("rocket moon", explain="plan.md").explanation
    assert found is not None
    assert (found.selected, found.rule, found.indexed, found.filtered_out) == (True, None, True, False)
    assert found.missing_terms == ("rocket",)
    assert found.ranks.lexical == 2
    setting.project.put("node_modules/x.md", "# Moon\n")
    excluded = setting.search("moon", explain="node_modules/x.md").explanation
    assert excluded is not None
    assert not excluded.selected
    assert excluded.rule
    assert not excluded.indexed
    filtered = setting.search("moon", explain="plan.md", path_prefix="rocket.md").explanation
    assert filtered is not None
    assert filtered.filtered_out


def test_search__explain_what_cannot_be_indexed(setting: Setting) -> None:
    """A document that the rules select and that cannot be read is explained with the reason."""
    (setting.project.root / "broken.md").write_bytes(b"moon \xff")
    setting.project.run()
    result = setting.search("moon", explain="broken.md")
    assert result.explanation is not None
    assert (result.explanation.selected, result.explanation.indexed) == (True, False)
    assert any(warning.startswith("broken.md is not indexed: ") and "UTF-8" in warning for warning in result.warnings)
    assert setting.search("moon", explain="plan.md").warnings == ()


def test_search__explain_front_matter_that_does_not_parse(setting: Setting) -> None:
    """A document whose front matter no filter can match is explained with what is wrong with it."""
    setting.project.put("odd.md", "---\nstatus: [draft\n---\nThe moon.\n")
    setting.project.run()
    result = setting.search("moon", explain="odd.md", where={"status": "draft"})
    assert result.explanation is not None
    assert (result.explanation.indexed, result.explanation.filtered_out) == (True, True)
    assert any(warning.startswith("odd.md: The front matter does not parse") for warning in result.warnings)


def test_search__unfinished_first_run(tmp_path: Path) -> None:
    """While the first run has not ended, what is there is searched, with a warning."""
    made = Setting(tmp_path)
    made.project.run()
    result = made.search("moon")
    assert result.results
    assert result.index == "stale"
    assert any("indexed" in warning for warning in result.warnings)
    made.close()


def test_search__vectors_of_another_model(embedded: Setting) -> None:
    """Vectors of another model are not used: words answer with a warning, meaning alone is refused."""
    with embedded.project.database.writer() as connection:
        connection.execute("UPDATE manifest SET value = '\"older\"' WHERE key = 'model'")
    for mode in ("auto", "hybrid"):
        result = embedded.search("moon", mode=mode)
        assert result.mode is SearchMode.LEXICAL
        assert any("model" in warning for warning in result.warnings)
    with pytest.raises(EmbeddingUnavailable, match="rebuild"):
        embedded.search("moon", mode="semantic")


def test_search__vectors_cannot_be_loaded(embedded: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sqlite-vec words answer, and the answer says why."""
    monkeypatch.setattr(type(embedded.project.database), "vectors_available", False)
    result = embedded.search("moon")
    assert result.mode is SearchMode.LEXICAL
    assert any("vectors cannot be used" in warning for warning in result.warnings)


def test_search__some_passages_await_embedding(embedded: Setting) -> None:
    """What has no vector yet is found by its words, and the answer counts it."""
    with embedded.project.database.writer() as connection:
        connection.execute("UPDATE chunks SET embed_state = 0 WHERE id = 1")
    result = embedded.search("moon")
    assert result.mode is SearchMode.HYBRID
    assert any("await embedding" in warning and warning.endswith(": 1.") for warning in result.warnings)


def test_search__collections_with_and_without_vectors(embedded: Setting) -> None:
    """A collection without vectors answers by words in a hybrid search, and not at all in a semantic one."""
    books = embedded.add("books", {"moon.md": "# Moon\n\nAll about the moon.\n"})
    books.run()
    hybrid = embedded.search("moon")
    assert hybrid.mode is SearchMode.HYBRID
    assert "books" in {hit.collection for hit in hybrid.results}
    assert any("books" in warning for warning in hybrid.warnings)
    semantic = embedded.search("moon", mode="semantic")
    assert {hit.collection for hit in semantic.results} == {None}


def test_search__incompatible_collection(setting: Setting) -> None:
    """A collection that cannot be searched is left out with a warning, and refused where it is all that is asked."""
    books = setting.add("books", {"moon.md": "# Moon\n"}).start()
    with books.database.writer() as connection:
        connection.execute("UPDATE manifest SET value = '\"/elsewhere\"' WHERE key = 'root'")
    result = setting.search("moon")
    assert result.results
    assert any("books" in warning for warning in result.warnings)
    with pytest.raises(IndexIncompatible):
        setting.search("moon", collections=["books"])


def test_search__explain_in_a_collection(setting: Setting) -> None:
    """A document is explained in the first of the trees that has it."""
    setting.add("books", {"zebra.md": "# Zebra\n\nStripes.\n"}).start()
    explanation = setting.search("stripes", explain="zebra.md").explanation
    assert explanation is not None
    assert (explanation.indexed, explanation.ranks.lexical) == (True, 1)
    with pytest.raises(NotFound):
        setting.search("stripes", explain="zebra.md", collections=["project"])


def test_search__file_replaced_by_a_link(setting: Setting) -> None:
    """A hit whose file has become a link is left out."""
    file = setting.project.root / "rocket.md"
    file.rename(setting.project.root / "elsewhere.txt")
    file.symlink_to(setting.project.root / "elsewhere.txt")
    assert paths(setting.search("moon")) == ["plan.md"]


def test_search__default_mode(embedded: Setting) -> None:
    """The configured mode holds where a call does not say."""
    result = embedded.service(default_mode=SearchMode.LEXICAL).search(query="moon")
    assert result.mode is SearchMode.LEXICAL
