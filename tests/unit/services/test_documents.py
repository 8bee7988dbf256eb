"""kb_create, kb_move and kb_delete: names, links, all or nothing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.writing import Writing

from local_vector_search_mcp.errors import (
    AlreadyExists,
    Conflict,
    InvalidArgument,
    InvalidPath,
    KnowledgeBaseError,
    NotFound,
    UnsupportedFormat,
)
from local_vector_search_mcp.workspace.listing import SelectionRules


def workspace(tmp_path: Path, files: Mapping[str, str | bytes], **rules: Any) -> Writing:
    """A workspace that holds some files."""
    root = tmp_path / "root"
    root.mkdir()
    place = Writing(root, tmp_path / "history.db", rules=SelectionRules(**rules) if rules else None)
    for path, text in files.items():
        place.write(path, text)
    return place


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    place = workspace(tmp_path, {"note.md": "# Note\n", "docs/a.md": "# A\n"})
    yield place
    place.close()


CREATED = [
    ("x.md", "text", "text\n"),
    ("deep/er/x.md", "a\nb\n", "a\nb\n"),
    ("x.md", "a\r\nb", "a\r\nb\r\n"),
    ("x.md", "a\r\nb\n", "a\nb\n"),
    ("x.md", "a\rb", "a\nb\n"),
    ("x.md", "\ufeffa", "a\n"),
    ("x.md", "", ""),
    ("ünï/côde.md", "x", "x\n"),
]


@pytest.mark.parametrize(("path", "markdown", "text"), CREATED)
def test_create__writes_ended_lines(writing: Writing, path: str, markdown: str, text: str) -> None:
    """A new document ends its last line, with the one ending that its text uses, else with a line feed."""
    result = writing.documents.create(path=path, markdown=markdown)
    assert writing.text(path) == text
    assert (result.path, result.source_hash) == (path, writing.source_hash(path))
    assert result.previous_source_hash is None


NEW_NAMES: list[tuple[str, type[KnowledgeBaseError]]] = [
    ("note.md", AlreadyExists),
    ("NOTE.md", AlreadyExists),
    ("DOCS/b.md", AlreadyExists),
    ("note.md/x.md", AlreadyExists),
    ("x.txt", UnsupportedFormat),
    ("../x.md", InvalidPath),
    ("/x.md", InvalidPath),
    (".git/x.md", InvalidPath),
    ("a:b.md", InvalidPath),
    ("CON.md", InvalidPath),
    ("x?.md", InvalidPath),
    ("x.md ", InvalidPath),
    ("node_modules/x.md", NotFound),
]


@pytest.mark.parametrize(("path", "error"), NEW_NAMES)
def test_create__names_that_cannot_be(writing: Writing, path: str, error: type[KnowledgeBaseError]) -> None:
    """A name that is taken, excluded or cannot be held everywhere is refused, and nothing is made."""
    before = writing.files()
    with pytest.raises(error):
        writing.documents.create(path=path, markdown="x")
    assert writing.files() == before


def test_create__without_making_folders(writing: Writing) -> None:
    """A missing folder is refused where folders are not to be made, in a dry run too."""
    for dry_run in (True, False):
        with pytest.raises(NotFound, match="missing"):
            writing.documents.create(path="missing/x.md", markdown="x", create_directories=False, dry_run=dry_run)
    writing.documents.create(path="docs/x.md", markdown="x", create_directories=False)
    assert writing.text("docs/x.md") == "x\n"


def test_create__dry_run(writing: Writing) -> None:
    """A dry run shows the new file and makes nothing."""
    dry = writing.documents.create(path="x/y.md", markdown="x", dry_run=True)
    assert "+x\n" in dry.diffs[0].diff
    assert not (writing.root / "x").exists()
    assert writing.documents.create(path="x/y.md", markdown="x", plan_hash=dry.plan_hash).applied


def test_delete__needs_the_hash_and_reports_links(tmp_path: Path) -> None:
    """A stale hash is refused; the links that break are listed with their elements."""
    writing = workspace(
        tmp_path,
        {
            "gone.md": "---\naliases: [Old name]\n---\n\n# Gone\n\n[self](#gone) [[gone]]\n",
            "a.md": "see [g](gone.md#gone) and [[Old name]]\n\n[other](b.md)\n",
            "sub/b.md": "- [[gone|shown]]\n\n`[g](../gone.md)`\n\n[up](../gone.md)\n",
        },
    )
    with pytest.raises(Conflict) as caught:
        writing.documents.delete(path="gone.md", expected_source_hash="0" * 16)
    assert caught.value.details["reason"] == "source_changed"
    dry = writing.documents.delete(path="gone.md", expected_source_hash=writing.source_hash("gone.md"), dry_run=True)
    assert (dry.applied, dry.deleted, "gone.md" in writing.files()) == (False, False, True)
    result = writing.documents.delete(path="gone.md", expected_source_hash=writing.source_hash("gone.md"))
    assert (result.applied, result.deleted, result.source_hash) == (True, True, None)
    assert "gone.md" not in writing.files()
    assert [(link.path, link.target, link.pointer.split("~")[0]) for link in result.broken_links] == [
        ("a.md", "gone.md#gone", "p1"),
        ("a.md", "Old name", "p1"),
        ("sub/b.md", "gone", "li1"),
        ("sub/b.md", "../gone.md", "p2"),
    ]
    writing.close()


def test_delete__lists_at_most_fifty_links(tmp_path: Path) -> None:
    """A document that everything links to has a short answer."""
    writing = workspace(tmp_path, {"hub.md": "x\n", **{f"n{number:02}.md": "[[hub]]\n" for number in range(60)}})
    result = writing.documents.delete(path="hub.md", expected_source_hash=writing.source_hash("hub.md"))
    assert len(result.broken_links) == 50
    writing.close()


# What stands in a document before and after `old/note.md` moves to `new/place/renamed.md`.
INCOMING = [
    ("a.md", "[x](old/note.md)", "[x](new/place/renamed.md)"),
    ("a.md", '[x](./old/note.md#head "t")', '[x](./new/place/renamed.md#head "t")'),
    ("a.md", "[x](/old/note.md?q#h)", "[x](/new/place/renamed.md?q#h)"),
    ("a.md", "[x](<old/note.md>)", "[x](<new/place/renamed.md>)"),
    ("a.md", "![x](old/note.md)", "![x](new/place/renamed.md)"),
    ("a.md", "[x][r]\n\n[r]: old/note.md 'title'", "[x][r]\n\n[r]: new/place/renamed.md 'title'"),
    ("a.md", '<a href="old/note.md">x</a>', '<a href="new/place/renamed.md">x</a>'),
    ("a.md", "[[note]] and [[note#h|alias]]", "[[renamed]] and [[renamed#h|alias]]"),
    ("a.md", "![[note]]", "![[renamed]]"),
    ("a.md", "[[old/note]]", "[[new/place/renamed]]"),
    ("a.md", "[[note.md]]", "[[renamed.md]]"),
    ("old/b.md", "[[./note]]", "[[../new/place/renamed]]"),
    ("new/place/b.md", "[[../../old/note]]", "[[./renamed]]"),
    ("a.md", "[[/old/note#h]]", "[[/new/place/renamed#h]]"),
    (
        "a.md",
        "| [[note\\|n]] | [x](old/note.md) |\n|---|---|",
        "| [[renamed\\|n]] | [x](new/place/renamed.md) |\n|---|---|",
    ),
    ("old/b.md", "[x](note.md)", "[x](../new/place/renamed.md)"),
    ("old/b.md", "[x](old/note.md)", "[x](new/place/renamed.md)"),
    ("new/b.md", "[x](../old/note.md)", "[x](place/renamed.md)"),
    ("new/place/b.md", "[x](../../old/note%2Emd)", "[x](renamed.md)"),
    (
        "a.md",
        "> - [x](old/note.md)\n\n[^1]: [x](old/note.md)",
        "> - [x](new/place/renamed.md)\n\n[^1]: [x](new/place/renamed.md)",
    ),
    ("a.md", "[[Alias]]", "[[Alias]]"),
    ("a.md", "`[x](old/note.md)`", "`[x](old/note.md)`"),
    ("a.md", "[x](old/other.md) [y](note.md) [[other]]", "[x](old/other.md) [y](note.md) [[other]]"),
    ("a.md", "[x](https://example.org/old/note.md)", "[x](https://example.org/old/note.md)"),
    ("a.md", "\\[x](old/note.md)", "\\[x](old/note.md)"),
]


@pytest.mark.parametrize(("path", "before", "after"), INCOMING)
def test_move__links_to_the_moved_document(tmp_path: Path, path: str, before: str, after: str) -> None:
    """Exactly the destinations that led to the document are rewritten, whatever form they have."""
    writing = workspace(
        tmp_path,
        {"old/note.md": "---\naliases: Alias\n---\n\n# Head\n", "old/other.md": "x\n", path: f"{before}\r\n"},
    )
    result = writing.documents.move(path="old/note.md", target_path="new/place/renamed.md")
    assert writing.text(path) == f"{after}\r\n"
    assert "old/note.md" not in writing.files()
    assert writing.text("new/place/renamed.md") == "---\naliases: Alias\n---\n\n# Head\n"
    assert [each.path for each in result.updated_links] == ([path] if before != after else [])
    assert (result.previous_path, result.path) == ("old/note.md", "new/place/renamed.md")
    assert result.change_id is not None
    writing.undo.undo(change_id=result.change_id)
    assert writing.text(path) == f"{before}\r\n"
    assert "new/place/renamed.md" not in writing.files()
    writing.close()


# What stands in `docs/note.md` before and after it moves to `note.md`.
OUTGOING = [
    ("[x](other.md#h)", "[x](docs/other.md#h)"),
    ("[x](./other.md)", "[x](./docs/other.md)"),
    ("[x](../top.md)", "[x](top.md)"),
    ("![x](img/p%20q.png)", "![x](docs/img/p%20q.png)"),
    ("![x](<img/p q.png>)", "![x](<docs/img/p q.png>)"),
    ('<img src="img/p q.png">', '<img src="docs/img/p q.png">'),
    ("[x](docs/other.md)", "[x](docs/other.md)"),
    ("[x](/docs/other.md)", "[x](/docs/other.md)"),
    ("[[other]] [[top]] ![[p q.png]]", "[[other]] [[top]] ![[p q.png]]"),
    ("[x](#here) [y](missing.md)", "[x](#here) [y](missing.md)"),
    ("[self](note.md)", "[self](note.md)"),
    ("[x](img/)", "[x](docs/img/)"),
]


@pytest.mark.parametrize(("before", "after"), OUTGOING)
def test_move__links_in_the_moved_document(tmp_path: Path, before: str, after: str) -> None:
    """Relative links lead where they led; what needs no change has none."""
    writing = workspace(
        tmp_path, {"docs/note.md": f"{before}\n", "docs/other.md": "# h\n", "top.md": "x\n", "docs/img/p q.png": b"x"}
    )
    result = writing.documents.move(path="docs/note.md", target_path="note.md")
    assert writing.text("note.md") == f"{after}\n"
    assert result.source_hash == writing.source_hash("note.md")
    writing.close()


# What stands in `note.md` at the root before and after it moves to `docs/deep/note.md`.
OUTGOING_FROM_ROOT = [
    ("[x](top.md#h)", "[x](../../top.md#h)"),
    ("[x](./top.md)", "[x](../../top.md)"),
    ("![x](img/p.png)", "![x](../../img/p.png)"),
    ("[x][r]\n\n[r]: img/p.png", "[x][r]\n\n[r]: ../../img/p.png"),
    ('<img src="img/p.png">', '<img src="../../img/p.png">'),
    ("[x](docs/other.md)", "[x](../other.md)"),
    ("[x](/top.md)", "[x](/top.md)"),
    ("[[top]] ![[img/p.png]]", "[[top]] ![[img/p.png]]"),
    ("[self](note.md)", "[self](note.md)"),
]


@pytest.mark.parametrize(("before", "after"), OUTGOING_FROM_ROOT)
def test_move__links_in_a_document_that_leaves_the_root(tmp_path: Path, before: str, after: str) -> None:
    """A relative link stays relative to its document, although its path would be found from the root as well."""
    writing = workspace(
        tmp_path, {"note.md": f"{before}\n", "docs/other.md": "# h\n", "top.md": "x\n", "img/p.png": b"x"}
    )
    writing.documents.move(path="note.md", target_path="docs/deep/note.md")
    assert writing.text("docs/deep/note.md") == f"{after}\n"
    writing.close()


def test_move__a_neighbour_that_goes_to_the_root(tmp_path: Path) -> None:
    """A link beside which its target no longer stands is rewritten, although the path would be found from the root."""
    writing = workspace(tmp_path, {"docs/x.md": "x\n", "docs/a.md": "[x](x.md) [[x]] <a href='x.md'>y</a>\n"})
    result = writing.documents.move(path="docs/x.md", target_path="x.md")
    assert writing.text("docs/a.md") == "[x](../x.md) [[x]] <a href='../x.md'>y</a>\n"
    assert [(each.path, each.count) for each in result.updated_links] == [("docs/a.md", 2)]
    writing.close()


def test_move__awkward_names_are_escaped_where_they_stand(tmp_path: Path) -> None:
    """A new name with blanks, brackets and marks is written so that every syntax leads there."""
    text = "[a](x.md) [b](<x.md>) [[x]]\n\n[r]: x.md\n\n<a href='x.md'>c</a>\n"
    writing = workspace(tmp_path, {"x.md": "x\n", "a.md": text})
    writing.documents.move(path="x.md", target_path="it's (50%) & more.md")
    assert writing.text("a.md") == (
        "[a](it's%20%2850%25%29%20%26%20more.md) [b](<it's (50%25) %26 more.md>) [[it's (50%) & more]]\n\n"
        "[r]: it's%20%2850%25%29%20%26%20more.md\n\n<a href='it&#x27;s (50%25) &amp; more.md'>c</a>\n"
    )
    writing.documents.move(path="it's (50%) & more.md", target_path="x.md")
    assert writing.files()["x.md"] == b"x\n"
    assert "[[x]]" in writing.text("a.md")
    writing.close()


def test_move__a_wikilink_that_cannot_hold_the_name_is_named(tmp_path: Path) -> None:
    """Where the syntax cannot hold the new name, the link stays and the answer says so."""
    writing = workspace(tmp_path, {"x.md": "x\n", "a.md": "[[x]] [y](x.md)\n"})
    result = writing.documents.move(path="x.md", target_path="x [1].md")
    assert writing.text("a.md") == "[[x]] [y](x%20[1].md)\n"
    assert "[[" not in result.warnings[0]
    assert "a.md" in result.warnings[0]
    writing.close()


def test_move__a_name_that_is_taken_elsewhere_gets_a_longer_wikilink(tmp_path: Path) -> None:
    """A wikilink by name alone grows until it leads to one document again."""
    writing = workspace(tmp_path, {"x.md": "x\n", "one/plan.md": "1\n", "a.md": "[[x]]\n"})
    writing.documents.move(path="x.md", target_path="two/plan.md")
    assert writing.text("a.md") == "[[two/plan]]\n"
    writing.close()


def test_move__without_links(writing: Writing) -> None:
    """On request nothing but the name changes."""
    writing.write("b.md", "[x](note.md)\n")
    result = writing.documents.move(path="note.md", target_path="sub/note.md", update_links=False)
    assert writing.text("b.md") == "[x](note.md)\n"
    assert result.updated_links == ()
    assert writing.text("sub/note.md") == "# Note\n"


def test_move__case_only(writing: Writing) -> None:
    """A change of case alone is a rename of the file itself."""
    writing.write("b.md", "[x](note.md) [[note]]\n")
    result = writing.documents.move(path="note.md", target_path="Note.md")
    assert "Note.md" in writing.files()
    assert "note.md" not in writing.files()
    assert writing.text("b.md") == "[x](Note.md) [[note]]\n"
    assert result.change_id is not None
    writing.undo.undo(change_id=result.change_id)
    assert "note.md" in writing.files()


MOVES: list[tuple[dict[str, Any], type[KnowledgeBaseError]]] = [
    ({"path": "note.md", "target_path": "docs/a.md"}, AlreadyExists),
    ({"path": "note.md", "target_path": "docs/A.md"}, AlreadyExists),
    ({"path": "note.md", "target_path": "note.md"}, InvalidArgument),
    ({"path": "note.md", "target_path": "note.txt"}, UnsupportedFormat),
    ({"path": "note.md", "target_path": "node_modules/x.md"}, NotFound),
    ({"path": "note.md", "target_path": "../x.md"}, InvalidPath),
    ({"path": "absent.md", "target_path": "x.md"}, NotFound),
    ({"path": "note.md", "target_path": "x.md", "expected_source_hash": "0" * 16}, Conflict),
    ({"path": "docs/", "target_path": "docs/inner"}, InvalidPath),
    ({"path": "docs/", "target_path": "note.md"}, AlreadyExists),
    ({"path": "absent/", "target_path": "x"}, NotFound),
    ({"path": "docs/", "target_path": "x", "expected_source_hash": "0" * 16}, InvalidArgument),
]


@pytest.mark.parametrize(
    ("path", "target", "error", "word"),
    [("note.md", "docs/", InvalidPath, "docs/note.md"), ("docs", "other/", UnsupportedFormat, "docs/.")],
)
def test_move__a_folder_where_a_document_is_wanted(
    writing: Writing, path: str, target: str, error: type[KnowledgeBaseError], word: str
) -> None:
    """The refusal shows the path that was probably meant."""
    with pytest.raises(error) as caught:
        writing.documents.move(path=path, target_path=target)
    assert word in caught.value.message


@pytest.mark.parametrize(("arguments", "error"), MOVES)
def test_move__refusals(writing: Writing, arguments: dict[str, Any], error: type[KnowledgeBaseError]) -> None:
    """A move that cannot be done whole is not begun."""
    before = writing.files()
    with pytest.raises(error):
        writing.documents.move(**arguments)
    assert writing.files() == before


def test_move__a_folder(tmp_path: Path) -> None:
    """All documents and images of a folder move; links within it need no change, those in and out are rewritten."""
    writing = workspace(
        tmp_path,
        {
            "top.md": "[i](docs/index.md) ![p](docs/img/p.png) [f](docs/) [[index]]\n",
            "docs/index.md": "[d](deep/d.md) ![p](img/p.png) [t](../top.md)\n",
            "docs/deep/d.md": "[i](../index.md) [r](docs/index.md)\n",
            "docs/img/p.png": b"png",
            "docs/data.csv": "a,b\n",
        },
    )
    before = writing.files()
    result = writing.documents.move(path="docs/", target_path="manual/en/")
    assert sorted(writing.files()) == [
        "docs/data.csv",
        "manual/en/deep/d.md",
        "manual/en/img/p.png",
        "manual/en/index.md",
        "top.md",
    ]
    assert not (writing.root / "docs" / "deep").exists()
    assert writing.text("top.md") == "[i](manual/en/index.md) ![p](manual/en/img/p.png) [f](manual/en/) [[index]]\n"
    assert writing.text("manual/en/index.md") == "[d](deep/d.md) ![p](img/p.png) [t](../../top.md)\n"
    assert writing.text("manual/en/deep/d.md") == "[i](../index.md) [r](manual/en/index.md)\n"
    assert [(each.previous_path, each.path) for each in result.moved] == [
        ("docs/deep/d.md", "manual/en/deep/d.md"),
        ("docs/img/p.png", "manual/en/img/p.png"),
        ("docs/index.md", "manual/en/index.md"),
    ]
    assert (result.previous_path, result.path) == ("docs/", "manual/en/")
    assert result.change_id is not None
    writing.undo.undo(change_id=result.change_id)
    assert writing.files() == before
    writing.close()


def test_move__a_folder_into_a_taken_place_moves_nothing(tmp_path: Path) -> None:
    """One name that is taken refuses the whole move."""
    writing = workspace(tmp_path, {"docs/a.md": "a\n", "docs/b.md": "b\n", "new/B.md": "taken\n"})
    before = writing.files()
    with pytest.raises(AlreadyExists):
        writing.documents.move(path="docs/", target_path="new/")
    assert writing.files() == before
    writing.close()


def test_move__dry_run_shows_every_file(tmp_path: Path) -> None:
    """The diffs name every touched document, and the plan hash is of all of them."""
    writing = workspace(tmp_path, {"x.md": "x\n", "a.md": "[x](x.md)\n"})
    before = writing.files()
    dry = writing.documents.move(path="x.md", target_path="y.md", dry_run=True)
    assert writing.files() == before
    assert [diff.path for diff in dry.diffs] == ["y.md", "a.md"]
    assert "+[x](y.md)" in dry.diffs[1].diff
    writing.write("a.md", "changed [x](x.md)\n")
    with pytest.raises(Conflict) as caught:
        writing.documents.move(path="x.md", target_path="y.md", plan_hash=dry.plan_hash)
    assert caught.value.details["reason"] == "plan_changed"
    writing.close()


def test_move__documents_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A document that is not UTF-8 does not stop the move of another."""
    writing = workspace(tmp_path, {"x.md": "x\n", "latin.md": b"caf\xe9 [x](x.md)\n"})
    result = writing.documents.move(path="x.md", target_path="y.md")
    assert any("latin.md" in warning for warning in result.warnings)
    writing.close()
