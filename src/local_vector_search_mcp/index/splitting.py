"""Where to cut an element that is larger than a chunk: at line, then sentence, then word, then character boundaries."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from local_vector_search_mcp.markdown.elements import ElementKind

_ENDINGS: Final = b"\r\n"
_SENTENCE_END: Final = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？｡…]+[”’」』）]*")
_MAX_CLUSTER: Final = 32


def repeated_lead(data: bytes, kind: ElementKind, start: int, end: int, max_bytes: int) -> bytes:
    """What every later part of a split element begins with, so that it is understood without the first one.

    Returns:
        A table's header and delimiter row, or a fence's opening line with its language, with line endings; empty
        for every other element, and where it would take more than ``max_bytes``.
    """
    lines = 0
    if kind is ElementKind.TABLE:
        lines = 2
    elif kind is ElementKind.CODE and data[start:end].lstrip(b" ").startswith((b"```", b"~~~")):
        lines = 1
    at = start
    for _ in range(lines):
        at = _after_line(data, at, end)
    lead = data[start:at]
    return lead if 0 < len(lead) <= max_bytes and at < end else b""


def split_range(data: bytes, start: int, end: int, first_bytes: int, next_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut ``[start, end)`` into ranges that hold everything but the line endings and blanks at the cuts.

    Args:
        data: The UTF-8 source.
        start: First byte.
        end: Behind the last byte.
        first_bytes: Most bytes of the first range.
        next_bytes: Most bytes of every other range.
    """
    most = max(first_bytes, 16)
    while end - start > most:
        cut = _cut(data, start, start + most)
        stop = len(data[start:cut].rstrip(_ENDINGS)) + start
        if stop > start:
            yield start, stop
        start = cut
        most = max(next_bytes, 16)
    if start < end:
        yield start, end


def _cut(data: bytes, start: int, limit: int) -> int:
    """The best place in ``(start, limit]`` to begin the next part; one line ending may reach over the limit."""
    line = max(data.rfind(b"\n", start, limit + 1), data.rfind(b"\r", start, limit + 1))
    if line > start:
        after = line + 1
        return after + 1 if data[line : after + 1] == b"\r\n" else after
    while limit > start and data[limit] & 0xC0 == 0x80:
        limit -= 1
    text = data[start:limit].decode("utf-8")
    chars = 0
    for found in _SENTENCE_END.finditer(text):
        chars = found.end()
    if not chars:
        chars = max(text.rfind(" "), text.rfind("\t")) + 1
    if not chars:
        chars = _cluster_start(text, data[limit : limit + 4])
    return start + len(text[:chars].encode("utf-8"))


def _cluster_start(text: str, following: bytes) -> int:
    """How many characters to keep so that no mark is cut off from the letter that carries it."""
    after = following.decode("utf-8", "ignore")[:1]
    keep = len(text)
    for _ in range(_MAX_CLUSTER):
        joined = after and (unicodedata.combining(after) or after in "\u200d\ufe0f" or text[keep - 1] == "\u200d")
        if not joined or keep <= 1:
            return keep
        keep -= 1
        after = text[keep]
    return len(text)


def _after_line(data: bytes, start: int, end: int) -> int:
    places = [place for place in (data.find(b"\n", start, end), data.find(b"\r", start, end)) if place >= 0]
    if not places:
        return end
    line = min(places)
    return line + 2 if data[line : line + 2] == b"\r\n" else line + 1
