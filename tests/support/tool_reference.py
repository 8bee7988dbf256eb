"""The reference part of ``docs/tools.md``, written from the tools: ``python -m tests.support.tool_reference``."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.support.source_tree import ROOT

from local_vector_search_mcp.server.tools.catalogue import all_tools
from local_vector_search_mcp.server.toolspec import ToolSpec

DOCUMENT: Final = ROOT / "docs" / "tools.md"
MARK: Final = "<!-- What follows is written by python -m tests.support.tool_reference -->\n"


def main() -> None:
    """Rewrite the part of the document below the mark."""
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(text[: text.index(MARK)] + MARK + reference(), encoding="utf-8")


def reference() -> str:
    """Every tool with its scope, its arguments and the fields of its result."""
    tools = all_tools(default_mode="auto", max_results=10)
    return "\n## Reference\n" + "".join("\n" + "\n".join(_lines(tool)) for tool in tools)


def _lines(tool: ToolSpec) -> Iterator[str]:
    yield f"### `{tool.name}`\n"
    yield f"{tool.description}\n"
    hints = [name for name, on in (("read-only", tool.read_only), ("open world", tool.open_world)) if on]
    yield f"Scope `{tool.scope.value}`{''.join(f', {hint}' for hint in hints)}.\n"
    properties: Mapping[str, Any] = tool.parameters["properties"]
    if properties:
        yield "| argument | type | default | what it is |"
        yield "| --- | --- | --- | --- |"
        for name, schema in properties.items():
            yield f"| `{name}` | {_type(schema)} | {_default(tool, name, schema)} | {_meaning(schema)} |"
    else:
        yield "No arguments: `{}`."
    if tool.output is None:
        yield "\nAnswers with content blocks alone.\n"
    else:
        fields = ", ".join(f"`{name}`" for name in tool.output["properties"])
        yield f"\nAnswers with {fields}.\n"


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema["type"])


def _default(tool: ToolSpec, name: str, schema: Mapping[str, Any]) -> str:
    if "default" in schema:
        default = schema["default"]
        return f"`{default if isinstance(default, str) else json.dumps(default)}`"
    return "needed" if name in tool.parameters.get("required", ()) else ""


def _meaning(schema: Mapping[str, Any]) -> str:
    parts = [schema.get("description", "").replace("|", "\\|")]
    for part in (schema, schema.get("items", {})):
        if "enum" in part:
            parts.append(", ".join(f"`{value}`" for value in part["enum"]))
    parts.append(_range(schema.get("minimum"), schema.get("maximum"), ""))
    parts.append(_range(schema.get("minItems"), schema.get("maxItems"), " items"))
    return "; ".join(part for part in parts if part)


def _range(lowest: int | None, highest: int | None, what: str) -> str:
    if lowest is None:
        return "" if highest is None else f"at most {highest:,}{what}"
    return f"{lowest:,} or more{what}" if highest is None else f"{lowest:,} to {highest:,}{what}"


if __name__ == "__main__":
    main()
