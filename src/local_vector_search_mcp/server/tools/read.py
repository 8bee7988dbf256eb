"""Reading documents as they are now: kb_read, kb_outline."""

from typing import Any

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.schemas import (
    Schema,
    anything,
    array,
    boolean,
    closed,
    integer,
    result,
    text,
    texts,
)
from local_vector_search_mcp.server.tools import fields
from local_vector_search_mcp.server.toolspec import Answer, Structured, ToolCall, ToolSpec


def _read(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.reading.read(**arguments))


def _outline(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.reading.outline(**arguments))


def _page() -> dict[str, Schema]:
    return {
        "path": text(),
        "sourceHash": text(),
        "elements": array(
            result(
                {
                    "pointer": text(),
                    "kind": text(),
                    "text": text(),
                    "headingPath": texts(),
                    "level": integer(),
                    "lines": array(integer()),
                }
            )
        ),
        "markdown": text(),
        "nextPointer": text(),
        "previousPointer": text(),
        "relocatedFrom": text(),
        "truncated": boolean(),
        "nextOffset": integer(),
        "table": anything(),
        "metadata": anything(),
        "collection": text(),
    }


READ = ToolSpec(
    name="kb_read",
    title="Read a document",
    description=(
        "Read elements of a document from a pointer on, as the file is now, with the pointers that edits need. "
        "Go on at nextPointer."
    ),
    scope=Scope.READ,
    parameters=closed(
        {
            "path": fields.path(),
            "pointer": fields.pointer("Element to start at; path::pointer needs no path"),
            "maxElements": integer("Most elements", minimum=1, maximum=200, default=20),
            "maxBytes": integer("Most bytes of Markdown", minimum=200, maximum=200_000, default=12_000),
            "before": integer("Elements before the pointer, in addition", minimum=0, maximum=50, default=0),
            "section": boolean("On a heading: stay inside its section", default=False),
            "include": array(
                text(enum=("text", "markdown")),
                "Text per element, or the exact Markdown of the page",
                min_items=1,
                default=("text",),
            ),
            "offset": integer("nextOffset of a cut element", minimum=0),
            "pointers": array(text(), "Instead: full pointers, one page each", min_items=1, max_items=20),
            "collection": fields.collection(),
        }
    ),
    output=result({**_page(), "slices": array(anything())}),
    run=_read,
    read_only=True,
    idempotent=True,
)

OUTLINE = ToolSpec(
    name="kb_outline",
    title="Outline of a document",
    description="The tree of a document's headings with pointers, sizes and lines, as the file is now.",
    scope=Scope.READ,
    parameters=closed(
        {
            "path": fields.path(),
            "maxDepth": integer("Levels of the tree", minimum=1, maximum=6, default=6),
            "pointer": fields.pointer("Heading to use as the top"),
            "collection": fields.collection(),
        }
    ),
    output=result(
        {
            "path": text(),
            "sourceHash": text(),
            "title": text(),
            "tags": texts(),
            "headings": array(
                result(
                    {
                        "pointer": text(),
                        "level": integer(),
                        "text": text(),
                        "line": integer(),
                        "bytes": integer(),
                        "elements": integer(),
                        "children": array(anything()),
                    }
                )
            ),
            "relocatedFrom": text(),
            "collection": text(),
        },
        required=("path", "sourceHash", "headings"),
    ),
    run=_outline,
    read_only=True,
    idempotent=True,
)
