"""TextFinder under kb_replace_text: the text is looked for before the lock, and again at what has changed since."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.writing import Writing, act_before_lock, note_reads

from local_vector_search_mcp.editing import text_search
from local_vector_search_mcp.editing.text_search import Query
from local_vector_search_mcp.errors import KnowledgeBaseError, TimedOut, TooLarge
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.text_finding import TextFinder
from local_vector_search_mcp.workspace.locks import WorkspaceLock

TREE = {"a.md": "# One apple\n\nan apple\n", "b/b.md": "two apples, apple pie\n", "c.md": "no fruit\n"}
LITERAL: dict[str, Any] = {"query": "apple", "replacement": "pear"}
PATTERN: dict[str, Any] = {"query": r"(apple)s?", "replacement": r"<\1>", "regex": True}
_LATER_S = 60.0


def workspace(folder: Path, files: Mapping[str, str] = TREE, *, ahead_s: float = _LATER_S) -> Writing:
    """A workspace on whose clock it is a minute later, so that no file was written a moment ago."""
    (folder / "root").mkdir(parents=True)
    writing = Writing(folder / "root", folder / "history.db", wall_clock=lambda: time.time() + ahead_s)
    for path, text in files.items():
        writing.write(path, text)
    return writing


Act = Callable[[Writing], object]
ACTS: dict[str, Act] = {
    "gains a match": lambda writing: writing.write("c.md", "an apple after all\n"),
    "loses its matches": lambda writing: writing.write("a.md", "# One\n"),
    "is changed": lambda writing: writing.write("a.md", "apple apple apple\n"),
    "is removed": lambda writing: (writing.root / "a.md").unlink(),
    "is renamed": lambda writing: (writing.root / "a.md").rename(writing.root / "z.md"),
    "is new": lambda writing: writing.write("d/d.md", "apple\n"),
    "is no text": lambda writing: writing.write("a.md", b"\xffapple"),
    "gains too many": lambda writing: writing.write("c.md", "apple\n" * 20),
}


@pytest.mark.parametrize("ahead_s", [_LATER_S, 0.0])
@pytest.mark.parametrize("arguments", [LITERAL, PATTERN], ids=["literal", "pattern"])
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_replace__what_happens_between_the_looks(
    tmp_path: Path, act: Act, arguments: dict[str, Any], ahead_s: float
) -> None:
    """It ends as if what came before the lock had come before the call, refusals included."""
    after, between = (workspace(tmp_path / name, ahead_s=ahead_s) for name in ("after", "between"))
    act(after)
    act_before_lock(between, act)
    outcomes: list[object] = []
    for writing in (after, between):
        try:
            result = writing.replacing.replace(**arguments, dry_run=False, max_changes=10)
            outcomes.append((result.files, result.total, result.warnings))
        except KnowledgeBaseError as error:
            outcomes.append((error.code, error.message, error.details))
    assert outcomes[1] == outcomes[0]
    assert between.files() == after.files()
    for writing in (after, between):
        writing.close()


def test_replace__fewer_matches_under_the_lock(tmp_path: Path) -> None:
    """Where there were too many matches at first, and are not any more, all that are left are replaced."""
    writing = workspace(tmp_path, {**TREE, "0.md": "apple\n" * 9})
    act_before_lock(writing, lambda writing: writing.write("0.md", "apple\n"))
    assert writing.replacing.replace(**LITERAL, dry_run=False, max_changes=5).total == 5
    assert writing.text("a.md") == "# One pear\n\nan pear\n"
    writing.close()


def test_replace__documents_that_stay_the_same_are_read_without_the_lock(tmp_path: Path) -> None:
    """Every document is read once, while other processes may write."""
    writing = workspace(tmp_path)
    paths: list[str] = []

    def noted(path: RelPath) -> None:
        with WorkspaceLock(writing.root, wait_s=0).hold():
            paths.append(path.value)

    note_reads(writing.workspace, noted)
    writing.replacing.replace(**PATTERN, dry_run=False)
    assert paths == sorted(TREE)
    writing.close()


def test_replace__an_expression_that_takes_too_long_takes_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit is not waited for a second time under the lock."""
    monkeypatch.setattr(text_search, "_TIME_LIMIT_S", 0.0)
    writing = workspace(tmp_path)
    act_before_lock(writing, lambda _: pytest.fail("the lock was taken"))
    with pytest.raises(TimedOut):
        writing.replacing.replace(**PATTERN)
    writing.close()


def test_find__size_of_the_new_text_over_both_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted in documents that are not searched again counts on, and nothing counts twice."""
    monkeypatch.setattr("local_vector_search_mcp.editing.text_matches.MAX_NEW_BYTES", 40)
    writing = workspace(tmp_path, {"a.md": "apple\n" * 3, "b.md": "apple\n"})
    finder = TextFinder(
        writing.workspace,
        Query(text="apple", replacement="0123456789", is_regex=False),
        frozenset({ElementKind.PARAGRAPH}),
        most=10,
        now_ns=writing.mutations.now_ns,
    )

    def total() -> int:
        return finder.find(writing.workspace.scan_documents().documents).total

    assert (total(), total()) == (4, 4)
    writing.write("b.md", "apple apple\n")
    with pytest.raises(TooLarge):
        total()
    writing.close()


def test_find__size_of_what_is_searched_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that was passed over for too many matches, and fits under the lock, counts once."""
    monkeypatch.setattr("local_vector_search_mcp.editing.text_matches.MAX_NEW_BYTES", 40)
    writing = workspace(tmp_path, {"a.md": "apple\n", "b.md": "apple apple apple\n"})
    query = Query(text="apple", replacement="0123456789", is_regex=False)
    finder = TextFinder(
        writing.workspace, query, frozenset({ElementKind.PARAGRAPH}), most=3, now_ns=writing.mutations.now_ns
    )
    first = finder.find(writing.workspace.scan_documents().documents)
    assert (first.total, len(first.found)) == (4, 1)
    writing.write("a.md", "nothing\n")
    second = finder.find(writing.workspace.scan_documents().documents)
    assert (second.total, len(second.found)) == (3, 1)
    writing.close()
