"""Link reference definitions: label, destination and title over as many lines as they need.

CommonMark 0.31.2, 4.7 Link reference definitions.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from markdown_it.common.normalize_url import normalizeLink, validateLink
from markdown_it.common.utils import unescapeAll

from local_vector_search_mcp.markdown.table_rows import WHITESPACE

_MAX_OPEN_PARENTHESES = 32
_LABEL_STOP = re.compile(r"[\[\]\\]")
_SPACE = re.compile(r"[ \t]*")
_IN_ANGLES = re.compile(r"[^<>\\\n]*(?:\\[\s\S][^<>\\\n]*)*")
# A NUL is read as U+FFFD and so is no control character.
_BARE = re.compile(r"[^\x01-\x20\x7f\\()]+")
_TITLE = {
    '"': re.compile(r'[^"\\]*(?:\\[\s\S][^"\\]*)*'),
    "'": re.compile(r"[^'\\]*(?:\\[\s\S][^'\\]*)*"),
    "(": re.compile(r"[^()\\]*(?:\\[\s\S][^()\\]*)*"),
}
_CLOSING = {'"': '"', "'": "'", "(": ")"}
_SUSPECT = re.compile(r"script|file|data|[&\\]", re.IGNORECASE)

NextLine = Callable[[], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkDefinition:
    """A definition found at the start of a text.

    Attributes:
        lines: How many lines it takes.
        label: As written.
        destination: Character range in the text, without angle brackets.
        title: As written, without its quotes; empty where there is none.
    """

    lines: int
    label: str
    destination: tuple[int, int]
    title: str


class _Text:
    """The lines read so far, each ending with ``\\n`` and without its indentation."""

    __slots__ = ("_batch", "more", "text")

    def __init__(self, first: str, more: NextLine) -> None:
        self.text = first
        self.more = more
        self._batch = 1

    def extend(self) -> bool:
        """Read on; False where the paragraph is over.

        Lines come in growing batches, so that a text of many lines is put together in linear time.
        """
        lines: list[str] = []
        for _ in range(self._batch):
            line = self.more()
            if line is None:
                break
            lines.append(line)
        if not lines:
            return False
        self.text += "".join(lines)
        self._batch *= 2
        return True

    def line_count(self, pos: int) -> int:
        """How many lines the text before a position takes."""
        return self.text.count("\n", 0, pos - 1) + 1

    def skip_space(self, pos: int) -> int:
        """Past spaces, tabs and line endings, reading on at each of these."""
        while True:
            match = _SPACE.match(self.text, pos)
            pos = match.end() if match else pos
            if pos >= len(self.text) or self.text[pos] != "\n":
                return pos
            pos += 1
            if pos == len(self.text):
                self.extend()


def read_definition(first: str, more: NextLine) -> LinkDefinition | None:
    """The link reference definition that a block starts with.

    Args:
        first: The block's first line from its ``[``, with ``\\n``.
        more: Gives the next line in the same way, or None where the paragraph would end.
    """
    text = _Text(first, more)
    label_end = _label_end(text)
    if label_end is None or not text.text.startswith(":", label_end + 1):
        return None
    start = text.skip_space(label_end + 2)
    # A destination stays on its line; a backslash before the line's end takes that with it.
    found = _destination(text.text, start, text.text.find("\n", start) + 1 or len(text.text))
    if found is None or not _allowed(text.text[found[0] : found[1]]):
        return None
    end = found[2]
    title = _title(text, end)
    written = ""
    if title is not None and _rest_is_blank(text.text, title[1]):
        end = title[1]
        written = text.text[title[0] + 1 : end - 1]
    # An empty title with anything after it spoils the definition; every other title is given back to the paragraph.
    elif not _rest_is_blank(text.text, end) or (title is not None and title[1] == title[0] + 2):
        return None
    label = text.text[1:label_end]
    if not label.strip(WHITESPACE):
        return None
    return LinkDefinition(lines=text.line_count(end), label=label, destination=(found[0], found[1]), title=written)


def _label_end(text: _Text) -> int | None:
    pos = 1
    while True:
        match = _LABEL_STOP.search(text.text, pos)
        if match is None:
            pos = max(pos, len(text.text))
            if not text.extend():
                return None
            continue
        char = match.group()
        pos = match.end()
        if char == "[":
            return None
        if char == "]":
            return match.start()
        # A backslash takes the next character with it, the end of a line included.
        pos += 1


def _destination(text: str, start: int, limit: int) -> tuple[int, int, int] | None:
    """The range of a destination without angle brackets, and where it ends with them."""
    if text.startswith("<", start):
        match = _IN_ANGLES.match(text, start + 1, limit)
        end = match.end() if match else start + 1
        return (start + 1, end, end + 1) if text.startswith(">", end, limit) else None
    pos = start
    level = 0
    while pos < limit:
        match = _BARE.match(text, pos, limit)
        if match is not None:
            pos = match.end()
            continue
        char = text[pos]
        if char == "\\" and pos + 1 < limit and text[pos + 1] != " ":
            pos += 2
            continue
        if char == "(":
            level += 1
            if level > _MAX_OPEN_PARENTHESES:
                return None
        elif char == ")":
            if level == 0:
                break
            level -= 1
        else:
            break
        pos += 1
    if pos == start or level != 0:
        return None
    return start, pos, pos


def _allowed(destination: str) -> bool:
    """Whether the parser takes a destination: ``javascript:`` and its like make no definition."""
    return _SUSPECT.search(destination) is None or validateLink(normalizeLink(unescapeAll(destination)))


def _title(text: _Text, destination_end: int) -> tuple[int, int] | None:
    """The range of a title, quotes included, that follows a destination; None without one."""
    start = text.skip_space(destination_end)
    if start == destination_end or start >= len(text.text):
        return None
    opening = text.text[start]
    if opening not in _TITLE:
        return None
    pos = start + 1
    while True:
        match = _TITLE[opening].match(text.text, pos)
        pos = match.end() if match else pos
        if pos < len(text.text):
            return (start, pos + 1) if text.text[pos] == _CLOSING[opening] else None
        if not text.extend():
            return None


def _rest_is_blank(text: str, pos: int) -> bool:
    match = _SPACE.match(text, pos)
    end = match.end() if match else pos
    return end >= len(text) or text[end] == "\n" or text[pos - 1] == "\n"
