"""Seams: what a tool promises its clients is what the service behind it takes and gives."""

import dataclasses
import importlib
import inspect
import json
import typing
from typing import Any

import pytest

from local_vector_search_mcp.server.arguments import camel_case, snake_case
from local_vector_search_mcp.server.tools.catalogue import all_tools
from local_vector_search_mcp.server.tools.index import Reindexing
from local_vector_search_mcp.server.toolspec import ToolSpec

TOOLS = {tool.name: tool for tool in all_tools(default_mode="auto", max_results=10)}
METHODS = {
    "kb_status": "status.StatusService.status",
    "kb_search": "searching.SearchingService.search",
    "kb_context": "context.ContextService.context",
    "kb_read": "reading.ReadingService.read",
    "kb_outline": "reading.ReadingService.outline",
    "kb_list_files": "listing.ListingService.list_files",
    "kb_links": "links.LinksService.links",
    "kb_metadata": "metadata.MetadataService.metadata",
    "kb_history": "undo.UndoService.history",
    "kb_list_images": "images.ImageService.list_images",
    "kb_load_image": "images.ImageService.load",
    "kb_download_file": "downloads.DownloadService.download",
    "kb_patch": "patching.PatchingService.patch",
    "kb_edit_frontmatter": "frontmatter.FrontmatterService.edit",
    "kb_create": "documents.DocumentService.create",
    "kb_move": "documents.DocumentService.move",
    "kb_delete": "documents.DocumentService.delete",
    "kb_replace_text": "replacing.ReplacingService.replace",
    "kb_undo": "undo.UndoService.undo",
    "kb_save_image": "images.ImageService.save",
    "kb_move_image": "images.ImageService.move",
    "kb_delete_image": "images.ImageService.delete",
    "kb_create_pdf_book": "books.BookService.create",
}
# What a tool gives its service beside the client's arguments.
OURS = {"result_limit", "wait_s", "report_progress", "cancelled"}
OF_SLICES = {"error", "pointer"}
NOT_OF_EVERY_MUTATION = {"path", "sourceHash", "previousSourceHash"}
# Defaults that a service takes from the configuration.
CONFIGURED = {"mode", "topK"}


def method_of(tool: str) -> Any:
    module, owner, method = METHODS[tool].split(".")
    found = importlib.import_module(f"local_vector_search_mcp.services.{module}")
    return getattr(getattr(found, owner), method)


def parameters_of(tool: str) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(method_of(tool)).parameters)
    parameters.pop("self")
    return {name: parameter for name, parameter in parameters.items() if name not in OURS}


def test_seams__every_tool_is_looked_at() -> None:
    """The two tools that are not in the table go through their own tests."""
    assert set(TOOLS) - set(METHODS) == {"kb_reindex", "kb_edit_table"}


@pytest.mark.parametrize("tool", METHODS)
def test_seams__arguments(tool: str) -> None:
    """A service takes exactly the arguments that its tool advertises, by keyword."""
    taken = parameters_of(tool)
    assert {snake_case(name) for name in TOOLS[tool].parameters["properties"]} == set(taken)
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in taken.values())


@pytest.mark.parametrize("tool", METHODS)
def test_seams__required_and_defaults(tool: str) -> None:
    """What may be left out may be left out of the service too, which then does what the schema says."""
    taken = parameters_of(tool)
    required = set(TOOLS[tool].parameters.get("required", ()))
    for name, schema in TOOLS[tool].parameters["properties"].items():
        default = taken[snake_case(name)].default
        if name in required:
            continue
        assert default is not inspect.Parameter.empty, name
        if "default" in schema and name not in CONFIGURED and default is not None:
            assert json.loads(json.dumps(default)) == schema["default"], name


@pytest.mark.parametrize("tool", [name for name in METHODS if TOOLS[name].output is not None])
def test_seams__results(tool: str) -> None:
    """A result has exactly the fields that the output schema declares."""
    fields = {camel_case(field.name) for kind in result_types(tool) for field in dataclasses.fields(kind)}
    output = TOOLS[tool].output
    assert output is not None
    declared = set(output["properties"])
    assert declared <= fields
    # A change of several files, or of none that is Markdown, has no single path and hash; those are left out there.
    assert fields - declared <= NOT_OF_EVERY_MUTATION | (OF_SLICES if tool == "kb_read" else set())


def test_seams__reindex() -> None:
    """The result that is put together here fits its schema too."""
    spec: ToolSpec = TOOLS["kb_reindex"]
    assert spec.output is not None
    assert {camel_case(field.name) for field in dataclasses.fields(Reindexing)} == set(spec.output["properties"])


def result_types(tool: str) -> tuple[Any, ...]:
    given = typing.get_type_hints(method_of(tool))["return"]
    return typing.get_args(given) or (given,)
