"""Books: two hundred pages against WeasyPrint alone on the same HTML, and three image profiles."""

import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import PIL.Image
from tests.benchmarks.support import Row, alternate, measure, unpacked
from tests.support.books import MemorySources

from local_vector_search_mcp.book.compose import compose
from local_vector_search_mcp.book.process import BookLimits, BookProcess, SetBook
from local_vector_search_mcp.book.profiles import ImageProfile
from local_vector_search_mcp.book.settings import BookSettings
from local_vector_search_mcp.book.sources import ChapterSource

_BAR = 1.3
# WeasyPrint in a process of its own, as ours is: its start belongs to both.
_ALONE = (
    "import sys, weasyprint; "
    "html, css, out = sys.argv[1:]; "
    "weasyprint.HTML(filename=html).write_pdf(out, stylesheets=[css])"
)


def run(quick: bool) -> list[Row]:
    """Measure whole books, from Markdown to the bytes of the PDF."""
    return [*_long_book(30 if quick else 200, 1 if quick else 3), *_profiles(4 if quick else 12, 1 if quick else 3)]


def _long_book(pages: int, repeats: int) -> list[Row]:
    chapters = _chapters(pages)
    settings = BookSettings()
    sources = MemorySources({chapter.path: chapter.data for chapter in chapters})
    made: list[SetBook] = []

    def ours() -> None:
        made.append(BookProcess(BookLimits()).set_book(settings, chapters, sources, lambda _, __: None))

    composed = compose(settings, chapters, sources)
    with tempfile.TemporaryDirectory(prefix="lvs-bench-") as folder:
        html, css, out = (Path(folder) / name for name in ("book.html", "book.css", "book.pdf"))
        html.write_text(composed.job.html, encoding="utf-8")
        css.write_text(composed.job.css, encoding="utf-8")

        def alone() -> None:
            command = [sys.executable, "-c", _ALONE, str(html), str(css), str(out)]
            subprocess.run(command, check=True, capture_output=True, timeout=900)

        our_time, baseline = alternate(ours, alone, repeats=repeats, warm_up=0)
    book = made[-1]
    ratio = our_time.median / baseline.median
    return [
        Row(
            name=f"a book of {book.pages} pages",
            value=our_time.median,
            unit="s",
            baseline=baseline.median,
            ratio=ratio,
            bar=f"<= {_BAR} x WeasyPrint alone on the same HTML",
            note=f"{len(chapters)} chapters, {len(book.data) / 1e6:.1f} MB; a process of its own on both sides",
            passed=ratio <= _BAR,
        ),
        Row(name="pages per second", value=book.pages / our_time.median, unit="pages/s"),
    ]


def _profiles(count: int, repeats: int) -> list[Row]:
    sources = MemorySources({f"p{number}.jpg": _photograph(number) for number in range(count)})
    markdown = "# Pictures\n\n" + "\n\n".join(f"![p](p{number}.jpg)" for number in range(count))
    chapters = [ChapterSource(path="a.md", data=markdown.encode())]
    original = sum(map(len, sources.files.values()))
    rows: list[Row] = []
    for profile in ImageProfile:
        made: list[SetBook] = []

        def book(profile: ImageProfile = profile, made: list[SetBook] = made) -> None:
            settings = BookSettings(profile=profile)
            made.append(BookProcess(BookLimits()).set_book(settings, chapters, sources, lambda _, __: None))

        timing = measure(book, repeats=repeats, warm_up=0)
        rows.append(
            Row(
                name=f"{count} photographs of 12 megapixels, profile {profile.value}",
                value=timing.median,
                unit="s",
                note=f"{original / 1e6:.1f} MB of JPEG become {len(made[-1].data) / 1e6:.2f} MB of PDF",
            )
        )
    return rows


def _chapters(pages: int) -> Sequence[ChapterSource]:
    """About so many pages of A5: chapters of a real book where the test data is there, else of our own."""
    with unpacked("corpora/rust-book.tar.gz") as folder:
        if folder is not None:
            root = folder / "rust-book" / "src"
            names = re.findall(r"\]\(([^)]+\.md)\)", (root / "SUMMARY.md").read_text(encoding="utf-8"))
            files = [root / name for name in dict.fromkeys(names)]
            return [
                ChapterSource(path=file.name, data=file.read_bytes()) for file in files[: max(6, round(pages / 5.1))]
            ]
    text = "Words that fill a line of a page with something to read. " * 12
    section = (
        f"## A section\n\n{text}\n\n- an item\n- another\n\n```python\nx = [1, 2, 3]\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    )
    return [
        ChapterSource(path=f"c{number}.md", data=f"# Chapter {number}\n\n{section * 12}".encode())
        for number in range(max(1, pages // 5))
    ]


def _photograph(number: int) -> bytes:
    """A JPEG of 4000 × 3000 pixels."""
    small = PIL.Image.effect_noise((400, 300), 60 + number).convert("RGB")
    buffer = io.BytesIO()
    small.resize((4000, 3000), PIL.Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()
