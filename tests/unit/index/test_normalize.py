"""Normalisation: rows and queries meet in the same tokens."""

import re

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.index.normalize import (
    FTS_TOKENIZE,
    aligned_text,
    fold,
    identifiers,
    index_text,
    is_paired,
    needs_no_folding,
    query_piece,
)
from local_vector_search_mcp.search.vocabulary import RowTokenizer, fts_phrase

_CONNECTION = apsw.Connection(":memory:")
_TOKENIZER = RowTokenizer(_CONNECTION)

# Letters, marks, digits, signs of many scripts; what normalisation changes is there more often than elsewhere.
_SCRIPTS = (
    "aZ9_-. #+'éÉeßſŁøæﬁ½²ⅨΩςЙё豆腐鍋龍が がｶﾞー가각ᄀ\u1161\u11a8ภาษาน้ำລາວខ្មែរမြန်မာहिन्दीعَرَب"
    "😀👩\u200d💻™\u0301\u00ad\u200b\ufeff\x00\n"
)
# What Unicode has not assigned yet, FTS5 and Python may take for different things.
_ANY = st.characters(exclude_categories=["Cs", "Cn"])
_TEXTS = st.text(st.one_of(st.sampled_from(_SCRIPTS), _ANY), max_size=60)


def check(row: str, query: str, *, found: bool = True) -> None:
    """Whether a query, read as one phrase, finds a row."""
    piece = query_piece(query)
    assert piece.tokens or not found
    assert _finds(row, fts_phrase(piece)) is found if piece.tokens else not found


def _finds(row: str, match: str) -> bool:
    connection = apsw.Connection(":memory:")
    tokenize = FTS_TOKENIZE.replace("'", "''")
    connection.execute(f"CREATE VIRTUAL TABLE t USING fts5(body, content='', tokenize='{tokenize}')")
    connection.execute("INSERT INTO t (rowid, body) VALUES (1, ?)", (index_text(row),))
    return connection.execute("SELECT 1 FROM t WHERE t MATCH ?", (match,)).get is not None


@pytest.mark.parametrize(
    ("row", "query"),
    [
        ("kb_edit_table", "kb_edit_table"),
        ("kb_edit_table", "edit table"),
        ("kb_edit_table", "edit"),
        ("call kb_edit_table first", "call kb edit table first"),
        ("KnowledgeBase", "KnowledgeBase"),
        ("KnowledgeBase", "knowledgebase"),
        ("KnowledgeBase", "knowledge base"),
        ("KnowledgeBase", "base"),
        ("an HTMLParser here", "parser"),
        ("an HTMLParser here", "html parser"),
        ("an HTMLParser here", "an htmlparser here"),
        ("use GitHub Actions", "use github actions"),
        ("--embedding-provider", "--embedding-provider"),
        ("--embedding-provider", "provider"),
        ("foo.bar", "foo.bar"),
        ("foo.bar", "bar"),
        ("v1.2.3", "v1.2.3"),
        ("v1.2.3", "1.2.3"),
        ("v1.2.3", "1.2"),
        ("HTTPServer2Config", "server"),
        ("an HTTPServer2 here", "http server"),
        ("an HTTPServer2 here", "HTTPServer 2"),
        ("an HTTPServer2 here", "HTTPServer2"),
        ("getElementById2", "element"),
        ("OAuth2Provider", "OAuth2Provider"),
        ("parseHTML5Page", "html"),
        ("python3", "python 3"),
        ("python3", "python"),
        ("sha256", "sha 256"),
        ("REQ-0173", "REQ-0173"),
        ("REQ-0173", "req"),
        ("debian 12.4", "debian 12.4"),
        ("can't open", "can't"),
        ("can’t open", "can't"),
        ("cook::mix", "cook::mix"),
        ("save_all_rows", "save all rows"),
        ("C++ and C#", "C++"),
        ("Café", "cafe"),
        ("cafe", "CAFÉ"),
        ("cafe\u0301", "café"),
        ("Łódź", "lodz"),
        ("Straße", "STRASSE"),
        ("ﬁnance", "finance"),
        ("ＫＢ１", "kb1"),
        ("H₂O", "h2o"),
        ("Σίσυφος", "ΣΙΣΥΦΟΣ"),
        ("Name™ here", "name"),
        ("exam\u00adple", "example"),
        ("running", "runs"),
        ("🎉 done", "🎉"),
        ("昨夜は豆腐鍋をつくった。", "豆腐鍋"),
        ("昨夜は豆腐鍋をつくった。", "鍋を"),
        ("昨夜は豆腐鍋をつくった。", "鍋"),
        ("昨夜は豆腐鍋をつくった。", "た"),
        ("春天種下番茄與羅勒幼苗。", "番茄"),
        ("春天種下番茄與羅勒幼苗。", "幼苗"),
        ("어제 된장국수를 끓였다.", "된장국수"),
        ("어제 된장국수를 끓였다.", "장국"),
        ("어제 된장국수를 끓였다.", "국수를 끓"),
        ("ｶﾞﾗｽ", "ガラス"),
        ("ภาษาไทยง่าย", "ไทย"),
        ("ภาษาไทยง่าย", "ษาไ"),
        ("ພາສາລາວ", "ລາວ"),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("မြန်မာဘာသာ", "ဘာသာ"),
        ("使用SQLite数据库", "sqlite"),
        ("使用SQLite数据库", "使用SQLite数据"),
        ("20世纪70年代", "70年代"),
        ("20世纪70年代", "世纪70年"),
        ("हिन्दी भाषा", "हिन्दी"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
        ("Ёлка", "елка"),
    ],
)
def test_normalize__found(row: str, query: str) -> None:
    """A row is found by its words whole and in parts, whatever their case, marks and script."""
    check(row, query)


@pytest.mark.parametrize(
    ("row", "query"),
    [
        ("kb_edit_table", "edit base"),
        ("KnowledgeBase", "ledge"),
        ("豆腐鍋", "腐豆"),
        ("豆 腐", "豆腐"),
        ("12.4", "12.5"),
        ("v1.2.3", "1.3"),
        ("the KnowledgeBase class", "the knowledge"),
        ("foo", "***"),
        ("foo", "½🙂"),
    ],
)
def test_normalize__not_found(row: str, query: str) -> None:
    """What is not there in this order is not found."""
    check(row, query, found=False)


def test_normalize__substrings_of_unspaced_scripts() -> None:
    """Every substring of a run of Chinese, Japanese, Korean or Thai text is found."""
    for row in ("春天種下番茄與羅勒幼苗", "お茶とケーキを食べた", "어제국수를먹었다", "เมื่อวานนี้"):
        for start in range(len(row)):
            for end in range(start + 1, len(row) + 1):
                check(row, row[start:end])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("plain words only", []),
        ("KnowledgeBase", [("Knowledge", "Base")]),
        ("KnowledgeBase KnowledgeBase", [("Knowledge", "Base")]),
        ("XMLHttpRequest2Send", [("XML", "Http", "Request", "2", "Send")]),
        ("PDFs and URLs", []),
        ("v1.2.3 V2", [("1", "2", "3"), ("2",)]),
        ("x86 3d sha256", [("x", "86"), ("sha", "256")]),
        ("HTTPServer2 Md5 AB12", [("HTTPServer", "2"), ("HTTP", "Server", "2"), ("Md", "5"), ("AB", "12")]),
        ("8f41c721d904a8bc", []),
        ("aGVsbG8gd29ybGQhIHRoaXMgaXMgYSBsb25nIGJhc2U2NCBzdHJpbmcgdGhhdCBpcyBubyBuYW1l", []),
        ("C++, c++11 and C# but no a#b", [("Cplusplus",), ("cplusplus",), ("Csharp",)]),
    ],
)
def test_identifiers__parts(text: str, parts: list[tuple[str, ...]]) -> None:
    """Identifiers give their parts; hashes and encoded data do not."""
    assert sorted(one.parts for one in identifiers(text)) == sorted(parts)


def test_identifiers__huge_word() -> None:
    """A word of a megabyte is passed over quickly."""
    assert identifiers("aB" * 500_000) == []
    assert identifiers("a1" * 500_000) == []


@given(_TEXTS)
def test_index_text__same_for_query(text: str) -> None:
    """A query for the whole text finds the row of the text."""
    piece = query_piece(text)
    if any(_TOKENIZER.stems(token) for token in piece.tokens):
        assert _finds(text, fts_phrase(piece))


@given(_TEXTS)
def test_query_piece__safe(text: str) -> None:
    """Tokens of a query hold nothing that FTS5 could take for syntax."""
    for token in query_piece(text).tokens:
        assert not re.search(r'["\s*:^()\x00]', token)


@given(_TEXTS)
def test_fold__idempotent(text: str) -> None:
    """Folded text stays as it is."""
    assert fold(fold(text)) == fold(text)


@given(_TEXTS)
def test_aligned_text__agrees_with_rows(text: str) -> None:
    """Aligned text has the tokens of the row, and every character of it comes from the original."""
    aligned = aligned_text(text)
    tokens = _TOKENIZER.stems(aligned.text)
    assert _TOKENIZER.stems(index_text(text))[: len(tokens)] == tokens
    assert len(aligned.text) == len(aligned.starts) == len(aligned.ends)
    assert all(0 <= start < end <= len(text) for start, end in zip(aligned.starts, aligned.ends, strict=True))


@given(st.text(st.characters(max_codepoint=0x2600, exclude_categories=["Cs"]), max_size=40))
def test_needs_no_folding__is_true(text: str) -> None:
    """Where no folding is said to be needed, FTS5 finds the same tokens without it."""
    if needs_no_folding(text):
        tokens = _TOKENIZER.stems(text)
        assert _TOKENIZER.stems(index_text(text))[: len(tokens)] == tokens


def test_needs_no_folding__every_character() -> None:
    """The characters that are left to FTS5 are those that it brings to the same form."""
    for code in range(0x80, 0x2600):
        text = f"xa{chr(code)}ya {chr(code)}"
        if needs_no_folding(text):
            assert _TOKENIZER.stems(text) == _TOKENIZER.stems(index_text(text)), hex(code)


def test_is_paired__scripts() -> None:
    """Scripts without spaces are paired, others are not."""
    assert all(is_paired(token) for token in ("豆腐", "ガ", "국수", "ไทย", "ລາວ", "ខ្មែ", "မြန်"))
    assert not any(is_paired(token) for token in ("abc", "हिन्दी", "١٢", "๑๒", "か1"))
