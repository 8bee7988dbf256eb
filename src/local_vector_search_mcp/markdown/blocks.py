"""Parser tokens to blocks: every top-level block and nested list item with its lines, gaps included."""

import re
from collections.abc import Iterator

from markdown_it.token import Token

from local_vector_search_mcp.markdown.dialect import MAX_ITEM_DEPTH, block_parser
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.source import SourceText

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
_MARKER = re.compile(rb"[ \t]*(?:[-+*]|[0-9]{1,9}[.)])[ \t]*")


class Block:
    """A top-level block, or a list item at any depth.

    Attributes:
        kind: What it is.
        first, last: Its first and last line, from 0, inclusive; the last is not blank.
        start: Offset of its first byte.
        level: A heading's level, else 0.
        list_id: Which list an item belongs to, else 0.
        items: The direct nested items of a list item.
    """

    __slots__ = ("first", "items", "kind", "last", "level", "list_id", "start")

    def __init__(self, kind: ElementKind, first: int, last: int, start: int, level: int = 0, list_id: int = 0) -> None:
        self.kind = kind
        self.first = first
        self.last = last
        self.start = start
        self.level = level
        self.list_id = list_id
        self.items: list[Block] = []


def scan_blocks(source: SourceText, first_line: int) -> list[Block]:
    """The blocks of a source from a line on (0-based), in order; list items stand for their lists."""
    lines = source.lines[first_line:]
    text = b"".join(lines).decode("utf-8")
    tokens = block_parser().parse(text)
    return list(_with_gaps(source, _Walker(source, first_line).walk(tokens), first_line))


class _Walker:
    def __init__(self, source: SourceText, offset: int) -> None:
        self.source = source
        self.offset = offset
        self.lists = 0

    def walk(self, tokens: list[Token]) -> Iterator[Block]:
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.level == 0 and token.nesting >= 0:
                if token.type in _LISTS:
                    yield from self._items(tokens, index, None, 1)
                elif token.type in _KINDS:
                    yield self._block(token)
            index += 1

    def _items(self, tokens: list[Token], index: int, parent: Block | None, depth: int) -> Iterator[Block]:
        self.lists += 1
        list_id = self.lists
        level = tokens[index].level
        index += 1
        while tokens[index].level > level:
            token = tokens[index]
            if token.type == "list_item_open" and token.level == level + 1:
                item = self._block(token, ElementKind.LIST_ITEM, list_id)
                if parent is not None and item.first == parent.first:
                    match = _MARKER.match(self.source.lines[item.first], parent.start - self._start(item.first))
                    item.start = self._start(item.first) + (match.end() if match else 0)
                inner = index + 1
                while tokens[inner].level > level + 1:
                    if tokens[inner].type in _LISTS and tokens[inner].level == level + 2 and depth < MAX_ITEM_DEPTH:
                        item.items.extend(self._items(tokens, inner, item, depth + 1))
                    inner += 1
                yield item
                index = inner
            index += 1

    def _start(self, line: int) -> int:
        return self.source.line_starts[line]

    def _block(self, token: Token, kind: ElementKind | None = None, list_id: int = 0) -> Block:
        first, end = (token.map or [0, 0])[:2]
        first, last = first + self.offset, end + self.offset - 1
        while last > first and self.source.is_blank(last + 1):
            last -= 1
        level = int(token.tag[1]) if token.type == "heading_open" else 0
        return Block(kind or _KINDS[token.type], first, last, self._start(first), level, list_id)


def _with_gaps(source: SourceText, blocks: Iterator[Block], line: int) -> Iterator[Block]:
    for block in blocks:
        yield from _gap(source, line, block.first)
        yield block
        line = block.last + 1
    yield from _gap(source, line, source.line_count)


def _gap(source: SourceText, line: int, end: int) -> Iterator[Block]:
    first: int | None = None
    for number in range(line, end):
        if source.is_blank(number + 1):
            if first is not None:
                yield Block(ElementKind.DEFINITION, first, number - 1, source.line_starts[first])
            first = None
        elif first is None:
            first = number
    if first is not None:
        yield Block(ElementKind.DEFINITION, first, end - 1, source.line_starts[first])
