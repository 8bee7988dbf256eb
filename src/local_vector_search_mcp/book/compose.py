"""A whole book as one HTML page: cover, contents, chapters with their numbers, and the sheet that sets it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, cast

from local_vector_search_mcp.book.chapters import Chapter, Heading, parse_chapter
from local_vector_search_mcp.book.code import WRAP_MARK, WRAP_MARK_URL
from local_vector_search_mcp.book.html import chapter_html, heading_html
from local_vector_search_mcp.book.language import guess_language, is_right_to_left, labels_for, language_tag
from local_vector_search_mcp.book.links import LinkTargets
from local_vector_search_mcp.book.pdf import PrintJob
from local_vector_search_mcp.book.profiles import PROFILES
from local_vector_search_mcp.book.raw_html import Sanitizer
from local_vector_search_mcp.book.settings import BookSettings, geometry
from local_vector_search_mcp.book.sheets import style_sheet
from local_vector_search_mcp.book.shelf import PictureRequest, PictureShelf
from local_vector_search_mcp.book.sources import BookSources, ChapterSource, Warnings
from local_vector_search_mcp.book.workshop import Workshop
from local_vector_search_mcp.errors import UnsupportedEncoding

_TAG: Final = re.compile(r"<[^>]*>")
# Deeper headings are found by the pages before them; a long book lists fewer levels.
_CONTENTS_LEVELS: Final = ((3, 120), (2, 400))
_FEW_HEADINGS: Final = 2
# What stands before a first heading and shows nothing. Atomic, so that many comments are not tried in all ways.
_UNSEEN: Final = re.compile(r"(?>\s+|<!--.*?-->|<a\b[^<>]*>\s*</a>)*+", re.DOTALL)
_DATE: Final = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedBook:
    """A book ready for print, its language, and what its reader should know."""

    job: PrintJob
    language: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TitlePage:
    title: str
    subtitle: str
    authors: tuple[str, ...]
    date: str
    picture: str

    @property
    def more_than_a_title(self) -> bool:
        return bool(self.subtitle or self.authors or self.date or self.picture)


def compose(
    settings: BookSettings,
    chapters: Sequence[ChapterSource],
    sources: BookSources,
    on_chapter: Callable[[int], None] = lambda _: None,
    *,
    front: ChapterSource | None = None,
) -> ComposedBook:
    """Make the HTML of a book.

    Args:
        settings: How it is set.
        chapters: Its documents in order; one or more.
        sources: Where notes and pictures that they refer to come from.
        on_chapter: Called with the number of chapters done.
        front: The document whose front matter and title speak for the book, where that is not the first chapter.

    Raises:
        UnsupportedEncoding: The only chapter is not valid UTF-8; of several, a bad one is left out with a warning.
    """
    warnings = Warnings({})
    parsed = _parse(chapters, warnings)
    page = geometry(settings)
    speaker = parse_chapter(front.path, front.data, "front-") if front is not None else parsed[0]
    language = _language(settings, speaker, parsed)
    shelf = PictureShelf(sources=sources, warnings=warnings, page=page)
    workshop = Workshop(
        settings=settings,
        page=page,
        labels=labels_for(language),
        sources=sources,
        warnings=warnings,
        sanitizer=Sanitizer(),
        shelf=shelf,
        targets=LinkTargets(parsed, sources),
    )
    titles = _chapter_titles(parsed)
    if settings.number_sections:
        _number(parsed)
    bodies: list[str] = []
    for number, chapter in enumerate(parsed, 1):
        bodies.append(_chapter(workshop, chapter, titles[chapter.path], even=number % 2 == 0))
        on_chapter(number)
    title_page = _title_page(speaker)
    cover = _cover(workshop, speaker, title_page) if _has_cover(settings, speaker, parsed, title_page) else ""
    contents = _contents(workshop, parsed)
    body = cover + contents + "".join(bodies)
    html = _page(language, title_page, body, settings, speaker, several=len(parsed) > 1)
    job = PrintJob(
        html=html,
        css=style_sheet(settings, workshop.labels, language),
        pictures=shelf.pictures,
        drawings={WRAP_MARK_URL: WRAP_MARK, **shelf.drawings},
        profile=PROFILES[settings.profile],
    )
    return ComposedBook(job=job, language=language, warnings=warnings.all())


def visible_text(html: str) -> str:
    """The characters that a page of HTML shows, tags left out."""
    return _TAG.sub("", html)


def _parse(chapters: Sequence[ChapterSource], warnings: Warnings) -> list[Chapter]:
    parsed: list[Chapter] = []
    for number, source in enumerate(chapters, 1):
        try:
            parsed.append(parse_chapter(source.path, source.data, f"c{number}-"))
        except UnsupportedEncoding as error:
            if len(chapters) == 1:
                raise
            warnings.add(f"{source.path} is left out: {error.message}")
    if not parsed:
        raise UnsupportedEncoding("None of the documents is valid UTF-8; save them as UTF-8 to make a book.")
    for chapter in parsed:
        if chapter.metadata.warning:
            warnings.add(f"{chapter.path}: {chapter.metadata.warning}")
    return parsed


def _language(settings: BookSettings, speaker: Chapter, chapters: list[Chapter]) -> str:
    values = speaker.metadata.values
    for given in (settings.language, values.get("language"), values.get("lang")):
        tag = language_tag(given) if isinstance(given, str) else None
        if tag:
            return tag
    return guess_language("\n".join("\n".join(chapter.lines[:400]) for chapter in chapters[:20]))


def _chapter_titles(chapters: list[Chapter]) -> dict[str, Heading | None]:
    """The heading that a chapter lacks: from its front matter, else, in a book of several, from its file name."""
    titles: dict[str, Heading | None] = {}
    for chapter in chapters:
        title = chapter.metadata.title
        first = next(iter(chapter.headings.values()), None)
        # A chapter that opens with a heading has its title, whatever the level; a level 1 anywhere is one, too.
        opens = _opening(chapter) in chapter.headings and (title is None or first is None or first.text == title)
        own = opens or any(heading.level == 1 for heading in chapter.headings.values())
        stem = chapter.path.rpartition("/")[2].rpartition(".")[0]
        wanted = None if own else title or (stem if len(chapters) > 1 else None)
        titles[chapter.path] = (
            Heading(level=1, text=wanted, content="", anchor=f"{chapter.prefix}h0") if wanted else None
        )
    for chapter in chapters:
        title_heading = titles[chapter.path]
        if title_heading is not None:
            chapter.headings = {-1: title_heading, **chapter.headings}
    return titles


def _opening(chapter: Chapter) -> int:
    """The place of the first token that shows; comments and anchors before it do not."""
    for place, token in enumerate(chapter.tokens):
        if token.type in ("paragraph_open", "paragraph_close"):
            continue
        if token.type not in ("html_block", "inline") or _UNSEEN.fullmatch(token.content) is None:
            return place
    return 0


def _number(chapters: list[Chapter]) -> None:
    """Number the headings through the book by their place in the tree; the title of a single document has none."""
    headings = [heading for chapter in chapters for heading in chapter.headings.values()]
    if len(chapters) == 1 and sum(heading.level == 1 for heading in headings) == 1 and headings[0].level == 1:
        headings = headings[1:]
    open_levels: list[int] = []
    counts: list[int] = []
    for heading in headings:
        while open_levels and open_levels[-1] >= heading.level:
            open_levels.pop()
        depth = len(open_levels)
        counts[depth + 1 :] = []
        if len(counts) == depth:
            counts.append(0)
        counts[depth] += 1
        open_levels.append(heading.level)
        heading.number = ".".join(map(str, counts))


def _chapter(workshop: Workshop, chapter: Chapter, title: Heading | None, *, even: bool) -> str:
    body = chapter_html(workshop, chapter)
    heading = ""
    if title is not None:
        raw = heading_html(workshop, title, escape(title.text))
        heading = workshop.sanitizer.clean(raw, prefix="", resolve=lambda _: None)
    return f'<section class="chapter{" even" if even else ""}" id="{chapter.anchor}">{heading}{body}</section>'


def _title_page(chapter: Chapter) -> _TitlePage:
    values = chapter.metadata.values
    first = next(iter(chapter.headings.values()), None)
    stem = chapter.path.rpartition("/")[2].rpartition(".")[0]
    authors = values.get("author") or values.get("authors") or ()
    names = authors if isinstance(authors, list | tuple) else [authors]
    return _TitlePage(
        title=chapter.metadata.title or (first.text if first is not None else "") or stem,
        subtitle=_text(values.get("subtitle")),
        authors=tuple(filter(None, map(_text, names))),
        date=_text(values.get("date")),
        picture=_text(values.get("cover")),
    )


def _text(value: object) -> str:
    if isinstance(value, dict):
        return _text(cast("dict[str, object]", value).get("name"))
    return "" if value is None or isinstance(value, bool | list) else str(value).strip()


def _has_cover(settings: BookSettings, speaker: Chapter, chapters: list[Chapter], front: _TitlePage) -> bool:
    if settings.cover is not None:
        return settings.cover
    return speaker.metadata.title is not None and (front.more_than_a_title or len(chapters) > 1)


def _cover(workshop: Workshop, chapter: Chapter, front: _TitlePage) -> str:
    picture = ""
    if front.picture:
        request = PictureRequest(target=front.picture, from_path=chapter.path, alt=front.title)
        picture = f'<div class="cover-picture">{workshop.shelf.html(request)}</div>'
    subtitle = f'<p class="cover-subtitle">{escape(front.subtitle)}</p>' if front.subtitle else ""
    authors = f'<p class="cover-author">{escape(", ".join(front.authors))}</p>' if front.authors else ""
    date = f'<p class="cover-date">{escape(front.date)}</p>' if front.date else ""
    return (
        f'<section class="cover">{picture}<p class="cover-title">{escape(front.title)}</p>'
        f'{subtitle}<div class="cover-foot">{authors}{date}</div></section>'
    )


def _contents(workshop: Workshop, chapters: list[Chapter]) -> str:
    """The table of contents; empty where it is not wanted, or by itself where there is nothing to find."""
    headings = [heading for chapter in chapters for heading in chapter.headings.values()]
    wanted = workshop.settings.toc
    if wanted is False or (wanted is None and len(headings) < _FEW_HEADINGS) or not headings:
        return ""
    top = min(heading.level for heading in headings)
    tops = [heading for heading in headings if heading.level == top]
    if len(chapters) == 1 and len(headings) > 1 and tops == headings[:1]:
        # The one title of a document is no place to look for in it.
        headings = headings[1:]
        top = min(heading.level for heading in headings)
    depth = 1
    for levels, most in _CONTENTS_LEVELS:
        if sum(heading.level < top + levels for heading in headings) <= most:
            depth = levels
            break
    lines = "".join(_contents_line(heading, top) for heading in headings if heading.level < top + depth)
    return f'<nav class="contents"><p class="contents-title">{escape(workshop.labels.contents)}</p>{lines}</nav>'


def _contents_line(heading: Heading, top: int) -> str:
    number = f'<span class="number">{heading.number}</span> ' if heading.number else ""
    return (
        f'<p class="entry level{heading.level - top + 1}"><a href="#{heading.anchor}">'
        f"{number}{escape(heading.text)}</a></p>"
    )


def _page(
    language: str, front: _TitlePage, body: str, settings: BookSettings, speaker: Chapter, *, several: bool
) -> str:
    values = speaker.metadata.values
    meta = [("author", name) for name in front.authors]
    meta += [("description", _text(values.get("description")))] if values.get("description") else []
    meta += [("keywords", ", ".join(speaker.metadata.tags))] if speaker.metadata.tags else []
    meta += [("dcterms.created", front.date)] if _DATE.fullmatch(front.date) else []
    meta += [("generator", "Local Vector Search MCP")]
    heads = "".join(f'<meta name="{name}" content="{escape(value)}">' for name, value in meta)
    direction = ' dir="rtl"' if is_right_to_left(language) else ""
    return (
        f'<!DOCTYPE html><html lang="{escape(language)}"{direction}><head><meta charset="utf-8">'
        f"<title>{escape(front.title)}</title>{heads}</head>"
        f'<body class="{settings.style.value} {settings.page_format.value}{" several" if several else ""}">'
        f'<p class="book-title">{escape(front.title)}</p>{body}</body></html>'
    )
