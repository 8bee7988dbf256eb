"""A loopback embedding service that speaks Ollama's and OpenAI's dialect and misbehaves on request."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.fake_embeddings import word_vector
from tests.support.loopback import loopback_server


@dataclass
class Answer:
    """One HTTP answer; ``body`` is sent as JSON unless it is text."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


Behaviour = Callable[[list[str]], Answer | None]


@dataclass
class EmbeddingServer:
    """What the running server saw, and how it behaves.

    ``behave`` is given the texts of a request and may answer in the place of vectors.
    """

    url: str
    dimensions: int = 16
    behave: Behaviour = lambda _texts: None
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    @property
    def batches(self) -> list[list[str]]:
        """The texts of every request, in order."""
        return [request["input"] for request in self.requests]


@contextmanager
def embedding_server(*, dimensions: int = 16) -> Generator[EmbeddingServer, None, None]:
    """Run a server on a free loopback port for the time of the block."""
    state = EmbeddingServer(url="", dimensions=dimensions)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            state.requests.append({**body, "input": texts})
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = state.behave(texts)
            if answer is None:
                answer = Answer(body=self._vectors(texts))
            self._send(answer)

        def _vectors(self, texts: list[str]) -> Any:
            found = [word_vector(text, state.dimensions) for text in texts]
            if self.path.endswith("/api/embed"):
                return {"model": "m", "embeddings": found}
            rows = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(found)]
            return {"object": "list", "model": "m", "data": rows[::-1]}

        def _send(self, answer: Answer) -> None:
            data = (answer.body if isinstance(answer.body, str) else json.dumps(answer.body)).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Keep quiet."""

    with loopback_server(Handler) as state.url:
        yield state
