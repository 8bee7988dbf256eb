"""Patching in tests: operations are written with logical addresses, which become full pointers of the document."""

from collections.abc import Mapping, Sequence

import pytest

from local_vector_search_mcp.editing.operations import read_operations
from local_vector_search_mcp.editing.patcher import PatchOutcome, patch
from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes

Operation = Mapping[str, object]


def op(kind: str, pointer: str, markdown: str | None = None, **fields: object) -> Operation:
    """An operation as a caller writes it, with a logical address in the place of the pointer."""
    text = {} if markdown is None else {"markdown": markdown}
    return {"kind": kind, "pointer": pointer, **text, **fields}


def addressed(document: MarkdownDocument, operations: Sequence[Operation]) -> list[Operation]:
    """The operations with full pointers."""
    result: list[Operation] = []
    for operation in operations:
        full = dict(operation)
        for name in ("pointer", "target"):
            logical = full.get(name)
            if isinstance(logical, str) and logical != "document" and "~" not in logical:
                element = document.by_logical(logical)
                assert element is not None, f"{logical} is not among {[each.logical for each in document.elements]}"
                full[name] = element.pointer
        result.append(full)
    return result


def patched(before: str | bytes, *operations: Operation) -> PatchOutcome:
    """What a patch of a text comes to."""
    data = before.encode() if isinstance(before, str) else before
    document = parse_bytes(data)
    return patch(document, read_operations(addressed(document, operations)))


def dump(document: MarkdownDocument) -> list[tuple[str, str, str]]:
    """A document's elements: address, kind and own text."""
    return [(element.logical, element.kind.value, element.text) for element in document.elements]


def check(before: str | bytes, operations: Sequence[Operation], after: str | bytes) -> PatchOutcome:
    """Assert that operations give a text, that it was parsed as answered, and that its pointers are good."""
    outcome = patched(before, *operations)
    wanted = after.encode() if isinstance(after, str) else after
    assert outcome.source.decode() == wanted.decode()
    assert dump(outcome.document) == dump(parse_bytes(wanted))
    for operation in outcome.operations:
        for pointer in (*operation.pointers, *operation.enclosing):
            found = outcome.document.by_logical(pointer.split("~")[0])
            assert found is not None
            assert found.pointer == pointer
    return outcome


def refused(
    before: str | bytes, operations: Sequence[Operation], error: type[KnowledgeBaseError], *words: str
) -> KnowledgeBaseError:
    """Assert that operations are refused with an error whose message holds some words; gives the error."""
    with pytest.raises(error) as caught:
        patched(before, *operations)
    for word in words:
        assert word in caught.value.message, f"{word!r} is not in {caught.value.message!r}"
    return caught.value
