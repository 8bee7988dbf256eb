"""SourceText: a document's bytes with their line table, and ByteRange, half-open offsets into them.

Every offset of the model counts bytes of the original file, so nothing here is normalised.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import UnsupportedEncoding

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, order=True)
class ByteRange:
    """Half-open range ``[start, end)`` of byte offsets into one source."""

    start: int  # Invariant: 0 <= start <= end.
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a byte range: [{self.start}, {self.end})")

    @property
    def length(self) -> int:
        """The number of bytes."""
        return self.end - self.start

    def contains(self, other: "ByteRange") -> bool:
        """Whether every byte of ``other`` lies in this range."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: "ByteRange") -> bool:
        """Whether the two ranges share a byte."""
        return self.start < other.end and other.start < self.end

    def slice(self, data: bytes) -> bytes:
        """The bytes of ``data`` in this range."""
        return data[self.start : self.end]


class SourceText:
    """The bytes of one UTF-8 document, with its lines.

    Lines end at ``\\n``, ``\\r\\n`` or a lone ``\\r`` and are counted from 1 in public answers; the
    line table is counted from 0. The first line starts after a BOM.
    """

    def __init__(self, data: bytes, bom_len: int) -> None:
        self.data = data
        self.bom_len = bom_len

    @property
    def text(self) -> str:
        """The text without the BOM; not kept, because the model works on the bytes."""
        return self._body.decode("utf-8")

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines without their endings; empty for an empty document."""
        # Lines end at CR, LF or CRLF only, as in CommonMark. bytes.splitlines knows no others;
        # str.splitlines also breaks at U+2028 and form feed, which would shift every range after them.
        return self._body.splitlines()

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """Byte offset of each line's first byte, and the end of the data after the last of them."""
        return list(accumulate(map(len, self._body.splitlines(keepends=True)), initial=self.bom_len))

    @property
    def _body(self) -> bytes:
        return self.data[self.bom_len :] if self.bom_len else self.data

    @cached_property
    def source_hash(self) -> str:
        """The hash of all bytes, BOM included."""
        return xxh64_hex(self.data)

    @property
    def line_count(self) -> int:
        """How many lines there are; a last line ending begins no line."""
        return len(self.lines)

    def line_of(self, offset: int) -> int:
        """The 1-based number of the line that holds the byte at ``offset``."""
        return max(1, min(bisect_right(self.line_starts, offset), self.line_count))

    def line_range(self, line: int) -> ByteRange:
        """The bytes of a 1-based line without its ending."""
        start = self.line_starts[line - 1]
        return ByteRange(start, start + len(self.lines[line - 1]))

    def full_line_range(self, line: int) -> ByteRange:
        """The bytes of a 1-based line with its ending."""
        return ByteRange(self.line_starts[line - 1], self.line_starts[line])

    def line_ending(self, line: int) -> str | None:
        """The ending of a 1-based line; None where the document ends without one."""
        end = self.line_starts[line - 1] + len(self.lines[line - 1])
        return self.data[end : self.line_starts[line]].decode("ascii") or None

    def first_line_ending(self) -> str | None:
        """The ending of the first line; None where the document has none."""
        return self.line_ending(1) if self.lines else None

    def is_blank(self, line: int) -> bool:
        """Whether a 1-based line holds spaces and tabs only."""
        return not self.lines[line - 1].strip(b" \t")

    def decode(self, start: int, end: int) -> str:
        """The text of a byte range that cuts no character."""
        return self.data[start:end].decode("utf-8")


def decode_source(data: bytes) -> SourceText:
    """Read a document's bytes.

    Raises:
        UnsupportedEncoding: They are not valid UTF-8; the message names the first bad byte.
    """
    bom_len = len(BOM) if data.startswith(BOM) else 0
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnsupportedEncoding(_encoding_message(data, error.start)) from error
    return SourceText(data, bom_len)


def _encoding_message(data: bytes, offset: int) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "The document is UTF-16; save it as UTF-8 to use it."
    return (
        f"The document is not valid UTF-8 (byte 0x{data[offset]:02x} at offset {offset}); save it as UTF-8 to use it."
    )
