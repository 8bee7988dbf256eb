"""What a query asks of the full-text rows: which words score, what must be there, what must not, what is missing.

Words that say nothing (stop words) are left out as long as others are there.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from local_vector_search_mcp.index.normalize import Piece, is_paired
from local_vector_search_mcp.search.query import ParsedQuery, Term
from local_vector_search_mcp.search.vocabulary import Vocabulary, fts_phrase

_MAX_UNITS: Final = 64
_MAX_PHRASE_TOKENS: Final = 24
_MIN_PREFIX_CHARS: Final = 3
_MAX_MISSING: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One thing that is looked for and scored: a word, a phrase, or words that begin so.

    Attributes:
        match: As FTS5 expression.
        tokens: Its tokens, not stemmed.
        rows: In how many rows it occurs; for anything but a single word, in at most how many.
        single: Whether it is a single whole word.
        open_end: Whether the last token may be the beginning of a longer one.
    """

    match: str
    tokens: tuple[str, ...]
    rows: int
    single: bool
    open_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked of the full-text rows.

    Attributes:
        scored: What is scored, as often as the query says it; nothing that occurs nowhere.
        required: Phrases of which every hit holds all.
        excluded: What no hit holds.
        missing: Terms that occur nowhere, as the user wrote them; of very many the first ones.
        absent_phrases: Those of them that were quoted.
    """

    scored: tuple[Unit, ...]
    required: tuple[str, ...]
    excluded: tuple[str, ...]
    missing: tuple[str, ...]
    absent_phrases: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The single words that score, in order, each once."""
        return tuple(dict.fromkeys(unit.tokens[0] for unit in self.scored if unit.single))


def make_plan(query: ParsedQuery, vocabulary: Vocabulary, stop_words: AbstractSet[str]) -> Plan:
    """Look every term up and decide what it contributes."""
    words = [term for term in query.words if not term.is_only(stop_words)]
    if not words and not query.phrases:
        words = list(query.words)
    unfinished = query.words[-1] if query.words and query.ends_with_word else None
    looks = {
        term: _look_up(term, vocabulary, stop_words, quoted=term in query.phrases, may_go_on=term is unfinished)
        for term in dict.fromkeys((*query.phrases, *words))
    }
    present = [term for term in query.phrases if looks[term].occurs]
    absent = [term.text for term in query.phrases if not looks[term].occurs]
    missing = [term.text for term, look in looks.items() if not look.occurs]
    return Plan(
        scored=_rarest([unit for term in (*present, *words) for unit in looks[term].units]),
        required=tuple(dict.fromkeys(any_piece(term) for term in present)),
        excluded=tuple(dict.fromkeys(any_piece(term) for term in query.exclusions)),
        missing=tuple(dict.fromkeys((*missing, *lone_symbols(query))))[:_MAX_MISSING],
        absent_phrases=tuple(dict.fromkeys(absent)),
    )


def lone_symbols(query: ParsedQuery) -> tuple[str, ...]:
    """The signs of a query that asks for nothing else; beside words they are punctuation."""
    return () if query.terms else query.symbols


def any_piece(term: Term) -> str:
    """An FTS5 expression for the rows that hold a term in one of its forms."""
    matches = [fts_phrase(piece) for piece in term.pieces]
    return matches[0] if len(matches) == 1 else f"({' OR '.join(matches)})"


@dataclass(frozen=True, slots=True)
class _Look:
    """What the rows say about a term."""

    units: tuple[Unit, ...]
    occurs: bool


def _look_up(
    term: Term, vocabulary: Vocabulary, stop_words: AbstractSet[str], *, quoted: bool, may_go_on: bool
) -> _Look:
    whole = term.whole
    last = whole.tokens[-1]
    # What stands before the beginning of a word, as in "kb_ed", makes up for its shortness.
    fewest = _MIN_PREFIX_CHARS if len(whole.tokens) == 1 else _MIN_PREFIX_CHARS - 1
    open_end = whole.open_end or (
        may_go_on and len(last) >= fewest and not is_paired(last) and not vocabulary.rows(last)
    )
    units = [*_singles(whole, vocabulary, stop_words, open_end=open_end)]
    phrases = [(whole, open_end)] if open_end or len(whole.tokens) > 1 else []
    phrases += [(piece, False) for piece in term.others if len(piece.tokens) > 1]
    occurs = len(whole.tokens) == 1 and bool(units)
    for piece, begins in phrases:
        unit = _phrase(piece, vocabulary, open_end=begins)
        if unit is not None and vocabulary.holds(unit.match):
            occurs = True
            if len(piece.tokens) <= _MAX_PHRASE_TOKENS:
                units.append(unit)
    for piece in term.others:
        if len(piece.tokens) == 1 and vocabulary.rows(piece.tokens[0]):
            units += _singles(piece, vocabulary, frozenset(), open_end=False)
            occurs = True
    if not occurs:
        # The identifier is not there, but what it is made of may be.
        for piece in term.others:
            units += _singles(piece, vocabulary, stop_words, open_end=False)
    if not quoted and units and is_paired(next(iter(whole.tokens))):
        # A run of a script without spaces is rarely one word; what it is made of occurs.
        occurs = True
    return _Look(tuple(units), occurs)


def _singles(piece: Piece, vocabulary: Vocabulary, stop_words: AbstractSet[str], *, open_end: bool) -> list[Unit]:
    """The words of a piece that occur and tell something; its last one only where it is whole."""
    tokens = piece.tokens[:-1] if open_end else piece.tokens
    telling = [token for token in tokens if token not in stop_words] or tokens
    return [
        Unit(match=f'"{token}"', tokens=(token,), rows=rows, single=True)
        for token in telling
        if (rows := vocabulary.rows(token))
    ]


def _phrase(piece: Piece, vocabulary: Vocabulary, *, open_end: bool) -> Unit | None:
    """A piece as one unit; None where one of its words occurs nowhere."""
    counted = piece.tokens[:-1] if open_end else piece.tokens
    rows = [vocabulary.rows(token) for token in counted]
    if not all(rows):
        return None
    match = fts_phrase(piece, open_end=open_end)
    return Unit(match=match, tokens=piece.tokens, rows=min(rows, default=1), single=False, open_end=open_end)


def _rarest(units: list[Unit]) -> tuple[Unit, ...]:
    """At most so many units, the rarest ones, in their order and as often as they stand there."""
    distinct = sorted(dict.fromkeys(units), key=lambda unit: (unit.rows, unit.match))
    kept = frozenset(distinct[:_MAX_UNITS])
    return tuple([unit for unit in units if unit in kept][: 2 * _MAX_UNITS])
