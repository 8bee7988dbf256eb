"""KnowledgeServer over a stand-in for the app: what it tells clients that come later."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.fake_app import FakeApp

from local_vector_search_mcp.server import knowledge_server
from local_vector_search_mcp.server.build import HTTP_RESULT_LIMIT, build_server

_DEADLINE_S = 20


async def told(server: knowledge_server.KnowledgeServer, words: str) -> None:
    """Wait until the instructions hold some words."""
    while words not in (server.instructions or ""):
        await asyncio.sleep(0)


def test_instructions__follow_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that comes when the index has grown is told what it holds then."""
    monkeypatch.setattr(knowledge_server, "_LOOK_AGAIN_S", 0)
    app = FakeApp(tmp_path)
    server = build_server(cast(Any, app), result_limit=HTTP_RESULT_LIMIT)

    async def story() -> None:
        await server.open()
        try:
            await told(server, "of 250 documents")
            app.documents = 251
            await told(server, "of 251 documents")
        finally:
            await server.close()

    asyncio.run(asyncio.wait_for(story(), _DEADLINE_S))
