"""Lines to blocks: every top-level block and nested list item with its lines.

A document's blocks are found line by line with an explicit stack of open containers, in time that
grows with the bytes alone, whatever their nesting. The rules and their order are those of the
dialect's markdown-it parser (``dialect.block_parser``), which the tests compare with; that parser
itself is not used here because it gives up beyond its nesting limit, recurses, gives definitions and
footnotes no place, and takes quadratic time on some shapes.
"""

from collections.abc import Callable
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
from local_vector_search_mcp.markdown.inline import DefinedLabels
from local_vector_search_mcp.markdown.line_questions import BULLET, DELIMITER, FENCE, PLAIN, RULE, LineQuestions
from local_vector_search_mcp.markdown.source import SourceText


class Leaf(NamedTuple):
    """A block of inline content or HTML at any depth, as its lines without markers and indentation.

    Attributes:
        kind: Paragraph, heading, table, HTML or definition.
        lines: Line numbers from 0, each with the position of its content in the line.
    """

    kind: ElementKind
    lines: list[tuple[int, int]]


def scan_blocks(
    source: SourceText,
    first_line: int,
    take: Callable[[Block], None],
    labels: DefinedLabels,
    leaves: list[Leaf] | None = None,
) -> None:
    """Find the blocks of a source from a line on (from 0).

    Args:
        take: Called with each block when it is complete, in order; list items stand for their lists.
        labels: Gets the labels that link and footnote definitions at any depth define.
        leaves: Gets what ``scan_leaves`` gives, without a second scan; None where that is not wanted.
    """
    _Scanner(source, take, labels, leaves).scan(first_line)


def scan_leaves(source: SourceText, first_line: int) -> list[Leaf]:
    """The leaves of a source from a line on (from 0), in order; code and math are none."""
    leaves: list[Leaf] = []
    _Scanner(source, _drop, DefinedLabels(), leaves).scan(first_line)
    return leaves


def _drop(_block: Block) -> None:
    """Take no blocks."""


_OVER: Place = (-1, 0, 0)


class _Scanner:
    def __init__(
        self, source: SourceText, take: Callable[[Block], None], labels: DefinedLabels, leaves: list[Leaf] | None
    ) -> None:
        self.lines = source.lines
        self.offsets = source.line_starts
        self.count = len(self.lines)
        self.stack = ContainerStack()
        self.open = self.stack.open
        self.take = take
        self.labels = labels
        self.leaves = leaves
        self.lists = 0
        self.last = 0  # The last line that is not blank of what was read so far.
        self.definition: Block | None = None  # The definitions that a further one right below joins.
        self.ask = LineQuestions(source, self.stack)
        # The line that ended a paragraph and how it matched, so that it is matched once.
        self.known_line = -1
        self.known: Match = (0, 0, 0, 0, 0)

    def scan(self, line: int) -> None:
        """Read all lines from one on."""
        lines, stack, containers, count = self.lines, self.stack, self.open, self.count
        while line < count:
            text = lines[line]
            if not text and not stack.quotes:
                line += 1
                continue
            if len(containers) == 1:
                pos, column = (0, 0) if text[0] > 0x20 else indentation(text)
                shift = 0
                if pos >= len(text):
                    line += 1
                    continue
            else:
                match = self.known if line == self.known_line else stack.match(text)
                matched, quotes, pos, column, shift = match
                if matched < len(containers):
                    self._close(matched)
                if pos >= len(text):
                    if quotes:
                        self.last = line
                    line += 1
                    continue
            line = self._start(line, pos, column, shift)
        self._close(1)
        self._end_definitions()

    # Block starts

    def _start(self, line: int, pos: int, column: int, shift: int) -> int:
        """Open what begins on a line: containers, then one leaf. Gives the next line to read."""
        text = self.lines[line]
        containers = self.open
        self.last = line
        wanted = b"|" in text
        if wanted:
            self.ask.lookahead.turn_to(line + 1)
        while True:
            if pos >= len(text):
                return line + 1
            parent = containers[-1]
            indent = column - parent.content
            if wanted and indent < 4 and self.ask.begins_table(line, pos, parent):
                return self._table(line, pos)
            if indent >= 4:
                return self._indented_code(line)
            char = text[pos]
            if char in PLAIN and char != starts.DOLLAR:
                return self._paragraph(line, pos)
            opened = self._open_container(line, pos, column, shift)
            if opened is None:
                return self._leaf(line, pos, char)
            pos, column, shift = opened
            if pos < 0:
                return line + 1

    def _open_container(self, line: int, pos: int, column: int, shift: int) -> Place | None:
        """Open a quote, item or footnote; gives the place of its content, with a negative position where it is over."""
        if len(self.open) > MAX_CONTAINERS:
            return None
        text = self.lines[line]
        char = text[pos]
        if char in BULLET:
            end = 0 if char in RULE and self.ask.is_rule(line, pos) else starts.bullet_end(text, pos)
            return self._open_item(line, (pos, column, shift), end, char) if end else None
        if starts.ZERO <= char <= starts.NINE:
            end, _ = starts.ordered_marker(text, pos)
            return self._open_item(line, (pos, column, shift), end, text[end - 1]) if end else None
        if char == starts.GREATER:
            parent = self._other_than_item()
            block = self._root_block(ElementKind.BLOCK_QUOTE, line)
            self.stack.push_quote(Container(0, parent.content, parent.list_indent, block))
            return after_quote_marker(text, pos, column, shift)
        if char == starts.OPEN_BRACKET:
            end = starts.footnote_end(text, pos)
            return self._open_footnote(line, (pos, column, shift), end) if end else None
        return None

    def _open_footnote(self, line: int, place: Place, end: int) -> Place:
        pos, column, shift = place
        self.labels.footnotes.add(self.lines[line][pos + 2 : end - 2].decode("utf-8"))
        parent = self._other_than_item()
        content = parent.content + 4
        block = self._root_block(ElementKind.FOOTNOTE, line)
        self.stack.push(Container(content, parent.content, parent.list_indent, block))
        start = column + end - pos
        pos, column = expand(self.lines[line], end, start, 0)
        column -= start
        return pos, column if column >= content else column + content, shift

    def _open_item(self, line: int, place: Place, end: int, key: int) -> Place:
        text = self.lines[line]
        pos, column, shift = place
        parent = self.open[-1]
        self._end_definitions()
        if parent.list_key != key:
            parent.list_key = key
            self.lists += 1
            parent.list_id = self.lists
        block, depth = self._item_block(line, pos, parent)
        start = column + end - pos
        pos, column = expand(text, end, start, shift)
        # More than four columns are the marker's one and an indented code block.
        width = column - start if pos < len(text) and column - start <= 4 else 1
        self.stack.push(Container(start + width, parent.content, parent.content, block, depth))
        if pos >= len(text) and self.ask.is_empty_after(line):
            # An item can begin with one blank line at most, so this one is over.
            self._close(len(self.open) - 1)
            return _OVER
        return pos, column, shift

    def _item_block(self, line: int, pos: int, parent: Container) -> tuple[Block | None, int]:
        """The block of a new item, put where it belongs, and its depth; None and 0 without an address."""
        offset = self.offsets[line]
        if len(self.open) == 1:
            return Block(ElementKind.LIST_ITEM, line, line, offset, 0, parent.list_id), 1
        holder = parent.block
        if holder is None or not 0 < parent.depth < MAX_ITEM_DEPTH:
            return None, 0
        if holder.first == line:
            offset += pos
        block = Block(ElementKind.LIST_ITEM, line, line, offset, 0, parent.list_id)
        if holder.items is None:
            holder.items = []
        holder.items.append(block)
        return block, parent.depth + 1

    def _leaf(self, line: int, pos: int, char: int) -> int:
        """Read the leaf that begins at a character that may be no text."""
        text = self.lines[line]
        if char == starts.HASH:
            level = starts.heading_level(text, pos)
            if level:
                self._add(ElementKind.HEADING, line, line, level)
                self._leave(ElementKind.HEADING, [(line, pos)])
                return line + 1
        elif char in RULE:
            if self.ask.is_rule(line, pos):
                self._add(ElementKind.RULE, line, line)
                return line + 1
        elif char in FENCE:
            fence = starts.fence_start(text, pos)
            if fence is not None:
                return self._fenced_code(line, fence)
        elif char == starts.OPEN_BRACKET:
            end = self._definition(line, pos)
            if end:
                return end
        elif char == starts.LESS:
            html = starts.html_start(text, pos)
            if html is not None:
                return self._html(line, pos, html)
        elif char == starts.DOLLAR and text.startswith(b"$$", pos):
            end = self.ask.math_end(line, pos)
            if end:
                self._add(ElementKind.MATH, line, end - 1)
                return end
        return self._paragraph(line, pos)

    # Leaves

    def _paragraph(self, line: int, pos: int) -> int:
        """Read a paragraph, or the setext heading or table that its lines turn out to be."""
        lines, count = self.lines, self.count
        positions = [(line, pos)]
        # Where the line before would begin as a table's header; -1 where it cannot be one.
        header = pos
        root = len(self.open) == 1
        content = self.open[-1].content
        following = line + 1
        while following < count:
            text = lines[following]
            if root and text and text[0] in PLAIN:
                positions.append((following, 0))
                header = 0
                following += 1
                continue
            match = (1, 0, *indentation(text), 0) if root else self.stack.match(text)
            matched, quotes, pos, column, _ = match
            if pos >= len(text):
                break
            indented = False
            if matched == len(self.open):
                indented = column - content > 3
                if not indented:
                    char = text[pos]
                    header_above = header >= 0 and char in DELIMITER
                    if header_above and self.ask.lookahead.is_table(following - 1, header, following, pos):
                        return self._before_table(line, positions)
                    level = starts.underline_level(text, pos)
                    if level:
                        self._add(ElementKind.HEADING, line, following, level)
                        self._leave(ElementKind.HEADING, positions)
                        return following + 1
            if not indented and self.ask.interrupts(following, match, paragraph=True):
                if not root:
                    self.known_line = following
                    self.known = match
                break
            positions.append((following, pos))
            header = -1 if indented or quotes < len(self.stack.quotes) else pos
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
        positions = [(line, pos), (line + 1, self.ask.lookahead.pos)]
        innermost = self.open[-1]
        content, list_indent = innermost.content, innermost.list_indent
        following = line + 2
        while following < self.count:
            text = self.lines[following]
            matched, _, pos, column, _ = self.stack.match(text)
            if pos >= len(text) or matched < len(self.open) or column - content >= 4:
                break
            if text[pos] not in PLAIN and self.ask.ends_block(
                following, pos, (column, content, list_indent), False, False
            ):
                break
            positions.append((following, pos))
            following += 1
        self._add(ElementKind.TABLE, line, following - 1)
        self._leave(ElementKind.TABLE, positions)
        return following

    def _indented_code(self, line: int) -> int:
        content = self.open[-1].content
        last = line
        following = line + 1
        while following < self.count:
            text = self.lines[following]
            _, quotes, pos, column, _ = self.stack.match(text)
            if quotes < len(self.stack.quotes):
                break
            if pos < len(text):
                if column - content < 4:
                    break
                last = following
            following += 1
        self._add(ElementKind.CODE, line, last)
        return last + 1

    def _fenced_code(self, line: int, fence: starts.Fence) -> int:
        lines, count = self.lines, self.count
        root = len(self.open) == 1
        content = self.open[-1].content
        mark = bytes((fence.marker,)) * fence.length
        last = line
        following = line + 1
        while following < count:
            text = lines[following]
            if root:
                if mark not in text:
                    following += 1
                    continue
                quotes = 0
                pos, column = indentation(text)
            else:
                _, quotes, pos, column, _ = self.stack.match(text)
                if quotes < len(self.stack.quotes):
                    break
            if pos < len(text):
                if column < content:
                    break
                last = following
                if column - content < 4 and starts.closes_fence(text, pos, fence):
                    self._add(ElementKind.CODE, line, following)
                    return following + 1
            elif quotes:
                last = following
            following += 1
        self._add(ElementKind.CODE, line, self._last_text(line, following) if root else last)
        return following

    def _html(self, line: int, pos: int, html: starts.HtmlStart) -> int:
        content = self.open[-1].content
        positions = [(line, pos)]
        following = line + 1
        ended = html.end is not None and html.end.search(self.lines[line], pos) is not None
        while following < self.count and not ended:
            text = self.lines[following]
            _, quotes, pos, column, _ = self.stack.match(text)
            blank = pos >= len(text)
            if quotes < len(self.stack.quotes) or (blank and html.end is None):
                break
            if not blank and column < content:
                break
            ended = html.end is not None and html.end.search(text, pos) is not None
            if not blank or quotes:
                positions.append((following, pos))
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
        self.labels.links.append(definition.label)
        last = line + definition.lines - 1
        self._add_definition(line, last)
        self._leave(ElementKind.DEFINITION, positions[: definition.lines])
        return last + 1

    def _goes_on(self, line: int) -> int:
        """Where a definition's text goes on in a line; -1 where its paragraph would end."""
        if line >= self.count:
            return -1
        text = self.lines[line]
        match = self.stack.match(text)
        matched, quotes, pos, column, _ = match
        if pos >= len(text):
            return -1
        if matched == len(self.open) and column - self.open[-1].content >= 4:
            return pos
        if self.ask.interrupts(line, match, paragraph=False):
            return -1
        if quotes == len(self.stack.quotes) and b"|" in text and self.ask.table_at(line, pos):
            return -1
        return pos

    def _last_text(self, line: int, end: int) -> int:
        """The last line before another one that is not blank."""
        while end - 1 > line and not self.lines[end - 1].strip(b" \t"):
            end -= 1
        return end - 1

    # Results

    def _add(self, kind: ElementKind, first: int, last: int, level: int = 0) -> None:
        """Note a leaf; at top level it is a block."""
        self.open[-1].list_key = None
        self.last = last
        if len(self.open) == 1:
            self._end_definitions()
            self.take(Block(kind, first, last, self.offsets[first], level))

    def _add_definition(self, first: int, last: int) -> None:
        """Note a definition; at top level it joins those right above."""
        self.open[-1].list_key = None
        self.last = last
        if len(self.open) == 1:
            if self.definition is None or self.definition.last != first - 1:
                self._end_definitions()
                self.definition = Block(ElementKind.DEFINITION, first, last, self.offsets[first])
            self.definition.last = last

    def _end_definitions(self) -> None:
        if self.definition is not None:
            self.take(self.definition)
            self.definition = None

    def _root_block(self, kind: ElementKind, line: int) -> Block | None:
        """The block of a container that begins at top level."""
        if len(self.open) > 1:
            return None
        return Block(kind, line, line, self.offsets[line])

    def _close(self, count: int) -> None:
        """Close all but the first containers; one at top level is a block then."""
        block = self.open[1].block if count == 1 and len(self.open) > 1 else None
        self.stack.close(count, self.last)
        if block is not None:
            self.take(block)

    def _other_than_item(self) -> Container:
        """The innermost container, in which a quote or footnote begins: its list is over."""
        self._end_definitions()
        parent = self.open[-1]
        parent.list_key = None
        return parent

    def _leave(self, kind: ElementKind, lines: list[tuple[int, int]]) -> None:
        if self.leaves is not None:
            self.leaves.append(Leaf(kind, lines))
