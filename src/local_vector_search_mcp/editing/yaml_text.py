"""YAML text: JSON values written as YAML, plain where that reads back the same, in the style that stands there."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.markdown.yaml_values import JsonValue, MetadataError, load_yaml

# What YAML 1.1 readers, of which there are many, take for booleans, numbers and times.
_OLD_YAML = re.compile(
    r"yes|no|on|off|=|<<|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|[-+]?[0-9_]*\.?[0-9_]*|0[xb][0-9a-f_]+",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NOT_PRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def is_collection(value: JsonValue) -> bool:
    """Whether a value is a list or an object with something in it."""
    return isinstance(value, (list, dict)) and bool(value)


def scalar_text(value: JsonValue, *, quote: str = "", in_flow: bool = False) -> str:
    """A scalar, or an empty list or object, on one line.

    Args:
        value: No list or object with something in it.
        quote: The quote that a string is put in where it can be: ``"``, ``'``, or none.
        in_flow: Whether it stands inside brackets or braces.
    """
    if not isinstance(value, str):
        return json.dumps(value)
    if quote == "'" and not _CONTROL.search(value) and not _NOT_PRINTABLE.search(value):
        return "'" + value.replace("'", "''") + "'"
    if not quote and is_plain(value, in_flow=in_flow):
        return value
    escaped = json.dumps(value, ensure_ascii=False)
    return _NOT_PRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", escaped)


def is_plain(text: str, *, in_flow: bool = False) -> bool:
    """Whether a string reads back as itself without quotes."""
    if _DATE.fullmatch(text):
        return _reads_as(f"k: {text}\n", text)
    if not text or _OLD_YAML.fullmatch(text) or _CONTROL.search(text) or _NOT_PRINTABLE.search(text):
        return False
    if in_flow:
        return _reads_as(f"k: [{text}, {{k: {text}}}]\n", [text, {"k": text}])
    return _reads_as(f"k: {text}\n", text) and _reads_as(f"k:\n  - {text}\n", [text])


def key_text(key: str) -> str:
    """A key: plain where it reads back so."""
    if key and not _CONTROL.search(key) and not _OLD_YAML.fullmatch(key) and not _NOT_PRINTABLE.search(key):
        try:
            if list(load_yaml(f"{key}: 1\n")) == [key]:
                return key
        except MetadataError:
            pass
    return scalar_text(key, quote='"')


def flow_text(value: JsonValue, *, quote: str = "") -> str:
    """Any value on one line, lists and objects in brackets and braces."""
    if isinstance(value, list):
        return "[" + ", ".join(flow_text(item, quote=quote) for item in value) + "]"
    if isinstance(value, dict):
        entries = [f"{_flow_key(key)}: {flow_text(item, quote=quote)}" for key, item in value.items()]
        return "{" + ", ".join(entries) + "}"
    return scalar_text(value, quote=quote, in_flow=True)


def block_lines(value: JsonValue, indent: int, *, quote: str = "") -> list[str]:
    """A list or object with something in it, one entry a line."""
    blanks = " " * indent
    lines: list[str] = []
    if isinstance(value, list):
        for item in value:
            if is_collection(item):
                inner = block_lines(item, indent + 2, quote=quote)
                lines += [f"{blanks}- {inner[0].lstrip(' ')}", *inner[1:]]
            else:
                lines.append(f"{blanks}- {scalar_text(item, quote=quote)}")
    elif isinstance(value, dict):
        for key, item in value.items():
            if is_collection(item):
                lines += [f"{blanks}{key_text(key)}:", *block_lines(item, indent + 2, quote=quote)]
            else:
                lines.append(f"{blanks}{key_text(key)}: {scalar_text(item, quote=quote)}")
    return lines


def literal_lines(text: str, indent: int) -> list[str] | None:
    """A string as a literal block: its header, then its lines; None where only quotes can hold it."""
    body = text.rstrip("\n")
    if (
        not body
        or "\r" in text
        or body[0] in " \n"
        or _NOT_PRINTABLE.search(text)
        or re.search(r"[\x00-\x08\x0b-\x1f]", text)
    ):
        return None
    ends = len(text) - len(body)
    header = {0: "|-", 1: "|"}.get(ends, "|+")
    blanks = " " * indent
    lines = [blanks + line if line else "" for line in body.split("\n")]
    return [header, *lines, *[""] * (ends - 1)]


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values are the same JSON, types included."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _flow_key(key: str) -> str:
    text = key_text(key)
    return text if _reads_as(f"k: {{{text}: 1}}\n", {key: 1}) else scalar_text(key, quote='"')


def _reads_as(text: str, value: JsonValue) -> bool:
    try:
        read: Mapping[str, JsonValue] = load_yaml(text)
    except MetadataError:
        return False
    return set(read) == {"k"} and same_json(read["k"], value)


def as_json_object(value: Mapping[str, object]) -> dict[str, JsonValue]:
    """A caller's object as one of JSON values.

    Raises:
        InvalidArgument: As ``as_json_value``.
    """
    return {_valid_text(str(key)): as_json_value(item) for key, item in value.items()}


def as_json_value(value: object) -> JsonValue:
    """A caller's value as a JSON value; tuples and mappings of any kind become lists and objects.

    Raises:
        InvalidArgument: It holds what JSON text cannot: lone surrogates, or values of other types.
    """
    if isinstance(value, str):
        return _valid_text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {_valid_text(str(key)): as_json_value(item) for key, item in entries.items()}
    if isinstance(value, Sequence):
        return [as_json_value(item) for item in cast("Sequence[object]", value)]
    raise InvalidArgument(f"A value of the type {type(value).__name__} is no JSON value.")


def _valid_text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument("A key or value holds a lone surrogate; send valid Unicode.") from error
    return text
