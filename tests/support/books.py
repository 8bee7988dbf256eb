"""Books made from files in memory."""

import posixpath
import re
from collections.abc import Mapping, Sequence

from local_vector_search_mcp.book.compose import ComposedBook, compose
from local_vector_search_mcp.book.settings import BookSettings
from local_vector_search_mcp.book.sources import ChapterSource, FoundFile, Unavailable

NO_FILE = Unavailable(reason="there is no such file")


class MemorySources:
    """The files that documents refer to, by path; remembers what was asked for."""

    def __init__(self, files: Mapping[str, bytes | str] | None = None) -> None:
        self.files = {path: data.encode() if isinstance(data, str) else data for path, data in (files or {}).items()}
        self.asked: list[str] = []

    def resolve(self, target: str, from_path: str, *, wiki: bool) -> str | None:
        """The root-relative path that a link leads to, or ``None``."""
        beside = str(posixpath.normpath(posixpath.join(posixpath.dirname(from_path), target)))
        choices: list[str] = [beside, target]
        choices += [f"{beside}.md", f"{target}.md"] if wiki else []
        for path in choices:
            if path in self.files:
                return path
        named = [path for path in self.files if wiki and path.endswith((f"/{target}", f"/{target}.md"))]
        return named[0] if len(named) == 1 else None

    def note(self, target: str, from_path: str) -> FoundFile | Unavailable:
        """The document that an embed names."""
        return self._found(self.resolve(target, from_path, wiki=True), target)

    def image(self, target: str, from_path: str, *, wiki: bool) -> FoundFile | Unavailable:
        """The bytes of a local image."""
        return self._found(self.resolve(target, from_path, wiki=wiki), target)

    def _found(self, path: str | None, target: str) -> FoundFile | Unavailable:
        self.asked.append(target)
        return NO_FILE if path is None else FoundFile(path=path, data=self.files[path])


def make(
    markdown: str | Mapping[str, str],
    *,
    files: Mapping[str, bytes | str] | None = None,
    settings: BookSettings | None = None,
    chapters: Sequence[str] | None = None,
    front: str | None = None,
) -> ComposedBook:
    """The composed book of one document ``doc.md``, or of several by path."""
    documents = {"doc.md": markdown} if isinstance(markdown, str) else dict(markdown)
    sources = MemorySources({**documents, **(files or {})})
    named = list(chapters) if chapters is not None else [path for path in documents if path != front]
    return compose(
        settings or BookSettings(toc=False, cover=False),
        [ChapterSource(path=path, data=documents[path].encode()) for path in named],
        sources,
        front=None if front is None else ChapterSource(path=front, data=documents[front].encode()),
    )


def body(book: ComposedBook) -> str:
    """What stands in the chapters, without the frame of the page."""
    html = book.job.html
    return html[html.index('<section class="chapter') :].removesuffix("</body></html>")


def inner(markdown: str, **given: object) -> str:
    """The HTML of one document's only chapter, without its section."""
    html = body(make(markdown, **given))  # type: ignore[arg-type]
    return re.sub(r"^<section[^>]*>|</section>$", "", html)
