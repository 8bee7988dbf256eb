"""What providers that call a service have in common: settings, prefixes and the path through the batcher."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_vector_search_mcp.embeddings.batching import Batcher
from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure
from local_vector_search_mcp.errors import EmbeddingUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSettings:
    """One service and one of its models. Holds no key."""

    endpoint: str
    model: str
    dimensions: int | None = None
    batch_size: int = 16
    timeout_s: float = 120.0
    allow_remote: bool = False
    query_prefix: str = ""
    document_prefix: str = ""


class RemoteProvider:
    """The common part of a provider over a service; subclasses give the raw call."""

    def __init__(self, settings: RemoteSettings, batcher: Batcher) -> None:
        self._settings = settings
        self._batcher = batcher

    @property
    def model(self) -> str:
        """The model's name."""
        return self._settings.model

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors, once it is known."""
        return self._batcher.dimensions

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        """Embed texts of documents; see ``EmbeddingProvider``."""
        prefix = self._settings.document_prefix
        return self._batcher.embed([prefix + text for text in texts])

    def embed_query(self, text: str) -> Embedding:
        """Embed a search query; see ``EmbeddingProvider``."""
        result = self._batcher.embed([self._settings.query_prefix + text])[0]
        if isinstance(result, EmbeddingFailure):
            raise EmbeddingUnavailable(f"The query cannot be embedded: {result.reason}. Search with mode lexical.")
        return result

    def check(self) -> None:
        """Ask for the vector of one word; see ``EmbeddingProvider``."""
        self.embed_query("check")

    def close(self) -> None:
        """Cut waits short."""
        self._batcher.close()
