"""Calls for a real server process, drawn from the schemas that it lists and from the nasty pools.

Half of them are sensible ones about something that an answer has shown, one part of them spoilt now and then.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support import nasty_pools as pools
from tests.support.hostile_tree import PLAIN

from local_vector_search_mcp.server.json_types import is_array, is_object

Schema = Mapping[str, Any]
_KEPT = 400

_LEARNT = {
    "pointer": "pointer",
    "fullPointer": "pointer",
    "currentPointer": "pointer",
    "nextPointer": "pointer",
    "sourceHash": "expectedSourceHash",
    "sha256": "expectedSha256",
    "nextCursor": "cursor",
    "changeId": "changeId",
    "planHash": "planHash",
}
_TABLE = re.compile(r"(?:[0-9.]+\.)?t[0-9]+~")
_SAME_AS = {"pointers": "pointer", "target": "pointer"}
_PATH_NAMES = {"path", "documentPath", "relativeTo", "explain"}
_USUAL = {"path", "pointer", "operations", "set", "updates", "find"}
_WEIGHTS = {
    "kb_create_pdf_book": 0.02,
    "kb_reindex": 0.05,
    "kb_patch": 3.0,
    "kb_edit_table": 2.0,
    "kb_read": 2.0,
    "kb_delete": 0.3,
    "kb_move": 0.7,
}
_SENSIBLE = {
    "kb_read",
    "kb_patch",
    "kb_edit_table",
    "kb_edit_frontmatter",
    "kb_create",
    "kb_move",
    "kb_replace_text",
    "kb_undo",
    "kb_search",
    "kb_context",
}
_POOLS: dict[str, Sequence[str]] = {
    **dict.fromkeys(("path", "targetPath", "sourcePath", "documentPath", "relativeTo", "explain"), pools.PATHS),
    **dict.fromkeys(("pathPrefix", "outputPath", "paths", "fileName"), pools.PATHS),
    **dict.fromkeys(("pointer", "pointers", "target"), pools.POINTERS),
    **dict.fromkeys(("includeGlob", "excludeGlob"), pools.GLOBS),
    **dict.fromkeys(("expectedSourceHash", "expectedSha256", "planHash", "changeId"), pools.HASHES),
    **dict.fromkeys(("key", "unset", "column", "name", "tags"), pools.NAMES),
    "markdown": pools.MARKDOWN,
    "cursor": pools.CURSORS,
    "modifiedAfter": pools.DATES,
    "download_url": pools.URLS,
    "replacement": pools.REPLACEMENTS,
    "replace": pools.REPLACEMENTS,
    "find": ("a", "text", "x", "same", "\n", "", "para", "|", "- ", "\0", "word " * 10),
    "language": ("en", "de-CH", "xx", "", "../x", "\0", "a" * 5_000),
    "collections": ("project", "other", "", "\0"),
    "collection": ("project", "project", "other", ""),
}


class NastyCalls:
    """Makes calls, always the same ones for the same seed and the same answers."""

    def __init__(self, tools: Sequence[Mapping[str, Any]], markdown: Sequence[str], seed: int) -> None:
        self._rng = random.Random(seed)
        self._tools = {str(tool["name"]): tool["inputSchema"] for tool in tools}
        self._weights = [_WEIGHTS.get(name, 1.0) for name in self._tools]
        self._markdown = markdown
        self._known: dict[str, list[str]] = {}
        self._pointers: dict[str, list[str]] = {}

    def learn(self, answer: Any) -> None:
        """Look through an answer for pointers, hashes, cursors and ids that are real."""
        if is_object(answer):
            path, elements = answer.get("path"), answer.get("elements")
            if isinstance(path, str) and is_array(elements):
                self._pointers[path] = [each["pointer"] for each in elements] or ["document"]
            for key, value in answer.items():
                if isinstance(value, str) and (name := _LEARNT.get(key)):
                    known = self._known.setdefault(name, [])
                    known.append(value)
                    del known[:-_KEPT]
                else:
                    self.learn(value)
        elif is_array(answer):
            for each in answer:
                self.learn(each)

    def call(self) -> tuple[str, Any]:
        """A tool's name and arguments; rarely a name that no tool has, or arguments that are no object."""
        rng = self._rng
        name = rng.choices(list(self._tools), self._weights)[0]
        if rng.random() < 0.005:
            return rng.choice(["", "kb_", "KB_READ", "__proto__", "x" * 9_000, "kb_read\0", "中"]), {}
        if rng.random() < 0.005:
            return name, rng.choice([[], "x", 5, None, True, "{}"])
        if self._pointers and name in _SENSIBLE and rng.random() < 0.5:
            arguments = self._sensible(name)
            if rng.random() < 0.3:
                spoilt = rng.choice(list(arguments))
                arguments[spoilt] = self._value(spoilt, self._tools[name]["properties"][spoilt])
            return name, arguments
        arguments = self._object(self._tools[name])
        if name == "kb_replace_text" and arguments.get("regex") is True:
            arguments["query"] = rng.choice(pools.REGEXES)
        if rng.random() < 0.04:
            arguments[rng.choice(pools.ALIASES)] = self._anything()
        return name, {"request": arguments} if rng.random() < 0.03 else arguments

    # Sensible calls.

    def _sensible(self, name: str) -> dict[str, Any]:
        """A call that has a good chance of being carried out."""
        rng = self._rng
        tables = [(path, each) for path, known in self._pointers.items() for each in known if _TABLE.match(each)]
        path = rng.choice(list(self._pointers))
        pointer = rng.choice(self._pointers[path])
        match name:
            case "kb_read":
                size = {"maxElements": rng.choice([1, 3, 200]), "maxBytes": rng.choice([200, 5_000, 200_000])}
                return {"path": path, "pointer": pointer, "include": ["text", "markdown"], **size, "before": 2}
            case "kb_patch":
                return {"path": path, "operations": [self._operation(path) for _ in range(rng.choice([1, 1, 1, 2, 3]))]}
            case "kb_edit_table":
                path, pointer = rng.choice(tables or [(path, pointer)])
                return {"path": path, "pointer": pointer, **self._table_action()}
            case "kb_edit_frontmatter":
                keys = {rng.choice(pools.NAMES): self._front_value() for _ in range(rng.randrange(1, 3))}
                return {"path": path, "set": keys}
            case "kb_create":
                markdown = "\n\n".join(rng.choices(self._markdown, k=3))
                return {"path": f"new/n{rng.randrange(10**6)}.md", "markdown": markdown}
            case "kb_move":
                folder = rng.choice(["", "new/", "sub/", "cjk/"])
                return {"path": path, "targetPath": f"{folder}m{rng.randrange(10**6)}.md"}
            case "kb_replace_text":
                regex = rng.random() < 0.6
                query = rng.choice(pools.REGEXES if regex else ("text", "x", "a", "same"))
                effect = {"replacement": rng.choice(pools.REPLACEMENTS), "dryRun": rng.random() < 0.8}
                return {"query": query, "regex": regex, **effect, "maxChanges": 10_000}
            case "kb_undo":
                return {"changeId": rng.choice(self._known.get("changeId", ["x"]))}
            case _:
                filters = {"where": rng.choice(pools.WHERE), "includeGlob": rng.choice(pools.GLOBS)}
                kept = rng.choice(list(filters))
                return {"query": rng.choice(pools.QUERIES), kept: filters[kept]}

    def _operation(self, path: str) -> dict[str, Any]:
        rng = self._rng
        text = rng.choice(self._markdown) if rng.random() < 0.5 else rng.choice(pools.MARKDOWN)
        kinds = self._tools["kb_patch"]["properties"]["operations"]["items"]["properties"]["kind"]["enum"]
        operation: dict[str, Any] = {"kind": rng.choice(kinds), "pointer": rng.choice(self._pointers[path])}
        match operation["kind"]:
            case "delete" | "delete_section":
                return operation
            case "replace_text":
                return {**operation, "find": rng.choice("ae| -"), "replace": text, "count": rng.choice([1, 2])}
            case "move_before" | "move_after":
                return {**operation, "target": rng.choice(self._pointers[path])}
            case _:
                return {**operation, "markdown": text}

    def _table_action(self) -> dict[str, Any]:
        value = self._rng.choice([*pools.FRONT_VALUES[:24], *pools.MARKDOWN])
        where = {"column": "k", "equals": "a"}
        return self._rng.choice(
            [
                {"action": "update_cells", "updates": [{"rowIndex": 0, "columnIndex": 0, "value": value}]},
                {"action": "update_cells", "updates": [{"where": where, "column": "v", "value": value}]},
                {"action": "insert_row", "values": [value, value]},
                {"action": "insert_row", "values": {"k": value}},
                {"action": "delete_row", "rowIndex": 0},
                {"action": "insert_column", "name": value, "default": value},
                {"action": "delete_column", "columnIndex": 1},
                {"action": "rename_column", "columnIndex": 0, "name": value},
                {"action": "set_alignment", "columnIndex": 0, "alignment": "left"},
                {"action": "sort_rows", "columnIndex": 0, "numeric": True},
            ]
        )

    # Values by schema.

    def _object(self, schema: Schema) -> dict[str, Any]:
        rng = self._rng
        required = set(schema.get("required", ()))
        properties: Mapping[str, Schema] = schema.get("properties", {})
        chance = rng.choice([0.05, 0.2, 0.6])
        wanted = [
            name
            for name in properties
            if (name in required and rng.random() > 0.02) or rng.random() < (0.9 if name in _USUAL else chance)
        ]
        return {name: self._value(name, properties[name]) for name in wanted}

    def _value(self, name: str, schema: Schema) -> Any:
        luck = self._rng.random()
        if luck < 0.03:
            return self._anything()
        sound = self._sound(name, schema)
        return json.dumps(sound) if luck < 0.05 else sound

    def _sound(self, name: str, schema: Schema) -> Any:
        rng = self._rng
        if "anyOf" in schema:
            schema = rng.choice(schema["anyOf"])
        if "enum" in schema:
            return rng.choice(schema["enum"])
        match schema.get("type"):
            case "boolean":
                return rng.random() < 0.5
            case "integer":
                low, high = schema.get("minimum", 0), schema.get("maximum", 100)
                inside = [low, high, rng.randint(low, high), rng.randint(low, min(high, low + 5))]
                return rng.choice([low - 1, high + 1]) if rng.random() < 0.06 else rng.choice(inside)
            case "number":
                return rng.choice([0, -1.5, 3, 1e300])
            case "array":
                count = rng.choice([1, 1, 1, 2, 3, rng.randrange(6), rng.choice([0, 20, 21, 101])])
                return [self._value(name, schema.get("items", {"type": "string"})) for _ in range(count)]
            case "object" if "properties" in schema:
                return self._object(schema)
            case "object" if name == "where":
                return rng.choice(pools.WHERE)
            case "object":
                return {rng.choice(pools.NAMES): self._front_value() for _ in range(rng.randrange(4))}
            case _:
                return self._string(name)

    def _string(self, name: str) -> str:
        rng = self._rng
        known = self._known.get(_SAME_AS.get(name, name))
        if known and rng.random() < 0.7:
            value = rng.choice(known)
            return self._tampered(value) if rng.random() < 0.15 else value
        if name in _PATH_NAMES and rng.random() < 0.5:
            return rng.choice(PLAIN)
        if name == "markdown" and rng.random() < 0.6:
            return rng.choice(self._markdown)
        return rng.choice(_POOLS.get(name, pools.QUERIES))

    def _tampered(self, value: str) -> str:
        rng = self._rng
        place = rng.randrange(len(value) + 1)
        return value[:place] + rng.choice(["", "0", "~", "A", "\0", "é", value]) + value[place + rng.randrange(2) :]

    def _front_value(self) -> Any:
        return self._anything() if self._rng.random() < 0.2 else self._rng.choice(pools.FRONT_VALUES)

    def _anything(self) -> Any:
        rng = self._rng
        if rng.random() >= 0.1:
            return rng.choice(pools.ANYTHING)
        nested: Any = 1
        for _ in range(rng.choice([50, 150, 190])):
            nested = [nested] if rng.random() < 0.5 else {"a": nested}
        return nested
