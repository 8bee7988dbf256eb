"""The open containers of a block scan: quotes, list items and footnotes, and which of them a line goes on in.

Positions are counted in columns of the innermost quote's content, as markdown-it does: an item or a
footnote holds a line that is indented at least to its ``content`` column. Open containers are a list
and no recursion, so nesting costs no stack.
"""

from local_vector_search_mcp.markdown.elements import ElementKind

_SPACE, _TAB, _GREATER = b" \t>"


class Block:
    """A top-level block, or a list item that is reached through lists alone.

    Attributes:
        kind: What it is.
        first, last: Its first and last line, from 0, inclusive; the last is not blank.
        start: Offset of its first byte.
        level: A heading's level, else 0.
        list_id: Which list an item belongs to, else 0.
        items: The direct nested items of a list item; None where there are none.
    """

    __slots__ = ("first", "items", "kind", "last", "level", "list_id", "start")

    def __init__(self, kind: ElementKind, first: int, last: int, start: int, level: int = 0, list_id: int = 0) -> None:
        self.kind = kind
        self.first = first
        self.last = last
        self.start = start
        self.level = level
        self.list_id = list_id
        self.items: list[Block] | None = None


class Container:
    """An open quote, list item or footnote, or the document itself.

    Attributes:
        content: The column at which its content begins; 0 in a quote, which has columns of its own.
        outer: The content column of the container around it.
        list_indent: The content column of what holds the innermost list; -1 outside lists.
        block: The block that it becomes; None where it has no address.
        depth: How many items are nested, itself included; 0 where no nested item has an address.
        list_key: The kind of the list that its last child item belongs to; None where no list is open.
        list_id: That list's number.
    """

    __slots__ = ("block", "content", "depth", "list_id", "list_indent", "list_key", "outer")

    def __init__(self, content: int, outer: int, list_indent: int, block: Block | None = None, depth: int = 0) -> None:
        self.content = content
        self.outer = outer
        self.list_indent = list_indent
        self.block = block
        self.depth = depth
        self.list_key: int | None = None
        self.list_id = 0


# How far a line goes on in the open containers: how many of them, the document included; how many quotes are
# among these; then the place of the line's content inside the last of those quotes: the position of its first
# character that is no space or tab (the line's length on a blank rest), the column of that, and what tabs of this
# content are shifted by. A plain tuple, because one is made for almost every line.
Match = tuple[int, int, int, int, int]
Place = tuple[int, int, int]


def indentation(line: bytes) -> tuple[int, int]:
    """Position and column of a line's first character that is no space or tab."""
    pos = len(line) - len(line.lstrip(b" "))
    if line[pos : pos + 1] != b"\t":
        return pos, pos
    return expand(line, pos, pos, 0)


def expand(line: bytes, pos: int, column: int, shift: int) -> tuple[int, int]:
    """Past spaces and tabs: the position and column after them."""
    length = len(line)
    while pos < length:
        char = line[pos]
        if char == _SPACE:
            column += 1
        elif char == _TAB:
            column += 4 - (column + shift) % 4
        else:
            break
        pos += 1
    return pos, column


def after_quote_marker(line: bytes, pos: int, column: int, shift: int) -> Place:
    """The place of a quote line's content, given that of its ``>``; columns start anew behind the marker."""
    outer = column
    pos += 1
    column += 1
    start = column
    spaced = 0
    adjust = 0
    following = line[pos] if pos < len(line) else 0
    if following == _SPACE:
        pos += 1
        start = column = column + 1
        spaced = 1
    elif following == _TAB:
        spaced = 1
        if (shift + column) % 4 == 3:
            pos += 1
            start = column = column + 1
        else:
            # The tab is wider than the one space that belongs to the marker; the rest of it is content.
            adjust = 1
    pos, column = expand(line, pos, column, shift + adjust)
    return pos, column - start, outer + 1 + spaced


class ContainerStack:
    """The open containers, the document first."""

    __slots__ = ("open", "quotes")

    def __init__(self) -> None:
        self.open: list[Container] = [Container(0, 0, -1)]
        self.quotes: list[int] = []  # The places of the quotes in ``open``, rising.

    def push(self, container: Container) -> None:
        """Open an item or a footnote in the innermost container."""
        self.open.append(container)

    def push_quote(self, container: Container) -> None:
        """Open a quote in the innermost container."""
        self.quotes.append(len(self.open))
        self.open.append(container)

    def close(self, count: int, last_line: int) -> None:
        """Close all but the first containers; their blocks end at a line."""
        containers = self.open
        while len(containers) > count:
            block = containers.pop().block
            if block is not None:
                block.last = last_line
        while self.quotes and self.quotes[-1] >= count:
            self.quotes.pop()

    def match(self, line: bytes) -> Match:
        """How far a line goes on in the open containers; a blank one leaves the outermost quote."""
        pos, column = indentation(line)
        shift = 0
        length = len(line)
        containers = self.open
        matched = 1
        number = 0
        for quote in self.quotes:
            if pos >= length:
                return quote, number, pos, column, shift
            if column < containers[quote].outer or line[pos] != _GREATER:
                return self._items(matched, quote, column), number, pos, column, shift
            pos, column, shift = after_quote_marker(line, pos, column, shift)
            matched = quote + 1
            number += 1
        total = len(containers)
        if pos >= length or column >= containers[-1].content:
            return total, number, pos, column, shift
        return self._items(matched, total, column), number, pos, column, shift

    def _items(self, matched: int, end: int, column: int) -> int:
        while matched < end and self.open[matched].content <= column:
            matched += 1
        return matched
