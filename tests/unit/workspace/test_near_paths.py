"""Near paths: what may have been meant, nearest first."""

import time

import pytest

from local_vector_search_mcp.workspace.near_paths import near_paths

KNOWN = [
    "README.md",
    "notes/plan.md",
    "notes/planning.md",
    "archive/plan.md",
    "docs/guide/setup.md",
    "docs/guide/start.md",
    "images/plan.png",
    "x.md",
]


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("readme.md", "README.md"),
        ("Notes/Plan.md", "notes/plan.md"),
        ("plan.md", "notes/plan.md"),
        ("notes/plam.md", "notes/plan.md"),
        ("notes/plan", "notes/plan.md"),
        ("guide/setup.md", "docs/guide/setup.md"),
        ("docs/guide/setup.markdown", "docs/guide/setup.md"),
        ("docs/guid/start.md", "docs/guide/start.md"),
    ],
)
def test_near_paths__nearest_first(wanted: str, first: str) -> None:
    """Case, place, extension and slips of the finger are seen through."""
    found = near_paths(wanted, KNOWN)
    assert found[0] == first
    assert len(found) <= 3
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("wanted", ["zzz/qqq.txt", "completely-different", "0"])
def test_near_paths__nothing_near(wanted: str) -> None:
    """Nothing is suggested where nothing is near."""
    assert near_paths(wanted, KNOWN) == ()


def test_near_paths__large_trees() -> None:
    """A wrong path in a tree of many thousand files costs well under a second or so."""
    known = [f"section-{number % 97}/chapter-{number}.md" for number in range(20_000)]
    began = time.process_time()
    assert near_paths("section-5/chapter-5x.md", known)
    assert time.process_time() - began < 5
