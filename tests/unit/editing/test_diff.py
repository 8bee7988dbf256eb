"""Unified diffs and plan hashes."""

import difflib

import pytest

from local_vector_search_mcp.editing.diff import PlannedFile, plan_hash, unified_diff


def planned(path: str, before: str | None, after: str | None) -> PlannedFile:
    return PlannedFile(path=path, previous_hash=before, new_hash=after)


def test_unified_diff__equals_the_librarys_on_plain_documents() -> None:
    """Setting equal ends aside changes nothing about the diff."""
    before = "".join(f"line {number}\n" for number in range(60))
    after = before.replace("line 20\n", "line twenty\n").replace("line 40\n", "")
    expected = "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/n.md", "b/n.md", n=3))
    assert unified_diff("n.md", before.encode(), after.encode()) == expected


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (None, b"a\n", "--- /dev/null\n+++ b/n.md\n@@ -0,0 +1 @@\n+a\n"),
        (b"a\n", None, "--- a/n.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        (
            b"a",
            b"b",
            "--- a/n.md\n+++ b/n.md\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        ),
        (b"a\r\n", b"b\r\n", "--- a/n.md\n+++ b/n.md\n@@ -1 +1 @@\n-a\r\n+b\r\n"),
        (b"a\n", b"a\n", ""),
    ],
)
def test_unified_diff__edges(before: bytes | None, after: bytes | None, shown: str) -> None:
    """New, deleted and unchanged files, and last lines without an ending."""
    assert unified_diff("n.md", before, after) == shown


def test_unified_diff__a_move_names_both_paths() -> None:
    """A rename without another change still shows."""
    assert unified_diff("b.md", b"x\n", b"x\n", previous_path="a.md") == "--- a/a.md\n+++ b/b.md\n"


def test_unified_diff__a_large_rewrite_stays_quick() -> None:
    """Thousands of different lines are shown without being matched."""
    before = "".join(f"a{number}\n" for number in range(5000)).encode()
    after = "".join(f"b{number}\n" for number in range(5000)).encode()
    shown = unified_diff("n.md", before, after).split("\n")
    assert shown[2] == "@@ -1,5000 +1,5000 @@"
    assert shown.count("-a0") == shown.count("+b4999") == 1


def test_plan_hash__is_about_paths_and_hashes_alone() -> None:
    """The order of the files is of no importance, every path and hash is."""
    first, second = planned("a.md", "1", "2"), planned("b.md", None, "3")
    assert plan_hash([first, second]) == plan_hash([second, first])
    others = [
        [first],
        [first, planned("b.md", "0", "3")],
        [first, planned("b.md", None, None)],
        [first, planned("c.md", None, "3")],
    ]
    hashes = {plan_hash(files) for files in others} | {plan_hash([first, second])}
    assert len(hashes) == len(others) + 1
