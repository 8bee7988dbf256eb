"""Globs: what fits, what does not, what is no glob, and that no pattern is slow."""

import time
import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.workspace.globs import compile_glob, compile_globs


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("**/*.md", "a.md x/a.md x/y/.md", "a.txt a.md/b a.MD"),
        ("*.md", "a.md x/a.md", "x.md/a amd"),
        ("docs/**", "docs docs/a docs/a/b", "docsx/a x/docs/a"),
        ("docs/**/*.md", "docs/a.md docs/x/y/a.md", "docs x/docs/a.md docs/a.txt"),
        ("**/x/**", "x x/a a/x a/x/b/c", "ax/b xa"),
        ("a/**/b/**/c", "a/b/c a/x/b/y/c a/b/b/c a/x/b/c a/b/c/c", "a/c ab/c a/bb/c a/bx/c"),
        ("{a,b}/*.{md,txt}", "a/x.md b/x.txt", "c/x.md a/x.rst"),
        ("[!a]*.md", "b.md x/b.md", "a.md x/a.md"),
        ("[^a]*.md", "b.md", "a.md"),
        ("[a-c]?.md", "ax.md c1.md", "d1.md a.md"),
        ("[]x].md", "].md x.md", "a.md"),
        ("[*].md", "*.md", "a.md"),
        ("[{}].md", "{.md }.md", "a.md"),
        ("a*b*c", "abc aXbYc abcbc", "abcd ab"),
        ("*a", "ba aba a", "ab"),
        ("a?c/*", "abc/x", "a/c/x ac/x"),
        ("x/*", "x/a x/.a", "x/a/b x"),
        ("{*.md,docs/**}", "q/a.md docs/b.txt a.md", "q/b.txt"),
        ("**", "a a/b .x", ""),
        ("*", "a a/b", ""),
        ("*/b", "a/b", "b a/a/b"),
        ("**/b", "b a/b a/a/b", "ab"),
        ("a**b", "ab axxb q/ab", "a/b"),
        ("x/**/*", "x/a x/a/b", "x"),
        ("**/a/**/b", "a/b q/a/b a/q/b a/a/b/b", "a b"),
        ("**/**/b", "b a/b", "a"),
        ("/docs/*.md", "docs/a.md", "x/docs/a.md"),
        ("./docs/*.md", "docs/a.md", "a.md"),
        ("a.b", "a.b x/a.b", "aXb"),
        ("a+(b).md", "a+(b).md", "aab.md"),
    ],
)
def test_matches(pattern: str, fits: str, others: str) -> None:
    """Each pattern fits these whole paths and not those."""
    glob = compile_glob(pattern)
    assert [path for path in fits.split() if not glob.matches(path)] == []
    assert [path for path in others.split() if glob.matches(path)] == []


def test_matches__case_and_unicode_form() -> None:
    """Case counts; the pattern's Unicode form does not."""
    glob = compile_glob(unicodedata.normalize("NFD", "café/*.md"))
    assert glob.matches("café/a.md")
    assert not glob.matches("Café/a.md")


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "{a", "a}", "a}b{", "[a", "[", "[]", "[!]", "[z-a]", "a//b", "a/", "../x", "x/../y", "a/./b", "/"),
        *("a\\b", "a\0", "a\nb", "\ud800", "x" * 1001, "{a,b}" * 9, "[a/b]", "{" * 400),
    ],
)
def test_compile__refuses(pattern: str) -> None:
    """What is no glob is an argument error that shows the pattern."""
    with pytest.raises(InvalidArgument, match="glob"):
        compile_glob(pattern)


def test_compile_globs__names_the_bad_one() -> None:
    """One bad glob refuses the list."""
    with pytest.raises(InvalidArgument, match="oops"):
        compile_globs(["*.md", "oops{"])


@pytest.mark.parametrize(
    ("pattern", "folder", "covered"),
    [
        ("**/node_modules/**", "node_modules", True),
        ("**/node_modules/**", "a/node_modules", True),
        ("**/node_modules/**", "a", False),
        ("docs/**", "docs", True),
        ("docs/**/*", "docs", True),
        ("docs/*", "docs", False),
        ("**/*.md", "docs", False),
        ("**", "docs", True),
        ("*", "docs", True),
        ("{a,b}/**", "b", True),
        ("{a/**,*.md}", "a", True),
    ],
)
def test_covers_folder(pattern: str, folder: str, covered: bool) -> None:
    """A folder is covered only if everything below it fits."""
    assert compile_glob(pattern).covers_folder(folder) is covered


@pytest.mark.parametrize(
    ("pattern", "folder", "may"),
    [
        ("docs/**/*.md", "docs", True),
        ("docs/**/*.md", "docs/x", True),
        ("docs/**/*.md", "src", False),
        ("docs/a.md", "docs", True),
        ("docs/a.md", "docs/x", False),
        ("*/a.md", "x", True),
        ("*/a.md", "x/y", False),
        ("*.md", "x/y", True),
        ("**/*.md", "x", True),
        ("{docs,notes}/*.md", "notes", True),
        ("{docs,notes}/*.md", "src", False),
    ],
)
def test_may_match_below(pattern: str, folder: str, may: bool) -> None:
    """Folders that the plain beginning of a glob rules out need not be entered."""
    assert compile_glob(pattern).may_match_below(folder) is may


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 100 + "b", "a" * 255),
        ("*a*a*a*a*a*a*a*a*a*b*c", "a" * 255),
        ("**/a/" * 100 + "b", "a/" * 2000 + "c"),
        ("**/*a*a*a*b/" * 30 + "b", "aaaaaaaaaaaab/" * 300 + "c"),
        ("{*a*a*a*a*b,**/a*/**/a*/**/b}", "aaaaaaaaaaaaaaaaaaaa/" * 200),
        ("?" * 500 + "*" * 400, "a" * 255),
    ],
)
def test_matches__is_never_slow(pattern: str, path: str) -> None:
    """Patterns made to make a matcher backtrack take no time worth naming."""
    glob = compile_glob(pattern)
    began = time.perf_counter()
    glob.matches(path)
    assert time.perf_counter() - began < 1


_segments = st.text(alphabet="ab", min_size=1, max_size=3)
_paths = st.lists(_segments, min_size=1, max_size=4).map("/".join)
_patterns = st.lists(st.one_of(st.just("**"), st.text(alphabet="ab*?", min_size=1, max_size=4)), min_size=1, max_size=4)


def _fits(pattern: list[str], path: list[str]) -> bool:
    """The meaning of a glob with a slash, spelled out by trying everything."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_fits(pattern[1:], path[taken:]) for taken in range(len(path) + 1))
    return bool(path) and _segment_fits(pattern[0], path[0]) and _fits(pattern[1:], path[1:])


def _segment_fits(pattern: str, segment: str) -> bool:
    if not pattern:
        return not segment
    if pattern[0] == "*":
        return any(_segment_fits(pattern[1:], segment[taken:]) for taken in range(len(segment) + 1))
    return bool(segment) and pattern[0] in ("?", segment[0]) and _segment_fits(pattern[1:], segment[1:])


@given(pattern=_patterns, path=_paths)
def test_matches__equals_its_meaning(pattern: list[str], path: str) -> None:
    """The compiled matcher agrees with the meaning tried out in full."""
    wanted = ["**", *pattern] if len(pattern) == 1 and pattern[0] != "**" else pattern
    assert compile_glob("/".join(pattern)).matches(path) is _fits(wanted, path.split("/"))


@given(pattern=_patterns, folder=_paths, rest=_paths)
def test_covers_folder__is_sound(pattern: list[str], folder: str, rest: str) -> None:
    """What is pruned would all have fitted, and what is not entered could not have."""
    glob = compile_glob("/".join(pattern))
    below = f"{folder}/{rest}"
    if glob.covers_folder(folder):
        assert glob.matches(below)
    if glob.matches(below):
        assert glob.may_match_below(folder)


@given(st.text(max_size=30), st.text(max_size=30))
def test_compile__only_refuses_in_words(pattern: str, path: str) -> None:
    """Any text is a glob or an argument error."""
    with suppress(InvalidArgument):
        compile_glob(pattern).matches(path)
