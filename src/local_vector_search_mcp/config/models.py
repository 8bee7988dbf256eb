"""The settings a person can give, one model per section: types, bounds, defaults and a line on each.

Keys are camelCase outside and snake_case inside. Every key has a default, so an empty file is a complete one.
Where the files lie and which layer wins is ``loader``; what the inner packages get is ``settings``.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    Strict,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.workspace.globs import compile_globs
from local_vector_search_mcp.workspace.listing import DEFAULT_EXCLUDE, DEFAULT_INCLUDE

PROJECT_COLLECTION: Final = "project"

_MIB: Final = 1024 * 1024
_COLLECTION_NAME = re.compile(r"[^\W_][\w.-]{0,63}")


class LogLevel(StrEnum):
    """How much is logged on standard error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class OnStart(StrEnum):
    """What the server does with the index when it starts."""

    RECONCILE = "reconcile"
    NONE = "none"


class ProviderName(StrEnum):
    """Where embeddings come from."""

    NONE = "none"
    LOCAL = "local"
    OLLAMA = "ollama"
    OPENAI_COMPATIBLE = "openai-compatible"


class ModeName(StrEnum):
    """How a search looks for its hits."""

    AUTO = "auto"
    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _check_globs(patterns: tuple[str, ...]) -> tuple[str, ...]:
    try:
        compile_globs(patterns)
    except InvalidArgument as error:
        raise ValueError(error.message.rstrip(".")) from error
    return patterns


# Strict models take an enum only as its member; these take its text too, which is what every layer gives.
_ScopeText = Annotated[Scope, Strict(False)]
_LogLevelText = Annotated[LogLevel, Strict(False), BeforeValidator(_lower)]
_OnStartText = Annotated[OnStart, Strict(False)]
_ProviderText = Annotated[ProviderName, Strict(False)]
_ModeText = Annotated[ModeName, Strict(False)]
_Texts = tuple[Annotated[str, Field(min_length=1)], ...]
_Globs = Annotated[_Texts, AfterValidator(_check_globs)]
_Path = Annotated[str, Field(min_length=1)]
_VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Section(BaseModel):
    """What all sections share: frozen, strict, unknown keys refused, both spellings of a key accepted."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
    )


class ServerSection(Section):
    """How the server presents itself."""

    name: str = Field(
        default="local-vector-search-mcp",
        min_length=1,
        max_length=64,
        description="Name that clients show for this server.",
    )
    instructions: str = Field(
        default="", max_length=4000, description="Text that stands before the built instructions; empty adds nothing."
    )
    log_level: _LogLevelText = Field(
        default=LogLevel.INFO,
        description="Least important message to log on standard error: debug, info, warning, error, critical.",
    )


class KnowledgeBaseSection(Section):
    """Which files the server may touch, and how far it may go."""

    root: _Path = Field(
        default=".",
        description="The Markdown tree; relative paths start at the project root, absolute ones are allowed.",
    )
    include: _Globs = Field(default=DEFAULT_INCLUDE, min_length=1, description="Globs of the documents to index.")
    exclude: _Globs = Field(
        default=DEFAULT_EXCLUDE, description="Globs of what is left out; a list here replaces this one."
    )
    respect_gitignore: bool = Field(default=True, description="Leave out what .gitignore files ignore.")
    allow_writes: bool = Field(
        default=False, description="Let clients change files (scope full, unless scope is given)."
    )
    scope: _ScopeText | None = Field(
        default=None,
        description="What clients may do: read, edit (no deleting of files) or full; wins over allowWrites.",
    )
    watch_files: bool = Field(
        default=True, description="Follow changes that other programs make while the server runs."
    )
    max_file_bytes: int = Field(
        default=16 * _MIB,
        ge=1024,
        le=1024 * _MIB,
        description="Larger documents are listed as unsupported, not indexed.",
    )


class StorageSection(Section):
    """Where the derived index and the history lie."""

    path: _Path = Field(
        default=".local-vector-search-mcp",
        description="Directory for index.db and history.db, or the index file itself; from the project root.",
    )


class IndexSection(Section):
    """When and how the index follows the files."""

    on_start: _OnStartText = Field(
        default=OnStart.RECONCILE, description="reconcile brings the index in line at start; none waits for kb_reindex."
    )
    write_wait_ms: int = Field(
        default=200, ge=0, le=10_000, description="How long an edit waits for the index before it answers."
    )
    workers: int | None = Field(
        default=None, ge=1, le=64, description="Processes that parse; null means one per core, at most 4."
    )


class EmbeddingSection(Section):
    """Where vectors come from."""

    provider: _ProviderText = Field(
        default=ProviderName.LOCAL, description="none, local (inside the process), ollama or openai-compatible."
    )
    endpoint: _Path | None = Field(
        default=None,
        description=(
            "Base URL; null means http://localhost:11434 for ollama, http://localhost:11434/v1 for openai-compatible."
        ),
    )
    model: _Path | None = Field(
        default=None,
        description="null means wordllama for local, else bge-m3; for local also a folder that holds an ONNX model.",
    )
    dimensions: int | None = Field(
        default=None, ge=1, le=16_384, description="Length of the vectors; null means what the model gives."
    )
    batch_size: int = Field(default=16, ge=1, le=1024, description="Texts per request.")
    timeout_seconds: float = Field(default=120.0, gt=0, le=3600, description="Longest wait for one request.")
    api_key: SecretStr | None = Field(
        default=None, description="Key for the endpoint; apiKeyEnv keeps it out of this file."
    )
    api_key_env: _VariableName | None = Field(default=None, description="Environment variable that holds the key.")
    allow_remote_endpoint: bool = Field(
        default=False, description="Let text leave this machine for an endpoint that is not loopback."
    )
    query_prefix: str | None = Field(
        default=None, description="Put before queries; null means what a known model needs, otherwise nothing."
    )
    document_prefix: str | None = Field(
        default=None, description="Put before chunks; null means what a known model needs, otherwise nothing."
    )
    cache_days: int = Field(
        default=30, ge=0, le=3650, description="Days that unused vectors are kept for text that comes back."
    )


class ChunkingSection(Section):
    """How documents are cut into the units that are found; a change needs a rebuild."""

    max_chunk_bytes: int = Field(default=4096, ge=256, le=65_536, description="Largest chunk.")
    max_elements: int = Field(default=20, ge=1, le=200, description="Most elements of one chunk.")
    include_heading_context: bool = Field(
        default=True, description="Begin the text to embed with title and heading path."
    )
    include_front_matter: bool = Field(default=True, description="Make front matter part of a document's first chunk.")


class SearchSection(Section):
    """How hits are found and ranked."""

    default_mode: _ModeText = Field(
        default=ModeName.AUTO,
        description="auto (hybrid where there are vectors, else lexical), lexical, semantic or hybrid.",
    )
    max_results: int = Field(default=10, ge=1, le=50, description="Results where a call does not say how many (topK).")
    semantic_candidate_pool_size: int = Field(
        default=50, ge=1, le=1000, description="Semantic hits that fusion looks at."
    )
    lexical_candidate_pool_size: int = Field(
        default=50, ge=1, le=1000, description="Lexical hits that fusion looks at."
    )
    rrf_k: int = Field(default=60, ge=1, le=1000, description="Damping of reciprocal rank fusion.")
    lexical_weight: float | None = Field(
        default=None, ge=0, le=100, description="Weight of the lexical ranking; null means what suits the model."
    )
    semantic_weight: float | None = Field(
        default=None, ge=0, le=100, description="Weight of the semantic ranking; null means what suits the model."
    )
    max_per_document: int = Field(
        default=3, ge=1, le=50, description="Chunks of one document before other documents come first."
    )
    stop_words: Literal["auto"] | _Texts = Field(
        default="auto", description="Words that never decide a search: auto, or a list of words."
    )

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if self.lexical_weight == 0 and self.semantic_weight == 0:
            raise ValueError("lexicalWeight and semanticWeight are both 0, so nothing would rank; raise one of them")
        return self


class HistorySection(Section):
    """What is kept so that changes can be undone."""

    enabled: bool = Field(default=True, description="Record every change, so that it can be undone.")
    max_bytes: int = Field(
        default=256 * _MIB, ge=0, le=1024 * 1024 * _MIB, description="Oldest changes go above this size."
    )
    max_age_days: int = Field(default=90, ge=1, le=36_500, description="Changes older than this go.")


class HttpSection(Section):
    """Where `serve` listens."""

    host: _Path = Field(default="127.0.0.1", description="Address to listen on; one beyond loopback needs tokenEnv.")
    port: int = Field(default=8001, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    path: str = Field(default="/mcp", pattern=r"^/[^\s?#]*$", description="Path of the MCP endpoint.")
    allowed_hosts: _Texts = Field(default=(), description="Further Host and Origin names that are let in.")
    token_env: _VariableName | None = Field(
        default=None,
        description="Environment variable that holds the bearer token; once named, the token is always asked for.",
    )

    @field_validator("path")
    @classmethod
    def _check_path(cls, path: str) -> str:
        if path.rstrip("/") in ("", "/healthz"):
            raise ValueError("the path must not be '/' or '/healthz', which answer for themselves")
        return path


class CollectionSection(Section):
    """A further read-only tree."""

    name: str = Field(description="What tools call it; 'project' is taken.")
    root: _Path = Field(description="The tree; relative paths start at the project root.")
    include: _Globs = Field(default=DEFAULT_INCLUDE, min_length=1, description="Globs of the documents to index.")
    exclude: _Globs = Field(default=DEFAULT_EXCLUDE, description="Globs of what is left out.")

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not _COLLECTION_NAME.fullmatch(name):
            raise ValueError("a name is 1 to 64 letters, digits, '_', '-' or '.', and begins with a letter or digit")
        if name.casefold() == PROJECT_COLLECTION:
            raise ValueError(f"the name '{PROJECT_COLLECTION}' is reserved for the project itself; choose another")
        return name


class ConfigFile(Section):
    """Everything that a configuration file may hold."""

    server: ServerSection = Field(default_factory=ServerSection)
    knowledge_base: KnowledgeBaseSection = Field(default_factory=KnowledgeBaseSection)
    storage: StorageSection = Field(default_factory=StorageSection)
    index: IndexSection = Field(default_factory=IndexSection)
    embedding: EmbeddingSection = Field(default_factory=EmbeddingSection)
    chunking: ChunkingSection = Field(default_factory=ChunkingSection)
    search: SearchSection = Field(default_factory=SearchSection)
    history: HistorySection = Field(default_factory=HistorySection)
    http: HttpSection = Field(default_factory=HttpSection)
    collections: tuple[CollectionSection, ...] = Field(
        default=(), description="Further trees that are searched, never written."
    )

    @field_validator("collections")
    @classmethod
    def _check_collections(cls, collections: tuple[CollectionSection, ...]) -> tuple[CollectionSection, ...]:
        seen: set[str] = set()
        for collection in collections:
            if collection.name.casefold() in seen:
                raise ValueError(f"two collections are named '{collection.name}'; names differ by more than case")
            seen.add(collection.name.casefold())
        return collections


class Config(ConfigFile):
    """The settings in force, and the project that they are for."""

    project_root: Path = Field(description="Absolute and resolved; where relative paths start.")

    @property
    def scope(self) -> Scope:
        """What clients may do: the given scope, else what ``allowWrites`` says."""
        given = self.knowledge_base.scope
        if given is not None:
            return given
        return Scope.FULL if self.knowledge_base.allow_writes else Scope.READ

    @property
    def root(self) -> Path:
        """The workspace root, absolute and not yet checked."""
        return self.project_root / Path(self.knowledge_base.root).expanduser()

    def collection_root(self, collection: CollectionSection) -> Path:
        """The root of a collection, absolute and not yet checked."""
        return self.project_root / Path(collection.root).expanduser()
