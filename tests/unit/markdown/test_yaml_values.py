"""YAML and TOML as JSON values, within bounds, and the simple reader beside the library."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_vector_search_mcp.markdown.json_values import JsonValue
from local_vector_search_mcp.markdown.simple_yaml import load_simple_yaml
from local_vector_search_mcp.markdown.yaml_values import (
    MetadataError,
    load_any_yaml,
    load_toml,
    load_yaml,
    resolve_plain,
)

_KEYS = ["a", "b", "title", "x-y", "_z", "true", "null", "A b", "1", "é", "<<", "a:b", "a"]
_VALUES = [
    "a", "b c", "true", "null", "~", "1", "-1", "1.5", "0x1f", "012", "1e3", "2024-01-02", "2024-01-02 10:00:00",
    "x: y", "x:", "a #b", "a#b", '"q"', "'s'", '"a\\n"', "'it''s'", "[a, b]", "[]", "[ ]", "[a,]", "[a b, \"c\", 'd']",
    "[1, true]", "{a: 1}", "[a: b]", "|", ">", "&x y", "*x", "!t x", "!!str 1", "%x", "@x", "`x`", "- x", "-", "?",
    "é", "日本", "😀", "a,b", "a]b", "http://x.y/z", "a & b", "...", "--- x", "\u2028x", "\x85", "", "[a#b]", "[a #b]",
    "(x)", "$x", ".5", "_", "/p", "yes", "No", "=", "<<", "12:30", "1_000", "a\\b", "[x-y, x.y]", "[-a]", "[a - b]",
    "\u00a0x", "x\u00a0", "[\u00a0x]", "[a\u3000b]", "[²]",
]  # fmt: skip


def _entry(key: str, colon: str, value: str, tail: str) -> str:
    return key + colon + value + tail


def _item(indent: str, value: str) -> str:
    return f"{indent}- {value}"


_VALUE = st.one_of(st.sampled_from(_VALUES), st.text(max_size=6))
_LINE = st.one_of(
    st.builds(
        _entry,
        st.sampled_from(_KEYS),
        st.sampled_from([": ", ":  ", ":", " : "]),
        _VALUE,
        st.sampled_from(["", "", " ", " #c"]),
    ),
    st.builds(_item, st.sampled_from(["", "  ", "    "]), _VALUE),
    st.sampled_from(["", "# c", "  # c", "#", "a:", "b:", "  x", "\t"]),
)


@settings(max_examples=1_000, deadline=None)
@given(st.lists(_LINE, max_size=5))
def test_simple_yaml__what_it_takes_the_library_reads_the_same_way(lines: list[str]) -> None:
    """It may leave a text to the library, but never differ from it."""
    text = "\n".join(lines) + "\n"
    found = load_simple_yaml(text, resolve_plain)
    if found is not None:
        assert repr(load_any_yaml(text)) == repr(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n# comment\n\n",
        "title: My note\ndate: 2024-01-02\ntags: [a, b c, 'd', \"e\"]\ndraft: true\nempty:\n",
        'aliases:\n  - One\n\n  - "Two: x"\ntitle: x\n',
        "tags:\n- a\n- b\nx: 1\n",
        "url: https://a.b/c?d=e#f\nnote: it's [fine] {here}, really\n",
    ],
)
def test_simple_yaml__takes_usual_front_matter(text: str) -> None:
    """What most notes have is read without the library."""
    assert load_simple_yaml(text, resolve_plain) == load_any_yaml(text)


@pytest.mark.parametrize(
    "text",
    ["a: |\n  x\n", "a:\n  b: 1\n", "a: b\n  c\n", "a: 1\na: 2\n", "a: 'it''s'\n", "a: {b: 1}\n", "a:\tb\n", "- a\n"],
)
def test_simple_yaml__leaves_the_rest(text: str) -> None:
    """Anything that it does not know is the library's."""
    assert load_simple_yaml(text, resolve_plain) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("True", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("On", "On"),
        ("012", 12),
        ("+5", 5),
        ("-0", 0),
        ("0o17", 15),
        ("0xFf", 255),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        (".inf", ".inf"),
        ("-.INF", "-.INF"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", "9223372036854775808"),
        ("9" * 5_000, "9" * 5_000),
        ("12:30:45", "12:30:45"),
        ("2024-01-02", "2024-01-02"),
        ("2024-1-2", "2024-1-2"),
        ("2024-13-45", "2024-13-45"),
        ("2024-01-02T10:11:12", "2024-01-02T10:11:12"),
        ("2024-01-02 10:11:12.5", "2024-01-02T10:11:12.500000"),
        ("2024-01-02t10:11:12Z", "2024-01-02T10:11:12+00:00"),
        ("2001-12-14 21:59:43.10 -5", "2001-12-14T21:59:43.100000-05:00"),
        ("2001-12-14T21:59:43+05:30", "2001-12-14T21:59:43+05:30"),
        ("2024-02-30 10:00:00", "2024-02-30 10:00:00"),
        ("2024-01-02 10:11", "2024-01-02 10:11"),
        ("-", "-"),
        ("a b", "a b"),
    ],
)
def test_plain_scalar__core_schema(text: str, value: JsonValue) -> None:
    """YAML 1.2 core, timestamps as ISO strings, nothing that JSON cannot hold."""
    found = resolve_plain(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a: {b: [1, null]}", {"a": {"b": [1, None]}}),
        ("1: x\ntrue: y\n~: z\n1.0: w", {"1": "x", "true": "y", "~": "z", "1.0": "w"}),
        ("? [a, b]\n: 1\n? {c: d}\n: 2", {'["a", "b"]': 1, '{"c": "d"}': 2}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: &x {k: 1}\nb: {<<: *x}", {"a": {"k": 1}, "b": {"<<": {"k": 1}}}),
        ("a: !!str 12\nb: ! 12\nc: !!int 12\nd: !!binary aGk=", {"a": "12", "b": "12", "c": 12, "d": "aGk="}),
        ("a: !!set {x, y}\nb: !!seq [1]", {"a": {"x": None, "y": None}, "b": [1]}),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
        ("a: >-\n  one\n  two\n", {"a": "one two"}),
        ('a: "\\ud83d\\ude00 \\ud800"', {"a": "😀 \ufffd"}),
        ("%YAML 1.1\n---\na: yes", {"a": "yes"}),
        ("a: 1\n...", {"a": 1}),
        ("null", {}),
    ],
)
def test_yaml__values(text: str, values: dict[str, JsonValue]) -> None:
    """What the library's events give."""
    found = load_yaml(text)
    assert found == values
    assert json.dumps(found).encode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: " + "[" * 63 + "]" * 63 + "\nb: [", "line"),
        ("a: " + "[" * 64 + "]" * 64, "deeper than 64"),
        ("a: " + "[" * 100_000, "deeper than 64"),
        ("- " * 10_000, "deeper than 64"),
        ("a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40, "deeper than 64"),
        ("a: &a [*a]", "complete"),
        ("a: *b", "complete"),
        ("a: &a [" + "x," * 100 + "]\nb: &b [" + "*a," * 100 + "]\nc: [*b]", "10,000"),
        ("\n".join(f"k{n}: v" for n in range(5_001)), "10,000"),
        ("\n".join(f"k{n}: [v]" for n in range(3_400)), "10,000"),
        ("k: [" + ", ".join("v" * 10_000) + "]", "10,000"),
        ("a: 1\n'a': 2", "'a' appears twice"),
        ("1: x\n'1': y", "'1' appears twice"),
        ("a: {b: 1, b: 2}", "'b' appears twice"),
        ("a: !!python/object:x y", "not allowed"),
        ("a: !own y", "not allowed"),
        ("a: !!int [1]", "not allowed"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("- a", "not a mapping"),
        ("text", "not a mapping"),
        ('a: "\\UFFFFFFFF"', "out of range"),
        ("a: \x01", "special characters"),
        ("a: [", "line"),
        ("a: b: c", "line"),
    ],
)
def test_yaml__refused(text: str, said: str) -> None:
    """Beyond the bounds, not one mapping, or no YAML."""
    with pytest.raises(MetadataError, match=said):
        load_yaml(text)


@settings(max_examples=400, deadline=None)
@given(
    st.text(
        st.sampled_from([*"ab:- \n[]{},&*!|>'\"%@`#?\\0~.<=\t", "\u2028", "\x85", "é", "😀", "\ud7ff"]), max_size=30
    )
)
def test_yaml_and_toml__any_text_is_values_or_refused(text: str) -> None:
    """No other exception, and what comes out is JSON in UTF-8."""
    for load in (load_yaml, load_toml):
        try:
            json.dumps(load(text), ensure_ascii=False, allow_nan=False).encode()
        except MetadataError:
            continue


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a = 1\nb = 1.5\nc = true\nd = 'x'", {"a": 1, "b": 1.5, "c": True, "d": "x"}),
        ("e = [1, [2]]\n[f.g]\nh = 1", {"e": [1, [2]], "f": {"g": {"h": 1}}}),
        ("a = 2024-01-02\nb = 10:00:00", {"a": "2024-01-02", "b": "10:00:00"}),
        ("a = 2024-01-02T10:00:00Z", {"a": "2024-01-02T10:00:00+00:00"}),
        ("a = inf\nb = -inf\nc = nan", {"a": "inf", "b": "-inf", "c": "nan"}),
        ("a = 9223372036854775808", {"a": "9223372036854775808"}),
        ("a = 0x" + "f" * 5_000, {"a": "0x" + "f" * 5_000}),
        ("", {}),
    ],
)
def test_toml__values(text: str, values: dict[str, JsonValue]) -> None:
    """Dates as ISO strings, nothing that JSON cannot hold."""
    assert load_toml(text) == values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "Invalid value"),
        ("a = " + "[" * 100_000, "deeper than 64"),
        ("a = " + "[" * 65 + "]" * 65, "deeper than 64"),
        (".".join(["a"] * 100) + " = 1", "deeper than 64"),
        ("a = [" + "1," * 10_000 + "]", "10,000"),
        ("\n".join(f"k{n} = 1" for n in range(6_000)), "10,000"),
        ("a = " + "9" * 5_000, "digits"),
        ("a = 1\na = 2", "overwrite"),
    ],
)
def test_toml__refused(text: str, said: str) -> None:
    """Beyond the bounds, or no TOML."""
    with pytest.raises(MetadataError, match=said):
        load_toml(text)
