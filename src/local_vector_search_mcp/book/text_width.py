"""How wide text will come out, guessed from its characters. Exact measuring is WeasyPrint's; planning needs a guess."""

import re
import unicodedata
from typing import Final

_NARROW: Final = frozenset("ijlIt.,:;!|'`()[]{}f/\\ -")
_BROAD: Final = frozenset("mwMW@%—…&")
_WORD_BREAK: Final = re.compile(r"[\s\u200b]+|(?<=[-/\u2013\u2014])")


def is_wide(character: str) -> bool:
    """Whether a character takes a full square, as Chinese, Japanese, Korean characters and emoji do."""
    return unicodedata.east_asian_width(character) in "WF"


def text_em(text: str) -> float:
    """The width of proportional text in em; rather too much than too little."""
    total = 0.0
    for character in text:
        if character in _NARROW:
            total += 0.38
        elif character in _BROAD:
            total += 0.95
        elif character.isascii():
            total += 0.72 if character.isupper() else 0.6
        elif unicodedata.combining(character):
            continue
        else:
            total += 1.02 if is_wide(character) else 0.68
    return total


def longest_word_em(text: str) -> float:
    """The width of the widest piece of text that is not broken by itself."""
    widest = 0.0
    for word in _WORD_BREAK.split(text):
        if any(map(is_wide, word)):
            # Between full-width characters a line may break anywhere.
            widest = max(widest, 1.1, *(text_em(part) for part in re.split(r"[^\x00-\u2e7f]+", word)))
        else:
            widest = max(widest, text_em(word))
    return widest


def columns(text: str) -> int:
    """The width of text in a fixed-width type, in characters."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(one) else 2 if is_wide(one) else 1 for one in text)
