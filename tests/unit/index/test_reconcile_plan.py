"""The plan of a run: what is looked at, what is gone, and when dropping is refused."""

import pytest

from local_vector_search_mcp.index.reconcile_plan import (
    RACY_NS,
    PackedPaths,
    may_drop,
    needs_recheck,
    plan,
    tree_signature,
)
from local_vector_search_mcp.index.state import FileState

A: FileState = (10, 1, 2, 3)
B: FileState = (10, 1, 2, 4)
HOUR = 3_600 * 10**9


def check(
    files: dict[str, FileState],
    indexed: dict[str, FileState],
    look_at: list[str],
    gone: list[str],
    *,
    recheck: tuple[str, ...] = (),
    unreadable: tuple[str, ...] = (),
    read_all: bool = False,
) -> None:
    left = dict(files)
    found = plan(left, indexed.items(), recheck=recheck, unreadable=unreadable, read_all=read_all)
    assert (list(found.look_at), list(found.gone)) == (look_at, gone)
    assert left == {path: files[path] for path in look_at}


def test_plan__looks_at_what_differs() -> None:
    """New files and those whose state differs are read, in order; the rest is not."""
    check({"b.md": A, "a.md": A, "c.md": B}, {"c.md": A, "b.md": A}, ["a.md", "c.md"], [])
    check({"a.md": A}, {"a.md": A}, [], [])
    check({}, {}, [], [])


@pytest.mark.parametrize("place", range(4))
def test_plan__any_part_of_the_state_counts(place: int) -> None:
    """Size, both times and inode are compared."""
    other = tuple(value + (number == place) for number, value in enumerate(A))
    check({"a.md": A}, {"a.md": other}, ["a.md"], [])  # type: ignore[dict-item]


def test_plan__reads_again_what_is_doubtful_or_asked_for() -> None:
    """Files changed a moment before their reading are read again; scope all reads every file."""
    check({"a.md": A, "b.md": A}, {"a.md": A, "b.md": A}, ["b.md"], [], recheck=("b.md",))
    check({"a.md": A, "b.md": A}, {"a.md": A, "b.md": A}, ["a.md", "b.md"], [], read_all=True)


def test_plan__what_was_not_seen_is_not_gone() -> None:
    """Documents in folders that could not be read stay; their neighbours go."""
    indexed = {"x/a.md": A, "x/y/b.md": A, "xy/c.md": A, "d.md": A}
    check({}, indexed, [], ["d.md", "x/a.md", "x/y/b.md", "xy/c.md"])
    check({}, indexed, [], ["d.md", "xy/c.md"], unreadable=("x",))
    check({}, indexed, [], ["d.md", "x/a.md", "xy/c.md"], unreadable=("x/y",))
    check({}, indexed, [], [], unreadable=("",))


@pytest.mark.parametrize(
    ("dropped", "indexed", "found", "asked", "allowed"),
    [
        (0, 0, 0, False, True),
        (49, 49, 0, False, True),  # A small index may be emptied.
        (25, 50, 25, False, True),  # Half may go.
        (26, 50, 24, False, False),
        (5_001, 10_000, 4_999, False, False),
        (9_999, 10_000, 1, True, True),  # Somebody asked.
        (10, 10, 0, True, False),  # Nothing at all was found: the drive is not there.
    ],
)
def test_may_drop__guards_large_indexes(dropped: int, indexed: int, found: int, asked: bool, allowed: bool) -> None:
    """A run that nobody asked for drops at most half; one that was asked for, anything but everything."""
    assert may_drop(dropped=dropped, indexed=indexed, found=found, asked=asked) is allowed


@pytest.mark.parametrize(
    ("mtime_ns", "ctime_ns", "doubtful"),
    [
        (0, 0, False),
        (HOUR - RACY_NS, 0, True),
        (HOUR - RACY_NS - 1, 0, False),
        (0, HOUR - 1, True),
        (HOUR + RACY_NS, 0, True),
        (HOUR * 2, 0, False),
    ],
)
def test_needs_recheck__within_two_seconds(mtime_ns: int, ctime_ns: int, doubtful: bool) -> None:
    """Either time within two seconds of the reading makes a file doubtful."""
    assert needs_recheck((1, mtime_ns, ctime_ns, 1), read_at_ns=HOUR) is doubtful


def test_tree_signature__tells_trees_apart() -> None:
    """The same files give the same signature, whoever holds the values; any difference gives another."""
    name = "".join(["a", ".md"])
    one = tree_signature({name: A, "b.md": B})
    assert one == tree_signature({"a.md": (10, 1, 2, 3), "b.md": (10, 1, 2, 4)})
    assert one != tree_signature({"a.md": A, "b.md": A})
    assert one != tree_signature({"a.md": A})
    many = {f"{number}.md": A for number in range(5000)}
    assert tree_signature(many) == tree_signature(dict(many))
    for other in ("0.md", "2500.md", "4999.md"):
        assert tree_signature(many) != tree_signature({**many, other: B})


@pytest.mark.parametrize("paths", [[], [""], ["a.md"], ["a.md", "", "b/ü 文.md", "c.md"], ["", ""], ["\udcff.md", "a"]])
def test_packed_paths__hold_what_they_were_given(paths: list[str]) -> None:
    """All paths come back in order, as often as they are asked for."""
    packed = PackedPaths(paths)
    assert (len(packed), list(packed), list(packed)) == (len(paths), paths, paths)
