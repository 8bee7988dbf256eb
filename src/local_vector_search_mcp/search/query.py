"""User text → words, phrases and exclusions. Pure; any text is a query, and nothing in it is syntax that can fail.

``"…"`` is a phrase, ``-word`` and ``-"…"`` exclude. Everything else is a word, whatever characters it holds.
"""

import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.index.normalize import Piece, identifiers, query_piece

_CLOSING = {'"': '"', "\u201c": "\u201d", "\u201e": "\u201c"}
_OPENS_AFTER = frozenset("([{<:=,;/'")
_PUNCTUATION = ".,;:!?'`()[]{}<>*_\u2026\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f\u300c\u300d\u201c\u201d\u2018\u2019"
_MAX_CHARS = 20_000
_MAX_SEGMENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One word or phrase of a query; ``text`` is how the user wrote it, without punctuation around it.

    ``whole`` are its tokens as they stand side by side in rows. ``others`` are the parts of identifiers in it, each
    of which rows hold side by side too.
    """

    text: str
    whole: Piece
    others: tuple[Piece, ...] = ()

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Every form in which rows may hold the term; it occurs where one of them does."""
        return (self.whole, *self.others)

    def is_only(self, words: AbstractSet[str]) -> bool:
        """Whether it holds nothing but these words."""
        return all(token in words for token in self.whole.tokens)


@dataclass(frozen=True, slots=True)
class _Segment:
    """A run of the user's text.

    ``bare`` is without quotes, ``raw`` with them; neither has the hyphen of an exclusion, which ``length`` counts.
    """

    bare: str
    raw: str
    length: int
    quoted: bool = False
    excluded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A query taken apart.

    Attributes:
        text: As the user gave it, without blanks around it.
        words: Plain words in order, repeated ones kept; only those that hold a letter or digit.
        phrases: Quoted phrases in order.
        exclusions: Words and phrases that a hit must not hold.
        symbols: Words without any letter or digit, by which nothing can be found.
        text_to_embed: What is asked for, without quotes and exclusions.
        ends_with_word: Whether a plain word comes last: one that may not be typed to its end.
        exclusions_read_as_text: Whether ``-word`` was typed and stands among the words all the same.
    """

    text: str
    words: tuple[Term, ...]
    phrases: tuple[Term, ...]
    exclusions: tuple[Term, ...]
    symbols: tuple[str, ...]
    text_to_embed: str
    ends_with_word: bool
    exclusions_read_as_text: bool
    _segments: tuple[_Segment, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is asked for: phrases, then words."""
        return (*self.phrases, *self.words)

    def with_exclusions_as_text(self) -> "ParsedQuery":
        """The same query with every exclusion read as words or phrases to look for."""
        segments = [replace(segment, excluded=False) for segment in self._segments]
        return replace(_from_segments(self.text, segments), exclusions_read_as_text=True)


def parse_query(text: str) -> ParsedQuery:
    """Take a query apart. Where it asks for nothing but exclusions, they are read as text.

    Raises:
        InvalidArgument: It is empty, or no valid Unicode.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument("The query holds a lone surrogate; give it as valid Unicode.") from error
    stripped = text.strip()
    if not stripped:
        raise InvalidArgument("The query is empty; say in a few words what to look for.")
    parsed = _from_segments(stripped, _segments(stripped[:_MAX_CHARS]))
    return parsed.with_exclusions_as_text() if parsed.exclusions and not parsed.terms else parsed


def _from_segments(text: str, segments: Sequence[_Segment]) -> ParsedQuery:
    words: list[Term] = []
    phrases: list[Term] = []
    exclusions: list[Term] = []
    symbols: list[str] = []
    for segment in segments:
        term = _term(segment)
        if not term.whole.tokens:
            symbols.append(segment.raw)
        elif segment.excluded:
            exclusions.append(term)
        else:
            (phrases if segment.quoted else words).append(term)
    return ParsedQuery(
        text=text,
        words=tuple(words),
        phrases=tuple(phrases),
        exclusions=tuple(exclusions),
        symbols=tuple(dict.fromkeys(symbols)),
        text_to_embed=" ".join(segment.bare for segment in segments if not segment.excluded) or text,
        ends_with_word=bool(segments) and not (segments[-1].quoted or segments[-1].excluded),
        exclusions_read_as_text=False,
        _segments=tuple(segments),
    )


def _term(segment: _Segment) -> Term:
    others = [
        Piece(tokens=tuple(part.lower() for part in identifier.parts)) for identifier in identifiers(segment.bare)
    ]
    text = segment.raw if segment.quoted else segment.raw.strip(_PUNCTUATION) or segment.raw
    return Term(text=text, whole=query_piece(segment.bare), others=tuple(others))


def _segments(text: str) -> list[_Segment]:
    found: list[_Segment] = []
    at = 0
    while at < len(text) and len(found) < _MAX_SEGMENTS:
        if text[at].isspace():
            at += 1
            continue
        segment = _exclusion(text, at) or _phrase(text, at) or _word(text, at)
        found.append(segment)
        at += segment.length
    return found


def _exclusion(text: str, at: int) -> _Segment | None:
    """``-word`` or ``-"phrase"``, where a word begins; ``--`` and ``-1`` are text."""
    if text[at] != "-" or (at and not text[at - 1].isspace()) or at + 1 >= len(text):
        return None
    phrase = _phrase(text, at + 1)
    if phrase is not None:
        return replace(phrase, excluded=True, length=phrase.length + 1)
    if not text[at + 1].isalpha():
        return None
    word = _word(text, at + 1)
    return replace(word, excluded=True, length=word.length + 1)


def _phrase(text: str, at: int) -> _Segment | None:
    """``"phrase"``, at a place where quotes open; None where they are not closed or hold nothing."""
    closing = _CLOSING.get(text[at])
    if closing is None:
        return None
    end = text.find(closing, at + 1)
    bare = text[at + 1 : end]
    if end < 0 or not query_piece(bare).tokens:
        return None
    return _Segment(bare, text[at : end + 1], end + 1 - at, quoted=True)


def _word(text: str, at: int) -> _Segment:
    """Everything up to the next blank, or up to a phrase that opens inside: ``title:"a b"``."""
    end = at + 1
    while end < len(text) and not text[end].isspace():
        if text[end - 1] in _OPENS_AFTER and _phrase(text, end) is not None:
            break
        end += 1
    raw = text[at:end]
    return _Segment(raw, raw, end - at)


def latin_share(text: str) -> float:
    """Which share of the letters of a text is of the Latin script, 0 to 1; 1 where it holds no letter."""
    letters = [char for char in unicodedata.normalize("NFKC", text) if char.isalpha()]
    latin = sum(1 for char in letters if char.isascii() or unicodedata.name(char, "").startswith("LATIN"))
    return latin / len(letters) if letters else 1.0
