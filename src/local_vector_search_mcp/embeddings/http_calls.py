"""HTTP failures of embedding services as the errors that ``batching`` understands."""

import math
import re

import httpx

from local_vector_search_mcp.embeddings.batching import (
    EmbeddingCallError,
    RejectedCallError,
    TransientCallError,
    UnreachableCallError,
)
from local_vector_search_mcp.embeddings.endpoint_policy import EndpointRefusedError

# The service understood the request and refuses what is in it.
_REFUSED_CONTENT = frozenset({400, 413, 422})
_OVERLOADED = frozenset({408, 425, 429})
_TOO_LONG = re.compile(
    r"too (large|long|many tokens)|context (length|size|window)|(maximum|max)\w* .{0,40}tokens|exceed", re.IGNORECASE
)


def error_for_status(status: int, *, retry_after: str | None = None, body: str = "") -> EmbeddingCallError:
    """The error for an HTTP status that is not a success.

    Args:
        status: The HTTP status.
        retry_after: That header's value.
        body: What the service said. It is looked at and not quoted, as it may repeat the text that was sent.
    """
    if status == 500 and _TOO_LONG.search(body):
        # Some services say so with the status of a fault of theirs; asking again would change nothing.
        return RejectedCallError("it answered that a text is too long")
    if status in _OVERLOADED or status >= 500:
        return TransientCallError(f"it answered HTTP {status}", retry_after_s=_seconds(retry_after))
    if status in _REFUSED_CONTENT:
        return RejectedCallError(f"it answered HTTP {status}")
    if status in (401, 403):
        return UnreachableCallError(f"it answered HTTP {status}; check embedding.apiKeyEnv")
    if status == 404:
        return UnreachableCallError("it answered HTTP 404; check embedding.endpoint and that the model is installed")
    return UnreachableCallError(f"it answered HTTP {status}")


def error_for_exception(error: Exception) -> EmbeddingCallError:
    """The error for an exception of the HTTP client."""
    if isinstance(error, EndpointRefusedError):
        return UnreachableCallError(str(error))
    if isinstance(error, httpx.TimeoutException):
        return TransientCallError("it did not answer in time")
    if isinstance(error, (httpx.ConnectError, ConnectionError)):
        return UnreachableCallError("nothing answers at embedding.endpoint")
    if isinstance(error, httpx.TooManyRedirects):
        return UnreachableCallError("it redirects without end")
    if isinstance(error, httpx.TransportError):
        return TransientCallError(f"the connection failed ({type(error).__name__})")
    return UnreachableCallError(f"its answer is not understood ({type(error).__name__})")


def _seconds(header: str | None) -> float | None:
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        return None  # A date: the ordinary pause is long enough.
    return seconds if math.isfinite(seconds) else None
