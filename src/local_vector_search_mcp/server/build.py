"""Putting the MCP server together over an opened app, and serving it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from local_vector_search_mcp import __version__
from local_vector_search_mcp.server import stdio
from local_vector_search_mcp.server.isolated import FastMCP
from local_vector_search_mcp.server.knowledge_server import KnowledgeServer

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

# Most bytes of one file or result, before base64: clients close the connection above 10 MiB a message on stdio.
STDIO_RESULT_LIMIT = 7 << 20
HTTP_RESULT_LIMIT = 25 << 20


def serve_stdio(app: "App") -> None:
    """Serve an opened app over standard input and output; leaves the process when that ends."""
    stdio.serve(build_server(app, result_limit=STDIO_RESULT_LIMIT))


def build_server(app: "App", *, result_limit: int) -> KnowledgeServer:
    """The server over an opened app; the app starts and ends with the server's lifespan."""

    @asynccontextmanager
    async def lifespan(_: FastMCP[None]) -> AsyncGenerator[None]:
        await server.open()
        try:
            yield
        finally:
            await server.close()

    server = KnowledgeServer(
        app,
        result_limit=result_limit,
        name=app.config.server.name,
        version=__version__,
        lifespan=lifespan,
    )
    return server
