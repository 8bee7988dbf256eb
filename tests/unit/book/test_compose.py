"""Whole books: chapters, titles, numbers, contents, cover, links between chapters, language, metadata."""

import re

import pytest
from tests.support.books import MemorySources, body, make

from local_vector_search_mcp.book.compose import compose
from local_vector_search_mcp.book.language import labels_for
from local_vector_search_mcp.book.settings import BookSettings, BookStyle, PageFormat, geometry
from local_vector_search_mcp.book.sheets import style_sheet
from local_vector_search_mcp.book.sources import ChapterSource
from local_vector_search_mcp.errors import UnsupportedEncoding


def headings(html: str) -> list[tuple[str, str]]:
    """Level and title of every heading that stands in contents and bookmarks."""
    return re.findall(r'<h(\d) class="heading" id="[^"]*" data-title="([^"]*)"', html)


def contents(html: str) -> list[tuple[str, str]]:
    """Level and text of the lines of the contents."""
    found = re.findall(r'<p class="entry level(\d)"><a href="#[^"]*">(.*?)</a></p>', html)
    return [(level, re.sub(r"<[^>]*>", "", text)) for level, text in found]


def setting(**given: object) -> BookSettings:
    return BookSettings(**{"cover": False, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ({"a.md": "# One\n\n## Two"}, ["1 One", "2 Two"]),
        ({"a.md": "## Two\n\ntext"}, ["2 Two"]),
        ({"a.md": "text only"}, []),
        ({"a.md": "---\ntitle: Given\n---\ntext"}, ["1 Given"]),
        ({"a.md": "---\ntitle: Given\n---\n# Own"}, ["1 Own"]),
        ({"a.md": "---\ntitle: Given\n---\n## Other\n"}, ["1 Given", "2 Other"]),
        (
            {"a.md": "# One", "sub/b-note.md": "text\n\n## Later", "c.md": "## First"},
            ["1 One", "1 b-note", "2 Later", "2 First"],
        ),
        ({"a.md": "# One", "b.md": ""}, ["1 One", "1 b"]),
        ({"a.md": "# One", "b.md": "<!-- x -->\n\n<a id='o'></a>\n\n## First"}, ["1 One", "2 First"]),
        ({"a.md": "# One", "b.md": "<!-- x -->\n\n<a id='o'>Seen</a>\n\n## Later"}, ["1 One", "1 b", "2 Later"]),
        ({"a.md": "# One", "b.md": "<!-- x --><!-- " * 2000}, ["1 One", "1 b"]),
        ({"a.md": "> # Quoted\n\n- # Listed\n\n# Real"}, ["1 Real"]),
        ({"a.md": "# A *b* `c` [[d|e]] {#own}\n"}, ["1 A b c [[d|e]]"]),
        ({"a.md": "Setext\n===\n\nTwo\n---\n"}, ["1 Setext", "2 Two"]),
    ],
)
def test_compose__titles_of_chapters(documents: dict[str, str], expected: list[str]) -> None:
    """A document's own heading, its front matter, or in a book of several its file name."""
    assert [f"{level} {title}" for level, title in headings(body(make(documents)))] == expected


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ({"a.md": "# T\n\n## A\n\n### B\n\n## C"}, ["T", "1 A", "1.1 B", "2 C"]),
        ({"a.md": "# A\n\n## B\n\n# C\n\n### D"}, ["1 A", "1.1 B", "2 C", "2.1 D"]),
        ({"a.md": "## A\n\n# B\n\n## C"}, ["1 A", "2 B", "2.1 C"]),
        ({"a.md": "# A\n\n## B", "b.md": "# C\n\n## D\n\n## E"}, ["1 A", "1.1 B", "2 C", "2.1 D", "2.2 E"]),
        ({"a.md": "# A", "b.md": "## B", "c.md": "## C"}, ["1 A", "1.1 B", "1.2 C"]),
    ],
)
def test_compose__section_numbers(documents: dict[str, str], expected: list[str]) -> None:
    """By the place in the tree of the whole book; the one title of a document has none."""
    html = body(make(documents, settings=setting(toc=False, number_sections=True)))
    assert [title for _, title in headings(html)] == expected
    assert make(documents).job.html.count('class="number"') == 0


@pytest.mark.parametrize(
    ("markdown", "toc", "expected"),
    [
        ("# T\n\n## A\n\n## B", None, [("1", "A"), ("1", "B")]),
        ("# T\n\n## A", None, [("1", "A")]),
        ("# T", None, []),
        ("text", None, []),
        ("text", True, []),
        ("# T", True, [("1", "T")]),
        ("# T\n\n## A\n\n## B", False, []),
        ("# A\n\n# B", None, [("1", "A"), ("1", "B")]),
        ("## A\n\n### B\n\n#### C\n\n##### D", None, [("1", "B"), ("2", "C"), ("3", "D")]),
        ("# T\n\n## A & <b>", None, [("1", "A &")]),
    ],
)
def test_compose__contents(markdown: str, toc: bool | None, expected: list[tuple[str, str]]) -> None:
    """From two headings on, three levels deep, without a document's one title."""
    html = make(markdown, settings=setting(toc=toc)).job.html
    assert [(level, text.replace("&amp;", "&")) for level, text in contents(html)] == expected


def test_compose__long_contents_have_fewer_levels() -> None:
    """A table of contents of thirty pages helps nobody."""
    markdown = "\n\n".join(f"# C{number}\n\n## S{number}\n\n### T{number}\n" for number in range(90))
    assert {level for level, _ in contents(make(markdown, settings=setting()).job.html)} == {"1", "2"}


FRONT = """---
title: The <Book>
subtitle: A sub & more
author: [Ann, {name: Bob}]
date: 2026-03-01
tags: [x, y]
description: About
---
"""


def test_compose__a_cover_from_front_matter() -> None:
    """Title, subtitle, authors, date, escaped; metadata of the file too."""
    html = make(FRONT + "# One", settings=BookSettings()).job.html
    cover = html[html.index('<section class="cover">') : html.index('<section class="chapter"')]
    for text in ("The &lt;Book&gt;", "A sub &amp; more", "Ann, Bob", "2026-03-01"):
        assert text in cover
    for meta in (
        'name="author" content="Ann"',
        'name="author" content="Bob"',
        'name="keywords" content="x, y"',
        'name="description" content="About"',
        'name="dcterms.created" content="2026-03-01"',
        "<title>The &lt;Book&gt;</title>",
    ):
        assert meta in html


@pytest.mark.parametrize(
    ("markdown", "cover", "expected"),
    [
        ("# T", None, False),
        ("---\ntitle: T\n---\nx", None, False),
        ("---\ntitle: T\nauthor: A\n---\nx", None, True),
        ("# T", True, True),
        (FRONT, False, False),
    ],
)
def test_compose__when_there_is_a_cover(markdown: str, cover: bool | None, expected: bool) -> None:
    """By itself only where front matter has more than a title."""
    assert ('<section class="cover">' in make(markdown, settings=BookSettings(cover=cover)).job.html) == expected


def test_compose__a_cover_picture_that_is_missing_is_a_warning() -> None:
    """The cover is made all the same."""
    book = make("---\ntitle: T\ncover: none.png\n---\nx", settings=BookSettings())
    assert 'class="cover-title"' in book.job.html
    assert "none.png" in book.warnings[0]


CHAPTERS = {
    "a.md": (
        "# Alpha\n\n[b](sub/b.md) [b2](sub/b.md#part-two) [self](#beta) [[b]] [[b#Part Two|named]] [[#Beta]] "
        "[gone](sub/b.md#none)\n\n## Beta\n"
    ),
    "sub/b.md": "# Bee\n\n[back](../a.md#beta) [out](../c.md) ^here\n\n## Part two\n\n[blk](#^here)\n",
    "c.md": "# Outside\n",
}


def test_compose__links_between_chapters_are_page_references() -> None:
    """Another chapter's place is named with its page; the same chapter's is only a link; others are text."""
    html = make(CHAPTERS, chapters=["a.md", "sub/b.md"]).job.html
    for link in (
        '<a class="xref" href="#c2-top">b</a>',
        '<a class="xref" href="#c2-h2">b2</a>',
        '<a class="inref" href="#c1-h2">self</a>',
        '<a class="xref" href="#c2-top">b</a>',
        '<a class="xref" href="#c2-h2">named</a>',
        '<a class="inref" href="#c1-h2">Beta</a>',
        '<a class="xref" href="#c2-top">gone</a>',
        '<a class="xref" href="#c1-h2">back</a>',
        '<a class="inref" href="#c2-b-here">blk</a>',
    ):
        assert link in html, link
    assert " out" in html and ">out</a>" not in html


def test_compose__every_internal_link_leads_somewhere() -> None:
    """No anchor is missing, and none is there twice."""
    html = make(CHAPTERS, settings=setting()).job.html
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)


def test_compose__a_front_document_speaks_for_the_book() -> None:
    """Its title and metadata, not its text."""
    book = make({"index.md": FRONT + "hidden", "a.md": "# A"}, front="index.md", settings=BookSettings())
    assert "<title>The &lt;Book&gt;</title>" in book.job.html
    assert "hidden" not in book.job.html


@pytest.mark.parametrize(
    ("markdown", "language", "expected", "label"),
    [
        ("The cat and the dog are of this house and that is all.", "", "en", "Contents"),
        ("Der Hund und die Katze sind nicht im Haus und das ist auch gut für eine Maus.", "", "de", "Inhalt"),
        (
            "Le chat et les chiens sont dans la maison, une souris est sur le toit pour voir.",
            "",
            "fr",
            "Table des matières",
        ),
        ("这是一个测试文档，用来检查语言。", "", "zh", "目录"),
        ("これは日本語の文書です。", "", "ja", "目次"),
        ("이것은 한국어 문서입니다.", "", "ko", "차례"),
        ("Это русский текст.", "", "ru", "Содержание"),
        ("The cat", "de-CH", "de-CH", "Inhalt"),
        ("---\nlang: fr\n---\nThe cat", "", "fr", "Table des matières"),
        ("---\nlanguage: German\n---\nThe cat", "", "de", "Inhalt"),
        ("---\nlang: fr\n---\nThe cat", "en", "en", "Contents"),
        ("", "", "en", "Contents"),
    ],
)
def test_compose__language(markdown: str, language: str, expected: str, label: str) -> None:
    """As asked, else by front matter, else by the text."""
    book = make(markdown + "\n\n# A\n\n# B", settings=setting(language=language))
    assert book.language == expected
    assert f'<html lang="{expected}"' in book.job.html
    assert f'<p class="contents-title">{label}</p>' in book.job.html


def test_compose__right_to_left() -> None:
    """The page turns with the script."""
    assert '<html lang="ar" dir="rtl"' in make("هذا نص عربي قصير للاختبار.").job.html


def test_compose__a_bad_chapter_is_left_out_and_a_bad_book_refused() -> None:
    """One file that is not UTF-8 does not stop the others."""
    bad, good = ChapterSource(path="bad.md", data=b"\xff\xfe"), ChapterSource(path="a.md", data=b"# A")
    book = compose(setting(), [bad, good], MemorySources())
    assert "# A"[2:] in book.job.html and "bad.md" in book.warnings[0]
    for chapters in ([bad], [bad, bad]):
        with pytest.raises(UnsupportedEncoding):
            compose(setting(), chapters, MemorySources())


def test_compose__front_matter_that_does_not_parse_is_a_warning() -> None:
    """The text is set all the same."""
    book = make("---\na: [\n---\ntext")
    assert "text" in body(book) and "does not parse" in book.warnings[0]


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf# T\r\n\r\ntext\r\n", b"a\rb\r\r# C\r", b"nul \x00 here"])
def test_compose__bytes_of_every_kind(data: bytes) -> None:
    """BOM, every line ending, NUL and nothing at all."""
    book = compose(setting(), [ChapterSource(path="a.md", data=data)], MemorySources())
    assert "\ufeff" not in book.job.html


def test_compose__the_same_book_is_the_same_html() -> None:
    """The secret of a run leaves no trace."""
    assert make(CHAPTERS, settings=setting()).job.html == make(CHAPTERS, settings=setting()).job.html


@pytest.mark.parametrize("style", BookStyle)
@pytest.mark.parametrize("page_format", PageFormat)
def test_sheets__every_style_on_every_page(style: BookStyle, page_format: PageFormat) -> None:
    """All places are filled in, and the column is neither too narrow nor too wide to read."""
    settings = BookSettings(style=style, page_format=page_format)
    sheet = style_sheet(settings, labels_for("en"), "en")
    assert "$" not in sheet
    page = geometry(settings)
    assert f"size: {page.width}mm {page.height}mm" in sheet
    letters = page.column_mm / (page.body_pt * 0.3528 * 0.5)
    assert 50 < letters < 100
