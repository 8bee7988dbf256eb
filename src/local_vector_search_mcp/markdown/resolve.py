"""Pointer and document to an element, a relocated element, or a Conflict."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_vector_search_mcp.errors import Conflict, ConflictReason, PointerNotFound
from local_vector_search_mcp.markdown.elements import Element, MarkdownDocument
from local_vector_search_mcp.markdown.pointers import Pointer

_MAX_CANDIDATES = 5
_MAX_CURRENT_TEXT_BYTES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a pointer means in a document as it is now."""

    element: Element
    relocated_from: str | None = None  # The pointer's logical address, where the element stands at another.


def resolve(document: MarkdownDocument, pointer: Pointer) -> Resolution:
    """Find the element that a pointer means. ``document`` itself is no element and is not resolved here.

    Raises:
        PointerNotFound: A bare pointer, and nothing stands at its address.
        Conflict: A hashed pointer whose element changed, is missing, or fits several elements.
    """
    at_address = document.by_logical(pointer.logical)
    if pointer.self_hash is None:
        if at_address is None:
            raise PointerNotFound(f"Nothing stands at {pointer.logical}; read the document or its outline again.")
        return Resolution(element=at_address)
    if at_address is not None and _is_as_read(at_address, pointer):
        # Whatever twins there are, the one at the address comes first.
        return Resolution(element=at_address)
    candidates = document.by_self_hash(pointer.kind, pointer.self_hash)
    if not candidates:
        raise _no_candidate(pointer, at_address)
    if len(candidates) == 1:
        return _found(candidates[0], pointer)
    left = candidates
    if pointer.subtree_hash is not None:
        left = [element for element in candidates if element.subtree_hash == pointer.subtree_hash]
        if len(left) == 1:
            return _found(left[0], pointer)
    # Without any left, the element that was meant has another subtree now, and no rule says which one it is.
    raise ambiguous(pointer.logical, left or candidates, at_address)


def equal_twins(document: MarkdownDocument, element: Element) -> tuple[Element, ...]:
    """The other elements of the same kind with the same self and subtree hash, in document order."""
    return tuple(
        other
        for other in document.elements
        if other is not element
        and other.kind is element.kind
        and other.end - other.start == element.end - element.start
        and other.self_hash == element.self_hash
        and other.subtree_hash == element.subtree_hash
    )


def ambiguous(address: str, candidates: Sequence[Element], at_address: Element | None = None) -> Conflict:
    """The refusal of an address that fits several elements."""
    details = _current(at_address)
    details["candidates"] = [element.pointer for element in candidates[:_MAX_CANDIDATES]]
    return Conflict(
        f"The pointer {address} fits {len(candidates)} elements that are equal; read the document again and use the "
        "pointer of the one that is meant.",
        reason=ConflictReason.AMBIGUOUS,
        details=details,
    )


def current_details(element: Element) -> dict[str, object]:
    """The details of a ``CONFLICT`` that show an element as it is now: its pointer and the head of its text."""
    return _current(element)


def _is_as_read(element: Element, pointer: Pointer) -> bool:
    if element.self_hash != pointer.self_hash:
        return False
    return pointer.subtree_hash is None or element.subtree_hash == pointer.subtree_hash


def _found(element: Element, pointer: Pointer) -> Resolution:
    return Resolution(element=element, relocated_from=None if element.logical == pointer.logical else pointer.logical)


def _no_candidate(pointer: Pointer, at_address: Element | None) -> Conflict:
    if at_address is not None:
        return Conflict(
            f"The element at {pointer.logical} has changed since it was read; look at its current text and use the "
            "current pointer, or read the document again.",
            reason=ConflictReason.CHANGED,
            details={**_current(at_address), "candidates": []},
        )
    return Conflict(
        f"No {pointer.kind.value} with the text of {pointer.logical} is in the document any more; read it again.",
        reason=ConflictReason.MISSING,
        details={"candidates": []},
    )


def _current(element: Element | None) -> dict[str, object]:
    if element is None:
        return {}
    head = element.own_bytes[:_MAX_CURRENT_TEXT_BYTES]
    return {"currentPointer": element.pointer, "currentText": head.decode("utf-8", "ignore")}
