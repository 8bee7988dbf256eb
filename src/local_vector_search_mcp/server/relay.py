"""Serving stdio by passing every message on to a running HTTP server, unchanged, in both protocol eras.

Several local clients then share one index, one watcher and one embedding model. The relay adds the token, keeps to a
server of its own project root, and holds back tools above its own scope. It answers by itself only where the server
cannot: when it is away, goes away, or must not be asked.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp_types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

from local_vector_search_mcp import __version__
from local_vector_search_mcp.errors import ConfigError, KnowledgeBaseError, PermissionDenied, TooLarge
from local_vector_search_mcp.scopes import HOW_TO_WIDEN, Scope
from local_vector_search_mcp.server.errors import error_text
from local_vector_search_mcp.server.json_types import is_object
from local_vector_search_mcp.server.loopback import is_loopback
from local_vector_search_mcp.server.process_end import end_in_time, run_and_leave
from local_vector_search_mcp.server.standard_streams import LineReader, LineWriter, take_standard_streams
from local_vector_search_mcp.server.stdio import encoded, parse_error
from local_vector_search_mcp.server.tools.catalogue import all_tools

logger = logging.getLogger(__name__)

Message = dict[str, Any]

# Clients close a stdio connection above 10 MiB a message.
MAX_MESSAGE_BYTES = 10 << 20
_CONNECT_TIMEOUT_S = 5.0
_FINISH_AFTER_EOF_S = 0.8
_SESSION_HEADER = "mcp-session-id"
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_UNREACHABLE = -32000
_PROBE_VERSION = "2025-11-25"


def relay(url: str, *, token: str | None, root: Path, scope: str) -> NoReturn:
    """Relay standard input and output to a server until the input ends; leaves the process.

    Args:
        url: The server's MCP endpoint.
        token: The bearer token that it asks for, if it does.
        root: The root of this project; a server of another root is not used.
        scope: What clients of this relay may do.

    Raises:
        ConfigError: The URL is none, or would send everything over an open network.
    """
    check_url(url)
    # It would log every message that is passed on.
    logging.getLogger("httpx2").setLevel(logging.WARNING)

    async def serving() -> None:
        read_fd, write_fd = take_standard_streams()
        lines, writer = LineReader(), LineWriter(write_fd)
        await lines.open(read_fd)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        timeout = httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S)
        # Neither proxies nor credentials come from the environment.
        async with httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http:
            await Relay(url, http, writer, root=root, scope=Scope(scope)).run(lines)

    run_and_leave(serving, with_parent=True)


def check_url(url: str) -> None:
    """Refuse what is no URL of a server, and plain HTTP beyond this machine.

    Raises:
        ConfigError: It is refused.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError("--connect needs a URL such as http://127.0.0.1:8001/mcp.") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("--connect needs a URL such as http://127.0.0.1:8001/mcp.")
    if parts.username or parts.password:
        raise ConfigError("--connect takes no credentials in the URL; name the token's variable in http.tokenEnv.")
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(f"--connect refuses plain HTTP to {host}, which is not this machine; use https.")


class Relay:
    """One client on one side, one server on the other."""

    def __init__(self, url: str, http: httpx2.AsyncClient, writer: LineWriter, *, root: Path, scope: Scope) -> None:
        self._url = url
        self._http = http
        self._writer = writer
        self._root = root
        self._scope = scope
        tools = all_tools(default_mode="auto", max_results=10)
        self._withheld = {tool.name: tool.scope for tool in tools if not scope.allows(tool.scope)}
        self._session: dict[str, str] = {}
        self._opening: list[bytes] = []  # The handshake, kept to repeat it with a server that was restarted.
        self._reopening = anyio.Lock()
        self._checked = False
        self._checking = anyio.Lock()
        self._tasks: dict[Any, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._quiet: asyncio.Task[None] | None = None

    async def run(self, lines: LineReader) -> None:
        """Pass messages on until the input ends."""
        while (line := await lines.next_line()) is not None:
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                await self._writer.write(encoded(parse_error(line)))
                continue
            if isinstance(message, JSONRPCRequest):
                self._take_request(line, message)
            elif not (isinstance(message, JSONRPCNotification) and self._cancels(message)):
                begins = isinstance(message, JSONRPCNotification) and message.method == "notifications/initialized"
                self._quiet = asyncio.create_task(self._send_quietly(line, begins=begins, after=self._quiet))
        end_in_time()
        open_tasks = list(self._tasks.values())
        if open_tasks:
            await asyncio.wait(open_tasks, timeout=_FINISH_AFTER_EOF_S)

    def _take_request(self, line: bytes, request: JSONRPCRequest) -> None:
        after = self._handshake
        if request.method == "initialize":
            self._session, self._opening = {}, [line]
        task = asyncio.create_task(self._answer(line, request, after=after))
        if request.method == "initialize":
            self._handshake = task
        self._tasks[request.id] = task
        task.add_done_callback(lambda done: self._forget(request.id, done))

    def _forget(self, request_id: Any, task: asyncio.Task[None]) -> None:
        if self._tasks.get(request_id) is task:
            del self._tasks[request_id]

    def _cancels(self, notification: JSONRPCNotification) -> bool:
        """Cancel a request of the 2026 era, where closing its stream says so; true if that was all."""
        if notification.method != "notifications/cancelled" or self._session:
            return False
        task = self._tasks.get((notification.params or {}).get("requestId"))
        if task is not None:
            task.cancel()
        return True

    async def _answer(self, line: bytes, request: JSONRPCRequest, *, after: "asyncio.Task[None] | None") -> None:
        """See that a request gets exactly one answer; what comes after a handshake waits for its end."""
        try:
            if after is not None:
                await asyncio.wait((after,))
            refused = self._refused(request)
            if refused is not None:
                await self._write(refused)
                return
            await self._check_root()
            if not await self._post(line, request):
                raise _Away("it closed the connection before it answered")
        except _Away as away:
            self._checked = False
            await self._write(_failure(request.id, f"The server at {self._url} {away}."))
        except KnowledgeBaseError as error:
            await self._write(_failure(request.id, error.message))
        except anyio.BrokenResourceError:
            logger.debug("the client is gone")

    def _refused(self, request: JSONRPCRequest) -> Message | None:
        """The answer to a call of a tool above the scope of this relay."""
        name = (request.params or {}).get("name")
        required = self._withheld.get(name) if request.method == "tools/call" and isinstance(name, str) else None
        if required is None:
            return None
        error = PermissionDenied(
            f"{name} needs scope {required}, and this relay has scope {self._scope}; "
            f"{HOW_TO_WIDEN[required]} if it may be used.",
            details={"requiredScope": required.value, "scope": self._scope.value},
        )
        return _tool_error(request, error)

    async def _post(self, line: bytes, request: JSONRPCRequest | None, *, again: bool = True) -> bool:
        """Send a line and pass on what comes back; whether the request's answer was among it."""
        try:
            async with self._http.stream("POST", self._url, content=line, headers=self._headers(request)) as response:
                if response.status_code == 404 and self._session and again:
                    await response.aclose()
                    await self._reopen(dict(self._session))
                    return await self._post(line, request, again=False)
                if session := response.headers.get(_SESSION_HEADER):
                    self._session[_SESSION_HEADER] = session
                return await self._pass_on(response, request)
        except httpx2.HTTPError as error:
            raise _Away(f"cannot be reached: {type(error).__name__}") from error

    async def _pass_on(self, response: httpx2.Response, request: JSONRPCRequest | None) -> bool:
        kind = response.headers.get("content-type", "").lower()
        if kind.startswith("text/event-stream"):
            async for event in httpx2.EventSource(response, max_event_size=None):
                if event.data and await self._pass_message(event.data.encode(), request):
                    return True
            return False
        body = await response.aread()
        if request is None:
            return True
        if kind.startswith("application/json"):
            message = _parsed(body)
            if message is not None and ("result" in message or "error" in message):
                # A request that was refused before its id was read is still this one.
                return await self._pass_message(_dumped({**message, "id": request.id}), request)
        raise _Away(f"answered with HTTP status {response.status_code}{_STATUS_HINTS.get(response.status_code, '')}")

    async def _pass_message(self, line: bytes, request: JSONRPCRequest | None) -> bool:
        """Pass one message of the server on; whether it answers the request."""
        message = _parsed(line)
        if message is None:
            logger.warning("the server sent what is no message")
            return False
        answers = request is not None and "method" not in message and message.get("id") == request.id
        if request is not None and answers:
            if request.method == "initialize":
                self._note_version(message)
            line = self._trimmed(line, message, request)
        await self._writer.write(line.replace(b"\n", b"").replace(b"\r", b""))
        return answers

    def _trimmed(self, line: bytes, message: Message, request: JSONRPCRequest) -> bytes:
        """An answer without what the client must not see, or could not take."""
        if request.method == "tools/list" and self._withheld and "result" in message:
            tools = [tool for tool in message["result"]["tools"] if tool["name"] not in self._withheld]
            return _dumped({**message, "result": {**message["result"], "tools": tools}})
        if len(line) > MAX_MESSAGE_BYTES:
            text = (
                f"The answer has {len(line)} bytes, more than the {MAX_MESSAGE_BYTES} that one message may carry on "
                "stdio; ask for less at a time (kb_download_file takes offset and length)."
            )
            if request.method == "tools/call":
                return _dumped(_tool_error(request, TooLarge(text)))
            return _dumped(_failure(request.id, text))
        return line

    async def _send_quietly(self, line: bytes, *, begins: bool, after: "asyncio.Task[None] | None") -> None:
        """Send what needs no answer, in order; begin to listen once the handshake is done."""
        before = [task for task in (after, self._handshake) if task is not None]
        if before:
            await asyncio.wait(before)
        if begins:
            self._opening = [*self._opening[:1], line]
        try:
            await self._post(line, None)
        except (_Away, KnowledgeBaseError) as error:
            logger.warning("a notification did not reach the server: %s", error)
            return
        if begins:
            self._listen()

    def _listen(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._pass_notifications())

    async def _pass_notifications(self) -> None:
        """Pass on what the server says outside of answers, as long as the session lasts."""
        headers = {**self._session, "accept": "text/event-stream"}
        try:
            async with self._http.stream("GET", self._url, headers=headers) as response:
                if response.status_code == 200:
                    await self._pass_on(response, None)
        except (httpx2.HTTPError, _Away, anyio.BrokenResourceError) as error:
            logger.info("the server's notifications have ended: %s", type(error).__name__)

    async def _reopen(self, lost: Mapping[str, str]) -> None:
        """Repeat the client's handshake with a server that has forgotten the session, as after a restart."""
        async with self._reopening:
            if self._session != lost or not self._opening:
                return
            self._session = {}
            opening = jsonrpc_message_adapter.validate_json(self._opening[0], by_name=False)
            for line in self._opening:
                request = opening if line is self._opening[0] and isinstance(opening, JSONRPCRequest) else None
                async with self._http.stream(
                    "POST", self._url, content=line, headers=self._headers(request)
                ) as response:
                    if session := response.headers.get(_SESSION_HEADER):
                        self._session[_SESSION_HEADER] = session
                    await response.aread()
            self._session.setdefault(MCP_PROTOCOL_VERSION_HEADER, lost.get(MCP_PROTOCOL_VERSION_HEADER, ""))
            self._listen()

    async def _check_root(self) -> None:
        """Refuse a server of another project; asked once per connection, in a session of the relay's own."""
        async with self._checking:
            if self._checked:
                return
            try:
                theirs = await _root_of(self._http, self._url)
            except httpx2.HTTPError as error:
                raise _Away(f"cannot be reached: {type(error).__name__}") from error
            ours = self._root.resolve()
            if Path(theirs).resolve() != ours:
                raise ConfigError(
                    f"The server at {self._url} serves {theirs}, not {ours}; connect to a server of this project."
                )
            self._checked = True

    def _headers(self, request: JSONRPCRequest | None) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **self._session}
        if request is None:
            return headers
        params = request.params or {}
        version = _meta_of(request).get(_META_VERSION)
        if isinstance(version, str):
            # A request of the 2026 era says in its headers what it says in its body.
            headers[MCP_PROTOCOL_VERSION_HEADER] = version
            headers[MCP_METHOD_HEADER] = request.method
            name = params.get(NAME_BEARING_METHODS.get(request.method, ""))
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        return headers

    def _note_version(self, message: Message) -> None:
        result = message.get("result")
        version = result.get("protocolVersion") if is_object(result) else None
        if isinstance(version, str):
            self._session[MCP_PROTOCOL_VERSION_HEADER] = version

    async def _write(self, message: Message) -> None:
        await self._writer.write(_dumped(message))


class _Away(Exception):
    """The server does not answer; the text goes on after its name."""


_STATUS_HINTS = {
    401: ": it asks for a token; name the variable that holds it in http.tokenEnv",
    413: ": the message is larger than the 4 MiB that it takes",
    421: ": it does not take this host name; add it to http.allowedHosts there",
}


async def _root_of(http: httpx2.AsyncClient, url: str) -> str:
    """The root that a server says it serves."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    hello = {
        "protocolVersion": _PROBE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "local-vector-search-mcp-relay", "version": __version__},
    }
    _, session = await _ask(http, url, headers, {"method": "initialize", "params": hello, "id": 1})
    headers = {
        **headers,
        MCP_PROTOCOL_VERSION_HEADER: _PROBE_VERSION,
        **({_SESSION_HEADER: session} if session else {}),
    }
    try:
        await _ask(http, url, headers, {"method": "notifications/initialized"})
        call: Message = {"method": "tools/call", "params": {"name": "kb_status", "arguments": {}}, "id": 2}
        answer, _ = await _ask(http, url, headers, call)
    finally:
        if session:
            await http.request("DELETE", url, headers=headers)
    result = (answer or {}).get("result")
    content = result.get("structuredContent") if is_object(result) else None
    root = content.get("root") if is_object(content) else None
    if not isinstance(root, str):
        raise _Away("does not tell which root it serves; is it a local-vector-search-mcp server?")
    return root


async def _ask(
    http: httpx2.AsyncClient, url: str, headers: Mapping[str, str], message: Message
) -> tuple[Message | None, str | None]:
    async with http.stream("POST", url, content=_dumped({"jsonrpc": "2.0", **message}), headers=headers) as response:
        if response.status_code >= 400:
            raise _Away(
                f"answered with HTTP status {response.status_code}{_STATUS_HINTS.get(response.status_code, '')}"
            )
        session = response.headers.get(_SESSION_HEADER)
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            async for event in httpx2.EventSource(response, max_event_size=None):
                parsed = _parsed(event.data.encode())
                if parsed is not None and "id" in parsed and "method" not in parsed:
                    return parsed, session
            return None, session
        return _parsed(await response.aread()), session


def _parsed(data: bytes) -> Message | None:
    try:
        parsed: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return dict(parsed) if is_object(parsed) else None


def _meta_of(request: JSONRPCRequest) -> Mapping[str, Any]:
    meta = (request.params or {}).get("_meta")
    return meta if is_object(meta) else {}


def _dumped(message: Message) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _failure(request_id: Any, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": _UNREACHABLE, "message": text}}


def _tool_error(request: JSONRPCRequest, error: KnowledgeBaseError) -> Message:
    result: Message = {"content": [{"type": "text", "text": error_text(error, doing="relay")}], "isError": True}
    if _META_VERSION in _meta_of(request):
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "id": request.id, "result": result}
