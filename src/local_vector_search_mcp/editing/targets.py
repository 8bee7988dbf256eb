"""Targets: what operations are addressed to, checked for hashes, twins, kinds and overlap."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_vector_search_mcp.editing.list_edits import is_item, section_end_index, subtree_end_index
from local_vector_search_mcp.editing.operations import (
    AddressedOperation,
    AppendToSection,
    Delete,
    DeleteSection,
    InsertAfter,
    InsertBefore,
    MoveAfter,
    MoveBefore,
    Operation,
    ReplaceElement,
    ReplaceSection,
    ReplaceSubtree,
    ReplaceText,
    RewriteElement,
)
from local_vector_search_mcp.errors import (
    Conflict,
    ConflictReason,
    InvalidPointer,
    KnowledgeBaseError,
    OverlappingOperations,
    UnsupportedEdit,
)
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.pointers import Pointer
from local_vector_search_mcp.markdown.resolve import current_details, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One operation with the elements that its pointers mean.

    Attributes:
        index: The operation's place in the call.
        element: None where the pointer is ``document``.
        anchor: The element that a move goes next to.
        relocated_from: The pointer's address, where the element stands at another by now.
    """

    index: int
    operation: Operation
    element: Element | None
    anchor: Element | None = None
    relocated_from: str | None = None

    @property
    def required(self) -> Element:
        """The element, for operations that do not take ``document``."""
        if self.element is None:
            raise UnsupportedEdit("The pointer 'document' takes insert_before and insert_after only.")
        return self.element

    @property
    def takes_section(self) -> bool:
        """Whether the operation takes a heading's whole section."""
        operation = self.operation
        if isinstance(operation, (MoveBefore, MoveAfter)):
            return operation.section
        return isinstance(operation, (DeleteSection, ReplaceSection))


def resolve_targets(
    document: MarkdownDocument, operations: Sequence[AddressedOperation], *, expected_source_hash: str | None = None
) -> tuple[Target, ...]:
    """Resolve every operation against one reading of the document.

    Args:
        document: The document as it is now.
        operations: In the order of the call.
        expected_source_hash: The hash of the document that the pointers were taken from. With another hash
            now, a target that has an equal twin is ambiguous.

    Raises:
        InvalidPointer: A hash that the operation needs is missing.
        PointerNotFound, Conflict: An element is missing, changed or ambiguous.
        UnsupportedEdit: An operation does not take its target.
        OverlappingOperations: Targets are not disjoint.
    """
    changed = expected_source_hash is not None and expected_source_hash.lower() != document.source_hash
    targets: list[Target] = []
    for index, operation in enumerate(operations):
        try:
            targets.append(_resolve(document, index, operation, check_twins=changed))
        except KnowledgeBaseError as error:
            error.details["operation"] = index
            raise
    _check_disjoint(document, targets)
    return tuple(targets)


def resolve_hashed(
    document: MarkdownDocument, pointer: Pointer, *, both: bool, check_twins: bool, what: str
) -> tuple[Element, str | None]:
    """The element of a hashed pointer, and the address that it moved away from.

    Args:
        document: The document as it is now.
        pointer: As it was given.
        both: Whether the subtree hash is needed too.
        check_twins: Whether an element with an equal twin is ambiguous.
        what: The operation's name, for messages.

    Raises:
        InvalidPointer: A needed hash is missing (``hash_required``).
        PointerNotFound, Conflict: An element is missing, changed or ambiguous.
    """
    if pointer.self_hash is None or (both and pointer.subtree_hash is None):
        wanted = "both hashes (logical~selfHash~subtreeHash)" if both else "its hash (logical~selfHash)"
        raise InvalidPointer(
            f"{what} needs the pointer {pointer} with {wanted}; take it whole from kb_read, kb_search or kb_outline.",
            details={"reason": "hash_required"},
        )
    found = resolve(document, pointer)
    element = found.element
    if both and pointer.subtree_hash != element.subtree_hash:
        raise Conflict(
            f"What stands under {element.logical} has changed since it was read; read it again and use its pointer.",
            reason=ConflictReason.SUBTREE_CHANGED,
            details={**current_details(element), "candidates": []},
        )
    if check_twins:
        _refuse_twins(document, pointer, element)
    return element, found.relocated_from


def _resolve(document: MarkdownDocument, index: int, operation: AddressedOperation, *, check_twins: bool) -> Target:
    pointer = operation.pointer
    name = operation_name(operation)
    if pointer.is_document:
        if not isinstance(operation, (InsertBefore, InsertAfter)):
            raise UnsupportedEdit(f"{name} does not take the pointer 'document'; only inserts do.")
        return Target(index=index, operation=operation, element=None)
    _check_kind(operation, pointer, name)
    both = _needs_both(operation, pointer)
    element, relocated = resolve_hashed(document, pointer, both=both, check_twins=check_twins, what=name)
    anchor: Element | None = None
    if isinstance(operation, (MoveBefore, MoveAfter)):
        if operation.target.is_document:
            raise UnsupportedEdit(f"{name} needs an element as its target; 'document' takes inserts only.")
        anchor, _ = resolve_hashed(
            document, operation.target, both=False, check_twins=check_twins, what=f"The target of {name}"
        )
    return Target(index=index, operation=operation, element=element, anchor=anchor, relocated_from=relocated)


def operation_name(operation: Operation) -> str:
    """The operation's kind as callers write it."""
    return _NAMES[type(operation)]


_NAMES: dict[type, str] = {
    ReplaceElement: "replace_element",
    ReplaceSubtree: "replace_subtree",
    ReplaceSection: "replace_section",
    ReplaceText: "replace_text",
    Delete: "delete",
    DeleteSection: "delete_section",
    InsertBefore: "insert_before",
    InsertAfter: "insert_after",
    AppendToSection: "append_to_section",
    MoveBefore: "move_before",
    MoveAfter: "move_after",
    RewriteElement: "rewriting",
}


def _needs_both(operation: AddressedOperation, pointer: Pointer) -> bool:
    if isinstance(operation, Delete):
        return pointer.kind is ElementKind.LIST_ITEM
    return isinstance(operation, (ReplaceSubtree, ReplaceSection, DeleteSection, MoveBefore, MoveAfter))


def _check_kind(operation: AddressedOperation, pointer: Pointer, name: str) -> None:
    kind = pointer.kind
    wants_heading = isinstance(operation, (ReplaceSection, DeleteSection, AppendToSection)) or (
        isinstance(operation, (MoveBefore, MoveAfter)) and operation.section
    )
    if wants_heading and kind is not ElementKind.HEADING:
        raise UnsupportedEdit(f"{name} takes a heading's pointer, and {pointer.logical} is a {kind.value}.")
    if isinstance(operation, ReplaceSubtree) and kind is not ElementKind.LIST_ITEM:
        better = "replace_section" if kind is ElementKind.HEADING else "replace_element"
        raise UnsupportedEdit(f"{name} takes a list item, and {pointer.logical} is a {kind.value}; use {better}.")
    if isinstance(operation, (MoveBefore, MoveAfter)) and kind is ElementKind.FRONTMATTER:
        raise UnsupportedEdit("Front matter stands at the start of its document and cannot move.")


def _refuse_twins(document: MarkdownDocument, pointer: Pointer, element: Element) -> None:
    twins = [
        other
        for other in document.elements
        if other.kind is element.kind
        and other.self_hash == element.self_hash
        and (pointer.subtree_hash is None or other.subtree_hash == element.subtree_hash)
    ]
    if len(twins) > 1:
        raise Conflict(
            f"The document has changed since it was read, and {pointer.logical} has {len(twins) - 1} equal twin(s), so "
            "which one is meant is uncertain; read the document again and use the pointer and source hash of now.",
            reason=ConflictReason.AMBIGUOUS,
            details={**current_details(element), "candidates": [twin.pointer for twin in twins[:5]]},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """The elements that an operation takes out or replaces: [first, last) by index."""

    operation: int
    first: int
    last: int
    logical: str


def _check_disjoint(document: MarkdownDocument, targets: Sequence[Target]) -> None:
    found = [_claim(document, target) for target in targets]
    claims = sorted((claim for claim in found if claim is not None), key=lambda claim: (claim.first, claim.last))
    reach: _Claim | None = None
    for claim in claims:
        if reach is not None and claim.first < reach.last:
            raise _overlap(reach.operation, claim.operation, reach.logical, claim.logical)
        if reach is None or claim.last > reach.last:
            reach = claim
    for target in targets:
        for element, place in _places(document, target):
            for claim in claims:
                own = claim.operation == target.index
                if claim.first <= element.index < claim.last and (own or not _beside(claim, element, place)):
                    raise _overlap(claim.operation, target.index, claim.logical, element.logical)


def _claim(document: MarkdownDocument, target: Target) -> _Claim | None:
    operation, element = target.operation, target.element
    if element is None or isinstance(operation, (InsertBefore, InsertAfter, AppendToSection)):
        return None
    if target.takes_section:
        last = section_end_index(document, element)
    elif isinstance(operation, (ReplaceSubtree, Delete, MoveBefore, MoveAfter)):
        last = subtree_end_index(document, element)
    else:
        last = element.index + 1
    return _Claim(operation=target.index, first=element.index, last=last, logical=element.logical)


def _places(document: MarkdownDocument, target: Target) -> list[tuple[Element, int]]:
    """The elements by which an operation's text is addressed, each with the index before which the text goes."""
    operation, element = target.operation, target.element
    if isinstance(operation, (MoveBefore, MoveAfter)):
        anchor = target.anchor
        assert anchor is not None
        if isinstance(operation, MoveBefore):
            return [(anchor, anchor.index)]
        if operation.section and anchor.kind is ElementKind.HEADING:
            return [(anchor, section_end_index(document, anchor))]
        return [(anchor, subtree_end_index(document, anchor))]
    if element is None:
        return []
    if isinstance(operation, InsertBefore):
        return [(element, element.index)]
    if isinstance(operation, InsertAfter):
        return [(element, subtree_end_index(document, element))]
    if isinstance(operation, AppendToSection):
        return [(element, element.index + 1)]
    return []


def _beside(claim: _Claim, element: Element, place: int) -> bool:
    """Whether a text goes beside what a claim takes, addressed by exactly that."""
    if element.index != claim.first:
        return False
    if claim.last == claim.first + 1 and not is_item(element):
        return True  # An element alone: whatever is placed by it is beside it.
    return place <= claim.first or place >= claim.last


def _overlap(first: int, second: int, outer: str, inner: str) -> OverlappingOperations:
    low, high = sorted((first, second))
    if low == high:
        message = f"Operation {low} moves {outer} next to {inner}, which is in it; choose a target outside of it."
    else:
        message = (
            f"Operations {low} and {high} overlap: {outer} equals or contains {inner}. Give one operation for both, or "
            "send them in two calls."
        )
    return OverlappingOperations(message, details={"operations": [low, high]})
