"""What the inner packages get of the configuration."""

from pathlib import Path
from typing import Any

import pytest

from local_vector_search_mcp.config import settings
from local_vector_search_mcp.config.loader import load_config
from local_vector_search_mcp.config.models import Config
from local_vector_search_mcp.errors import ConfigError
from local_vector_search_mcp.search.stop_words import ENGLISH


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def with_text(text: str = "") -> Config:
        path = tmp_path / "s.yaml"
        path.write_text(text, encoding="utf-8")
        return load_config(config_file=path, environ={}, overrides={}, project_root=tmp_path)

    return with_text


@pytest.mark.parametrize(
    ("text", "weights", "latin_only"),
    [
        ("", (1.0, 0.15), True),
        ("embedding: {model: wordllama}", (1.0, 0.15), True),
        ("embedding: {model: models/minilm}", (1.0, 1.0), False),
        ("embedding: {provider: ollama}", (1.0, 1.0), False),
        ("search: {semanticWeight: 0.4}", (1.0, 0.4), False),
        ("search: {lexicalWeight: 0, semanticWeight: 2}", (0.0, 2.0), False),
        ("search: {lexicalWeight: 0.5}", (0.5, 0.15), True),
    ],
)
def test_search__weights_suit_the_model(load: Any, text: str, weights: tuple[float, float], latin_only: bool) -> None:
    """The static model has a small say, others an equal one; a given weight is taken as it is."""
    found = settings.search_settings(load(text))
    assert (found.lexical_weight, found.semantic_weight) == weights
    assert found.latin_only is latin_only


def test_search__stop_words(load: Any) -> None:
    """``auto`` is the built-in list; a list replaces it, whatever its case."""
    assert settings.search_settings(load()).stop_words == ENGLISH
    assert settings.search_settings(load("search: {stopWords: [Foo, bar]}")).stop_words == {"foo", "bar"}
    assert settings.search_settings(load("search: {stopWords: []}")).stop_words == frozenset()


def test_selection__collections_follow_the_project(load: Any) -> None:
    """A collection has globs of its own, and the limits of the project."""
    config = load(
        "knowledgeBase: {include: [a], exclude: [b], respectGitignore: false, maxFileBytes: 2048}\n"
        "collections: [{name: c, root: c, include: ['*.txt']}]\n"
    )
    project = settings.selection_rules(config)
    assert (project.include, project.exclude, project.respect_gitignore, project.max_file_bytes) == (
        ("a",),
        ("b",),
        False,
        2048,
    )
    collection = settings.collection_rules(config, config.collections[0])
    assert collection.include == ("*.txt",)
    assert (collection.respect_gitignore, collection.max_file_bytes) == (False, 2048)


def test_chunking_and_history(load: Any) -> None:
    """Every key of these sections arrives."""
    config = load(
        "chunking: {maxChunkBytes: 512, maxElements: 3, includeHeadingContext: false, includeFrontMatter: false}\n"
        "history: {enabled: false, maxBytes: 5, maxAgeDays: 6}\n"
    )
    chunker = settings.chunker_settings(config)
    assert (chunker.max_chunk_bytes, chunker.max_elements, chunker.include_front_matter) == (512, 3, False)
    assert settings.embedding_text_settings(config).include_heading_context is False
    history = settings.history_settings(config)
    assert (history.enabled, history.max_bytes, history.max_age_days) == (False, 5, 6)


def test_embedding__key_from_file_or_variable(load: Any) -> None:
    """A key comes from one place; a variable that is named and not set stops the start."""
    assert settings.embedding_settings(load(), {}).api_key is None
    assert settings.embedding_settings(load("embedding: {apiKey: k}"), {}).api_key == "k"
    named = load("embedding: {apiKeyEnv: KEY, timeoutSeconds: 3, batchSize: 2, dimensions: 9, queryPrefix: q}")
    found = settings.embedding_settings(named, {"KEY": "v"})
    assert (found.api_key, found.timeout_s, found.batch_size, found.dimensions) == ("v", 3.0, 2, 9)
    assert (found.query_prefix, found.document_prefix) == ("q", None)
    with pytest.raises(ConfigError, match="KEY"):
        settings.embedding_settings(named, {"KEY": ""})
    with pytest.raises(ConfigError, match="both"):
        settings.embedding_settings(load("embedding: {apiKey: k, apiKeyEnv: KEY}"), {"KEY": "v"})


def test_http__token(load: Any) -> None:
    """No name, no token; a name without a value stops the start."""
    assert settings.http_token(load(), {"T": "x"}) is None
    assert settings.http_token(load("http: {tokenEnv: T}"), {"T": "x"}) == "x"
    with pytest.raises(ConfigError, match=r"http\.tokenEnv"):
        settings.http_token(load("http: {tokenEnv: T}"), {})
