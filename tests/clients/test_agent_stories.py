"""Whole stories through the agents themselves: search, read what was found, answer. Run on request, see ``install``.

A script stands in for the model, so what it is shown of our results is seen too.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.clients.tools import ClientTools, client_tools
from tests.support.model_server import Body, Call, Turn, model_server

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

QUESTION = "What do the notes say about caching?"
ANSWER = "The notes mention caching beside beta."
PARAGRAPH = "Some text about caching and [beta](b.md)."
SEARCH = "ToolSearch"
MAX_REQUESTS = 12

Results = Callable[[Body], list[str]]
MakeCall = Callable[[Body, str, dict[str, Any], str], Call]


@pytest.fixture
def tools(tmp_path: Path) -> ClientTools:
    """The clients, with a project of two documents."""
    return client_tools(tmp_path)


def test_claude_code__searches_reads_and_answers(tools: ClientTools) -> None:
    """Claude Code lets its model find a passage and read it, and shows it both results whole."""
    registered = {"mcpServers": {"kb": {"command": tools.server()[0], "args": list(tools.server()[1:])}}}
    config = tools.home / "mcp.json"
    config.write_text(json.dumps(registered), encoding="utf-8")
    story = Story(results=_messages_results, call=_call_in_claude_code)
    with model_server(story.next) as model:
        variables = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1"}
        command = ("claude", "-p", QUESTION, "--mcp-config", str(config), "--strict-mcp-config")
        done = tools.run(*command, "--allowedTools", "mcp__kb", variables=variables)
    assert model.failures == [], done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == ANSWER
    story.check()


def test_codex__searches_reads_and_answers(tools: ClientTools) -> None:
    """Codex lets its model find a passage and read it, and shows it both results whole."""
    command, *arguments = tools.server()
    story = Story(results=_responses_results, call=_call_in_codex)
    with model_server(story.next) as model:
        settings = {
            "model": "stand-in",
            "model_provider": "loopback",
            "model_providers.loopback.name": "loopback",
            "model_providers.loopback.base_url": f"{model.url}/v1",
            "model_providers.loopback.wire_api": "responses",
            "mcp_servers.kb.command": command,
            "mcp_servers.kb.args": arguments,
            "mcp_servers.kb.required": True,
            "mcp_servers.kb.startup_timeout_sec": 60,
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={json.dumps(value)}")]
        done = tools.run("codex", "exec", "--skip-git-repo-check", *options, QUESTION)
    assert model.failures == [], done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == ANSWER
    story.check()


@dataclass(slots=True, kw_only=True)
class Story:
    """The model's part: search, read the hit by its pointer, answer. Keeps what it was shown."""

    results: Results
    call: MakeCall
    shown: list[str] = field(default_factory=list[str])
    requests: int = 0

    def next(self, body: Body) -> Turn:
        """What the model does next, by the results that the request shows it."""
        if not body.get("tools"):
            return "A title"  # asked beside the conversation
        self.requests += 1
        assert self.requests <= MAX_REQUESTS, "the story does not move on"
        self.shown = self.results(body)
        if not self.shown:
            return self.call(body, "kb_search", {"query": "caching"}, "call_search")
        if len(self.shown) == 1:
            hit = _structured(self.shown[0])["results"][0]
            return self.call(body, "kb_read", {"path": hit["path"], "pointer": hit["pointer"]}, "call_read")
        return ANSWER

    def check(self) -> None:
        """The model was shown the hit and, under the hit's pointer, the exact text."""
        assert len(self.shown) == 2
        found, read = map(_structured, self.shown)
        (hit,) = found["results"]
        assert (hit["path"], hit["kind"], hit["stale"]) == ("a.md", "paragraph", False)
        assert "**caching**" in hit["snippet"]
        (element,) = read["elements"]
        assert (element["pointer"], element["text"]) == (hit["pointer"], PARAGRAPH)


def _structured(shown: str) -> dict[str, Any]:
    """The result in what the model was shown, which may stand below lines of the client's own."""
    value: dict[str, Any] = json.loads(shown[shown.index("{") :])
    return value


def _text(content: Any) -> str:
    """The text of a result, given as such or in parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _messages_results(body: Body) -> list[str]:
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    results = [block for block in blocks if block["type"] == "tool_result"]
    return [_text(block["content"]) for block in results if block["tool_use_id"].startswith("call_")]


def _call_in_claude_code(body: Body, name: str, arguments: dict[str, Any], call_id: str) -> Call:
    """A call of the tool, or of the search that loads it while its schema is kept back."""
    full_name = f"mcp__kb__{name}"
    offered = {tool["name"] for tool in body["tools"] if not tool.get("defer_loading")}
    if full_name in offered or f'"tool_name": "{full_name}"' in json.dumps(body["messages"]):
        return Call(id=call_id, name=full_name, arguments=arguments)
    assert SEARCH in offered, offered
    query = {"query": "select:mcp__kb__kb_search,mcp__kb__kb_read"}
    return Call(id=f"load_{len(body['messages'])}", name=SEARCH, arguments=query)


def _responses_results(body: Body) -> list[str]:
    results = [item for item in body["input"] if item.get("type") == "function_call_output"]
    return [_text(item["output"]) for item in results if item["call_id"].startswith("call_")]


def _call_in_codex(body: Body, name: str, arguments: dict[str, Any], call_id: str) -> Call:
    """A call of the tool under the namespace in which the request offers it."""
    for tool in body["tools"]:
        if any(inner.get("name") == name for inner in tool.get("tools", ())):
            return Call(id=call_id, name=name, arguments=arguments, namespace=tool["name"])
    raise AssertionError([tool.get("name") for tool in body["tools"]])
