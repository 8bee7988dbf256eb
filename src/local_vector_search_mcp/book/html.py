"""A chapter's block tokens as HTML for print."""

import re
from dataclasses import dataclass, field
from html import escape
from typing import Final

from markdown_it.token import Token

from local_vector_search_mcp.book.callouts import callout_sign, read_callout
from local_vector_search_mcp.book.chapters import (
    Chapter,
    Heading,
    block_anchor,
    deepest_level,
    inline_tokens,
    raw_prefix,
)
from local_vector_search_mcp.book.code import code_block
from local_vector_search_mcp.book.embeds import EmbedTrail, embedded_chapter
from local_vector_search_mcp.book.inline_rules import split_block_id
from local_vector_search_mcp.book.inlines import (
    InlineScope,
    embed_picture,
    inline_html,
    inline_text,
    raw_html,
    wikilink_text,
)
from local_vector_search_mcp.book.notes import Footnotes
from local_vector_search_mcp.book.tables import Cell, TableContent, plan_table, table_html
from local_vector_search_mcp.book.workshop import Workshop

_TASK: Final = re.compile(r"\[([ xX])\](?:[ \t]+|$)")
_ALIGN: Final = re.compile(r"text-align:(left|center|right)")
_INDENT_EM: Final = 1.9
# Deeper lists and quotes go on without a further step, or there would be no room for their text.
_DEEPEST_STEP: Final = 14
_MM_PER_PT: Final = 25.4 / 72
_BOX: Final = (
    '<svg class="box" viewBox="0 0 16 16" width="16" height="16">'
    '<rect x="1.5" y="1.5" width="13" height="13" rx="2" fill="none" stroke="currentColor" stroke-width="1.3"/>{}</svg>'
)
_TICK: Final = (
    '<path d="M4 8.4l2.8 2.8L12 5" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" '
    'stroke-linejoin="round"/>'
)


def chapter_html(workshop: Workshop, chapter: Chapter) -> str:
    """The clean HTML of one chapter."""
    writer = _BlockWriter(workshop=workshop, chapter=chapter, trail=EmbedTrail(paths=(chapter.path,)))
    html = writer.write(chapter.tokens) + writer.notes.end_notes()
    return workshop.sanitizer.clean(
        html,
        prefix=raw_prefix(chapter),
        resolve=lambda href: workshop.targets.link(href, chapter.path).anchor or None,
    )


@dataclass(slots=True, kw_only=True)
class _BlockWriter:
    """Writes one document's blocks; an embedded note gets a writer of its own."""

    workshop: Workshop
    chapter: Chapter
    trail: EmbedTrail
    notes: Footnotes = field(init=False)
    _scope: InlineScope = field(init=False)
    _closers: list[str] = field(default_factory=list[str])
    _box: str = ""
    _depth: int = 0
    _turnable: bool = True

    def __post_init__(self) -> None:
        self.notes = Footnotes(
            workshop=self.workshop,
            chapter=self.chapter,
            prefix=f"{self.chapter.prefix}{self.trail.mark}",
            blocks=self._note_blocks,
            inline=self._inline,
        )
        self._scope = InlineScope(path=self.chapter.path, note=self.notes.call, embed=self._inline_embed)

    def write(self, tokens: list[Token]) -> str:
        """A run of block tokens that opens and closes what it holds."""
        self._collect_notes(tokens)
        parts: list[str] = []
        too_deep = _is_too_deep(tokens)
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if too_deep and token.level == 0 and token.nesting > 0:
                end = _closing(tokens, index)
                if _is_too_deep(tokens[index:end]):
                    parts.append(self._as_source(tokens[index:end]))
                    index = end + 1
                    continue
            match token.type:
                case "heading_open":
                    parts.append(self._heading(tokens, index))
                    index += 2
                case "paragraph_open":
                    parts.append(self._paragraph(tokens, index))
                    index += 2
                case "table_open":
                    end = _closing(tokens, index)
                    parts.append(self._table(tokens[index : end + 1]))
                    index = end
                case "footnote_reference_open":
                    index = _closing(tokens, index)
                case "blockquote_open":
                    parts.append(self._quote(tokens, index))
                case "bullet_list_open" | "ordered_list_open":
                    parts.append(self._list(tokens, index))
                case "list_item_open":
                    parts.append(self._item(tokens, index))
                case "blockquote_close" | "bullet_list_close" | "ordered_list_close" | "list_item_close":
                    parts.append(self._closers.pop())
                    self._depth -= token.type != "list_item_close"
                case _:
                    parts.append(self._leaf(token))
            index += 1
        return "".join(parts)

    def _collect_notes(self, tokens: list[Token]) -> None:
        for index, token in enumerate(tokens):
            if token.type == "footnote_reference_open":
                self.notes.define(str(token.meta["label"]), tokens[index + 1 : _closing(tokens, index)])

    def _note_blocks(self, tokens: list[Token]) -> str:
        turnable, self._turnable = self._turnable, False
        html = self.write(tokens)
        self._turnable = turnable
        return html

    def _inline(self, content: str) -> str:
        return inline_html(self.workshop, inline_tokens(self.chapter, content), self._scope)

    def _leaf(self, token: Token) -> str:
        shop = self.workshop
        match token.type:
            case "fence" | "code_block":
                return shop.sanitizer.slot(code_block(token.content, token.info, width_em=self._code_room()))
            case "math_block" | "math_block_label":
                return shop.formula(token.content, inline=False, path=self.chapter.path, number=token.info)
            case "html_block":
                return raw_html(shop, token.content, self.chapter.path)
            case "hr":
                return "<hr>"
            case "inline":
                return self._inline(token.content)
            case _:
                return ""

    def _heading(self, tokens: list[Token], index: int) -> str:
        token = tokens[index]
        whole = tokens is self.chapter.tokens and not self.trail.embedded
        heading = self.chapter.headings.get(index) if whole else None
        if heading is None:
            content, _ = split_block_id(tokens[index + 1].content)
            return f"<{token.tag}>{self._inline(content)}</{token.tag}>"
        return heading_html(self.workshop, heading, self._inline(heading.content))

    def _paragraph(self, tokens: list[Token], index: int) -> str:
        content, block_id = split_block_id(tokens[index + 1].content)
        inline = inline_tokens(self.chapter, content)
        named = block_anchor(self.chapter, block_id) if block_id and not self.trail.embedded else ""
        anchor = self.workshop.own_id(named) if named else ""
        alone = [token for token in inline if not _is_nothing(token)]
        if len(alone) == 1 and not self._box:
            block = self._single(alone[0])
            if block is not None:
                return f"<div{anchor}>{block}</div>" if anchor else block
        self.notes.has_blocks = False
        html = self._box + inline_html(self.workshop, inline, self._scope)
        self._box = ""
        if not html.strip():
            return f"<a{anchor}></a>" if anchor else ""
        if tokens[index].hidden:
            return f"<span{anchor}>{html}</span>" if anchor else html
        # Words spread between two pictures to fill the line are no text.
        mixed = any(token.type in ("image", "embed") for token in inline)
        if self.notes.has_blocks or "<div" in html:
            return f"<div{self.workshop.own_class('para mixed' if mixed else 'para')}{anchor}>{html}</div>"
        return f"<p{self.workshop.own_class('mixed') if mixed else ''}{anchor}>{html}</p>"

    def _single(self, token: Token) -> str | None:
        """What stands alone in its paragraph and is a block of its own: a picture, a formula, an embedded note."""
        shop = self.workshop
        if token.type == "math_inline_double":
            return shop.formula(token.content, inline=False, path=self.chapter.path)
        if token.type == "embed":
            picture = embed_picture(shop, token.content, self.chapter.path)
            return self._figure(picture, "") if picture is not None else self._embed(token.content)
        if token.type == "image":
            return self._figure(inline_html(shop, [token], self._scope), str(token.attrs.get("title") or ""))
        return None

    def _figure(self, picture: str, caption: str) -> str:
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return f"<figure{self.workshop.own_class('picture')}>{picture}{below}</figure>"

    def _embed(self, content: str) -> str:
        """The note that an embed names, in place; a line that names it where it cannot be shown."""
        shop = self.workshop
        target = content.partition("|")[0].strip()
        found = embedded_chapter(shop, target, self.chapter.path, self.trail)
        if isinstance(found, str):
            shop.warnings.add(f"{self.chapter.path}: the embed ![[{target}]] is not shown: {found}.")
            text = escape(wikilink_text(content))
            return f"<p{shop.own_class('placeholder-line')}><b>{text}</b> <small>{escape(found)}</small></p>"
        writer = _BlockWriter(
            workshop=shop, chapter=found.chapter, trail=found.trail, _depth=self._depth, _turnable=False
        )
        html = writer.write(found.tokens) + writer.notes.end_notes()
        return f"<div{shop.own_class('embed')}>{html}</div>"

    def _inline_embed(self, content: str, path: str) -> str:
        link = self.workshop.targets.wikilink(content.partition("|")[0], path)
        text = escape(wikilink_text(content), quote=False)
        return f"<a{self.workshop.sanitizer.own_link(link.anchor)}>{text}</a>" if link.anchor else text

    def _quote(self, tokens: list[Token], index: int) -> str:
        self._depth += 1
        if self._depth > _DEEPEST_STEP:
            self._closers.append("")
            return ""
        shop = self.workshop
        first = tokens[index + 2] if index + 2 < len(tokens) and tokens[index + 1].type == "paragraph_open" else None
        callout = read_callout(first.content) if first is not None else None
        if callout is None or first is None:
            self._closers.append("</blockquote>")
            return "<blockquote>"
        first.content = callout.rest
        self._closers.append("</div></div>")
        sign = shop.sanitizer.slot(callout_sign(callout.family))
        return (
            f"<div{shop.own_class(f'callout {callout.family}')}><p{shop.own_class('callout-title')}>{sign} "
            f"{self._inline(callout.title)}</p><div{shop.own_class('callout-body')}>"
        )

    def _list(self, tokens: list[Token], index: int) -> str:
        self._depth += 1
        if self._depth > _DEEPEST_STEP:
            self._closers.append("")
            return ""
        token = tokens[index]
        tight = index + 2 < len(tokens) and tokens[index + 2].type == "paragraph_open" and tokens[index + 2].hidden
        kind = self.workshop.own_class("tight") if tight else ""
        start = token.attrs.get("start")
        self._closers.append(f"</{token.tag}>")
        return f"<{token.tag}{kind}{f' start={start}' if start is not None else ''}>"

    def _item(self, tokens: list[Token], index: int) -> str:
        flat = self._depth > _DEEPEST_STEP
        self._closers.append("<br>" if flat else "</li>")
        self._box = self._task_box(tokens, index)
        if flat:
            return "• "
        return f"<li{self.workshop.own_class('task')}>" if self._box else "<li>"

    def _task_box(self, tokens: list[Token], index: int) -> str:
        """The box of a task list item; its mark leaves the text."""
        if index + 2 >= len(tokens) or tokens[index + 1].type != "paragraph_open":
            return ""
        inline = tokens[index + 2]
        match = _TASK.match(inline.content)
        if match is None:
            return ""
        inline.content = inline.content[match.end() :]
        return self.workshop.sanitizer.slot(_BOX.format("" if match.group(1) == " " else _TICK))

    def _table(self, tokens: list[Token]) -> str:
        rows: list[list[Cell]] = []
        alignments: list[str] = []
        for index, token in enumerate(tokens):
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                inline = inline_tokens(self.chapter, tokens[index + 1].content)
                html = inline_html(self.workshop, inline, self._scope)
                rows[-1].append(Cell(html=html, text=inline_text(inline)))
                if token.type == "th_open":
                    match = _ALIGN.search(str(token.attrs.get("style") or ""))
                    alignments.append(match.group(1) if match else "")
        header, *body = rows
        content = TableContent(header=tuple(header), rows=tuple(map(tuple, body)), alignments=tuple(alignments))
        page = self.workshop.page
        turned = (page.height - page.top - page.bottom) / self._em_mm() if self._turnable and not self._depth else None
        plan = plan_table(content, column_em=self._room_em(), turned_em=turned)
        return table_html(content, plan, self.workshop.sanitizer)

    def _as_source(self, tokens: list[Token]) -> str:
        """Blocks nested deeper than the parser goes, as their source lines."""
        lines = [token.map for token in tokens if token.map]
        first = min((line[0] for line in lines), default=0)
        last = max((line[1] for line in lines), default=0)
        source = "\n".join(self.chapter.lines[first:last])
        self.workshop.warnings.add(f"{self.chapter.path}: blocks nested too deep are shown as their source.")
        return self.workshop.sanitizer.slot(code_block(source, "", width_em=self._code_room()))

    def _em_mm(self) -> float:
        return self.workshop.page.body_pt * _MM_PER_PT

    def _room_em(self) -> float:
        """The width for text at the present depth, in em."""
        room = self.workshop.page.column_mm / self._em_mm() - min(self._depth, _DEEPEST_STEP) * _INDENT_EM
        return max(8.0, room)

    def _code_room(self) -> float:
        return self._room_em() / CODE_EM - CODE_PADDING_EM


CODE_EM: Final = 0.84
"""The size of code type in em of the text around it; the style sheets say the same."""
CODE_PADDING_EM: Final = 1.6
"""What the frame of a code block takes of its line, in em of code type."""


def heading_html(workshop: Workshop, heading: Heading, content: str) -> str:
    """A heading that stands in the contents and bookmarks; ``content`` is its inline HTML."""
    title = f"{heading.number} {heading.text}".strip()
    short = title if len(title) <= 64 else title[:62].rstrip() + "…"
    shop = workshop
    number = f"<span{shop.own_class('number')}>{heading.number}</span> " if heading.number else ""
    attributes = (
        shop.own_class("heading")
        + shop.own_id(heading.anchor)
        + shop.sanitizer.attribute("data-title", title)
        + shop.sanitizer.attribute("data-short", short)
    )
    return f"<h{heading.level}{attributes}>{number}{content}</h{heading.level}>"


def _is_too_deep(tokens: list[Token]) -> bool:
    return any(token.level >= deepest_level() for token in tokens)


def _is_nothing(token: Token) -> bool:
    return token.type == "comment" or (token.type == "text" and not token.content.strip())


def _closing(tokens: list[Token], index: int) -> int:
    """The index of the token that closes the one at ``index``."""
    level = tokens[index].level
    kind = tokens[index].type.replace("_open", "_close")
    end = index + 1
    while tokens[end].level != level or tokens[end].type != kind:
        end += 1
    return end
