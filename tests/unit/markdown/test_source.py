"""Bytes, lines and ranges."""

import pytest

from local_vector_search_mcp.errors import UnsupportedEncoding
from local_vector_search_mcp.markdown.source import ByteRange, decode_source


@pytest.mark.parametrize(
    ("data", "lines", "starts"),
    [
        (b"", [], [0]),
        (b"a", [b"a"], [0, 1]),
        (b"a\n", [b"a"], [0, 2]),
        (b"a\r\nb\rc\nd", [b"a", b"b", b"c", b"d"], [0, 3, 5, 7, 8]),
        (b"\n\r\r\n", [b"", b"", b""], [0, 1, 2, 4]),
        (b"\xef\xbb\xbfa\n", [b"a"], [3, 5]),
        ("a\u2028b\x0c\x85c".encode(), ["a\u2028b\x0c\x85c".encode()], [0, 9]),
    ],
)
def test_source__lines_end_at_three_endings_alone(data: bytes, lines: list[bytes], starts: list[int]) -> None:
    """The line table follows CR, LF and CRLF, and starts after a BOM."""
    source = decode_source(data)
    assert source.lines == lines
    assert list(source.line_starts) == starts
    assert source.line_count == len(lines)


def test_source__text_is_without_the_bom() -> None:
    """The BOM is no text, and every byte counts in the hash."""
    source = decode_source(b"\xef\xbb\xbfa")
    assert (source.text, source.bom_len) == ("a", 3)
    assert source.source_hash != decode_source(b"a").source_hash


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"abcde\xe9", "0xe9 at offset 5"),
        (b"\xef\xbb\xbfab\xff", "0xff at offset 5"),
        ("a".encode("utf-16"), "UTF-16"),
        (b"\xed\xa0\x80", "offset 0"),
    ],
)
def test_source__refuses_what_is_no_utf8(data: bytes, said: str) -> None:
    """The message says what is wrong and where."""
    with pytest.raises(UnsupportedEncoding, match=said):
        decode_source(data)


def test_source__answers_about_lines() -> None:
    """Lines are asked for from 1; the byte behind the end is in the last one."""
    source = decode_source(b"one\r\n\ttwo\r \nlast")
    assert [source.line_of(offset) for offset in (0, 4, 5, 9, 10, 12, 16)] == [1, 1, 2, 2, 3, 4, 4]
    assert source.line_range(2) == ByteRange(5, 9)
    assert source.full_line_range(1) == ByteRange(0, 5)
    assert [source.line_ending(line) for line in (1, 2, 3, 4)] == ["\r\n", "\r", "\n", None]
    assert [source.is_blank(line) for line in (1, 2, 3, 4)] == [False, False, True, False]
    assert source.first_line_ending() == "\r\n"
    assert decode_source(b"").first_line_ending() is None
    assert decode_source(b"").line_of(0) == 1
    assert source.decode(5, 9) == "\ttwo"


def test_range__is_half_open() -> None:
    """Length, overlap and containment of ranges."""
    outer, inner, after = ByteRange(0, 5), ByteRange(2, 5), ByteRange(5, 6)
    assert outer.length == 5
    assert outer.contains(inner)
    assert not inner.contains(outer)
    assert outer.overlaps(inner)
    assert not outer.overlaps(after)
    assert inner.slice(b"abcdef") == b"cde"
    for start, end in ((-1, 2), (3, 2)):
        with pytest.raises(ValueError, match="not a byte range"):
            ByteRange(start, end)
