"""Literal text inside one element's own bytes: where it occurs, and what is nearest where it does not."""

import difflib
import heapq
import re

from local_vector_search_mcp.editing.fragments import encode_text
from local_vector_search_mcp.editing.operations import ReplaceText
from local_vector_search_mcp.errors import Conflict, ConflictReason, TooLarge
from local_vector_search_mcp.markdown.elements import Element, MarkdownDocument
from local_vector_search_mcp.markdown.resolve import current_details
from local_vector_search_mcp.markdown.source import ByteRange

# One replacement stands in many places, so a small call could ask for any number of bytes.
MAX_NEW_BYTES = 16 * 1024 * 1024

_ENDING = re.compile(r"\r\n|\r|\n")
_SHOWN_CHARACTERS = 200
_SEARCHED_CHARACTERS = 200_000
_CLOSELY_COMPARED = 8


def find_pattern(text: str) -> re.Pattern[bytes]:
    """The pattern of a literal text in which every line ending fits every other.

    Raises:
        InvalidArgument: The text holds a lone surrogate.
    """
    parts = [re.escape(part) for part in encode_text(text, b"\n", keep_bom=True).split(b"\n")]
    return re.compile(rb"(?:\r\n|\r|\n)".join(parts))


def check_new_size(size: int) -> None:
    """Refuse replacements that would have more bytes all together than a document is likely to have.

    Raises:
        TooLarge: They have.
    """
    if size > MAX_NEW_BYTES:
        raise TooLarge(
            f"The replacements would have more than {MAX_NEW_BYTES} bytes all together; use a shorter text, or replace "
            "in fewer places.",
            details={"maxBytes": MAX_NEW_BYTES},
        )


def replace_in_element(
    document: MarkdownDocument, element: Element, operation: ReplaceText, ending: bytes
) -> tuple[tuple[ByteRange, bytes], ...]:
    """Replace a literal text in the own segments of an element; a match lies inside one segment.

    Returns:
        The segments that hold a match, each with its new bytes.

    Raises:
        Conflict: The text does not occur, or not as often as ``operation.count`` says.
        TooLarge: All replacements together would be.
    """
    pattern = find_pattern(operation.find)
    replacement = encode_text(operation.replace, ending)
    texts = [(segment, segment.slice(document.source.data)) for segment in element.segments]
    total = sum(1 for _, before in texts for _ in pattern.finditer(before))
    if total == 0:
        raise _not_found(element, operation.find)
    if total != operation.count:
        raise Conflict(
            f"The text occurs {total} times in {element.logical}, not {operation.count}; set count to {total}, or find "
            "a longer text that occurs once.",
            reason=ConflictReason.TEXT_COUNT,
            details={**current_details(element), "candidates": [], "found": total},
        )
    check_new_size(total * len(replacement))
    replaced = ((segment, pattern.subn(lambda _: replacement, before)) for segment, before in texts)
    return tuple((segment, after) for segment, (after, found) in replaced if found)


def _not_found(element: Element, find: str) -> Conflict:
    lines = _ENDING.split(element.text[:_SEARCHED_CHARACTERS])
    wanted = next((line for line in _ENDING.split(find) if line.strip()), find)
    closest = max(_promising(lines, wanted), key=lambda line: _likeness(line, wanted), default="")
    number = lines.index(closest)
    difference = _first_difference(closest, wanted)
    details: dict[str, object] = {
        **current_details(element),
        "candidates": [],
        "closestLine": closest[:_SHOWN_CHARACTERS],
        "line": element.lines[0] + number if len(element.segments) == 1 else element.lines[0],
        "firstDifference": difference,
    }
    return Conflict(
        f"The text is not in {element.logical}. The closest line is {_shown(closest)}; {difference} "
        "Copy the text from kb_read exactly, blanks included.",
        reason=ConflictReason.TEXT_NOT_FOUND,
        details=details,
    )


def _promising(lines: list[str], wanted: str) -> list[str]:
    """The few lines that share most with a text, found cheaply: comparing every line closely would take too long."""
    grams = {wanted[place : place + 3] for place in range(len(wanted[:1000]) - 2)}

    def shared(line: str) -> int:
        return sum(line[place : place + 3] in grams for place in range(len(line[:1000]) - 2))

    return heapq.nlargest(_CLOSELY_COMPARED, lines, key=shared)


def _likeness(line: str, wanted: str) -> float:
    line, wanted = line[:1000], wanted[:1000]
    matcher = difflib.SequenceMatcher(None, line, wanted, autojunk=False)
    longest = matcher.find_longest_match().size
    return longest / max(1, len(wanted)) + matcher.quick_ratio() / 10


def _first_difference(line: str, wanted: str) -> str:
    matcher = difflib.SequenceMatcher(None, line[:1000], wanted[:1000], autojunk=False)
    block = matcher.find_longest_match()
    if not block.size:
        return "they have nothing in common."
    if block.b > 0:
        before = line[: block.a][-20:]
        known, asked = wanted[block.b : block.b + 20], wanted[: block.b][-20:]
        return f"before {_shown(known)} it has {_shown(before)}, not {_shown(asked)}."
    rest_line, rest_wanted = line[block.a + block.size :], wanted[block.size :]
    if not rest_wanted:
        return "the first line is there, the lines after it differ."
    has = _shown(rest_line[:20]) if rest_line else "the line's end"
    return f"after {_shown(wanted[: block.size][-20:])} it has {has}, not {_shown(rest_wanted[:20])}."


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "…")
