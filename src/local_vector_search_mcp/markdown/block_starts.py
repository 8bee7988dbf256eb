"""What a line must look like to begin a block: headings, rules, fences, markers, HTML, display math.

Every function looks at one line from the position of its first character that is no space or tab.
Indentation is the caller's business. CommonMark 0.31.2, chapters 4 and 5.
"""

import re
from typing import NamedTuple

from markdown_it.common.html_blocks import block_names

HASH, DOLLAR, PLUS, STAR, MINUS = b"#$+*-"
COLON, LESS, EQUALS, GREATER = b":<=>"
OPEN_BRACKET, CARET, UNDERSCORE, BACKTICK = b"[^_`"
PIPE, TILDE, SPACE, TAB = b"|~ \t"
ZERO, NINE = b"09"

_HEADING = re.compile(rb"(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(rb"(?:=+|-+)[ \t]*$")
_FENCE = re.compile(rb"(`{3,})[^`]*$|(~{3,})")
_ORDERED = re.compile(rb"([0-9]{1,9})[.)](?=[ \t]|$)")
_FOOTNOTE = re.compile(rb"\[\^[^ \]]+\]:")
_MATH_LABEL_REVERSED = re.compile(r"\s*\)[^)$\r\n]+?\(\s*\${2}")

# Tag names are ASCII, so that case folding does not take a long s for an s; the white space after them is not.
_HTML_RAW = re.compile(r"<(?a:script|pre|style|textarea)(?=\s|>|$)", re.IGNORECASE)
_HTML_DECLARATION = re.compile(r"<![A-Za-z]")
_HTML_BLOCK = re.compile(r"</?(?a:" + "|".join(block_names) + r")(?=\s|/?>|$)", re.IGNORECASE)
# Possessive, because nothing that is given back could match: a line of many attributes costs no memory.
_HTML_TAG = re.compile(
    r"""(?:<[A-Za-z][A-Za-z0-9-]*+
        (?:\s++[a-zA-Z_:][a-zA-Z0-9:._-]*+(?:\s*+=\s*+(?:[^"'=<>`\x00-\x20]++|'[^']*+'|"[^"]*+"))?+)*+
        \s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>)\s*+$""",
    re.VERBOSE,
)
_HTML_RAW_END = re.compile(rb"</(?:script|pre|style|textarea)>", re.IGNORECASE)
_COMMENT_END = re.compile(rb"-->")
_INSTRUCTION_END = re.compile(rb"\?>")
_DECLARATION_END = re.compile(rb">")
_CDATA_END = re.compile(rb"\]\]>")


class Fence(NamedTuple):
    """An opening code fence."""

    marker: int
    length: int


class HtmlStart(NamedTuple):
    """The first line of an HTML block.

    ``end`` finds the end condition in a line; None means that a blank line ends the block.
    """

    end: re.Pattern[bytes] | None
    interrupts_paragraph: bool


def heading_level(line: bytes, pos: int) -> int:
    """The level of an ATX heading; 0 where the line is none."""
    match = _HEADING.match(line, pos)
    return match.end() - pos if match else 0


def underline_level(line: bytes, pos: int) -> int:
    """The level that a setext underline gives; 0 where the line is none."""
    if line[pos] not in (EQUALS, MINUS) or _UNDERLINE.match(line, pos) is None:
        return 0
    return 1 if line[pos] == EQUALS else 2


def fence_start(line: bytes, pos: int) -> Fence | None:
    """The code fence that a line opens."""
    match = _FENCE.match(line, pos)
    if match is None:
        return None
    return Fence(line[pos], match.end(1 if match.group(1) else 2) - pos)


def closes_fence(line: bytes, pos: int, fence: Fence) -> bool:
    """Whether a line closes a fence."""
    if line[pos] != fence.marker:
        return False
    rest = line[pos:].lstrip(bytes((fence.marker,)))
    return len(line) - pos - len(rest) >= fence.length and not rest.strip(b" \t")


def bullet_end(line: bytes, pos: int) -> int:
    """The position after a bullet marker; 0 where there is none."""
    return pos + 1 if pos + 1 == len(line) or line[pos + 1] in b" \t" else 0


def ordered_marker(line: bytes, pos: int) -> tuple[int, int]:
    """The position after an ordered list marker and its number; (0, 0) where there is none."""
    match = _ORDERED.match(line, pos)
    return (match.end(), int(match.group(1))) if match else (0, 0)


def footnote_end(line: bytes, pos: int) -> int:
    """The position after a footnote definition's ``[^label]:``; 0 where there is none."""
    match = _FOOTNOTE.match(line, pos)
    return match.end() if match else 0


def html_start(line: bytes, pos: int) -> HtmlStart | None:
    """The HTML block that a line starting with ``<`` begins."""
    text = line[pos:].decode("utf-8").replace("\0", "\ufffd")
    if _HTML_RAW.match(text):
        return HtmlStart(_HTML_RAW_END, True)
    if text.startswith("<!--"):
        return HtmlStart(_COMMENT_END, True)
    if text.startswith("<?"):
        return HtmlStart(_INSTRUCTION_END, True)
    if _HTML_DECLARATION.match(text):
        return HtmlStart(_DECLARATION_END, True)
    if text.startswith("<![CDATA["):
        return HtmlStart(_CDATA_END, True)
    if _HTML_BLOCK.match(text):
        return HtmlStart(None, True)
    if _HTML_TAG.match(text):
        return HtmlStart(None, False)
    return None


def math_ends_on_first_line(line: bytes, pos: int) -> bool | None:
    """Whether a line that starts with ``$$`` holds a whole display; None where it can begin none."""
    text = line[pos:].decode("utf-8")
    stripped = text.strip()
    if len(stripped) <= 3:
        return False
    if stripped.endswith("$$") or _MATH_LABEL_REVERSED.match(text[::-1]):
        return True
    return None if "$$" in text[2:] else False


def closes_math(line: bytes) -> bool:
    """Whether a later line ends a display: by ``$$``, or by ``$$`` and a label in parentheses."""
    if b"$$" not in line:
        return False
    text = line.decode("utf-8")
    return text.strip().endswith("$$") or _MATH_LABEL_REVERSED.match(text[::-1]) is not None
