"""Serving MCP over Streamable HTTP to several clients at once."""

import asyncio
import contextlib
import hmac
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from typing import TYPE_CHECKING, Any, NoReturn

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from local_vector_search_mcp.errors import ConfigError
from local_vector_search_mcp.server.build import HTTP_RESULT_LIMIT, build_server
from local_vector_search_mcp.server.isolated import AccessToken, TokenVerifier
from local_vector_search_mcp.server.knowledge_server import KnowledgeServer
from local_vector_search_mcp.server.loopback import is_loopback, is_wildcard
from local_vector_search_mcp.server.process_end import run_and_leave

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

logger = logging.getLogger(__name__)

_BACKLOG = 128
_CLOSE_STREAMS_WITHIN_S = 1

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Asgi = Callable[[_Message, _Receive, _Send], Awaitable[None]]


def serve_http(app: "App", *, token: str | None) -> NoReturn:
    """Serve an opened app until the process is told to end; leaves the process.

    Args:
        app: The opened app.
        token: The bearer token that clients must send; None where none is asked for.

    Raises:
        ConfigError: The address cannot be had, or lies beyond loopback and no token is asked for.
    """
    http = app.config.http
    if token is None and not is_loopback(http.host):
        raise ConfigError(
            f"http.host {http.host} can be reached by other machines, so a token is needed: name an environment "
            "variable that holds one in http.tokenEnv, or listen on 127.0.0.1."
        )
    listening = _listen(http.host, http.port)
    # Sessions and streams come and go all the time.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    server = build_server(app, result_limit=HTTP_RESULT_LIMIT)
    asgi = _application(server, app, token)
    port = listening.getsockname()[1]
    shown = f"[{http.host}]" if ":" in http.host else http.host
    logger.info("serving MCP on http://%s:%d%s", shown, port, http.path)
    run_and_leave(lambda: _Uvicorn(_uvicorn_settings(asgi)).serve(sockets=[listening]), with_parent=False)


def _application(server: KnowledgeServer, app: "App", token: str | None) -> _Asgi:
    http = app.config.http
    if token is not None:
        server.auth = _OneToken(token)

    @server.custom_route("/healthz", methods=["GET"], include_in_schema=False)
    async def healthz(_: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        return JSONResponse({"status": "ok"})

    # Behind a wildcard address the names that clients use cannot be known; the token keeps strangers out there.
    checks_host = token is None or not is_wildcard(http.host)
    asgi = server.http_app(
        path=http.path,
        transport="http",
        json_response=False,
        stateless_http=False,
        host_origin_protection=checks_host,
        allowed_hosts=[http.host, *http.allowed_hosts],
        allowed_origins=[f"{scheme}://{name}:*" for name in http.allowed_hosts for scheme in ("http", "https")],
    )
    return _RefusalLog(asgi)


def _listen(host: str, port: int) -> socket.socket:
    name = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"http.host {host} and http.port {port} cannot be listened on: {error.strerror or error}; "
            "choose another port, or end the server that has it."
        ) from error
    listening.setblocking(False)
    return listening


def _uvicorn_settings(asgi: _Asgi) -> uvicorn.Config:
    return uvicorn.Config(
        asgi,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSE_STREAMS_WITHIN_S,
    )


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handling: the process ends in one way, whatever it serves."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        serving = asyncio.ensure_future(super().serve(sockets=sockets))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.should_exit = True
            # Calls that the end cuts off are no errors of theirs; each would be logged with a traceback.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            await serving
            raise


class _OneToken(TokenVerifier):
    """Takes one token, compared in constant time."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who a token belongs to; None where it is another."""
        if not hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._token):
            return None
        return AccessToken(token=token, client_id="client", scopes=[])


class _RefusalLog:
    """Logs what is refused: method, path, status and Host, never headers or bodies."""

    def __init__(self, asgi: _Asgi) -> None:
        self._asgi = asgi

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await self._asgi(scope, receive, send)
            return

        async def watched(message: _Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                host = next((value for name, value in scope["headers"] if name == b"host"), b"")
                shown = host.decode("latin-1")
                logger.warning("refused %s %r: %d, Host %r", scope["method"], scope["path"], message["status"], shown)
            await send(message)

        await self._asgi(scope, receive, watched)
