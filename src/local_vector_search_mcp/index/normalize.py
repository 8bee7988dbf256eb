"""One normalisation of text for rows and queries. Pure; opens no database.

FTS5 splits text at everything that is no letter, digit or mark, lowers it and stems English. This room does
what that tokenizer cannot:

* letters are brought to one form: NFKC, case folded, without diacritics;
* scripts written without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Myanmar) become overlapping pairs
  of characters with the last character of each run after them, so that every substring of a run is a phrase of
  pairs and a single character is the beginning of some token;
* emoji become words;
* the parts of identifiers that FTS5 keeps whole (``KnowledgeBase``, ``v1``, ``sha256``, ``C++``) stand once more
  behind the text. They stand behind it, not in it, so that words that are neighbours stay neighbours.

``snake_case``, ``kebab-case`` and ``dotted.names`` need nothing: FTS5 splits them, and a query finds them whole
as a phrase.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import add

NORMALIZER_VERSION = 3
"""Rises whenever the same text gives other tokens; rows of another version must be built again."""

FTS_TOKENIZER_ARGUMENTS = ("porter", "unicode61", "remove_diacritics", "2", "categories", "L* N* Co M*")
"""The tokenizer and its arguments, one by one."""

# Marks count as part of a word: Thai and Devanagari vowel signs are marks. Those that are mere diacritics are
# gone before FTS5 sees the text.
FTS_TOKENIZE = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
"""The value of ``tokenize=`` for every full-text table."""

PAIRED = (
    "\u0e01-\u0e4e"  # Thai
    "\u0e80-\u0ece"  # Lao
    "\u1000-\u103f\u1050-\u109f\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3005-\u3007\u3021-\u302f\u3031-\u3035\u303b-\u303c"  # ideographic letters and numerals
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"  # Han
)
"""The inside of a character class: scripts that are indexed by pairs of characters."""

_FOREIGN_RUN = re.compile("[^\x00-\x7f]+")
# Characters that have one form only: Han, kana and Hangul as they are commonly written, and their punctuation.
_SETTLED_RUN = re.compile(
    "[\u4e00-\u9fff\u3041-\u3096\u30a1-\u30fa\u30fc\uac00-\ud7a3\u3001-\u3003\u3005-\u3029\u2013-\u201f\uff01-\uff0f\uff1a-\uff1f]+"
)
# Characters that FTS5 itself brings to the form that ``fold`` gives: accented letters and typographic marks of the
# Latin script, arrows, and what frames and diagrams are drawn with.
_LATIN = re.compile(
    "[\x00-\x7f\u00a0-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf-\u00c5\u00c7-\u00cf\u00d1-\u00d7"
    "\u00d9-\u00dd\u00e0-\u00e5\u00e7-\u00ef\u00f1-\u00f7\u00f9-\u00fd\u00ff-\u010f\u0143-\u0148\u0154-\u0165\u0168-\u017e"
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20a7\u2190-\u2319\u2400-\u245f\u2500-\u25ff]*"
)
_PAIRED_RUN = re.compile(f"[{PAIRED}]+")
_DROPPED = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"  # Latin, Greek, Cyrillic
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4"  # Arabic points and the stretching stroke
    "\u00ad\u200b-\u200f\u2060-\u2064\ufeff\ufe00-\ufe0f]+"  # characters that only steer the setting
)
# What normalisation may join: a Hangul syllable in its letters, or any character with the marks behind it.
_CLUSTER = re.compile(
    "[\u1100-\u115f]+[\u1160-\u11a7]*[\u11a8-\u11ff]*"
    "|(?s:.)[\u0300-\u036f\u3099\u309a\uff9e\uff9f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]*"
)
_UNDECOMPOSED = re.compile("[æœøłđħıðþŧ]")
_PLAIN_LETTERS = {
    "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "ð": "d", "þ": "th", "ŧ": "t",
}  # fmt: skip
# NFKC would glue these to the word before them: "Name™" would become "NameTM".
_MARKS_OF_TRADE = re.compile("[\u2120\u2122]")
_EMOJI = re.compile("[\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff]")

_NO_LETTER = re.compile(r"[^\w\x00-\x7f]")

_MAX_REMEMBERED_CHARS = 8
_MAX_IDENTIFIER_CHARS = 64
_MAX_IDENTIFIER_PARTS = 8


def _class_of(code: int) -> int:
    char = chr(code)
    if not char.isascii() or not char.isalnum():
        return ord(" ")
    return ord("a") if char.islower() else ord("A") if char.isupper() else ord("0") if char.isdigit() else code


# Each ASCII byte as its class: "a", "A" or "0", anything else a blank. Looking for a turn in
# the classes is far quicker than any regular expression over the text.
_CLASSES = bytes(map(_class_of, range(256)))
_BLANK = ord(" ")
_PARTS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ONE_TURN = re.compile("([A-Za-z]+)([0-9]+)")
_VERSION = re.compile(r"[vV]([0-9]+(?:\.[0-9]+)*)(?![A-Za-z0-9])")
_SYMBOL_NAME = re.compile(r"(?<![A-Za-z0-9])(?:([A-Za-z]+)\+\+(?!\+)|([A-Za-z])#(?![#A-Za-z0-9]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedText:
    """A text as rows hold it, with the place in the original of each of its characters.

    ``text[i]`` comes from the characters ``[starts[i], ends[i])`` of the original. Identifier parts are not behind it.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens that stand side by side in the rows where a piece of the query occurs.

    ``tokens`` are not stemmed. ``open_end`` says that the last token may be the beginning of a longer one in the
    rows: a single character of a script that is indexed by pairs.
    """

    tokens: tuple[str, ...]
    open_end: bool = False


def index_text(text: str) -> str:
    """What is given to FTS5 for a text."""
    behind = [part for identifier in identifiers(text) for part in identifier.parts]
    if not needs_no_folding(text):
        text = _FOREIGN_RUN.sub(_row_form, text)
    return f"{text}\n{' '.join(behind)}" if behind else text


def aligned_text(text: str) -> AlignedText:
    """The text as rows hold it, identifier parts left out, and where everything in it comes from."""
    folded, starts, ends = _aligned_fold(text)
    pieces: list[str] = []
    places: list[int] = []
    done = 0
    for run in _PAIRED_RUN.finditer(folded):
        first, last = run.span()
        pieces += [folded[done:first], _pairs(run)]
        places += range(done, first)
        # A blank, then each pair with a blank behind it, then the last character and a blank.
        places.append(first)
        for at in range(first, last - 1):
            places += (at, at + 1, at)
        if last - first == 1:
            places.append(first)
        places += (last - 1, last - 1)
        done = last
    pieces.append(folded[done:])
    places += range(done, len(folded))
    return AlignedText(
        text="".join(pieces),
        starts=tuple(starts[place] for place in places),
        ends=tuple(ends[place] for place in places),
    )


def fold(text: str) -> str:
    """The text with every letter in its one form and emoji as words; scripts without spaces are not split yet."""
    return text.lower() if text.isascii() else _FOREIGN_RUN.sub(_folded_form, text).casefold()


def query_piece(text: str) -> Piece:
    """The tokens of a piece of a query, in the order in which rows hold them; none where it has no letter or digit."""
    folded = fold(text)
    if folded.isascii():
        return Piece(tokens=tuple(_words(folded)))
    tokens = _words(_PAIRED_RUN.sub(_pairs, folded))
    if not tokens or not _PAIRED_RUN.fullmatch(tokens[-1]):
        return Piece(tokens=tuple(tokens))
    # The last token is the last character of a run. In a row the run may go on, so that a longer token holds it.
    if len(tokens) > 1 and len(tokens[-2]) == 2 and tokens[-2][1] == tokens[-1] and _PAIRED_RUN.fullmatch(tokens[-2]):
        return Piece(tokens=tuple(tokens[:-1]))
    return Piece(tokens=tuple(tokens), open_end=True)


def needs_no_folding(text: str) -> bool:
    """Whether FTS5 alone finds the words of ``index_text(text)`` in the text as it is, identifier parts aside."""
    return text.isascii() or _LATIN.fullmatch(text) is not None


def is_paired(token: str) -> bool:
    """Whether a token is of a script that is indexed by pairs of characters."""
    return _PAIRED_RUN.fullmatch(token) is not None


@dataclass(frozen=True, slots=True)
class Identifier:
    """An identifier of which FTS5 would find the whole only: its parts, and its characters ``[start, end)``."""

    parts: tuple[str, ...]
    start: int
    end: int


def identifiers(text: str) -> list[Identifier]:
    """The identifiers in a text whose parts FTS5 would not find, each of them once."""
    found_here: list[Identifier] = []
    if ("+" in text and "++" in text) or _has_sharp_name(text):
        for found in _SYMBOL_NAME.finditer(text):
            name = f"{found[1]}plusplus" if found[1] else f"{found[2]}sharp"
            found_here.append(Identifier((name,), found.start(), found.end()))
    classes = text.encode("ascii", "replace").translate(_CLASSES)
    seen: set[str] = set()
    for start, end in _turning_words(classes):
        if end - start <= _MAX_IDENTIFIER_CHARS and (word := text[start:end]) not in seen:
            seen.add(word)
            version = _VERSION.match(text, start)
            if version:
                found_here.append(Identifier(tuple(version[1].split(".")), version.start(1), version.end(1)))
            else:
                found_here += [Identifier(parts, start, end) for parts in _partings(word)]
    return found_here


def _turning_words(classes: bytes) -> Iterator[tuple[int, int]]:
    """Words in which a capital follows a small letter, small letters follow capitals, or digits follow letters.

    Searches for two bytes are slower than for one, so what most texts lack is asked for first.
    """
    for turn in (b"aA", b"AAaa") if b"AA" in classes else (b"aA",):
        at = classes.find(turn)
        while at >= 0:
            end = _word_end(classes, at)
            yield classes.rfind(b" ", 0, at) + 1, end
            at = classes.find(turn, end)
    at = classes.find(b"0")
    while at >= 0:
        end = _word_end(classes, at)
        if at and classes[at - 1] != _BLANK:
            yield classes.rfind(b" ", 0, at) + 1, end
        at = classes.find(b"0", end)


def _word_end(classes: bytes, at: int) -> int:
    end = classes.find(b" ", at)
    return len(classes) if end < 0 else end


def _row_form(found: re.Match[str]) -> str:
    run = found[0]
    if _SETTLED_RUN.fullmatch(run):
        return _PAIRED_RUN.sub(_pairs, run)
    return _known_row_form(run) if len(run) <= _MAX_REMEMBERED_CHARS else _PAIRED_RUN.sub(_pairs, _fold_run(run))


@lru_cache(maxsize=4096)
def _known_row_form(run: str) -> str:
    # The typographic marks and accented letters of a text are few, and come again and again.
    return _PAIRED_RUN.sub(_pairs, _fold_run(run))


def _folded_form(found: re.Match[str]) -> str:
    return _fold_run(found[0])


def _fold_run(run: str) -> str:
    """The one form of characters beyond ASCII.

    A run may be folded without what stands around it: the only characters that would join with an ASCII letter
    before them are diacritics, and those are dropped.
    """
    run = _MARKS_OF_TRADE.sub(" ", run)
    run = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", run).casefold())
    run = unicodedata.normalize("NFC", _DROPPED.sub("", run))
    run = _UNDECOMPOSED.sub(lambda found: _PLAIN_LETTERS[found[0]], run)
    run = _EMOJI.sub(lambda found: f" emoji{ord(found[0]):x} ", run)
    return _NO_LETTER.sub(_as_fts5_sees_it, run)


def _as_fts5_sees_it(found: re.Match[str]) -> str:
    """Marks and private characters belong to words. Other signs do not, but FTS5 knows only those of older Unicode."""
    return found[0] if _is_mark(found[0]) else " "


def _has_sharp_name(text: str) -> bool:
    at = text.find("#")
    while at >= 0:
        if at and text[at - 1].isalpha():
            return True
        at = text.find("#", at + 1)
    return False


def _aligned_fold(text: str) -> tuple[str, list[int], list[int]]:
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for run in _FOREIGN_RUN.finditer(text):
        pieces.append(text[done : run.start()])
        starts += range(done, run.start())
        ends += range(done + 1, run.start() + 1)
        for cluster in _CLUSTER.finditer(text, run.start(), run.end()):
            folded = _known_fold(cluster[0])
            pieces.append(folded)
            starts += [cluster.start()] * len(folded)
            ends += [cluster.end()] * len(folded)
        done = run.end()
    pieces.append(text[done:])
    starts += range(done, len(text))
    ends += range(done + 1, len(text) + 1)
    return "".join(pieces), starts, ends


@lru_cache(maxsize=8192)
def _known_fold(cluster: str) -> str:
    return _fold_run(cluster)


def _partings(word: str) -> list[tuple[str, ...]]:
    """The ways in which a word is read as parts: ``HTTPServer2`` as a name with a number, and word by word."""
    numbered = _ONE_TURN.fullmatch(word)
    ways: list[tuple[str, ...]] = [(numbered[1], numbered[2])] if numbered else []
    if word.islower() or word.isupper():
        return ways  # A digest or a serial number: what stands between its digits is no word.
    parts = tuple(_PARTS.findall(word))
    return [*ways, parts] if 1 < len(parts) <= _MAX_IDENTIFIER_PARTS and parts not in ways else ways


def _pairs(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(map(add, text, text[1:]))} {text[-1]} "


def _words(text: str) -> list[str]:
    """Split as FTS5 does: words are letters, numbers, marks and private characters."""
    return "".join(char if char.isalnum() or _is_mark(char) else " " for char in text).split()


def _is_mark(char: str) -> bool:
    return not char.isascii() and unicodedata.category(char) in ("Mn", "Mc", "Me", "Co", "Nl", "No")
