"""PDF files as tests look at them: text, pages, bookmarks and pictures, by what stands in their objects."""

import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest


def pdf_text(data: bytes, folder: Path) -> str:
    """The text of a PDF, page by page; skips the test where no program can read it."""
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("pdftotext (poppler) is not installed")
    path = folder / "looked-at.pdf"
    path.write_bytes(data)
    run = subprocess.run([program, "-enc", "UTF-8", str(path), "-"], capture_output=True, check=True, timeout=60)
    return run.stdout.decode("utf-8")


def pdf_objects(data: bytes) -> list[bytes]:
    """Every object of a PDF that WeasyPrint wrote, the compressed ones inflated."""
    found = [match.group(1) for match in re.finditer(rb"\d+ 0 obj\n(.*?)\nendobj", data, re.DOTALL)]
    inflated: list[bytes] = []
    for each in found:
        head, separator, body = each.partition(b"stream\n")
        if separator and b"/FlateDecode" in head and b"/Image" not in head:
            try:
                body = zlib.decompress(body.rpartition(b"\nendstream")[0])
            except zlib.error:
                body = b""
        inflated.append(head + separator + body)
    return inflated


def pdf_pictures(data: bytes) -> list[dict[str, str]]:
    """The image objects of a PDF: width, height, filter and the like, as written."""
    pictures: list[dict[str, str]] = []
    for each in pdf_objects(data):
        head = each.partition(b"stream\n")[0]
        if b"/Subtype /Image" in head:
            pairs = re.findall(
                rb"/(Width|Height|Filter|BitsPerComponent|ColorSpace|SMask) (/?\[?[^/\]>]*\]?[^/>]*)", head
            )
            pictures.append({key.decode(): value.decode("latin-1").strip() for key, value in pairs})
    return pictures
