"""What a book is asked to be: page format, style, image profile and the parts that can be switched."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from local_vector_search_mcp.book.profiles import ImageProfile


class PageFormat(StrEnum):
    """The page formats."""

    A4 = "a4"
    A5 = "a5"
    A6 = "a6"
    B5 = "b5"
    LETTER = "letter"


class BookStyle(StrEnum):
    """The typographic styles; each is one sheet under ``styles/``."""

    COMPACT = "compact"
    CLASSIC = "classic"
    MODERN = "modern"
    TECHNICAL = "technical"
    ACADEMIC = "academic"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookSettings:
    """How a book is set.

    ``toc`` and ``cover`` are decided from the content where they are ``None``; an empty ``language`` too.
    """

    page_format: PageFormat = PageFormat.A5
    style: BookStyle = BookStyle.COMPACT
    profile: ImageProfile = ImageProfile.STANDARD
    toc: bool | None = None
    cover: bool | None = None
    number_sections: bool = False
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageGeometry:
    """A page in millimetres: trimmed size, margins, and the size of body type in points."""

    width: float
    height: float
    top: float
    bottom: float
    inner: float
    outer: float
    body_pt: float

    @property
    def column_mm(self) -> float:
        """The width of the text column."""
        return self.width - self.inner - self.outer

    @property
    def column_height_mm(self) -> float:
        """The height of the text column."""
        return self.height - self.top - self.bottom


_SIZES: Final = {
    PageFormat.A4: (210.0, 297.0),
    PageFormat.A5: (148.0, 210.0),
    PageFormat.A6: (105.0, 148.0),
    PageFormat.B5: (176.0, 250.0),
    PageFormat.LETTER: (215.9, 279.4),
}
# Body type of the classic style; the other styles differ from it by a constant.
_BODY_PT: Final = {
    PageFormat.A4: 10.5,
    PageFormat.A5: 9.5,
    PageFormat.A6: 8.0,
    PageFormat.B5: 10.0,
    PageFormat.LETTER: 10.5,
}
# Margins as shares of the page: top and bottom of its height, inner and outer of its width.
_MARGINS: Final = {
    BookStyle.COMPACT: (0.075, 0.08, 0.09, 0.09),
    BookStyle.CLASSIC: (0.095, 0.115, 0.13, 0.13),
    BookStyle.MODERN: (0.095, 0.095, 0.115, 0.115),
    BookStyle.TECHNICAL: (0.085, 0.085, 0.12, 0.095),
    BookStyle.ACADEMIC: (0.1, 0.11, 0.15, 0.13),
}
_SIZE_STEP: Final = {
    BookStyle.COMPACT: -0.5,
    BookStyle.CLASSIC: 0.0,
    BookStyle.MODERN: -0.25,
    BookStyle.TECHNICAL: -0.5,
    BookStyle.ACADEMIC: 0.0,
}
# A line of more than some seventy-five characters tires the eye: on the large sheets the margins take the rest.
_LONGEST_LINE_EM: Final = 40.0
_MM_PER_PT: Final = 25.4 / 72


def geometry(settings: BookSettings) -> PageGeometry:
    """The page of a format in a style."""
    width, height = _SIZES[settings.page_format]
    top, bottom, inner, outer = _MARGINS[settings.style]
    body_pt = _BODY_PT[settings.page_format] + _SIZE_STEP[settings.style]
    spare = width * (1 - inner - outer) - _LONGEST_LINE_EM * body_pt * _MM_PER_PT
    widen = max(0.0, spare) / 2 if settings.style is not BookStyle.TECHNICAL else max(0.0, spare) / 4
    return PageGeometry(
        width=width,
        height=height,
        top=round(height * top, 2),
        bottom=round(height * bottom, 2),
        inner=round(width * inner + widen, 2),
        outer=round(width * outer + widen, 2),
        body_pt=body_pt,
    )
