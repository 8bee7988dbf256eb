"""The names of FastMCP and its SDK that are not public: each is used, so each has a test that it is still there."""

import asyncio
import inspect
from pathlib import Path
from typing import Any, cast

from mcp.server.connection import Connection
from mcp.server.session import ServerSession
from tests.support.fake_app import FakeApp

from local_vector_search_mcp.server.build import build_server
from local_vector_search_mcp.server.isolated import FastMCP
from local_vector_search_mcp.server.knowledge_server import KnowledgeServer


def server(root: Path) -> KnowledgeServer:
    return build_server(cast(Any, FakeApp(root)), result_limit=1 << 20)


def test_private_names__low_level_server(tmp_path: Path) -> None:
    """``FastMCP._mcp_server`` takes handlers, and gives those that it has."""
    low = server(tmp_path)._mcp_server  # pyright: ignore[reportPrivateUsage]
    for method in ("tools/list", "tools/call", "resources/list", "resources/subscribe", "subscriptions/listen"):
        assert low.get_request_handler(method) is not None
    assert callable(low.run)
    assert low.create_initialization_options().server_name


def test_private_names__lifespan(tmp_path: Path) -> None:
    """``FastMCP._lifespan_manager`` enters the lifespan, which starts the app and ends it."""
    built = server(tmp_path)
    app = cast(Any, built)._app

    async def live() -> None:
        async with built._lifespan_manager():  # pyright: ignore[reportPrivateUsage]
            while not app.started.is_set():
                await asyncio.sleep(0.01)
            assert not app.closed.is_set()

    asyncio.run(live())
    assert app.closed.is_set()


def test_private_names__connection_of_a_session() -> None:
    """``ServerSession._connection`` outlives the request, and runs what is to be done at its end."""
    assert "_connection" in inspect.getsource(ServerSession.__init__)
    assert "exit_stack" in Connection.__annotations__


def test_private_names__none_of_ours_is_one_of_theirs(tmp_path: Path) -> None:
    """What the subclass keeps for itself stands in the way of nothing that FastMCP keeps or does."""
    ours = set(vars(KnowledgeServer)) | set(vars(server(tmp_path)))
    theirs = set(vars(FastMCP("empty")))
    theirs |= {name for kind in FastMCP.__mro__ for name in vars(kind)}
    new = ours - set(vars(FastMCP("empty")))
    public = {"add_tool", "get_tasks", "get_tool", "list_tools"}
    clashes = {name for name in new & theirs if not name.startswith("__")} - public
    assert clashes == set()


def test_private_names__overridden_methods_exist() -> None:
    """What the server overrides is what FastMCP calls."""
    for name in ("list_tools", "get_tool", "add_tool", "get_tasks"):
        ours = inspect.signature(getattr(KnowledgeServer, name)).parameters
        theirs = inspect.signature(getattr(FastMCP, name)).parameters
        assert list(ours) == list(theirs), name
