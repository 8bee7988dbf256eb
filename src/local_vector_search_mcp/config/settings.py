"""What the inner packages get of the configuration: their own settings, filled in.

Settings of what a start does not need are imported where they are made.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from local_vector_search_mcp.config.models import CollectionSection, Config, ProviderName
from local_vector_search_mcp.embeddings.factory import EmbeddingSettings
from local_vector_search_mcp.errors import ConfigError
from local_vector_search_mcp.index.chunker import ChunkerSettings
from local_vector_search_mcp.index.embedding_text import EmbeddingTextSettings
from local_vector_search_mcp.workspace.listing import SelectionRules

if TYPE_CHECKING:
    from local_vector_search_mcp.history.store import HistorySettings
    from local_vector_search_mcp.search.search import SearchSettings

_STATIC_MODEL: Final = "wordllama"
# A static model knows words and not sentences: it finds what words alone miss, and must not outvote them. Measured with
# weights from 0.15 to 1 on three sets: up to 0.25 hybrid is above lexical on average, above 0.35 below it on each.
_STATIC_SEMANTIC_WEIGHT: Final = 0.15


def selection_rules(config: Config) -> SelectionRules:
    """Which files of the project are documents."""
    section = config.knowledge_base
    return SelectionRules(
        include=section.include,
        exclude=section.exclude,
        respect_gitignore=section.respect_gitignore,
        max_file_bytes=section.max_file_bytes,
    )


def collection_rules(config: Config, collection: CollectionSection) -> SelectionRules:
    """Which files of a collection are documents; what it does not say itself is as for the project."""
    return SelectionRules(
        include=collection.include,
        exclude=collection.exclude,
        respect_gitignore=config.knowledge_base.respect_gitignore,
        max_file_bytes=config.knowledge_base.max_file_bytes,
    )


def chunker_settings(config: Config) -> ChunkerSettings:
    """How documents are cut."""
    section = config.chunking
    return ChunkerSettings(
        max_chunk_bytes=section.max_chunk_bytes,
        max_elements=section.max_elements,
        include_front_matter=section.include_front_matter,
    )


def embedding_text_settings(config: Config) -> EmbeddingTextSettings:
    """What text of a chunk is embedded."""
    return EmbeddingTextSettings(include_heading_context=config.chunking.include_heading_context)


def embedding_settings(config: Config, environ: Mapping[str, str]) -> EmbeddingSettings:
    """Where vectors come from, the key read from the environment where a variable is named.

    Raises:
        ConfigError: Key and variable are both given, or the variable is not set.
    """
    section = config.embedding
    key = section.api_key.get_secret_value() if section.api_key is not None else None
    if section.api_key_env is not None:
        if key is not None:
            raise ConfigError("embedding.apiKey and embedding.apiKeyEnv are both given; keep one of them.")
        key = secret_named(section.api_key_env, key="embedding.apiKeyEnv", environ=environ)
    return EmbeddingSettings(
        provider=section.provider.value,
        endpoint=section.endpoint,
        model=section.model,
        dimensions=section.dimensions,
        batch_size=section.batch_size,
        timeout_s=section.timeout_seconds,
        api_key=key,
        allow_remote_endpoint=section.allow_remote_endpoint,
        query_prefix=section.query_prefix,
        document_prefix=section.document_prefix,
    )


def search_settings(config: Config) -> "SearchSettings":
    """How hits are found and ranked; weights that are not given suit the model."""
    from local_vector_search_mcp.search.search import SearchSettings
    from local_vector_search_mcp.search.stop_words import ENGLISH

    section, words, weight = config.search, config.search.stop_words, config.search.semantic_weight
    static = config.embedding.provider is ProviderName.LOCAL and config.embedding.model in (None, _STATIC_MODEL)
    return SearchSettings(
        stop_words=ENGLISH if words == "auto" else frozenset(word.casefold() for word in words),
        lexical_pool=section.lexical_candidate_pool_size,
        semantic_pool=section.semantic_candidate_pool_size,
        rrf_k=section.rrf_k,
        lexical_weight=1.0 if section.lexical_weight is None else section.lexical_weight,
        semantic_weight=weight if weight is not None else _STATIC_SEMANTIC_WEIGHT if static else 1.0,
        max_per_document=section.max_per_document,
        latin_only=weight is None and static,
    )


def history_settings(config: Config) -> "HistorySettings":
    """What is kept so that changes can be undone."""
    from local_vector_search_mcp.history.store import HistorySettings

    section = config.history
    return HistorySettings(enabled=section.enabled, max_bytes=section.max_bytes, max_age_days=section.max_age_days)


def http_token(config: Config, environ: Mapping[str, str]) -> str | None:
    """The bearer token that HTTP clients must send; None where none is asked for.

    Raises:
        ConfigError: The variable that ``http.tokenEnv`` names is not set.
    """
    if config.http.token_env is None:
        return None
    return secret_named(config.http.token_env, key="http.tokenEnv", environ=environ)


def secret_named(variable: str, *, key: str, environ: Mapping[str, str]) -> str:
    """The secret in the environment variable that a setting names.

    Raises:
        ConfigError: The variable is not set, or empty.
    """
    secret = environ.get(variable, "")
    if not secret:
        raise ConfigError(
            f"{key} names the environment variable {variable}, which is not set; set it, or remove the key."
        )
    return secret
