"""Links of a book: to a place in it, out into the web, or to nothing that a book can show."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from local_vector_search_mcp.book.chapters import Chapter
from local_vector_search_mcp.book.sources import BookSources

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FOLLOWED: Final = frozenset({"http", "https", "mailto", "tel"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BookLink:
    """Where a link leads: an anchor of the book, in this chapter or another one, or a URL; neither is plain text."""

    anchor: str = ""
    other_chapter: bool = False
    url: str = ""


NOWHERE: Final = BookLink()


class LinkTargets:
    """Finds out where links lead."""

    def __init__(self, chapters: list[Chapter], sources: BookSources) -> None:
        self._chapters = {chapter.path: chapter for chapter in chapters}
        self._sources = sources
        self._resolved: dict[tuple[str, str, bool], str | None] = {}

    def link(self, href: str, from_path: str) -> BookLink:
        """Where an ordinary link or a raw ``href`` leads."""
        scheme = _SCHEME.match(href)
        if scheme is not None:
            return BookLink(url=href) if scheme.group(1).lower() in _FOLLOWED else NOWHERE
        if href.startswith("//"):
            return NOWHERE
        path, _, fragment = href.partition("#")
        return self._place(unquote(path.partition("?")[0]), fragment, from_path, wiki=False)

    def wikilink(self, target: str, from_path: str) -> BookLink:
        """Where ``[[target#anchor]]`` leads."""
        path, _, fragment = target.partition("#")
        return self._place(path.strip(), fragment, from_path, wiki=True)

    def _place(self, path: str, fragment: str, from_path: str, *, wiki: bool) -> BookLink:
        found = self._resolve(path, from_path, wiki) if path else from_path
        chapter = self._chapters.get(found) if found else None
        if chapter is None:
            return NOWHERE
        anchor = chapter.anchor_for(fragment) if fragment else chapter.anchor
        return BookLink(anchor=anchor, other_chapter=found != from_path)

    def _resolve(self, path: str, from_path: str, wiki: bool) -> str | None:
        key = (path, from_path.rpartition("/")[0], wiki)
        if key not in self._resolved:
            self._resolved[key] = self._sources.resolve(path, from_path, wiki=wiki)
        return self._resolved[key]
