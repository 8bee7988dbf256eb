"""What every embedding provider gives: unit vectors for documents and queries, or a reason why not."""

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from local_vector_search_mcp.errors import EmbeddingUnavailable


@dataclass(frozen=True, slots=True)
class Embedding:
    """One text as a vector.

    ``vector`` holds little-endian float32 values of Euclidean length 1, ``4 * dimensions`` bytes.
    """

    vector: bytes
    dimensions: int


@dataclass(frozen=True, slots=True)
class EmbeddingFailure:
    """One text that this model cannot embed, while others can; trying the same text again is of no use."""

    reason: str


class EmbeddingProvider(Protocol):
    """Text to vectors. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """The provider's name in the configuration: ``none``, ``local``, ``ollama`` or ``openai-compatible``."""
        ...

    @property
    def model(self) -> str:
        """The model's name, as the index manifest records it; empty for ``none``."""
        ...

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors; None while no vector has been seen and none was configured."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        """Embed texts of documents, one result per text, in order.

        Raises:
            EmbeddingUnavailable: The provider as a whole does not answer; the same texts can be tried later.
        """
        ...

    def embed_query(self, text: str) -> Embedding:
        """Embed a search query.

        Raises:
            EmbeddingUnavailable: The provider does not answer, or this text cannot be embedded.
        """
        ...

    def check(self) -> None:
        """Return when the provider answers with a usable vector.

        Raises:
            EmbeddingUnavailable: It does not; the message says why and what to do.
        """
        ...

    def close(self) -> None:
        """Let go of connections and models. No call may follow."""
        ...


class DisabledProvider:
    """Provider ``none``: lexical search only."""

    name = "none"
    model = ""
    dimensions: int | None = None

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        """Always raises: there is nothing to embed with."""
        raise self._unavailable()

    def embed_query(self, text: str) -> Embedding:
        """Always raises: there is nothing to embed with."""
        raise self._unavailable()

    def check(self) -> None:
        """Always raises: there is nothing to embed with."""
        raise self._unavailable()

    def close(self) -> None:
        """Nothing is held."""

    @staticmethod
    def _unavailable() -> EmbeddingUnavailable:
        return EmbeddingUnavailable(
            "Semantic search needs embeddings and embedding.provider is none; search with mode lexical, "
            "or configure a provider and reindex."
        )


def to_embedding(values: Iterable[float], *, dimensions: int | None) -> Embedding | EmbeddingFailure:
    """Check one vector of a provider and scale it to unit length.

    Args:
        values: The vector as the model gave it.
        dimensions: The length it must have; None accepts any.

    Returns:
        The unit vector, or why it cannot be used: wrong length, NaN, infinite, or zero.
    """
    try:
        raw = array("d", values)
    except (TypeError, ValueError, OverflowError):
        return EmbeddingFailure("the model answered a vector with something other than numbers in it")
    if not raw:
        return EmbeddingFailure("the model answered an empty vector")
    if dimensions is not None and len(raw) != dimensions:
        return EmbeddingFailure(f"the model answered {len(raw)} dimensions where {dimensions} were expected")
    length = math.hypot(*raw)
    if not math.isfinite(length):
        return EmbeddingFailure("the model answered a vector with NaN or infinity in it")
    if length < 1e-12:
        return EmbeddingFailure("the model answered a vector of length zero")
    unit = array("f", [value / length for value in raw])
    return Embedding(_little_endian(unit), len(raw))


def _little_endian(values: "array[float]") -> bytes:
    if array("H", [1]).tobytes() == b"\x01\x00":
        return values.tobytes()
    swapped = array("f", values)
    swapped.byteswap()
    return swapped.tobytes()
