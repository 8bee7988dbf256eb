"""Blocks by the library's own parser, for comparison: kind, lines and depth of each."""

from markdown_it.token import Token

from local_vector_search_mcp.markdown.dialect import block_parser
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.source import SourceText, decode_source

Found = tuple[ElementKind, int, int, int]
"""Kind, first line, last line (from 1, inclusive) and nesting depth."""

_KINDS = {
    "heading_open": ElementKind.HEADING,
    "paragraph_open": ElementKind.PARAGRAPH,
    "fence": ElementKind.CODE,
    "code_block": ElementKind.CODE,
    "blockquote_open": ElementKind.BLOCK_QUOTE,
    "table_open": ElementKind.TABLE,
    "html_block": ElementKind.HTML,
    "math_block": ElementKind.MATH,
    "math_block_label": ElementKind.MATH,
    "footnote_reference_open": ElementKind.FOOTNOTE,
    "hr": ElementKind.RULE,
}
_LISTS = ("bullet_list_open", "ordered_list_open")


def our_blocks(data: bytes) -> list[Found]:
    """What the model finds, front matter left out."""
    elements = parse_bytes(data).elements
    return [(e.kind, *e.lines, e.depth) for e in elements if e.kind is not ElementKind.FRONTMATTER]


def library_blocks(data: bytes) -> list[Found]:
    """What the library's tokens say of the same text; lines without a token are definitions."""
    source = decode_source(data)
    frontmatter = parse_bytes(data).frontmatter
    skipped = frontmatter.last_line if frontmatter is not None else 0
    text = b"\n".join(source.lines[skipped:]).decode()
    found = list(_Walker(source, skipped).walk(block_parser().parse(text)))
    found.extend(_gaps(source, found, skipped))
    return sorted(found, key=lambda block: (block[1], -block[2], block[3]))


class _Walker:
    def __init__(self, source: SourceText, skipped: int) -> None:
        self.source = source
        self.skipped = skipped
        self.found: list[Found] = []

    def walk(self, tokens: list[Token]) -> list[Found]:
        """All top-level blocks and the items that lists alone lead to."""
        for place, token in enumerate(tokens):
            if token.level == 0 and token.nesting >= 0:
                if token.type in _LISTS:
                    self._items(tokens, place, 1)
                elif token.type in _KINDS:
                    self.found.append((_KINDS[token.type], *self._lines(token), 1))
        return self.found

    def _items(self, tokens: list[Token], place: int, depth: int) -> None:
        level = tokens[place].level
        place += 1
        while tokens[place].level > level:
            token = tokens[place]
            if token.type == "list_item_open" and token.level == level + 1:
                self.found.append((ElementKind.LIST_ITEM, *self._lines(token), depth))
            elif token.type in _LISTS and token.level == level + 2:
                self._items(tokens, place, depth + 1)
            place += 1

    def _lines(self, token: Token) -> tuple[int, int]:
        assert token.map is not None
        first, end = token.map[0] + self.skipped + 1, token.map[1] + self.skipped
        while end > first and self.source.is_blank(end):
            end -= 1
        return first, end


def _gaps(source: SourceText, found: list[Found], skipped: int) -> list[Found]:
    covered = {line for _, first, last, depth in found if depth == 1 for line in range(first, last + 1)}
    gaps: list[Found] = []
    for line in range(skipped + 1, source.line_count + 1):
        if line in covered or source.is_blank(line):
            continue
        if gaps and gaps[-1][2] == line - 1:
            gaps[-1] = (ElementKind.DEFINITION, gaps[-1][1], line, 1)
        else:
            gaps.append((ElementKind.DEFINITION, line, line, 1))
    return gaps
