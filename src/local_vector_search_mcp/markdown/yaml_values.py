"""YAML and TOML text to JSON values, within bounds.

YAML is read as events and put together here by the 1.2 core schema: that bounds nesting and alias
expansion before anything is built, and nothing that JSON cannot hold is ever made.
"""

import json
import math
import re
import tomllib
from collections.abc import Hashable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any

from local_vector_search_mcp.markdown.json_values import JsonValue
from local_vector_search_mcp.markdown.simple_yaml import load_simple_yaml

if TYPE_CHECKING:
    from ruamel.yaml.events import Event

__all__ = ["MAX_NESTING", "MAX_NODES", "JsonValue", "MetadataError", "load_toml", "load_yaml", "resolve_plain"]

MAX_NESTING = 64
MAX_NODES = 10_000

_INT_64 = 2**63
_MOST_DECIMAL_BITS = 4_000
_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TIMESTAMP = re.compile(
    r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
    r"(?:(?:[Tt]|[ \t]+)(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2}):(?P<S>[0-9]{2})(?:\.(?P<f>[0-9]*))?"
    r"(?:[ \t]*(?P<z>Z|(?P<s>[-+])(?P<zh>[0-9]{1,2})(?::?(?P<zm>[0-9]{2}))?))?)?"
)
_DATE_ONLY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset({"str", "int", "float", "bool", "null", "timestamp", "binary"})
_COLLECTION_TAGS = frozenset({"seq", "map", "set", "omap", "pairs"})


class MetadataError(Exception):
    """The text is not valid YAML or TOML, or is beyond the bounds; the message says why."""


def load_yaml(text: str) -> dict[str, JsonValue]:
    """The mapping that a YAML text holds; empty for an empty text.

    Raises:
        MetadataError: It is no YAML, is not one mapping, repeats a key, nests deeper than 64, or has more
            than 10,000 nodes after alias expansion.
    """
    simple = load_simple_yaml(text, resolve_plain)
    return load_any_yaml(text) if simple is None else simple


def load_any_yaml(text: str) -> dict[str, JsonValue]:
    """As ``load_yaml``, by the library alone."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml: Any = YAML(typ="safe", pure=True)
    try:
        value = _Composer().compose(yaml.parse(text))
    except YAMLError as error:
        raise MetadataError(_first_line(error)) from error
    # The library's scanner lets chr() fail on an escape beyond Unicode.
    except (ValueError, OverflowError) as error:
        raise MetadataError("an escape sequence or value is out of range") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MetadataError("it is not a mapping of keys to values")
    return value


def load_toml(text: str) -> dict[str, JsonValue]:
    """The table that a TOML text holds.

    Raises:
        MetadataError: It is no TOML, nests deeper than 64, or has more than 10,000 nodes.
    """
    try:
        loaded = tomllib.loads(text)
    # Not only TOMLDecodeError: an integer of thousands of digits is another ValueError.
    except ValueError as error:
        raise MetadataError(str(error).split(";", 1)[0]) from error
    except RecursionError as error:
        raise MetadataError(f"it nests deeper than {MAX_NESTING}") from error
    value = _TomlValues().convert(loaded, 1)
    assert isinstance(value, dict)
    return value


class _Built:
    """A value with what bounds it: its nodes and its height."""

    __slots__ = ("height", "key", "nodes", "value")

    def __init__(self, value: JsonValue, key: Hashable, nodes: int, height: int) -> None:
        self.value = value
        self.key = key
        self.nodes = nodes
        self.height = height


class _Open:
    """A collection whose end has not come yet."""

    __slots__ = ("anchor", "height", "items", "keys", "mapping", "nodes", "pending")

    def __init__(self, mapping: bool, anchor: str | None) -> None:
        self.mapping = mapping
        self.anchor = anchor
        self.items: list[JsonValue] = []
        self.keys: dict[str, JsonValue] = {}
        self.pending: _Built | None = None
        self.nodes = 1
        self.height = 1

    def add(self, built: _Built) -> None:
        """Take the next key, value or item."""
        self.nodes += built.nodes
        self.height = max(self.height, built.height + 1)
        if not self.mapping:
            self.items.append(built.value)
        elif self.pending is None:
            self.pending = built
        else:
            key = _key_text(self.pending)
            if key in self.keys:
                raise MetadataError(f"the key {key[:60]!r} appears twice")
            self.keys[key] = built.value
            self.pending = None

    def close(self) -> _Built:
        """The finished collection."""
        value: JsonValue = self.keys if self.mapping else self.items
        return _Built(value, None, self.nodes, self.height)


class _Composer:
    """Puts events together without recursion."""

    def __init__(self) -> None:
        self.anchors: dict[str, _Built] = {}
        self.open: list[_Open] = []
        self.nodes = 0
        self.root: _Built | None = None

    def compose(self, events: "Iterator[Event]") -> JsonValue:
        """The one document's value; None for an empty stream."""
        documents = 0
        for event in events:
            name = type(event).__name__
            if name == "ScalarEvent":
                self._finish(_scalar(event), getattr(event, "anchor", None))
            elif name in ("MappingStartEvent", "SequenceStartEvent"):
                self._begin(event, mapping=name == "MappingStartEvent")
            elif name in ("MappingEndEvent", "SequenceEndEvent"):
                finished = self.open.pop()
                self._finish(finished.close(), finished.anchor)
            elif name == "AliasEvent":
                self._alias(str(getattr(event, "anchor", "")))
            elif name == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise MetadataError("it holds more than one document")
        return self.root.value if self.root is not None else None

    def _begin(self, event: "Event", *, mapping: bool) -> None:
        _check_tag(event, _COLLECTION_TAGS)
        self.open.append(_Open(mapping, getattr(event, "anchor", None)))
        if len(self.open) > MAX_NESTING:
            raise MetadataError(f"it nests deeper than {MAX_NESTING}")
        self._count(1)

    def _alias(self, anchor: str) -> None:
        target = self.anchors.get(anchor)
        if target is None:
            raise MetadataError(f"the alias {anchor[:60]!r} stands for nothing that is complete")
        if len(self.open) + target.height - 1 > MAX_NESTING:
            raise MetadataError(f"it nests deeper than {MAX_NESTING}")
        self._count(target.nodes)
        self._add(target)

    def _finish(self, built: _Built, anchor: str | None) -> None:
        if built.nodes == 1 and not isinstance(built.value, (list, dict)):
            self._count(1)
        if anchor is not None:
            self.anchors[anchor] = built
        self._add(built)

    def _add(self, built: _Built) -> None:
        if self.open:
            self.open[-1].add(built)
        else:
            self.root = built

    def _count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise MetadataError(f"it has more than {MAX_NODES:,} values")


def _scalar(event: Any) -> _Built:
    text = _valid_text(event.value)
    tag = _check_tag(event, _SCALAR_TAGS)
    plain = event.implicit[0]
    if tag is None:
        value = resolve_plain(text) if plain else text
    elif tag in ("str", "binary"):
        value = text
    else:
        value = resolve_plain(text)
    return _Built(value, text, 1, 1)


def _check_tag(event: Any, known: frozenset[str]) -> str | None:
    tag = event.tag
    if tag is None or tag == "!":
        return None if tag is None else "str"
    name = str(tag).removeprefix(_TAG)
    if str(tag) == name or name not in known:
        raise MetadataError(f"the tag {str(tag)[:60]!r} is not allowed")
    return name


def resolve_plain(text: str) -> JsonValue:
    """The value of an unquoted scalar by the YAML 1.2 core schema; timestamps become ISO strings."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INT.fullmatch(text):
        return _small(text, 10)
    if _OCTAL.fullmatch(text):
        return _small(text, 8)
    if _HEX.fullmatch(text):
        return _small(text, 16)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    if _NOT_FINITE.fullmatch(text):
        return text
    return _timestamp(text)


def _small(text: str, base: int) -> JsonValue:
    # Larger integers pass through no JSON reader unharmed, so they stay text.
    if len(text) > 70:
        return text
    number = int(text, base)
    return number if -_INT_64 <= number < _INT_64 else text


def _timestamp(text: str) -> str:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return text
    try:
        if match["H"] is None:
            return (
                date(int(match["y"]), int(match["m"]), int(match["d"])).isoformat()
                if _DATE_ONLY.fullmatch(text)
                else text
            )
        zone = None
        if match["z"] == "Z":
            zone = UTC
        elif match["z"]:
            offset = timedelta(hours=int(match["zh"]), minutes=int(match["zm"] or 0))
            zone = timezone(-offset if match["s"] == "-" else offset)
        micro = int((match["f"] or "").ljust(6, "0")[:6])
        parts = [int(match[name]) for name in ("y", "m", "d", "H", "M", "S")]
        return datetime(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], micro, zone).isoformat()
    except ValueError:
        return text


def _key_text(built: _Built) -> str:
    if isinstance(built.key, str):
        return built.key
    return json.dumps(built.value, ensure_ascii=False)


def _valid_text(text: str) -> str:
    # Escapes can write lone surrogates, which no UTF-8 text can hold.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _first_line(error: Exception) -> str:
    problem = getattr(error, "problem", None) or str(error).strip().split("\n", 1)[0]
    mark = getattr(error, "problem_mark", None)
    # The opening fence is line 1 of the document.
    return f"{problem} (line {mark.line + 2})" if mark is not None else str(problem)


class _TomlValues:
    def __init__(self) -> None:
        self.nodes = 0

    def convert(self, value: Any, depth: int) -> JsonValue:
        """The JSON form of a TOML value."""
        raw = value
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise MetadataError(f"it has more than {MAX_NODES:,} values")
        if isinstance(value, (dict, list)) and depth > MAX_NESTING:
            raise MetadataError(f"it nests deeper than {MAX_NESTING}")
        if isinstance(value, list):
            items: list[Any] = raw
            return [self.convert(item, depth + 1) for item in items]
        if isinstance(value, dict):
            table: dict[str, Any] = raw
            self.nodes += len(table)
            return {key: self.convert(item, depth + 1) for key, item in table.items()}
        if isinstance(value, (datetime, date, time)):
            return value.isoformat()
        if isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            if -_INT_64 <= value < _INT_64:
                return value
            # Decimal digits of a number of any length would take quadratic time.
            return str(value) if value.bit_length() < _MOST_DECIMAL_BITS else hex(value)
        return value if math.isfinite(value) else str(value)
