"""Front matter edits: keys are spliced in and out as text; every other byte stays."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_vector_search_mcp.editing.frontmatter_edits import edit_frontmatter
from local_vector_search_mcp.editing.patcher import set_frontmatter
from local_vector_search_mcp.editing.yaml_text import same_json
from local_vector_search_mcp.errors import InvalidArgument, InvalidFrontmatter, KnowledgeBaseError, UnsupportedEdit
from local_vector_search_mcp.markdown.frontmatter import read_metadata
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.yaml_values import JsonValue

FULL = """---
# top
title: "A --- b" # c
note: |
  first
  ---
  last

# after
tags: [x, y] # t
list:
  - a
  - b: 1
    c:

  # in
empty:
m:
  k: v
date: 2024-01-01
q: 'it''s'
p: plain
  more
---
"""


def edited(text: str, set_: Mapping[str, JsonValue] | None = None, unset: Sequence[str] = ()) -> str:
    """The document after keys are set and removed."""
    document = parse_bytes(text.encode())
    return set_frontmatter(document, edit_frontmatter(document, set_ or {}, unset)).source.decode()


def line_changed(before: str, old: str, new: str) -> str:
    assert before.count(old) == 1
    return before.replace(old, new)


SETS: list[tuple[str, dict[str, JsonValue], str]] = [
    (FULL, {"title": 'new "q"'}, line_changed(FULL, '"A --- b"', '"new \\"q\\""')),
    (FULL, {"q": "don't"}, line_changed(FULL, "'it''s'", "'don''t'")),
    (FULL, {"tags": ["z", "a, b"]}, line_changed(FULL, "[x, y]", '[z, "a, b"]')),
    (FULL, {"list": ["1", 2]}, line_changed(FULL, "  - a\n  - b: 1\n    c:\n", '  - "1"\n  - 2\n')),
    (FULL, {"list": "gone"}, line_changed(FULL, "list:\n  - a\n  - b: 1\n    c:\n", "list: gone\n")),
    (FULL, {"empty": "x"}, line_changed(FULL, "empty:", "empty: x")),
    (FULL, {"empty": ["a", "b"]}, line_changed(FULL, "empty:\n", "empty:\n  - a\n  - b\n")),
    (FULL, {"m": {"a": None, "b": True}}, line_changed(FULL, "  k: v\n", "  a: null\n  b: true\n")),
    (FULL, {"date": "2025-02-03"}, line_changed(FULL, "2024-01-01", "2025-02-03")),
    (FULL, {"note": "one\ntwo\n"}, line_changed(FULL, "  first\n  ---\n  last\n", "  one\n  two\n")),
    (FULL, {"note": "short"}, line_changed(FULL, "note: |\n  first\n  ---\n  last\n", "note: short\n")),
    (FULL, {"p": "yes"}, line_changed(FULL, "plain\n  more", '"yes"')),
    (FULL, {"new": {"k": ["v"]}}, FULL[:-4] + "new:\n  k:\n    - v\n---\n"),
    (
        FULL,
        {"a": 1, "b": 2.5, "c": False, "d": None, "e": "", "f": []},
        FULL[:-4] + 'a: 1\nb: 2.5\nc: false\nd: null\ne: ""\nf: []\n---\n',
    ),
    ("---\r\na: 1\r\n---\r\nx", {"b": [1]}, "---\r\na: 1\r\nb:\r\n  - 1\r\n---\r\nx"),
    ("---\n  a: 1\n  l:\n  - x\n---\n", {"b": 2, "l": ["w", "z"]}, "---\n  a: 1\n  l:\n  - w\n  - z\n  b: 2\n---\n"),
    ("---\n---\n", {"a": 1}, "---\na: 1\n---\n"),
    ("---\n# c\n---\n", {"a": 1}, "---\n# c\na: 1\n---\n"),
    ("---\na: 1\n...\n---\n", {"b": 2}, "---\na: 1\nb: 2\n...\n---\n"),
    ("---\n{a: 1, b: [x]}\n---\n", {"a": "z", "c": 1}, "---\n{a: z, b: [x], c: 1}\n---\n"),
    ("---\n? a\n: v\n---\n", {"a": 2}, "---\n? a\n: 2\n---\n"),
    ("---\na: &x 1\nb: *x\n---\n", {"b": 2}, "---\na: &x 1\nb: 2\n---\n"),
    ("# A\n", {"t": "x"}, "---\nt: x\n---\n\n# A\n"),
    ("\n\n# A\n", {"t": "x"}, "---\nt: x\n---\n\n\n# A\n"),
    ("", {"t": "x"}, "---\nt: x\n---\n"),
    ("\ufeffa\r\n", {"t": "x"}, "\ufeff---\r\nt: x\r\n---\r\n\r\na\r\n"),
    (FULL, {}, FULL),
]


@pytest.mark.parametrize(("before", "values", "after"), SETS)
def test_edit_frontmatter__set(before: str, values: dict[str, JsonValue], after: str) -> None:
    """A value takes the place and the style of the old one; a new key comes last."""
    assert edited(before, values) == after


UNSETS = [
    (FULL, ["title"], line_changed(FULL, 'title: "A --- b" # c\n', "")),
    (FULL, ["note"], line_changed(FULL, "note: |\n  first\n  ---\n  last\n", "")),
    (FULL, ["list", "empty"], line_changed(FULL, "list:\n  - a\n  - b: 1\n    c:\n\n  # in\nempty:\n", "\n  # in\n")),
    (FULL, ["nothing"], FULL),
    ("---\na: 1\n---\n\nx\n", ["a"], "x\n"),
    ("---\n# kept\na: 1\n---\n\nx\n", ["a"], "---\n# kept\n---\n\nx\n"),
    ("---\n{a: 1, b: 2, c: 3}\n---\n", ["a", "c"], "---\n{b: 2}\n---\n"),
    ("---\n{a: 1}\n---\n\nx\n", ["a"], "x\n"),
    ("x\n", ["a"], "x\n"),
    ("---\n---\n\nx\n", ["a"], "---\n---\n\nx\n"),
]


@pytest.mark.parametrize(("before", "keys", "after"), UNSETS)
def test_edit_frontmatter__unset(before: str, keys: list[str], after: str) -> None:
    """An entry goes with its lines; the fences go with the last one unless comments are left."""
    assert edited(before, {}, keys) == after


REFUSALS: list[tuple[str, dict[str, JsonValue], list[str], type[KnowledgeBaseError], str]] = [
    ("---\na: 1\n---\n", {"a": 2}, ["a"], InvalidArgument, "both"),
    ("---\na: [\n---\n", {"a": 2}, [], InvalidFrontmatter, "kb_patch"),
    ("---\na: 1\na: 2\n---\n", {"a": 2}, [], InvalidFrontmatter, "twice. Mend"),
    ("---\n- a\n---\n", {"a": 2}, [], InvalidFrontmatter, "mapping"),
    ("+++\na = 1\n+++\n", {"a": 2}, [], UnsupportedEdit, "TOML"),
    ("---\na: &x 1\nb: *x\n---\n", {"a": 2}, [], UnsupportedEdit, "anchor"),
    ("---\na: 1\n---\n", {"a": 2**70}, [], UnsupportedEdit, "64-bit"),
    ("x\n", {"a": 2**70}, [], UnsupportedEdit, "64-bit"),
]


@pytest.mark.parametrize(("before", "values", "keys", "error", "word"), REFUSALS)
def test_edit_frontmatter__refusals(
    before: str, values: dict[str, JsonValue], keys: list[str], error: type[KnowledgeBaseError], word: str
) -> None:
    """What does not parse, is TOML, or would change another key is refused."""
    with pytest.raises(error) as caught:
        edited(before, values, keys)
    assert word in caught.value.message


KEYS = st.text(alphabet="abk:# -'\"\\é{[", min_size=1, max_size=6)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        [
            "yes",
            "null",
            "1.0",
            "0x1",
            "2024-01-01",
            "12:30",
            "a: b",
            "a #b",
            "- x",
            "---",
            "'",
            '"',
            "|",
            "a\nb\n",
            " x",
            "\x85",
        ]
    ),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    values=st.dictionaries(KEYS, JSON, min_size=1, max_size=3),
    text=st.sampled_from([FULL, "x\n", "---\na: 1\nb: [1]\n---\n"]),
)
def test_edit_frontmatter__what_is_set_reads_back(values: dict[str, JsonValue], text: str) -> None:
    """Every JSON value reads back as it was set, and every other key as before."""
    before = read_metadata(parse_bytes(text.encode())).values
    after = read_metadata(parse_bytes(edited(text, values).encode())).values
    assert same_json(dict(after), {**before, **values})
