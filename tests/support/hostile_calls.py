"""Generated calls of every tool: mostly near the truth, often wrong, sometimes absurd; learns from the answers."""

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local_vector_search_mcp.server.json_types import is_array, is_object
from local_vector_search_mcp.server.schemas import Schema
from local_vector_search_mcp.server.toolspec import ToolSpec

_ABSURD: tuple[Any, ...] = (None, True, 1, -1, 1.5, "x", [], {}, [[]], {"a": {"b": [1]}}, 10**30, 1e308)
_TEXTS = (
    "",
    "..",
    "../x",
    "/etc/passwd",
    "a\0b",
    "\ud800",
    "a//b",
    ".git/config",
    "C:\\x",
    "x" * 3000,
    "*",
    "[",
    "{a",
    "**/*.md",
    "💥",
    "e\u0301",
    "con.md",
    "a.md/",
    "%2e%2e/x",
    "\n",
    "null",
    "true",
    "{}",
    "[]",
    '"',
    "-foo",
    '"a b',
    "foo -bar",
    "(a+)+$",
    "\\1",
    "document",
    "p1",
    "1.1",
    "1~0000000000000000",
    "frontmatter",
    "t1~0~0",
    "nonsense::p1",
)
_MARKDOWN = ("para", "# H", "- a\n- b", "```\nx", "| a |\n|-|\n| 1 |", "> q", "---", "<!-- c", "[a]: b", "$$\nx\n$$")
_ALPHABET = "ab #*-_|`[]()!~\n\t\\$<>&;:\"'012é漢"
_KEPT = 300
# Long or destructive tools come less often, so that there is something left to call the others on.
_RARELY = {"kb_create_pdf_book": 0.01, "kb_reindex": 0.1, "kb_delete": 0.2, "kb_delete_image": 0.2}


class HostileCalls:
    """An endless row of calls; ``learn`` takes pointers, hashes, cursors and ids out of answers for later ones."""

    def __init__(self, tools: Sequence[ToolSpec], paths: Sequence[str], *, seed: int) -> None:
        self._tools = tools
        self._paths = list(paths)
        self._random = random.Random(seed)
        self._known: dict[str, deque[str]] = {}

    def __iter__(self) -> Iterator[tuple[ToolSpec, dict[str, Any]]]:
        while True:
            tool = self._random.choice(self._tools)
            if self._random.random() <= _RARELY.get(tool.name, 1.0):
                yield tool, self._object(tool.parameters)

    def learn(self, answer: object) -> None:
        """Remember what an answer names."""
        if is_array(answer):
            for item in answer:
                self.learn(item)
        elif is_object(answer):
            for name, item in answer.items():
                kind = _kind_of(name)
                if kind is not None and isinstance(item, str):
                    self._known.setdefault(kind, deque(maxlen=_KEPT)).append(item)
                else:
                    self.learn(item)

    def _object(self, schema: Schema) -> dict[str, Any]:
        required = schema.get("required", ())
        properties: Mapping[str, Schema] = schema["properties"]
        return {
            name: self._value(inner, name)
            for name, inner in properties.items()
            if name in required or self._random.random() < 0.25
        }

    def _value(self, schema: Schema, name: str) -> Any:
        if self._random.random() < 0.04:
            return self._random.choice(_ABSURD)
        if "anyOf" in schema:
            return self._value(self._random.choice(schema["anyOf"]), name)
        match schema["type"]:
            case "string":
                return self._text(schema, name)
            case "integer":
                return self._integer(schema)
            case "boolean":
                return self._random.random() < 0.5
            case "array":
                return [self._value(schema["items"], name) for _ in range(self._random.choice((0, 1, 1, 1, 2, 3)))]
            case "object" if "properties" in schema:
                return self._object(schema)
            case "object":
                return {self._any_text(): self._random.choice(_ABSURD) for _ in range(self._random.randrange(3))}
            case _:
                return self._random.choice((0, 1, -1.5, 1e10))

    def _integer(self, schema: Schema) -> int:
        low, high = schema.get("minimum", 0), schema.get("maximum", 1000)
        if self._random.random() < 0.1:
            return self._random.choice((low - 1, high + 1, 10**18))
        return self._random.randint(low, min(high, low + 30))

    def _text(self, schema: Schema, name: str) -> str:
        if "enum" in schema and self._random.random() < 0.93:
            options: list[str] = schema["enum"]
            return self._random.choice(options)
        if self._random.random() < 0.8:
            known = self._known.get(_kind_of(name) or "")
            if known:
                return self._random.choice(known)
            if "ath" in name:
                number = self._random.randrange(30)
                new = (f"new/{number}.md", f"img/n{number}.png", f"b{number}.pdf")
                return self._random.choice(self._paths if self._random.random() < 0.8 else new)
            if name in ("markdown", "replacement", "replace"):
                return self._random.choice(_MARKDOWN)
        return self._any_text()

    def _any_text(self) -> str:
        roll = self._random.random()
        if roll < 0.3:
            return self._random.choice(_TEXTS)
        if roll < 0.6:
            return self._random.choice(self._paths)
        return "".join(self._random.choice(_ALPHABET) for _ in range(self._random.randrange(40)))


def _kind_of(name: str) -> str | None:
    """Which names of arguments and of answers mean the same thing."""
    if name in ("pointer", "target", "nextPointer", "currentPointer"):
        return "pointer"
    if name.endswith(("ourceHash", "ha256")):
        return "hash"
    return {"changeId": "change", "cursor": "cursor", "nextCursor": "cursor", "planHash": "plan"}.get(name)
