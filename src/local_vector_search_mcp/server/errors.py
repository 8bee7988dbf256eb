"""The one door out: every failure of a call becomes ``{"code", "message", "details"?}``.

What the caller can act on keeps its code. Anything else is ``INTERNAL`` with an incident id; its traceback goes to the
log alone.
"""

import logging
import secrets
from typing import Any

from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.server.results import json_text

# A message may quote an argument, and an argument may be as long as a message of the protocol.
_LONGEST_MESSAGE = 3_000

logger = logging.getLogger(__name__)


def error_object(error: Exception, *, doing: str) -> dict[str, Any]:
    """The error that a client sees.

    Args:
        error: What was raised.
        doing: What was being done, for the log: a tool's or a method's name.
    """
    if isinstance(error, KnowledgeBaseError) and error.code != KnowledgeBaseError.code:
        logger.info("%s: %s", doing, error.code)
        answer: dict[str, Any] = {"code": error.code, "message": _bounded(error.message)}
        return {**answer, "details": error.details} if error.details else answer
    incident = secrets.token_hex(4)
    logger.error("%s: INTERNAL, incident %s", doing, incident, exc_info=error)
    return {
        "code": KnowledgeBaseError.code,
        "message": f"Something went wrong inside the server; its log tells more under incident {incident}.",
        "details": {"incidentId": incident},
    }


def error_text(error: Exception, *, doing: str) -> str:
    """The error that a client sees, as the JSON text of a result."""
    answer = error_object(error, doing=doing)
    try:
        return json_text(answer)
    except (TypeError, ValueError):
        # Details that are no JSON are our mistake, and must not cost the caller the message.
        logger.exception("%s: the details of %s are no JSON", doing, answer["code"])
        return json_text({"code": answer["code"], "message": answer["message"]})


def _bounded(message: str) -> str:
    """A message without its middle, where that is too long to be of use: it says what to do at its end."""
    half = _LONGEST_MESSAGE // 2
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:half]} … {message[-half:]}"
