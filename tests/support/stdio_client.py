"""A real MCP client over the pipes of a child process: JSON-RPC lines in both protocol eras, nothing of an SDK."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import local_vector_search_mcp

Era = Literal["2025", "2026"]
Message = dict[str, Any]

# Where this process has the package from, so that child processes test the same one: the checkout, or a built wheel.
SOURCE = Path(str(local_vector_search_mcp.__file__)).resolve().parents[1]
_PROTOCOL = {"2025": "2025-11-25", "2026": "2026-07-28"}
_CLIENT = {"name": "stdio-client", "version": "1"}
_META = "io.modelcontextprotocol/"


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would configure the server, and with the package importable."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LVS_MCP_", "FASTMCP_", "CLAUDE_"))
    }
    return {**kept, "PYTHONPATH": str(SOURCE), **(extra or {})}


class StdioClient:
    """One server process and a connection to it.

    ``with StdioClient(command) as client:`` opens the connection; leaving it closes the input and waits for the end.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        era: Era = "2025",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self.era: Era = era
        self.timeout_s = timeout_s
        self.notifications: list[Message] = []
        self.stray: list[str] = []
        self.server: Message = {}
        self.answers: dict[Any, Message] = {}
        self._next_id = 0
        self._arrived: queue.Queue[Message | None] = queue.Queue()
        self._stderr: list[bytes] = []
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=child_environment(env),
        )
        self._readers = [
            threading.Thread(target=self._read_output, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        self.initialize()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()

    # Speaking the protocol.

    def initialize(self) -> Message:
        """Open the connection in this client's era; the server's description of itself."""
        if self.era == "2026":
            self.server = self.request("server/discover")["result"]
            return self.server
        self.server = self.request(
            "initialize",
            {"protocolVersion": _PROTOCOL["2025"], "capabilities": {}, "clientInfo": _CLIENT},
        )["result"]
        self.notify("notifications/initialized")
        return self.server

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, **meta: Any) -> Message:
        """Call a tool; the result, whether or not it is an error."""
        params: Message = {"name": name, "arguments": dict(arguments or {})}
        if meta:
            params["_meta"] = meta
        answer = self.request("tools/call", params)
        assert "result" in answer, answer
        result: Message = answer["result"]
        return result

    def value(self, name: str, arguments: Mapping[str, Any] | None = None) -> Message:
        """Call a tool that must succeed; its structured content."""
        result = self.call(name, arguments)
        assert not result.get("isError"), result
        value: Message = result["structuredContent"]
        return value

    def error(self, name: str, arguments: Mapping[str, Any] | None = None) -> Message:
        """Call a tool that must fail; ``{"code", "message", "details"?}``."""
        result = self.call(name, arguments)
        assert result.get("isError") is True, result
        assert "structuredContent" not in result, result
        (block,) = result["content"]
        error: Message = json.loads(block["text"])
        return error

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """Send a request and wait for its answer."""
        return self.wait(self.send(method, params))

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request without waiting; its id."""
        self._next_id += 1
        message: Message = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        body = self._stamped(params)
        if body is not None:
            message["params"] = body
        self.write(json.dumps(message, ensure_ascii=False))
        return self._next_id

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        self.write(json.dumps(message))

    def wait(self, request_id: Any) -> Message:
        """The answer to a request that was sent."""
        self.wait_until(lambda: request_id in self.answers)
        return self.answers.pop(request_id)

    def wait_until(self, reached: Callable[[], bool], *, timeout_s: float | None = None) -> None:
        """Take in what arrives until a state is reached.

        Raises:
            TimeoutError: It was not reached in time, or the server has closed its output before.
        """
        until = time.monotonic() + (timeout_s if timeout_s is not None else self.timeout_s)
        while not reached():
            left = until - time.monotonic()
            try:
                message = self._arrived.get(timeout=max(left, 0.001))
            except queue.Empty:
                raise TimeoutError(f"nothing came in time; standard error: {self.errors()}") from None
            if message is None:
                raise TimeoutError(f"the server closed its output; standard error: {self.errors()}")
            self._take(message)

    def write(self, line: str | bytes) -> None:
        """Write one raw line."""
        assert self.process.stdin is not None
        data = line if isinstance(line, bytes) else line.encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def close(self, *, timeout_s: float = 10.0) -> int:
        """Close the input, wait for the process to end; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        for reader in self._readers:
            reader.join(timeout_s)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code

    def errors(self) -> str:
        """What the process has written to standard error so far."""
        return b"".join(self._stderr).decode("utf-8", "replace")

    def _stamped(self, params: Mapping[str, Any] | None) -> Message | None:
        if self.era == "2025":
            return None if params is None else dict(params)
        body = dict(params or {})
        stamp = {
            f"{_META}protocolVersion": _PROTOCOL["2026"],
            f"{_META}clientInfo": _CLIENT,
            f"{_META}clientCapabilities": {},
        }
        return {**body, "_meta": {**stamp, **body.get("_meta", {})}}

    def _take(self, message: Message) -> None:
        if "method" in message:
            self.notifications.append(message)
        else:
            self.answers[message.get("id")] = message

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                self._arrived.put(json.loads(line))
            except ValueError:
                self.stray.append(line.decode("utf-8", "replace"))
        self._arrived.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for chunk in self.process.stderr:
            self._stderr.append(chunk)


def server_command(root: Path, *options: str) -> list[str]:
    """The command line that serves a folder over stdio."""
    return [sys.executable, "-m", "local_vector_search_mcp", "--project-root", str(root), *options]
