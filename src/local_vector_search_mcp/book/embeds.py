"""Notes embedded in notes: which document, which part of it, and how deep."""

from dataclasses import dataclass
from typing import Final

from markdown_it.token import Token

from local_vector_search_mcp.book.chapters import Chapter, parse_chapter
from local_vector_search_mcp.book.inline_rules import split_block_id
from local_vector_search_mcp.book.sources import Unavailable
from local_vector_search_mcp.book.workshop import Workshop
from local_vector_search_mcp.errors import UnsupportedEncoding

_DEEPEST: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedTrail:
    """The documents that lead to the present one by embedding, outermost first; ``mark`` keeps anchors apart."""

    paths: tuple[str, ...]
    mark: str = ""

    @property
    def embedded(self) -> bool:
        """Whether the present document is embedded in another one."""
        return len(self.paths) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A document to embed, and the tokens of the part that is wanted."""

    chapter: Chapter
    tokens: list[Token]
    trail: EmbedTrail


def embedded_chapter(workshop: Workshop, target: str, from_path: str, trail: EmbedTrail) -> Embedded | str:
    """The part of a note that ``![[target]]`` names, or why it is not shown.

    Depth, repetition and the total are bounded, so that notes embedding each other end.
    """
    path, _, fragment = target.partition("#")
    if len(trail.paths) > _DEEPEST:
        return f"it is nested more than {_DEEPEST} deep"
    found = workshop.sources.note(path.strip() or from_path, from_path)
    if isinstance(found, Unavailable):
        return found.reason
    if found.path in trail.paths and not fragment:
        return "it would hold itself"
    if trail.paths.count(found.path) > 1:
        return "it would hold itself"
    workshop.embeds_left -= 1
    workshop.bytes_left -= len(found.data)
    if workshop.embeds_left < 0 or workshop.bytes_left < 0:
        return "the book embeds too much"
    mark = f"e{1000 - workshop.embeds_left}-"
    try:
        chapter = parse_chapter(found.path, found.data, f"{mark}")
    except UnsupportedEncoding:
        return "it is not UTF-8"
    tokens = _part(chapter, fragment) if fragment else chapter.tokens
    if tokens is None:
        return "it has no such heading or block"
    return Embedded(chapter=chapter, tokens=tokens, trail=EmbedTrail(paths=(*trail.paths, found.path), mark=mark))


def _part(chapter: Chapter, fragment: str) -> list[Token] | None:
    """The tokens of a section or block; footnote definitions of the whole document come with them."""
    if fragment.startswith("^"):
        chosen = _block(chapter, fragment[1:])
    else:
        chosen = _section(chapter, fragment)
    if chosen is None:
        return None
    start, end = chosen
    notes: list[Token] = []
    keep = False
    for index, token in enumerate(chapter.tokens):
        if token.type == "footnote_reference_open" and token.level == 0 and not start <= index < end:
            keep = True
        if keep:
            notes.append(token)
        if token.type == "footnote_reference_close" and token.level == 0:
            keep = False
    return chapter.tokens[start:end] + notes


def _section(chapter: Chapter, fragment: str) -> tuple[int, int] | None:
    anchor = chapter.anchor_for(fragment)
    found = next((item for item in chapter.headings.items() if item[1].anchor == anchor), None)
    if found is None:
        return None
    start, heading = found
    for index, other in chapter.headings.items():
        if index > start and other.level <= heading.level:
            return start, index
    return start, len(chapter.tokens)


def _block(chapter: Chapter, block_id: str) -> tuple[int, int] | None:
    """The outermost block that holds the id; of a list only the item."""
    for index, token in enumerate(chapter.tokens):
        if token.type != "inline" or split_block_id(token.content)[1] != block_id:
            continue
        start = index
        while start > 0 and not _stands_alone(chapter.tokens[start]):
            start -= 1
        opening = chapter.tokens[start]
        end = index
        while chapter.tokens[end].level > opening.level or chapter.tokens[end].nesting >= 0:
            end += 1
            if end >= len(chapter.tokens):
                return None
        if opening.type == "list_item_open":
            return _as_list(chapter, start, end)
        # An id alone in its paragraph names the block before it.
        if opening.type == "paragraph_open" and not split_block_id(token.content)[0].strip() and start > 0:
            return _before(chapter, start)
        return start, end + 1
    return None


def _stands_alone(token: Token) -> bool:
    return token.type == "list_item_open" or (token.level == 0 and token.nesting > 0)


def _as_list(chapter: Chapter, start: int, end: int) -> tuple[int, int]:
    """An item with its list's own tags around it: the list is cut down to the item, in place."""
    level = chapter.tokens[start].level - 1
    first = start
    while not (chapter.tokens[first].level == level and chapter.tokens[first].type.endswith("_list_open")):
        first -= 1
    last = end
    while not (chapter.tokens[last].level == level and chapter.tokens[last].type.endswith("_list_close")):
        last += 1
    part = [chapter.tokens[first], *chapter.tokens[start : end + 1], chapter.tokens[last]]
    chapter.tokens.extend(part)
    return len(chapter.tokens) - len(part), len(chapter.tokens)


def _before(chapter: Chapter, start: int) -> tuple[int, int]:
    first = start - 1
    if chapter.tokens[first].nesting < 0:
        while not (chapter.tokens[first].level == 0 and chapter.tokens[first].nesting > 0):
            first -= 1
    return first, start
