"""Results: dataclasses become camelCase JSON, absent values go, declared arrays stay, users' keys are theirs."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest

from local_vector_search_mcp.errors import TooLarge
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.server.results import check_size, json_text, wire_object
from local_vector_search_mcp.server.schemas import Schema, anything, array, integer, result, text, texts


class Kind(StrEnum):
    """An enumeration as services use them."""

    LIST_ITEM = "list_item"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """A part of a result."""

    new_name: str
    missing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """A result."""

    some_value: Any = None
    more: Any = None


def check(value: object, wire: dict[str, Any], schema: Schema | None = None) -> None:
    got = wire_object(value, schema or result({}))
    assert got == wire
    assert json.loads(json_text(got)) == wire


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        ("a", "a"),
        (1, 1),
        (True, True),
        (0.5, 0.5),
        ((), []),
        ((1, 2), [1, 2]),
        (Kind.LIST_ITEM, "list_item"),
        (RelPath("a/b.md"), "a/b.md"),
        (Inner(new_name="x"), {"newName": "x"}),
        ((Inner(new_name="x"),), [{"newName": "x"}]),
        ({"snake_key": {"inner_key": 1}, "none": None}, {"snake_key": {"inner_key": 1}, "none": None}),
        ((None, 1), [None, 1]),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00Z"),
        (datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2))), "2026-01-31T12:00:00Z"),
    ],
)
def test_results__values(value: Any, wire: Any) -> None:
    """Every kind of value that a service gives has one form on the wire."""
    check(Outer(some_value=value), {"someValue": wire})


def test_results__declared_objects_are_renamed_and_others_are_not() -> None:
    """A mapping is ours where its properties are declared, and the user's where they are not."""
    schema = result({"someValue": result({"newName": text()}), "more": anything()})
    check(
        Outer(some_value={"new_name": "x"}, more={"new_name": "x"}),
        {"someValue": {"newName": "x"}, "more": {"new_name": "x"}},
        schema,
    )


def test_results__declared_arrays_are_always_there() -> None:
    """An array that a schema declares is present at every depth; other absent values are left out."""
    inner = result({"newName": text(), "list": texts()})
    schema = result({"someValue": array(inner), "warnings": texts(), "count": integer()})
    check(
        Outer(some_value=(Inner(new_name="x"),)),
        {"someValue": [{"newName": "x", "list": []}], "warnings": []},
        schema,
    )


def test_results__what_is_no_object() -> None:
    """A service that gives no object is a mistake of ours."""
    with pytest.raises(TypeError):
        wire_object("text", result({}))


def test_results__text_keeps_its_characters() -> None:
    """JSON text holds characters as themselves, on one line, and no number that JSON lacks."""
    assert json_text({"a": "ü\u2028\n"}) == '{"a":"ü\u2028\\n"}'
    with pytest.raises(ValueError, match="JSON compliant"):
        json_text(float("nan"))


def test_results__size() -> None:
    """A result above the limit is refused with both numbers."""
    check_size(10, 10)
    with pytest.raises(TooLarge) as caught:
        check_size(11, 10)
    assert caught.value.details == {"bytes": 11, "limit": 10}
