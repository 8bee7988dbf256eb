"""Footnotes of one chapter: numbered in the order they are called, on the page where they fit, else at its end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from markdown_it.token import Token

from local_vector_search_mcp.book.chapters import Chapter, inline_tokens
from local_vector_search_mcp.book.inlines import inline_text
from local_vector_search_mcp.book.workshop import Workshop

# A note that takes more than this share of a page's letters stands at the end of the chapter: a footnote is not split.
_LONGEST_SHARE: Final = 0.22
_LETTER_EM: Final = 0.5
_LINE_EM: Final = 1.4
_MM_PER_PT: Final = 25.4 / 72
_SIMPLE: Final = frozenset({"paragraph_open", "inline", "paragraph_close"})


@dataclass(slots=True, kw_only=True)
class _Note:
    number: int
    anchor: str


@dataclass(slots=True, kw_only=True)
class Footnotes:
    """The notes of one document.

    ``blocks`` renders block tokens and ``inline`` inline content; ``has_blocks`` says that the last paragraph called a
    note that holds blocks, so that it cannot be a ``p``.
    """

    workshop: Workshop
    chapter: Chapter
    prefix: str
    blocks: Callable[[list[Token]], str]
    inline: Callable[[str], str]
    definitions: dict[str, list[Token]] = field(default_factory=dict[str, list[Token]])
    has_blocks: bool = False
    _called: dict[str, _Note] = field(default_factory=dict[str, _Note])
    _count: int = 0
    _at_end: list[tuple[_Note, str]] = field(default_factory=list[tuple["_Note", str]])
    _inside: int = 0

    def define(self, label: str, tokens: list[Token]) -> None:
        """Keep a definition until it is called; the first of a label counts."""
        self.definitions.setdefault(label, tokens)

    def call(self, label: str | None, content: str) -> str:
        """The HTML of a call: of a definition by label, or of content that stands in the text."""
        if label is not None and label in self._called:
            return self._again(self._called[label])
        self._count += 1
        note = _Note(number=self._count, anchor=f"{self.prefix}n{self._count}")
        if label is None:
            return self._placed(note, self._within(lambda: self.inline(content)), len(content), simple=True)
        self._called[label] = note
        tokens = self.definitions.get(label, [])
        simple = len(tokens) == 3 and all(token.type in _SIMPLE for token in tokens)
        if simple:
            html = self._within(lambda: self.inline(tokens[1].content))
        else:
            html = self._within(lambda: self.blocks(tokens))
        return self._placed(note, html, _length(self.chapter, tokens), simple=simple)

    def end_notes(self) -> str:
        """The notes that stand at the end of the chapter: too long for the foot of a page, or never called."""
        for label in [label for label in self.definitions if label not in self._called]:
            self._count += 1
            note = _Note(number=self._count, anchor=f"{self.prefix}n{self._count}")
            self._called[label] = note
            tokens = self.definitions[label]
            self._at_end.append((note, self._within(partial(self.blocks, tokens))))
        if not self._at_end:
            return ""
        shop = self.workshop
        items = "".join(
            f"<div{shop.own_class('endnote')}{shop.own_id(note.anchor)}>"
            f"<span{shop.own_class('endnote-number')}>{note.number}</span>{html}</div>"
            for note, html in self._at_end
        )
        self._at_end.clear()
        title = f"<p{shop.own_class('endnotes-title')}>{shop.labels.notes}</p>"
        return f"<div{shop.own_class('endnotes')}>{title}{items}</div>"

    def _within(self, render: Callable[[], str]) -> str:
        self._inside += 1
        try:
            return render()
        finally:
            self._inside -= 1

    def _placed(self, note: _Note, html: str, length: int, *, simple: bool) -> str:
        # A footnote cannot hold another one: the inner one goes to the end of the chapter.
        if self._inside or length > self._longest():
            self._at_end.append((note, html if not simple else f"<p>{html}</p>"))
            return self._again(note)
        shop = self.workshop
        tag = "span" if simple else "div"
        self.has_blocks = self.has_blocks or not simple
        number = shop.sanitizer.attribute("data-note", str(note.number))
        return f"<{tag}{shop.own_class('footnote')}{number}{shop.own_id(note.anchor)}>{html}</{tag}>"

    def _again(self, note: _Note) -> str:
        shop = self.workshop
        return f"<sup><a{shop.own_class('note-call')}{shop.sanitizer.own_link(note.anchor)}>{note.number}</a></sup>"

    def _longest(self) -> float:
        page = self.workshop.page
        em = page.body_pt * _MM_PER_PT * 0.85
        return page.column_mm / (em * _LETTER_EM) * (page.column_height_mm / (em * _LINE_EM)) * _LONGEST_SHARE


def _length(chapter: Chapter, tokens: list[Token]) -> int:
    """About how many letters a note takes; code and tables count by their lines."""
    total = 0
    for token in tokens:
        if token.type == "inline":
            total += len(inline_text(inline_tokens(chapter, token.content))) + 30
        elif token.content:
            total += 70 * (token.content.count("\n") + 1)
    return total
