"""The best place of a hit: the element to point to, and a short marked piece of text around the match. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from local_vector_search_mcp.index.chunks import ChunkElement
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.search.matches import Match

_MARK: Final = "**"
_CUT: Final = "…"
# A word longer than this is cut in its middle rather than left out.
_MAX_WORD_CHARS: Final = 40
# Elements that say what a document is about, not what stands in it; they are pointed to where nothing else matches.
_LESS_TELLING: Final = {ElementKind.FRONTMATTER: 0.5, ElementKind.DEFINITION: 0.9, ElementKind.HTML: 0.9}
_NOT_CONTENT: Final = frozenset({ElementKind.HEADING, ElementKind.FRONTMATTER, ElementKind.RULE})


def best_element(
    elements: Sequence[ChunkElement], matches: Sequence[Match], *, kinds: AbstractSet[ElementKind] = frozenset()
) -> ChunkElement:
    """The element that holds most of what was looked for; the innermost, then the first of equals.

    Args:
        elements: Of the chunk, in order; not empty.
        matches: In the chunk's text, in order.
        kinds: Where it is not empty and an element of these kinds is there, it is one of these.
    """
    allowed = [element for element in elements if element.kind in kinds] or list(elements)
    starts = [match.start for match in matches]
    best: ChunkElement | None = None
    best_worth = 0.0
    for element in allowed:
        inside = matches[bisect_left(starts, element.start) : bisect_right(starts, element.end)]
        worth = _worth(inside) * _LESS_TELLING.get(element.kind, 1.0)
        if worth > best_worth or (worth == best_worth and best is not None and _within(element, best)):
            best, best_worth = element, worth
    if best is not None and best_worth:
        return best
    return next((element for element in allowed if element.kind not in _NOT_CONTENT), allowed[0])


def make_snippet(text: str, matches: Sequence[Match], *, element: ChunkElement, max_bytes: int) -> str:
    """A piece of a chunk's text around the best match, on one line, matches marked with ``**``.

    Args:
        text: The chunk's text.
        matches: In the text, in order.
        element: The element that the hit points to; the piece lies in it or begins in it.
        max_bytes: Most bytes of the result in UTF-8, marks and signs of cutting included.
    """
    if max_bytes <= 0:
        return ""
    marks = _merged([match for match in matches if element.start <= match.start < element.end] or list(matches))
    cluster = _best_cluster(text, marks, max_bytes) if marks else (element.start, element.start)
    start, end = _window(text, cluster, element, max_bytes)
    shown_marks = _merged(matches)
    while True:
        snippet = _marked(text, start, end, shown_marks)
        excess = _size(snippet) - max_bytes
        if excess <= 0 or start >= end:
            return snippet if excess <= 0 else ""
        start, end = _shrunk(text, start, end, cluster, excess)


def _size(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def _worth(matches: Sequence[Match]) -> float:
    """The weight of distinct things found, a little more where they come often."""
    weights = {match.unit: match.weight for match in matches}
    return sum(weights.values()) * (1 + min(len(matches), 20) / 1000)


def _within(inner: ChunkElement, outer: ChunkElement) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


class _Mark(NamedTuple):
    start: int
    end: int
    weights: tuple[tuple[int, float], ...]


def _merged(matches: Sequence[Match]) -> list[_Mark]:
    """Matches that touch as one."""
    marks: list[_Mark] = []
    for match in matches:
        start, end, unit, weight = match
        if marks and start <= marks[-1].end:
            last = marks.pop()
            marks.append(_Mark(last.start, max(last.end, end), (*last.weights, (unit, weight))))
        else:
            marks.append(_Mark(start, end, ((unit, weight),)))
    return marks


def _window(text: str, cluster: tuple[int, int], element: ChunkElement, room: int) -> tuple[int, int]:
    """The characters to show around a cluster of matches, of ``room`` bytes, beginning with a word."""
    first, last = cluster
    if first == last:
        start = _first_word(text, first)
        return start, _end_for(text, start, room)
    left = max(0, room - _size(text[first:last]))
    behind = _size(text[last : last + left])
    # A third of the room goes to what stands before, and what is not used behind.
    start = _start_for(text, first, max(left // 3, left - behind))
    if start < element.start <= first:
        # What stands before the element belongs to something else; the room is better used after it.
        start = element.start
    start = _word_start(text, start, first)
    return start, _end_for(text, start, room)


def _best_cluster(text: str, marks: Sequence[_Mark], room: int) -> tuple[int, int]:
    """The stretch that fits and holds the largest weight of distinct things; the first and shortest of equals."""
    ends = _byte_ends(text, marks)
    starts = [end - _size(text[mark.start : mark.end]) for end, mark in zip(ends, marks, strict=True)]
    best = (marks[0].start, marks[0].end)
    best_worth = (-1.0, 0)
    counts: dict[int, int] = {}
    current = 0.0
    left = 0
    for right, mark in enumerate(marks):
        for unit, weight in mark.weights:
            current += 0.0 if counts.get(unit) else weight
            counts[unit] = counts.get(unit, 0) + 1
        # The window fits, and its first mark adds something.
        while left < right and (
            ends[right] - starts[left] + 2 * len(_MARK) * (right - left + 1) > room
            or all(counts[unit] > _times(marks[left], unit) for unit, _ in marks[left].weights)
        ):
            for unit, weight in marks[left].weights:
                counts[unit] -= 1
                current -= 0.0 if counts[unit] else weight
            left += 1
        worth = (round(current, 6), starts[left] - ends[right])
        if worth > best_worth:
            best, best_worth = (marks[left].start, mark.end), worth
    return best


def _times(mark: _Mark, unit: int) -> int:
    return sum(1 for number, _ in mark.weights if number == unit)


def _byte_ends(text: str, marks: Sequence[_Mark]) -> list[int]:
    """Where each mark ends, in bytes of UTF-8."""
    if text.isascii():
        return [mark.end for mark in marks]
    ends: list[int] = []
    at_char = at_byte = 0
    for mark in marks:
        at_byte += _size(text[at_char : mark.end])
        at_char = mark.end
        ends.append(at_byte)
    return ends


def _end_for(text: str, start: int, room: int) -> int:
    """Where a piece of so many bytes ends."""
    data = text[start : start + room].encode("utf-8")[:room]
    return start + len(data.decode("utf-8", errors="ignore"))


def _start_for(text: str, end: int, room: int) -> int:
    """Where a piece of so many bytes begins that ends before ``end``."""
    data = text[max(0, end - room) : end].encode("utf-8")
    kept = data[len(data) - room :] if len(data) > room else data
    return end - len(kept.decode("utf-8", errors="ignore"))


def _first_word(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _word_start(text: str, start: int, limit: int) -> int:
    """The next place from ``start`` on where a word begins, at ``limit`` at the latest."""
    if start == 0 or _is_boundary(text, start):
        return _first_word(text, start) if start < limit else start
    at = start
    while at < limit and at - start <= _MAX_WORD_CHARS and not _is_boundary(text, at):
        at += 1
    return _first_word(text, at) if at < limit and _is_boundary(text, at) else min(start, limit)


def _word_end(text: str, end: int, limit: int) -> int:
    """The last place up to ``end`` where a word ends, at ``limit`` at the earliest."""
    at = end
    while at > limit and end - at <= _MAX_WORD_CHARS and not _is_boundary(text, at):
        at -= 1
    if not _is_boundary(text, at):
        return end
    while at > limit and text[at - 1].isspace():
        at -= 1
    return at


def _is_boundary(text: str, at: int) -> bool:
    """Whether a word may be cut off here. Scripts that are written without blanks may be cut anywhere."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if not (before.isalnum() or before == "_") or not (after.isalnum() or after == "_"):
        return not (before in "'-" or after in "'-") or before.isspace() or after.isspace()
    return before > "\u0e00" or after > "\u0e00"


def _shrunk(text: str, start: int, end: int, cluster: tuple[int, int], excess: int) -> tuple[int, int]:
    """A smaller window: less of what stands behind the matches, then of what stands before, then of themselves."""
    first, last = cluster
    shorter = _end_without(text, start, end, excess)
    if shorter >= last:
        return start, _word_end(text, shorter, last)
    if start < first:
        return _word_start(text, min(first, start + max(1, excess // 2)), first), end
    if end > last:
        return start, last
    return start, max(start, min(shorter, end - 1))


def _end_without(text: str, start: int, end: int, excess: int) -> int:
    """The end of the window with at least so many bytes less."""
    if text.isascii():
        return max(start, end - excess)
    at = end
    while at > start and excess > 0:
        at -= 1
        excess -= _size(text[at])
    return at


def _marked(text: str, start: int, end: int, marks: Sequence[_Mark]) -> str:
    """The piece with its marks, blanks run together, and a sign where something was cut off."""
    end = _word_end(text, end, start) if end < len(text) else end
    pieces: list[str] = []
    at = start
    for mark in marks:
        if mark.start < start or mark.end > end:
            continue
        marked = text[mark.start : mark.end]
        # Strong emphasis in the source is as good a mark.
        stressed = text[mark.start - 2 : mark.start] == _MARK and text[mark.end : mark.end + 2] == _MARK
        pieces += [text[at : mark.start], marked if stressed or not marked.strip() else f"{_MARK}{marked}{_MARK}"]
        at = mark.end
    pieces.append(text[at:end])
    shown = " ".join("".join(pieces).split())
    if not shown:
        return ""
    return f"{_CUT if text[:start].strip() else ''}{shown}{_CUT if text[end:].strip() else ''}"
