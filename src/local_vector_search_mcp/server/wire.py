"""Tools and answers as the JSON objects of the protocol. Knows nothing of FastMCP: its models cost time to build."""

import base64
from typing import Any

from local_vector_search_mcp.server.results import check_size, json_text, wire_object
from local_vector_search_mcp.server.toolspec import Answer, Block, Blocks, FileBlock, ImageBlock, TextBlock, ToolSpec

Json = dict[str, Any]

# Below this, a result cannot come near a limit, however its text is escaped.
_SURELY_SMALL = 1 << 20


def listed_tool(spec: ToolSpec) -> Json:
    """A tool as ``tools/list`` shows it."""
    listed: Json = {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": spec.parameters,
        "annotations": {
            "readOnlyHint": spec.read_only,
            "destructiveHint": spec.destructive,
            "idempotentHint": spec.idempotent,
            "openWorldHint": spec.open_world,
        },
        "_meta": {"requiredScope": spec.scope.value, **spec.meta},
    }
    return listed if spec.output is None else {**listed, "outputSchema": spec.output}


def finished(spec: ToolSpec, answer: Answer, limit: int) -> Json:
    """An answer as the result of ``tools/call``.

    Args:
        spec: The tool that was called.
        answer: What its run gave.
        limit: Most bytes of a result, before base64.

    Raises:
        TooLarge: It has more.
    """
    if isinstance(answer, Blocks):
        # The texts beside files and images are short, and the limit leaves room for them.
        check_size(sum(len(block.data) for block in answer.blocks if not isinstance(block, TextBlock)), limit)
        return complete(content=[_content(block) for block in answer.blocks])
    assert spec.output is not None
    structured = wire_object(answer.value, spec.output)
    text = json_text(structured)
    if len(text) > _SURELY_SMALL:
        # The object stands in the message twice, once with its quotes escaped.
        check_size((len(text.encode()) + len(json_text(text).encode())) * 3 // 4, limit)
    return complete(content=[text_content(answer.text or text)], structuredContent=structured)


def failed(text: str) -> Json:
    """An error result of ``tools/call``; it has no structured content, whatever the tool declares."""
    return complete(content=[text_content(text)], isError=True)


def complete(**fields: Any) -> Json:
    """A result of any request; the newer era wants to be told that it is one."""
    return {**fields, "resultType": "complete"}


def listing(**fields: Any) -> Json:
    """A result of a request that reads or lists; nobody is to keep it, as it changes with the files."""
    return complete(**fields, ttlMs=0, cacheScope="private")


def text_content(text: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": text}


def _content(block: Block) -> Json:
    match block:
        case TextBlock():
            return text_content(block.text)
        case ImageBlock():
            return {"type": "image", "data": _base64(block.data), "mimeType": block.mime_type}
        case FileBlock():
            blob = {"uri": block.uri, "mimeType": block.mime_type, "blob": _base64(block.data)}
            return {"type": "resource", "resource": blob}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
