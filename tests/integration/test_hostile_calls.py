"""Hostile calls of every tool: only documented codes, results that fit, no hang, and nothing outside the root."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.support.hostile_calls import HostileCalls
from tests.support.pictures import picture

from local_vector_search_mcp import errors
from local_vector_search_mcp.app import App, open_app
from local_vector_search_mcp.config.loader import load_config
from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.calls import CallRunner
from local_vector_search_mcp.server.door import Door
from local_vector_search_mcp.server.tools.catalogue import all_tools

TOOLS = all_tools(default_mode="auto", max_results=10)
LONGEST_S = 5.0
DOCUMENTED = {
    kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KnowledgeBaseError)
} - {"INTERNAL", "INVALID_CONFIG", "IO_ERROR", "UNKNOWN_TOOL", "PERMISSION_DENIED"}
ALPHA = """---
title: Alpha
tags: [idea]
empty:
nested: {list: [1, two, null]}
---

# Alpha

Text with [a link](b.md) and ![an image](img/dot.png).

| Name | Count |
| ---- | ----- |
| one  | 1     |

- first
  - nested
- second

```py
code
```
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """A workspace with something of every kind; beside it a file that no call may reach."""
    root = tmp_path / "root"
    (root / "img").mkdir(parents=True)
    (root / "a.md").write_text(ALPHA, encoding="utf-8")
    (root / "b.md").write_bytes("# Bétà\r\n\r\n漢字 #tag ^id\r\n".encode())
    (root / "bad.md").write_bytes(b"caf\xe9")
    (root / "front.md").write_text("---\na: [\n---\n\nText\n", encoding="utf-8")
    (root / "img" / "dot.png").write_bytes(picture("PNG", (8, 6)))
    (root / "img" / "bad.png").write_bytes(b"nothing")
    (root / "data.bin").write_bytes(bytes(range(256)))
    (tmp_path / "outside.md").write_text("outside", encoding="utf-8")
    options = {"--embedding-provider": "none", "--scope": "full"}
    opened = open_app(load_config(config_file=None, environ={}, overrides=options, project_root=root), for_server=True)
    opened.start()
    yield opened
    opened.close()


def run(app: App, *, seed: int, calls: int) -> Counter[str]:
    root = app.workspace.root
    paths = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and ".local" not in str(path)]
    hostile = HostileCalls(TOOLS, sorted(paths), seed=seed)
    runner = CallRunner()
    door = Door(app, TOOLS, scope=Scope.FULL, result_limit=7 << 20, calls=runner)
    codes: Counter[str] = Counter()

    async def call_all() -> None:
        for (tool, arguments), _ in zip(hostile, range(calls), strict=False):
            began = time.monotonic()
            result = await door.call(tool.name, arguments)
            told = f"{tool.name} {ascii(arguments)[:1000]}"
            assert time.monotonic() - began < LONGEST_S, told
            codes[check(result, tool.output, told)] += 1
            hostile.learn(result.get("structuredContent"))

    try:
        asyncio.run(call_all())
    finally:
        runner.close()
    outside = sorted(path.name for path in root.parent.iterdir())
    assert outside == ["outside.md", "root"]
    assert (root.parent / "outside.md").read_text(encoding="utf-8") == "outside"
    return codes


def check(result: dict[str, Any], schema: dict[str, Any] | None, told: str) -> str:
    """The code of an answer; it is a documented one, or the result fits its schema."""
    text = json.dumps(result)
    assert "Traceback" not in text, told
    if result.get("isError"):
        code: str = json.loads(result["content"][0]["text"])["code"]
        assert code in DOCUMENTED, (told, text)
        return code
    if schema is not None:
        jsonschema.validate(result["structuredContent"], schema)
    return "ok"


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_calls__a_few(app: App, seed: int) -> None:
    """Some hundred calls, in every run of the tests."""
    codes = run(app, seed=seed, calls=400)
    assert codes["ok"] > 20
    assert codes["INVALID_ARGUMENT"] > 20


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_hostile_calls__many(app: App, seed: int) -> None:
    """A hundred thousand calls, on request."""
    run(app, seed=seed, calls=10_000)
