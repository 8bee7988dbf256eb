"""What a line means to the blocks that are open: whether it ends a paragraph, a table or a quote.

Whether a line may end a block depends on the containers that it does not go on in. Answers that cost a
look at the whole line are kept for the line.
"""

from bisect import bisect_left

from local_vector_search_mcp.markdown import block_starts as starts
from local_vector_search_mcp.markdown.containers import Container, ContainerStack, Match, expand
from local_vector_search_mcp.markdown.lookahead import Lookahead
from local_vector_search_mcp.markdown.source import SourceText

# First bytes at which a line that is not indented can neither end a paragraph nor be an underline or delimiter row.
PLAIN = frozenset(range(0x21, 0x100)) - frozenset(b"#>`~-*_+<[|:=0123456789")
DELIMITER = frozenset(b"|-:")
RULE = frozenset(b"-*_")
BULLET = frozenset(b"-*+")
FENCE = frozenset(b"`~")


class LineQuestions:
    """Answers about single lines of a source, given the containers that are open."""

    def __init__(self, source: SourceText, stack: ContainerStack) -> None:
        self.lines = source.lines
        self.count = len(source.lines)
        self.stack = stack
        self.open = stack.open
        self.lookahead = Lookahead(source.lines)
        self._rule_line = -1
        self._rule_floors: dict[int, int] = {}
        self._math_ends: list[int] | None = None
        # By the outer columns of the open quotes: from which line on they were looked at, and where they end.
        self._quote_ends: dict[tuple[int, ...], tuple[int, int]] = {}

    def interrupts(self, line: int, match: Match, *, paragraph: bool) -> bool:
        """Whether a line ends the open paragraph, or the quotes around it that it does not go on in."""
        _, quotes, pos, column, _ = match
        if self.lines[line][pos] in PLAIN:
            return False
        stack = self.stack
        if quotes == len(stack.quotes):
            innermost = self.open[-1]
            columns = (column, innermost.content, innermost.list_indent)
            return self.ends_block(line, pos, columns, paragraph, True)
        quote = self.open[stack.quotes[quotes]]
        if column - quote.outer < 4 and self.ends_block(
            line, pos, (column, quote.outer, quote.list_indent), False, False
        ):
            return True
        # A quote inside the one that is left judges the line without its indentation.
        return quotes + 1 < len(stack.quotes) and self.ends_block(line, pos, (-1, 0, -1), False, False)

    def ends_block(self, line: int, pos: int, columns: tuple[int, int, int], paragraph: bool, footnotes: bool) -> bool:
        """Whether a block starts at a line that may end another one.

        Args:
            columns: Of the line's text, of the content of the container in question, and that one's list indent.
            paragraph: Whether a paragraph would be interrupted, which lists do less easily.
            footnotes: Whether a footnote definition ends the block.
        """
        text = self.lines[line]
        char = text[pos]
        if char == starts.GREATER:
            return True
        if char == starts.HASH:
            return starts.heading_level(text, pos) > 0
        if char in FENCE:
            return starts.fence_start(text, pos) is not None
        if char == starts.LESS:
            html = starts.html_start(text, pos)
            return html is not None and html.interrupts_paragraph
        if char == starts.OPEN_BRACKET:
            return footnotes and starts.footnote_end(text, pos) > 0
        if char in RULE and self.is_rule(line, pos):
            return True
        return _ends_block_as_item(text, pos, columns, paragraph)

    def item_key(self, line: int, pos: int) -> int | None:
        """The kind of list whose item begins at a position; None where none does."""
        text = self.lines[line]
        char = text[pos]
        if char in RULE and self.is_rule(line, pos):
            return None
        if char in BULLET:
            return char if starts.bullet_end(text, pos) else None
        end, _ = starts.ordered_marker(text, pos)
        return text[end - 1] if end else None

    def is_rule(self, line: int, pos: int) -> bool:
        """Whether a line is a thematic break from a position on; the same line is looked at once for each marker."""
        text = self.lines[line]
        char = text[pos]
        if self._rule_line != line:
            self._rule_line = line
            self._rule_floors = {}
        floor = self._rule_floors.get(char)
        if floor is None:
            floor = self._rule_floors[char] = len(text.rstrip(bytes((char, starts.SPACE, starts.TAB))))
        return pos >= floor and text.count(char, pos) >= 3

    def is_empty_after(self, line: int) -> bool:
        """Whether the line after one is blank where an item that has just begun would go on, or missing."""
        if line + 1 >= self.count:
            return True
        text = self.lines[line + 1]
        return self.stack.match(text)[2] >= len(text)

    def begins_table(self, line: int, pos: int, parent: Container) -> bool:
        """Whether a line that has a pipe and the next one begin a table in the innermost container."""
        if line + 1 >= self.count or not self.lookahead.advance(self.stack):
            return False
        text = self.lines[line + 1]
        ahead = self.lookahead.pos
        if ahead >= len(text) or text[ahead] not in DELIMITER:
            return False
        if not 0 <= self.lookahead.column - parent.content < 4:
            return False
        # A further item of an open list comes before a table.
        if parent.list_key is not None and parent.list_key == self.item_key(line, pos):
            return False
        return self.lookahead.is_table(line, pos, line + 1, ahead)

    def table_at(self, line: int, pos: int) -> bool:
        """The same for a line further down, whose own indentation is small enough."""
        if line + 1 >= self.count:
            return False
        text = self.lines[line + 1]
        matched, _, ahead, column, _ = self.stack.match(text)
        if matched < len(self.open) or ahead >= len(text) or text[ahead] not in DELIMITER:
            return False
        return column - self.open[-1].content < 4 and self.lookahead.is_table(line, pos, line + 1, ahead)

    def math_end(self, line: int, pos: int) -> int:
        """The line after a display that begins on a line; 0 where none does."""
        whole = starts.math_ends_on_first_line(self.lines[line], pos)
        if whole is None:
            return 0
        if whole:
            return line + 1
        if self._math_ends is None:
            self._math_ends = [number for number, text in enumerate(self.lines) if starts.closes_math(text)]
        place = bisect_left(self._math_ends, line + 1)
        if place == len(self._math_ends):
            return 0
        end = self._math_ends[place] + 1
        return end if not self.stack.quotes or end <= self._quote_end(line) else 0

    def _quote_end(self, line: int) -> int:
        """The line before which the lines of the innermost quote end, lazy ones included."""
        key = tuple(self.open[place].outer for place in self.stack.quotes)
        begin, end = self._quote_ends.get(key, (0, 0))
        # Where quotes of the same shape were looked at before, this one ends with them.
        if not begin <= line < end:
            end = self._find_quote_end(line + 1)
            self._quote_ends[key] = (line, end)
        return end

    def _find_quote_end(self, line: int) -> int:
        blank = False
        while line < self.count:
            text = self.lines[line]
            match = self.stack.match(text)
            pos = match[2]
            if match[1] < len(self.stack.quotes) and (
                blank or pos >= len(text) or self.interrupts(line, match, paragraph=False)
            ):
                break
            blank = pos >= len(text)
            line += 1
        return line


def _ends_block_as_item(text: bytes, pos: int, columns: tuple[int, int, int], paragraph: bool) -> bool:
    """Whether a list item begins at a position and may end another block there."""
    column, content, list_indent = columns
    if 0 <= list_indent <= column - 4 and column < content:
        return False
    char = text[pos]
    number = 1
    if char in BULLET:
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
