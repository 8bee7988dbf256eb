"""Downloads: any file as it is, whole or in parts."""

import hashlib
import os
from pathlib import Path

import pytest
from tests.support.pictures import picture

from local_vector_search_mcp.errors import InvalidArgument, InvalidPath, KnowledgeBaseError, NotFound, TooLarge
from local_vector_search_mcp.services.downloads import Download, DownloadService
from local_vector_search_mcp.workspace.files import Workspace

LIMIT = 1000
BINARY = bytes(range(256)) * 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "data.bin").write_bytes(BINARY)
    (folder / "empty.dat").write_bytes(b"")
    (folder / ".secret").write_bytes(b"x")
    (folder / "exact.bin").write_bytes(b"e" * LIMIT)
    return folder


def download(root: Path, path: str, offset: int = 0, length: int | None = None) -> Download:
    return DownloadService(Workspace(root)).download(path=path, offset=offset, length=length, result_limit=LIMIT)


def refuse(root: Path, error: type[KnowledgeBaseError], path: str, offset: int = 0, length: int | None = None) -> str:
    with pytest.raises(error) as caught:
        download(root, path, offset, length)
    return caught.value.message


def test_download__parts_joined_are_the_file(root: Path) -> None:
    """Every part states the size and digest of the whole."""
    service = DownloadService(Workspace(root))
    parts: list[bytes] = []
    offset = 0
    while offset < len(BINARY):
        part = service.download(path="sub/data.bin", offset=offset, length=LIMIT, result_limit=LIMIT)
        assert (part.bytes, part.sha256) == (len(BINARY), hashlib.sha256(BINARY).hexdigest())
        assert (part.offset, part.length) == (offset, len(part.data))
        parts.append(part.data)
        offset += part.length
    assert b"".join(parts) == BINARY


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (2000, None, BINARY[2000:]),
        (2000, 5000, BINARY[2000:]),
        (0, 1, BINARY[:1]),
        (len(BINARY), None, b""),
        (len(BINARY), 10, b""),
        (len(BINARY) - 1, 10, BINARY[-1:]),
    ],
)
def test_download__ranges_end_with_the_file(root: Path, offset: int, length: int | None, expected: bytes) -> None:
    """A part is cut at the end of the file, never refused for it."""
    assert download(root, "sub/data.bin", offset, length).data == expected


def test_download__a_file_of_exactly_the_limit_comes_whole(root: Path) -> None:
    """The limit itself is allowed; an empty file is a file."""
    assert len(download(root, "exact.bin").data) == LIMIT
    assert download(root, "empty.dat").data == b""


def test_download__what_does_not_fit_says_how_to_ask(root: Path) -> None:
    """The message holds the offset and length of the next calls."""
    message = refuse(root, TooLarge, "sub/data.bin")
    assert f"length {LIMIT}" in message
    assert f"offset {LIMIT}" in message
    refuse(root, TooLarge, "sub/data.bin", 0, LIMIT + 1)
    refuse(root, TooLarge, "sub/data.bin", 100, None)


@pytest.mark.parametrize(
    ("path", "offset", "length", "error"),
    [
        ("sub/data.bin", len(BINARY) + 1, None, InvalidArgument),
        ("sub/data.bin", -1, None, InvalidArgument),
        ("sub/data.bin", 0, 0, InvalidArgument),
        ("sub/none.bin", 0, None, NotFound),
        ("sub", 0, None, InvalidPath),
        (".secret", 0, None, NotFound),
        ("../root/exact.bin", 0, None, InvalidPath),
        ("/etc/passwd", 0, None, InvalidPath),
        (".git/config", 0, None, InvalidPath),
    ],
)
def test_download__refusals(
    root: Path, path: str, offset: int, length: int | None, error: type[KnowledgeBaseError]
) -> None:
    """Wrong ranges and paths that no tool may read."""
    refuse(root, error, path, offset, length)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="the system has no symbolic links")
def test_download__links_are_not_followed(root: Path, tmp_path: Path) -> None:
    """A link inside the root may lead anywhere."""
    (tmp_path / "outside.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    refuse(root, InvalidPath, "link.txt")


@pytest.mark.parametrize(
    ("name", "data", "mime_type"),
    [
        ("a.md", b"# A", "text/markdown"),
        ("a.json", b"{}", "application/json"),
        ("a.csv", b"a,b", "text/csv"),
        ("a.pdf", b"no pdf at all", "application/pdf"),
        ("A.PNG", b"x", "image/png"),
        ("a.webp", b"x", "image/webp"),
        ("a.yaml", b"a: 1", "application/yaml"),
        ("a.unknown", picture("PNG"), "image/png"),
        ("a", b"%PDF-1.7\n", "application/pdf"),
        ("Makefile", "all:\n\techo ü".encode(), "text/plain"),
        ("a.unknown", b"\x00\x01\x02", "application/octet-stream"),
        ("a.unknown", b"\xff\xfe\xfd", "application/octet-stream"),
        ("a.unknown", b"", "application/octet-stream"),
    ],
)
def test_download__mime_type_by_name_then_content(root: Path, name: str, data: bytes, mime_type: str) -> None:
    """A name that is known decides; content helps where it does not."""
    (root / name).write_bytes(data)
    assert download(root, name).mime_type == mime_type


def test_download__text_cut_in_a_character_is_still_text(root: Path) -> None:
    """Only the first kilobytes are looked at, and they may end anywhere."""
    (root / "long").write_bytes(b"a" + "夜".encode() * 3000)
    part = download(root, "long", 0, 10)
    assert part.mime_type == "text/plain"


def test_download__a_digest_is_of_the_file_as_it_is_now(root: Path) -> None:
    """A changed file has another digest, also from the same service."""
    service = DownloadService(Workspace(root))
    first = service.download(path="exact.bin", result_limit=LIMIT)
    (root / "exact.bin").write_bytes(b"changed")
    second = service.download(path="exact.bin", result_limit=LIMIT)
    assert second.sha256 == hashlib.sha256(b"changed").hexdigest() != first.sha256
