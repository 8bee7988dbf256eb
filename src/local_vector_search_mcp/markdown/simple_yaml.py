"""The YAML that most front matter is written in, read line by line.

The library's scanner takes most of a millisecond for ten lines, which adds up over thousands of files. This
reader knows single-line scalars, lists of them, blank lines and comment lines. Whatever it takes, the
library reads the same way; everything else it leaves alone, faulty text included.
"""

import re
from collections.abc import Callable

from local_vector_search_mcp.markdown.json_values import JsonValue

# More keys and values than this are counted by the library, which refuses too many.
_MOST_VALUES = 10_000

# A plain scalar begins with no indicator. Inside, ": " would make a mapping and " #" a comment.
_PLAIN = r"(?=[\w/(.$])(?:(?!: |:$| #).)+"
_FLOW_PLAIN = r"(?=[\w/(.$])[\w ./()$+\-]+"
_QUOTED = r"\"[^\"\\]*\"|'[^']*'"
_SCALAR = re.compile(rf"(?:(?P<quoted>{_QUOTED})|(?P<plain>{_PLAIN})) *")
_KEY = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_-]{0,99}):(?: +(?P<value>[^ ].*))? *")
_ITEM = re.compile(r"(?P<indent> *)- +(?P<value>[^ ].*)")
_FLOW = re.compile(r"\[(?P<items>.*)\] *")
_FLOW_ITEM = re.compile(rf" *(?:(?P<quoted>{_QUOTED})|(?P<plain>{_FLOW_PLAIN})) *(?P<end>,|$)")
_MISSING = object()


def load_simple_yaml(text: str, resolve: Callable[[str], JsonValue]) -> dict[str, JsonValue] | None:
    """The mapping that a text of simple YAML holds; None where it may be anything else.

    Args:
        text: Lines ending with ``\\n``.
        resolve: Gives the value of an unquoted scalar.
    """
    lines = text.split("\n")
    # A line holds three values at most, as in "key: [value]", and one more for each comma.
    # Whatever else ends a line, or has another meaning to the library, is not printable: tabs, controls, U+2028.
    if 3 * len(lines) + text.count(",") > _MOST_VALUES or not "".join(lines).isprintable():
        return None
    return _Reader(lines, resolve).read()


class _Reader:
    def __init__(self, lines: list[str], resolve: Callable[[str], JsonValue]) -> None:
        self.lines = lines
        self.resolve = resolve
        self.place = 0

    def read(self) -> dict[str, JsonValue] | None:
        """All keys, or None at the first line that is not simple."""
        result: dict[str, JsonValue] = {}
        while (line := self._next()) is not None:
            match = _KEY.fullmatch(line)
            if match is None or match["key"] in result:
                return None
            written = match["value"]
            value = self._list_below() if written is None else self._inline(written)
            if value is _MISSING:
                return None
            result[match["key"]] = value  # type: ignore[assignment]
        return result

    def _next(self) -> str | None:
        """The next line that is neither blank nor a comment; None at the end."""
        while self.place < len(self.lines):
            line = self.lines[self.place]
            self.place += 1
            if line.strip(" ") and not line.startswith("#"):
                return line
        return None

    def _inline(self, written: str) -> JsonValue | object:
        flow = _FLOW.fullmatch(written)
        if flow is not None:
            return self._flow(flow["items"])
        return self._scalar(written)

    def _scalar(self, written: str) -> JsonValue | object:
        match = _SCALAR.fullmatch(written)
        return _MISSING if match is None else self._value(match)

    def _value(self, match: re.Match[str]) -> JsonValue:
        quoted = match["quoted"]
        return quoted[1:-1] if quoted is not None else self.resolve(match["plain"].rstrip(" "))

    def _flow(self, items: str) -> JsonValue | object:
        result: list[JsonValue] = []
        if not items.strip(" "):
            return result
        pos = 0
        while True:
            match = _FLOW_ITEM.match(items, pos)
            if match is None:
                return _MISSING
            result.append(self._value(match))
            pos = match.end()
            if not match["end"]:
                return result

    def _list_below(self) -> JsonValue | object:
        """The list on the lines after a key without a value; no list is null."""
        result: list[JsonValue] = []
        indent: str | None = None
        while True:
            before = self.place
            line = self._next()
            match = _ITEM.fullmatch(line) if line is not None else None
            if line is None or match is None:
                self.place = before
                return result if indent is not None else None
            if indent is not None and match["indent"] != indent:
                return _MISSING
            indent = match["indent"]
            value = self._scalar(match["value"])
            if value is _MISSING:
                return _MISSING
            result.append(value)  # type: ignore[arg-type]
