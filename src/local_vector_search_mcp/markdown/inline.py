"""Inline content as plain text."""

import re
from functools import cached_property
from typing import Any

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from local_vector_search_mcp.markdown.dialect import FOOTNOTES, inline_parser

_SPECIAL = re.compile(r"[\\`*_~<&\[\n\r]")
# The parser is not linear on every text, and nobody reads a heading or a cell of this size.
_MOST_CHARS = 20_000
# The parser reads a NUL as U+FFFD for good. Symbols of the same kind are read alike and can be told apart afterwards.
_NUL_STAND_INS = ("\ufffc", "\u2400", "\u2421", "\u25cc")
_ATX = re.compile(r"[ \t]*#{1,6}(?:[ \t]+|$)")
_ATX_CLOSE = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LINE = re.compile(r"\r\n|\r|\n")


class DefinedLabels:
    """The labels that a document defines for links and for footnotes; they decide what some brackets mean."""

    def __init__(self) -> None:
        self.links: list[str] = []  # As written, repeated ones included.
        self.footnotes: set[str] = set()

    @cached_property
    def environment(self) -> dict[str, Any]:
        """What the inline parser has to know. Asked for when the whole document has been read."""
        references = {normalizeReference(label): {"href": "", "title": ""} for label in self.links}
        return {"references": references, FOOTNOTES: self.footnotes}


def plain_text(markdown: str, labels: DefinedLabels | None = None) -> str:
    """What a reader sees of inline Markdown.

    Text and code content, alt text of images, entities and escapes resolved, a line break as one space;
    HTML tags and footnote marks dropped, wikilinks as written.

    Args:
        markdown: Inline content; above 20,000 characters it is given back as it is.
        labels: What the document defines. Without them no link definition is known, and every mark ``[^x]``
            counts as one of a footnote.
    """
    return _shown(markdown, labels, None).strip(" ")


def cell_text(markdown: str, labels: DefinedLabels | None = None) -> str:
    """The plain text of a table cell, in which ``<br>`` is a line break.

    Blanks at its ends that are written as character references stay: only so can a cell hold them.
    """
    return _shown(markdown, labels, _BREAK)


def _shown(markdown: str, labels: DefinedLabels | None, line_break: re.Pattern[str] | None) -> str:
    stripped = markdown.strip(" \t\r\n")
    if _SPECIAL.search(stripped) is None or len(stripped) > _MOST_CHARS:
        return stripped
    parts: list[str] = []
    environment = dict(labels.environment) if labels is not None else {}
    stand_in = next((sign for sign in _NUL_STAND_INS if sign not in stripped), "") if "\0" in stripped else ""
    if stand_in:
        stripped, environment = stripped.replace("\0", stand_in), _with_stand_in(environment, stand_in)
    for token in inline_parser().parseInline(_LINE.sub("\n", stripped), environment):
        _collect(token.children or [], parts, line_break)
    text = "".join(parts)
    return text.replace(stand_in, "\0") if stand_in else text


def _with_stand_in(environment: dict[str, Any], stand_in: str) -> dict[str, Any]:
    """The same with the labels that hold a NUL, or what it is read as, as they stand in the text that is parsed."""
    swap = str.maketrans({"\0": stand_in, "\ufffd": stand_in})
    references = environment.get("references", {})
    footnotes = environment.get(FOOTNOTES)
    result = {
        **environment,
        "references": {**references, **{key.translate(swap): references[key] for key in references}},
    }
    if footnotes is not None:
        result[FOOTNOTES] = footnotes | {label.translate(swap) for label in footnotes}
    return result


def heading_content(source: str) -> str:
    """The inline Markdown of a heading's own source, ATX or setext."""
    match = _ATX.match(source)
    if match is not None and not _LINE.search(source):
        return _ATX_CLOSE.sub("", source[match.end() :]).strip(" \t")
    lines = _LINE.split(source)
    return "\n".join(line.strip(" \t") for line in lines[:-1])


def _collect(tokens: list[Token], parts: list[str], line_break: re.Pattern[str] | None) -> None:
    for token in tokens:
        kind = token.type
        if kind in ("text", "code_inline", "text_special", "wikilink"):
            parts.append(token.content)
        elif kind in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif kind == "image":
            _collect(token.children or [], parts, line_break)
        elif kind == "html_inline" and line_break is not None and line_break.fullmatch(token.content):
            parts.append("\n")
