"""FakeEmbeddings: deterministic vectors from digests of words; texts that share words are near each other."""

import hashlib
from collections.abc import Sequence

from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure, to_embedding
from local_vector_search_mcp.errors import EmbeddingUnavailable


def word_vector(text: str, dimensions: int) -> list[float]:
    """The sum of one pseudo-random vector per word; never zero."""
    total = [0.0] * dimensions
    for word in text.lower().split() or [""]:
        digest = hashlib.shake_128(word.encode("utf-8")).digest(dimensions)
        for place, byte in enumerate(digest):
            total[place] += byte - 127.5
    return total


class FakeEmbeddings:
    """An ``EmbeddingProvider`` without a model. ``down`` makes every call fail.

    ``calls`` counts the texts that were given to be embedded, ``texts`` holds them in their order.
    """

    name = "fake"

    def __init__(self, *, model: str = "fake-1", dimensions: int = 32, refuse: str = "") -> None:
        self.model = model
        self.dimensions: int | None = dimensions
        self.down = False
        self.calls = 0
        self.texts: list[str] = []
        self._refuse = refuse
        self._length = dimensions

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        if self.down:
            raise EmbeddingUnavailable("The embedding service is not available: it is switched off.")
        self.calls += len(texts)
        self.texts += texts
        return [
            EmbeddingFailure("the model refuses this text: it answered HTTP 400")
            if self._refuse and self._refuse in text
            else to_embedding(word_vector(text, self._length), dimensions=self._length)
            for text in texts
        ]

    def embed_query(self, text: str) -> Embedding:
        result = self.embed_documents([text])[0]
        if isinstance(result, EmbeddingFailure):
            raise EmbeddingUnavailable(result.reason)
        return result

    def check(self) -> None:
        self.embed_query("check")

    def close(self) -> None:
        self.down = True
