"""Chapters: each document as tokens, with its headings and everything else that a link may lead to."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from markdown_it.token import Token

from local_vector_search_mcp.book.inline_rules import parse_inline, split_block_id
from local_vector_search_mcp.book.raw_html import raw_ids
from local_vector_search_mcp.markdown.dialect import block_parser
from local_vector_search_mcp.markdown.frontmatter import NO_METADATA, Metadata, find_frontmatter, parse_metadata
from local_vector_search_mcp.markdown.inline import plain_text
from local_vector_search_mcp.markdown.links import heading_slug
from local_vector_search_mcp.markdown.source import SourceText, decode_source

_OWN_ID: Final = re.compile(r"[ \t]*\{#([^\s{}]+)\}[ \t]*$")


@dataclass(slots=True, kw_only=True)
class Heading:
    """A heading at the top level of a chapter; ``number`` is empty where sections are not numbered."""

    level: int
    text: str
    content: str
    anchor: str
    number: str = ""


@dataclass(slots=True, kw_only=True)
class Chapter:
    """One document, parsed but for its inline content.

    ``env`` holds its link references and footnotes; ``headings`` is keyed by the index of the heading's token.
    """

    path: str
    prefix: str
    metadata: Metadata
    tokens: list[Token]
    env: dict[str, object]
    lines: list[str]
    headings: dict[int, Heading] = field(default_factory=dict[int, Heading])
    anchors: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def anchor(self) -> str:
        """The anchor of the chapter itself."""
        return f"{self.prefix}top"

    def anchor_for(self, fragment: str) -> str:
        """Where ``#fragment`` leads: a heading by slug or text, a block id, an id in raw HTML, else the start."""
        wanted = unquote(fragment).strip()
        last = wanted.rpartition("#")[2] if "#" in wanted else wanted
        for key in (wanted, wanted.casefold(), last.casefold(), f"text:{last.casefold()}"):
            if key in self.anchors:
                return self.anchors[key]
        return self.anchor


def deepest_level() -> int:
    """The token level from which on the block parser may drop what is nested deeper, without a word."""
    return int(block_parser().options["maxNesting"]) - 4


def parse_chapter(path: str, data: bytes, prefix: str) -> Chapter:
    """Parse one document for a book.

    Args:
        path: Its root-relative path.
        data: Its bytes.
        prefix: What its anchors begin with.

    Raises:
        UnsupportedEncoding: It is not valid UTF-8.
    """
    source = decode_source(data)
    metadata, body = _split(source)
    env: dict[str, object] = {}
    tokens = block_parser().parse(body, env)
    chapter = Chapter(path=path, prefix=prefix, metadata=metadata, tokens=tokens, env=env, lines=body.split("\n"))
    _find_headings(chapter)
    _find_other_anchors(chapter)
    return chapter


def _split(source: SourceText) -> tuple[Metadata, str]:
    """The metadata of a document, and its text after the front matter with ``\\n`` for every line ending."""
    front = find_frontmatter(source)
    text = source.text.replace("\r\n", "\n").replace("\r", "\n")
    if front is None:
        return NO_METADATA, text
    block = source.data[source.bom_len : source.line_starts[front.last + 1]]
    return parse_metadata(block), "\n".join(text.split("\n")[front.last + 1 :])


def _find_headings(chapter: Chapter) -> None:
    used: dict[str, int] = {}
    for index, token in enumerate(chapter.tokens):
        if token.type != "heading_open" or token.level != 0:
            continue
        content, block_id = split_block_id(chapter.tokens[index + 1].content)
        own = _OWN_ID.search(content)
        if own:
            content = content[: own.start()]
        text = plain_text(content)
        anchor = f"{chapter.prefix}h{len(chapter.headings) + 1}"
        chapter.headings[index] = Heading(level=int(token.tag[1]), text=text, content=content, anchor=anchor)
        slug = heading_slug(text)
        seen = used.get(slug, 0)
        used[slug] = seen + 1
        keys = [f"{slug}-{seen}" if seen else slug, f"text:{text.casefold()}"]
        keys += [own.group(1)] if own else []
        keys += [f"^{block_id}"] if block_id else []
        for key in keys:
            chapter.anchors.setdefault(key, anchor)


def _find_other_anchors(chapter: Chapter) -> None:
    for token in chapter.tokens:
        if token.type == "inline":
            _, block_id = split_block_id(token.content)
            if block_id:
                chapter.anchors.setdefault(f"^{block_id}", block_anchor(chapter, block_id))
        if token.type in ("html_block", "inline") and "<" in token.content:
            for name in raw_ids(token.content):
                chapter.anchors.setdefault(name, f"{raw_prefix(chapter)}{name}")


def block_anchor(chapter: Chapter, block_id: str) -> str:
    """The anchor of a block id."""
    return f"{chapter.prefix}b-{block_id}"


def raw_prefix(chapter: Chapter) -> str:
    """What goes before the ids in a chapter's raw HTML."""
    return f"{chapter.prefix}x-"


def inline_tokens(chapter: Chapter, content: str) -> list[Token]:
    """The inline tokens of content that stands in a chapter."""
    return parse_inline(content, chapter.env)
