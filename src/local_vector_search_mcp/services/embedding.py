"""Keep the vectors of an index in step with its chunks: what is known is adopted, the rest is a backlog to embed."""

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure, EmbeddingProvider
from local_vector_search_mcp.errors import EmbeddingUnavailable
from local_vector_search_mcp.index import coarse, vectors
from local_vector_search_mcp.index.chunks import StoredChunk
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.embedding_text import EmbeddingTextSettings, embedding_text
from local_vector_search_mcp.index.rows import read_chunks

_AWAITING: Final = 0
_DONE: Final = 1
_FAILED: Final = 2
# So many chunks are read, embedded and written at a time: the memory of a run does not grow with the tree.
_STEP_CHUNKS: Final = 128
# So many are looked up at a time: finding the next ones reads the whole index of waiting chunks.
_AHEAD_CHUNKS: Final = 16_384
_SECONDS_PER_DAY: Final = 86_400
# Without the hint the whole table would be read for the sake of the order.
_NEXT_WAITING: Final = "SELECT id FROM chunks INDEXED BY chunks_awaiting WHERE embed_state = 0 ORDER BY id LIMIT ?"
# Since they were looked up, chunks may have gone, or have got the vector of another chunk with the same text.
_STILL_WAITING: Final = (
    "SELECT id, embed_hash FROM chunks WHERE id IN (SELECT value FROM json_each(?)) AND embed_state = 0 ORDER BY id"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogOutcome:
    """What one run over the backlog did.

    ``embedded`` and ``failed`` count chunks; ``interrupted`` says that the run was asked to stop before the end.
    """

    embedded: int
    failed: int
    interrupted: bool


class VectorHooks:
    """Chunk rows and their vectors come and go together. Implements ``ChunkHooks``.

    Args:
        now_s: The clock, in seconds since 1970-01-01.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s

    def chunks_written(self, connection: apsw.Connection, chunks: Sequence[tuple[int, bytes]]) -> None:
        """Adopt the vectors of texts that were embedded before."""
        known = vectors.adopt(connection, chunks)
        connection.executemany(
            "UPDATE chunks SET embed_state = ? WHERE id = ?", [(_DONE, chunk_id) for chunk_id in known]
        )

    def chunks_deleted(self, connection: apsw.Connection, chunk_ids: Sequence[int]) -> None:
        """Take the chunks' vectors out of the search and keep them by their text."""
        vectors.drop(connection, chunk_ids, today=int(self._now_s() // _SECONDS_PER_DAY))


class EmbeddingBacklog:
    """Embeds the chunks that have no vector yet.

    Args:
        database: The index.
        provider: Makes the vectors.
        settings: How texts to embed are made; the same as when the chunks were written.
        cache_days: How long vectors of texts that no chunk has are kept.
        now_s: The clock, in seconds since 1970-01-01.
        record_dimensions: Called, inside the writing transaction, with the length of the first vectors of a run.
            Raises ``EmbeddingUnavailable`` where the index holds vectors of another length.
    """

    def __init__(
        self,
        database: IndexDatabase,
        provider: EmbeddingProvider,
        *,
        settings: EmbeddingTextSettings,
        cache_days: int,
        now_s: Callable[[], float],
        record_dimensions: Callable[[apsw.Connection, int], None],
    ) -> None:
        self._database = database
        self._provider = provider
        self._settings = settings
        self._cache_days = cache_days
        self._now_s = now_s
        self._record_dimensions = record_dimensions
        self._ahead: deque[int] = deque()

    def run(self, *, should_stop: Callable[[], bool], progress: Callable[[int, int], None]) -> BacklogOutcome:
        """Embed until nothing waits or a stop is asked for. Each step is kept, so that a later run goes on from it.

        Args:
            should_stop: Asked between steps.
            progress: Called after each step with the chunks embedded so far and all that waited at the start.

        Raises:
            EmbeddingUnavailable: The provider does not answer, or its vectors do not fit the index.
                What was embedded before stays.
        """
        with self._database.reader() as connection:
            total = int(connection.execute("SELECT count(*) FROM chunks WHERE embed_state = ?", (_AWAITING,)).get)
        embedded = failed = 0
        interrupted = False
        try:
            while total:
                if should_stop():
                    interrupted = True
                    break
                step = self._step()
                if step is None:
                    break
                embedded, failed = embedded + step[0], failed + step[1]
                total = max(total, embedded + failed)
                progress(embedded + failed, total)
        finally:
            self._tidy()
        return BacklogOutcome(embedded=embedded, failed=failed, interrupted=interrupted)

    def retry_failed(self) -> int:
        """Put the texts that the model refused back into the backlog; how many chunks."""
        with self._database.writer() as connection:
            connection.execute("DELETE FROM embedding_failures")
            connection.execute("UPDATE chunks SET embed_state = ? WHERE embed_state = ?", (_AWAITING, _FAILED))
            return connection.changes()

    def _step(self) -> tuple[int, int] | None:
        """Embed some of the waiting chunks; how many got a vector, and how many were refused. None where none waits.

        Both are 0 where all of them were deleted meanwhile.
        """
        texts = self._waiting_texts()
        if not texts:
            return None
        hashes = list(texts)
        results = self._provider.embed_documents([texts[text_hash] for text_hash in hashes])
        done = refused = 0
        with self._database.writer() as connection:
            first = next((result for result in results if isinstance(result, Embedding)), None)
            if first is not None:
                self._record_dimensions(connection, first.dimensions)
            for text_hash, result in zip(hashes, results, strict=True):
                match result:
                    case Embedding():
                        if first is not None and result.dimensions != first.dimensions:
                            raise EmbeddingUnavailable(
                                "The model answered vectors of different lengths; check embedding.model."
                            )
                        done += _store(connection, text_hash, result)
                    case EmbeddingFailure():
                        refused += _refuse(connection, text_hash, result)
        return done, refused

    def _waiting_texts(self) -> dict[bytes, str]:
        """Texts to embed by their hash; a text that several chunks share stands once."""
        with self._database.reader() as connection:
            waiting = self._waiting_chunks(connection)
            chunks = read_chunks(connection, list(waiting.values()))
        return {text_hash: self._text(chunks[chunk_id]) for text_hash, chunk_id in waiting.items()}

    def _waiting_chunks(self, connection: apsw.Connection) -> dict[bytes, int]:
        """The next chunks in the order of their ids, one for each text; empty where none waits any more.

        In that order neighbouring rows are read together, and vectors are written one after the other.
        """
        while True:
            if not self._ahead:
                self._ahead.extend(row[0] for row in connection.execute(_NEXT_WAITING, (_AHEAD_CHUNKS,)))
            ids = [self._ahead.popleft() for _ in range(min(_STEP_CHUNKS, len(self._ahead)))]
            if not ids:
                return {}
            rows = connection.execute(_STILL_WAITING, (json.dumps(ids),))
            waiting: dict[bytes, int] = {}
            for chunk_id, text_hash in rows:
                waiting.setdefault(bytes(text_hash), int(chunk_id))
            if waiting:
                return waiting

    def _text(self, chunk: StoredChunk) -> str:
        return embedding_text(chunk.title, chunk.heading_path, chunk.text, self._settings)

    def _tidy(self) -> None:
        """Code new vectors where there are many, and drop cached ones that are too old."""
        with self._database.reader() as connection:
            dimensions = connection.execute("SELECT length(vector) / 4 FROM vectors LIMIT 1").get
            # Counted in the index of their hashes. The chunks have none by state, and reading all of those after every
            # saved document takes seconds where there are a million.
            count = int(connection.execute("SELECT count(*) FROM vectors").get)
        with self._database.writer() as connection:
            if dimensions is not None:
                coarse.refresh(
                    connection,
                    vectors=count,
                    dimensions=int(dimensions),
                    exact_most_numbers=vectors.EXACT_MOST_NUMBERS,
                )
            vectors.prune_cache(connection, before_day=int(self._now_s() // _SECONDS_PER_DAY) - self._cache_days)


def _store(connection: apsw.Connection, text_hash: bytes, embedding: Embedding) -> int:
    ids = _waiting_ids(connection, text_hash)
    vectors.put(
        connection,
        (vectors.VectorRow(chunk_id=chunk_id, text_hash=text_hash, vector=embedding.vector) for chunk_id in ids),
    )
    connection.executemany("UPDATE chunks SET embed_state = ? WHERE id = ?", [(_DONE, chunk_id) for chunk_id in ids])
    return len(ids)


def _refuse(connection: apsw.Connection, text_hash: bytes, failure: EmbeddingFailure) -> int:
    ids = _waiting_ids(connection, text_hash)
    connection.execute("INSERT OR REPLACE INTO embedding_failures VALUES (?, ?)", (text_hash, failure.reason))
    connection.executemany("UPDATE chunks SET embed_state = ? WHERE id = ?", [(_FAILED, chunk_id) for chunk_id in ids])
    return len(ids)


def _waiting_ids(connection: apsw.Connection, text_hash: bytes) -> list[int]:
    return [
        int(row[0])
        for row in connection.execute("SELECT id FROM chunks WHERE embed_state = 0 AND embed_hash = ?", (text_hash,))
    ]
