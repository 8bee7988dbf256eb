"""Real client programs: they connect, list, call and install the plugin. Run on request, see ``install``."""

import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.clients.tools import REPOSITORY, ClientTools, client_tools

from local_vector_search_mcp.server.tools.catalogue import all_tools

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

SCENARIOS = (
    "server-initialize",
    "logging-set-level",
    "ping",
    "completion-complete",
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "dns-rebinding-protection",
    "tools-call-simple-text",
    "tools-call-error",
)
NEXT_SCENARIOS = (
    "server-session-lifecycle",
    "sep-2164-resource-not-found",
    "caching",
    "http-header-validation",
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
)
READ_CALLS: dict[str, dict[str, Any]] = {
    "kb_status": {},
    "kb_reindex": {"wait": True},
    "kb_search": {"query": "caching"},
    "kb_context": {"query": "caching"},
    "kb_read": {"path": "a.md"},
    "kb_outline": {"path": "a.md"},
    "kb_list_files": {},
    "kb_links": {"direction": "broken"},
    "kb_metadata": {"key": "tags"},
    "kb_history": {},
    "kb_list_images": {},
    "kb_download_file": {"path": "a.md"},
}


@pytest.fixture
def tools(tmp_path: Path) -> ClientTools:
    """The clients, with a project of two documents."""
    return client_tools(tmp_path)


@pytest.fixture
def url(tools: ClientTools) -> Iterator[str]:
    """The project served over HTTP."""
    port = 18_000 + time.monotonic_ns() % 2_000
    command = ["local-vector-search-mcp", "serve", *tools.server("--scope", "full", "--port", str(port))[1:]]
    with (tools.home / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, env=tools.environment, stderr=log)
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                httpx2.get(f"http://127.0.0.1:{port}/healthz", trust_env=False)
                break
            except httpx2.TransportError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_inspector__lists_without_a_complaint(tools: ClientTools, era: str) -> None:
    """The Inspector's strict check of the schemas finds nothing, in both eras."""
    command = ("mcp-inspector", "--cli", *tools.server("--scope", "full"), "--protocol-era", era)
    done = tools.run(*command, "--method", "tools/list", "--strict", "-q", "--format", "json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert len(listed.get("result", listed)["tools"]) == 25
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("name", READ_CALLS)
def test_inspector__calls(tools: ClientTools, name: str) -> None:
    """Every read tool is called, and its result fits its schema in the Inspector's eyes."""
    call = ("--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(READ_CALLS[name]))
    first = tools.run(
        "mcp-inspector",
        "--cli",
        *tools.server(),
        "-q",
        "--method",
        "tools/call",
        "--tool-name",
        "kb_reindex",
        "--tool-args-json",
        '{"wait":true}',
    )
    assert first.returncode == 0, first.stderr
    done = tools.run("mcp-inspector", "--cli", *tools.server(), *call, "-q", "--format", "json")
    assert done.returncode == 0, done.stderr + done.stdout


def test_inspector__calls_all_read_tools() -> None:
    """The table above names every read tool but the one that needs an image."""
    read = {tool.name for tool in all_tools(default_mode="auto", max_results=10) if tool.scope.value == "read"}
    assert read - set(READ_CALLS) == {"kb_load_image"}


def test_inspector__errors_are_errors(tools: ClientTools) -> None:
    """A refused call is seen as one (exit code 5)."""
    arguments = ("--method", "tools/call", "--tool-name", "kb_read", "--tool-args-json", '{"path":"nothing.md"}')
    done = tools.run("mcp-inspector", "--cli", *tools.server(), *arguments, "-q")
    assert done.returncode == 5


def test_inspector__verifies_the_skill(tools: ClientTools) -> None:
    """The skill that the server serves is valid, and its digests are true."""
    arguments = ("--protocol-era", "modern", "--method", "skills/list", "--verify")
    done = tools.run("mcp-inspector", "--cli", *tools.server(), *arguments)
    assert done.returncode == 0, done.stderr
    assert "no conformance errors" in done.stdout + done.stderr


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_typescript__story_over_stdio(tools: ClientTools, era: str) -> None:
    """The official TypeScript client tells the main story over stdio."""
    story = str(Path(__file__).with_name("story.mjs"))
    done = tools.run("node", story, str(tools.folder), era, "stdio", *tools.server("--scope", "full"))
    assert done.stdout.strip() == "story told", done.stderr


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_typescript__story_over_http(tools: ClientTools, url: str, era: str) -> None:
    """The official TypeScript client tells the main story over HTTP."""
    story = str(Path(__file__).with_name("story.mjs"))
    done = tools.run("node", story, str(tools.folder), era, "http", url)
    assert done.stdout.strip() == "story told", done.stderr


@pytest.mark.parametrize(
    ("package", "scenarios"),
    [("@modelcontextprotocol/conformance", SCENARIOS), ("conformance-next", NEXT_SCENARIOS)],
    ids=["released", "next"],
)
def test_conformance__scenarios(tools: ClientTools, url: str, package: str, scenarios: tuple[str, ...]) -> None:
    """The conformance suite's scenarios that need no fixtures pass."""
    suite = str(tools.folder / "node_modules" / package / "dist" / "index.js")
    failed: dict[str, str] = {}
    for scenario in scenarios:
        done = tools.run("node", suite, "server", "--url", url, "--scenario", scenario)
        if done.returncode != 0:
            failed[scenario] = done.stdout[-1000:]
    assert failed == {}


def test_claude_code__registered_server_connects(tools: ClientTools) -> None:
    """A server that is registered by hand is reported as connected."""
    added = tools.run("claude", "mcp", "add", "kb", "--", *tools.server())
    assert added.returncode == 0, added.stderr
    listed = tools.run("claude", "mcp", "list")
    assert "kb: " in listed.stdout
    assert "✔ Connected" in listed.stdout


def test_claude_code__plugin(tools: ClientTools) -> None:
    """The repository is a valid marketplace, and its plugin brings a server that connects."""
    for folder in (REPOSITORY, REPOSITORY / "plugins" / "kb"):
        checked = tools.run("claude", "plugin", "validate", "--strict", str(folder))
        assert checked.returncode == 0, checked.stdout + checked.stderr
    assert tools.run("claude", "plugin", "marketplace", "add", str(REPOSITORY)).returncode == 0
    installed = tools.run("claude", "plugin", "install", "kb@local-vector-search")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    listed = tools.run("claude", "mcp", "list")
    assert "plugin:kb:kb" in listed.stdout
    assert "✔ Connected" in listed.stdout


def test_codex__registered_server_and_plugin_work(tools: ClientTools) -> None:
    """Codex takes the server and the plugin, starts both, and calls their tools."""
    assert tools.run("codex", "mcp", "add", "direct", "--", *tools.server()).returncode == 0
    assert tools.run("codex", "plugin", "marketplace", "add", str(REPOSITORY)).returncode == 0
    assert tools.run("codex", "plugin", "add", "kb@local-vector-search").returncode == 0
    codex = _AppServer(tools)
    try:
        codex.request("initialize", {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}})
        codex.send({"method": "initialized"})
        thread = codex.request("thread/start", {"cwd": str(tools.root)})["thread"]["id"]
        servers = {server["name"]: server for server in codex.request("mcpServerStatus/list", {})["data"]}
        assert {"direct", "kb"} <= set(servers)
        assert "kb_search" in servers["direct"]["tools"]
        for server in ("direct", "kb"):
            call: dict[str, Any] = {"threadId": thread, "server": server, "tool": "kb_status", "arguments": {}}
            result = codex.request("mcpServer/tool/call", call)
            assert result["structuredContent"]["root"] == str(tools.root)
    finally:
        codex.close()


class _AppServer:
    """``codex app-server``: JSON-RPC lines, and no model."""

    def __init__(self, tools: ClientTools) -> None:
        self._process = subprocess.Popen(
            ["codex", "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=tools.root,
            env=tools.environment,
            text=True,
            encoding="utf-8",
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._last_id = 0

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request; its result."""
        self._last_id += 1
        self.send({"id": self._last_id, "method": method, "params": params})
        while True:
            message = json.loads(self._lines.get(timeout=60))
            if message.get("id") == self._last_id and "method" not in message:
                assert "result" in message, message
                result: dict[str, Any] = message["result"]
                return result

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join(10)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
