"""The catalogue: every tool with honest, compact, bounded schemas, within the size that clients can afford."""

import json
import re
from collections.abc import Iterator

import jsonschema
import pytest

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.schemas import Schema
from local_vector_search_mcp.server.tools.catalogue import all_tools
from local_vector_search_mcp.server.toolspec import ToolSpec

TOOLS = all_tools(default_mode="auto", max_results=10)
ORDER = [
    "kb_status",
    "kb_reindex",
    "kb_search",
    "kb_context",
    "kb_read",
    "kb_outline",
    "kb_list_files",
    "kb_links",
    "kb_metadata",
    "kb_history",
    "kb_list_images",
    "kb_load_image",
    "kb_download_file",
    "kb_patch",
    "kb_edit_table",
    "kb_edit_frontmatter",
    "kb_create",
    "kb_move",
    "kb_delete",
    "kb_replace_text",
    "kb_undo",
    "kb_save_image",
    "kb_move_image",
    "kb_delete_image",
    "kb_create_pdf_book",
]
READ = set(ORDER[:13])
FULL = {"kb_delete", "kb_delete_image"}
DRY = [
    "kb_patch",
    "kb_edit_table",
    "kb_edit_frontmatter",
    "kb_create",
    "kb_move",
    "kb_delete",
    "kb_replace_text",
    "kb_undo",
    "kb_move_image",
    "kb_delete_image",
]
BLOCKS_ONLY = {"kb_context", "kb_load_image", "kb_download_file"}


def by_name(tool: ToolSpec) -> str:
    return tool.name


def nodes(schema: Schema, where: str = "") -> Iterator[tuple[str, Schema]]:
    yield where, schema
    properties: dict[str, Schema] = schema.get("properties", {})
    for name, inner in properties.items():
        yield from nodes(inner, f"{where}.{name}")
    options: list[Schema] = schema.get("anyOf", [])
    for option in options:
        yield from nodes(option, f"{where}|")
    if "items" in schema:
        yield from nodes(schema["items"], f"{where}[]")


def listed(tools: list[ToolSpec]) -> int:
    """Tokens of a tools/list answer, as bytes / 4 of its compact JSON."""
    answer = [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.parameters,
            **({"outputSchema": tool.output} if tool.output is not None else {}),
            "annotations": {
                "readOnlyHint": tool.read_only,
                "destructiveHint": tool.destructive,
                "idempotentHint": tool.idempotent,
                "openWorldHint": tool.open_world,
            },
            "_meta": {"requiredScope": tool.scope.value, **tool.meta},
        }
        for tool in tools
    ]
    return len(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()) // 4


def test_catalogue__order() -> None:
    """The tools stand in the order of the contract: what reads, then what writes."""
    assert [tool.name for tool in TOOLS] == ORDER


def test_catalogue__scopes() -> None:
    """Reading needs read, deleting whole files needs full, the rest edit."""
    for tool in TOOLS:
        expected = Scope.READ if tool.name in READ else Scope.FULL if tool.name in FULL else Scope.EDIT
        assert tool.scope is expected, tool.name


def test_catalogue__size() -> None:
    """The whole list stays affordable, with room for what a protocol era adds."""
    assert listed(list(TOOLS)) < 9_400
    assert listed([tool for tool in TOOLS if tool.scope is Scope.READ]) < 4_440


@pytest.mark.parametrize("tool", TOOLS, ids=by_name)
def test_catalogue__descriptions(tool: ToolSpec) -> None:
    """A title, a description of at most three sentences, and a line on every argument."""
    assert tool.title
    sentences = re.findall(r"[.!?](?:\s|$)", tool.description)
    assert 1 <= len(sentences) <= 3
    assert tool.description.endswith(".")
    for name, schema in tool.parameters["properties"].items():
        assert schema.get("description"), f"{tool.name}.{name}"


@pytest.mark.parametrize("tool", TOOLS, ids=by_name)
def test_catalogue__schemas_are_compact(tool: ToolSpec) -> None:
    """No reference, title, null, list of types or empty schema at any depth; no description in outputs."""
    for schema in (tool.parameters, *([tool.output] if tool.output else [])):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert "anyOf" not in schema
        for where, node in nodes(schema):
            assert node, where
            assert not {"$ref", "$defs", "title", "oneOf", "allOf"} & set(node), where
            assert isinstance(node.get("type", ""), str), where
            assert node.get("type") != "null", where
            assert "default" not in node or node["default"] is not None, where
            assert ("type" in node) != ("anyOf" in node), where
            if node.get("type") == "array":
                assert "items" in node, where
    for where, node in nodes(tool.output or {"type": "object"}):
        assert "description" not in node, where


@pytest.mark.parametrize("tool", TOOLS, ids=by_name)
def test_catalogue__inputs_are_closed_and_defaults_fit(tool: ToolSpec) -> None:
    """Unknown arguments are refused by the schema too, and a default is a value that the schema takes."""
    assert tool.parameters["additionalProperties"] is False
    for where, node in nodes(tool.parameters):
        if "default" in node:
            jsonschema.validate(node["default"], node)
            assert where.rpartition(".")[2] not in tool.parameters.get("required", ())


@pytest.mark.parametrize("tool", TOOLS, ids=by_name)
def test_catalogue__bounds(tool: ToolSpec) -> None:
    """Every whole number among the arguments has a lower bound."""
    for where, node in nodes(tool.parameters):
        if node.get("type") == "integer":
            assert "minimum" in node, where


@pytest.mark.parametrize("tool", TOOLS, ids=by_name)
def test_catalogue__hints_are_honest(tool: ToolSpec) -> None:
    """Only readers say that they read only; only saving an image reaches out."""
    assert tool.read_only is (tool.name in READ - {"kb_reindex"})
    assert not (tool.read_only and tool.destructive)
    assert tool.open_world is (tool.name == "kb_save_image")


def test_catalogue__outputs_where_there_is_structure() -> None:
    """Tools whose results are content blocks declare no output schema; all others do."""
    assert {tool.name for tool in TOOLS if tool.output is None} == BLOCKS_ONLY


@pytest.mark.parametrize("name", DRY)
def test_catalogue__dry_runs(name: str) -> None:
    """Every mutation that can be tried first takes dryRun and planHash, and can answer with the plan."""
    (tool,) = [tool for tool in TOOLS if tool.name == name]
    properties = tool.parameters["properties"]
    assert properties["dryRun"]["default"] is (name == "kb_replace_text")
    assert "planHash" in properties
    assert tool.output is not None
    assert {"applied", "diffs", "planHash", "changeId"} <= set(tool.output["properties"])


def test_catalogue__defaults_in_force_are_shown() -> None:
    """The configured mode and number of results stand in the schemas."""
    (search,) = [t for t in all_tools(default_mode="lexical", max_results=7) if t.name == "kb_search"]
    assert search.parameters["properties"]["mode"]["default"] == "lexical"
    assert search.parameters["properties"]["topK"]["default"] == 7


def test_catalogue__file_parameter() -> None:
    """The image comes as the client's file parameter."""
    (save,) = [tool for tool in TOOLS if tool.name == "kb_save_image"]
    assert save.meta == {"openai/fileParams": ["file"]}
