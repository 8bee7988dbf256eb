"""Batches: sizes, patience, cutting, and what becomes of bad vectors."""

from collections.abc import Callable, Iterable, Sequence

import pytest
from tests.support.fake_embeddings import word_vector

from local_vector_search_mcp.embeddings.batching import (
    Batcher,
    BatchSettings,
    EmbeddingCallError,
    RejectedCallError,
    TransientCallError,
    UnreachableCallError,
    cut_at_boundary,
)
from local_vector_search_mcp.embeddings.provider import Embedding
from local_vector_search_mcp.errors import EmbeddingUnavailable

NAN = float("nan")


class Service:
    """A raw call with a rule: the rule may raise or give other vectors for a batch."""

    def __init__(self, rule: Callable[[Sequence[str]], Sequence[Iterable[float]] | None] = lambda _texts: None) -> None:
        self.rule = rule
        self.batches: list[list[str]] = []
        self.waits: list[float] = []

    def __call__(self, texts: Sequence[str]) -> Sequence[Iterable[float]]:
        self.batches.append(list(texts))
        special = self.rule(texts)
        return [word_vector(text, 8) for text in texts] if special is None else special

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return False


def embed(service: Service, texts: Sequence[str], *, dimensions: int | None = None, batch_size: int = 4) -> list[str]:
    """Embed and tell each result as ``ok`` or its reason."""
    settings = BatchSettings(batch_size=batch_size, concurrency=1)
    batcher = Batcher(service, settings=settings, dimensions=dimensions, wait=service.wait)
    return ["ok" if isinstance(result, Embedding) else result.reason for result in batcher.embed(texts)]


def test_batching__splits_by_size_and_keeps_the_order() -> None:
    """Texts are sent in batches of the wanted size, and results come back in the order of the texts."""
    service = Service()
    texts = [f"text {number}" for number in range(10)]
    assert embed(service, texts) == ["ok"] * 10
    assert service.batches == [texts[0:4], texts[4:8], texts[8:10]]


def test_batching__no_text_makes_no_call() -> None:
    """Nothing to embed is no request."""
    service = Service()
    assert embed(service, []) == []
    assert service.batches == []


@pytest.mark.parametrize("concurrency", [1, 3])
def test_batching__concurrency_keeps_the_order(concurrency: int) -> None:
    """Batches that run side by side still give results in the order of the texts."""
    batcher = Batcher(Service(), settings=BatchSettings(batch_size=2, concurrency=concurrency), dimensions=None)
    texts = [f"word{number}" for number in range(9)]
    alone = Batcher(Service(), settings=BatchSettings(), dimensions=None)
    assert batcher.embed(texts) == [alone.embed([text])[0] for text in texts]


def failing_first(times: int, error: EmbeddingCallError) -> Callable[[Sequence[str]], None]:
    left = [times]

    def rule(_texts: Sequence[str]) -> None:
        if left[0]:
            left[0] -= 1
            raise error

    return rule


def test_batching__an_overloaded_service_is_asked_again_with_growing_pauses() -> None:
    """Three transient failures are waited out; each pause lies between half and all of twice the one before."""
    service = Service(failing_first(3, TransientCallError("busy")))
    assert embed(service, ["a", "b"]) == ["ok", "ok"]
    assert len(service.waits) == 3
    for attempt, pause in enumerate(service.waits):
        assert 0.25 * 2**attempt <= pause <= 0.5 * 2**attempt


@pytest.mark.parametrize(("asked", "waited"), [(3.0, 3.0), (0.0, 0.0), (-5.0, 0.0), (1e9, 20.0)])
def test_batching__a_wait_that_the_service_asks_for_is_kept(asked: float, waited: float) -> None:
    """Retry-After decides the pause, within bounds."""
    service = Service(failing_first(1, TransientCallError("busy", retry_after_s=asked)))
    assert embed(service, ["a"]) == ["ok"]
    assert service.waits == [waited]


@pytest.mark.parametrize("error", [UnreachableCallError("nothing answers"), TransientCallError("HTTP 503")])
def test_batching__a_service_that_is_down_is_unavailable(error: EmbeddingCallError) -> None:
    """A service that never answers makes the whole call fail, with no text in the message."""

    def rule(_texts: Sequence[str]) -> None:
        raise error

    with pytest.raises(EmbeddingUnavailable) as caught:
        embed(Service(rule), ["secret text"])
    assert "secret" not in caught.value.message


def refusing(longest_chars: int) -> Callable[[Sequence[str]], None]:
    def rule(texts: Sequence[str]) -> None:
        if any(len(text) > longest_chars for text in texts):
            raise RejectedCallError("HTTP 400")

    return rule


def test_batching__a_long_text_in_a_batch_is_cut_and_the_rest_goes_through() -> None:
    """One text over the model's limit is shortened until it is taken; its neighbours are embedded whole."""
    service = Service(refusing(300))
    long = "word " * 200
    assert embed(service, ["a", long, "b"]) == ["ok", "ok", "ok"]
    taken = [batch[0] for batch in service.batches if len(batch) == 1 and len(batch[0]) <= 300]
    assert any(text.startswith("word word") for text in taken)
    assert ["a"] in service.batches
    assert len(service.batches) < 10


def test_batching__a_text_that_is_always_refused_is_marked_and_no_other() -> None:
    """A text that fails at any length is a failure of its own, found out with a harmless probe."""

    def rule(texts: Sequence[str]) -> None:
        if any("poison" in text for text in texts):
            raise RejectedCallError("HTTP 400")

    results = embed(Service(rule), ["a", "poison " * 50, "b"])
    assert results[0] == results[2] == "ok"
    assert "refuses this text" in results[1]


def test_batching__everything_refused_is_a_service_that_is_down() -> None:
    """Where even the probe is refused the fault is not in the text, so nothing is marked as failed."""

    def rule(_texts: Sequence[str]) -> None:
        raise RejectedCallError("HTTP 400")

    with pytest.raises(EmbeddingUnavailable):
        embed(Service(rule), ["a", "b"])


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ([NAN] * 8, "NaN"),
        ([1.0] * 7 + [NAN], "NaN"),
        ([float("inf")] * 8, "infinity"),
        ([0.0] * 8, "length zero"),
        ([], "empty"),
        ([1.0] * 7, "7 dimensions where 8"),
    ],
)
def test_batching__one_bad_vector_spoils_only_its_own_text(vector: list[float], reason: str) -> None:
    """A vector that cannot be used marks its text; the others of the batch are kept."""

    def rule(texts: Sequence[str]) -> Sequence[Iterable[float]] | None:
        return [vector if text == "bad" else word_vector(text, 8) for text in texts]

    results = embed(Service(rule), ["a", "bad", "b"])
    assert results[0] == results[2] == "ok"
    assert reason in results[1]


def test_batching__a_batch_spoiled_by_one_text_is_embedded_one_by_one() -> None:
    """Where one text turns all vectors of its batch into NaN, the others get theirs when asked for alone."""

    def rule(texts: Sequence[str]) -> Sequence[Iterable[float]] | None:
        return [[NAN] * 8 for _ in texts] if "bad" in texts else None

    results = embed(Service(rule), ["a", "bad", "b"])
    assert [result == "ok" for result in results] == [True, False, True]


def test_batching__a_model_that_changes_under_way_is_unavailable() -> None:
    """Where every vector has another length than before, nothing is marked as failed: the model is another."""
    settings = BatchSettings(batch_size=4, concurrency=1)
    length = [8]
    service = Service(lambda texts: [word_vector(text, length[0]) for text in texts])
    batcher = Batcher(service, settings=settings, dimensions=None, wait=service.wait)
    assert all(isinstance(result, Embedding) for result in batcher.embed(["a", "b"]))
    length[0] = 12
    with pytest.raises(EmbeddingUnavailable, match="12 dimensions where 8"):
        batcher.embed(["c", "d"])


def test_batching__too_few_vectors_are_refused() -> None:
    """An answer that cannot be matched to the texts is never guessed at."""
    service = Service(lambda _texts: [[1.0] * 8])
    with pytest.raises(EmbeddingUnavailable, match="1 vectors for 2 texts"):
        embed(service, ["a", "b"])


def test_batching__closing_cuts_a_wait_short() -> None:
    """A provider that closes does not finish its pauses."""

    def rule(_texts: Sequence[str]) -> None:
        raise TransientCallError("busy", retry_after_s=15.0)

    batcher = Batcher(Service(rule), settings=BatchSettings(), dimensions=None, wait=None)
    batcher.close()
    with pytest.raises(EmbeddingUnavailable):
        batcher.embed(["a"])


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("short", 10, "short"),
        ("first paragraph\n\nsecond paragraph", 20, "first paragraph"),
        ("one line\nanother line", 14, "one line"),
        ("A sentence. Another one", 16, "A sentence."),
        ("several words here", 12, "several"),
        ("unbroken" * 4, 10, "unbrokenun"),
        ("一句话。另一句话", 6, "一句话。"),
    ],
)
def test_cut__prefers_the_better_boundary(text: str, most: int, cut: str) -> None:
    """A cut falls on a paragraph's, line's, sentence's or word's end where one lies in the second half."""
    assert cut_at_boundary(text, most) == cut


def test_results__are_unit_vectors_of_float32() -> None:
    """Vectors are scaled to length one and stored as little-endian float32."""
    import struct

    result = Batcher(Service(lambda _t: [[3.0, 4.0]]), settings=BatchSettings(), dimensions=None).embed(["a"])[0]
    assert isinstance(result, Embedding)
    assert struct.unpack("<2f", result.vector) == pytest.approx((0.6, 0.8))
