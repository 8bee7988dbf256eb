"""Finding: kb_search, kb_context."""

from typing import Any

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
from local_vector_search_mcp.server.scopes import Scope
from local_vector_search_mcp.server.tools import fields
from local_vector_search_mcp.server.toolspec import Answer, Structured, ToolCall, ToolSpec


def search_tool(*, default_mode: str, max_results: int) -> ToolSpec:
    """kb_search, with the defaults in force."""
    return ToolSpec(
        name="kb_search",
        title="Search the knowledge base",
        description=(
            "Find passages by words and meaning. "
            'Quotes make a phrase, a leading hyphen excludes: "edit loop" -draft. '
            "Every hit has a pointer for kb_read and kb_patch."
        ),
        scope=Scope.READ,
        parameters=closed(
            {
                "query": text("Words, question or identifier"),
                "mode": _mode(default_mode),
                "topK": integer("Most results", minimum=1, maximum=50, default=max_results),
                **fields.search_filters(),
                "snippetBytes": integer("Size of each snippet", minimum=0, maximum=4000, default=400),
                "groupBy": text(
                    "document keeps one document from filling the list", enum=("document", "none"), default="document"
                ),
                "explain": text("Path of a document: tell why it is found or not"),
            },
            required=("query",),
        ),
        output=result(
            {
                "results": array(_hit()),
                "mode": text(),
                "totalCandidates": integer(),
                "missingTerms": texts(),
                "index": text(),
                "warnings": texts(),
                "explanation": anything(),
            },
            required=("results", "mode"),
        ),
        run=_search,
        read_only=True,
        idempotent=True,
    )


def context_tool(*, default_mode: str) -> ToolSpec:
    """kb_context, with the defaults in force."""
    return ToolSpec(
        name="kb_context",
        title="Collect context for a question",
        description=(
            "One cited Markdown text of whole elements that best answer a query, within a token budget. "
            "A JSON block with the citations follows it."
        ),
        scope=Scope.READ,
        parameters=closed(
            {
                "query": text("Words or question"),
                "mode": _mode(default_mode),
                "tokenBudget": integer("Size of the text, bytes / 4", minimum=100, maximum=50_000, default=2000),
                "around": integer("Elements of context on each side of a hit", minimum=0, maximum=10, default=1),
                **fields.search_filters(),
            },
            required=("query",),
        ),
        output=None,
        run=_context,
        read_only=True,
        idempotent=True,
    )


def _search(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.searching.search(**arguments))


def _context(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    raise NotImplementedError


def _mode(default: str) -> Schema:
    return text("How to look", enum=fields.MODES, default=default)


def _hit() -> Schema:
    return result(
        {
            "rank": integer(),
            "path": text(),
            "pointer": text(),
            "fullPointer": text(),
            "kind": text(),
            "title": text(),
            "headingPath": texts(),
            "lines": array(integer()),
            "snippet": text(),
            "scores": anything(),
            "indexedSourceHash": text(),
            "stale": boolean(),
            "readHint": anything(),
            "collection": text(),
        }
    )
