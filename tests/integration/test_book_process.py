"""Real PDFs from the process that sets books: what is in them, and how it ends."""

import re
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.books import MemorySources
from tests.support.pdfs import pdf_objects, pdf_pictures, pdf_text
from tests.support.pictures import picture, srgb_profile, upright_marker
from tests.support.shared_data import shared_root

from local_vector_search_mcp.book.compose import compose
from local_vector_search_mcp.book.pdf import print_book
from local_vector_search_mcp.book.process import BookCancelled, BookLimits, BookProcess, SetBook
from local_vector_search_mcp.book.profiles import ImageProfile
from local_vector_search_mcp.book.settings import BookSettings, BookStyle, PageFormat
from local_vector_search_mcp.book.sources import ChapterSource
from local_vector_search_mcp.errors import TimedOut, TooLarge, UnsupportedEncoding

pytestmark = pytest.mark.timeout(240)


def set_book(
    documents: Mapping[str, str | bytes],
    files: Mapping[str, bytes | str] | None = None,
    *,
    limits: BookLimits | None = None,
    progress: list[float] | None = None,
    **given: object,
) -> SetBook:
    chapters = [
        ChapterSource(path=path, data=data.encode() if isinstance(data, str) else data)
        for path, data in documents.items()
    ]
    sources = MemorySources({**documents, **(files or {})})
    reached = progress if progress is not None else []
    return BookProcess(limits or BookLimits()).set_book(
        BookSettings(**given),  # type: ignore[arg-type]
        chapters,
        sources,
        lambda share, _: reached.append(share),
    )


def squeezed(text: str) -> str:
    return "".join(text.split())


CHAPTERS = {
    "one.md": "---\ntitle: Real Book\nauthor: Ann Author\ntags: [a, b]\n---\n# First\n\n"
    "See [two](two.md).\n\n## Inner\n\n" + "Words to fill the page with something. " * 400,
    "two.md": "# Second\n\n[back](one.md#inner) [out](https://example.org/x)\n\ncalled[^n]\n\n[^n]: The note.\n",
}


def test_book__lines_are_filled_before_code(tmp_path: Path) -> None:
    """A text whose last space does not fit on the line keeps its words on it."""
    words = [f"{'i' * length}{last}" for length in range(24) for last in ("", "r")]
    text = "\n\n".join(
        f"Start {word} natural point at which we can return the memory our `String` needs." for word in words
    )
    lines = pdf_text(set_book({"a.md": text}, style=BookStyle.CLASSIC).data, tmp_path).splitlines()
    assert sum(line.startswith("Start ") for line in lines) == len(words)


def test_book__text_pages_bookmarks_links_and_metadata(tmp_path: Path) -> None:
    """Contents and page references give the pages that the chapters are on."""
    book = set_book(CHAPTERS)
    text = pdf_text(book.data, tmp_path)
    pages = text.split("\f")[: book.pages]
    assert len(pages) == book.pages
    on = next(number for number, page in enumerate(pages, 1) if "called" in page)
    contents = next(page for page in pages if "Contents" in page)
    assert re.search(rf"Second[ .]*{on}\b", contents)
    first = next(page for page in pages if "See two" in page)
    assert f"two (p. {on})" in first
    assert "The note." in pages[on - 1]
    raw = b"\n".join(pdf_objects(book.data))
    for expected in (
        b"/Outlines",
        b"(First)",
        b"(Inner)",
        b"(Second)",
        b"(Real Book)",
        b"(Ann Author)",
        b"https://example.org/x",
    ):
        assert expected in raw or expected in book.data, expected


def test_book__the_same_input_gives_the_same_bytes() -> None:
    """Pictures, formulas and footnotes included, in processes of their own."""
    documents = {"a.md": "# A\n\n![p](p.png) $x^2$ note[^1]\n\n```python\nx = 1\n```\n\n[^1]: n\n"}
    files = {"p.png": picture("PNG", mode="RGBA")}
    assert set_book(documents, files).data == set_book(documents, files).data


def test_book__progress_rises(tmp_path: Path) -> None:
    """From the beginning to nearly the end, never back."""
    progress: list[float] = []
    set_book(CHAPTERS, progress=progress)
    assert progress == sorted(progress)
    assert progress[0] < 0.1 and progress[-1] > 0.5


def test_book__the_wide_page_loses_nothing(tmp_path: Path) -> None:
    """A long code line, twelve columns on the smallest page, emoji and Chinese."""
    source = (shared_root() / "cases" / "files" / "f30-wide.md").read_bytes()
    book = set_book({"wide.md": source}, page_format=PageFormat.A6)
    text = squeezed(pdf_text(book.data, tmp_path))
    line = next(line for line in source.decode().splitlines() if line.startswith("x = "))
    assert squeezed(line) in text
    for number in range(1, 13):
        assert text.count(f"Column{number}") >= 1
    for mark in ("🦄", "👍", "夜间"):
        assert mark in text or any(mark[0] in warning for warning in book.warnings)


@pytest.mark.parametrize("style", BookStyle)
def test_book__every_style_sets_without_complaint(style: BookStyle, tmp_path: Path) -> None:
    """Our own sheets hold nothing that WeasyPrint does not know."""
    chapters = [ChapterSource(path=path, data=text.encode()) for path, text in CHAPTERS.items()]
    composed = compose(BookSettings(style=style, number_sections=True), chapters, MemorySources(CHAPTERS))
    with warnings.catch_warnings():
        # Where HarfBuzz's subsetter is not installed WeasyPrint says so, and does without.
        warnings.simplefilter("ignore", DeprecationWarning)
        printed = print_book(composed.job, lambda _: None)
    complaints = [each for each in printed.messages if "HarfBuzz" not in each]
    assert complaints == []
    assert "Second" in pdf_text(printed.data, tmp_path)


def test_book__pictures_are_resampled_by_their_size_on_the_page() -> None:
    """A large photograph in three profiles; a small one is kept; the same one is stored once."""
    photo = picture("JPEG", (3000, 2000), quality=95)
    sizes: dict[ImageProfile, int] = {}
    for profile in ImageProfile:
        book = set_book({"a.md": "![](p.jpg)\n\n![](copy.jpg)"}, {"p.jpg": photo, "copy.jpg": photo}, profile=profile)
        (stored,) = pdf_pictures(book.data)
        sizes[profile] = int(stored["Width"])
    column_in = 121.36 / 25.4
    for profile, dpi in ((ImageProfile.SCREEN, 96), (ImageProfile.STANDARD, 150), (ImageProfile.PRINT, 300)):
        assert abs(sizes[profile] - column_in * dpi) <= 2


def test_book__alpha_profiles_and_orientation_survive() -> None:
    """A mask, an ICC profile and a turned photograph."""
    files = {
        "alpha.png": picture("PNG", mode="RGBA"),
        "icc.png": picture("PNG", icc_profile=srgb_profile()),
        "turned.jpg": upright_marker(6),
    }
    book = set_book({"a.md": "![](alpha.png) ![](icc.png) ![](turned.jpg)"}, files)
    heads = [each.partition(b"stream\n")[0] for each in pdf_objects(book.data)]
    images = [head for head in heads if b"/Subtype /Image" in head]
    assert any(b"/SMask" in head for head in images)
    assert any(b"/ICCBased" in head for head in images)
    assert any(b"/Width 40" in head and b"/Height 80" in head for head in images)
    assert srgb_profile() in b"".join(pdf_objects(book.data))


def test_book__nothing_is_fetched_or_attached(tmp_path: Path) -> None:
    """Neither a local file nor a remote one reaches the PDF, whatever the document tries."""
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP-SECRET-WORDS")
    url = secret.as_uri()
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="90" height="90">'
        f'<style>@import url("{url}");</style><image xlink:href="{url}" width="9" height="9"/><text>drawn</text></svg>'
    )
    hostile = (
        f'<link rel="attachment" href="{url}"><a rel="attachment" href="{url}">a</a><img src="{url}">'
        f'<style>@import url("{url}"); body {{ background: url({url}) }}</style>'
        f'<div style="background:url({url})">b</div><iframe src="{url}"></iframe><object data="{url}"></object>'
        f'<embed src="{url}">\n\n![x]({url})\n\n![](d.svg)\n\nend'
    )
    book = set_book({"a.md": hostile}, {"d.svg": svg})
    raw = b"".join(pdf_objects(book.data)) + book.data
    assert b"TOP-SECRET" not in raw
    assert b"/EmbeddedFile" not in raw
    assert b"secret.txt" not in raw
    assert "end" in pdf_text(book.data, tmp_path)


def test_book__limits_of_time_and_memory() -> None:
    """Each has its code and says what to do."""
    with pytest.raises(TimedOut, match="fewer"):
        set_book(CHAPTERS, limits=BookLimits(seconds=0.2))
    with pytest.raises(TooLarge, match="memory"):
        set_book(CHAPTERS, limits=BookLimits(memory_bytes=30 * 1024 * 1024))


def test_book__a_document_that_is_not_utf8_is_refused() -> None:
    """The error of the child is the error of the caller."""
    with pytest.raises(UnsupportedEncoding):
        set_book({"a.md": b"\xff\xfe\x00"})


def test_book__can_be_cancelled_before_and_while_it_works() -> None:
    """The process is gone at once."""
    process = BookProcess(BookLimits())
    begun = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            chapters = [ChapterSource(path="a.md", data=(CHAPTERS["one.md"] * 20).encode())]
            process.set_book(BookSettings(), chapters, MemorySources(), lambda _, __: begun.set())
        except BookCancelled as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    at = time.monotonic()
    process.cancel()
    thread.join(10)
    assert failures and time.monotonic() - at < 5
    with pytest.raises(BookCancelled):
        process.set_book(BookSettings(), [ChapterSource(path="a.md", data=b"x")], MemorySources(), lambda _, __: None)


def test_book__support_names_its_libraries() -> None:
    """For the doctor."""
    support = BookProcess(BookLimits()).probe()
    assert support.weasyprint and support.pango


def test_book__modules_of_the_working_directory_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloned repository must not run code by holding a weasyprint.py."""
    (tmp_path / "weasyprint.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert BookProcess(BookLimits()).probe().weasyprint
