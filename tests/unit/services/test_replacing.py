"""kb_replace_text: a text or expression in many documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.writing import Writing

from local_vector_search_mcp.errors import InvalidArgument, KnowledgeBaseError, StructureChanged, TimedOut, TooLarge


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    root = tmp_path / "root"
    root.mkdir()
    place = Writing(root, tmp_path / "history.db")
    place.write("a.md", "# Old title\n\nold text, old\n\n```\nold code\n```\n")
    place.write("notes/b.md", "- old\r\n- new\r\n")
    place.write("notes/c.md", "nothing\n")
    place.write("latin.md", b"old caf\xe9\n")
    yield place
    place.close()


CHANGES: list[tuple[dict[str, Any], dict[str, str]]] = [
    (
        {"query": "old", "replacement": "X"},
        {"a.md": "# Old title\n\nX text, X\n\n```\nold code\n```\n", "notes/b.md": "- X\r\n- new\r\n"},
    ),
    ({"query": "old", "replacement": "X", "path_prefix": "notes"}, {"notes/b.md": "- X\r\n- new\r\n"}),
    ({"query": "old", "replacement": "X", "path_prefix": "notes/b.md"}, {"notes/b.md": "- X\r\n- new\r\n"}),
    ({"query": "old", "replacement": "X", "include_glob": ["notes/*.md", "none"]}, {"notes/b.md": "- X\r\n- new\r\n"}),
    (
        {"query": "old", "replacement": "X", "kinds": ["code"]},
        {"a.md": "# Old title\n\nold text, old\n\n```\nX code\n```\n"},
    ),
    (
        {"query": "(?i)old", "replacement": "X", "regex": True, "kinds": ["heading"]},
        {"a.md": "# X title\n\nold text, old\n\n```\nold code\n```\n"},
    ),
    (
        {"query": r"(\w+) text, (\w+)", "replacement": r"\2-\1\n!", "regex": True},
        {"a.md": "# Old title\n\nold-old\n!\n\n```\nold code\n```\n"},
    ),
    (
        {"query": "o(l)d text", "replacement": r"[\g<0>\\0]", "regex": True},
        {"a.md": "# Old title\n\n[old text\\0], old\n\n```\nold code\n```\n"},
    ),
    ({"query": r"^- (\w+)$", "replacement": r"- \1é", "regex": True}, {"notes/b.md": "- oldé\r\n- newé\r\n"}),
    ({"query": "x*", "replacement": "Y", "regex": True, "path_prefix": "notes/b.md"}, {}),
    ({"query": "absent", "replacement": "Y"}, {}),
]


@pytest.mark.parametrize(("arguments", "after"), CHANGES)
def test_replace__changes(writing: Writing, arguments: dict[str, Any], after: dict[str, str]) -> None:
    """Only matches in elements of the wanted kinds change, in the documents that are chosen."""
    before = writing.files()
    dry = writing.replacing.replace(**arguments)
    assert not dry.applied
    assert writing.files() == before
    result = writing.replacing.replace(**arguments, dry_run=False, plan_hash=dry.plan_hash)
    changed = {path: data.decode() for path, data in writing.files().items() if before[path] != data}
    assert changed == after
    assert [file.path for file in result.files] == [file.path for file in dry.files] == sorted(after)
    assert result.total == dry.total
    assert [file.source_hash for file in result.files] == [writing.source_hash(path) for path in sorted(after)]


def test_replace__undecodable_documents_are_named(writing: Writing) -> None:
    """A document that is not UTF-8 is passed over with a warning; the others are done."""
    result = writing.replacing.replace(query="old", replacement="X")
    assert "latin.md" in result.warnings[0]
    assert result.total == 3


def test_replace__says_where_nothing_matches(writing: Writing) -> None:
    """No match at all is told apart from text that reads so already."""
    assert "Nothing matches" in writing.replacing.replace(query="absent", replacement="X").warnings[-1]
    same = writing.replacing.replace(query="old", replacement="old", dry_run=False)
    assert not any("Nothing matches" in warning for warning in same.warnings)
    assert same.total == 3


REFUSALS: list[tuple[dict[str, Any], type[KnowledgeBaseError], str]] = [
    ({"query": "", "replacement": "x"}, InvalidArgument, "empty"),
    ({"query": "old", "replacement": "x", "kinds": ["chapter"]}, InvalidArgument, "chapter"),
    ({"query": "(", "replacement": "x", "regex": True}, InvalidArgument, "malformed"),
    ({"query": "o(l)d", "replacement": r"\2", "regex": True}, InvalidArgument, "Groups"),
    ({"query": "o(l)d", "replacement": r"[\0]", "regex": True}, InvalidArgument, r"\g<0>"),
    ({"query": "((a{100}){100}){100}", "replacement": "x", "regex": True}, InvalidArgument, "counts"),
    ({"query": "(" * 1000, "replacement": "x", "regex": True}, InvalidArgument, "malformed"),
    ({"query": "x" * 2001, "replacement": "", "regex": True}, InvalidArgument, "2000"),
    ({"query": "old", "replacement": "x", "include_glob": "["}, InvalidArgument, "["),
    ({"query": "old", "replacement": "x", "max_changes": 0}, InvalidArgument, "maxChanges"),
    ({"query": "old", "replacement": "x", "max_changes": 2}, TooLarge, "3 places"),
    ({"query": "old", "replacement": "x\n\ny"}, StructureChanged, "a.md"),
    ({"query": "# ", "replacement": "## "}, StructureChanged, "level 1"),
    ({"query": "- ", "replacement": ""}, StructureChanged, "notes/b.md"),
]


@pytest.mark.parametrize(("arguments", "error", "word"), REFUSALS)
def test_replace__refusals(
    writing: Writing, arguments: dict[str, Any], error: type[KnowledgeBaseError], word: str
) -> None:
    """All or nothing: what is refused in one document is done in none."""
    before = writing.files()
    with pytest.raises(error) as caught:
        writing.replacing.replace(**arguments, dry_run=False)
    assert word in caught.value.message
    assert writing.files() == before


def test_replace__an_expression_without_end_is_stopped(writing: Writing) -> None:
    """A regular expression has a time limit."""
    writing.write("long.md", "a" * 200 + "!\n")
    with pytest.raises(TimedOut, match="2 s"):
        writing.replacing.replace(query="(a|a|aa)+$", replacement="x", regex=True)


def test_replace__is_one_change(writing: Writing) -> None:
    """Several documents are one change, taken back as one."""
    before = writing.files()
    result = writing.replacing.replace(query="old", replacement="X", dry_run=False)
    assert result.change_id is not None
    assert len(writing.undo.history().changes) == 1
    writing.undo.undo(change_id=result.change_id)
    assert writing.files() == before
