"""Failures of requests that have no error result: resources, prompts, completion. They become JSON-RPC errors."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.server.errors import error_object

RequestContext = ServerRequestContext[Any, Any]
Handler = Callable[[RequestContext, Any], Awaitable[Any]]


def protocol_error(error: Exception, *, doing: str, **data: Any) -> MCPError:
    """The JSON-RPC error of a failure: −32602 for what the caller can act on, −32603 for the rest."""
    answer = error_object(error, doing=doing)
    code = INTERNAL_ERROR if answer["code"] == KnowledgeBaseError.code else INVALID_PARAMS
    rest = {name: value for name, value in answer.items() if name != "message"}
    return MCPError(code=code, message=answer["message"], data={**rest, **data})


def answering(handler: Handler) -> Handler:
    """A handler whose every failure is a JSON-RPC error of ours."""

    @functools.wraps(handler)
    async def guarded(ctx: RequestContext, params: Any) -> Any:
        try:
            return await handler(ctx, params)
        except MCPError:
            raise
        except Exception as error:
            uri = getattr(params, "uri", None)
            raise protocol_error(error, doing=ctx.method, **({"uri": str(uri)} if uri else {})) from error

    return guarded
