"""Reciprocal rank fusion, and places shared out among documents."""

from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.search.fusion import fuse, spread


def test_fuse__worked_example() -> None:
    """Ranks count from 1, and each ranking has its weight."""
    scores = fuse([(["a", "b"], 1.0), (["b", "c"], 0.5)], k=60)
    assert scores == {"a": 1 / 61, "b": 1 / 62 + 0.5 / 61, "c": 0.5 / 62}


def test_fuse__both_beat_one() -> None:
    """What both rankings hold goes before what one of them holds at the same rank."""
    scores = fuse([(["x", "both"], 1.0), (["y", "both"], 1.0)], k=60)
    assert max(scores, key=lambda key: scores[key]) == "both"


@pytest.mark.parametrize(
    ("items", "share", "places", "expected", "full"),
    [
        ("a1 a2 a3 a4 b1 c1", 3, 5, "a1 a2 a3 b1 c1", True),
        ("a1 a2 a3 a4 b1", 3, 5, "a1 a2 a3 b1 a4", False),
        ("a1 a2 a3 a4 a5", 3, 4, "a1 a2 a3 a4", False),
        ("a1 a2 b1 a3", 1, 3, "a1 b1 a2", False),
        ("a1 a2 a3 a4", None, 3, "a1 a2 a3", True),
        ("a1", 3, 5, "a1", False),
        ("", 3, 5, "", False),
    ],
)
def test_spread__table(items: str, share: int | None, places: int, expected: str, full: bool) -> None:
    """No document takes more than its share while others can fill the places; the cap never shortens an answer."""
    found = spread(items.split(), group_of=lambda one: one[0], most_per_group=share, places=places)
    assert found == (expected.split(), full)


def test_spread__reads_no_further() -> None:
    """Items after the last place are not looked at."""
    endless = chain(["a", "b"], repeat("c"))
    assert spread(endless, group_of=lambda one: one, most_per_group=3, places=4)[0] == ["a", "b", "c", "c"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers())), st.integers(1, 4), st.integers(1, 10))
def test_spread__never_shorter(items: list[tuple[str, int]], share: int, places: int) -> None:
    """As many items come back as there are places or items."""
    unique = list(dict.fromkeys(items))
    found, _ = spread(unique, group_of=lambda one: one[0], most_per_group=share, places=places)
    assert len(found) == min(places, len(unique))
    assert len(set(found)) == len(found)
