"""A loopback stand-in for a model: Anthropic's Messages and OpenAI's Responses, streamed, told by a script."""

import json
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.loopback import loopback_server

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The model calls a tool; ``namespace`` is where the Responses dialect keeps a server's tools."""

    id: str
    name: str
    arguments: dict[str, Any]
    namespace: str | None = None


Turn = Call | str
"""What the model does with a request: a tool call, or a text that ends its turn."""


@dataclass
class ModelServer:
    """What the running server was asked, and the errors of its script."""

    url: str
    requests: list[Body] = field(default_factory=list[Body])
    failures: list[Exception] = field(default_factory=list[Exception])


@contextmanager
def model_server(script: Callable[[Body], Turn]) -> Generator[ModelServer, None, None]:
    """Answer every request as the script says, on a free loopback port, for the time of the block."""
    state = ModelServer(url="")
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._send(200, "text/plain", b"")

        def do_GET(self) -> None:
            self._send(404, "application/json", b"{}")

        def do_POST(self) -> None:
            body: Body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            speak = _DIALECTS.get(self.path.partition("?")[0])
            if speak is None:
                self._send(404, "application/json", b"{}")
                return
            with lock:
                state.requests.append(body)
                try:
                    turn = script(body)
                except Exception as error:
                    # The client gets an end of the conversation, the test the reason.
                    state.failures.append(error)
                    turn = "The script failed."
            events = speak(turn, f"answer_{len(state.requests)}", str(body.get("model")))
            lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
            self._send(200, "text/event-stream", "".join(lines).encode())

        def _send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Keep quiet."""

    with loopback_server(Handler) as state.url:
        yield state


def _messages_events(turn: Turn, answer: str, model: str) -> Iterator[Body]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head: Body = {"id": answer, "type": "message", "role": "assistant", "model": model, "content": []}
    yield {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    block: Body
    delta: Body
    if isinstance(turn, Call):
        block = {"type": "tool_use", "id": turn.id, "name": turn.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": turn}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if isinstance(turn, Call) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def _responses_events(turn: Turn, answer: str, model: str) -> Iterator[Body]:
    item: Body
    if isinstance(turn, Call):
        item = {"type": "function_call", "call_id": turn.id, "name": turn.name, "arguments": json.dumps(turn.arguments)}
        if turn.namespace is not None:
            item["namespace"] = turn.namespace
    else:
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": turn}]}
    head: Body = {"id": answer, "object": "response", "model": model}
    yield {"type": "response.created", "response": {**head, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": {"id": f"{answer}_0", **item}}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    yield {"type": "response.completed", "response": {**head, "status": "completed", "output": [item], "usage": usage}}


_DIALECTS: dict[str, Callable[[Turn, str, str], Iterator[Body]]] = {
    "/v1/messages": _messages_events,
    "/v1/responses": _responses_events,
}
