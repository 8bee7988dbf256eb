"""Properties of edits that hold for every document and every operation."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.random_edits import assert_promise, random_document, random_operation, try_patch

from local_vector_search_mcp.editing.operations import KINDS, read_operations
from local_vector_search_mcp.editing.patcher import patch
from local_vector_search_mcp.errors import Conflict
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.parser import parse_bytes

SEEDS = st.integers(min_value=0, max_value=2**32)


@settings(max_examples=400, deadline=None)
@given(seed=SEEDS, kind=st.sampled_from(sorted(KINDS)))
def test_edit__an_accepted_operation_keeps_its_promise(seed: int, kind: str) -> None:
    """Bytes outside the target stay, every other element survives, and the edits can be taken back."""
    rng = random.Random(seed)
    document = parse_bytes(random_document(rng))
    operations = [random_operation(rng, document, kind)]
    outcome = try_patch(document, operations)
    if outcome is not None:
        assert_promise(document, operations, outcome)


@settings(max_examples=200, deadline=None)
@given(seed=SEEDS, count=st.integers(min_value=2, max_value=5))
def test_edit__operations_together_keep_their_promise(seed: int, count: int) -> None:
    """The same of several operations in one call."""
    rng = random.Random(seed)
    document = parse_bytes(random_document(rng))
    operations = [random_operation(rng, document) for _ in range(count)]
    outcome = try_patch(document, operations)
    if outcome is not None:
        assert_promise(document, operations, outcome)


@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_edit__an_element_replaced_by_itself_changes_nothing(seed: int) -> None:
    """Sending back what was read leaves every byte as it was."""
    rng = random.Random(seed)
    document = parse_bytes(random_document(rng))
    for element in document.elements:
        kind = "replace_subtree" if element.kind is ElementKind.LIST_ITEM else "replace_element"
        text = element.range.slice(document.source.data).decode()
        outcome = try_patch(document, [{"kind": kind, "pointer": element.pointer, "markdown": text}])
        assert outcome is not None or "\r" in text, f"{element} is not replaced by itself"
        if outcome is not None and "\r" not in document.source.text:
            assert outcome.source == document.source.data


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_edit__a_stale_hash_never_writes(seed: int) -> None:
    """A pointer whose hash no element has is a conflict for every element."""
    document = parse_bytes(random_document(random.Random(seed)))
    for element in document.elements:
        stale = f"{element.logical}~{'0' * 16}~{'0' * 16}"
        try:
            patch(document, read_operations([{"kind": "delete", "pointer": stale}]))
        except Conflict as error:
            assert error.details["reason"] == "changed"
        else:
            raise AssertionError("a stale pointer was taken")
