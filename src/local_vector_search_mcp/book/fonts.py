"""Characters that no installed font has, and the fonts that would help."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

# WeasyPrint names each text that it could not draw, with its code points.
_MISSING: Final = re.compile(r"\.notdef glyph rendered.*", re.DOTALL)
_CODE_POINT: Final = re.compile(r"U\+([0-9A-Fa-f]{4,6})")
_MOST_NAMED: Final = 20
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs", "Mn"})
# First and last code point, what the characters are called, and fonts that have them.
_RANGES: Final = (
    (0x0370, 0x03FF, "Greek", "Noto Serif or DejaVu"),
    (0x0400, 0x052F, "Cyrillic", "Noto Serif or DejaVu"),
    (0x0530, 0x058F, "Armenian", "Noto Sans Armenian"),
    (0x0590, 0x05FF, "Hebrew", "Noto Sans Hebrew"),
    (0x0600, 0x06FF, "Arabic", "Noto Naskh Arabic"),
    (0x0700, 0x074F, "Syriac", "Noto Sans Syriac"),
    (0x0900, 0x097F, "Devanagari", "Noto Sans Devanagari"),
    (0x0980, 0x09FF, "Bengali", "Noto Sans Bengali"),
    (0x0A00, 0x0A7F, "Gurmukhi", "Noto Sans Gurmukhi"),
    (0x0A80, 0x0AFF, "Gujarati", "Noto Sans Gujarati"),
    (0x0B80, 0x0BFF, "Tamil", "Noto Sans Tamil"),
    (0x0C00, 0x0C7F, "Telugu", "Noto Sans Telugu"),
    (0x0C80, 0x0CFF, "Kannada", "Noto Sans Kannada"),
    (0x0D00, 0x0D7F, "Malayalam", "Noto Sans Malayalam"),
    (0x0D80, 0x0DFF, "Sinhala", "Noto Sans Sinhala"),
    (0x0E00, 0x0E7F, "Thai", "Noto Sans Thai"),
    (0x0E80, 0x0EFF, "Lao", "Noto Sans Lao"),
    (0x0F00, 0x0FFF, "Tibetan", "Noto Serif Tibetan"),
    (0x1000, 0x109F, "Burmese", "Noto Sans Myanmar"),
    (0x10A0, 0x10FF, "Georgian", "Noto Sans Georgian"),
    (0x1100, 0x11FF, "Korean", "Noto Sans CJK"),
    (0x1200, 0x139F, "Ethiopic", "Noto Sans Ethiopic"),
    (0x13A0, 0x13FF, "Cherokee", "Noto Sans Cherokee"),
    (0x1780, 0x17FF, "Khmer", "Noto Sans Khmer"),
    (0x1800, 0x18AF, "Mongolian", "Noto Sans Mongolian"),
    (0x2190, 0x22FF, "symbols", "Noto Sans Symbols and Noto Sans Math"),
    (0x2300, 0x27BF, "symbols", "Noto Sans Symbols 2 and Noto Color Emoji"),
    (0x27C0, 0x2BFF, "symbols", "Noto Sans Math and Noto Sans Symbols 2"),
    (0x2E80, 0x303F, "Chinese or Japanese", "Noto Sans CJK"),
    (0x3040, 0x30FF, "Japanese", "Noto Sans CJK"),
    (0x3100, 0x312F, "Chinese", "Noto Sans CJK"),
    (0x3130, 0x318F, "Korean", "Noto Sans CJK"),
    (0x3190, 0x9FFF, "Chinese or Japanese", "Noto Sans CJK"),
    (0xAC00, 0xD7FF, "Korean", "Noto Sans CJK"),
    (0xF900, 0xFAFF, "Chinese or Japanese", "Noto Sans CJK"),
    (0xFF00, 0xFFEF, "full-width", "Noto Sans CJK"),
    (0x1D400, 0x1D7FF, "mathematical", "Noto Sans Math"),
    (0x1F000, 0x1FAFF, "emoji", "Noto Color Emoji"),
    (0x20000, 0x323AF, "Chinese or Japanese", "Noto Sans CJK"),
)
_OTHER: Final = ("other", "the Noto fonts")


def font_warnings(messages: Iterable[str]) -> tuple[str, ...]:
    """One warning for each kind of character that WeasyPrint found no glyph for, with fonts that have them."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for character in _missing_characters(messages):
        groups.setdefault(_kind(ord(character)), {}).setdefault(character)
    return tuple(_warning(kind, fonts, list(characters)) for (kind, fonts), characters in groups.items())


def _missing_characters(messages: Iterable[str]) -> Iterable[str]:
    seen: set[str] = set()
    for message in messages:
        if not _MISSING.match(message):
            continue
        for digits in _CODE_POINT.findall(message):
            character = chr(int(digits, 16))
            if character not in seen and unicodedata.category(character) not in _INVISIBLE:
                seen.add(character)
                yield character


def _kind(code_point: int) -> tuple[str, str]:
    for first, last, name, fonts in _RANGES:
        if first <= code_point <= last:
            return name, fonts
    return _OTHER


def _warning(kind: str, fonts: str, characters: list[str]) -> str:
    named = ", ".join(f"{character} (U+{ord(character):04X})" for character in characters[:_MOST_NAMED])
    more = f" and {len(characters) - _MOST_NAMED} more" if len(characters) > _MOST_NAMED else ""
    return f"No installed font has these {kind} characters: {named}{more}. Install {fonts} to show them."
