"""Provider local: the model that a package ships, with no network."""

import logging
import socket
from pathlib import Path

import pytest

from local_vector_search_mcp.embeddings import local
from local_vector_search_mcp.embeddings.factory import EmbeddingSettings, make_provider
from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure
from local_vector_search_mcp.errors import ConfigError, EmbeddingUnavailable


def similarity(one: Embedding | EmbeddingFailure, other: Embedding | EmbeddingFailure) -> float:
    import struct

    assert isinstance(one, Embedding)
    assert isinstance(other, Embedding)
    numbers = f"<{one.dimensions}f"
    pairs = zip(struct.unpack(numbers, one.vector), struct.unpack(numbers, other.vector), strict=True)
    return float(sum(left * right for left, right in pairs))


def test_local__works_without_any_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default model loads and embeds while no socket can be opened."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    provider = make_provider(EmbeddingSettings(), base_folder=Path())
    provider.check()
    assert provider.dimensions == 256
    assert provider.embed_query("hello").dimensions == 256


def test_local__related_texts_are_nearer() -> None:
    """Texts of like meaning have nearer vectors than unrelated ones."""
    provider = make_provider(EmbeddingSettings(), base_folder=Path())
    dog, puppy, tax = provider.embed_documents(["a dog barks", "a puppy is barking", "file the tax return"])
    assert similarity(dog, puppy) > similarity(dog, tax) + 0.2


def test_local__a_text_is_embedded_alike_alone_and_in_any_company() -> None:
    """Batches are made by length inside; results keep the order and do not depend on the neighbours."""
    provider = make_provider(EmbeddingSettings(), base_folder=Path())
    texts = ["short", "a much longer text " * 200, "middle sized text here", "", "   "]
    together = provider.embed_documents(texts)
    for text, result in zip(texts, together, strict=True):
        alone = provider.embed_documents([text])[0]
        if text.strip():
            assert similarity(result, alone) == pytest.approx(1.0, abs=1e-5)
        else:
            assert isinstance(result, EmbeddingFailure)


def test_local__dimensions_can_be_cut() -> None:
    """The first dimensions stand for the whole; more than there are is refused."""
    provider = make_provider(EmbeddingSettings(dimensions=64), base_folder=Path())
    assert provider.embed_query("hello").dimensions == provider.dimensions == 64
    with pytest.raises(ConfigError, match="at most 256"):
        make_provider(EmbeddingSettings(dimensions=512), base_folder=Path())


def test_local__loading_leaves_logging_alone() -> None:
    """The package configures the root logger when it is imported; that must not show."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    make_provider(EmbeddingSettings(), base_folder=Path()).check()
    assert (list(root.handlers), root.level) == before


def test_local__a_package_that_cannot_load_is_unavailable_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken package makes semantic search unavailable, with the reason, at every call."""

    def broken() -> None:
        raise ImportError("no module named tokenizers")

    monkeypatch.setattr(local, "_load_wordllama", broken)
    provider = make_provider(EmbeddingSettings(), base_folder=Path())
    for _ in range(2):
        with pytest.raises(EmbeddingUnavailable, match="tokenizers"):
            provider.embed_query("hello")


@pytest.mark.parametrize("present", [[], ["model.onnx"], ["tokenizer.json"]])
def test_onnx__a_folder_without_its_files_is_unavailable(tmp_path: Path, present: list[str]) -> None:
    """The message names what the folder needs."""
    for name in present:
        (tmp_path / name).write_bytes(b"")
    provider = make_provider(EmbeddingSettings(model=str(tmp_path)), base_folder=Path())
    with pytest.raises(EmbeddingUnavailable, match=r"model\.onnx and tokenizer\.json"):
        provider.check()


def test_onnx__files_that_are_no_model_are_unavailable(tmp_path: Path) -> None:
    """Broken files are an error of ours, not the library's."""
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"nonsense")
    provider = make_provider(EmbeddingSettings(model=str(tmp_path)), base_folder=Path())
    with pytest.raises(EmbeddingUnavailable, match="cannot be loaded"):
        provider.check()


def test_none__is_always_unavailable() -> None:
    """Provider none embeds nothing and says so."""
    provider = make_provider(EmbeddingSettings(provider="none"), base_folder=Path())
    for call in (provider.check, lambda: provider.embed_query("a"), lambda: provider.embed_documents(["a"])):
        with pytest.raises(EmbeddingUnavailable, match=r"embedding\.provider is none"):
            call()


def test_factory__an_unknown_provider_is_refused() -> None:
    """The message lists the known ones."""
    with pytest.raises(ConfigError, match="openai-compatible"):
        make_provider(EmbeddingSettings(provider="magic"), base_folder=Path())


def test_settings__do_not_show_the_key() -> None:
    """A key never stands in a representation."""
    assert "sesame" not in repr(EmbeddingSettings(api_key="sesame"))
