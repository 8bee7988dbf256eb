"""Packed chunks and text lists come back as they were."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.index.chunker import ChunkerSettings, chunk_document
from local_vector_search_mcp.index.packing import (
    DICTIONARY_BYTES,
    make_dictionary,
    pack_chunk,
    pack_texts,
    unpack_chunk,
    unpack_texts,
)
from local_vector_search_mcp.markdown.parser import parse_bytes

TEXT = """---
title: A title
---

# Überschrift

Some text with a [link](x.md).

- item
  - nested
  - other

  tail

## Part two

| a | b |
| - | - |
| 1 | 2 |
"""


def check(text: str, *, size: int = 4096, dictionary: bytes = b"") -> int:
    """Every chunk is the same after packing; the bytes that all of them take."""
    taken = 0
    for chunk in chunk_document(parse_bytes(text.encode()), ChunkerSettings(max_chunk_bytes=size)):
        packed = pack_chunk(chunk, dictionary)
        again = unpack_chunk(packed, dictionary)
        assert (again.text, again.lead, again.heading_paths) == (chunk.text, chunk.lead, chunk.heading_paths)
        assert again.elements == chunk.elements
        assert [one.pointer for one in again.elements] == [one.pointer for one in chunk.elements]
        taken += len(packed)
    return taken


def test_pack_chunk__keeps_everything() -> None:
    """Elements, pointers, paths and text survive, with a dictionary and without."""
    check(TEXT)
    check(TEXT, dictionary=make_dictionary([TEXT.encode()]))
    check(TEXT * 40, size=256)
    check("")


def test_pack_chunk__is_smaller_with_a_dictionary() -> None:
    """A dictionary of like text is worth having."""
    assert check(TEXT, dictionary=make_dictionary([TEXT.encode()])) < check(TEXT) * 2 / 3


def test_make_dictionary__keeps_the_last_samples() -> None:
    """A dictionary is no longer than the compressor looks back."""
    dictionary = make_dictionary([b"a" * DICTIONARY_BYTES, b"last"])
    assert len(dictionary) == DICTIONARY_BYTES
    assert dictionary.endswith(b"last")


@given(
    st.lists(
        st.sampled_from(["# A\n", "- x\n  - y\n", "p\nq\n", "\n", "é\r\n", "```\nz\n```\n", "w " * 200, "\u2028"]),
        max_size=20,
    )
)
def test_pack_chunk__keeps_any_document(pieces: list[str]) -> None:
    """Whatever a document holds, its chunks come back."""
    check("".join(pieces), size=256, dictionary=b"- x\n  - y\n")


@given(st.lists(st.text()))
def test_pack_texts__keeps_any_list(texts: list[str]) -> None:
    """Lists of texts come back, whatever is in them."""
    printable = [text.encode("utf-8", "replace").decode() for text in texts]
    assert unpack_texts(pack_texts(printable)) == printable


@pytest.mark.parametrize(
    "paths",
    [
        ((),),
        ((), ("A",), ("A", "B")),
        (("",), ("", "")),
        (("with \x1f unit",), ("with \x1e record", "x")),
        (("line\nfeed",),),
        (("ü", "漢字 🎉"),),
    ],
)
def test_pack_chunk__keeps_any_heading_path(paths: tuple[tuple[str, ...], ...]) -> None:
    """Heading paths come back whatever the headings hold, empty ones too."""
    chunk = replace(chunk_document(parse_bytes(b"x\n"), ChunkerSettings())[0], heading_paths=paths)
    assert unpack_chunk(pack_chunk(chunk, b""), b"").heading_paths == paths
