"""How the bytes before and after a change are stored: compressed, the latter as a difference (pure)."""

import struct
import zlib

_SMALL = 64 * 1024
_HEADER = struct.Struct("<BQQ")  # 1 if the rest is compressed; the lengths shared at the start and at the end.


def pack(data: bytes) -> bytes:
    """Bytes as they are stored."""
    return _pack(data, 0, 0)


def unpack(stored: bytes) -> bytes:
    """The bytes that ``pack`` stored."""
    return unpack_against(stored, b"")


def pack_against(data: bytes, base: bytes) -> bytes:
    """Bytes as their difference from ``base``: what they share at both ends is left out."""
    start = _common_start(data, base)
    rest = min(len(data), len(base)) - start
    end = _common_end(data, base, rest)
    return _pack(data[start : len(data) - end], start, end)


def unpack_against(stored: bytes, base: bytes) -> bytes:
    """The bytes that ``pack_against`` stored, given the same ``base``."""
    compressed, start, end = _HEADER.unpack_from(stored)
    middle = stored[_HEADER.size :]
    if compressed:
        middle = zlib.decompress(middle)
    return base[:start] + middle + (base[len(base) - end :] if end else b"")


def _pack(data: bytes, start: int, end: int) -> bytes:
    smaller = zlib.compress(data, _level(data)) if len(data) > 64 else data
    if len(smaller) < len(data):
        return _HEADER.pack(1, start, end) + smaller
    return _HEADER.pack(0, start, end) + data


def _level(data: bytes) -> int:
    """Hard work for what takes no time, and little for what would hold up the edit of a large document."""
    return 6 if len(data) <= _SMALL else 1


def _common_start(one: bytes, other: bytes) -> int:
    """How many bytes both begin with; by halving, because comparing slices is fast and a loop is not."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: bytes, other: bytes, limit: int) -> int:
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
