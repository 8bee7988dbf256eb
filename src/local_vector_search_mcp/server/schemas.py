"""Builders for the small subset of JSON Schema that tools are described in.

What the builders cannot say never reaches a client: no ``$ref``, no null branch, no list ``type``, no empty schema, no
``title``. Input objects are closed; output objects are open and carry no descriptions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Schema = dict[str, Any]


def text(
    description: str | None = None,
    *,
    enum: Sequence[str] | None = None,
    default: str | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
) -> Schema:
    """A string; lengths count characters."""
    return _schema(
        "string",
        description,
        enum=list(enum) if enum else None,
        default=default,
        minLength=min_length,
        maxLength=max_length,
    )


def integer(
    description: str | None = None,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    default: int | None = None,
) -> Schema:
    """A whole number with inclusive bounds."""
    return _schema("integer", description, minimum=minimum, maximum=maximum, default=default)


def number(description: str | None = None) -> Schema:
    """A finite number."""
    return _schema("number", description)


def boolean(description: str | None = None, *, default: bool | None = None) -> Schema:
    """``true`` or ``false``."""
    return _schema("boolean", description, default=default)


def array(
    items: Schema,
    description: str | None = None,
    *,
    min_items: int | None = None,
    max_items: int | None = None,
    default: Sequence[Any] | None = None,
) -> Schema:
    """A list of ``items``."""
    return _schema(
        "array",
        description,
        items=items,
        minItems=min_items,
        maxItems=max_items,
        default=list(default) if default is not None else None,
    )


def closed(properties: Mapping[str, Schema], *, required: Sequence[str] = ()) -> Schema:
    """The arguments of a tool: it takes exactly these."""
    return {**part(properties, required=required), "additionalProperties": False}


def part(properties: Mapping[str, Schema], *, required: Sequence[str] = (), description: str | None = None) -> Schema:
    """An object inside the arguments; it takes exactly these properties too."""
    return _schema("object", description, properties=dict(properties), required=list(required) or None)


def free(description: str | None = None) -> Schema:
    """An object whose keys belong to the user, such as front matter."""
    return _schema("object", description)


def either(*options: Schema, description: str | None = None) -> Schema:
    """A value that fits one of ``options``; never the top level of a tool's schema."""
    schema: Schema = {"anyOf": list(options)}
    if description is not None:
        schema["description"] = description
    return schema


def scalar(description: str | None = None) -> Schema:
    """A string, number or boolean."""
    return either(text(), number(), boolean(), description=description)


def anything() -> Schema:
    """An object of a result whose inner shape clients need not be told."""
    return {"type": "object"}


def result(properties: Mapping[str, Schema], *, required: Sequence[str] = ()) -> Schema:
    """An output object; every array that it declares is present in every result."""
    return _schema("object", None, properties=dict(properties), required=list(required) or None)


def texts() -> Schema:
    """A list of strings in a result."""
    return array(text())


def _schema(kind: str, description: str | None, **keywords: Any) -> Schema:
    schema: Schema = {"type": kind}
    if description is not None:
        schema["description"] = description
    schema.update({key: value for key, value in keywords.items() if value is not None})
    return schema
