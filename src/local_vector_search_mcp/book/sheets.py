"""The style sheet of a book: the base, one style, and what depends on the page, filled in."""

from functools import cache
from importlib.resources import files
from string import Template
from typing import Final

from local_vector_search_mcp.book.html import CODE_EM
from local_vector_search_mcp.book.language import Labels, is_right_to_left
from local_vector_search_mcp.book.settings import BookSettings, PageGeometry, geometry

# Families by what they look like, best first; what is not installed is passed over.
_SERIF: Final = (
    '"Source Serif 4", "Source Serif Pro", "Noto Serif", Charter, "Bitstream Charter", "Palatino Linotype", Palatino, '
    'Georgia, "Liberation Serif", "DejaVu Serif"'
)
_SANS: Final = (
    '"Source Sans 3", "Source Sans Pro", Inter, "Noto Sans", "Helvetica Neue", Arial, "Liberation Sans", "DejaVu Sans"'
)
_MONO: Final = (
    '"Source Code Pro", "JetBrains Mono", "Fira Mono", "Noto Sans Mono", Menlo, Consolas, "Liberation Mono", '
    '"DejaVu Sans Mono"'
)
_EMOJI: Final = '"Noto Color Emoji", "Apple Color Emoji", "Segoe UI Emoji", "Noto Emoji"'
# The same Han character is drawn differently in each language.
_HAN: Final = {
    "zh": (
        '"Noto Serif CJK SC", "Source Han Serif SC", "Songti SC", SimSun',
        '"Noto Sans CJK SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "WenQuanYi Zen Hei"',
    ),
    "zh-tw": (
        '"Noto Serif CJK TC", "Source Han Serif TC", "Songti TC", PMingLiU',
        '"Noto Sans CJK TC", "Source Han Sans TC", "PingFang TC", "Microsoft JhengHei"',
    ),
    "ja": (
        '"Noto Serif CJK JP", "Source Han Serif JP", "Hiragino Mincho ProN", "Yu Mincho"',
        '"Noto Sans CJK JP", "Source Han Sans JP", "Hiragino Sans", "Yu Gothic"',
    ),
    "ko": (
        '"Noto Serif CJK KR", "Source Han Serif KR", AppleMyungjo, Batang',
        '"Noto Sans CJK KR", "Source Han Sans KR", "Apple SD Gothic Neo", "Malgun Gothic"',
    ),
}


def style_sheet(settings: BookSettings, labels: Labels, language: str) -> str:
    """The whole style sheet of a book."""
    page = geometry(settings)
    values = _values(page, labels, language)
    texts = [_sheet("base"), _sheet(settings.style.value)]
    return "\n".join(Template(text).substitute(values) for text in texts)


def _values(page: PageGeometry, labels: Labels, language: str) -> dict[str, str]:
    tag = language.lower()
    han_key = "zh-tw" if tag.startswith(("zh-tw", "zh-hant", "zh-hk")) else tag.split("-")[0]
    serif_han, sans_han = _HAN.get(han_key, _HAN["zh"])
    # Lines of Chinese or Japanese hold few spaces, and only spaces are stretched to fill a line.
    dense = han_key in _HAN
    return {
        "width": f"{page.width}mm",
        "height": f"{page.height}mm",
        "top": f"{page.top}mm",
        "bottom": f"{page.bottom}mm",
        "inner": f"{page.inner}mm",
        "outer": f"{page.outer}mm",
        "body": f"{page.body_pt}pt",
        "column_height": f"{page.column_height_mm:.2f}mm",
        "code": f"{CODE_EM}em",
        "serif": f"{_SERIF}, {serif_han}, {_EMOJI}, serif",
        "sans": f"{_SANS}, {sans_han}, {_EMOJI}, sans-serif",
        "mono": f"{_MONO}, {sans_han}, {_EMOJI}, monospace",
        "align": "start" if dense else "justify",
        "leading": "1.65" if dense else "1.4",
        "page_before": _quoted(labels.page_before),
        "page_after": _quoted(labels.page_after),
        "start": "right" if is_right_to_left(language) else "left",
        "indent": "2em" if dense else "1.3em",
    }


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@cache
def _sheet(name: str) -> str:
    return (files(__package__) / "styles" / f"{name}.css").read_text(encoding="utf-8")
