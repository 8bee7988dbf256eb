"""Finding: kb_search, kb_context."""

from typing import TYPE_CHECKING, Any

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.results import json_text, wire_object
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
from local_vector_search_mcp.server.toolspec import Answer, Blocks, Structured, TextBlock, ToolCall, ToolSpec

if TYPE_CHECKING:
    from local_vector_search_mcp.services.searching import SearchResult


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
        description=("One Markdown text of the elements that best answer a query, cited, within a token budget."),
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
    found = call.app.searching.search(**_without_empty_filters(arguments))
    return Structured(found, text=_readable(found))


def _context(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    context = wire_object(call.app.context.context(**_without_empty_filters(arguments)), {})
    markdown = context.pop("text") or "Nothing was found."
    return Blocks((TextBlock(markdown), TextBlock(json_text(context))))


def _without_empty_filters(arguments: dict[str, Any]) -> dict[str, Any]:
    """Clients send empty lists and objects for what they do not use; they limit nothing."""
    return {name: value for name, value in arguments.items() if value not in ([], {})}


def _readable(found: "SearchResult") -> str:
    """The hits as a short list; all of it, and more, stands in the structured content."""
    lines: list[str] = []
    for hit in found.results:
        path = f"{hit.collection}: {hit.full_pointer}" if hit.collection else hit.full_pointer
        where = " > ".join(hit.heading_path) or hit.title
        lines.append(f"{hit.rank}. {path} ({where}, lines {hit.lines[0]}-{hit.lines[1]})")
        if hit.snippet:
            lines.append("   " + " ".join(hit.snippet.split()))
    if not lines:
        lines.append("Nothing was found.")
    if found.missing_terms:
        lines.append(f"Nowhere in the index: {', '.join(found.missing_terms)}")
    return "\n".join([*lines, *found.warnings])


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
