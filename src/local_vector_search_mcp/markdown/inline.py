"""Inline content as plain text."""

import re

from markdown_it.token import Token

from local_vector_search_mcp.markdown.dialect import inline_parser

_SPECIAL = re.compile(r"[\\`*_~<>&\[\]!\n\r^]")
_ATX = re.compile(r"[ \t]*#{1,6}(?:[ \t]+|$)")
_ATX_CLOSE = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LINE = re.compile(r"\r\n|\r|\n")


def plain_text(markdown: str) -> str:
    """What a reader sees of inline Markdown.

    Text and code content, alt text of images, entities and escapes resolved, a line break as one space;
    HTML tags and footnote marks dropped, wikilinks as written.
    """
    stripped = markdown.strip(" \t\r\n")
    if _SPECIAL.search(stripped) is None:
        return stripped
    parts: list[str] = []
    for token in inline_parser().parseInline(_LINE.sub("\n", stripped)):
        _collect(token.children or [], parts)
    return "".join(parts).strip(" ")


def cell_text(markdown: str) -> str:
    """The plain text of a table cell, in which ``<br>`` is a line break.

    Blanks at its ends that are written as character references stay: only so can a cell hold them.
    """
    stripped = markdown.strip(" \t\r\n")
    if _SPECIAL.search(stripped) is None:
        return stripped
    parts: list[str] = []
    for token in inline_parser().parseInline(stripped):
        _collect(token.children or [], parts, _BREAK)
    return "".join(parts)


def heading_content(source: str) -> str:
    """The inline Markdown of a heading's own source, ATX or setext."""
    match = _ATX.match(source)
    if match is not None and not _LINE.search(source):
        return _ATX_CLOSE.sub("", source[match.end() :]).strip(" \t")
    lines = _LINE.split(source)
    return "\n".join(line.strip(" \t") for line in lines[:-1])


def _collect(tokens: list[Token], parts: list[str], line_break: re.Pattern[str] | None = None) -> None:
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
