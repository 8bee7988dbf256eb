"""Inline tokens as HTML and as plain text."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Final

from markdown_it.token import Token

from local_vector_search_mcp.book.links import BookLink
from local_vector_search_mcp.book.raw_html import embedded_media, prepare_raw
from local_vector_search_mcp.book.shelf import PictureRequest
from local_vector_search_mcp.book.workshop import Workshop

IMAGE_NAME: Final = re.compile(r"\.(png|jpe?g|webp|gif|svg)$", re.IGNORECASE)
_SIZE: Final = re.compile(r"(\d{1,5})(?:x(\d{1,5}))?")
_PIXELS: Final = re.compile(r"\s*(\d{1,5})(?:\.\d+)?\s*(?:px)?\s*")
_CJK: Final = re.compile(r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]")
_TAGS: Final = {"em": "em", "strong": "strong", "s": "s", "mark": "mark"}


@dataclass(slots=True, kw_only=True)
class InlineScope:
    """Where inline content stands: the document, and who takes its notes and embeds.

    ``note`` gives the HTML of a footnote call by label, or by content where it stands in the text.
    """

    path: str
    note: Callable[[str | None, str], str]
    embed: Callable[[str, str], str]
    closers: list[str] = field(default_factory=list[str])


def inline_html(workshop: Workshop, tokens: list[Token], scope: InlineScope) -> str:
    """Inline tokens as HTML that the sanitizer still has to clean."""
    parts: list[str] = []
    for index, token in enumerate(tokens):
        kind = token.type
        if kind in ("text", "text_special"):
            parts.append(_text(tokens, index))
        elif kind == "softbreak":
            parts.append(_soft_break(tokens, index))
        elif kind == "hardbreak":
            parts.append("<br>")
        elif kind == "code_inline":
            parts.append(f"<code>{escape(token.content, quote=False)}</code>")
        elif kind == "link_open":
            opening, closing = _link(workshop, workshop.targets.link(str(token.attrs["href"]), scope.path))
            parts.append(opening)
            scope.closers.append(closing)
        elif kind == "link_close":
            parts.append(scope.closers.pop() if scope.closers else "")
        elif kind == "image":
            parts.append(_image(workshop, token, scope))
        elif kind == "html_inline":
            parts.append(raw_html(workshop, token.content, scope.path))
        else:
            parts.append(_dialect_inline(workshop, token, scope))
    return "".join(parts)


def inline_text(tokens: list[Token]) -> str:
    """What a reader sees of inline tokens, without notes; a line break as such."""
    parts: list[str] = []
    for token in tokens:
        kind = token.type
        if kind in ("text", "text_special", "code_inline", "math_inline", "math_inline_double"):
            parts.append(token.content)
        elif kind == "softbreak":
            parts.append(" ")
        elif kind == "hardbreak" or (kind == "html_inline" and token.content.lower().startswith("<br")):
            parts.append("\n")
        elif kind == "image":
            parts.append(inline_text(token.children or []))
        elif kind in ("wikilink", "embed"):
            parts.append(wikilink_text(token.content))
    return "".join(parts)


def raw_html(workshop: Workshop, html: str, path: str) -> str:
    """A raw fragment with its pictures on the shelf; what shows moving things is named in a warning."""
    media = embedded_media(html)
    if media is not None:
        workshop.warnings.add(f"{path}: a raw <{media}> is left out; a page of paper cannot show it.")

    def picture(attributes: dict[str, str]) -> str:
        request = PictureRequest(
            target=attributes.get("src", "").strip(),
            from_path=path,
            alt=attributes.get("alt", ""),
            width_px=_pixels(attributes.get("width", "")),
            height_px=_pixels(attributes.get("height", "")),
        )
        return workshop.sanitizer.slot(workshop.shelf.html(request))

    return prepare_raw(html, picture)


def wikilink_text(content: str) -> str:
    """The text of ``[[content]]``: its alias, else its target with ``›`` before a heading."""
    target, separator, alias = content.partition("|")
    if separator and alias.strip():
        return alias.strip()
    path, _, anchor = target.partition("#")
    named = [part.strip() for part in [path, *anchor.split("#")] if part.strip() and not part.startswith("^")]
    return " › ".join(named) or target.strip()


def embed_picture(workshop: Workshop, content: str, path: str) -> str | None:
    """The slot of ``![[picture|size]]``; ``None`` where the embed names no picture."""
    target, _, rest = content.partition("|")
    name = target.partition("#")[0].strip()
    if not IMAGE_NAME.search(name):
        return None
    words = [word.strip() for word in rest.split("|") if word.strip()]
    size = next((match for word in reversed(words) if (match := _SIZE.fullmatch(word))), None)
    alt = next((word for word in words if not _SIZE.fullmatch(word)), "")
    request = PictureRequest(
        target=name,
        from_path=path,
        alt=alt,
        wiki=True,
        width_px=int(size.group(1)) if size else 0,
        height_px=int(size.group(2) or 0) if size else 0,
    )
    return workshop.sanitizer.slot(workshop.shelf.html(request))


def _dialect_inline(workshop: Workshop, token: Token, scope: InlineScope) -> str:
    match token.type:
        case "math_inline":
            return workshop.formula(token.content, inline=True, path=scope.path)
        case "math_inline_double":
            return workshop.formula(token.content, inline=True, path=scope.path)
        case "wikilink":
            target = token.content.partition("|")[0]
            opening, closing = _link(workshop, workshop.targets.wikilink(target, scope.path))
            return f"{opening}{escape(wikilink_text(token.content), quote=False)}{closing}"
        case "embed":
            picture = embed_picture(workshop, token.content, scope.path)
            return picture if picture is not None else scope.embed(token.content, scope.path)
        case "footnote_ref":
            return scope.note(str(token.meta["label"]), "")
        case "footnote_inline":
            return scope.note(None, token.content)
        case "comment":
            return ""
        case kind:
            name = _TAGS.get(kind.rpartition("_")[0], "")
            closing = "/" if token.nesting < 0 else ""
            return f"<{closing}{name}>" if name else escape(token.content, quote=False)


def _link(workshop: Workshop, link: BookLink) -> tuple[str, str]:
    if link.url:
        return f'<a{workshop.own_class("ext")} href="{escape(link.url)}">', "</a>"
    if link.anchor:
        kind = "xref" if link.other_chapter else "inref"
        return f"<a{workshop.own_class(kind)}{workshop.sanitizer.own_link(link.anchor)}>", "</a>"
    return "", ""


def _image(workshop: Workshop, token: Token, scope: InlineScope) -> str:
    alt = " ".join(inline_text(token.children or []).split())
    text, separator, size = alt.rpartition("|")
    match = _SIZE.fullmatch(size.strip()) if separator else None
    request = PictureRequest(
        target=str(token.attrs["src"]),
        from_path=scope.path,
        alt=text.strip() if match else alt,
        width_px=int(match.group(1)) if match else 0,
        height_px=int(match.group(2) or 0) if match else 0,
    )
    return workshop.sanitizer.slot(workshop.shelf.html(request))


def _soft_break(tokens: list[Token], index: int) -> str:
    """A line break in the source: a space, but none between characters of scripts that write without spaces."""
    before = tokens[index - 1].content[-1:] if index > 0 else ""
    after = tokens[index + 1].content[:1] if index + 1 < len(tokens) else ""
    if before and after and _CJK.match(before) and _CJK.match(after):
        return ""
    return _apart("\n", tokens, index)


def _text(tokens: list[Token], index: int) -> str:
    html = escape(tokens[index].content, quote=False)
    words = html.rstrip(" ")
    return words + _apart(html[len(words) :], tokens, index) if words else html


def _apart(space: str, tokens: list[Token], index: int) -> str:
    """The space at the end of a text: an element of its own where another element follows.

    WeasyPrint breaks a line after its first word where a text that ends with a space fits without that space only.
    """
    following = tokens[index + 1].type if index + 1 < len(tokens) else "text"
    if not space or following in ("text", "text_special", "softbreak", "hardbreak") or following.endswith("_close"):
        return space
    return f"<span>{space}</span>"


def _pixels(value: str) -> int:
    match = _PIXELS.fullmatch(value)
    return int(match.group(1)) if match else 0
