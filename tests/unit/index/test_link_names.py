"""Which file a link means."""

import pytest

from local_vector_search_mcp.index.link_names import FOREIGN, LinkNames, Target, fold_name, link_parts, name_key

DOCUMENTS = (
    "index.md", "guide/setup.md", "guide/Über uns.md", "guide/deep/setup.md", "notes/Plan.md", "notes/plan b.md",
    "a/same.md", "b/same.md", "README.markdown",
)  # fmt: skip
FILES = ("img/logo.png", "guide/deep/shot.png", "x/data.csv", "y/data.csv", "guide/setup")
ALIASES = (("notes/Plan.md", "the plan"), ("a/same.md", "twin"), ("b/same.md", "twin"))


def names() -> LinkNames:
    return LinkNames(
        DOCUMENTS,
        ALIASES,
        exists=lambda path: path in FILES or path in ("", "guide", "img"),
        other_files=lambda: FILES,
    )


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("guide/setup.md", "deep/setup.md", "guide/deep/setup.md"),
        ("guide/setup.md", "../index.md", "index.md"),
        ("guide/setup.md", "notes/Plan.md", "notes/Plan.md"),  # From the root, after the folder.
        ("guide/deep/setup.md", "setup.md", "guide/deep/setup.md"),  # The folder comes first.
        ("guide/deep/setup.md", "/guide/setup.md", "guide/setup.md"),
        ("guide/setup.md", "./deep/./setup.md", "guide/deep/setup.md"),
        ("index.md", "", "index.md"),
        ("index.md", "img/logo.png", "img/logo.png"),
        ("index.md", "guide/", "guide"),
        ("index.md", "/", "."),
        ("index.md", "guide/Über uns.md", "guide/Über uns.md"),
        ("index.md", "guide/setup", "guide/setup"),  # A file without extension, not the document.
        ("index.md", "Plan.md", None),  # Only wikilinks are looked for everywhere.
        ("index.md", "guide/SETUP.md", None),
    ],
)
def test_resolve__markdown_links(source: str, target: str, expected: str | None) -> None:
    """Beside the document, then from the root, spelled exactly."""
    assert names().resolve(source, "link", target) == Target(path=expected)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("index.md", "Plan", "notes/Plan.md"),
        ("index.md", "PLAN.MD", "notes/Plan.md"),
        ("index.md", "notes/plan", "notes/Plan.md"),
        ("index.md", "plan b", "notes/plan b.md"),
        ("index.md", "über uns", "guide/Über uns.md"),
        ("index.md", "deep/setup", "guide/deep/setup.md"),
        ("guide/index.md", "setup", "guide/setup.md"),  # Beside the document comes before everywhere.
        ("a/x.md", "same", "a/same.md"),
        ("index.md", "The Plan", "notes/Plan.md"),
        ("index.md", "shot.png", "guide/deep/shot.png"),
        ("index.md", "img/logo.png", "img/logo.png"),
        ("index.md", "nowhere", None),
        ("index.md", "lan", None),  # A part of a name is no name.
    ],
)
def test_resolve__wikilinks(source: str, target: str, expected: str | None) -> None:
    """Wikilinks ignore case and extension, and find unique names, path ends and aliases."""
    for kind in ("wikilink", "embed"):
        assert names().resolve(source, kind, target) == Target(path=expected)


@pytest.mark.parametrize(
    ("target", "candidates"),
    [
        ("same", ("a/same.md", "b/same.md")),
        ("setup", ("guide/deep/setup.md", "guide/setup.md")),
        ("data.csv", ("x/data.csv", "y/data.csv")),
        ("twin", ("a/same.md", "b/same.md")),
    ],
)
def test_resolve__ambiguous(target: str, candidates: tuple[str, ...]) -> None:
    """Several equally good files are all named."""
    assert names().resolve("index.md", "wikilink", target) == Target(candidates=candidates)


@pytest.mark.parametrize(
    ("source", "kind", "target"),
    [
        ("index.md", "link", FOREIGN),
        ("index.md", "link", "../outside.md"),
        ("guide/setup.md", "image", "../../x.png"),
        ("index.md", "wikilink", "../outside"),
    ],
)
def test_resolve__outside(source: str, kind: str, target: str) -> None:
    """URLs and paths that leave the root are nobody's business."""
    assert names().resolve(source, kind, target) == Target(outside=True)


@pytest.mark.parametrize(
    ("kind", "path", "anchor", "expected"),
    [
        ("link", "a b.md", "xä", ("a b.md", "xä", "a b")),
        ("link", "a%20b.md", "100%25", ("a%20b.md", "100%25", "a%20b")),
        ("link", "why?.md", None, ("why?.md", None, "why?")),
        ("link", "https://example.com/a.md", "x", (FOREIGN, "x", "")),
        ("link", "mailto:me@example.com", None, (FOREIGN, None, "")),
        ("image", "//example.com/x.png", None, (FOREIGN, None, "")),
        ("link", "", "top", ("", "top", "")),
        ("link", "Dir/File.MD", None, ("Dir/File.MD", None, "file")),
        ("link", "dir/", None, ("dir/", None, "dir")),
        ("image", "x/y.PNG", None, ("x/y.PNG", None, "y.png")),
        ("wikilink", "A%20b", "H#Sub", ("A%20b", "Sub", "a%20b")),
        ("wikilink", "note: one", None, ("note: one", None, "note: one")),
        ("wikilink", " Note ", "^id", ("Note", "^id", "note")),
        ("wikilink", "u\u0308", None, ("ü", None, "ü")),
        ("wikilink", "", "", ("", None, "")),
        ("link", ".md", None, (".md", None, ".md")),
    ],
)
def test_link_parts(kind: str, path: str, anchor: str | None, expected: tuple[str, str | None, str]) -> None:
    """Targets come decoded and are not decoded again: a file may have a percent sign in its name."""
    parts = link_parts(kind, path, anchor)
    assert (parts.path, parts.anchor, parts.name_key) == expected


def test_fold_name__brings_forms_together() -> None:
    """Case and Unicode form make no difference to a name."""
    assert fold_name("STRASSE") == fold_name("straße")
    assert fold_name("U\u0308ber ") == fold_name("über")
    assert name_key("x/Über.md") == "über"
