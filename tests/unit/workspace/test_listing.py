"""Selection: which names are documents, and the rule in words that keeps one out."""

import pytest

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileKind
from local_vector_search_mcp.workspace.ignore import IgnoreFile
from local_vector_search_mcp.workspace.listing import Selection, SelectionRules, ignored_by


@pytest.mark.parametrize(
    ("include", "name", "document"),
    [
        (("**/*.md",), "a.md", True),
        (("**/*.md",), "A.MD", True),
        (("**/*.md",), "a.markdown", True),
        (("**/*.md",), "a.txt", False),
        (("**/*.md",), ".md", False),
        (("**/*.md",), "md", False),
        (("**/*.txt",), "a.txt", True),
        (("docs/*.{rst,adoc}",), "a.adoc", True),
        (("**/*",), "a.png", False),
        (("**/*.png",), "a.png", False),
        (("**/*.pdf",), "a.pdf", False),
        (("**/*.[t]xt",), "a.txt", False),
    ],
)
def test_is_document_name(include: tuple[str, ...], name: str, document: bool) -> None:
    """Markdown suffixes, and those that an include pattern spells out; never images or books."""
    assert Selection(SelectionRules(include=include)).is_document_name(name) is document


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.md", FileKind.MARKDOWN),
        ("x/a.WebP", FileKind.IMAGE),
        ("a.gif", FileKind.IMAGE),
        ("a.svg", FileKind.OTHER),
        ("a.md/b", FileKind.OTHER),
        ("Makefile", FileKind.OTHER),
        (".png", FileKind.OTHER),
    ],
)
def test_kind_of(path: str, kind: FileKind) -> None:
    """The last suffix decides."""
    assert Selection(SelectionRules()).kind_of(path) is kind


@pytest.mark.parametrize(
    ("path", "exclusion"),
    [
        ("a.md", None),
        ("drafts/a.md", "'drafts/**'"),
        ("x/drafts/a.md", None),
        ("x/tmp.md", "'tmp.md'"),
        ("a/b/secret-1.md", "'**/secret-*.md'"),
        ("node_modules/a.md", "'**/node_modules/**'"),
        ("x/node_modules/y/a.md", "'**/node_modules/**'"),
    ],
)
def test_exclusion(path: str, exclusion: str | None) -> None:
    """The pattern that keeps a path out is named."""
    rules = SelectionRules(exclude=("drafts/**", "tmp.md", "**/secret-*.md", "**/node_modules/**"))
    found = Selection(rules).exclusion(RelPath(path))
    assert (found is None) if exclusion is None else (found is not None and exclusion in found)


def test_non_inclusion() -> None:
    """Where nothing selects a path, the patterns that might have are named."""
    selection = Selection(SelectionRules(include=("docs/**/*.md", "*.txt")))
    assert selection.non_inclusion(RelPath("docs/a.md")) is None
    assert selection.non_inclusion(RelPath("x/b.txt")) is None
    assert "docs/**/*.md, *.txt" in (selection.non_inclusion(RelPath("a.md")) or "")


@pytest.mark.parametrize("rules", [SelectionRules(include=("{",)), SelectionRules(exclude=("a//b",))])
def test_selection__bad_globs(rules: SelectionRules) -> None:
    """A malformed rule is refused when the rules are made."""
    with pytest.raises(InvalidArgument):
        Selection(rules)


@pytest.mark.parametrize(
    ("lines", "path", "folder", "rule"),
    [
        ("*.log", "a.log", False, "'*.log'"),
        ("*.log", "x/a.log", False, "'*.log'"),
        ("*.log", "a.md", False, None),
        ("build/", "build", True, "'build/'"),
        ("build/", "build", False, None),
        ("/todo.md", "todo.md", False, "'/todo.md'"),
        ("/todo.md", "x/todo.md", False, None),
        ("docs/*.md", "docs/a.md", False, "'docs/*.md'"),
        ("docs/*.md", "x/docs/a.md", False, None),
        ("a/**/b.md", "a/x/y/b.md", False, "'a/**/b.md'"),
        ("*.md\n!keep.md", "keep.md", False, None),
        ("*.md\n!keep.md", "x/keep.md", False, None),
        ("*.md\n!keep.md", "other.md", False, "'*.md'"),
        ("!keep.md\n*.md", "keep.md", False, "'*.md'"),
        ("# a.md\n\n   \n\\#b.md", "a.md", False, None),
        ("\\#b.md", "#b.md", False, "b.md"),
        ("\ufeff*.md", "a.md", False, "'*.md'"),
        ("*.md\r\n", "a.md", False, "'*.md'"),
        ("a\u2028.md", "a\u2028.md", False, "a"),
        ("///\n***\n[z-a]\n*.md", "a.md", False, "'*.md'"),
    ],
)
def test_ignored_by__lines(lines: str, path: str, folder: bool, rule: str | None) -> None:
    """Lines mean what they mean to git, and the deciding one is named."""
    found = ignored_by((("", IgnoreFile(lines, place=".gitignore")),), path, folder=folder)
    assert (found is None) if rule is None else (found is not None and rule in found and ".gitignore" in found)


@pytest.mark.parametrize(
    ("path", "kept_out"),
    [("a.md", True), ("x/a.md", False), ("x/y.md", True), ("x/sub/a.md", False), ("z.md", True), ("x/z.md", True)],
)
def test_ignored_by__nested_files(path: str, kept_out: bool) -> None:
    """A deeper file speaks before one above it, about what lies below it alone."""
    files = (
        ("", IgnoreFile("a.md\nz.md", place=".gitignore")),
        ("x", IgnoreFile("!a.md\n/y.md", place="x/.gitignore")),
    )
    here = tuple(file for file in files if not file[0] or path.startswith(f"{file[0]}/"))
    assert (ignored_by(here, path, folder=False) is not None) is kept_out
