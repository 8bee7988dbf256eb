"""RelPath: what a caller may name, and what nobody may."""

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.errors import InvalidPath
from local_vector_search_mcp.relpath import RelPath, parse_prefix

NFD = unicodedata.normalize("NFD", "café")
NFC = unicodedata.normalize("NFC", "café")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.md", "a.md"),
        ("./a.md", "a.md"),
        ("././notes/a.md", "notes/a.md"),
        ("notes/.hidden/a.md", "notes/.hidden/a.md"),
        (f"{NFD}/x.md", f"{NFC}/x.md"),
        ("a b/ü.md", "a b/ü.md"),
        ("100%/x.md", "100%/x.md"),
        ("ab:c.md", "ab:c.md"),
        ("...", "..."),
        ("a..b/c", "a..b/c"),
        (".github/x.md", ".github/x.md"),
        (".gitignore", ".gitignore"),
        ("con.md", "con.md"),
    ],
)
def test_parse__accepts(text: str, value: str) -> None:
    """A root-relative path is taken, in NFC and without a leading ``./``."""
    assert RelPath.parse(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "./",
        "..",
        "../x.md",
        "a/../../x.md",
        "a/..",
        "a/./b",
        "a//b",
        "/etc/passwd",
        "//server/share",
        "C:/x.md",
        "c:x.md",
        "a:b.md",
        "a/",
        "%2e%2e/x.md",
        "a/%2E%2e/x.md",
        "a/%2e/x.md",
        "%252e%252e/x.md",
        "..%2fx.md",
        "%2e%2e%2Fx.md",
        "a/..%5c..%5cx.md",
        "a%2f%2e%2e%2fx.md",
        "..%252fx.md",
        "a%2f.git%2fconfig",
        ".git/config",
        ".GIT/config",
        "a/.Git",
        "%2egit/config",
        "a\0b",
        "a\nb",
        "a\x7f",
        "a\x85b",
        "\ud800.md",
    ],
)
def test_parse__refuses(text: str) -> None:
    """What is absolute, climbs, is empty or holds what no path may hold is refused."""
    with pytest.raises(InvalidPath):
        RelPath.parse(text)


@pytest.mark.skipif(os.sep == "\\", reason="a backslash separates folders on Windows")
@pytest.mark.parametrize("text", ["a\\b.md", "..\\x.md", "a\\..\\..\\x.md"])
def test_parse__refuses_backslash(text: str) -> None:
    """A backslash is no separator here, and no part of a name either."""
    with pytest.raises(InvalidPath, match="backslash"):
        RelPath.parse(text)


@pytest.mark.parametrize(
    "name",
    [
        "a:b.md",
        "CON.md",
        "con",
        "x?.md",
        "dot.",
        "space ",
        "aux.tar.gz",
        "LPT1",
        "COM¹.md",
        "a<b",
        'q".md',
        "a|b",
        "s*r.md",
    ],
)
@pytest.mark.parametrize("place", ["{}", "notes/{}", "{}/note.md"])
def test_parse_new__refuses_what_windows_cannot_hold(name: str, place: str) -> None:
    """New files must survive a checkout on every system, whichever segment it is."""
    text = place.format(name)
    with pytest.raises(InvalidPath):
        RelPath.parse_new(text)


@pytest.mark.parametrize("text", ["console.md", "comment.md", "a.b.md", ".hidden.md", "ü/日本.md"])
def test_parse_new__accepts(text: str) -> None:
    """Names that merely resemble reserved ones are fine."""
    assert RelPath.parse_new(text).value == text


def test_parse_new__long_name() -> None:
    """A name that no file system holds is refused before it is tried."""
    with pytest.raises(InvalidPath, match="255"):
        RelPath.parse_new("ü" * 130 + ".md")


def test_parse_new__too_deep() -> None:
    """A file is not made deeper than a walk finds it, however much the caller asks for."""
    assert RelPath.parse_new("y/" * 128 + "x.md").name == "x.md"
    for folders in (129, 100_000):
        with pytest.raises(InvalidPath, match="128 folders"):
            RelPath.parse_new("y/" * folders + "x.md")


@pytest.mark.parametrize(
    ("value", "parts", "name", "stem", "suffix", "parent"),
    [
        ("a.md", ("a.md",), "a.md", "a", ".md", ""),
        ("x/y/B.MD", ("x", "y", "B.MD"), "B.MD", "B", ".md", "x/y"),
        ("x/.env", ("x", ".env"), ".env", ".env", "", "x"),
        ("tar.gz/none", ("tar.gz", "none"), "none", "none", "", "tar.gz"),
    ],
)
def test_parts(value: str, parts: tuple[str, ...], name: str, stem: str, suffix: str, parent: str) -> None:
    """A path comes apart as a reader expects; a leading dot begins no extension."""
    path = RelPath.parse(value)
    assert (path.parts, path.name, path.stem, path.suffix, path.parent) == (parts, name, stem, suffix, parent)


@pytest.mark.parametrize(("one", "other"), [("A/x.md", "a/X.md"), ("straße.md", "STRASSE.md"), ("ſ.md", "S.md")])
def test_folded__collides(one: str, other: str) -> None:
    """Names that some systems take for the same have the same key."""
    assert RelPath.parse(one).folded == RelPath.parse(other).folded


@pytest.mark.parametrize(
    ("text", "value"), [(None, ""), ("", ""), (".", ""), ("/", ""), ("./", ""), ("notes", "notes"), ("notes/", "notes")]
)
def test_parse_prefix__accepts(text: str | None, value: str) -> None:
    """The ways to say everything, and folders with and without a slash."""
    assert parse_prefix(text) == value


@pytest.mark.parametrize("text", ["../x", "/etc", "a//b", ".git", "a\0"])
def test_parse_prefix__refuses(text: str) -> None:
    """A prefix is a path, and refused like one."""
    with pytest.raises(InvalidPath):
        parse_prefix(text)


@given(st.text())
def test_parse__never_leads_out(text: str) -> None:
    """Whatever is taken is relative, has no dot segments, is NFC, and is taken again as it stands."""
    try:
        path = RelPath.parse(text)
    except InvalidPath:
        return
    assert all(part not in ("", ".", "..") for part in path.parts)
    assert not path.value.startswith("/")
    assert unicodedata.is_normalized("NFC", path.value)
    assert RelPath.parse(path.value) == path
