"""Undo by elements: what a change did to single elements, taken back in a document that has changed since.

Only elements that stand in the present document exactly as the change left them are touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from local_vector_search_mcp.editing.text_edits import TextEdit, TextEdits
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.source import ByteRange

_MAX_MATCHED = 2_000

_Key = tuple[ElementKind, bytes]


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Top-level elements [first, last) after the change that were [old_first, old_last) before it."""

    first: int
    last: int
    old_first: int
    old_last: int


def undo_elements(before: MarkdownDocument, after: MarkdownDocument, present: MarkdownDocument) -> bytes | None:
    """The present document with a change taken back.

    Args:
        before: The document before the change.
        after: As the change left it.
        present: As it is now.

    Returns:
        The new bytes; None where an element that the change made is not there unchanged, stands there more
        than once, or where the result would not be read as it should.
    """
    old, new, now = _keys(before), _keys(after), _keys(present)
    edits: list[TextEdit] = []
    expected = list(now)
    shift = 0
    for hunk in _hunks(new, old):
        place = _find(new, now, hunk)
        if place is None:
            return None
        edits.append(_edit(before, after, present, hunk, place))
        count = hunk.last - hunk.first
        replacement = old[hunk.old_first : hunk.old_last]
        expected[place + shift : place + shift + count] = replacement
        shift += len(replacement) - count
    try:
        result = TextEdits(edits).apply(present.source.data)
    except ValueError:
        # Two of the change's places are one place by now.
        return None
    return result if _keys(parse_bytes(result)) == expected else None


def _keys(document: MarkdownDocument) -> list[_Key]:
    data = document.source.data
    return [(element.kind, data[element.start : element.end]) for element in document.top_level]


def _hunks(new: Sequence[_Key], old: Sequence[_Key]) -> list[_Hunk]:
    head = _common(new, old)
    tail = _common(new[head:][::-1], old[head:][::-1])
    new_part, old_part = new[head : len(new) - tail], old[head : len(old) - tail]
    if len(new_part) + len(old_part) > _MAX_MATCHED:
        return [_Hunk(head, len(new) - tail, head, len(old) - tail)]
    matcher = SequenceMatcher(None, new_part, old_part, autojunk=False)
    return [
        _Hunk(head + first, head + last, head + old_first, head + old_last)
        for tag, first, last, old_first, old_last in matcher.get_opcodes()
        if tag != "equal"
    ]


def _common(left: Sequence[_Key], right: Sequence[_Key]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def _find(new: Sequence[_Key], now: Sequence[_Key], hunk: _Hunk) -> int | None:
    """Where the hunk's elements stand now: the one place, or the one with the same neighbours."""
    wanted = new[hunk.first : hunk.last]
    before = new[hunk.first - 1] if hunk.first else None
    after = new[hunk.last] if hunk.last < len(new) else None
    length = len(wanted)
    places = [
        place
        for place in range(len(now) - length + 1)
        if not length or (now[place] == wanted[0] and now[place : place + length] == wanted)
    ]

    def beside(place: int) -> tuple[bool, bool]:
        left = now[place - 1] if place else None
        right = now[place + length] if place + length < len(now) else None
        return left == before, right == after

    if length and len(places) == 1:
        return places[0]
    both = [place for place in places if all(beside(place))]
    if len(both) == 1 or length:
        return both[0] if len(both) == 1 else None
    for side, known in enumerate((before, after)):
        one = [place for place in places if known is not None and beside(place)[side]]
        if len(one) == 1:
            return one[0]
    return None


def _edit(
    before: MarkdownDocument, after: MarkdownDocument, present: MarkdownDocument, hunk: _Hunk, place: int
) -> TextEdit:
    old, new, now = before.top_level, after.top_level, present.top_level
    length = hunk.last - hunk.first
    if length and hunk.old_last > hunk.old_first:
        replacement = before.source.data[old[hunk.old_first].start : old[hunk.old_last - 1].end]
        return TextEdit(ByteRange(now[place].start, now[place + length - 1].end), replacement)
    # Something goes or comes back whole, with the gaps around it.
    taken = _with_gaps(present, now, place, place + length)
    known = _with_gaps(after, new, hunk.first, hunk.last)
    if taken.slice(present.source.data) == known.slice(after.source.data):
        return TextEdit(taken, _with_gaps(before, old, hunk.old_first, hunk.old_last).slice(before.source.data))
    return TextEdit(taken, _fitted(before, present, hunk, place, length))


def _fitted(before: MarkdownDocument, present: MarkdownDocument, hunk: _Hunk, place: int, length: int) -> bytes:
    """The old elements between the gaps they had, or those of the present document at its edges."""
    old, now = before.top_level, present.top_level
    data, here = before.source.data, present.source.data
    blank_line = (present.source.first_line_ending() or "\n").encode("ascii") * 2
    first, last = hunk.old_first, hunk.old_last
    at_start, at_end = place == 0, place + length == len(now)
    lead = here[present.source.bom_len : now[0].start] if at_start and now else b""
    tail = here[now[place + length - 1].end if place + length else present.source.bom_len :] if at_end else b""
    if first == last:
        if at_start or at_end:
            return lead if at_start and not at_end else tail
        return data[old[first - 1].end : old[first].start] if 0 < first < len(old) else blank_line
    if not at_start:
        lead = data[old[first - 1].end : old[first].start] if first else blank_line
    if not at_end:
        tail = data[old[last - 1].end : old[last].start] if last < len(old) else blank_line
    return lead + data[old[first].start : old[last - 1].end] + tail


def _with_gaps(document: MarkdownDocument, elements: Sequence[Element], first: int, last: int) -> ByteRange:
    """From the end of the element before to the start of the one after."""
    start = elements[first - 1].end if first else document.source.bom_len
    end = elements[last].start if last < len(elements) else len(document.source.data)
    return ByteRange(start, end)
