"""The picture shelf: every picture of a book once, and the HTML that shows it or says why it is not shown."""

import hashlib
import re
from dataclasses import dataclass, field
from html import escape
from typing import Final
from urllib.parse import unquote

from local_vector_search_mcp.book.pictures import Picture, PictureError, check_picture, open_picture
from local_vector_search_mcp.book.settings import PageGeometry
from local_vector_search_mcp.book.sources import BookSources, Unavailable, Warnings

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_MM_PER_PIXEL: Final = 25.4 / 96
# A picture leaves room for its caption and a line of text.
_TALLEST: Final = 0.82
_SVG_START: Final = re.compile(rb"^\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<svg[\s>]", re.DOTALL)
_LARGEST_SVG: Final = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRequest:
    """A picture as a document asks for it; sizes in CSS pixels, 0 where none is given."""

    target: str
    from_path: str
    alt: str = ""
    wiki: bool = False
    width_px: int = 0
    height_px: int = 0


@dataclass(slots=True)
class PictureShelf:
    """Loads pictures through the book's sources; ``pictures`` and ``drawings`` are keyed by the URL in the HTML."""

    sources: BookSources
    warnings: Warnings
    page: PageGeometry
    pictures: dict[str, Picture] = field(default_factory=dict[str, Picture])
    drawings: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _damaged: dict[str, str] = field(default_factory=dict[str, str])

    def html(self, request: PictureRequest) -> str:
        """An ``img`` element, or a box that stands in its place."""
        loaded = self._load(request)
        if isinstance(loaded, Unavailable):
            shown = _shortened(request.target)
            self.warnings.add(f"{request.from_path}: the image {shown} is not shown: {loaded.reason}.")
            text = request.alt or shown
            return f'<span class="placeholder"><b>{escape(text)}</b> <small>{escape(loaded.reason)}</small></span>'
        alt = escape(request.alt)
        if isinstance(loaded, str):
            return f'<img class="drawing" src="{loaded}" alt="{alt}"{self._drawing_size(request)}>'
        url = f"book:picture/{loaded.key}"
        return f'<img src="{url}" alt="{alt}" style="width:{self._width_mm(loaded, request):.2f}mm">'

    def formula(self, svg: str) -> str:
        """The URL of a formula's drawing; equal formulas share one."""
        data = svg.encode("utf-8")
        url = f"book:formula/{hashlib.sha256(data).hexdigest()}"
        self.drawings[url] = data
        return url

    def _load(self, request: PictureRequest) -> Picture | str | Unavailable:
        """A picture, the URL of a drawing, or why there is none."""
        target = request.target
        scheme = _SCHEME.match(target)
        if scheme is not None and not request.wiki:
            kind = scheme.group(1).lower()
            if kind in ("http", "https"):
                return Unavailable(reason="remote images are not fetched")
            return Unavailable(reason=f"{kind}: addresses are not read")
        if target.startswith(("/", "\\")):
            return Unavailable(reason="absolute paths are not read; write it relative to the document")
        path = unquote(target.partition("#")[0].partition("?")[0]) if not request.wiki else target
        if not path:
            return Unavailable(reason="it names no file")
        found = self.sources.image(path, request.from_path, wiki=request.wiki)
        if isinstance(found, Unavailable):
            return found
        return self._drawing(found.data) if found.path.lower().endswith(".svg") else self._picture(found.data)

    def _picture(self, data: bytes) -> Picture | Unavailable:
        digest = hashlib.sha256(data).hexdigest()
        url = f"book:picture/{digest}"
        if digest in self._damaged:
            return Unavailable(reason=self._damaged[digest])
        if url not in self.pictures:
            try:
                picture = open_picture(data)
                check_picture(picture)
            except PictureError as error:
                self._damaged[digest] = str(error)
                return Unavailable(reason=str(error))
            self.pictures[url] = picture
        return self.pictures[url]

    def _drawing(self, data: bytes) -> str | Unavailable:
        if len(data) > _LARGEST_SVG or not _SVG_START.match(data):
            return Unavailable(reason="it is no SVG of a size that can be drawn")
        url = f"book:drawing/{hashlib.sha256(data).hexdigest()}"
        self.drawings[url] = data
        return url

    def _width_mm(self, picture: Picture, request: PictureRequest) -> float:
        """The width on the page: as wide as its pixels are at 96 to the inch, or as asked, but never off the page."""
        width, height = picture.shown_size
        natural = float(width)
        if request.width_px:
            natural = float(request.width_px)
        elif request.height_px:
            natural = request.height_px * width / height
        tallest = self.page.column_height_mm * _TALLEST
        return max(0.5, min(natural * _MM_PER_PIXEL, self.page.column_mm, tallest * width / height))

    def _drawing_size(self, request: PictureRequest) -> str:
        tallest = self.page.column_height_mm * _TALLEST
        width = f"width:{request.width_px}px;" if request.width_px else ""
        return f' style="{width}max-height:{tallest:.1f}mm"'


def _shortened(target: str) -> str:
    """A target for a message, without what may be secret in a URL or endless in a data URI."""
    text = target.partition("?")[0]
    return text if len(text) <= 80 else text[:77] + "…"
