"""The inline parser of books: CommonMark with everything that the dialect writes inside a line.

Strikethrough, ``$math$``, wikilinks and embeds, footnote marks, ``^[inline notes]``, Obsidian comments, highlights and
block ids, and bare web addresses.
"""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath.index import math_inline_dollar

from local_vector_search_mcp.markdown.link_scan import address_follows

MAX_INLINE_NESTING = 60
_LONGEST_ADDRESS = 4_000

_URL = re.compile(r"https?://[^\s<>\"'`|\\^{}\x00-\x1f]+")
_URL_TAIL = re.compile(r"[.,:;!?*_~'\")\]]+$")
_SCHEME = re.compile(r"(?<![\w/])https?$")
_BLOCK_ID = re.compile(r"[ \t]*\^([A-Za-z0-9-]+)[ \t]*$")


@cache
def inline_parser() -> MarkdownIt:
    """The parser; its tokens are those of markdown-it and the ones named in this module."""
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_INLINE_NESTING})
    parser.enable("strikethrough")
    ruler = parser.inline.ruler
    ruler.after("escape", "math_inline", _math)
    ruler.before("link", "wikilink", _wikilink)
    ruler.before("image", "embed", _embed)
    ruler.before("link", "footnote_ref", _footnote_ref)
    ruler.before("link", "footnote_inline", _footnote_inline)
    ruler.before("emphasis", "comment", _comment)
    ruler.before("emphasis", "highlight", _highlight)
    ruler.before("autolink", "bare_url", _bare_url)
    return parser


def parse_inline(content: str, env: dict[str, object]) -> list[Token]:
    """The inline tokens of a block's content; link references and footnotes are looked up in ``env``."""
    parser = inline_parser()
    tokens: list[Token] = []
    parser.inline.parse(content, parser, env, tokens)
    return tokens


def split_block_id(content: str) -> tuple[str, str | None]:
    """Inline content without the block id ``^id`` at its end, and that id."""
    match = _BLOCK_ID.search(content)
    if match is None or (match.start() > 0 and match.group(0)[0] not in " \t" and content[match.start() - 1] != "\n"):
        return content, None
    return content[: match.start()], match.group(1)


_dollars = math_inline_dollar(False, False, True)


def _math(state: StateInline, silent: bool) -> bool:
    """``$tex$``; what runs into a code span is no formula, but an amount or a variable."""
    start = state.pos
    if state.src[start] != "$" or not _dollars(state, True):
        return False
    end, state.pos = state.pos, start
    if "`" in state.src[start:end]:
        return False
    return _dollars(state, silent)


def _wikilink(state: StateInline, silent: bool) -> bool:
    return _double_bracket(state, silent, "[[", "wikilink")


def _embed(state: StateInline, silent: bool) -> bool:
    return _double_bracket(state, silent, "![[", "embed")


def _double_bracket(state: StateInline, silent: bool, opening: str, kind: str) -> bool:
    start = state.pos
    if not state.src.startswith(opening, start):
        return False
    inner_start = start + len(opening)
    end = state.src.find("]]", inner_start)
    inner = state.src[inner_start:end]
    if end <= inner_start or "[" in inner or "]" in inner or "\n" in inner:
        return False
    if state.src.startswith("(", end + 2) and address_follows(state.src[end + 2 : end + _LONGEST_ADDRESS].encode(), 0):
        return False
    if not silent:
        state.push(kind, "", 0).content = inner
    state.pos = end + 2
    return True


def _footnote_ref(state: StateInline, silent: bool) -> bool:
    """``[^label]`` of a footnote that is defined; any other stays text."""
    start = state.pos
    if not state.src.startswith("[^", start):
        return False
    end = state.src.find("]", start + 2)
    label = state.src[start + 2 : end]
    if end <= start + 2 or " " in label or "\n" in label:
        return False
    defined = state.env.get("footnotes", {}).get("refs", {})
    if f":{label}" not in defined:
        return False
    if not silent:
        state.push("footnote_ref", "", 0).meta = {"label": label}
    state.pos = end + 1
    return True


def _footnote_inline(state: StateInline, silent: bool) -> bool:
    """``^[text]``: a note that stands where it is called."""
    start = state.pos
    if not state.src.startswith("^[", start):
        return False
    end = parseLinkLabel(state, start + 1)
    if end < 0:
        return False
    if not silent:
        state.push("footnote_inline", "", 0).content = state.src[start + 2 : end]
    state.pos = end + 1
    return True


def _comment(state: StateInline, silent: bool) -> bool:
    """``%%text%%``: left out of books."""
    start = state.pos
    if not state.src.startswith("%%", start):
        return False
    end = state.src.find("%%", start + 2)
    if end < 0:
        return False
    if not silent:
        state.push("comment", "", 0)
    state.pos = end + 2
    return True


def _highlight(state: StateInline, silent: bool) -> bool:
    """``==text==``."""
    start = state.pos
    src = state.src
    if not src.startswith("==", start) or src.startswith("===", start):
        return False
    end = src.find("==", start + 2)
    if end <= start + 2 or src[start + 2].isspace() or src[end - 1].isspace() or src.startswith("===", end):
        return False
    if not silent:
        state.push("mark_open", "mark", 1)
        outer_max, state.pos, state.posMax = state.posMax, start + 2, end
        state.md.inline.tokenize(state)
        state.posMax = outer_max
        state.push("mark_close", "mark", -1)
    state.pos = end + 2
    return True


def _bare_url(state: StateInline, silent: bool) -> bool:
    """A web address as it stands in the text, without the punctuation that follows it.

    It is noticed at its colon, where the parser stops; its scheme is taken back from the text before.
    """
    if state.linkLevel > 0 or not state.src.startswith("://", state.pos):
        return False
    scheme = _SCHEME.search(state.pending)
    if scheme is None:
        return False
    match = _URL.match(state.src, state.pos - len(scheme.group(0)), state.posMax)
    url = _without_tail(match.group(0)) if match else ""
    target = state.md.normalizeLink(url)
    if len(url) <= len("https://") or not state.md.validateLink(target):
        return False
    if not silent:
        state.pending = state.pending[: scheme.start()]
        state.push("link_open", "a", 1).attrs = {"href": target}
        state.push("text", "", 0).content = url
        state.push("link_close", "a", -1)
    state.pos += len(url) - len(scheme.group(0))
    return True


def _without_tail(url: str) -> str:
    while tail := _URL_TAIL.search(url):
        kept = url[: tail.start()]
        # A closing parenthesis belongs to the address if it opened one.
        if tail.group(0).startswith(")") and kept.count("(") > kept.count(")"):
            return kept + ")"
        url = kept
    return url
