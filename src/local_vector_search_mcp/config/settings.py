"""What the inner packages get of the configuration: their own settings, filled in."""

from collections.abc import Mapping

from local_vector_search_mcp.config.models import CollectionSection, Config
from local_vector_search_mcp.embeddings.factory import EmbeddingSettings
from local_vector_search_mcp.errors import ConfigError
from local_vector_search_mcp.index.chunker import ChunkerSettings
from local_vector_search_mcp.index.embedding_text import EmbeddingTextSettings
from local_vector_search_mcp.workspace.listing import SelectionRules


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
