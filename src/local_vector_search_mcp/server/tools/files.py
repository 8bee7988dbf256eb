"""Whole documents: kb_create, kb_move, kb_delete."""

from typing import Any

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.schemas import anything, array, boolean, closed, text
from local_vector_search_mcp.server.tools import fields
from local_vector_search_mcp.server.toolspec import Answer, Structured, ToolCall, ToolSpec


def _create(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.documents.create(**arguments))


def _move(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.documents.move(**arguments))


def _delete(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.documents.delete(**arguments))


CREATE = ToolSpec(
    name="kb_create",
    title="Create a document",
    description="Write a new Markdown document; never overwrites.",
    scope=Scope.EDIT,
    parameters=closed(
        {
            "path": fields.path("Path of the new document"),
            "markdown": text("Its text"),
            "createDirectories": boolean("Make missing folders", default=True),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("path", "markdown"),
    ),
    output=fields.mutation(),
    run=_create,
    idempotent=True,
)

MOVE = ToolSpec(
    name="kb_move",
    title="Move or rename a document or folder",
    description="Move a document, or a folder (path ending in /), and rewrite the links to and from it.",
    scope=Scope.EDIT,
    parameters=closed(
        {
            "path": fields.path("Document, or folder ending in /"),
            "targetPath": text("New path"),
            "updateLinks": boolean("Rewrite links", default=True),
            "expectedSourceHash": fields.expected_source_hash(),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("path", "targetPath"),
    ),
    output=fields.mutation(
        {
            "previousPath": text(),
            "updatedLinks": fields.updated_links(),
            "moved": array(anything()),
        }
    ),
    run=_move,
    destructive=True,
    idempotent=True,
    aliases={"sourcePath": "path"},
)

DELETE = ToolSpec(
    name="kb_delete",
    title="Delete a document",
    description="Delete a document and report the links that break; kb_undo brings it back.",
    scope=Scope.FULL,
    parameters=closed(
        {
            "path": fields.path(),
            "expectedSourceHash": fields.expected_source_hash(),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("path", "expectedSourceHash"),
    ),
    output=fields.mutation({"deleted": boolean(), "brokenLinks": fields.broken_links()}, without=("sourceHash",)),
    run=_delete,
    destructive=True,
    idempotent=True,
)
