"""From a service's result to the JSON object of the wire: camelCase names, absent values left out, arrays always there.

The output schema says which keys are ours to rename. Keys of objects that belong to the user, such as front matter,
stay as they are.
"""

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any, Final

from local_vector_search_mcp.errors import TooLarge
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.server.arguments import camel_case
from local_vector_search_mcp.server.json_types import is_array, is_object
from local_vector_search_mcp.server.schemas import Schema

# Most values are of these very types, and go to the wire as they are.
_PLAIN: Final = frozenset({str, bool, int, float})


def wire_object(value: object, schema: Schema) -> dict[str, Any]:
    """The JSON object of a result.

    Args:
        value: A frozen dataclass, or a mapping that is on the way to be one.
        schema: The object's schema; arrays that it declares are present, empty where the value has none.
    """
    properties: Mapping[str, Schema] = schema.get("properties", {})
    wire: dict[str, Any] = {}
    for key, item in _fields(value):
        if item is not None:
            wire[key] = item if type(item) in _PLAIN else _wire_value(item, properties.get(key))
    for key, declared in properties.items():
        if declared.get("type") == "array" and key not in wire:
            wire[key] = []
    return wire


def json_text(value: Any) -> str:
    """Compact JSON, with every character as itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def check_size(size: int, limit: int) -> None:
    """Refuse a result that clients would answer by closing the connection.

    Raises:
        TooLarge: It has more than ``limit`` bytes.
    """
    if size > limit:
        raise TooLarge(
            f"The result has {size} bytes, more than the {limit} that one answer may carry; ask for less at a time "
            "(a smaller page, fewer levels, a narrower path).",
            details={"bytes": size, "limit": limit},
        )


def _fields(value: object) -> list[tuple[str, Any]]:
    """The names on the wire with the values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(key, getattr(value, name)) for name, key in _names(type(value))]
    if is_object(value):
        return [(camel_case(str(name)), item) for name, item in value.items()]
    raise TypeError(f"{type(value).__name__} is no result object")


@cache
def _names(kind: type) -> tuple[tuple[str, str], ...]:
    """The fields of a dataclass, each with its name on the wire."""
    return tuple((field.name, camel_case(field.name)) for field in dataclasses.fields(kind))


def _wire_value(value: object, schema: Schema | None) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    if isinstance(value, RelPath | PurePath):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, date):
        return value.isoformat()
    if is_array(value):
        items: Schema | None = schema.get("items") if schema else None
        return [_wire_value(item, items) for item in value]
    if schema is not None and "properties" in schema:
        return wire_object(value, schema)
    if is_object(value):
        return {str(key): _wire_value(item, None) for key, item in value.items()}
    return wire_object(value, {})
