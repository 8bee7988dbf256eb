"""Conditions on front matter."""

from typing import Any

import pytest

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.search.conditions import all_hold, parse_where

_NOTE: dict[str, Any] = {
    "status": "draft",
    "priority": 3,
    "ratio": 2.0,
    "done": False,
    "empty": None,
    "date": "2026-01-31",
    "tags": ["home", "area/health"],
    "numbers": [1, 2, True],
    "author": {"name": "Ada", "born": {"year": 1815}},
    "people": [{"name": "Ada"}, {"name": "Bob"}],
    "dotted.key": "x",
    "a.b": {"c": 1},
    "nested": [[{"deep": "x"}], 1],
}


def check(where: dict[str, Any], expected: bool) -> None:
    """Whether the note satisfies the conditions."""
    assert all_hold(parse_where(where), _NOTE) is expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, True),
        ({"status": "draft"}, True),
        ({"status": "Draft"}, False),
        ({"status": {"$eq": "draft"}}, True),
        ({"status": {"$ne": "draft"}}, False),
        ({"status": {"$ne": "done"}}, True),
        ({"status": {"$in": ["done", "draft"]}}, True),
        ({"status": {"$nin": ["done"]}}, True),
        ({"status": {"$nin": ["draft"]}}, False),
        ({"status": "draft", "priority": 4}, False),
        ({"priority": 3}, True),
        ({"priority": 3.0}, True),
        ({"ratio": 2}, True),
        ({"priority": "3"}, False),
        ({"priority": {"$ne": "3"}}, True),
        ({"priority": {"$gt": 2}}, True),
        ({"priority": {"$gt": 3}}, False),
        ({"priority": {"$gte": 3}}, True),
        ({"priority": {"$lt": 4, "$gt": 1}}, True),
        ({"priority": {"$lte": 2}}, False),
        ({"priority": {"$gt": "2"}}, False),
        ({"status": {"$gt": 1}}, False),
        ({"date": {"$gte": "2026-01-01"}}, True),
        ({"date": {"$lt": "2026-01-31T00:00:00Z"}}, True),
        ({"date": {"$gt": 20260101}}, False),
        ({"done": False}, True),
        ({"done": 0}, False),
        ({"done": {"$ne": 0}}, True),
        ({"done": {"$lte": 0}}, False),
        ({"empty": None}, True),
        ({"empty": {"$exists": True}}, True),
        ({"empty": {"$ne": None}}, False),
        ({"tags": "home"}, True),
        ({"tags": "work"}, False),
        ({"tags": ["home", "area/health"]}, True),
        ({"tags": {"$in": ["work", "home"]}}, True),
        ({"tags": {"$nin": ["work"]}}, True),
        ({"tags": {"$ne": "home"}}, False),
        ({"tags": {"$contains": "home"}}, True),
        ({"tags": {"$contains": "area"}}, False),
        ({"status": {"$contains": "raf"}}, True),
        ({"status": {"$contains": 1}}, False),
        ({"priority": {"$contains": 3}}, False),
        ({"numbers": 1}, True),
        ({"numbers": {"$contains": True}}, True),
        ({"numbers": {"$gt": 0}}, False),
        ({"author.name": "Ada"}, True),
        ({"author.born.year": {"$lt": 1900}}, True),
        ({"author.name.x": "Ada"}, False),
        ({"people.name": "Bob"}, True),
        ({"people.name": {"$ne": "Bob"}}, False),
        ({"dotted.key": "x"}, True),
        ({"a.b.c": 1}, True),
        ({"author.born.year": 1815}, True),
        ({"author.": "Ada"}, False),
        ({".author": "Ada"}, False),
        ({"." * 1_000_000: 1}, False),
        ({"author" + ".x" * 500_000: 1}, False),
        ({"missing": "x"}, False),
        ({"missing": None}, False),
        ({"missing": {"$ne": "x"}}, True),
        ({"missing": {"$nin": ["x"]}}, True),
        ({"missing": {"$exists": False}}, True),
        ({"missing": {"$exists": True}}, False),
        ({"missing": {"$gt": 0}}, False),
        ({"missing": {"$in": [None]}}, False),
        ({"missing": {"$contains": "x"}}, False),
        ({"author.missing": {"$exists": False}}, True),
        ({"people.x": {"$exists": False}}, True),
        ({"numbers.x": {"$exists": True}}, False),
        ({"status.x": {"$exists": False}}, True),
        ({"nested": 2}, False),
        ({"nested.deep": "x"}, True),
    ],
)
def test_conditions__table(where: dict[str, Any], expected: bool) -> None:
    """Each operator, on each type, and on keys that are not there."""
    check(where, expected)


@pytest.mark.parametrize(
    "where",
    [
        {"": "x"},
        {"status": {}},
        {"status": {"$regex": "x"}},
        {"status": {"eq": "x"}},
        {"status": {"$eq": "x", "y": 1}},
        {"status": {"$in": "draft"}},
        {"status": {"$nin": {"a": 1}}},
        {"status": {"$exists": "yes"}},
        {"status": {"$exists": 1}},
        {"status": {"$gt": None}},
        {"status": {"$gt": True}},
        {"status": {"$lte": ["a"]}},
        {"status": {"$eq": {"a": 1}}},
        {"status": {"$not": {"$eq": 1}}},
        {"$or": [{"status": "draft"}, {"status": "final"}]},
        {"$eq": "x"},
        {f"k{number}": 1 for number in range(101)},
    ],
)
def test_conditions__refused(where: dict[str, Any]) -> None:
    """Unknown operators and operands that cannot be compared are refused."""
    with pytest.raises(InvalidArgument):
        parse_where(where)
