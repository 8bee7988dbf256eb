"""The one door out: our errors keep their code, everything else is INTERNAL with an incident id."""

import inspect
import json
import logging

import pytest

from local_vector_search_mcp import errors
from local_vector_search_mcp.errors import Conflict, ConflictReason, KnowledgeBaseError, NotFound, StructureReason
from local_vector_search_mcp.server.errors import error_object, error_text

FAMILY = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, KnowledgeBaseError) and value is not KnowledgeBaseError
]


def make(kind: type[KnowledgeBaseError]) -> KnowledgeBaseError:
    if kind is errors.Conflict:
        return Conflict("said", reason=ConflictReason.CHANGED)
    if kind is errors.StructureChanged:
        return errors.StructureChanged("said", reason=StructureReason.FRAGMENT)
    return kind("said")


@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
def test_errors__family_keeps_code_and_message(kind: type[KnowledgeBaseError]) -> None:
    """Every error of ours reaches the client as it was raised."""
    answer = error_object(make(kind), doing="kb_read")
    assert (answer["code"], answer["message"]) == (kind.code, "said")


def test_errors__details_only_where_there_are_some() -> None:
    """An error without details has no such key."""
    assert error_object(NotFound("x"), doing="kb_read") == {"code": "NOT_FOUND", "message": "x"}
    answer = error_object(Conflict("x", reason=ConflictReason.MISSING, details={"candidates": ["p1"]}), doing="kb_read")
    assert answer["details"] == {"reason": "missing", "candidates": ["p1"]}


def test_errors__a_long_message_loses_its_middle() -> None:
    """A message that quotes an argument of any length stays readable, what to do at its end included."""
    message = error_object(NotFound(f"There is no file {'x' * 300_000}; list the files."), doing="kb_read")["message"]
    assert len(message) < 4_000
    assert message.startswith("There is no file xx")
    assert message.endswith("xx; list the files.")


@pytest.mark.parametrize("error", [RuntimeError("secret"), KeyError("secret"), KnowledgeBaseError("secret")])
def test_errors__anything_else_is_internal(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """The client gets an incident id, the log gets that id and the traceback."""
    answer = error_object(error, doing="kb_read")
    assert answer["code"] == "INTERNAL"
    assert "secret" not in json.dumps(answer)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert answer["details"]["incidentId"] in record.getMessage()
    assert record.exc_info is not None


def test_errors__log_of_expected_failures_has_the_code_alone(caplog: pytest.LogCaptureFixture) -> None:
    """A message may quote a document; the log does not."""
    caplog.set_level(logging.INFO)
    error_object(NotFound("quoted text"), doing="kb_read")
    assert "NOT_FOUND" in caplog.text
    assert "quoted text" not in caplog.text


def test_errors__details_that_are_no_json(caplog: pytest.LogCaptureFixture) -> None:
    """Unfit details cost the details, not the message."""
    text = error_text(NotFound("x", details={"path": object()}), doing="kb_read")
    assert json.loads(text) == {"code": "NOT_FOUND", "message": "x"}
    assert "no JSON" in caplog.text
