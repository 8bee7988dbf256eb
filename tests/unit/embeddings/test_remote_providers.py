"""Providers over a service, against a real HTTP server on loopback."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Protocol

import pytest
from tests.support.embedding_server import Answer, EmbeddingServer, embedding_server

from local_vector_search_mcp.embeddings.factory import EmbeddingSettings, make_provider
from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingProvider
from local_vector_search_mcp.errors import ConfigError, EmbeddingUnavailable

REMOTE = ["ollama", "openai-compatible"]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


class Make(Protocol):
    def __call__(
        self, server: EmbeddingServer, name: str, *, model: str = "some-model", api_key: str | None = None
    ) -> EmbeddingProvider: ...


@pytest.fixture
def make() -> Iterator[Make]:
    """Make providers for a running server; they are closed at the end."""
    with ExitStack() as stack:

        def made(
            server: EmbeddingServer, name: str, *, model: str = "some-model", api_key: str | None = None
        ) -> EmbeddingProvider:
            settings = EmbeddingSettings(
                provider=name,
                endpoint=server.url + ("/v1" if name == "openai-compatible" else ""),
                model=model,
                api_key=api_key,
                timeout_s=10.0,
                batch_size=4,
            )
            return stack.enter_context(closing(make_provider(settings, base_folder=Path())))

        yield made


@pytest.mark.parametrize("name", REMOTE)
def test_remote__embeds_in_order(server: EmbeddingServer, make: Make, name: str) -> None:
    """Vectors belong to their texts, whatever order the service answers in."""
    provider = make(server, name)
    together = provider.embed_documents(["alpha", "beta", "gamma"])
    alone = [provider.embed_documents([text])[0] for text in ("alpha", "beta", "gamma")]
    assert together == alone
    assert provider.dimensions == 16


@pytest.mark.parametrize("name", REMOTE)
def test_remote__known_models_get_their_prefixes(server: EmbeddingServer, make: Make, name: str) -> None:
    """A model that was trained with prefixes gets them for documents and for queries."""
    provider = make(server, name, model="nomic-embed-text:latest")
    provider.embed_documents(["a document"])
    provider.embed_query("a query")
    assert server.batches == [["search_document: a document"], ["search_query: a query"]]


@pytest.mark.parametrize("name", REMOTE)
def test_remote__the_configured_key_is_sent_and_no_other(
    server: EmbeddingServer, make: Make, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and hosts come from the configuration alone; the client library's own variables have no effect."""
    monkeypatch.setenv("OLLAMA_API_KEY", "from-the-environment")
    monkeypatch.setenv("OLLAMA_HOST", "http://192.0.2.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:2")
    make(server, name).embed_query("a")
    make(server, name, api_key="configured").embed_query("a")
    assert "authorization" not in server.headers[0]
    assert server.headers[1]["authorization"] == "Bearer configured"


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(401, {"error": "no"}), "HTTP 401"),
        (Answer(404, {"error": "model not found"}), "HTTP 404"),
        (Answer(200, "<html>not an API</html>"), "embedding.endpoint"),
        (Answer(200, {"unexpected": 1}), "embedding.endpoint"),
        (Answer(200, []), "embedding.endpoint"),
    ],
)
def test_remote__an_answer_that_is_none_makes_it_unavailable(
    server: EmbeddingServer, make: Make, name: str, answer: Answer, words: str
) -> None:
    """A service that refuses or is no embedding service is reported once, with what to check."""
    server.behave = lambda _texts: answer
    with pytest.raises(EmbeddingUnavailable, match=words):
        make(server, name).embed_documents(["a", "b"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", REMOTE)
def test_remote__a_busy_service_is_asked_again(server: EmbeddingServer, make: Make, name: str) -> None:
    """HTTP 429 with Retry-After is waited out."""
    left = [2]

    def behave(_texts: list[str]) -> Answer | None:
        left[0] -= 1
        return Answer(429, {"error": "slow down"}, {"retry-after": "0"}) if left[0] >= 0 else None

    server.behave = behave
    if name == "ollama":
        left[0] = 1  # Its client does not show headers, so the pause is the ordinary one.
    assert isinstance(make(server, name).embed_documents(["a"])[0], Embedding)


@pytest.mark.parametrize("name", REMOTE)
def test_remote__one_text_that_makes_the_model_fail_is_marked(server: EmbeddingServer, make: Make, name: str) -> None:
    """A text over the limit is cut, and a poisonous one is marked, while the others get vectors."""

    def behave(texts: list[str]) -> Answer | None:
        if any("poison" in text or len(text) > 500 for text in texts):
            return Answer(400, {"error": "bad input"})
        return None

    server.behave = behave
    results = make(server, name).embed_documents(["good", "poison", "long " * 300, "fine"])
    assert [isinstance(result, Embedding) for result in results] == [True, False, True, True]


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize(
    "message",
    ["input is too large to process. increase the physical batch size", "the input length exceeds the context length"],
)
def test_remote__a_text_called_too_long_by_a_server_fault_is_cut_at_once(
    server: EmbeddingServer, make: Make, name: str, message: str
) -> None:
    """A service that says HTTP 500 for a long text is not asked the same again and again."""
    server.behave = lambda texts: Answer(500, {"error": message}) if any(len(text) > 100 for text in texts) else None
    results = make(server, name).embed_documents(["short", "long " * 60])
    assert all(isinstance(result, Embedding) for result in results)
    assert len(server.requests) <= 6


@pytest.mark.parametrize("name", REMOTE)
def test_remote__nobody_listening_is_unavailable(make: Make, name: str) -> None:
    """A refused connection says that nothing answers."""
    with embedding_server() as server:
        gone = server
    with pytest.raises(EmbeddingUnavailable, match="nothing answers"):
        make(gone, name).check()


@pytest.mark.parametrize("name", REMOTE)
def test_remote__a_redirect_off_the_machine_is_refused(server: EmbeddingServer, make: Make, name: str) -> None:
    """Text follows no redirect to an address beyond loopback."""
    server.behave = lambda _texts: Answer(307, {}, {"location": "http://192.0.2.7/v1/embeddings"})
    with pytest.raises(EmbeddingUnavailable, match="beyond this machine"):
        make(server, name).embed_query("private words")


@pytest.mark.parametrize("name", REMOTE)
def test_remote__a_redirect_on_the_machine_is_followed(server: EmbeddingServer, make: Make, name: str) -> None:
    """A redirect within loopback works, as for a service that moved its path."""
    first = [True]

    def behave(_texts: list[str]) -> Answer | None:
        if first.pop() if first else False:
            path = "/api/embed" if name == "ollama" else "/v1/embeddings"
            return Answer(307, {}, {"location": server.url.replace("127.0.0.1", "localhost") + path})
        return None

    server.behave = behave
    assert make(server, name).embed_query("a").dimensions == 16


@pytest.mark.parametrize("name", REMOTE)
def test_remote__logs_hold_no_text_and_no_key(
    server: EmbeddingServer, make: Make, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of documents, queries or keys reaches our loggers or an error's text."""
    server.behave = lambda texts: Answer(500, {"error": "echo: " + " ".join(texts)})
    provider = make(server, name, api_key="sesame")
    with caplog.at_level(logging.DEBUG, "local_vector_search_mcp"), pytest.raises(EmbeddingUnavailable) as caught:
        provider._batcher._wait = lambda _seconds: False  # type: ignore[attr-defined]
        provider.embed_documents(["hidden words"])
    assert "hidden" not in caplog.text + caught.value.message
    assert "sesame" not in caplog.text + caught.value.message + repr(provider)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://192.0.2.1:11434",
        "https://10.0.0.5/v1",
        "http://[2001:db8::1]/v1",
        "http://0.0.0.0:1",
        "ftp://localhost",
        "localhost:11434",
        "http://user:pw@localhost",
        "http://",
        "http://localhost:99999",
    ],
)
def test_endpoint__beyond_loopback_or_malformed_is_refused_at_once(endpoint: str) -> None:
    """An endpoint that could never be used is refused before anything is sent."""
    with pytest.raises(ConfigError):
        make_provider(EmbeddingSettings(provider="openai-compatible", endpoint=endpoint), base_folder=Path())


@pytest.mark.parametrize(
    "endpoint",
    ["http://localhost:1", "http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:1", "http://[::ffff:127.0.0.1]"],
)
def test_endpoint__loopback_is_taken(endpoint: str) -> None:
    """Every form of loopback is taken."""
    make_provider(EmbeddingSettings(provider="ollama", endpoint=endpoint), base_folder=Path()).close()


def test_endpoint__a_name_that_does_not_resolve_says_so() -> None:
    """The message names the name and what would let text leave the machine."""
    settings = EmbeddingSettings(provider="openai-compatible", endpoint="http://nowhere.invalid/v1")
    with (
        closing(make_provider(settings, base_folder=Path())) as provider,
        pytest.raises(EmbeddingUnavailable, match=r"nowhere\.invalid does not resolve.*allowRemoteEndpoint"),
    ):
        provider.check()


def test_endpoint__remote_is_taken_where_it_is_allowed() -> None:
    """With allowRemoteEndpoint an address beyond this machine is taken."""
    settings = EmbeddingSettings(provider="ollama", endpoint="https://192.0.2.1", allow_remote_endpoint=True)
    make_provider(settings, base_folder=Path()).close()


def test_openai__configured_dimensions_are_asked_for_and_left_out_where_refused(server: EmbeddingServer) -> None:
    """A service that refuses the parameter is asked again without it, once."""

    def behave(_texts: list[str]) -> Answer | None:
        return Answer(400, {"error": "dimensions not supported"}) if "dimensions" in server.requests[-1] else None

    server.behave = behave
    settings = EmbeddingSettings(provider="openai-compatible", endpoint=server.url + "/v1", dimensions=16)
    with closing(make_provider(settings, base_folder=Path())) as provider:
        provider.embed_query("a")
        provider.embed_query("b")
    assert ["dimensions" in request for request in server.requests] == [True, False, False]
