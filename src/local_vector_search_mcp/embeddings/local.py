"""Provider ``local`` with its default model: static word vectors that a package ships.

Needs no network, no server and no download.
"""

import importlib.util
import logging
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure, to_embedding
from local_vector_search_mcp.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

WORDLLAMA = "wordllama"
_WORDLLAMA_DIMENSIONS = 256
# A batch is padded to its longest text, so texts of like length are embedded together.
_BATCH_CHARS = 65_536


class StaticProvider:
    """Embeds with WordLlama: the mean of static token vectors, 256 dimensions.

    The model was trained so that the first dimensions of a vector stand for the whole; ``dimensions`` cuts it there.

    The model is loaded at the first use, in about half a second.
    """

    name = "local"

    def __init__(self, *, dimensions: int | None = None, query_prefix: str = "", document_prefix: str = "") -> None:
        self._dimensions = dimensions or _WORDLLAMA_DIMENSIONS
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix
        self._lock = threading.Lock()
        self._model: Any = None
        self._failure: str | None = None

    @property
    def model(self) -> str:
        """The model's name."""
        return WORDLLAMA

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors."""
        return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        """Embed texts of documents; see ``EmbeddingProvider``."""
        return self._embed([self._document_prefix + text for text in texts])

    def embed_query(self, text: str) -> Embedding:
        """Embed a search query; see ``EmbeddingProvider``."""
        result = self._embed([self._query_prefix + text])[0]
        if isinstance(result, EmbeddingFailure):
            raise EmbeddingUnavailable(f"The query cannot be embedded: {result.reason}. Search with mode lexical.")
        return result

    def check(self) -> None:
        """Load the model; see ``EmbeddingProvider``."""
        self._loaded()

    def close(self) -> None:
        """Let go of the model."""
        with self._lock:
            self._model = None

    def _embed(self, texts: list[str]) -> list[Embedding | EmbeddingFailure]:
        model = self._loaded()
        results: list[Embedding | EmbeddingFailure] = [EmbeddingFailure("the text is empty")] * len(texts)
        for places in _like_lengths(texts):
            vectors = model.embed([texts[place] for place in places], batch_size=len(places))
            for place, vector in zip(places, vectors, strict=True):
                results[place] = to_embedding(vector[: self._dimensions].tolist(), dimensions=self._dimensions)
        return results

    def _loaded(self) -> Any:
        with self._lock:
            if self._failure is not None:
                raise EmbeddingUnavailable(self._failure)
            if self._model is None:
                try:
                    self._model = _load_wordllama()
                except (ImportError, OSError, ValueError, RuntimeError) as error:
                    self._failure = (
                        f"The local embedding model cannot be loaded ({type(error).__name__}: {error}); reinstall the "
                        "wordllama package, or set embedding.provider to none. Lexical search goes on."
                    )
                    raise EmbeddingUnavailable(self._failure) from error
            return self._model


def _like_lengths(texts: Sequence[str]) -> "Iterator[list[int]]":
    """Places of non-empty texts in batches: similar lengths together, bounded after padding."""
    order = sorted((place for place, text in enumerate(texts) if text.strip()), key=lambda place: len(texts[place]))
    batch: list[int] = []
    for place in order:
        # The order is ascending, so this text is the longest of its batch.
        if batch and (len(batch) + 1) * len(texts[place]) > _BATCH_CHARS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _load_wordllama() -> Any:
    """The model from its package's own folder.

    The package's default is to look for the tokenizer in a cache folder of the user and to download it.
    """
    spec = importlib.util.find_spec(WORDLLAMA)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("the package wordllama is not installed")
    folder = Path(next(iter(spec.submodule_search_locations)))
    with _untouched_logging():
        import wordllama

        return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


@contextmanager
def _untouched_logging() -> "Generator[None]":
    """Keep a library that configures the root logger at import from doing so."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.addHandler(logging.NullHandler())  # With a handler in place, logging.basicConfig does nothing.
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
