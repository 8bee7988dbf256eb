"""Which share of a query a model of Latin words can read."""

import pytest

from local_vector_search_mcp.search.query import latin_share


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 1.0),
        ("2026 ~ 100 %", 1.0),
        ("plain words", 1.0),
        ("Änderung rückgängig naïve", 1.0),
        ("ｗｉｄｅ", 1.0),
        ("中文检索", 0.0),
        ("поиск", 0.0),
        ("한국어 検索", 0.0),
        ("API 接口", 0.6),
        ("ab 中文", 0.5),
    ],
)
def test_latin_share__counts_letters_alone(text: str, share: float) -> None:
    """Digits and signs have no say, accents and full width make no difference."""
    assert latin_share(text) == pytest.approx(share)
