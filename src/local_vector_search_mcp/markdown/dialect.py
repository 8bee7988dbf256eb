"""The Markdown dialect: the one configured markdown-it parser and its version."""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.dollarmath.index import math_block_dollar
from mdit_py_plugins.footnote.index import footnote_def

DIALECT_VERSION = 1
"""Raised whenever the same bytes may give other elements, so that an index built before is built again."""

MAX_ITEM_DEPTH = 50
"""Items nested deeper belong to the item at this depth."""

MAX_CONTAINERS = 1000
"""Quotes, items and footnotes nested deeper are text of the innermost one."""


# The tokens of deeper blocks vanish without an error; a higher limit would meet Python's own recursion limit.
_MAX_NESTING = 200
_WIKILINK = re.compile(r"\[\[[^\[\]\n]+\]\]")
_FOOTNOTE_MARK = re.compile(r"\[\^([^ \[\]\n]+)\]")

FOOTNOTES = "footnote_labels"
"""Where the labels of defined footnotes stand in a parser's environment; without it every mark is one."""


@cache
def block_parser() -> MarkdownIt:
    """The parser with every block rule of the dialect and no inline rules: what ``blocks`` agrees with."""
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    parser.enable("table")
    parser.block.ruler.before("reference", "footnote_def", footnote_def, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("fence", "math_block", math_block_dollar(allow_blank_lines=True), {"alt": []})
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.core.ruler.after("normalize", "last_line", _end_last_line)
    return parser


@cache
def inline_parser() -> MarkdownIt:
    """The parser of inline content: CommonMark and strikethrough; wikilinks and footnote marks are tokens."""
    parser = MarkdownIt("commonmark")
    parser.enable("strikethrough")
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("link", "footnote_mark", _footnote_mark)
    return parser


def _end_last_line(state: StateCore) -> None:
    """End the last line: the HTML rule reads beyond a text that has no final line ending."""
    if not state.src.endswith("\n"):
        state.src += "\n"


def _wikilink(state: StateInline, silent: bool) -> bool:
    """``[[target]]``: one token whose content is the source as written."""
    if state.src[state.pos] != "[":
        return False
    match = _WIKILINK.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("wikilink", "", 0).content = match.group()
    state.pos = match.end()
    return True


def _footnote_mark(state: StateInline, silent: bool) -> bool:
    """``[^label]``: a token without content."""
    if state.src[state.pos] != "[":
        return False
    match = _FOOTNOTE_MARK.match(state.src, state.pos)
    if match is None or match.group(1) not in state.env.get(FOOTNOTES, (match.group(1),)):
        return False
    if not silent:
        state.push("footnote_mark", "", 0)
    state.pos = match.end()
    return True
