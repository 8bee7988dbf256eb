"""The edge to WeasyPrint: what is missing is named, and nothing but prepared data is handed out."""

import sys

import PIL.ImageFile
import pytest

from local_vector_search_mcp.book import pdf
from local_vector_search_mcp.errors import DependencyMissing


@pytest.mark.parametrize(
    ("platform", "package"), [("linux", "libpango-1.0-0"), ("darwin", "brew install pango"), ("win32", "MSYS2")]
)
def test_pdf__a_missing_library_names_the_package(platform: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each system is told what to install."""
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    monkeypatch.setattr("sys.platform", platform)
    with pytest.raises(DependencyMissing, match="Pango") as caught:
        pdf.pdf_support()
    assert package in caught.value.message


def test_pdf__pillow_stays_strict() -> None:
    """WeasyPrint makes Pillow take cut images; ours are still noticed."""
    try:
        pdf.pdf_support()
    except DependencyMissing:
        pytest.skip("Pango is not installed")
    assert PIL.ImageFile.LOAD_TRUNCATED_IMAGES is False
