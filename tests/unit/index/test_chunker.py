"""Chunks: what stands in which, in what order, and that nothing is left out."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.shared_data import shared_root

from local_vector_search_mcp.index.chunker import ChunkerSettings, chunk_document
from local_vector_search_mcp.index.chunks import KIND_BITS, Chunk
from local_vector_search_mcp.markdown.elements import ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes


def chunks_of(text: str, **settings: int | bool) -> tuple[Chunk, ...]:
    return chunk_document(parse_bytes(text.encode()), ChunkerSettings(**settings))  # type: ignore[arg-type]


def check(text: str, *expected: str, **settings: int | bool) -> None:
    """Each chunk as the addresses of its elements."""
    found = [" ".join(element.logical for element in chunk.elements) for chunk in chunks_of(text, **settings)]
    assert found == list(expected)


LONG = "word " * 300  # 1,500 bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n\nb\n", ["p1 p2"]),
        ("# H\n\na\n\n- x\n  - y\n", ["1 1.p1 1.li1 1.li1.li1"]),
        ("---\ntitle: T\n---\n\n# H\n\na\n", ["frontmatter 1 1.p1"]),
        ("a\n\n# H\n\nb\n", ["p1", "1 1.p1"]),
        ("# A\n\na\n\n# B\n\nb\n", ["1 1.p1", "2 2.p1"]),
        ("# A\n\n## B\n\nb\n\n## C\n\nc\n", ["1 1.1 1.1.p1 1.2 1.2.p1"]),
        ("## A\n\na\n\n## B\n\nb\n", ["1 1.p1 2 2.p1"]),
        (f"## A\n\n{LONG}\n\n## B\n\n{LONG}\n", ["1 1.p1", "2 2.p1"]),
        (f"# T\n\n## A\n\n{LONG}\n", ["1 1.1 1.1.p1"]),
        ("### A\n\na\n\n## B\n\nb\n", ["1 1.p1 2 2.p1"]),
        ("", ["document"]),
        (" \n\t\n", ["document"]),
    ],
    ids=range(12),
)
def test_chunks__hold_sections(text: str, expected: list[str]) -> None:
    """Sections keep their headings; small neighbours share; level 1 always begins a chunk."""
    check(text, *expected)


def test_chunks__small_section_does_not_join_the_rest_of_a_long_one() -> None:
    """A section may only share a chunk whose sections all stand there with their headings."""
    body = "\n\n".join([LONG] * 4)
    check(
        f"## A\n\n{body}\n\n## B\n\nb\n",
        "1 1.p1 1.p2",
        "1.p3 1.p4",
        "2 2.p1",
    )


def test_chunks__sections_under_another_parent_do_not_share() -> None:
    """Neighbours share only under one parent."""
    check("# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n## D\n\nd\n", "1 1.p1 1.1 1.1.p1 1.1.1 1.1.1.p1 1.2 1.2.p1")
    check(f"## A\n\n{LONG}\n\n### B\n\nb\n\n## C\n\nc\n", "1 1.p1 1.1 1.1.p1 2 2.p1", max_chunk_bytes=4096)


def test_chunks__front_matter_can_be_left_out() -> None:
    """Without front matter the first chunk begins after it; of nothing else the document itself is left."""
    check("---\na: 1\n---\n\nb\n", "p1", include_front_matter=False)
    check("---\na: 1\n---\n", "document", include_front_matter=False)


def test_chunks__element_limit() -> None:
    """No chunk holds more elements than allowed, nested items counted."""
    check("- a\n- b\n- c\n", "li1 li2", "li3", max_elements=2)
    check("- a\n  - b\n  - c\n", "li1 li1.li1", "li1.li2", max_elements=2)


def test_chunks__split_table_repeats_its_header() -> None:
    """Every part of a long table begins with header and delimiter row, and rows are whole."""
    rows = [f"| key {number} | value {number} |" for number in range(200)]
    text = "# T\n\n" + "\n".join(["| Key | Value |", "| --- | --- |", *rows]) + "\n"
    chunks = chunks_of(text, max_chunk_bytes=1024)
    assert len(chunks) > 3
    assert [element.logical for element in chunks[0].elements] == ["1", "1.t1"]
    for chunk in chunks[1:]:
        assert chunk.text.startswith("| Key | Value |\n| --- | --- |\n| key ")
        assert chunk.text[: chunk.lead] == "| Key | Value |\n| --- | --- |\n"
        assert all(line in rows for line in chunk.text[chunk.lead :].split("\n"))
        assert len(chunk.text) <= 1024
    seen = [line for chunk in chunks for line in chunk.text[chunk.lead :].split("\n") if line.startswith("| key")]
    assert seen == rows


def test_chunks__split_fence_repeats_its_language() -> None:
    """Every part of a long fenced block begins with the fence and its language."""
    lines = [f"print({number})" for number in range(200)]
    chunks = chunks_of("~~~python\n" + "\n".join(lines) + "\n~~~\n", max_chunk_bytes=512)
    assert len(chunks) > 3
    assert all(chunk.text.startswith("~~~python\n") for chunk in chunks)
    assert [line for chunk in chunks for line in chunk.text.split("\n") if line.startswith("print")] == lines


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("First sentence here. " * 40, "."),
        ("第一句话在这里。" * 60, "。"),
        ("word " * 200, "d"),
        ("x" * 1000, "x"),
        ("é" * 700, "é"),
    ],
    ids=["sentences", "chinese sentences", "words", "letters", "two-byte letters"],
)
def test_chunks__long_line_is_cut_at_the_best_place(text: str, ends: str) -> None:
    """One line larger than a chunk is cut after a sentence, else a word, else a character."""
    chunks = chunks_of(text + "\n", max_chunk_bytes=256)
    assert len(chunks) > 2
    assert all(chunk.text.rstrip().endswith(ends) for chunk in chunks)
    assert all(len(chunk.text.encode()) <= 256 for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks).split() == text.split() or ends in "xé"
    assert {chunk.elements[0].pointer for chunk in chunks} == {chunks[0].elements[0].pointer}


def test_chunks__marks_stay_with_their_letter() -> None:
    """A combining mark is not cut off from the letter that carries it."""
    chunks = chunks_of("e\u0301" * 400 + "\n", max_chunk_bytes=256)
    assert all(not chunk.text.startswith("\u0301") for chunk in chunks)


def test_chunk__knows_its_place() -> None:
    """Lines, bytes, heading paths and kinds are those of the source, a BOM and CRLF included."""
    data = "\ufeff---\r\na: 1\r\n---\r\n\r\n# Über\r\n\r\ntäxt\r\n\r\n## B\r\n\r\n- x\r\n  - y\r\n".encode()
    document = parse_bytes(data)
    (chunk,) = chunk_document(document, ChunkerSettings())
    assert chunk.lines == (1, 12)
    assert data[chunk.range.start : chunk.range.end].decode() == chunk.text
    assert chunk.heading_paths == ((), ("Über",), ("Über", "B"))
    assert chunk.heading_path == ("Über",)
    assert chunk.kinds == sum(
        KIND_BITS[kind]
        for kind in (ElementKind.FRONTMATTER, ElementKind.HEADING, ElementKind.PARAGRAPH, ElementKind.LIST_ITEM)
    )
    assert [(element.logical, chunk.lines_of(element)) for element in chunk.elements] == [
        ("frontmatter", (1, 3)),
        ("1", (5, 5)),
        ("1.p1", (7, 7)),
        ("1.1", (9, 9)),
        ("1.1.li1", (11, 12)),
        ("1.1.li1.li1", (12, 12)),
    ]
    check_pointers(document, (chunk,))


def test_chunk__finds_the_innermost_element() -> None:
    """A place in the text leads to the innermost element around it, else to the one before."""
    (chunk,) = chunks_of("# H\n\n- outer\n  - inner\n\n\nlast\n")
    assert chunk.element_at(chunk.text.index("inner")).logical == "1.li1.li1"
    assert chunk.element_at(chunk.text.index("outer")).logical == "1.li1"
    assert chunk.element_at(chunk.text.index("outer"), chunk.text.index("inner") + 3).logical == "1.li1"
    assert chunk.element_at(chunk.text.index("\n\n\nlast") + 1).logical == "1.li1.li1"


def check_pointers(document: MarkdownDocument, chunks: tuple[Chunk, ...]) -> None:
    known = {element.logical: element.pointer for element in document.elements}
    for chunk in chunks:
        for element in chunk.elements:
            assert element.pointer == known.get(element.logical, "document")


def check_all(data: bytes, settings: ChunkerSettings) -> None:
    """What holds for every document: order, limits, pointers, and that nothing that is not blank is missing."""
    document = parse_bytes(data)
    chunks = chunk_document(document, settings)
    check_pointers(document, chunks)
    covered = bytearray(len(data))
    previous = 0
    for ordinal, chunk in enumerate(chunks):
        assert chunk.ordinal == ordinal
        assert chunk.range.start >= previous
        previous = chunk.range.start
        covered[chunk.range.start : chunk.range.end] = b"x" * chunk.range.length
        assert chunk.text[chunk.lead :] == data[chunk.range.start : chunk.range.end].decode()
        assert len(chunk.text.encode()) <= settings.max_chunk_bytes
        assert len({element.logical for element in chunk.elements}) <= settings.max_elements
        assert all(0 <= element.start <= element.end <= len(chunk.text) for element in chunk.elements)
        known = [document.by_logical(element.logical) for element in chunk.elements]
        held = [element for element in known if element is not None]
        tops = [place for place, element in enumerate(held) if element.level == 1]
        assert len(tops) <= 1
        assert all(element.kind is ElementKind.FRONTMATTER for element in held[: tops[0] if tops else 0])
    left = bytes(byte for byte, seen in zip(data, covered, strict=True) if not seen)
    assert not left.decode("utf-8", "ignore").replace("\ufeff", "").strip(" \t\r\n")


PIECES = st.sampled_from(
    [
        "# One\n", "## Two\n", "### Three\n", "Text with words. And more!\n", "\n", "\n\n", "- item\n", "  - nested\n",
        "    - deep\n", "1. one\n", "> quote\n", "```py\ncode\n```\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "***\n",
        "---\nk: v\n---\n", "[ref]: /x\n", "äöü 漢字 🎉\n", "x" * 300 + "\n", "word " * 90 + "\n", "\r\n", "para\r",
    ]
)  # fmt: skip


@given(
    text=st.lists(PIECES, max_size=30).map("".join),
    size=st.sampled_from([256, 300, 1024, 4096]),
    elements=st.sampled_from([1, 2, 5, 20]),
)
def test_chunks__hold_everything_of_any_document(text: str, size: int, elements: int) -> None:
    """For every document and every setting: nothing is lost, limits hold, pointers are exact."""
    check_all(text.encode(), ChunkerSettings(max_chunk_bytes=size, max_elements=elements))


def check_files(paths: Iterable[Path]) -> None:
    for path in paths:
        data = path.read_bytes()
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        for size in (256, 4096):
            check_all(data, ChunkerSettings(max_chunk_bytes=size))


def test_chunks__hold_everything_of_reported_cases() -> None:
    """Every file of the field reports is chunked whole, those that are not UTF-8 aside."""
    check_files(sorted((shared_root() / "cases" / "files").glob("f*.md")))


def test_chunks__hold_everything_of_own_documents() -> None:
    """The project's own Markdown is chunked whole."""
    root = Path(__file__).resolve().parents[3]
    check_files([*root.glob("docs/**/*.md"), *root.glob("fixtures/**/*.md")])
