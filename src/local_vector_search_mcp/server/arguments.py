"""From the arguments a client sent to the ones a service takes: unwrapped, renamed, coerced and checked by the schema.

Clients wrap arguments in ``request``, send JSON as strings, send ``null`` for what they leave out and write names in
snake_case. All of that is understood; everything else is refused by name. A message names arguments and bounds and
never repeats a value, which may be a whole document.
"""

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.server.json_types import is_array, is_object
from local_vector_search_mcp.server.schemas import Schema
from local_vector_search_mcp.server.toolspec import ToolSpec

COMMON_ALIASES: Mapping[str, str] = {
    "content": "markdown",
    "text": "markdown",
    "file": "path",
    "filePath": "path",
    "limit": "topK",
    "includeGlobs": "includeGlob",
    "excludeGlobs": "excludeGlob",
}
MAX_DEPTH = 200

_TYPE_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}


def read_arguments(spec: ToolSpec, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Give the arguments of a call as a service takes them: top-level names in snake_case, values checked.

    Arguments that were left out, or sent as ``null`` where they are optional, are absent.

    Raises:
        InvalidArgument: Something is unknown, missing, contradicting, of the wrong type or out of bounds.
    """
    check_json(raw)
    arguments = _unwrap(spec, raw)
    taken = {**spec.parameters, "properties": {**spec.parameters["properties"], **spec.accepted}}
    checked = _Checker(spec).object_(taken, arguments, "")
    return {snake_case(name): value for name, value in checked.items()}


def snake_case(name: str) -> str:
    """``includeGlob`` → ``include_glob``."""
    return re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)


def camel_case(name: str) -> str:
    """``include_glob`` → ``includeGlob``."""
    head, *tail = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in tail)


def check_json(value: Any) -> None:
    """Refuse what JSON text can hold and no argument may: lone surrogates, infinities, bottomless nesting."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, float) and not math.isfinite(item):
                raise InvalidArgument("An argument holds a number that is not finite; send a finite one.")
            elif is_object(item):
                for key in item:
                    _check_text(key)
                deeper.extend(item.values())
            elif is_array(item):
                deeper.extend(item)
        if not deeper:
            return
        level = deeper
    raise InvalidArgument(f"An argument is nested more than {MAX_DEPTH} levels deep; send a flatter value.")


def _check_text(value: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument("An argument holds a lone surrogate; send valid Unicode.") from error


def _unwrap(spec: ToolSpec, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Flatten ``{"request": {…}}``, which some clients make of flat arguments."""
    if set(raw) != {"request"} or "request" in spec.parameters["properties"]:
        return raw
    request = raw["request"]
    if isinstance(request, str):
        request = _parsed_json(request)
    if not is_object(request):
        raise InvalidArgument(f"request must be an object that holds the arguments of {spec.name}.")
    return request


class _Checker:
    """Reads values by their schemas; ``where`` names a value in messages, such as ``operations[0].kind``."""

    def __init__(self, spec: ToolSpec) -> None:
        self._spec = spec
        self._aliases = {**COMMON_ALIASES, **spec.aliases}

    def value(self, schema: Schema, given: Any, where: str) -> Any:
        if "anyOf" in schema:
            return self._one_of(schema["anyOf"], given, where)
        kind = schema["type"]
        value: Any = given
        if isinstance(given, str) and kind != "string":
            value = _parsed_json(given)
        if not _is_a(kind, value):
            hint = self._spec.hints.get(where)
            _refuse(where, f"must be {_TYPE_NAMES[kind]}" + (f"; {hint}" if hint else ""))
        match kind:
            case "string":
                return self._text(schema, value, where)
            case "integer":
                return _bounded(schema, int(value), where)
            case "array":
                return self._array(schema, value, where)
            case "object" if "properties" in schema:
                return self.object_(schema, value, where)
            case _:
                return value

    def object_(self, schema: Schema, given: Mapping[str, Any], where: str) -> dict[str, Any]:
        properties: Mapping[str, Schema] = schema["properties"]
        names = self._canonical_names(properties, given, where, closed=schema.get("additionalProperties") is not True)
        prefix = f"{where}." if where else ""
        checked = {
            canonical: self.value(properties[canonical], given[name], prefix + canonical)
            for canonical, name in names.items()
        }
        for required in schema.get("required", ()):
            if required not in checked:
                _refuse(prefix + required, f"is missing; {self._spec.name} needs it")
        return checked

    def _canonical_names(
        self, properties: Mapping[str, Schema], given: Mapping[str, Any], where: str, *, closed: bool
    ) -> dict[str, str]:
        """Canonical name → the name under which it was sent, without those sent as ``null``."""
        names: dict[str, str] = {}
        for name, value in given.items():
            canonical = self._canonical_name(properties, name)
            if canonical is None and not closed:
                continue
            if canonical is None:
                self._refuse_unknown(properties, name, where)
            if value is None:
                continue
            if canonical in names:
                both = f"{_shown(names[canonical])} and {_shown(name)}"
                raise InvalidArgument(f"{both} are the same argument; send {canonical} alone.")
            names[canonical] = name
        return names

    def _canonical_name(self, properties: Mapping[str, Schema], name: str) -> str | None:
        camel = camel_case(name)
        for candidate in (name, camel, snake_case(name), self._aliases.get(camel)):
            if candidate is not None and candidate in properties:
                return candidate
        return None

    def _refuse_unknown(self, properties: Mapping[str, Schema], name: str, where: str) -> NoReturn:
        owner = where or self._spec.name
        if not properties:
            raise InvalidArgument(f"{owner} takes no arguments; it was given {_shown(name)}.")
        folded = {known.casefold(): known for known in properties}
        near = difflib.get_close_matches(camel_case(name).casefold(), folded, n=1, cutoff=0.5)
        if near:
            raise InvalidArgument(f"{owner} has no argument {_shown(name)}; did you mean {folded[near[0]]}?")
        known = ", ".join(properties)
        raise InvalidArgument(f"{owner} has no argument {_shown(name)}; it takes {known}.")

    def _text(self, schema: Schema, value: str, where: str) -> str:
        options: Sequence[str] | None = schema.get("enum")
        if options is not None:
            name = where.rpartition(".")[2]
            value = self._spec.value_aliases.get(name, {}).get(value, value)
            if value not in options:
                _refuse(where, f"must be one of {', '.join(options)}")
        if len(value) < schema.get("minLength", 0):
            _refuse(where, "must not be empty" if schema["minLength"] == 1 else "is too short")
        if len(value) > schema.get("maxLength", len(value)):
            _refuse(where, f"must have at most {schema['maxLength']} characters")
        return value

    def _array(self, schema: Schema, value: list[Any], where: str) -> list[Any]:
        minimum, maximum = schema.get("minItems", 0), schema.get("maxItems", len(value))
        if not minimum <= len(value) <= maximum:
            bounds = f"{minimum} to {schema['maxItems']}" if "maxItems" in schema else f"at least {minimum}"
            _refuse(where, f"must have {bounds} item{'' if bounds.endswith(' 1') else 's'}")
        return [self.value(schema["items"], item, f"{where}[{index}]") for index, item in enumerate(value)]

    def _one_of(self, options: Sequence[Schema], value: Any, where: str) -> Any:
        kinds = [option["type"] for option in options]
        if isinstance(value, str):
            value = _parse_if_list(value, kinds)
        for option, kind in zip(options, kinds, strict=True):
            if _is_a(kind, value):
                return self.value(option, value, where)
        if isinstance(value, str) and "string" not in kinds:
            parsed = _parsed_json(value)
            if not isinstance(parsed, str):
                return self._one_of(options, parsed, where)
        return _refuse(where, f"must be {' or '.join(_TYPE_NAMES[kind] for kind in kinds)}")


def _is_a(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            whole = isinstance(value, float) and value.is_integer()
            return whole or (isinstance(value, int) and not isinstance(value, bool))
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, Mapping)


def _bounded(schema: Schema, value: int, where: str) -> int:
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        if minimum is None or maximum is None:
            _refuse(where, f"must be at most {maximum}" if minimum is None else f"must be at least {minimum}")
        _refuse(where, f"must be between {minimum} and {maximum}")
    return value


def _parsed_json(text: str) -> Any:
    """The value that a string holds as JSON, which is how some clients send what is no string; else the string."""
    try:
        parsed = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    check_json(parsed)
    return parsed


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse_if_list(value: str, kinds: Sequence[str]) -> Any:
    """A JSON list of strings sent as one string, where a plain string would be taken too."""
    if "array" not in kinds or "string" not in kinds or not re.match(r'\s*\[\s*"', value):
        return value
    try:
        parsed: Any = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if not is_array(parsed) or not parsed or not all(isinstance(item, str) for item in parsed):
        return value
    check_json(parsed)
    return parsed


def _shown(name: str) -> str:
    """A name a client made up, short enough and plain enough for a message."""
    printable = "".join(char if char.isprintable() else "?" for char in name[:60])
    return f"'{printable}'" + ("…" if len(name) > 60 else "")


def _refuse(where: str, what: str) -> NoReturn:
    raise InvalidArgument(f"{where} {what}.")
