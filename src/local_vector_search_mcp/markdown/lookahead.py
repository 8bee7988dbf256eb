"""Whether a line and the next one begin a table, asked anew for every container that a line opens.

On a line that opens many containers the same question comes up for each of them. Each is answered by
going on from the last answer, so that all answers together cost one look at the two lines.
"""

from collections.abc import Sequence

from local_vector_search_mcp.markdown.containers import ContainerStack, after_quote_marker, indentation
from local_vector_search_mcp.markdown.table_rows import delimiter_alignments, split_row

_GREATER, _PIPE = b">|"


class Lookahead:
    """What is known about a line that may be a header and about the line after it.

    Attributes:
        pos, column: Where the content of the line after it begins, inside the quotes that are open.
    """

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.lines = lines
        self.pos = 0
        self.column = 0
        self._shift = 0
        self._line = -1
        self._quotes = 0
        self._failed = False
        self._columns: tuple[int, int, int] = (-1, 0, 0)
        self._cells: tuple[int, int, bool] = (-1, 0, False)

    def turn_to(self, line: int) -> None:
        """Look at another line after a possible header."""
        self._line = line
        self._quotes = -1
        self._failed = False

    def advance(self, stack: ContainerStack) -> bool:
        """Go into the quotes that were opened since; False where the line does not go on in all of them."""
        if self._failed:
            return False
        text = self.lines[self._line]
        if self._quotes < 0:
            self.pos, self.column = indentation(text)
            self._shift = 0
            self._quotes = 0
        while self._quotes < len(stack.quotes):
            quote = stack.open[stack.quotes[self._quotes]]
            if self.pos >= len(text) or self.column < quote.outer or text[self.pos] != _GREATER:
                self._failed = True
                return False
            self.pos, self.column, self._shift = after_quote_marker(text, self.pos, self.column, self._shift)
            self._quotes += 1
        return True

    def is_table(self, header: int, header_pos: int, delimiter: int, delimiter_pos: int) -> bool:
        """Whether two lines are a header and a delimiter row with as many cells."""
        if b"|" not in self.lines[header]:
            return False
        columns = self._columns_of(delimiter, delimiter_pos)
        return columns > 0 and columns == self._cells_of(header, header_pos)

    def _columns_of(self, line: int, pos: int) -> int:
        if self._columns[:2] != (line, pos):
            alignments = delimiter_alignments(self.lines[line][pos:].decode("utf-8"))
            self._columns = (line, pos, len(alignments or ()))
        return self._columns[2]

    def _cells_of(self, line: int, pos: int) -> int:
        text = self.lines[line]
        if self._cells[0] != line:
            cells, leading, _ = split_row(text[pos:].decode("utf-8"))
            self._cells = (line, len(cells), leading)
            return len(cells)
        _, before, leading = self._cells
        # The one difference that container markers make: behind them the line may begin with a pipe.
        return before - (1 if text[pos] == _PIPE and not leading else 0)
