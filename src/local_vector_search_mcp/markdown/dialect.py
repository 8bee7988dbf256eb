"""The Markdown dialect: the one configured markdown-it parser and its version."""

from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.dollarmath.index import math_block_dollar
from mdit_py_plugins.footnote.index import footnote_def

DIALECT_VERSION = 1
"""Raised whenever the same bytes may give other elements, so that an index built before is built again."""

MAX_ITEM_DEPTH = 50
"""Items nested deeper belong to the item at this depth."""

MAX_CONTAINERS = 1000
"""Quotes, items and footnotes nested deeper are text of the innermost one."""


@cache
def block_parser() -> MarkdownIt:
    """The parser with every block rule of the dialect and no inline rules: what ``blocks`` must agree with."""
    parser = MarkdownIt("commonmark", {"maxNesting": 400})
    parser.enable("table")
    parser.block.ruler.before("reference", "footnote_def", footnote_def, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("fence", "math_block", math_block_dollar(allow_blank_lines=True), {"alt": []})
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def inline_parser() -> MarkdownIt:
    """The parser of inline content: CommonMark and strikethrough; wikilinks and footnote marks are tokens."""
    parser = MarkdownIt("commonmark")
    parser.enable("strikethrough")
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("link", "footnote_mark", _footnote_mark)
    return parser


def _wikilink(state: StateInline, silent: bool) -> bool:
    """``[[target]]``: one token whose content is the source as written."""
    start = state.pos
    if not state.src.startswith("[[", start):
        return False
    end = state.src.find("]]", start + 2)
    inner = state.src[start + 2 : end]
    if end <= start + 2 or "[" in inner or "]" in inner or "\n" in inner:
        return False
    if not silent:
        state.push("wikilink", "", 0).content = state.src[start : end + 2]
    state.pos = end + 2
    return True


def _footnote_mark(state: StateInline, silent: bool) -> bool:
    """``[^label]``: a token without content."""
    start = state.pos
    if not state.src.startswith("[^", start):
        return False
    end = state.src.find("]", start + 2)
    label = state.src[start + 2 : end]
    if end <= start + 2 or " " in label or "[" in label or "\n" in label:
        return False
    if not silent:
        state.push("footnote_mark", "", 0)
    state.pos = end + 1
    return True
