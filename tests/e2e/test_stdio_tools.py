"""Every tool of the installed server over a real stdio connection: whole stories, each result held to its schema."""

import base64
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.support.pictures import picture
from tests.support.stdio_client import Era, StdioClient, server_command

from local_vector_search_mcp.server.json_types import is_array, is_object

ALPHA = """---
title: Alpha
tags: [idea, work/plan]
status: draft
---

# Alpha

Some text about caching and [beta](b.md).

## Table

| Name | Count |
| ---- | ----- |
| one  | 1     |
| two  | 2     |

## List

- first
- second
  - nested
"""
BETA = "# Beta\n\nText of beta with an #inline tag and a [broken link](missing.md).\n\n![dot](images/dot.png)\n"


class Checked:
    """A connection whose every successful result is validated against the schema that the tool declares."""

    def __init__(self, client: StdioClient) -> None:
        self.client = client
        listed = client.request("tools/list")["result"]["tools"]
        self.outputs: dict[str, Any] = {tool["name"]: tool.get("outputSchema") for tool in listed}
        self.called: set[str] = set()

    def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        result = self.client.call(name, arguments)
        assert not result.get("isError"), result
        self.called.add(name)
        schema, value = self.outputs[name], result["structuredContent"]
        jsonschema.validate(value, schema)
        assert undeclared(value, schema) == []
        for key, declared in schema["properties"].items():
            assert declared.get("type") != "array" or key in value, key
        assert None not in value.values()
        if name != "kb_search":
            assert json.loads(result["content"][0]["text"]) == value
        checked: dict[str, Any] = value
        return checked

    def blocks(self, name: str, **arguments: Any) -> list[dict[str, Any]]:
        result = self.client.call(name, arguments)
        assert not result.get("isError"), result
        assert "structuredContent" not in result
        self.called.add(name)
        found: list[dict[str, Any]] = result["content"]
        return found

    def error(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.client.error(name, arguments)


def undeclared(value: Any, schema: Mapping[str, Any], where: str = "") -> list[str]:
    """Keys of a result that its schema does not name, at every depth that it describes."""
    if is_array(value):
        items: Mapping[str, Any] = schema.get("items", {})
        return [found for item in value for found in undeclared(item, items, where + "[]")]
    if not is_object(value) or "properties" not in schema:
        return []
    known: Mapping[str, Any] = schema["properties"]
    found: list[str] = []
    for key, item in value.items():
        inside = f"{where}.{key}"
        found += undeclared(item, known[key], inside) if key in known else [inside]
    return found


def write_workspace(root: Path) -> None:
    (root / "images").mkdir(parents=True)
    (root / "a.md").write_text(ALPHA, encoding="utf-8", newline="\n")
    (root / "b.md").write_text(BETA, encoding="utf-8", newline="\n")
    (root / "images" / "dot.png").write_bytes(picture("PNG", (8, 6)))


def connect(root: Path, *options: str, era: Era = "2025") -> StdioClient:
    return StdioClient(server_command(root, "--embedding-provider", "none", *options), era=era, cwd=root)


@pytest.fixture(params=["2025", "2026"])
def kb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checked]:
    """A server of full scope over a small workspace, indexed, in each protocol era."""
    write_workspace(tmp_path)
    with connect(tmp_path, "--scope", "full", era=request.param) as client:
        checked = Checked(client)
        assert checked("kb_reindex", wait=True)["outcome"] == "succeeded"
        yield checked
        assert client.stray == []


def element(kb: Checked, path: str, text: str) -> str:
    """The pointer of the element that holds a text."""
    page = kb("kb_read", path=path, maxElements=200)
    pointer: str = next(found["pointer"] for found in page["elements"] if text in found["text"])
    return pointer


def test_story__search_read_patch_undo(kb: Checked, tmp_path: Path) -> None:
    """What is found is read, changed, found in its new form, and put back byte for byte."""
    before = (tmp_path / "a.md").read_bytes()
    found = kb("kb_search", query="caching")
    hit = found["results"][0]
    assert hit["fullPointer"] == f"{hit['path']}::{hit['pointer']}"
    assert "**caching**" in hit["snippet"]
    assert found["missingTerms"] == []
    page = kb("kb_read", **hit["readHint"])
    assert "caching" in json.dumps(page["elements"])
    operation = {"kind": "replace_element", "pointer": hit["pointer"], "markdown": "Quite another sentence."}
    dry = kb("kb_patch", path="a.md", operations=[operation], dryRun=True)
    assert dry["applied"] is False
    assert "+Quite another sentence." in dry["diffs"][0]["diff"]
    done = kb("kb_patch", path="a.md", operations=[operation], planHash=dry["planHash"])
    assert done["applied"] is True
    assert done["sourceHash"] != done["previousSourceHash"]
    assert done["operations"][0]["pointers"]
    assert b"Quite another sentence." in (tmp_path / "a.md").read_bytes()
    kb("kb_reindex", wait=True)
    assert kb("kb_search", query="quite another sentence")["results"][0]["path"] == "a.md"
    conflict = kb.error("kb_patch", path="a.md", operations=[operation])
    assert conflict["code"] == "CONFLICT"
    assert conflict["details"]["currentText"] == "Quite another sentence."
    listed = kb("kb_history", path="a.md")["changes"]
    assert listed[0]["changeId"] == done["changeId"]
    assert "Quite another" in kb("kb_history", changeId=done["changeId"])["diff"]
    undone = kb("kb_undo", changeId=done["changeId"])
    assert undone["undone"] == done["changeId"]
    assert (tmp_path / "a.md").read_bytes() == before


def test_story__full_pointers_need_no_path(kb: Checked) -> None:
    """A full pointer brings its path along, in every tool that takes a pointer."""
    pointer = "a.md::" + element(kb, "a.md", "caching")
    assert kb("kb_read", pointer=pointer, maxElements=1)["path"] == "a.md"
    slices = kb("kb_read", pointers=[pointer, "b.md::document", "nowhere.md::p1"])["slices"]
    assert [one.get("path") for one in slices[:2]] == ["a.md", "b.md"]
    assert slices[2]["error"]["code"] == "NOT_FOUND"
    done = kb("kb_patch", operations=[{"kind": "insert_after", "pointer": pointer, "markdown": "More."}])
    assert done["path"] == "a.md"
    assert kb.error("kb_read", path="b.md", pointer=pointer)["code"] == "INVALID_ARGUMENT"


def test_story__tables_and_front_matter(kb: Checked, tmp_path: Path) -> None:
    """Cells and keys are edited in their place; edits chain by the pointer of the answer."""
    pointer = element(kb, "a.md", "| Name |")
    update = {"where": {"column": "Name", "equals": "two"}, "column": "Count", "value": "a | b"}
    done = kb("kb_edit_table", path="a.md", pointer=pointer, action="update_cells", updates=[update])
    table = kb("kb_read", path="a.md", pointer=done["pointer"], maxElements=1)["table"]
    assert table["rows"][1]["cells"] == ["two", "a | b"]
    row = kb(
        "kb_edit_table",
        path="a.md",
        pointer=done["pointer"],
        action="insert_row",
        valuesByColumn={"Name": "three", "Count": 3},
    )
    assert row["pointer"] != done["pointer"]
    assert "| three | 3" in (tmp_path / "a.md").read_text(encoding="utf-8")
    front = kb("kb_edit_frontmatter", path="a.md", set={"status": "done", "nested": {"snake_key": 1}}, unset=["tags"])
    assert front["metadata"]["nested"] == {"snake_key": 1}
    assert kb("kb_read", path="a.md", pointer="frontmatter", maxElements=1)["metadata"]["status"] == "done"


def test_story__whole_files(kb: Checked, tmp_path: Path) -> None:
    """Documents are made, moved with their links, changed together and deleted, and every step can be undone."""
    made = kb("kb_create", path="notes/new.md", content="# New\n\nSee [alpha](../a.md).")
    assert made["applied"] is True
    assert kb.error("kb_create", path="notes/new.md", markdown="x")["code"] == "ALREADY_EXISTS"
    moved = kb("kb_move", sourcePath="a.md", targetPath="deep/alpha.md")
    assert moved["previousPath"] == "a.md"
    assert {link["path"] for link in moved["updatedLinks"]} >= {"notes/new.md"}
    assert "(../deep/alpha.md)" in (tmp_path / "notes" / "new.md").read_text(encoding="utf-8")
    dry = kb("kb_replace_text", query="beta", replacement="gamma", pathPrefix="b.md")
    assert (dry["applied"], dry["total"]) == (False, 1)
    real = kb(
        "kb_replace_text",
        query="beta",
        replacement="gamma",
        pathPrefix="b.md",
        dryRun=False,
        planHash=dry["planHash"],
    )
    assert real["files"][0]["path"] == "b.md"
    source_hash = kb("kb_read", path="notes/new.md")["sourceHash"]
    deleted = kb("kb_delete", path="notes/new.md", expectedSourceHash=source_hash)
    assert deleted["deleted"] is True
    assert not (tmp_path / "notes" / "new.md").exists()
    for change in kb("kb_history")["changes"]:
        kb("kb_undo", changeId=change["changeId"])
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == ALPHA
    assert (tmp_path / "b.md").read_text(encoding="utf-8") == BETA


def test_story__looking_around(kb: Checked) -> None:
    """Lists, outlines, links, metadata, status and context tell what is there."""
    status = kb("kb_status")
    assert status["scope"] == "full"
    assert status["index"]["documents"] == 2
    files = kb("kb_list_files", pageSize=1)
    assert files["files"][0]["path"] == "a.md"
    following = kb("kb_list_files", pageSize=1, cursor=files["nextCursor"])["files"]
    assert following[0]["path"] == "b.md"
    outline = kb("kb_outline", path="a.md")
    assert [child["text"] for child in outline["headings"][0]["children"]] == ["Table", "List"]
    assert kb("kb_links", path="a.md", direction="outgoing")["links"][0]["resolvedPath"] == "b.md"
    assert kb("kb_links", path="b.md", direction="incoming")["links"][0]["path"] == "a.md"
    assert {link["problem"] for link in kb("kb_links", direction="broken")["links"]} == {"missing_file"}
    assert kb("kb_links", direction="orphans")["documents"] == ["a.md"]
    assert "status" in {key["key"] for key in kb("kb_metadata")["keys"]}
    assert {"inline", "idea"} <= {value["value"] for value in kb("kb_metadata", key="tags")["values"]}
    explained = kb("kb_search", query="caching", explain="b.md")["explanation"]
    assert explained["selected"] is True
    text, about = kb.blocks("kb_context", query="caching", tokenBudget=500)
    assert "caching" in text["text"]
    assert json.loads(about["text"])["citations"][0]["path"] == "a.md"


def test_story__images_and_files(kb: Checked, tmp_path: Path) -> None:
    """Images are listed, looked at, moved with their links and deleted; files come as they are, whole or in parts."""
    (listed,) = kb("kb_list_images")["images"]
    assert (listed["path"], listed["width"], listed["height"]) == ("images/dot.png", 8, 6)
    image, about = kb.blocks("kb_load_image", path="images/dot.png")
    assert base64.b64decode(image["data"]) == (tmp_path / "images" / "dot.png").read_bytes()
    assert json.loads(about["text"])["path"] == "images/dot.png"
    named, shown, said = kb.blocks("kb_load_image", documentPath="b.md")
    assert "images/dot.png" in named["text"]
    assert shown["type"] == "image"
    assert json.loads(said["text"])["images"][0]["width"] == 8
    moved = kb("kb_move_image", sourcePath="images/dot.png", targetPath="pictures/spot.png", updateLinks=True)
    assert moved["updatedLinks"][0]["path"] == "b.md"
    assert "(pictures/spot.png)" in (tmp_path / "b.md").read_text(encoding="utf-8")
    deleted = kb("kb_delete_image", path="pictures/spot.png", expectedSha256=moved["sha256"])
    assert deleted["brokenLinks"][0]["path"] == "b.md"
    for change in (deleted, moved):
        kb("kb_undo", changeId=change["changeId"])
    resource, about = kb.blocks("kb_download_file", path="a.md", offset=4, length=5)
    assert base64.b64decode(resource["resource"]["blob"]) == ALPHA.encode()[4:9]
    assert json.loads(about["text"])["sha256"] == hashlib.sha256(ALPHA.encode()).hexdigest()
    refused = kb.error("kb_save_image", file="https://example.com/a.png")
    assert refused["code"] == "INVALID_ARGUMENT"
    assert "download_url" in refused["message"]
    private = {"download_url": "https://127.0.0.1/a.png", "file_id": "1"}
    assert kb.error("kb_save_image", file=private)["code"] == "DOWNLOAD_REFUSED"


def test_story__large_files_in_parts(tmp_path: Path) -> None:
    """A file above the limit of a message is refused with how to ask, and whole when asked for in parts."""
    data = bytes(range(256)) * 4 * 8192 + b"end"
    (tmp_path / "large.bin").write_bytes(data)
    with connect(tmp_path) as client:
        assert client.error("kb_download_file", {"path": "large.bin"})["code"] == "TOO_LARGE"
        parts: list[bytes] = []
        step = 7 << 20
        for offset in range(0, len(data), step):
            arguments = {"path": "large.bin", "offset": offset, "length": step}
            resource = client.call("kb_download_file", arguments)["content"][0]["resource"]
            parts.append(base64.b64decode(resource["blob"]))
        assert b"".join(parts) == data


def test_story__book(tmp_path: Path) -> None:
    """A document becomes a PDF, with progress on the way, and the export can be undone."""
    write_workspace(tmp_path)
    with connect(tmp_path, "--scope", "full") as client:
        kb = Checked(client)
        client.timeout_s = 60
        call = {"name": "kb_create_pdf_book", "arguments": {"path": "a.md"}, "_meta": {"progressToken": "t"}}
        result = client.wait(client.send("tools/call", call))["result"]
        if result.get("isError") and "DEPENDENCY_MISSING" in result["content"][0]["text"]:
            pytest.skip("Pango is not installed")
        book = result["structuredContent"]
        jsonschema.validate(book, kb.outputs["kb_create_pdf_book"])
        assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")
        assert book["path"] == "a.pdf"
        assert any(n["method"] == "notifications/progress" for n in client.notifications)
        kb("kb_undo", changeId=book["changeId"])
        assert not (tmp_path / "a.pdf").exists()


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("kb_read", {"path": "../secret.md"}, "INVALID_PATH"),
        ("kb_read", {"path": "missing.md"}, "NOT_FOUND"),
        ("kb_read", {"path": "a.md", "pointer": "nonsense"}, "INVALID_POINTER"),
        ("kb_read", {"path": "a.md", "pointer": "9.9"}, "POINTER_NOT_FOUND"),
        ("kb_read", {}, "INVALID_ARGUMENT"),
        ("kb_read", {"path": "images/dot.png"}, "UNSUPPORTED_FORMAT"),
        ("kb_read", {"path": "a.md", "collection": "elsewhere"}, "INVALID_ARGUMENT"),
        ("kb_search", {"query": ""}, "INVALID_ARGUMENT"),
        ("kb_search", {"query": "x", "mode": "semantic"}, "EMBEDDING_UNAVAILABLE"),
        ("kb_search", {"query": "x", "where": {"a": {"$like": "b"}}}, "INVALID_ARGUMENT"),
        ("kb_search", {"query": "x", "includeGlob": "[a"}, "INVALID_ARGUMENT"),
        ("kb_search", {"query": "x", "modifiedAfter": "yesterday"}, "INVALID_ARGUMENT"),
        ("kb_list_files", {"cursor": "nonsense"}, "INVALID_ARGUMENT"),
        ("kb_links", {"direction": "outgoing"}, "INVALID_ARGUMENT"),
        ("kb_patch", {"path": "a.md", "operations": [{"kind": "delete", "pointer": "1.p1"}]}, "INVALID_POINTER"),
        ("kb_undo", {"changeId": "nonsense"}, "NOT_FOUND"),
        ("kb_load_image", {"path": "a.md"}, "UNSUPPORTED_FORMAT"),
        ("kb_download_file", {"path": ".git/config"}, "INVALID_PATH"),
        ("kb_create_pdf_book", {}, "INVALID_ARGUMENT"),
        ("kb_history", {"changeId": "nonsense"}, "NOT_FOUND"),
    ],
)
def test_story__refusals(shared_kb: Checked, tool: str, arguments: dict[str, Any], code: str) -> None:
    """What cannot be done is refused with the documented code."""
    assert shared_kb.error(tool, **arguments)["code"] == code


@pytest.mark.parametrize(
    ("tool", "name", "arguments"),
    [
        ("kb_read", "path", {}),
        ("kb_read", "pointer", {}),
        ("kb_outline", "path", {}),
        ("kb_links", "path", {"direction": "outgoing"}),
        ("kb_list_files", "pathPrefix", {}),
        ("kb_list_images", "pathPrefix", {}),
        ("kb_metadata", "pathPrefix", {}),
        ("kb_search", "pathPrefix", {"query": "x"}),
        ("kb_search", "explain", {"query": "x"}),
        ("kb_context", "pathPrefix", {"query": "x"}),
        ("kb_history", "path", {}),
        ("kb_load_image", "path", {}),
        ("kb_download_file", "path", {}),
        ("kb_create", "path", {"markdown": "x"}),
        ("kb_delete", "path", {"expectedSourceHash": "0" * 16}),
        ("kb_patch", "path", {"operations": [{"kind": "delete", "pointer": "1.p1"}]}),
        ("kb_replace_text", "pathPrefix", {"query": "x", "replacement": "y"}),
        ("kb_create_pdf_book", "path", {}),
    ],
)
def test_story__absolute_path_is_told_its_relative_form(
    shared_kb: Checked, tool: str, name: str, arguments: dict[str, Any]
) -> None:
    """Clients like to give absolute paths; the refusal names the path to give instead."""
    root = shared_kb("kb_status")["root"]
    ending = "::1" if name == "pointer" else ""
    error = shared_kb.error(tool, **{**arguments, name: f"{root}/sub/a.md{ending}"})
    assert error["code"] == "INVALID_PATH"
    assert error["message"].endswith("relative to the root: sub/a.md")


@pytest.fixture(scope="module")
def shared_kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    """One server for the calls that change nothing."""
    root = tmp_path_factory.mktemp("shared")
    write_workspace(root)
    with connect(root, "--scope", "full") as client:
        kb = Checked(client)
        kb("kb_reindex", wait=True)
        yield kb


def test_story__resources(shared_kb: Checked) -> None:
    """Documents, outlines and the status are resources of the same content."""
    client = shared_kb.client
    (document,) = client.request("resources/read", {"uri": "kb://document/a.md"})["result"]["contents"]
    assert document["text"] == ALPHA
    (outline,) = client.request("resources/read", {"uri": "kb://outline/a.md"})["result"]["contents"]
    assert json.loads(outline["text"]) == shared_kb("kb_outline", path="a.md")
    (status,) = client.request("resources/read", {"uri": "kb://status"})["result"]["contents"]
    assert json.loads(status["text"])["index"]["documents"] == 2
    listed = {resource["uri"] for resource in client.request("resources/list")["result"]["resources"]}
    assert {"kb://status", "kb://document/a.md", "kb://document/b.md"} <= listed


def test_story__instructions_describe_the_workspace(tmp_path: Path) -> None:
    """A client is told at the handshake what the index holds."""
    write_workspace(tmp_path)
    with connect(tmp_path) as client:
        client.value("kb_reindex", {"wait": True})
    with connect(tmp_path) as client:
        assert "2 documents" in client.server["instructions"]
        assert "#idea" in client.server["instructions"]
        assert "Scope read" in client.server["instructions"]


def test_story__subscription_to_a_document(tmp_path: Path) -> None:
    """An editor's save reaches a client that subscribed to the document."""
    write_workspace(tmp_path)
    with connect(tmp_path) as client:
        client.value("kb_reindex", {"wait": True})
        client.request("resources/subscribe", {"uri": "kb://document/a.md"})
        (tmp_path / "a.md").write_text(ALPHA + "\nMore.\n", encoding="utf-8")
        updated = {"method": "notifications/resources/updated", "params": {"uri": "kb://document/a.md"}}
        client.wait_until(lambda: any(updated.items() <= n.items() for n in client.notifications), timeout_s=15)


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder with open files")
@pytest.mark.parametrize("comes", ["back", "anew"])
def test_story__root_that_goes_and_comes(tmp_path: Path, comes: str) -> None:
    """A root that was moved away is missed, and nothing is made in its place; one that stands there again is served."""
    root = tmp_path / "notes"
    write_workspace(root)
    server = StdioClient(server_command(root, "--embedding-provider", "none", "--scope", "full"), cwd=tmp_path)
    with server as client:
        client.value("kb_reindex", {"wait": True})
        watching = client.value("kb_status")["watching"]
        root.rename(tmp_path / "away")
        until(lambda: any("root is gone" in warning for warning in client.value("kb_status")["warnings"]))
        refused = client.error("kb_search", {"query": "caching"})
        assert (refused["code"], "is gone" in refused["message"]) == ("INDEX_NOT_READY", True)
        for name, arguments in (("kb_reindex", {}), ("kb_create", {"path": "x.md", "markdown": "x"})):
            assert client.error(name, arguments)["code"] == "IO_ERROR"
        assert not root.exists()
        if comes == "back":
            (tmp_path / "away" / "c.md").write_text("Written meanwhile about caching.\n", encoding="utf-8")
            (tmp_path / "away").rename(root)
        else:
            write_workspace(root)
            (root / "c.md").write_text("A clone that tells of caching.\n", encoding="utf-8")
        until(lambda: client.value("kb_status")["watching"] == watching)
        until(lambda: "c.md" in found(client, "caching"))
        assert set(found(client, "caching")) == {"a.md", "c.md"}
        status = client.value("kb_status")
        assert (status["warnings"], status["index"]["documents"]) == ([], 3)
        change = client.value("kb_create", {"path": "d.md", "markdown": "Made later.\n"})
        assert change["changeId"] in {each["changeId"] for each in client.value("kb_history")["changes"]}
        (root / "e.md").write_text("Saved later about caching.\n", encoding="utf-8")
        until(lambda: "e.md" in found(client, "caching"))
        assert sorted(path.name for path in (root / ".local-vector-search-mcp").glob("history.db")) == ["history.db"]


def found(client: StdioClient, query: str) -> list[str]:
    result = client.call("kb_search", {"query": query})
    return [] if result.get("isError") else [each["path"] for each in result["structuredContent"]["results"]]


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline, "the state did not come"
        threading.Event().wait(0.1)
