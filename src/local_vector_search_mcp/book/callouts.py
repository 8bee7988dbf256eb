"""Obsidian callouts: block quotes that begin with ``[!type]``."""

import re
from dataclasses import dataclass
from typing import Final

_MARK: Final = re.compile(r"\[!([A-Za-z][\w -]{0,40})(?:\|[^\]]*)?\]([+-]?)[ \t]*([^\n]*)(?:\n|$)")
# The families that share a colour and a sign, each with the names that Obsidian and GitHub give it.
_FAMILIES: Final = {
    "note": "note",
    "summary": "abstract summary tldr",
    "info": "info todo",
    "tip": "tip hint important",
    "success": "success check done",
    "question": "question help faq",
    "warning": "warning caution attention",
    "danger": "danger error failure fail missing bug",
    "example": "example",
    "quote": "quote cite",
}
_FAMILY_OF: Final = {name: family for family, names in _FAMILIES.items() for name in names.split()}
_SIGNS: Final = {
    "note": "M4 12l1-3 7-7 2 2-7 7z",
    "summary": "M3 4h10M3 8h10M3 12h6",
    "info": "M8 7v5M8 4v.5",
    "tip": "M8 2a4 4 0 0 1 2 7.5V12H6V9.5A4 4 0 0 1 8 2zM6.5 14h3",
    "success": "M3 8.5l3.5 3.5L13 4.5",
    "question": "M5.5 6a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .8-1 1.7M8 12.6v.4",
    "warning": "M8 2.5L14.5 13.5h-13zM8 6.5v3.5M8 11.8v.2",
    "danger": "M8.8 2L4 9h3.5L6.8 14 12 7H8.3z",
    "example": "M3 4h.3M6 4h7M3 8h.3M6 8h7M3 12h.3M6 12h7",
    "quote": "M4 10.5c1.5 0 2.3-1 2.3-2.6H4V5h3v3M9.5 10.5c1.5 0 2.3-1 2.3-2.6H9.5V5h3v3",
}

# The colours of the titles in the style sheet: a drawing does not take over the colour of the text around it.
_COLOURS: Final = {
    "note": "#3f5264",
    "summary": "#235a8f",
    "info": "#235a8f",
    "tip": "#1f6941",
    "success": "#1f6941",
    "question": "#8f5a0a",
    "warning": "#8f5a0a",
    "danger": "#96271f",
    "example": "#5b3d8a",
    "quote": "#3f5264",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Callout:
    """A callout's family, its title as inline Markdown, and what is left of its first paragraph."""

    family: str
    title: str
    rest: str


def read_callout(content: str) -> Callout | None:
    """The callout that a quote's first paragraph opens, or ``None``. Unknown types look like notes."""
    match = _MARK.match(content)
    if match is None:
        return None
    kind = match.group(1).strip().lower()
    return Callout(
        family=_FAMILY_OF.get(kind, "note"),
        title=match.group(3).strip() or kind.capitalize(),
        rest=content[match.end() :],
    )


def callout_sign(family: str) -> str:
    """A small drawing for a family, in the colour of its title."""
    return (
        '<svg class="sign" viewBox="0 0 16 16" width="16" height="16">'
        f'<path d="{_SIGNS[family]}" fill="none" stroke="{_COLOURS[family]}" stroke-width="1.6" '
        'stroke-linecap="round" stroke-linejoin="round"/></svg>'
    )
