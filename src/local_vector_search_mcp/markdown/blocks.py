"""Lines to blocks: every top-level block and nested list item with its lines.

A document's blocks are found line by line with an explicit stack of open containers, in time that
grows with the bytes alone, whatever their nesting. The rules and their order are those of the
dialect's markdown-it parser (``dialect.block_parser``), which the tests compare with; that parser
itself is not used here because it gives up beyond its nesting limit, recurses, gives definitions and
footnotes no place, and takes quadratic time on some shapes.
"""

from bisect import bisect_left
from typing import NamedTuple

from local_vector_search_mcp.markdown import block_starts as starts
from local_vector_search_mcp.markdown.containers import (
    Block,
    Container,
    ContainerStack,
    Match,
    Place,
    after_quote_marker,
    expand,
    indentation,
)
from local_vector_search_mcp.markdown.definitions import read_definition
from local_vector_search_mcp.markdown.dialect import MAX_CONTAINERS, MAX_ITEM_DEPTH
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.source import SourceText
from local_vector_search_mcp.markdown.table_rows import delimiter_alignments, split_row


class Leaf(NamedTuple):
    """A block of inline content or HTML at any depth, as its lines without markers and indentation.

    Attributes:
        kind: Paragraph, heading, table, HTML or definition.
        lines: Line numbers from 0, each with the position of its content in the line.
    """

    kind: ElementKind
    lines: list[tuple[int, int]]


def scan_blocks(source: SourceText, first_line: int) -> list[Block]:
    """The blocks of a source from a line on (from 0), in order; list items stand for their lists."""
    return _Scanner(source, None).scan(first_line)


def scan_leaves(source: SourceText, first_line: int) -> list[Leaf]:
    """The leaves of a source from a line on (from 0), in order; code and math are none."""
    leaves: list[Leaf] = []
    _Scanner(source, leaves).scan(first_line)
    return leaves


class _Context(NamedTuple):
    """What a line that may end a paragraph, a table or a quote is judged by.

    Attributes:
        column: Where its content begins.
        content: The content column of the innermost container in question.
        list_indent: See ``Container``.
        paragraph: Whether a paragraph would be interrupted, which lists do less easily.
        footnotes: Whether a footnote definition ends the block.
    """

    column: int
    content: int
    list_indent: int
    paragraph: bool
    footnotes: bool


# First bytes at which a line that is not indented can neither end a paragraph nor be an underline or delimiter row.
_PLAIN = frozenset(range(0x21, 0x100)) - frozenset(b"#>`~-*_+<[|:=0123456789")


class _Scanner:
    def __init__(self, source: SourceText, leaves: list[Leaf] | None) -> None:
        self.lines = source.lines
        self.offsets = source.line_starts
        self.count = len(self.lines)
        self.stack = ContainerStack()
        self.blocks: list[Block] = []
        self.leaves = leaves
        self.lists = 0
        self.last = 0  # The last line that is not blank of what was read so far.
        self.definition: Block | None = None  # The definitions that a further one right below joins.
        self.rule_line = -1
        self.rule_floors: dict[int, int] = {}
        self.math_ends: list[int] | None = None
        self.ahead = _Ahead()

    def scan(self, line: int) -> list[Block]:
        """Read all lines from one on."""
        lines, stack = self.lines, self.stack
        while line < self.count:
            text = lines[line]
            if len(stack.open) == 1:
                place = Place(0, 0, 0) if text and text[0] > 0x20 else indentation(text)
                if place.pos >= len(text):
                    line += 1
                    continue
            else:
                match = stack.match(text)
                if match.containers < len(stack.open):
                    stack.close(match.containers, self.last)
                place = match.place
                if place.pos >= len(text):
                    if match.quotes:
                        self.last = line
                    line += 1
                    continue
            line = self._start(line, place)
        stack.close(1, self.last)
        return self.blocks

    # Block starts

    def _start(self, line: int, place: Place) -> int:
        """Open what begins on a line: containers, then one leaf. Gives the next line to read."""
        text = self.lines[line]
        stack = self.stack.open
        self.last = line
        self.ahead.reset(line + 1, b"|" in text)
        while True:
            pos = place.pos
            if pos >= len(text):
                return line + 1
            parent = stack[-1]
            indent = place.column - parent.content
            if self.ahead.wanted and indent < 4 and self._begins_table(line, pos):
                # A further item of an open list comes before a table.
                if parent.list_key is None or parent.list_key != self._item_key(line, pos):
                    return self._table(line, pos)
            if indent >= 4:
                return self._indented_code(line)
            char = text[pos]
            if char in _PLAIN and char != starts.DOLLAR:
                return self._paragraph(line, place)
            opened = self._open_container(line, place, char)
            if opened is None:
                return self._leaf(line, place, char)
            if opened.pos < 0:
                return line + 1
            place = opened

    def _open_container(self, line: int, place: Place, char: int) -> Place | None:
        """Open a quote, item or footnote; gives the place of its content, with a negative position where it is over."""
        if len(self.stack.open) > MAX_CONTAINERS:
            return None
        text = self.lines[line]
        if char == starts.GREATER:
            return self._open_quote(line, place)
        if char in b"-*+":
            end = 0 if self._is_rule(line, place.pos) else starts.bullet_end(text, place.pos)
            return self._open_item(line, place, end, char) if end else None
        if starts.ZERO <= char <= starts.NINE:
            end, _ = starts.ordered_marker(text, place.pos)
            return self._open_item(line, place, end, text[end - 1]) if end else None
        if char == starts.OPEN_BRACKET:
            end = starts.footnote_end(text, place.pos)
            return self._open_footnote(line, place, end) if end else None
        return None

    def _open_quote(self, line: int, place: Place) -> Place:
        parent = self._other_than_item()
        quote = Container(0, parent.content, parent.list_indent, self._root_block(ElementKind.BLOCK_QUOTE, line))
        self.stack.push_quote(quote)
        return after_quote_marker(self.lines[line], place)

    def _open_footnote(self, line: int, place: Place, end: int) -> Place:
        parent = self._other_than_item()
        content = parent.content + 4
        block = self._root_block(ElementKind.FOOTNOTE, line)
        self.stack.push(Container(content, parent.content, parent.list_indent, block))
        start = place.column + end - place.pos
        pos, column = expand(self.lines[line], end, start, 0)
        column -= start
        return Place(pos, column if column >= content else column + content, place.tab_shift)

    def _open_item(self, line: int, place: Place, end: int, key: int) -> Place:
        text = self.lines[line]
        parent = self.stack.open[-1]
        if parent.list_key != key:
            parent.list_key = key
            self.lists += 1
            parent.list_id = self.lists
        self.definition = None
        start = place.column + end - place.pos
        pos, column = expand(text, end, start, place.tab_shift)
        # More than four columns are the marker's one and an indented code block.
        width = column - start if pos < len(text) and column - start <= 4 else 1
        block, depth = self._item_block(line, place, parent)
        self.stack.push(Container(start + width, parent.content, parent.content, block, depth))
        if pos >= len(text) and self._is_empty_after(line):
            # An item can begin with one blank line at most, so this one is over.
            self.stack.close(len(self.stack.open) - 1, line)
            return Place(-1, 0, 0)
        return Place(pos, column, place.tab_shift)

    def _item_block(self, line: int, place: Place, parent: Container) -> tuple[Block | None, int]:
        """The block of a new item, put where it belongs, and its depth; None and 0 without an address."""
        root = len(self.stack.open) == 1
        if not root and not 0 < parent.depth < MAX_ITEM_DEPTH:
            return None, 0
        offset = self.offsets[line]
        if not root and parent.block is not None and parent.block.first == line:
            offset += place.pos
        block = Block(ElementKind.LIST_ITEM, line, line, offset, 0, parent.list_id)
        if root:
            self.blocks.append(block)
        elif parent.block is not None:
            parent.block.items.append(block)
        return block, parent.depth + 1

    def _leaf(self, line: int, place: Place, char: int) -> int:
        """Read the leaf that begins at a character that may be no text."""
        text, pos = self.lines[line], place.pos
        if char == starts.DOLLAR and text.startswith(b"$$", pos):
            end = self._math_end(line, pos)
            if end:
                self._add(ElementKind.MATH, line, end - 1)
                return end
        if char in b"`~":
            fence = starts.fence_start(text, pos)
            if fence is not None:
                return self._fenced_code(line, fence)
        if char in b"-*_" and self._is_rule(line, pos):
            self._add(ElementKind.RULE, line, line)
            return line + 1
        if char == starts.OPEN_BRACKET:
            end = self._definition(line, pos)
            if end:
                return end
        if char == starts.LESS:
            html = starts.html_start(text, pos)
            if html is not None:
                return self._html(line, pos, html)
        if char == starts.HASH:
            level = starts.heading_level(text, pos)
            if level:
                self._add(ElementKind.HEADING, line, line, level)
                self._leave(ElementKind.HEADING, [(line, pos)])
                return line + 1
        return self._paragraph(line, place)

    # Leaves

    def _paragraph(self, line: int, place: Place) -> int:
        """Read a paragraph, or the setext heading or table that its lines turn out to be."""
        lines, count = self.lines, self.count
        positions = [(line, place.pos)]
        header = place.pos if b"|" in lines[line] else -1
        root = len(self.stack.open) == 1
        following = line + 1
        while following < count:
            text = lines[following]
            if root and text and text[0] in _PLAIN:
                positions.append((following, 0))
                header = 0
                following += 1
                continue
            if root:
                match = Match(1, 0, indentation(text))
            else:
                match = self.stack.match(text)
            pos = match.place.pos
            if pos >= len(text):
                break
            whole = match.containers == len(self.stack.open)
            indented = whole and match.place.column - self.stack.open[-1].content > 3
            if whole and not indented:
                char = text[pos]
                if header >= 0 and char in b"|-:" and self._is_table(following - 1, header, following, pos):
                    return self._before_table(line, positions)
                level = starts.underline_level(text, pos)
                if level:
                    self._add(ElementKind.HEADING, line, following, level)
                    self._leave(ElementKind.HEADING, positions)
                    return following + 1
            if not indented and self._interrupts(following, match, paragraph=True):
                break
            positions.append((following, pos))
            header = -1 if indented or match.quotes < len(self.stack.quotes) else pos
            following += 1
        self._add(ElementKind.PARAGRAPH, line, following - 1)
        self._leave(ElementKind.PARAGRAPH, positions)
        return following

    def _before_table(self, line: int, positions: list[tuple[int, int]]) -> int:
        """End a paragraph before its last line, which is a table's header."""
        header, _ = positions.pop()
        self._add(ElementKind.PARAGRAPH, line, header - 1)
        self._leave(ElementKind.PARAGRAPH, positions)
        return header

    def _table(self, line: int, pos: int) -> int:
        positions = [(line, pos), (line + 1, self.ahead.place.pos)]
        following = line + 2
        while following < self.count:
            text = self.lines[following]
            match = self.stack.match(text)
            place = match.place
            if place.pos >= len(text) or match.containers < len(self.stack.open):
                break
            innermost = self.stack.open[-1]
            if place.column - innermost.content >= 4:
                break
            context = _Context(place.column, innermost.content, innermost.list_indent, False, False)
            if self._ends_block(following, place.pos, context):
                break
            positions.append((following, place.pos))
            following += 1
        self._add(ElementKind.TABLE, line, following - 1)
        self._leave(ElementKind.TABLE, positions)
        return following

    def _indented_code(self, line: int) -> int:
        last = line
        following = line + 1
        while following < self.count:
            text = self.lines[following]
            match = self.stack.match(text)
            if match.quotes < len(self.stack.quotes):
                break
            if match.place.pos < len(text):
                if match.place.column - self.stack.open[-1].content < 4:
                    break
                last = following
            following += 1
        self._add(ElementKind.CODE, line, last)
        return last + 1

    def _fenced_code(self, line: int, fence: starts.Fence) -> int:
        content = self.stack.open[-1].content
        last = line
        following = line + 1
        while following < self.count:
            text = self.lines[following]
            match = self.stack.match(text)
            if match.quotes < len(self.stack.quotes):
                break
            pos, column, _ = match.place
            if pos < len(text):
                if column < content:
                    break
                last = following
                if column - content < 4 and starts.closes_fence(text, pos, fence):
                    following += 1
                    break
            elif match.quotes:
                last = following
            following += 1
        self._add(ElementKind.CODE, line, last)
        return following

    def _html(self, line: int, pos: int, html: starts.HtmlStart) -> int:
        content = self.stack.open[-1].content
        positions = [(line, pos)]
        following = line + 1
        ended = html.end is not None and html.end.search(self.lines[line], pos) is not None
        while following < self.count and not ended:
            text = self.lines[following]
            match = self.stack.match(text)
            blank = match.place.pos >= len(text)
            if match.quotes < len(self.stack.quotes) or (blank and html.end is None):
                break
            if not blank and match.place.column < content:
                break
            ended = html.end is not None and html.end.search(text, match.place.pos) is not None
            if not blank or match.quotes:
                positions.append((following, match.place.pos))
            following += 1
        self._add(ElementKind.HTML, line, positions[-1][0])
        self._leave(ElementKind.HTML, positions)
        return following

    def _definition(self, line: int, pos: int) -> int:
        """Read a link reference definition; gives the line after it, or 0 where there is none."""
        positions = [(line, pos)]

        def more() -> str | None:
            following = positions[-1][0] + 1
            found = self._goes_on(following)
            if found < 0:
                return None
            positions.append((following, found))
            return self.lines[following][found:].decode("utf-8") + "\n"

        definition = read_definition(self.lines[line][pos:].decode("utf-8") + "\n", more)
        if definition is None:
            return 0
        last = line + definition.lines - 1
        joined = self.definition
        self._leave(ElementKind.DEFINITION, positions[: definition.lines])
        if joined is not None and joined.last == line - 1 and len(self.stack.open) == 1:
            joined.last = last
            self.last = last
        else:
            self.definition = self._add(ElementKind.DEFINITION, line, last)
        return last + 1

    def _goes_on(self, line: int) -> int:
        """Where a definition's text goes on in a line; -1 where its paragraph would end."""
        if line >= self.count:
            return -1
        text = self.lines[line]
        match = self.stack.match(text)
        pos, column, _ = match.place
        if pos >= len(text):
            return -1
        whole = match.containers == len(self.stack.open)
        if whole and column - self.stack.open[-1].content >= 4:
            return pos
        if self._interrupts(line, match, paragraph=False):
            return -1
        if match.quotes == len(self.stack.quotes) and b"|" in text and self._table_at(line, pos):
            return -1
        return pos

    # Questions about lines

    def _interrupts(self, line: int, match: Match, *, paragraph: bool) -> bool:
        """Whether a line ends the open paragraph, or the quotes around it that it does not go on in."""
        stack = self.stack
        pos, column, _ = match.place
        if match.quotes == len(stack.quotes):
            innermost = stack.open[-1]
            context = _Context(column, innermost.content, innermost.list_indent, paragraph, True)
            return self._ends_block(line, pos, context)
        quote = stack.open[stack.quotes[match.quotes]]
        context = _Context(column, quote.outer, quote.list_indent, False, False)
        if column - quote.outer < 4 and self._ends_block(line, pos, context):
            return True
        if match.quotes + 1 < len(stack.quotes):
            # A quote inside the one that is left judges the line without its indentation.
            return self._ends_block(line, pos, _Context(-1, 0, -1, False, False))
        return False

    def _ends_block(self, line: int, pos: int, context: _Context) -> bool:
        """Whether a block starts at a line that may end another one."""
        text = self.lines[line]
        char = text[pos]
        if char in _PLAIN:
            return False
        if char == starts.GREATER:
            return True
        if char == starts.HASH:
            return starts.heading_level(text, pos) > 0
        if char in b"`~":
            return starts.fence_start(text, pos) is not None
        if char == starts.LESS:
            html = starts.html_start(text, pos)
            return html is not None and html.interrupts_paragraph
        if char == starts.OPEN_BRACKET:
            return context.footnotes and starts.footnote_end(text, pos) > 0
        if char in b"-*_" and self._is_rule(line, pos):
            return True
        return self._ends_block_as_item(text, pos, context)

    def _ends_block_as_item(self, text: bytes, pos: int, context: _Context) -> bool:
        column, content, list_indent, paragraph, _ = context
        if 0 <= list_indent <= column - 4 and column < content:
            return False
        char = text[pos]
        number = 1
        if char in b"-*+":
            end = starts.bullet_end(text, pos)
        elif starts.ZERO <= char <= starts.NINE:
            end, number = starts.ordered_marker(text, pos)
        else:
            return False
        if not end:
            return False
        if paragraph and column >= content:
            return number == 1 and expand(text, end, 0, 0)[0] < len(text)
        return True

    def _item_key(self, line: int, pos: int) -> int | None:
        """The kind of list whose item begins at a position; None where none does."""
        text = self.lines[line]
        char = text[pos]
        if char in b"-*_" and self._is_rule(line, pos):
            return None
        if char in b"-*+":
            return char if starts.bullet_end(text, pos) else None
        end, _ = starts.ordered_marker(text, pos)
        return text[end - 1] if end else None

    def _is_rule(self, line: int, pos: int) -> bool:
        """Whether a line is a thematic break from a position on; the same line is looked at once for each marker."""
        text = self.lines[line]
        char = text[pos]
        if self.rule_line != line:
            self.rule_line = line
            self.rule_floors = {}
        floor = self.rule_floors.get(char)
        if floor is None:
            floor = self.rule_floors[char] = len(text.rstrip(bytes((char, starts.SPACE, starts.TAB))))
        return pos >= floor and text.count(char, pos) >= 3

    def _is_empty_after(self, line: int) -> bool:
        """Whether the line after one is blank where an item that has just begun would go on, or missing."""
        if line + 1 >= self.count:
            return True
        text = self.lines[line + 1]
        return self.stack.match(text).place.pos >= len(text)

    def _begins_table(self, line: int, pos: int) -> bool:
        """Whether a line that has a pipe and the next one begin a table in the innermost container."""
        if line + 1 >= self.count:
            return False
        ahead = self.ahead
        text = self.lines[line + 1]
        if not ahead.advance(text, self.stack):
            return False
        place = ahead.place
        innermost = self.stack.open[-1]
        if place.pos >= len(text) or text[place.pos] not in b"|-:":
            return False
        if not 0 <= place.column - innermost.content < 4:
            return False
        return self._is_table(line, pos, line + 1, place.pos)

    def _table_at(self, line: int, pos: int) -> bool:
        """The same for a line further down, whose own indentation is small enough."""
        if line + 1 >= self.count:
            return False
        text = self.lines[line + 1]
        match = self.stack.match(text)
        place = match.place
        if match.containers < len(self.stack.open) or place.pos >= len(text) or text[place.pos] not in b"|-:":
            return False
        return place.column - self.stack.open[-1].content < 4 and self._is_table(line, pos, line + 1, place.pos)

    def _is_table(self, header: int, header_pos: int, delimiter: int, delimiter_pos: int) -> bool:
        """Whether two lines are a header and a delimiter row."""
        if b"|" not in self.lines[header]:
            return False
        columns = self.ahead.columns_of(delimiter, delimiter_pos, self.lines[delimiter])
        return columns > 0 and columns == self.ahead.cells_of(header, header_pos, self.lines[header])

    def _math_end(self, line: int, pos: int) -> int:
        """The line after a display that begins on a line; 0 where none does."""
        whole = starts.math_ends_on_first_line(self.lines[line], pos)
        if whole is None:
            return 0
        if whole:
            return line + 1
        if self.math_ends is None:
            self.math_ends = [number for number, text in enumerate(self.lines) if starts.closes_math(text)]
        place = bisect_left(self.math_ends, line + 1)
        if place == len(self.math_ends):
            return 0
        end = self.math_ends[place] + 1
        return end if not self.stack.quotes or end <= self._quote_end(line) else 0

    def _quote_end(self, line: int) -> int:
        """The line before which the lines of the innermost quote end, lazy ones included."""
        quote = self.stack.open[self.stack.quotes[-1]]
        if quote.range_end < 0:
            following = line + 1
            blank = False
            while following < self.count:
                text = self.lines[following]
                match = self.stack.match(text)
                if match.quotes < len(self.stack.quotes) and (
                    blank or match.place.pos >= len(text) or self._interrupts(following, match, paragraph=False)
                ):
                    break
                blank = match.place.pos >= len(text)
                following += 1
            quote.range_end = following
        return quote.range_end

    # Results

    def _add(self, kind: ElementKind, first: int, last: int, level: int = 0) -> Block | None:
        """Note a leaf; at top level it becomes a block."""
        parent = self._other_than_item()
        self.last = last
        if len(self.stack.open) > 1:
            parent.list_key = None
            return None
        block = Block(kind, first, last, self.offsets[first], level)
        self.blocks.append(block)
        return block

    def _root_block(self, kind: ElementKind, line: int) -> Block | None:
        if len(self.stack.open) > 1:
            return None
        block = Block(kind, line, line, self.offsets[line])
        self.blocks.append(block)
        return block

    def _other_than_item(self) -> Container:
        """The innermost container, in which something else than an item begins: its list is over."""
        parent = self.stack.open[-1]
        parent.list_key = None
        self.definition = None
        return parent

    def _leave(self, kind: ElementKind, lines: list[tuple[int, int]]) -> None:
        if self.leaves is not None:
            self.leaves.append(Leaf(kind, lines))


class _Ahead:
    """What was found out about a line that may be a header and the line after it.

    On a line that opens many containers the same questions come up for each of them. Each is answered
    by going on from the last answer, so that the answers together cost one look at the lines.
    """

    def __init__(self) -> None:
        self.wanted = False  # Whether the line that is being read has a pipe.
        self.line = -1
        self.quotes = 0
        self.failed = False
        self.place = Place(0, 0, 0)
        self._columns: tuple[int, int, int] = (-1, 0, 0)
        self._cells: tuple[int, int, bool] = (-1, 0, False)

    def reset(self, line: int, wanted: bool) -> None:
        """Turn to another line."""
        self.wanted = wanted
        self.line = line
        self.quotes = -1
        self.failed = False

    def advance(self, text: bytes, stack: ContainerStack) -> bool:
        """Go into the quotes that were opened since; False where the line does not go on in all of them."""
        if self.failed:
            return False
        if self.quotes < 0:
            self.place = indentation(text)
            self.quotes = 0
        while self.quotes < len(stack.quotes):
            quote = stack.open[stack.quotes[self.quotes]]
            place = self.place
            if place.pos >= len(text) or place.column < quote.outer or text[place.pos] != starts.GREATER:
                self.failed = True
                return False
            self.place = after_quote_marker(text, place)
            self.quotes += 1
        return True

    def columns_of(self, line: int, pos: int, text: bytes) -> int:
        """How many columns a delimiter row makes; 0 where the line is none."""
        if self._columns[:2] != (line, pos):
            alignments = delimiter_alignments(text[pos:].decode("utf-8"))
            self._columns = (line, pos, len(alignments or ()))
        return self._columns[2]

    def cells_of(self, line: int, pos: int, text: bytes) -> int:
        """How many cells a header has, from a position on that only container markers stand before."""
        if self._cells[0] != line:
            cells, leading, _ = split_row(text[pos:].decode("utf-8"))
            self._cells = (line, len(cells), leading)
            return len(cells)
        _, cells_before, leading = self._cells
        # The one difference that markers make: behind them the line may begin with a pipe.
        return cells_before - (1 if text[pos] == starts.PIPE and not leading else 0)
