"""Missing characters, and the fonts that would help."""

import pytest

from local_vector_search_mcp.book.fonts import font_warnings


def message(text: str) -> str:
    points = ", ".join(f"U+{ord(character):04X}" for character in text)
    return f'.notdef glyph rendered for Unicode string unsupported by fonts: "{text}" ({points})'


@pytest.mark.parametrize(
    ("text", "kind", "fonts"),
    [
        ("🦄", "emoji", "Noto Color Emoji"),
        ("夜", "Chinese or Japanese", "Noto Sans CJK"),
        ("か", "Japanese", "Noto Sans CJK"),
        ("한", "Korean", "Noto Sans CJK"),
        ("ह", "Devanagari", "Noto Sans Devanagari"),
        ("ש", "Hebrew", "Noto Sans Hebrew"),
        ("𝔸", "mathematical", "Noto Sans Math"),
        ("ꀀ", "other", "the Noto fonts"),
    ],
)
def test_font_warnings__name_the_character_and_a_font(text: str, kind: str, fonts: str) -> None:
    """Each script has fonts that hold it."""
    (warning,) = font_warnings([message(text)])
    assert text in warning and f"U+{ord(text):04X}" in warning and kind in warning and fonts in warning


def test_font_warnings__one_for_each_kind() -> None:
    """Each character once, however often it is missing; not more than fit a sentence."""
    many = [message(chr(0x4E00 + number)) for number in range(100)]
    warnings = font_warnings([*many, *many, message("🦄"), message("👍")])
    assert len(warnings) == 2
    assert "and 80 more" in warnings[0]


@pytest.mark.parametrize(
    "text", ["", "Anchor defined twice: 'x'", message("\u200b"), message("\ufe0f"), message("\ue000")]
)
def test_font_warnings__other_messages_are_none(text: str) -> None:
    """Neither other notes of the library nor characters that nobody sees."""
    assert font_warnings([text]) == ()
