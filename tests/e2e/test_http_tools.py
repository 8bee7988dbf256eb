"""The installed command over HTTP, and clients that share it through relays: one index for all of them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.support.stdio_client import StdioClient, child_environment, server_command


class Served:
    """``local-vector-search-mcp serve`` over a folder."""

    def __init__(self, root: Path, *options: str, env: dict[str, str] | None = None) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.log = root.parent / f"serve-{self.port}.log"
        command = [sys.executable, "-m", "local_vector_search_mcp", "serve", "--project-root", str(root)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--embedding-provider", "none", *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=child_environment(env),
            )

    def wait_until_up(self) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if httpx2.get(f"http://127.0.0.1:{self.port}/healthz", trust_env=False).status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.05)
        raise AssertionError(self.log.read_text(encoding="utf-8"))

    def end(self) -> bytes:
        self.process.terminate()
        output, _ = self.process.communicate(timeout=10)
        return output


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with one document."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.md").write_text("# Alpha\n\nSome text about caching.\n", encoding="utf-8", newline="\n")
    return root


@pytest.fixture
def served(workspace: Path) -> Iterator[Served]:
    """The folder served with scope edit."""
    server = Served(workspace, "--scope", "edit")
    server.wait_until_up()
    yield server
    assert server.end() == b""


def relay(root: Path, url: str, *options: str) -> StdioClient:
    return StdioClient(server_command(root, "--connect", url, *options), cwd=root)


def test_http__two_clients_share_one_server(served: Served, workspace: Path) -> None:
    """What one client writes, the other finds and takes back; each has the scope that it was given."""
    with relay(workspace, served.url, "--scope", "edit") as writer, relay(workspace, served.url) as reader:
        assert writer.value("kb_reindex", {"wait": True})["outcome"] == "succeeded"
        hit = reader.value("kb_search", {"query": "caching"})["results"][0]
        operation = {"kind": "insert_after", "pointer": hit["pointer"], "markdown": "A sentence about flamingos."}
        done = writer.value("kb_patch", {"path": "a.md", "operations": [operation]})
        reader.value("kb_reindex", {"wait": True})
        assert reader.value("kb_search", {"query": "flamingos"})["results"][0]["path"] == "a.md"
        assert reader.error("kb_undo", {"changeId": done["changeId"]})["code"] == "PERMISSION_DENIED"
        writer.value("kb_undo", {"changeId": done["changeId"]})
        assert (workspace / "a.md").read_bytes() == b"# Alpha\n\nSome text about caching.\n"
        names = {tool["name"] for tool in writer.request("tools/list")["result"]["tools"]}
        assert "kb_delete" not in names
        assert "kb_patch" in names


def test_http__one_result_may_be_larger_than_on_stdio(served: Served, workspace: Path) -> None:
    """What stdio carries in parts only comes whole over HTTP, and a relay still holds to what its client takes."""
    (workspace / "large.bin").write_bytes(os.urandom(9 << 20))
    call = {"name": "kb_download_file", "arguments": {"path": "large.bin"}}
    headers = {"accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    with httpx2.Client(trust_env=False, headers=headers, timeout=60) as http:
        opened = http.post(served.url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        http.post(served.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = http.post(served.url, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        assert len(answer.content) > 12 << 20
    with relay(workspace, served.url) as client:
        assert client.error("kb_download_file", {"path": "large.bin"})["code"] == "TOO_LARGE"
        part = {"path": "large.bin", "length": 1 << 20}
        assert not client.call("kb_download_file", part).get("isError")


def test_http__token_from_the_named_variable(workspace: Path, tmp_path: Path) -> None:
    """The token is asked for as soon as its variable is named, and a server without its value does not start."""
    config = tmp_path / "config.yaml"
    config.write_text("http:\n  tokenEnv: MY_TOKEN\n", encoding="utf-8")
    missing = Served(workspace, "--config", str(config))
    assert missing.process.wait(30) == 2
    missing.end()
    assert "MY_TOKEN" in missing.log.read_text(encoding="utf-8")
    server = Served(workspace, "--config", str(config), env={"MY_TOKEN": "open sesame"})
    try:
        server.wait_until_up()
        command = server_command(workspace, "--connect", server.url, "--config", str(config))
        with StdioClient(command, env={"MY_TOKEN": "open sesame"}) as client:
            assert client.value("kb_status")["root"] == str(workspace)
        assert httpx2.post(server.url, json={}, trust_env=False).status_code == 401
    finally:
        server.end()


def test_http__beyond_loopback_is_refused_without_a_token(workspace: Path) -> None:
    """Listening on every address without a token is wrong use."""
    server = Served(workspace, "--host", "0.0.0.0")
    assert server.process.wait(30) == 2
    server.end()
    assert "tokenEnv" in server.log.read_text(encoding="utf-8")
