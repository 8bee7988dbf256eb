"""Code as coloured lines; a line that is too long for the page continues on the next with a mark."""

import re
from collections.abc import Callable
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING, Final

from local_vector_search_mcp.book.text_width import columns

if TYPE_CHECKING:
    from pygments.lexer import Lexer

# Colouring is for reading; what is larger than this is data.
_LARGEST_COLOURED: Final = 200_000
_LANGUAGE: Final = re.compile(r"\{?\.?([A-Za-z0-9_+#-]+(?:\.[A-Za-z0-9_+#-]+)*)")
_TAG: Final = re.compile(r"<[^>]*>")
_TAB: Final = 4
# The width of a character of the fixed-width type in em of its own size.
CHARACTER_EM: Final = 0.605
_SMALLEST: Final = 0.82
WRAP_MARK_URL: Final = "book:wrap"
# A drawing rather than a character: it needs no font, and code that is copied out of the PDF stays as it was.
WRAP_MARK: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 12 13.5" width="12" height="13.5">'
    b'<path d="M3 3v4h6M6.8 4.8L9 7 6.8 9.2" fill="none" stroke="#888" stroke-width="1"/></svg>'
)
_ALIASES: Final = {"vue": "html", "svelte": "html", "jsonc": "json", "mdx": "markdown", "shell-session": "console"}


def language_of(info: str) -> str:
    """The language that a fence names, in lower case; empty where it names none."""
    match = _LANGUAGE.match(info.strip())
    return match.group(1).lower() if match else ""


def code_block(code: str, info: str, *, width_em: float) -> str:
    """One code block as HTML.

    Args:
        code: The code; tabs become spaces.
        info: The info string of its fence.
        width_em: The room for a line, in em of the code type at its normal size.
    """
    text = code.rstrip("\n").expandtabs(_TAB)
    language = language_of(info)
    lines = text.split("\n")
    widths = [columns(line) for line in lines]
    room = max(8.0, width_em / CHARACTER_EM)
    scale = _scale(widths, room)
    coloured = _coloured(text, language)
    parts: list[str] = []
    for line, width in zip(coloured, widths, strict=True):
        # A line in a block of its own can hang its continuation; the others are plain lines, which are laid out faster.
        long = width * scale > room - 1
        parts.append(f'<span class="wrap">{line or " "}</span>' if long else f"{line}\n")
    size = f' style="font-size:{scale:.3g}em"' if scale < 1 else ""
    short = " short" if len(lines) <= 12 and max(widths, default=0) <= room else ""
    label = f' data-language="{escape(language)}"' if language else ""
    return f'<div class="code{short}"{label}><pre{size}>{"".join(parts).removesuffix(chr(10))}</pre></div>'


def _scale(widths: list[int], room: float) -> float:
    """A little smaller type, where that saves most of the long lines from being wrapped."""
    longest = max(widths, default=0)
    if longest <= room:
        return 1.0
    if longest * _SMALLEST <= room:
        return room / longest
    nearly_all = sorted(widths)[int(len(widths) * 0.95) if len(widths) > 1 else 0]
    return 1.0 if nearly_all <= room else max(_SMALLEST, room / nearly_all)


def _coloured(text: str, language: str) -> list[str]:
    plain = [escape(line, quote=False) for line in text.split("\n")]
    if not language or len(text) > _LARGEST_COLOURED:
        return plain
    lexer = _lexer(_ALIASES.get(language, language))
    if lexer is None:
        return plain
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True, wrapcode=False)
    lines: list[str] = highlight(text, lexer, formatter).rstrip("\n").split("\n")
    lines += [""] * (len(plain) - len(lines))
    # Some lexers drop or add text; then the colours are not worth it.
    shown = [unescape(_TAG.sub("", line)) for line in lines]
    return lines if shown == text.split("\n") else plain


@cache
def _lexer(language: str) -> "Lexer | None":
    from pygments import lexers
    from pygments.util import ClassNotFound

    find: Callable[..., Lexer] = lexers.get_lexer_by_name  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    try:
        return find(language, stripnl=False)
    except ClassNotFound:
        return None
