"""Front matter: where it stands, and what metadata it gives."""

import json

import pytest

from local_vector_search_mcp.markdown.frontmatter import (
    NO_METADATA,
    FrontmatterFormat,
    Metadata,
    find_frontmatter,
    parse_metadata,
    read_metadata,
)
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.source import decode_source


def metadata(yaml: str) -> Metadata:
    """What a YAML block says."""
    return parse_metadata(f"---\n{yaml}\n---".encode())


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("---\n---", 1),
        ("---\na: 1\n---\n", 2),
        ("---  \r\na: 1\r---   \n", 2),
        ("\ufeff---\n---\n", 1),
        ("+++\na = 1\n---\n+++\n", 3),
        ("---\na: |\n  x\n  ---\n---\n", 4),
        ("---\na\n----\n... \n---\n", 4),
        ("---", None),
        ("---\na: 1\n", None),
        ("---\na: 1\n --- \n", None),
        ("---\t\na: 1\n---\n", None),
        ("---\na: 1\n---\t\n", None),
        ("--- #\na: 1\n---\n", None),
        (" ---\na: 1\n---\n", None),
        ("----\na: 1\n----\n", None),
        ("---\na: 1\n+++\n", None),
        ("\n---\na: 1\n---\n", None),
        ("---\u00a0\na: 1\n---\n", None),
        ("", None),
    ],
)
def test_frontmatter__stands_between_equal_fences(text: str, last: int | None) -> None:
    """At the very start, at column 0, with nothing but spaces behind, and closed."""
    found = find_frontmatter(decode_source(text.encode()))
    assert (found.last if found is not None else None) == last


def test_frontmatter__is_an_element_with_its_fences() -> None:
    """It begins after the BOM and hides no heading."""
    document = parse_bytes("\ufeff---\ntitle: é\n---\n# A\n".encode())
    block = document.elements[0]
    assert document.frontmatter is block
    assert (block.text, block.start) == ("---\ntitle: é\n---", 3)
    assert document.elements[1].logical == "1"
    assert parse_bytes(b"text\n").frontmatter is None
    assert parse_bytes(b"").frontmatter is None


@pytest.mark.parametrize(
    ("yaml", "title", "aliases", "tags"),
    [
        ("title: One", "One", (), ()),
        ("title: 2024", "2024", (), ()),
        ("title: 1.50", "1.5", (), ()),
        ("title: true", "true", (), ()),
        ("title: 2024-01-02", "2024-01-02", (), ()),
        ("title: ' '", None, (), ()),
        ("title: [a]", None, (), ()),
        ("title:", None, (), ()),
        ("aliases: [A, 'B, c', A, '', 1]", None, ("A", "B, c", "1"), ()),
        ("aliases: One,  Two , ,One", None, ("One", "Two"), ()),
        ("aliases:", None, (), ()),
        ("tags: [a, '#b', '##c', a, '', '#']", None, (), ("a", "b", "c")),
        ("tags: a, #no comment", None, (), ("a",)),
        ("tags: 'a #b,c  d'", None, (), ("a", "b", "c", "d")),
        ("tags: {a: 1}", None, (), ()),
        ("tags: [[a], {b: 1}, c]", None, (), ("c",)),
        ("tags:\n  - a\n  - b/c", None, (), ("a", "b/c")),
    ],
)
def test_metadata__title_aliases_and_tags(
    yaml: str, title: str | None, aliases: tuple[str, ...], tags: tuple[str, ...]
) -> None:
    """Lists, or text split at commas (tags at spaces too), without duplicates and empty ones."""
    found = metadata(yaml)
    assert (found.title, found.aliases, found.tags, found.warning) == (title, aliases, tags, None)


def test_metadata__other_keys_are_as_they_are() -> None:
    """The JSON form has the three known keys in their normal form where they are written, and no others."""
    found = metadata("status: draft\ntags: b a\nn: [1, {x: null}]\ntitle: 7")
    assert found.values == {"status": "draft", "tags": "b a", "n": [1, {"x": None}], "title": 7}
    assert found.as_json() == {"status": "draft", "tags": ["b", "a"], "n": [1, {"x": None}], "title": "7"}
    assert metadata("status: x").as_json() == {"status": "x"}
    assert metadata("aliases: a").as_json() == {"aliases": ["a"]}


@pytest.mark.parametrize("yaml", ["a: [", "a: 1\na: 2", "- list", "text", "a: *no", "a: 1\n--- \nb: 2", "a: \0"])
def test_metadata__what_does_not_parse_is_a_warning(yaml: str) -> None:
    """No values and a reason; never a failure."""
    found = metadata(yaml)
    assert found.warning is not None
    assert found.warning.startswith("The front matter does not parse: ")
    assert (found.title, found.tags, found.values, found.format) == (None, (), {}, FrontmatterFormat.YAML)
    assert found.as_json() == {}


def test_metadata__errors_name_the_documents_line() -> None:
    """The opening fence is line 1."""
    assert "(line 4)" in (metadata("a: 1\nb: '").warning or "")
    assert "(line 3)" in (metadata("a: 1\n\tb: 2").warning or "")


def test_metadata__toml() -> None:
    """TOML is read the same way, with any line endings."""
    block = b'+++\r\ntitle = "T"\r\ntags = ["a"]\rdate = 2024-01-02\n[x]\ny = 10:00:00\nz = inf\n+++'
    found = parse_metadata(block)
    assert found.format is FrontmatterFormat.TOML
    assert (found.title, found.tags) == ("T", ("a",))
    assert found.values["date"] == "2024-01-02"
    assert found.values["x"] == {"y": "10:00:00", "z": "inf"}
    assert parse_metadata(b"+++\na = \n+++").warning is not None
    assert parse_metadata(b"+++\n+++") == Metadata(format=FrontmatterFormat.TOML)


def test_metadata__a_final_line_ending_does_not_matter() -> None:
    """A block may be given with or without the ending of its closing fence."""
    assert parse_metadata(b"---\na: 1\n---\r\n") == parse_metadata(b"---\na: 1\n---")


def test_metadata__of_a_document() -> None:
    """Read once and kept; a document without front matter has none."""
    document = parse_bytes(b"---\na: 1\n---\n")
    assert read_metadata(document).values == {"a": 1}
    assert read_metadata(document) is read_metadata(document)
    assert read_metadata(parse_bytes(b"text\n")) is NO_METADATA
    assert json.dumps(read_metadata(document).as_json()) == '{"a": 1}'
