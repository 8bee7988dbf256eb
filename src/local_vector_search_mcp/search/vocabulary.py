"""What the full-text rows hold: how many rows a word stands in, and whether a phrase stands anywhere."""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import math
from dataclasses import dataclass, field
from typing import Final, cast
from weakref import WeakKeyDictionary

import apsw

from local_vector_search_mcp.index.normalize import FTS_TOKENIZER_ARGUMENTS, Piece

# Far more than any query has; so that words that come again and again are not counted each time.
_MOST_WORDS: Final = 4_096


class RowTokenizer:
    """Takes text apart as FTS5 does for a row, stemming included. The text must be in the form of rows already."""

    def __init__(self, connection: apsw.Connection) -> None:
        name, *arguments = FTS_TOKENIZER_ARGUMENTS
        self._tokenizer = connection.fts5_tokenizer(name, list[str](arguments))

    def stems(self, text: str) -> list[str]:
        """The tokens of a text, in order."""
        found = self._tokenizer(
            text.encode("utf-8"), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )
        return cast(list[str], found)

    def located(self, text: str) -> list[tuple[int, int, str]]:
        """The tokens of a text with their half-open byte ranges in its UTF-8 form, in order."""
        found = self._tokenizer(text.encode("utf-8"), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
        return cast(list[tuple[int, int, str]], found)


@dataclass(slots=True)
class _Known:
    """What is known of one state of the index, which a connection tells by its counters of changes."""

    state: tuple[object, int]
    chunks: int
    rows: dict[str, int] = field(default_factory=dict[str, int])


# FTS5 counts the rows of a word by reading all of them, so the commonest words take longest.
_KNOWN: Final[WeakKeyDictionary[apsw.Connection, _Known]] = WeakKeyDictionary()


def _known(connection: apsw.Connection) -> _Known:
    # The first number changes with what other connections write, the second with what this one does.
    state = (connection.execute("PRAGMA data_version").get, connection.total_changes())
    known = _KNOWN.get(connection)
    if known is None or known.state != state or len(known.rows) > _MOST_WORDS:
        known = _KNOWN[connection] = _Known(state, int(connection.execute("SELECT count(*) FROM chunks").get))
    return known


class Vocabulary:
    """The words of one state of the index.

    Args:
        connection: A reader, inside its transaction.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self.tokenizer = RowTokenizer(connection)
        """The tokenizer of the rows."""
        self._connection = connection
        self._known = _known(connection)
        self._stems: dict[str, str] = {}

    @property
    def chunks(self) -> int:
        """How many chunks the index holds."""
        return self._known.chunks

    def stem(self, token: str) -> str:
        """A token as rows hold it; empty for one that FTS5 does not take for a word."""
        known = self._stems.get(token)
        if known is None:
            found = self.tokenizer.stems(token)
            known = self._stems[token] = found[0] if found else ""
        return known

    def rows(self, token: str) -> int:
        """In how many rows a token occurs."""
        stem = self.stem(token)
        known = self._known.rows.get(stem)
        if known is None:
            found = self._connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (stem,)).get
            known = self._known.rows[stem] = 0 if found is None else int(found)
        return known

    def weight_of(self, rows: int) -> float:
        """The inverse document frequency of what stands in so many rows; never negative."""
        return math.log(1 + (max(self.chunks - rows, 0) + 0.5) / (rows + 0.5))

    def holds(self, match: str) -> bool:
        """Whether any row fits an FTS5 expression."""
        return self._connection.execute("SELECT 1 FROM fts WHERE fts MATCH ? LIMIT 1", (match,)).get is not None


def fts_phrase(piece: Piece, *, open_end: bool = False) -> str:
    """A piece as FTS5 phrase. Holds nothing but letters, digits and marks between its quotes."""
    return f'"{" ".join(piece.tokens)}"{" *" if piece.open_end or open_end else ""}'
