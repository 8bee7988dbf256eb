"""The patcher: resolve → plan → apply → verify. Operations on a document in, new bytes with proof out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from local_vector_search_mcp.editing import refusals
from local_vector_search_mcp.editing.definitions import changed_labels, touches_definitions
from local_vector_search_mcp.editing.fragments import ending_in_use, frontmatter_fragment
from local_vector_search_mcp.editing.operations import AddressedOperation, Delete, InsertBefore, RewriteElement
from local_vector_search_mcp.editing.plan import NewElements, Plan
from local_vector_search_mcp.editing.planner import plan
from local_vector_search_mcp.editing.seams import Seam
from local_vector_search_mcp.editing.targets import Target, resolve_targets
from local_vector_search_mcp.editing.text_edits import TextEdit, TextEdits
from local_vector_search_mcp.editing.verifier import (
    Mismatch,
    Survival,
    compare,
    heading_chain,
    item_chain,
    resectioned,
)
from local_vector_search_mcp.markdown.elements import Element, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.pointers import parse_pointer
from local_vector_search_mcp.markdown.source import ByteRange

_MAX_HEAL_ATTEMPTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOutcome:
    """What one operation left behind.

    Attributes:
        pointers: Of the elements that now stand there, in document order; empty after a deletion.
        enclosing: Of the headings and items around that place, outermost first: their subtree hashes changed.
        relocated_from: The pointer's address, where the element stood at another.
    """

    index: int
    pointers: tuple[str, ...]
    enclosing: tuple[str, ...]
    relocated_from: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOutcome:
    """A verified proposal.

    Attributes:
        source: The document's new bytes.
        document: The same, parsed.
        edits: The edits that lead there.
        resectioned: How many untouched elements stand under other headings than before.
    """

    source: bytes
    document: MarkdownDocument
    edits: TextEdits
    operations: tuple[OperationOutcome, ...]
    resectioned: int
    warnings: tuple[str, ...]


def patch(
    document: MarkdownDocument, operations: Sequence[AddressedOperation], *, expected_source_hash: str | None = None
) -> PatchOutcome:
    """Apply operations together, all or nothing.

    Args:
        document: As it is now.
        operations: In the order of the call.
        expected_source_hash: The hash of the document that the pointers were taken from; tells byte-equal
            twins apart that may have moved.

    Raises:
        KnowledgeBaseError: An operation does not hold; nothing of the call is applied.
    """
    return _carried_out(document, resolve_targets(document, operations, expected_source_hash=expected_source_hash))


def rewrite(document: MarkdownDocument, edits: TextEdits) -> PatchOutcome:
    """Make edits that stay inside of elements' own segments, each element staying one of its kind.

    Args:
        document: As it is now.
        edits: None of them reaches beyond the segment that it starts in.

    Raises:
        StructureChanged: An element would not stay what it is, or another would not.
    """
    by_element: dict[int, dict[ByteRange, list[TextEdit]]] = {}
    for edit in edits:
        element = document.element_at(edit.range.start)
        segment = _segment_of(element, edit.range) if element is not None else None
        if element is None or segment is None:
            raise ValueError(f"the edit at {edit.range} is not inside of one element")
        by_element.setdefault(element.index, {}).setdefault(segment, []).append(edit)
    targets = [
        Target(
            index=number,
            operation=RewriteElement(
                segments=tuple(
                    (segment, TextEdits(inside).apply_within(document.source.data, segment))
                    for segment, inside in segments.items()
                )
            ),
            element=document.elements[index],
        )
        for number, (index, segments) in enumerate(sorted(by_element.items()))
    ]
    return _carried_out(document, targets)


def set_frontmatter(document: MarkdownDocument, block: bytes | None) -> PatchOutcome:
    """Give a document another front matter block.

    Args:
        document: As it is now.
        block: With both fences, without a last line ending; None for none. Where there was none before, one
            blank line follows it.

    Raises:
        StructureChanged: The rest of the document would be read otherwise.
    """
    element = document.frontmatter
    if element is not None and block is not None:
        return rewrite(document, TextEdits([TextEdit(element.range, block)]))
    if element is not None:
        return patch(document, [Delete(pointer=parse_pointer(element.pointer))])
    if block is None:
        return _carried_out(document, [])
    source = document.source
    ending = ending_in_use(source, 1)
    blank = source.line_count == 0 or source.is_blank(1)
    edit = TextEdit(ByteRange(source.bom_len, source.bom_len), block + ending + (b"" if blank else ending))
    fragment = frontmatter_fragment(block.decode("utf-8"), ending)
    operation = InsertBefore(pointer=parse_pointer("document"), markdown="")
    planned = Plan(document=document, targets=[Target(index=0, operation=operation, element=None)])
    planned.new.append(NewElements(operation=0, at=0, order=(0,), pieces=fragment.pieces))
    edits = TextEdits([edit])
    proposal = parse_bytes(edits.apply(source.data))
    survival = compare(planned, proposal)
    if isinstance(survival, Mismatch):
        raise refusals.refuse(planned, edits, proposal, survival)
    return _finished(planned, edits, proposal, survival)


def _segment_of(element: Element, where: ByteRange) -> ByteRange | None:
    return next((segment for segment in element.segments if segment.contains(where)), None)


def _carried_out(document: MarkdownDocument, targets: Sequence[Target]) -> PatchOutcome:
    planned = plan(document, targets)
    return _finished(planned, *_proposal(planned))


def _finished(planned: Plan, edits: TextEdits, proposal: MarkdownDocument, survival: Survival) -> PatchOutcome:
    warnings = [*_joined_lists(survival), *_check_definitions(planned, edits, proposal, survival)]
    return PatchOutcome(
        source=proposal.source.data,
        document=proposal,
        edits=edits,
        operations=tuple(_outcome(planned, survival, proposal, target) for target in planned.targets),
        resectioned=resectioned(planned, survival, proposal),
        warnings=tuple(warnings),
    )


def _proposal(planned: Plan) -> tuple[TextEdits, MarkdownDocument, Survival]:
    """The proposal that holds; with one blank line where it fails only for want of it."""
    data = planned.document.source.data
    edits, healable = planned.edits()
    proposal = parse_bytes(edits.apply(data))
    found = compare(planned, proposal)
    if isinstance(found, Survival):
        return edits, proposal, found
    first = found
    refusal = (edits, proposal)
    heals: frozenset[Seam] = frozenset()
    attempts = 0
    while attempts < _MAX_HEAL_ATTEMPTS:
        before = found
        for seam in _candidates(planned, found, healable):
            attempts += 1
            edits, next_healable = planned.edits(heals | {seam})
            proposal = parse_bytes(edits.apply(data))
            healed = compare(planned, proposal)
            if isinstance(healed, Survival):
                return edits, proposal, healed
            if healed.at > found.at:
                heals, healable, found = heals | {seam}, next_healable, healed
                break
        if found is before:
            break
    raise refusals.refuse(planned, *refusal, first)


def _candidates(planned: Plan, mismatch: Mismatch, healable: Iterable[Seam]) -> list[Seam]:
    """The seams that may want a blank line, nearest first."""
    near = planned.operations_near(mismatch.at)
    if mismatch.operation is not None:
        near = [mismatch.operation, *(operation for operation in near if operation != mismatch.operation)]
    order = {operation: place for place, operation in enumerate(near[:3])}
    return sorted(
        (seam for seam in healable if seam.operation in order), key=lambda seam: (order[seam.operation], seam.after)
    )


def _joined_lists(survival: Survival) -> list[str]:
    return [
        f"The deletion joined two bullet lists: {before.logical} (line {before.lines[0]}) and {after.logical} "
        f"(line {after.lines[0]}) now belong to one list."
        for before, after in survival.joined
    ]


def _check_definitions(planned: Plan, edits: TextEdits, proposal: MarkdownDocument, survival: Survival) -> list[str]:
    """Warnings about labels that lead elsewhere since their definition was removed; refuses all other changes."""
    document = planned.document
    if not touches_definitions(document.source.data, edits):
        return []
    untouched = (
        element
        for element in document.elements
        if survival.new_index[element.index] >= 0 and element.index not in planned.replaced
    )
    placed = {index: operation for operation, indexes in enumerate(survival.placed) for index in indexes}
    kept = {new for old, new in enumerate(survival.new_index) if new >= 0 and old not in planned.replaced}
    warnings: list[str] = []
    for changed in changed_labels(document, proposal, untouched):
        old, new = changed.old_definer, changed.new_definer
        taken_by = None if old is None else _taken_by(planned, old)
        if new is None or (new in kept and taken_by is not None and old not in planned.moved):
            where = "nowhere" if new is None else "elsewhere"
            warnings.append(
                f"The link definition of [{changed.label}] is gone; {refusals.describe(changed.element)} uses it and "
                f"now leads {where}."
            )
        elif taken_by is None or placed.get(new) != taken_by or old in planned.moved:
            operation = placed.get(new)
            raise refusals.refuse_definition(planned, changed, operation if operation is not None else taken_by or 0)
    return warnings


def _taken_by(planned: Plan, index: int) -> int | None:
    """The operation that deletes, moves or replaces an old element; None where it stays."""
    if index in planned.deleted_by:
        return planned.deleted_by[index]
    if index in planned.moved:
        return planned.moved[index][0]
    if index in planned.replaced:
        return planned.replaced[index]
    if index not in planned.removed:
        return None
    root = max((replaced for replaced in planned.replaced if replaced < index), default=None)
    return planned.replaced[root] if root is not None else None


def _outcome(planned: Plan, survival: Survival, proposal: MarkdownDocument, target: Target) -> OperationOutcome:
    placed = survival.placed[target.index]
    around: dict[int, Element] = {}
    for element in _enclosing(planned, survival, proposal, target):
        around[element.index] = element
    for index in placed:
        around.pop(index, None)
    return OperationOutcome(
        index=target.index,
        pointers=tuple(proposal.elements[index].pointer for index in placed),
        enclosing=tuple(around[index].pointer for index in sorted(around)),
        relocated_from=target.relocated_from,
    )


def _enclosing(planned: Plan, survival: Survival, proposal: MarkdownDocument, target: Target) -> list[Element]:
    """The headings and items around what an operation put in, and around what it took out."""
    around: list[Element] = []
    placed = survival.placed[target.index]
    if placed:
        around += _around(proposal, proposal.elements[placed[0]])
    element = target.element
    takes_out = element is not None and _taken_by(planned, element.index) == target.index
    if element is not None and takes_out and element.index not in planned.replaced:
        old = [*heading_chain(planned.document, element.index), *item_chain(planned.document, element)]
        around += [
            proposal.elements[survival.new_index[outer.index]] for outer in old if survival.new_index[outer.index] >= 0
        ]
        if element.level is not None and not target.takes_section:
            around += heading_chain(proposal, _place_after(survival, element.index))
    return around


def _around(document: MarkdownDocument, element: Element) -> list[Element]:
    chain = heading_chain(document, element.index)
    if element.level is not None:
        chain = [heading for heading in chain if (heading.level or 0) < element.level]
    return [*chain, *item_chain(document, element)]


def _place_after(survival: Survival, index: int) -> int:
    """The index in the proposal at which what followed a removed element stands, or would stand."""
    before = next((survival.new_index[old] for old in range(index, -1, -1) if survival.new_index[old] >= 0), -1)
    return before + 1
