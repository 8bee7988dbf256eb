"""Debouncer: how long changes are held back, and what comes together."""

import pytest

from local_vector_search_mcp.workspace.changes_seen import Debouncer


def feed(debouncer: Debouncer, *changes: tuple[float, str, bool]) -> Debouncer:
    for now, path, folder in changes:
        debouncer.add(path, folder=folder, now=now, wall=1000 + now)
    return debouncer


@pytest.mark.parametrize(
    ("times", "now", "due"),
    [
        ([], 5.0, None),
        ([0.0], 0.0, 0.25),
        ([0.0], 0.1, 0.15),
        ([0.0], 0.25, 0.0),
        ([0.0, 0.2], 0.25, 0.2),
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8], 1.9, 0.1),
        ([0.0, 1.9], 2.0, 0.0),
        ([0.0], 99.0, 0.0),
    ],
)
def test_due_in(times: list[float], now: float, due: float | None) -> None:
    """A quarter of a second of quiet, and never more than two seconds."""
    found = feed(Debouncer(), *((at, "a.md", False) for at in times)).due_in(now)
    assert found is due if due is None or found is None else found == pytest.approx(due)


def test_take__gathers_and_empties() -> None:
    """Paths come once, with the time of the first; the next batch begins anew."""
    debouncer = feed(Debouncer(), (1.0, "a.md", False), (1.1, "b.md", False), (1.2, "a.md", False))
    seen = debouncer.take()
    assert (seen.paths, seen.folders, seen.first_at) == (frozenset({"a.md", "b.md"}), frozenset(), 1001.0)
    assert not debouncer.pending
    assert feed(debouncer, (9.0, "c.md", False)).take().first_at == 1009.0


def test_take__folders_hold_their_files() -> None:
    """A file in a folder that is looked at whole need not be named."""
    seen = feed(
        Debouncer(),
        (0, "n", True),
        (0, "n/a.md", False),
        (0, "n/d/b.md", False),
        (0, "nn/c.md", False),
        (0, "n.md", False),
    ).take()
    assert (seen.paths, seen.folders) == (frozenset({"nn/c.md", "n.md"}), frozenset({"n"}))
    assert not seen.everything


def test_take__everything() -> None:
    """The root holds all."""
    seen = feed(Debouncer(), (0, "a.md", False), (0, "n", True), (0, "", True)).take()
    assert (seen.paths, seen.folders, seen.everything) == (frozenset(), frozenset({""}), True)


def test_add__thousands_become_one_walk() -> None:
    """So many files are not held one by one."""
    seen = feed(Debouncer(), *((0.0, f"{number}.md", False) for number in range(20_000))).take()
    assert seen.everything
    assert len(seen.paths) < 5_001
