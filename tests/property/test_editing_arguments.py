"""Arguments of any form: they are read, or refused with a documented error, and never anything else."""

from hypothesis import given, settings
from hypothesis import strategies as st

from local_vector_search_mcp.editing.frontmatter_edits import edit_frontmatter
from local_vector_search_mcp.editing.operations import KINDS, read_operations
from local_vector_search_mcp.editing.patcher import patch, set_frontmatter
from local_vector_search_mcp.editing.table_actions import ACTIONS, read_action
from local_vector_search_mcp.editing.table_edits import edit_table
from local_vector_search_mcp.editing.text_search import Query, Searcher
from local_vector_search_mcp.editing.yaml_text import as_json_object
from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.parser import parse_bytes

DOCUMENT = parse_bytes(b"---\na: 1\n---\n\n# A\n\n- i\n  - j\n\n| a | b |\n|---|---|\n| 1 | `x` |\n")
POINTERS = [element.pointer for element in DOCUMENT.elements]
TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["\ud800", "\x00", "a|b", "- x", "# h", "---", "```", "p1", "document", "x::p1", *POINTERS]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
FIELDS = sorted({"pointer", "where"} | {name for taken in (*KINDS.values(), *ACTIONS.values()) for name in taken})


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    pointer=st.sampled_from(POINTERS),
    fields=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3),
)
def test_operations__of_any_form(kind: str, pointer: str, fields: dict[str, object]) -> None:
    """An operation is carried out or refused."""
    try:
        outcome = patch(DOCUMENT, read_operations([{"kind": kind, "pointer": pointer, **fields}], path="note.md"))
    except KnowledgeBaseError as error:
        assert error.code != "INTERNAL"
    else:
        assert parse_bytes(outcome.source).source_hash == outcome.document.source_hash


@settings(max_examples=300, deadline=None)
@given(action=st.sampled_from(sorted(ACTIONS)), arguments=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3))
def test_table_actions__of_any_form(action: str, arguments: dict[str, object]) -> None:
    """A table action is carried out or refused."""
    table = next(element for element in DOCUMENT.elements if element.kind is ElementKind.TABLE)
    try:
        data = edit_table(DOCUMENT, table, read_action(action, arguments))
    except KnowledgeBaseError as error:
        assert error.code != "INTERNAL"
    else:
        assert parse_bytes(data).elements[0].kind is ElementKind.TABLE


@settings(max_examples=150, deadline=None)
@given(values=st.dictionaries(TEXTS, VALUES, max_size=3), keys=st.lists(TEXTS, max_size=2))
def test_front_matter__of_any_form(values: dict[str, object], keys: list[str]) -> None:
    """Keys are set or refused."""
    try:
        outcome = set_frontmatter(DOCUMENT, edit_frontmatter(DOCUMENT, as_json_object(values), keys))
    except KnowledgeBaseError as error:
        assert error.code != "INTERNAL"
    else:
        assert outcome.document.metadata.warning is None


@settings(max_examples=200, deadline=None)
@given(query=st.one_of(TEXTS, st.text("()[]{}*+?|\\^$ab1,<>=!:P", min_size=1, max_size=12)), replacement=TEXTS)
def test_expressions__of_any_form(query: str, replacement: str) -> None:
    """An expression is searched for or refused."""
    try:
        searcher = Searcher(Query(text=query, replacement=replacement, is_regex=True))
        edits = list(searcher.edits(DOCUMENT, frozenset(ElementKind)))
    except KnowledgeBaseError as error:
        assert error.code != "INTERNAL"
    else:
        assert all(edit.range.length for edit in edits)
