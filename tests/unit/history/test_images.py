"""Stored bytes: what is packed comes out again, and takes little room."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.history.images import pack, pack_against, unpack, unpack_against


@pytest.mark.parametrize("data", [b"", b"a", b"a" * 100_000, bytes(range(256)) * 9, b"\xff\xfe\0"])
def test_pack__round_trip(data: bytes) -> None:
    """Any bytes come out as they went in."""
    assert unpack(pack(data)) == data


def test_pack__sizes() -> None:
    """Text shrinks, and what cannot shrink does not grow beyond a few bytes."""
    text = b"The quick brown fox jumps over the lazy dog.\n" * 500
    noise = random.Random(1).randbytes(10_000)
    assert len(pack(text)) < len(text) // 10
    assert len(pack(noise)) <= len(noise) + 32


@pytest.mark.parametrize(
    ("base", "data"),
    [
        (b"", b""),
        (b"abc", b"abc"),
        (b"abc", b""),
        (b"", b"abc"),
        (b"aaaa", b"aaaaa"),
        (b"aaaaa", b"aaaa"),
        (b"head MIDDLE tail", b"head middle tail"),
        (b"xyz", b"abc"),
    ],
)
def test_pack_against__round_trip(base: bytes, data: bytes) -> None:
    """The difference and its base give the bytes back."""
    assert unpack_against(pack_against(data, base), base) == data


def test_pack_against__small_edit_in_a_large_file() -> None:
    """One changed word costs the word."""
    base = random.Random(1).randbytes(1_000_000)
    data = base[:500_000] + b"word" + base[500_000:]
    assert len(pack_against(data, base)) < 100


@given(start=st.binary(max_size=20), old=st.binary(max_size=8), new=st.binary(max_size=8), end=st.binary(max_size=20))
def test_pack_against__any_edit(start: bytes, old: bytes, new: bytes, end: bytes) -> None:
    """Every edit of every text is kept exactly."""
    base, data = start + old + end, start + new + end
    assert unpack_against(pack_against(data, base), base) == data
