"""Batches over a raw embedding call: sizes, retries, cutting of long texts, and checks of what comes back."""

import random
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure, to_embedding
from local_vector_search_mcp.errors import EmbeddingUnavailable

RawVectors = Sequence[Iterable[float]]

_PROBE = "The quick brown fox jumps over the lazy dog."
# Below this many characters a refusal is about the text itself, not about its length.
_SHORTEST_CUT_CHARS = 64
_CUT_BOUNDARIES = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?。！？]\s*"), re.compile(r"\s"))


class EmbeddingCallError(Exception):
    """A raw call gave no vectors."""


class TransientCallError(EmbeddingCallError):
    """The service is overloaded, slow or restarting; the same call may succeed later.

    Args:
        message: What happened, without any of the text that was sent.
        retry_after_s: How long the service asks to wait; None where it does not say.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnreachableCallError(EmbeddingCallError):
    """Nothing answers, or it refuses this client: waiting a moment is of no use."""


class RejectedCallError(EmbeddingCallError):
    """The service refuses these texts, usually because one of them is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How calls are made."""

    batch_size: int = 16
    concurrency: int = 2
    attempts: int = 4
    backoff_s: float = 0.5
    longest_wait_s: float = 20.0


class Batcher:
    """Embeds any number of texts through a raw call that takes a few at a time.

    Args:
        call: Texts in, one vector per text out, in order. Raises the errors above.
        settings: Sizes and patience.
        dimensions: The length that vectors must have; None takes the first usable one's.
        wait: Waits for some seconds; returns True where the wait was cut short because the provider closes.
    """

    def __init__(
        self,
        call: Callable[[Sequence[str]], RawVectors],
        *,
        settings: BatchSettings,
        dimensions: int | None,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._call = call
        self._settings = settings
        self._expected = dimensions
        self._closed = threading.Event()
        self._wait = wait or self._closed.wait
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int | None:
        """The length of this provider's vectors, once it is known."""
        return self._expected

    def close(self) -> None:
        """Cut waits short; calls under way end with ``EmbeddingUnavailable``."""
        self._closed.set()

    def embed(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        """One result per text, in order.

        Raises:
            EmbeddingUnavailable: The service as a whole does not answer.
        """
        size = self._settings.batch_size
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        if len(batches) <= 1 or self._settings.concurrency <= 1:
            return [result for batch in batches for result in self._embed_batch(batch)]
        with ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="embed") as pool:
            return [result for results in pool.map(self._embed_batch, batches) for result in results]

    def _embed_batch(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        try:
            vectors = self._patiently(texts)
        except UnreachableCallError as error:
            raise _unavailable(str(error)) from error
        except EmbeddingCallError as error:
            if len(texts) == 1:
                return [self._embed_difficult(texts[0], error)]
            return [result for text in texts for result in self._embed_batch([text])]
        if len(vectors) != len(texts):
            raise EmbeddingUnavailable(
                f"The embedding service answered {len(vectors)} vectors for {len(texts)} texts; "
                "check embedding.endpoint and embedding.model."
            )
        results = [self._checked(vector) for vector in vectors]
        for place, result in enumerate(results):
            if not isinstance(result, EmbeddingFailure):
                continue
            if len(texts) > 1:
                # One text that makes a model answer NaN can spoil its whole batch, so each is asked for alone.
                results[place] = self._embed_batch([texts[place]])[0]
            else:
                self._prove_alive(result.reason)
        return results

    def _embed_difficult(self, text: str, error: EmbeddingCallError) -> Embedding | EmbeddingFailure:
        """A text that was refused alone: shorten it until it is taken, or find out who is at fault."""
        cut = text
        while len(cut) > _SHORTEST_CUT_CHARS:
            cut = cut_at_boundary(cut, len(cut) // 2)
            try:
                vectors = self._patiently([cut], attempts=1)
            except UnreachableCallError as unreachable:
                raise _unavailable(str(unreachable)) from unreachable
            except EmbeddingCallError as again:
                error = again
                continue
            if len(vectors) == 1:
                return self._checked(vectors[0])
        self._prove_alive(str(error))
        return EmbeddingFailure(f"the model refuses this text: {error}")

    def _prove_alive(self, reason: str) -> None:
        """Return if a harmless text is embedded, so that the fault is in the text before; raise otherwise."""
        try:
            answered = self._patiently([_PROBE], attempts=1)
        except EmbeddingCallError as down:
            raise _unavailable(str(down)) from down
        if len(answered) != 1:
            raise _unavailable(f"it answered {len(answered)} vectors for one text")
        probe = self._checked(answered[0])
        if isinstance(probe, EmbeddingFailure):
            raise _unavailable(f"{probe.reason} (first seen: {reason})")

    def _patiently(self, texts: Sequence[str], *, attempts: int | None = None) -> RawVectors:
        """Call, and call again with growing pauses while the service is only overloaded."""
        most = attempts or self._settings.attempts
        for attempt in range(1, most + 1):
            if self._closed.is_set():
                raise UnreachableCallError("the provider is closing")
            try:
                return self._call(texts)
            except TransientCallError as error:
                if attempt == most:
                    raise
                pause = self._pause_s(attempt, error.retry_after_s)
            if self._wait(pause):
                raise UnreachableCallError("the provider is closing")
        raise AssertionError("unreachable: the loop returns or raises")

    def _pause_s(self, attempt: int, asked_s: float | None) -> float:
        if asked_s is not None:
            return min(max(asked_s, 0.0), self._settings.longest_wait_s)
        # Half of the pause is random, so that several clients do not return in step.
        pause: float = self._settings.backoff_s * 2.0 ** (attempt - 1)
        return min(pause * random.uniform(0.5, 1.0), self._settings.longest_wait_s)

    def _checked(self, values: Iterable[float]) -> Embedding | EmbeddingFailure:
        result = to_embedding(values, dimensions=self._expected)
        if isinstance(result, Embedding) and self._expected is None:
            with self._lock:
                if self._expected is None:
                    self._expected = result.dimensions
        return result


def cut_at_boundary(text: str, most_chars: int) -> str:
    """The longest beginning of ``text`` of at most ``most_chars`` characters that ends well.

    A paragraph's, line's, sentence's or word's end in the second half is preferred, in this order.
    """
    if len(text) <= most_chars:
        return text
    head = text[:most_chars]
    for boundary in _CUT_BOUNDARIES:
        ends = [match.end() for match in boundary.finditer(head, most_chars // 2)]
        if ends:
            return head[: ends[-1]].rstrip()
    return head


def _unavailable(reason: str) -> EmbeddingUnavailable:
    return EmbeddingUnavailable(
        f"The embedding service is not available: {reason}. Lexical search goes on; "
        "texts are embedded when it is back. See embedding.endpoint and embedding.model."
    )
