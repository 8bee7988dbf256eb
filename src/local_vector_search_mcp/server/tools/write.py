"""Changing parts of documents: kb_patch, kb_edit_table, kb_edit_frontmatter, kb_replace_text, kb_undo."""

from typing import Any

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.schemas import (
    anything,
    array,
    boolean,
    closed,
    either,
    free,
    integer,
    part,
    scalar,
    text,
    texts,
)
from local_vector_search_mcp.server.tools import fields
from local_vector_search_mcp.server.toolspec import Answer, Structured, ToolCall, ToolSpec


def _patch(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.patching.patch(**arguments))


def _edit_table(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.tables.edit(**arguments))


def _edit_frontmatter(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.frontmatter.edit(**arguments))


def _replace_text(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.replacing.replace(**arguments))


def _undo(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.undo.undo(**arguments))


_OPERATION = part(
    {
        "kind": text(
            enum=(
                "replace_element",
                "replace_subtree",
                "replace_section",
                "replace_text",
                "delete",
                "delete_section",
                "insert_before",
                "insert_after",
                "append_to_section",
                "move_before",
                "move_after",
            )
        ),
        "pointer": text("logical~selfHash~subtreeHash from kb_read; document for inserts at start or end"),
        "markdown": text("New text; for replace_* the whole new element, item or section"),
        "find": text("replace_text: literal text inside the element"),
        "replace": text("replace_text: what stands there instead"),
        "count": integer("replace_text: how often find must occur", minimum=1, default=1),
        "afterSubsections": boolean("append_to_section: after the subsections too", default=False),
        "target": text("move_*: pointer to move next to"),
        "section": boolean("move_*: the whole section of the heading", default=False),
    },
    required=("kind", "pointer"),
)

PATCH = ToolSpec(
    name="kb_patch",
    title="Edit a document",
    description=(
        "Change elements or sections of a document by pointers from kb_read or kb_search: replace, insert, append, "
        "delete, move. All operations apply together or none; the answer has the new pointers. "
        "A CONFLICT shows what stands there now."
    ),
    scope=Scope.EDIT,
    parameters=closed(
        {
            "path": fields.path(),
            "operations": array(_OPERATION, "What to do, all against one reading", min_items=1, max_items=100),
            "expectedSourceHash": fields.expected_source_hash("sourceHash as read; guards equal twins of a target"),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("operations",),
    ),
    output=fields.mutation(
        {
            "operations": array(anything()),
            "resectioned": integer(),
        }
    ),
    run=_patch,
    destructive=True,
    value_aliases={"kind": {"replace": "replace_element"}},
)

_WHERE = part(
    {"column": text(), "equals": scalar()}, required=("column", "equals"), description="The row whose cell equals this"
)
_VALUE_FORMAT = ("literal", "markdown")

EDIT_TABLE = ToolSpec(
    name="kb_edit_table",
    title="Edit a table",
    description=(
        "Change cells, rows or columns of one Markdown table by names or indexes; all other cells keep their bytes. "
        "The answer has the table's new pointer."
    ),
    scope=Scope.EDIT,
    parameters=closed(
        {
            "path": fields.path(),
            "pointer": fields.pointer("Table pointer with both hashes"),
            "action": text(
                "What to do",
                enum=(
                    "update_cells",
                    "insert_row",
                    "delete_row",
                    "insert_column",
                    "delete_column",
                    "rename_column",
                    "set_alignment",
                    "sort_rows",
                ),
            ),
            "updates": array(
                part(
                    {
                        "where": _WHERE,
                        "rowIndex": integer(minimum=0),
                        "column": text(),
                        "columnIndex": integer(minimum=0),
                        "value": scalar(),
                        "valueFormat": text(enum=_VALUE_FORMAT),
                    },
                    required=("value",),
                ),
                "update_cells: row by where or rowIndex, column by name or index",
                min_items=1,
                max_items=500,
            ),
            "values": either(free(), array(scalar()), description="insert_row: by column name, or in order"),
            "where": _WHERE,
            "rowIndex": integer("Row from 0", minimum=0),
            "column": text("Column by its header"),
            "columnIndex": integer("Column from 0", minimum=0),
            "name": text("insert_column, rename_column: header"),
            "default": scalar("insert_column: value of every row"),
            "alignment": text("insert_column, set_alignment", enum=("none", "left", "center", "right")),
            "order": text("sort_rows", enum=("asc", "desc"), default="asc"),
            "numeric": boolean("sort_rows: by number", default=False),
            "valueFormat": text("literal escapes what Markdown would read", enum=_VALUE_FORMAT, default="literal"),
            "expectedSourceHash": fields.expected_source_hash("sourceHash as read; guards equal twins of the table"),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("pointer", "action"),
    ),
    output=fields.mutation({"pointer": text(), "enclosing": texts(), "relocatedFrom": text()}),
    run=_edit_table,
    destructive=True,
    accepted={
        "valuesByColumn": free(),
        "beforeRowIndex": integer(minimum=0),
        "newName": text(),
        "defaultValue": scalar(),
        "beforeColumn": text(),
        "beforeColumnIndex": integer(minimum=0),
    },
    value_aliases={"valueFormat": {"text": "literal"}},
)

EDIT_FRONTMATTER = ToolSpec(
    name="kb_edit_frontmatter",
    title="Edit front matter",
    description="Set and unset top-level keys of a document's YAML front matter; every other byte of it stays.",
    scope=Scope.EDIT,
    parameters=closed(
        {
            "path": fields.path(),
            "set": free("Keys with their new values"),
            "unset": array(text(), "Keys to remove"),
            "expectedSourceHash": fields.expected_source_hash(),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("path",),
    ),
    output=fields.mutation({"pointer": text(), "metadata": anything()}),
    run=_edit_frontmatter,
    destructive=True,
    idempotent=True,
)

REPLACE_TEXT = ToolSpec(
    name="kb_replace_text",
    title="Replace text in many documents",
    description=(
        "Find and replace literal text or a regular expression across documents. "
        "A dry run by default: look at the diffs, then send dryRun false with the planHash."
    ),
    scope=Scope.EDIT,
    parameters=closed(
        {
            "query": text("Text to find", min_length=1),
            "replacement": text("Text instead; with regex \\1 is the first group"),
            "regex": boolean("query is a regular expression", default=False),
            "pathPrefix": fields.path_prefix(),
            "includeGlob": fields.glob("Only documents that match"),
            "kinds": array(text(enum=fields.KINDS), "Element kinds to look in; default all but code"),
            "maxChanges": integer("Refuse more matches than this", minimum=1, maximum=10_000, default=100),
            "dryRun": fields.dry_run(default=True),
            "planHash": fields.plan_hash(),
        },
        required=("query", "replacement"),
    ),
    output=fields.mutation(
        {"files": fields.updated_links(), "total": integer()}, without=("path", "sourceHash", "previousSourceHash")
    ),
    run=_replace_text,
    destructive=True,
)

UNDO = ToolSpec(
    name="kb_undo",
    title="Undo a change",
    description=(
        "Take back one change by its changeId from kb_history, in whole or, where files changed since, element by "
        "element. An undo is a change too: undoing it redoes."
    ),
    scope=Scope.EDIT,
    parameters=closed(
        {
            "changeId": text("Change to take back"),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("changeId",),
    ),
    output=fields.mutation(
        {
            "undone": text(),
            "files": array(anything()),
            "how": text(),
        }
    ),
    run=_undo,
    destructive=True,
)
