"""What a document mentions: its links, and the pictures that it shows with the lines where they stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from markdown_it.token import Token

from local_vector_search_mcp.book.chapters import Chapter, inline_tokens, parse_chapter
from local_vector_search_mcp.book.inlines import IMAGE_NAME
from local_vector_search_mcp.book.raw_html import prepare_raw
from local_vector_search_mcp.markdown.frontmatter import find_frontmatter
from local_vector_search_mcp.markdown.source import decode_source

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureMention:
    """A picture that a document shows: its target, decoded, and the lines of the file, from 1, of its block."""

    target: str
    wiki: bool
    first_line: int
    last_line: int


def document_links(path: str, data: bytes) -> list[tuple[str, str]]:
    """The links to files in a document in order, each with its kind (``link``, ``wikilink``) and its path, decoded.

    Raises:
        UnsupportedEncoding: It is not valid UTF-8.
    """
    chapter = parse_chapter(path, data, "")
    found: list[tuple[str, str]] = []
    for token in _inlines(chapter):
        if token.type == "link_open":
            found.append(("link", _file_part(str(token.attrs["href"]))))
        elif token.type == "wikilink":
            found.append(("wikilink", token.content.partition("|")[0].partition("#")[0].strip()))
    return [(kind, target) for kind, target in found if target and not _SCHEME.match(target)]


def pictures_shown(path: str, data: bytes) -> list[PictureMention]:
    """The pictures that a document shows, in order, remote ones included.

    Raises:
        UnsupportedEncoding: It is not valid UTF-8.
    """
    chapter = parse_chapter(path, data, "")
    front = find_frontmatter(decode_source(data))
    before = 0 if front is None else front.last + 1
    found: list[PictureMention] = []
    lines = (0, 0)
    for token in chapter.tokens:
        # Table cells have no lines of their own; their row does.
        if token.map:
            lines = (token.map[0], token.map[1])
        for target, wiki in _targets(chapter, token):
            mention = PictureMention(
                target=target, wiki=wiki, first_line=before + lines[0] + 1, last_line=before + max(lines)
            )
            found.append(mention)
    return found


def _inlines(chapter: Chapter) -> Iterator[Token]:
    for token in chapter.tokens:
        if token.type == "inline":
            yield from inline_tokens(chapter, token.content)


def _targets(chapter: Chapter, token: Token) -> Iterator[tuple[str, bool]]:
    if token.type == "html_block":
        yield from ((target, False) for target in _raw(token.content))
    if token.type != "inline":
        return
    for inner in inline_tokens(chapter, token.content):
        if inner.type == "image":
            yield _file_part(str(inner.attrs["src"])), False
        elif inner.type == "html_inline":
            yield from ((target, False) for target in _raw(inner.content))
        elif inner.type == "embed":
            name = inner.content.partition("|")[0].partition("#")[0].strip()
            if IMAGE_NAME.search(name):
                yield name, True


def _raw(html: str) -> list[str]:
    found: list[str] = []

    def take(attributes: dict[str, str]) -> str:
        found.append(_file_part(attributes.get("src", "").strip()))
        return ""

    prepare_raw(html, take)
    return [target for target in found if target]


def _file_part(target: str) -> str:
    """The decoded path of a target; a URL as it is."""
    return target if _SCHEME.match(target) else unquote(target.partition("#")[0].partition("?")[0])
