"""Links, tags, block ids and heading slugs of a document, with the bytes that a moved target changes."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from markdown_it.common.utils import normalizeReference, unescapeAll

from local_vector_search_mcp.markdown.blocks import Leaf, scan_leaves
from local_vector_search_mcp.markdown.definitions import LinkDefinition, read_definition
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.inline import heading_content, plain_text
from local_vector_search_mcp.markdown.link_scan import (
    FoundLink,
    LinkKind,
    LinkSyntax,
    find_html_links,
    find_links,
)
from local_vector_search_mcp.markdown.source import ByteRange
from local_vector_search_mcp.markdown.table_rows import split_row

__all__ = [
    "DefinedLink",
    "Link",
    "LinkKind",
    "LinkSyntax",
    "Survey",
    "block_ids",
    "extract_links",
    "extract_tags",
    "heading_slug",
    "heading_slugs",
    "link_definitions",
    "survey",
]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_LINE_FEED = re.compile(rb"\n")
_WORTH_SCANNING = re.compile(rb"[\[<]")
_TAG_LIKE = re.compile(rb"#[^\s#]")
_TAG = re.compile(r"(?<![\w#/&=?.:%@+\-\\\])}^])#(?=[\w/-]*[^\W\d]|[\w/-]*[_/-])([\w/-]+)")
_BLOCK_ID = re.compile(rb"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*$")
_NO_WORD = re.compile(r"[^\w -]")
_SLUG_KEPT = ("L", "N", "M")
_TAGS: WeakKeyDictionary[MarkdownDocument, tuple[str, ...]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link as it is written.

    Attributes:
        kind: What it is: definitions and ``href`` count as links, ``src`` as an image.
        syntax: How it is written.
        target: The raw destination; of a wikilink what stands before the alias.
        destination: The bytes of ``target``, without angle brackets or quotes around them.
        path_range: The bytes of the destination before ``#`` and ``?``: all that a move rewrites.
        path: The path part with escapes, entities and percent-encoding resolved; empty for a link into the document.
        anchor: What follows ``#``, resolved likewise; None without one. Begins with ``^`` for a block.
        element: The innermost element that it stands in.
    """

    kind: LinkKind
    syntax: LinkSyntax
    target: str
    destination: ByteRange
    path_range: ByteRange
    path: str
    anchor: str | None
    element: Element

    @property
    def is_url(self) -> bool:
        """Whether it names a URL with a scheme or a host, and so no file."""
        return self.syntax is not LinkSyntax.WIKI and _SCHEME.match(self.path) is not None

    @property
    def is_wiki(self) -> bool:
        """Whether it is a wikilink or an embed of that form."""
        return self.syntax is LinkSyntax.WIKI


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedLink:
    """What a link definition says, escapes and entities resolved, and the innermost element that it stands in."""

    destination: str
    title: str
    element: Element


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Everything that links need to know about a document, from one pass over it.

    Attributes:
        links: In order of their first byte.
        tags: Inline tags without ``#``, each once, in order.
        slugs: Heading anchors by GitHub's rules; later twins get ``-1``, ``-2``.
        blocks: Block ids without ``^``.
    """

    links: tuple[Link, ...]
    tags: tuple[str, ...]
    slugs: Mapping[str, Element]
    blocks: Mapping[str, Element]


def survey(document: MarkdownDocument, known_leaves: Sequence[Leaf] | None = None) -> Survey:
    """The links, tags, slugs and block ids of a document.

    Args:
        document: The document.
        known_leaves: Its leaves, where the parser has collected them; None scans for them.
    """
    leaves = _Leaves(document, known_leaves)
    data = document.source.data
    return Survey(
        links=_links(leaves) if _WORTH_SCANNING.search(data) is not None else (),
        tags=_tags(leaves) if _TAG_LIKE.search(data) is not None else (),
        slugs=_slugs(leaves),
        blocks=_blocks(leaves) if b"^" in data else {},
    )


def extract_links(document: MarkdownDocument) -> tuple[Link, ...]:
    """The links of a document in order of their first byte; URL links included, autolinks and code left out."""
    if _WORTH_SCANNING.search(document.source.data) is None:
        return ()
    return _links(_Leaves(document))


def extract_tags(document: MarkdownDocument) -> tuple[str, ...]:
    """The inline tags without ``#``, each once, in order. Front matter tags are in ``document.metadata``.

    Kept for as long as the document is, because every outline asks for them.
    """
    tags = _TAGS.get(document)
    if tags is None:
        tags = _TAGS[document] = _tags(_Leaves(document)) if b"#" in document.source.data else ()
    return tags


def heading_slugs(document: MarkdownDocument) -> dict[str, Element]:
    """The heading anchors of a document by GitHub's rules, those of headings in lists and quotes included."""
    return _slugs(_Leaves(document))


def block_ids(document: MarkdownDocument) -> dict[str, Element]:
    """The elements that block ids (``^id``) name; an id on a line of its own names the element before it."""
    return _blocks(_Leaves(document)) if b"^" in document.source.data else {}


def link_definitions(document: MarkdownDocument) -> dict[str, DefinedLink]:
    """Where every label leads that a document defines, by its normal form; the first of equal labels counts."""
    leaves = _Leaves(document)
    found: dict[str, DefinedLink] = {}
    for leaf, text, definition in leaves.definitions():
        label = normalizeReference(definition.label)
        if label not in found:
            start, end = definition.destination
            found[label] = DefinedLink(
                destination=unescapeAll(text[start:end]),
                title=unescapeAll(definition.title),
                element=leaves.element(leaf),
            )
    return found


def heading_slug(text: str) -> str:
    """The anchor that GitHub makes of a heading's plain text, before twins are told apart."""
    return _NO_WORD.sub(_kept_in_slug, text.lower()).replace(" ", "-")


def _kept_in_slug(found: re.Match[str]) -> str:
    category = unicodedata.category(found[0])
    return found[0] if category[0] in _SLUG_KEPT or category == "Pc" else ""


class _Piece:
    """A text cut out of the document, and where each byte comes from: one run of bytes, or lines joined by line feeds.

    Most pieces hold no link, so where their lines stand is found out when it is asked for.
    """

    __slots__ = ("_first", "_leaf", "_lines", "_starts", "text")

    def __init__(self, text: bytes, first: int, leaf: Leaf | None = None, lines: Sequence[int] = ()) -> None:
        self.text = text
        self._first = first
        self._leaf = leaf  # None for a single run.
        self._lines = lines
        self._starts: list[int] | None = None

    def offset(self, pos: int) -> int:
        """The document offset of a position."""
        if self._leaf is None:
            return self._first + pos
        if self._starts is None:
            # Neither the content of a line nor what stands before it holds a line feed.
            self._starts = [0, *(match.end() for match in _LINE_FEED.finditer(self.text))]
        place = bisect_right(self._starts, pos) - 1
        line, column = self._leaf.lines[place]
        return self._lines[line] + column + pos - self._starts[place]


class _Leaves:
    """The leaves of a document as pieces of text."""

    def __init__(self, document: MarkdownDocument, known: Sequence[Leaf] | None = None) -> None:
        self.document = document
        self.source = document.source
        frontmatter = document.frontmatter
        if known is None:
            known = scan_leaves(self.source, frontmatter.last_line if frontmatter is not None else 0)
        self.leaves = known

    def piece(self, leaf: Leaf) -> _Piece:
        """A leaf's lines as one text."""
        lines, starts = self.source.lines, self.source.line_starts
        line, pos = leaf.lines[0]
        if len(leaf.lines) == 1:
            return _Piece(lines[line][pos:], starts[line] + pos)
        return _Piece(b"\n".join([lines[line][pos:] for line, pos in leaf.lines]), starts[line] + pos, leaf, starts)

    def that_may_hold(self, pattern: re.Pattern[bytes]) -> Iterator[Leaf]:
        """The leaves in which a pattern may occur that reaches over no line end, the markers in them looked at as well.

        One search goes over the document, from one place to the next.
        """
        data, starts = self.source.data, self.source.line_starts
        since = found = 0
        for leaf in self.leaves:
            line, pos = leaf.lines[0]
            start = starts[line] + pos
            if not since <= start <= found:
                match = pattern.search(data, start)
                since, found = start, len(data) if match is None else match.start()
            if found < starts[leaf.lines[-1][0] + 1]:
                yield leaf

    def inline_pieces(self, leaf: Leaf) -> Iterator[_Piece]:
        """The pieces of inline content of a leaf: a table's cells one by one."""
        if leaf.kind is ElementKind.TABLE:
            for place, (line, pos) in enumerate(leaf.lines):
                if place != 1:
                    yield from self._cells(line, pos)
        elif leaf.kind in (ElementKind.PARAGRAPH, ElementKind.HEADING):
            yield self.piece(leaf)

    def element(self, leaf: Leaf) -> Element:
        """The innermost element that holds a leaf."""
        line, pos = leaf.lines[0]
        return self.element_at(self.source.line_starts[line] + pos)

    def element_at(self, offset: int) -> Element:
        """The innermost element at a byte that some element holds."""
        element = self.document.element_at(offset)
        if element is None:
            raise AssertionError("every leaf lies in an element")
        return element

    def definitions(self) -> Iterator[tuple[Leaf, str, LinkDefinition]]:
        """The link definitions with the text that their ranges are in."""
        for leaf in self.leaves:
            if leaf.kind is ElementKind.DEFINITION:
                text = self.piece(leaf).text.decode("utf-8") + "\n"
                definition = read_definition(text, _no_more)
                if definition is not None:
                    yield leaf, text, definition

    def _cells(self, line: int, pos: int) -> Iterator[_Piece]:
        text = self.source.lines[line][pos:]
        base = self.source.line_starts[line] + pos
        decoded = text.decode("utf-8")
        for start, end in split_row(decoded)[0]:
            before = start if decoded.isascii() else len(decoded[:start].encode("utf-8"))
            yield _Piece(decoded[start:end].encode("utf-8"), base + before)


def _no_more() -> None:
    """A definition's leaf holds all its lines."""


def _links(leaves: _Leaves) -> tuple[Link, ...]:
    labels = {normalizeReference(label) for label in leaves.document.labels.links}
    links: list[Link] = []
    for leaf in leaves.that_may_hold(_WORTH_SCANNING):
        if leaf.kind is ElementKind.HTML:
            piece = leaves.piece(leaf)
            links.extend(_link(leaves, piece, found) for found in find_html_links(piece.text))
        elif leaf.kind is ElementKind.DEFINITION:
            piece = leaves.piece(leaf)
            links.extend(_link(leaves, piece, found) for found in _definition_link(piece.text))
        else:
            links.extend(_inline_links(leaves, leaf, labels))
    links.sort(key=lambda link: link.destination.start)
    return tuple(links)


def _inline_links(leaves: _Leaves, leaf: Leaf, labels: Collection[str]) -> Iterator[Link]:
    for piece in leaves.inline_pieces(leaf):
        if _WORTH_SCANNING.search(piece.text) is not None:
            for found in find_links(piece.text, labels)[0]:
                yield _link(leaves, piece, found)


def _definition_link(text: bytes) -> list[FoundLink]:
    decoded = text.decode("utf-8") + "\n"
    definition = read_definition(decoded, _no_more)
    if definition is None:
        return []
    start, end = definition.destination
    angle = decoded.startswith(">", end) and decoded[:start].endswith("<")
    first = len(decoded[:start].encode("utf-8"))
    last = first + len(decoded[start:end].encode("utf-8"))
    syntax = LinkSyntax.ANGLE_DEFINITION if angle else LinkSyntax.DEFINITION
    return [FoundLink(LinkKind.LINK, syntax, 0, first, last)]


def _link(leaves: _Leaves, piece: _Piece, found: FoundLink) -> Link:
    raw = piece.text[found.destination_start : found.destination_end]
    start = piece.offset(found.destination_start)
    target = raw.decode("utf-8")
    is_wiki = found.syntax is LinkSyntax.WIKI
    path, hash_mark, anchor = target.partition("#")
    if not is_wiki:
        path = path.partition("?")[0]
    return Link(
        kind=found.kind,
        syntax=found.syntax,
        target=target,
        destination=ByteRange(start, start + len(raw)),
        path_range=ByteRange(start, start + len(path.encode("utf-8"))),
        path=_resolved(path, found.syntax),
        anchor=_resolved(anchor, found.syntax) if hash_mark else None,
        element=leaves.element_at(piece.offset(found.start)),
    )


def _resolved(text: str, syntax: LinkSyntax) -> str:
    if syntax is LinkSyntax.WIKI:
        return text.strip()
    if syntax is LinkSyntax.HTML:
        return unquote(unescape(text)) if "&" in text or "%" in text else text
    return unquote(unescapeAll(text)) if "%" in text or "&" in text or "\\" in text else text


def _tags(leaves: _Leaves) -> tuple[str, ...]:
    tags: dict[str, None] = {}
    for leaf in leaves.that_may_hold(_TAG_LIKE):
        for piece in leaves.inline_pieces(leaf):
            if _TAG_LIKE.search(piece.text) is None:
                continue
            for text in _spoken(piece.text):
                for match in _TAG.finditer(text):
                    tag = match.group(1).strip("/")
                    if tag:
                        tags[tag] = None
    return tuple(tags)


def _spoken(text: bytes) -> Iterator[str]:
    """The text of inline content with code, HTML and link destinations blanked out."""
    if _WORTH_SCANNING.search(text) is None and b"`" not in text and b"\\" not in text:
        yield text.decode("utf-8")
        return
    parts: list[bytes] = []
    pos = 0
    for start, end in sorted(find_links(text, ())[1]):
        if start >= pos:
            parts.append(text[pos:start])
            pos = end
    parts.append(text[pos:])
    # A NUL stands where something was left out; no tag reaches over it or begins right behind it.
    yield b"\0".join(parts).decode("utf-8").replace("\0#", "\0 ")


def _slugs(leaves: _Leaves) -> dict[str, Element]:
    slugs: dict[str, Element] = {}
    used: dict[str, int] = {}
    for leaf in leaves.leaves:
        if leaf.kind is not ElementKind.HEADING:
            continue
        element = leaves.element(leaf)
        base = heading_slug(_heading_text(leaves, leaf, element))
        slug = base
        while slug in used:
            used[base] += 1
            slug = f"{base}-{used[base]}"
        used[slug] = 0
        slugs[slug] = element
    return slugs


def _heading_text(leaves: _Leaves, leaf: Leaf, element: Element) -> str:
    if element.heading_text is not None:
        return element.heading_text
    text = leaves.piece(leaf).text.decode("utf-8")
    return plain_text(heading_content(text) if text.startswith("#") else text, leaves.document.labels)


def _blocks(leaves: _Leaves) -> dict[str, Element]:
    blocks: dict[str, Element] = {}
    for leaf in leaves.leaves:
        if leaf.kind not in (ElementKind.PARAGRAPH, ElementKind.HEADING, ElementKind.TABLE):
            continue
        line, pos = leaf.lines[-1]
        text = leaves.source.lines[line][pos:]
        match = _BLOCK_ID.search(text) if b"^" in text else None
        if match is None:
            continue
        element = leaves.element(leaf)
        alone = match.start() == 0 and len(leaf.lines) == 1 and leaf.kind is ElementKind.PARAGRAPH
        if alone and element.kind is ElementKind.PARAGRAPH and element.index > 0:
            element = _before(leaves.document, element)
        blocks.setdefault(match.group(1).decode("ascii"), element)
    return blocks


def _before(document: MarkdownDocument, element: Element) -> Element:
    """The top-level element before one, or the element itself where there is none."""
    place = element.index - 1
    while document.elements[place].parent is not None:
        place -= 1
    before = document.elements[place]
    return element if before.kind is ElementKind.FRONTMATTER else before
