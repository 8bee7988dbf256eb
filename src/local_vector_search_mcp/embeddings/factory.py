"""The provider that the configuration asks for. Loads no model and opens no connection."""

from dataclasses import dataclass
from pathlib import Path

from local_vector_search_mcp.embeddings.prefixes import prefixes_for
from local_vector_search_mcp.embeddings.provider import DisabledProvider, EmbeddingProvider
from local_vector_search_mcp.errors import ConfigError

PROVIDERS = ("none", "local", "ollama", "openai-compatible")
_DEFAULT_MODELS = {"local": "wordllama", "ollama": "bge-m3:latest", "openai-compatible": "bge-m3"}
_DEFAULT_ENDPOINTS = {"ollama": "http://localhost:11434", "openai-compatible": "http://localhost:11434/v1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """What the configuration says about embeddings. None means the provider's own default.

    ``api_key`` is the key itself, already read from the environment where the configuration names a variable.
    """

    provider: str = "local"
    endpoint: str | None = None
    model: str | None = None
    dimensions: int | None = None
    batch_size: int = 16
    timeout_s: float = 120.0
    api_key: str | None = None
    allow_remote_endpoint: bool = False
    query_prefix: str | None = None
    document_prefix: str | None = None

    def __repr__(self) -> str:
        """Like a dataclass's, without the key."""
        return f"EmbeddingSettings(provider={self.provider!r}, endpoint={self.endpoint!r}, model={self.model!r})"


def make_provider(settings: EmbeddingSettings, *, base_folder: Path) -> EmbeddingProvider:
    """The provider for these settings.

    Args:
        settings: The configuration's.
        base_folder: Where a relative folder in ``model`` starts.

    Raises:
        ConfigError: An unknown provider or an endpoint that is not permitted.
    """
    match settings.provider:
        case "none":
            return DisabledProvider()
        case "local":
            return _local(settings, base_folder)
        case "ollama" | "openai-compatible":
            return _remote(settings)
        case unknown:
            raise ConfigError(f"embedding.provider {unknown!r} is unknown; use one of {', '.join(PROVIDERS)}.")


def _local(settings: EmbeddingSettings, base_folder: Path) -> EmbeddingProvider:
    model = settings.model or _DEFAULT_MODELS["local"]
    if model == _DEFAULT_MODELS["local"]:
        if settings.dimensions is not None and settings.dimensions > 256:
            raise ConfigError("embedding.dimensions is at most 256 for the model wordllama; leave it out.")
        from local_vector_search_mcp.embeddings.local import StaticProvider

        return StaticProvider(
            dimensions=settings.dimensions,
            query_prefix=settings.query_prefix or "",
            document_prefix=settings.document_prefix or "",
        )
    from local_vector_search_mcp.embeddings.onnx import OnnxProvider

    return OnnxProvider(
        (base_folder / Path(model).expanduser()).absolute(),
        query_prefix=settings.query_prefix,
        document_prefix=settings.document_prefix,
    )


def _remote(settings: EmbeddingSettings) -> EmbeddingProvider:
    from local_vector_search_mcp.embeddings.endpoint_policy import check_endpoint
    from local_vector_search_mcp.embeddings.remote import RemoteSettings

    model = settings.model or _DEFAULT_MODELS[settings.provider]
    endpoint = settings.endpoint or _DEFAULT_ENDPOINTS[settings.provider]
    check_endpoint(endpoint, allow_remote=settings.allow_remote_endpoint)
    known = prefixes_for(model)
    remote = RemoteSettings(
        endpoint=endpoint,
        model=model,
        dimensions=settings.dimensions,
        batch_size=settings.batch_size,
        timeout_s=settings.timeout_s,
        allow_remote=settings.allow_remote_endpoint,
        query_prefix=known.query if settings.query_prefix is None else settings.query_prefix,
        document_prefix=known.document if settings.document_prefix is None else settings.document_prefix,
    )
    if settings.provider == "ollama":
        from local_vector_search_mcp.embeddings.ollama import OllamaProvider

        return OllamaProvider(remote, api_key=settings.api_key)
    from local_vector_search_mcp.embeddings.openai_compatible import OpenAiCompatibleProvider

    return OpenAiCompatibleProvider(remote, api_key=settings.api_key)
