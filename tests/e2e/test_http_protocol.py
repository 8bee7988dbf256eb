"""HTTP and the relay as real processes: who is let in, what goes through unchanged, what happens when it ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.stdio_client import SOURCE, Era, StdioClient, child_environment

REPOSITORY = Path(__file__).resolve().parents[2]
IMPORTABLE = {"PYTHONPATH": os.pathsep.join((str(SOURCE), str(REPOSITORY)))}
TOKEN = "correct horse battery"
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"accept": "application/json, text/event-stream"}


class HttpServer:
    """A served folder; ``url`` is the MCP endpoint."""

    def __init__(self, root: Path, *options: str, port: int | None = None, token: str | None = None) -> None:
        self.port = port or free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.base}/mcp"
        self.log = root / "server.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fake_server", str(root), "--port", str(self.port), *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=root,
                env=child_environment({**IMPORTABLE, **({"TEST_TOKEN": token} if token else {})}),
            )

    def wait_until_up(self) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if self.get("/healthz").status_code < 500:
                    return
            except httpx2.TransportError:
                time.sleep(0.05)
        raise AssertionError(self.log.read_text(encoding="utf-8"))

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(self.base + path, headers=headers, trust_env=False)

    def hello(self, **headers: str) -> httpx2.Response:
        return httpx2.post(self.url, json=HELLO, headers={**ACCEPT, **headers}, trust_env=False)

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def relay_to(url: str, root: Path, *options: str, era: Era = "2025", token: str | None = None) -> StdioClient:
    command = [sys.executable, "-m", "tests.support.fake_server", str(root), "--connect", url, *options]
    return StdioClient(command, era=era, cwd=root, env={**IMPORTABLE, **({"TEST_TOKEN": token} if token else {})})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server on loopback without a token."""
    served = HttpServer(tmp_path_factory.mktemp("root"), "--allowed-host", "notes.example")
    served.wait_until_up()
    yield served
    served.end()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "127.0.0.1:9"}, 200),
        ({"host": "[::1]:9"}, 200),
        ({"host": "NOTES.example"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": ""}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "https://notes.example"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_http__host_and_origin(server: HttpServer, headers: dict[str, str], status: int) -> None:
    """A page of another site cannot reach the server, whatever name it makes resolve to it."""
    assert server.get("/healthz", **headers).status_code == status
    assert server.hello(**headers).status_code == status


def test_http__body_limit(server: HttpServer) -> None:
    """A body above 4 MiB is refused."""
    response = httpx2.post(server.url, content=b" " * (5 << 20), headers=ACCEPT, trust_env=False)
    assert response.status_code == 413


def test_http__refusals_are_logged_without_secrets(server: HttpServer) -> None:
    """A refused request leaves method, path, status and Host in the log, and no more of it."""
    server.get("/mcp?key=hunter2", host="other.example", authorization="Bearer hunter2")
    log = server.log.read_text(encoding="utf-8")
    assert "refused GET '/mcp': 421, Host 'other.example'" in log
    assert "hunter2" not in log


def test_http__busy_port(server: HttpServer, tmp_path: Path) -> None:
    """A port that another server has is named as the reason."""
    second = HttpServer(tmp_path, port=server.port)
    assert second.process.wait(30) != 0
    assert str(server.port) in second.log.read_text(encoding="utf-8")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_http__beyond_loopback_needs_a_token(tmp_path: Path, host: str) -> None:
    """An address that other machines reach is not listened on without a token."""
    refused = HttpServer(tmp_path, "--host", host)
    assert refused.process.wait(30) != 0
    assert "tokenEnv" in refused.log.read_text(encoding="utf-8")


def test_http__token(tmp_path: Path) -> None:
    """With a token, only who sends it is served; health needs none."""
    served = HttpServer(tmp_path, token=TOKEN)
    try:
        served.wait_until_up()
        assert served.hello().status_code == 401
        assert served.hello(authorization="Bearer wrong").status_code == 401
        assert served.hello(authorization=f"Bearer {TOKEN}x").status_code == 401
        assert served.hello(authorization=f"Bearer {TOKEN}").status_code == 200
        assert served.get("/healthz", host="evil.example").status_code == 421
        with relay_to(served.url, tmp_path, token=TOKEN) as client:
            assert client.value("kb_status")["root"] == str(tmp_path)
        with pytest.raises(KeyError):
            relay_to(served.url, tmp_path, token="wrong").initialize()
    finally:
        served.end()


def test_http__wildcard_with_token_takes_any_host(tmp_path: Path) -> None:
    """Behind a wildcard address the token decides, not the name."""
    served = HttpServer(tmp_path, "--host", "0.0.0.0", token=TOKEN)
    try:
        served.wait_until_up()
        assert served.hello(host="kb.lan", authorization=f"Bearer {TOKEN}").status_code == 200
        assert served.hello(host="kb.lan").status_code == 401
    finally:
        served.end()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_http__ends_on_signals(tmp_path: Path, number: signal.Signals) -> None:
    """A signal ends it within two seconds, with a call in flight and a client connected."""
    served = HttpServer(tmp_path)
    served.wait_until_up()
    client = relay_to(served.url, tmp_path)
    client.initialize()
    request = client.send("tools/call", {"name": "kb_read", "arguments": {"path": "sleep-20"}})
    client.value("kb_status")
    began = time.monotonic()
    served.process.send_signal(number)
    assert served.process.wait(5) == 0
    assert time.monotonic() - began < 2
    assert served.url in client.wait(request)["error"]["message"]
    assert "Traceback" not in served.log.read_text(encoding="utf-8")
    assert client.close() == 0


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_relay__passes_everything_on(server: HttpServer, era: Era) -> None:
    """Results, errors, progress, resources, completion and the server's own description survive in both eras."""
    root = server.log.parent
    with relay_to(server.url, root, era=era) as client:
        assert "250 documents" in client.server["instructions"]
        assert len(client.request("tools/list")["result"]["tools"]) == 25
        assert client.value("kb_read", {"path": "日本語 🎉.md"})["path"] == "日本語 🎉.md"
        assert client.error("kb_read", {"path": "conflict.md"})["code"] == "CONFLICT"
        assert client.error("kb_nothing")["code"] == "UNKNOWN_TOOL"
        call = {"name": "kb_read", "arguments": {"path": "sleep-5"}, "_meta": {"progressToken": "t"}}
        assert client.wait(client.send("tools/call", call))["result"]["structuredContent"]["path"] == "sleep-5"
        assert any(n["method"] == "notifications/progress" for n in client.notifications)
        params = {
            "ref": {"type": "ref/resource", "uri": "kb://document/{path*}"},
            "argument": {"name": "path", "value": "n"},
        }
        assert client.request("completion/complete", params)["result"]["completion"]["values"]
        assert client.request("resources/read", {"uri": "kb://document/a.md"})["result"]["contents"]
        client.write("no json")
        assert client.wait(None)["error"]["code"] == -32700
        assert client.close() == 0
    assert client.stray == []


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_relay__notifications_come_through(server: HttpServer, era: Era) -> None:
    """What the server says outside of answers reaches the client, in the way of its era."""
    document = server.log.parent / f"watched-{era}.md"
    uri = f"kb://document/{document.name}"
    document.write_text("one", encoding="utf-8")
    with relay_to(server.url, server.log.parent, era=era) as client:
        if era == "2025":
            client.request("resources/subscribe", {"uri": uri})
        else:
            client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
            client.wait_until(lambda: bool(client.notifications))
        document.write_text("two", encoding="utf-8")
        client.wait_until(lambda: any(n["params"].get("uri") == uri for n in client.notifications if "params" in n))


def test_relay__cancels(server: HttpServer) -> None:
    """A cancelled call stays unanswered, and the connection goes on."""
    with relay_to(server.url, server.log.parent) as client:
        slow = client.send("tools/call", {"name": "kb_read", "arguments": {"path": "sleep-2"}})
        client.value("kb_status")
        client.notify("notifications/cancelled", {"requestId": slow})
        assert client.value("kb_status")["scope"] == "full"


@pytest.mark.parametrize("era", ["2025", "2026"])
def test_relay__keeps_to_its_own_scope(server: HttpServer, era: Era) -> None:
    """A relay of scope read shows and passes on nothing that writes, whatever the server allows."""
    with relay_to(server.url, server.log.parent, "--scope", "read", era=era) as client:
        names = {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
        assert len(names) == 13
        error = client.error("kb_patch", {"path": "a.md", "operations": []})
        assert error["code"] == "PERMISSION_DENIED"


def test_relay__refuses_another_root(server: HttpServer, tmp_path: Path) -> None:
    """A server of another project is named and not used."""
    client = relay_to(server.url, tmp_path)
    message = client.request("initialize", HELLO["params"])["error"]["message"]
    assert server.url in message
    assert str(tmp_path) in message
    assert "error" in client.request("tools/call", {"name": "kb_status"})
    assert client.close() == 0


def test_relay__server_away_and_back(tmp_path: Path) -> None:
    """Requests are answered with an error that names the URL while the server is away; afterwards they work again."""
    served = HttpServer(tmp_path)
    served.wait_until_up()
    client = relay_to(served.url, tmp_path)
    client.initialize()
    assert client.value("kb_status")["scope"] == "full"
    served.end()
    for method in ("tools/list", "resources/list"):
        assert served.url in client.request(method)["error"]["message"]
    again = HttpServer(tmp_path, port=served.port)
    try:
        again.wait_until_up()
        assert client.value("kb_status")["scope"] == "full"
        assert client.close() == 0
    finally:
        again.end()


def test_relay__server_never_there(tmp_path: Path) -> None:
    """Without a server, the handshake itself is answered with an error, and the relay still ends with its input."""
    url = f"http://127.0.0.1:{free_port()}/mcp"
    client = relay_to(url, tmp_path)
    assert url in client.request("initialize", HELLO["params"])["error"]["message"]
    began = time.monotonic()
    assert client.close() == 0
    assert time.monotonic() - began < 2


def test_relay__server_that_never_answers(tmp_path: Path) -> None:
    """A server that takes a request and says nothing does not keep the relay alive when its input closes."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        client = relay_to(f"http://127.0.0.1:{silent.getsockname()[1]}/mcp", tmp_path)
        client.send("initialize", HELLO["params"])
        connection, _ = silent.accept()
        began = time.monotonic()
        assert client.close() == 0
        assert time.monotonic() - began < 2
        connection.close()


@pytest.mark.parametrize(
    "url",
    ["http://example.com/mcp", "http://192.0.2.1:80/mcp", "ftp://127.0.0.1/", "nothing", "http://u:p@127.0.0.1/mcp"],
)
def test_relay__urls_refused(tmp_path: Path, url: str) -> None:
    """Plain HTTP beyond this machine, and what is no URL, is refused at the start."""
    client = relay_to(url, tmp_path)
    assert client.process.wait(30) != 0
    assert "--connect" in client.errors()
    client.close()
