"""Raw HTML of documents, reduced to what a page of text may hold.

A chapter is cleaned as a whole, because raw HTML comes in fragments: a tag may open in one block and close in another.
What the book itself writes passes through the same cleaning. Its attributes begin with a secret of the run, so no
document can write one; whole pieces (pictures, code, formulas) are kept aside under a mark and put back afterwards.
"""

import re
import secrets
from collections.abc import Callable
from html import escape, unescape
from typing import Final

import nh3

_TEXT_TAGS: Final = (
    "a abbr b bdi bdo br cite code del dfn em i ins kbd mark q rp rt ruby s samp small span strong sub sup time tt u "
    "var wbr"
)
_BLOCK_TAGS: Final = (
    "address article aside blockquote caption center col colgroup dd details div dl dt figcaption figure footer h1 h2 "
    "h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul"
)
_TAGS: Final = frozenset((_TEXT_TAGS + " " + _BLOCK_TAGS).split())
# Dropped with what is in them; other unknown tags lose the tag alone.
_DROPPED: Final = frozenset({"script", "style", "title", "template", "noscript", "textarea", "select", "svg", "math"})
_EMBEDDED: Final = re.compile(r"<(iframe|video|audio|object|embed|svg|canvas|form)\b", re.IGNORECASE)
_ATTRIBUTES: Final = {
    "*": {"class", "id", "style", "lang", "dir", "align", "data-title", "data-short", "data-note"},
    "a": {"href", "name", "title"},
    "ol": {"start", "type", "reversed"},
    "li": {"value"},
    "td": {"colspan", "rowspan", "valign"},
    "th": {"colspan", "rowspan", "valign"},
    "col": {"span"},
    "colgroup": {"span"},
}
_OURS: Final = frozenset({"class", "style", "data-title", "data-short", "data-note"})
# A cell that claims to span a million columns would be laid out for hours.
_MOST: Final = {"colspan": 60, "rowspan": 1000, "span": 60, "start": 999_999, "value": 999_999}
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_IMG: Final = re.compile(r"""<img\b((?:[^>"']|"[^"]*"|'[^']*')*)>""", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"""([A-Za-z_:][-\w:.]*)\s*(?:=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_ID: Final = re.compile(r"""<[^>]*?\b(?:id|name)\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+)""", re.IGNORECASE)
_SLOT: Final = re.compile(r"\u27ea([0-9a-f]{16}):(\d+)\u27eb")


class Sanitizer:
    """Cleans the HTML of one book.

    Args:
        nonce: The secret of the run, 16 hex digits; a new one where none is given.
    """

    def __init__(self, nonce: str | None = None) -> None:
        self.nonce = nonce or secrets.token_hex(8)
        self._slots: list[str] = []

    def attribute(self, name: str, value: str) -> str:
        """An attribute of our own, with a leading space: ``class``, ``style``, ``id`` or ``data-``."""
        return f' {name}="{self.nonce}{escape(value)}"'

    def own_link(self, anchor: str) -> str:
        """The ``href`` attribute of a link to an anchor of the book, with a leading space."""
        return f' href="#{self.nonce}{escape(anchor)}"'

    def slot(self, html: str) -> str:
        """Text that stands for finished HTML until ``clean`` puts it in its place."""
        self._slots.append(html)
        return f"\u27ea{self.nonce}:{len(self._slots) - 1}\u27eb"

    def fill(self, html: str) -> str:
        """HTML with every slot filled, slots within slots included."""

        def put(match: re.Match[str]) -> str:
            if match.group(1) != self.nonce:
                return match.group(0)
            return self.fill(self._slots[int(match.group(2))])

        return _SLOT.sub(put, html)

    def clean(self, html: str, *, prefix: str, resolve: Callable[[str], str | None]) -> str:
        """The safe subset of one chapter, slots filled.

        Args:
            html: What the renderer wrote, raw fragments among it.
            prefix: Goes before every ``id`` of the document itself, so that chapters do not collide.
            resolve: A relative ``href`` of raw HTML to an anchor of the book or ``None``.
        """
        nonce = self.nonce

        def filtered(tag: str, attribute: str, value: str) -> str | None:
            if attribute == "href":
                return _href(value, nonce, resolve)
            if value.startswith(nonce):
                return value[len(nonce) :]
            if attribute in _OURS:
                return None
            if attribute in ("id", "name"):
                return f"{prefix}{value}"
            if attribute in _MOST:
                return str(min(int(value), _MOST[attribute])) if value.isascii() and value.isdigit() else None
            return value

        cleaned = nh3.clean(
            html,
            tags=set(_TAGS),
            clean_content_tags=set(_DROPPED),
            attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
            attribute_filter=filtered,
            link_rel=None,
            url_schemes={"http", "https", "mailto", "tel"},
        )
        return self.fill(cleaned)


def prepare_raw(html: str, picture: Callable[[dict[str, str]], str]) -> str:
    """A raw fragment without comments, each ``img`` replaced by what ``picture`` makes of its attributes."""
    return _IMG.sub(lambda match: picture(_attributes(match.group(1))), _COMMENT.sub("", html))


def raw_ids(html: str) -> list[str]:
    """The values of ``id`` and ``name`` in a raw fragment."""
    return [_value(match.group(1)) for match in _ID.finditer(html)]


def embedded_media(html: str) -> str | None:
    """The name of the first tag in a raw fragment that shows something no page of text can."""
    match = _EMBEDDED.search(html)
    return match.group(1).lower() if match else None


def _href(value: str, nonce: str, resolve: Callable[[str], str | None]) -> str | None:
    if value.startswith("#" + nonce):
        return "#" + value[1 + len(nonce) :]
    if _SCHEME.match(value):
        return value
    if value.startswith("//"):
        return None
    anchor = resolve(value)
    return None if anchor is None else f"#{anchor}"


def _attributes(text: str) -> dict[str, str]:
    return {match.group(1).lower(): _value(match.group(2) or "") for match in _ATTRIBUTE.finditer(text)}


def _value(text: str) -> str:
    quoted = len(text) >= 2 and text[0] in "\"'" and text[-1] == text[0]
    return unescape(text[1:-1] if quoted else text)
