"""Arguments: what clients send becomes what services take, or is refused by name without its value."""

import json
from typing import Any

import pytest

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.server.arguments import camel_case, read_arguments, snake_case
from local_vector_search_mcp.server.tools.catalogue import all_tools

TOOLS = {tool.name: tool for tool in all_tools(default_mode="auto", max_results=10)}
OPERATION = {"kind": "delete", "pointer": "p1"}


def check(tool: str, given: dict[str, Any], taken: dict[str, Any]) -> None:
    assert read_arguments(TOOLS[tool], given) == taken


def refuse(tool: str, given: dict[str, Any], *words: str) -> str:
    with pytest.raises(InvalidArgument) as caught:
        read_arguments(TOOLS[tool], given)
    for word in words:
        assert word in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("tool", "given", "taken"),
    [
        ("kb_status", {}, {}),
        ("kb_status", {"request": {}}, {}),
        ("kb_search", {"query": "a"}, {"query": "a"}),
        ("kb_search", {"request": {"query": "a", "topK": 3}}, {"query": "a", "top_k": 3}),
        ("kb_search", {"request": '{"query": "a", "top_k": "3"}'}, {"query": "a", "top_k": 3}),
        ("kb_search", {"query": "a", "limit": 5}, {"query": "a", "top_k": 5}),
        ("kb_search", {"query": "a", "path_prefix": "notes"}, {"query": "a", "path_prefix": "notes"}),
        ("kb_search", {"query": "a", "topK": None, "tags": None}, {"query": "a"}),
        ("kb_search", {"query": "a", "topK": 3.0}, {"query": "a", "top_k": 3}),
        ("kb_search", {"query": "a", "topK": " 7 "}, {"query": "a", "top_k": 7}),
        ("kb_search", {"query": "a", "tags": '["x", "y"]'}, {"query": "a", "tags": ["x", "y"]}),
        ("kb_search", {"query": "a", "where": '{"status": "draft"}'}, {"query": "a", "where": {"status": "draft"}}),
        ("kb_search", {"query": "a", "where": {"a": None}}, {"query": "a", "where": {"a": None}}),
        ("kb_search", {"query": "a", "includeGlob": "*.md"}, {"query": "a", "include_glob": "*.md"}),
        ("kb_search", {"query": "a", "includeGlobs": ["a", "b"]}, {"query": "a", "include_glob": ["a", "b"]}),
        ("kb_search", {"query": "a", "includeGlob": '["a", "b"]'}, {"query": "a", "include_glob": ["a", "b"]}),
        ("kb_search", {"query": "a", "includeGlob": "[ab].md"}, {"query": "a", "include_glob": "[ab].md"}),
        ("kb_search", {"query": '{"not": "parsed"}'}, {"query": '{"not": "parsed"}'}),
        ("kb_read", {"file": "a.md", "section": "true"}, {"path": "a.md", "section": True}),
        ("kb_read", {"filePath": "a.md"}, {"path": "a.md"}),
        ("kb_read", {"file_path": "a.md"}, {"path": "a.md"}),
        ("kb_create", {"path": "a.md", "content": "x"}, {"path": "a.md", "markdown": "x"}),
        ("kb_create", {"path": "a.md", "text": "x"}, {"path": "a.md", "markdown": "x"}),
        ("kb_create", {"path": "a.md", "markdown": ""}, {"path": "a.md", "markdown": ""}),
        ("kb_move", {"sourcePath": "a.md", "targetPath": "b.md"}, {"path": "a.md", "target_path": "b.md"}),
        ("kb_move_image", {"path": "a.png", "targetPath": "b.png"}, {"source_path": "a.png", "target_path": "b.png"}),
        ("kb_patch", {"path": "a.md", "operations": [OPERATION]}, {"path": "a.md", "operations": [OPERATION]}),
        (
            "kb_patch",
            {"path": "a.md", "operations": json.dumps([OPERATION])},
            {"path": "a.md", "operations": [OPERATION]},
        ),
        (
            "kb_patch",
            {"path": "a.md", "operations": [{"kind": "replace", "pointer": "p1", "content": "x", "target": None}]},
            {"path": "a.md", "operations": [{"kind": "replace_element", "pointer": "p1", "markdown": "x"}]},
        ),
        (
            "kb_patch",
            {
                "path": "a.md",
                "operations": ['{"kind": "append_to_section", "pointer": "1", "after_subsections": true}'],
            },
            {
                "path": "a.md",
                "operations": [{"kind": "append_to_section", "pointer": "1", "afterSubsections": True}],
            },
        ),
        (
            "kb_edit_frontmatter",
            {"path": "a.md", "set": {"snake_key": {"inner_key": None}}},
            {"path": "a.md", "set": {"snake_key": {"inner_key": None}}},
        ),
        (
            "kb_edit_table",
            {"pointer": "t1", "action": "insert_row", "values": '{"A": 1, "B": true}'},
            {"pointer": "t1", "action": "insert_row", "values": {"A": 1, "B": True}},
        ),
        (
            "kb_edit_table",
            {"pointer": "t1", "action": "delete_row", "where": {"column": "A", "equals": 5}},
            {"pointer": "t1", "action": "delete_row", "where": {"column": "A", "equals": 5}},
        ),
        (
            "kb_edit_table",
            {"pointer": "t1", "action": "insert_row", "values_by_column": {"A": 1}, "beforeRowIndex": "0"},
            {"pointer": "t1", "action": "insert_row", "values_by_column": {"A": 1}, "before_row_index": 0},
        ),
        (
            "kb_edit_table",
            {"pointer": "t1", "action": "update_cells", "updates": [{"value": 1, "valueFormat": "text"}]},
            {"pointer": "t1", "action": "update_cells", "updates": [{"value": 1, "valueFormat": "literal"}]},
        ),
        (
            "kb_save_image",
            {"file": {"download_url": "https://example.com/a.png", "file_id": "1", "size": 5, "mimeType": "image/png"}},
            {"file": {"download_url": "https://example.com/a.png", "file_id": "1", "mime_type": "image/png"}},
        ),
        (
            "kb_save_image",
            {"file": {"download_url": "https://example.com/a.png", "file_id": "1", "mime_type": None}},
            {"file": {"download_url": "https://example.com/a.png", "file_id": "1"}},
        ),
    ],
)
def test_arguments__taken(tool: str, given: dict[str, Any], taken: dict[str, Any]) -> None:
    """Wrapped, renamed, stringified and null arguments become what the service takes."""
    check(tool, given, taken)


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("kb_status", {"verbose": True}, ("kb_status", "'verbose'", "no arguments")),
        ("kb_search", {}, ("query", "missing")),
        ("kb_search", {"query": None}, ("query", "missing")),
        ("kb_search", {"query": "a", "topk_": 3}, ("'topk_'", "topK")),
        ("kb_search", {"query": "a", "pathprefix": "x"}, ("pathPrefix",)),
        ("kb_search", {"query": "a", "zzzzzzzz": 1}, ("'zzzzzzzz'", "query, mode, topK")),
        ("kb_search", {"query": "a", "zzzzzzzz": None}, ("'zzzzzzzz'",)),
        ("kb_search", {"query": "a", "topK": 5, "limit": 5}, ("'topK'", "'limit'", "same argument")),
        ("kb_search", {"query": "a", "topK": 5, "top_k": 5}, ("'topK'", "'top_k'")),
        ("kb_search", {"query": "a", "topK": 0}, ("topK", "between 1 and 50")),
        ("kb_search", {"query": "a", "topK": 51}, ("topK", "between 1 and 50")),
        ("kb_search", {"query": "a", "topK": True}, ("topK", "whole number")),
        ("kb_search", {"query": "a", "topK": 1.5}, ("topK", "whole number")),
        ("kb_search", {"query": "a", "topK": "many"}, ("topK", "whole number")),
        ("kb_search", {"query": "a", "topK": "true"}, ("topK", "whole number")),
        ("kb_search", {"query": "a", "topK": "9" * 5000}, ("topK",)),
        ("kb_search", {"query": "a", "topK": "NaN"}, ("topK",)),
        ("kb_search", {"query": 5}, ("query", "string")),
        ("kb_search", {"query": "a", "tags": "x"}, ("tags", "array")),
        ("kb_search", {"query": "a", "tags": [1]}, ("tags[0]", "string")),
        ("kb_search", {"query": "a", "mode": "fast"}, ("mode", "auto, lexical, semantic, hybrid")),
        ("kb_search", {"query": "a", "kinds": ["section"]}, ("kinds[0]", "heading")),
        ("kb_search", {"query": "a", "includeGlob": 5}, ("includeGlob", "a string or an array")),
        ("kb_search", {"query": "a", "explain": True}, ("explain", "string")),
        ("kb_search", {"request": "no json"}, ("request", "object")),
        ("kb_search", {"request": [1]}, ("request", "object")),
        ("kb_search", {"request": {"query": "a"}, "topK": 3}, ("'request'",)),
        ("kb_read", {"path": "a.md", "file": "a.md"}, ("'path'", "'file'")),
        ("kb_read", {"path": "a.md", "section": 1}, ("section", "true or false")),
        ("kb_read", {"path": "a.md", "section": "yes"}, ("section", "true or false")),
        ("kb_read", {"path": "a.md", "maxBytes": 199}, ("maxBytes", "between 200 and 200000")),
        ("kb_read", {"path": "a.md", "offset": -1}, ("offset", "at least 0")),
        ("kb_read", {"pointers": []}, ("pointers", "1 to 20")),
        ("kb_read", {"pointers": ["a.md::p1"] * 21}, ("pointers", "1 to 20")),
        ("kb_read", {"path": "a.md", "include": ["html"]}, ("include[0]", "text, markdown")),
        ("kb_read", {"path": "a.md", "include": []}, ("include", "at least 1 item.")),
        ("kb_patch", {"path": "a.md", "operations": []}, ("operations", "1 to 100")),
        ("kb_patch", {"path": "a.md", "operations": OPERATION}, ("operations", "array")),
        ("kb_patch", {"path": "a.md", "operations": [{"kind": "delete"}]}, ("operations[0].pointer", "missing")),
        (
            "kb_patch",
            {"path": "a.md", "operations": [{**OPERATION, "markdwon": "x"}]},
            ("operations[0]", "'markdwon'", "markdown"),
        ),
        (
            "kb_patch",
            {"path": "a.md", "operations": [{**OPERATION, "text": "x", "markdown": "x"}]},
            ("'text'", "'markdown'"),
        ),
        ("kb_patch", {"path": "a.md", "operations": [{**OPERATION, "kind": "remove"}]}, ("operations[0].kind",)),
        ("kb_replace_text", {"query": "", "replacement": "x"}, ("query", "empty")),
        ("kb_save_image", {"file": "https://example.com/a.png"}, ("file", "object", "download_url")),
        ("kb_save_image", {"file": "data:image/png;base64,AAAA"}, ("file", "object", "download_url")),
        ("kb_save_image", {"file": {"file_id": "1"}}, ("file.download_url", "missing")),
        ("kb_edit_table", {"pointer": "t1", "action": "insert_row", "values": 5}, ("values", "an object or an array")),
    ],
)
def test_arguments__refused(tool: str, given: dict[str, Any], words: tuple[str, ...]) -> None:
    """What is unknown, missing, doubled, of another type or out of bounds is named."""
    refuse(tool, given, *words)


@pytest.mark.parametrize(
    "given",
    [
        {"path": "a.md", "maxElements": "SECRET"},
        {"path": "a.md", "include": ["SECRET"]},
        {"path": ["SECRET"]},
        {"path": "a.md", "pointers": "SECRET"},
        {"request": "SECRET"},
        {"path": "a.md", "section": "SECRET"},
    ],
)
def test_arguments__values_stay_out_of_messages(given: dict[str, Any]) -> None:
    """A refused value may be a whole document; it is never repeated."""
    assert "SECRET" not in refuse("kb_read", given)


def test_arguments__made_up_names_are_shown_short_and_plain() -> None:
    """A name of a client's own making cannot fill a message or break its line."""
    message = refuse("kb_read", {"x\n\x1b" + "y" * 5000: 1})
    assert len(message) < 400
    assert message.isprintable()


@pytest.mark.parametrize(
    "value",
    ["\ud800", ["\udfff"], {"\ud800": 1}, {"deep": [{"er": "\ud800"}]}, float("inf"), [float("nan")]],
)
def test_arguments__what_json_can_hold_and_no_argument_may(value: Any) -> None:
    """Lone surrogates and infinities are refused wherever they stand."""
    refuse("kb_edit_frontmatter", {"path": "a.md", "set": {"key": value}})


def test_arguments__surrogates_inside_json_strings() -> None:
    """A string that is parsed as JSON is looked at like any other value."""
    refuse("kb_search", {"query": "a", "tags": '["\\ud800"]'}, "surrogate")
    refuse("kb_search", {"request": '{"query": "\\ud800"}'}, "surrogate")


def test_arguments__bottomless_nesting() -> None:
    """Nesting has a limit, in values and in JSON strings."""
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    refuse("kb_edit_frontmatter", {"path": "a.md", "set": {"key": deep}}, "nested")
    refuse("kb_edit_frontmatter", {"path": "a.md", "set": '{"a":' * 100_000})


@pytest.mark.parametrize("name", [name for tool in TOOLS.values() for name in tool.parameters["properties"]])
def test_arguments__names_survive_both_spellings(name: str) -> None:
    """Every advertised name comes back from its snake_case form."""
    assert camel_case(snake_case(name)) == name
