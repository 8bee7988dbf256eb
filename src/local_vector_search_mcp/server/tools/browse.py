"""Finding one's way: kb_list_files, kb_links, kb_metadata, kb_history."""

from dataclasses import replace
from typing import Any

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.schemas import (
    anything,
    array,
    boolean,
    closed,
    integer,
    result,
    scalar,
    text,
    texts,
)
from local_vector_search_mcp.server.tools import fields
from local_vector_search_mcp.server.toolspec import Answer, Structured, ToolCall, ToolSpec


def _list_files(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.listing.list_files(**arguments))


def _links(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.links.links(**arguments))


def _metadata(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    page = call.app.metadata.metadata(**arguments)
    # A key without a value is no example of one; among the values it is the one that is absent.
    keys = (replace(key, examples=tuple(value for value in key.examples if value is not None)) for key in page.keys)
    return Structured(replace(page, keys=tuple(keys)))


def _history(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.undo.history(**arguments))


LIST_FILES = ToolSpec(
    name="kb_list_files",
    title="List files",
    description="List documents, images and other files under the root.",
    scope=Scope.READ,
    parameters=closed(
        {
            "pathPrefix": fields.path_prefix(),
            "includeGlob": fields.glob("Only paths that match"),
            "kind": text("Kind of file", enum=("all", "markdown", "image", "other"), default="all"),
            "sort": text(
                "modified: newest first; size: largest first", enum=("path", "modified", "size"), default="path"
            ),
            "cursor": fields.cursor(),
            "pageSize": fields.page_size(100, 500),
            "collection": fields.collection(),
        }
    ),
    output=result(
        {
            "files": array(
                result(
                    {
                        "path": text(),
                        "kind": text(),
                        "bytes": integer(),
                        "modified": text(),
                        "title": text(),
                        "indexed": boolean(),
                    }
                )
            ),
            "nextCursor": text(),
            "collection": text(),
        },
        required=("files",),
    ),
    run=_list_files,
    read_only=True,
    idempotent=True,
)

LINKS = ToolSpec(
    name="kb_links",
    title="Links between documents",
    description=(
        "Links of a document, links to it, broken links of one document or all, or documents that nothing links to."
    ),
    scope=Scope.READ,
    parameters=closed(
        {
            "path": fields.path("Document; needed for outgoing and incoming"),
            "direction": text("What to list", enum=("outgoing", "incoming", "broken", "orphans")),
            "cursor": fields.cursor(),
            "pageSize": fields.page_size(100, 500),
            "collection": fields.collection(),
        },
        required=("direction",),
    ),
    output=result(
        {
            "links": array(
                result(
                    {
                        "path": text(),
                        "pointer": text(),
                        "kind": text(),
                        "target": text(),
                        "resolvedPath": text(),
                        "anchor": text(),
                        "problem": text(),
                    }
                )
            ),
            "documents": texts(),
            "nextCursor": text(),
            "collection": text(),
        },
        required=("links", "documents"),
    ),
    run=_links,
    read_only=True,
    idempotent=True,
)

METADATA = ToolSpec(
    name="kb_metadata",
    title="Front matter keys and tags",
    description=(
        "The front matter keys in use, or the values of one key with how many documents have them; "
        "key tags counts all tags. Shows what search filters can match."
    ),
    scope=Scope.READ,
    parameters=closed(
        {
            "key": text("Key whose values to list"),
            "pathPrefix": fields.path_prefix(),
            "cursor": fields.cursor(),
            "pageSize": fields.page_size(100, 500),
            "collection": fields.collection(),
        }
    ),
    output=result(
        {
            "keys": array(result({"key": text(), "documents": integer(), "examples": array(scalar())})),
            "values": array(result({"value": scalar(), "documents": integer()})),
            "nextCursor": text(),
            "collection": text(),
        },
        required=("keys", "values"),
    ),
    run=_metadata,
    read_only=True,
    idempotent=True,
)

_CHANGE = result(
    {
        "changeId": text(),
        "time": text(),
        "tool": text(),
        "summary": text(),
        "files": array(anything()),
    }
)

HISTORY = ToolSpec(
    name="kb_history",
    title="History of changes",
    description="Changes made, newest first, or one of them with its diff; kb_undo takes one back.",
    scope=Scope.READ,
    parameters=closed(
        {
            "path": fields.path("Only changes that touched this file"),
            "changeId": text("One change, with its diff"),
            "cursor": fields.cursor(),
            "pageSize": fields.page_size(20, 100),
        }
    ),
    output=result(
        {"changes": array(_CHANGE), "nextCursor": text(), "change": anything(), "diff": text()},
        required=("changes",),
    ),
    run=_history,
    read_only=True,
    idempotent=True,
)
