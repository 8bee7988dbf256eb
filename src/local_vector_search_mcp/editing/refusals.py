"""Refusals of the structural check in words: which element would not survive, what it would become, what to change."""

from local_vector_search_mcp.editing.definitions import ChangedLabel
from local_vector_search_mcp.editing.plan import Plan
from local_vector_search_mcp.editing.targets import operation_name
from local_vector_search_mcp.editing.text_edits import TextEdits
from local_vector_search_mcp.editing.verifier import Mismatch
from local_vector_search_mcp.errors import StructureChanged, StructureReason
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument

_EXCERPT_CHARACTERS = 40

_FENCES = (b"```", b"~~~")
_HINTS = {
    ElementKind.CODE: "Close the fence of the code block, or take the indentation off what is not code.",
    ElementKind.HTML: "Close the HTML block or comment (a blank line ends most HTML blocks), or indent a comment as "
    "deep as the item's text if it belongs to a list item.",
    ElementKind.LIST_ITEM: "Keep list items and what follows them apart: an item takes text that is indented or "
    "follows it without a blank line, and items with the same marker form one list.",
    ElementKind.HEADING: "A line of '---' or '===' right below text makes it a heading: put a blank line above that "
    "line, or write the rule as '***'.",
    ElementKind.BLOCK_QUOTE: "Quotes that meet become one, and a quote takes text that follows it without a blank "
    "line: put another element between them, or edit the neighbouring quote itself.",
    ElementKind.TABLE: "Lines right below a table become its rows: end the table with a blank line, or edit it with "
    "kb_edit_table.",
    ElementKind.FOOTNOTE: "A footnote takes indented text that follows it: take the indentation off, or make it part "
    "of the footnote.",
    ElementKind.FRONTMATTER: "A block between '---' lines at the start of a document is front matter: use "
    "kb_edit_frontmatter for it, or write a rule as '***'.",
    ElementKind.MATH: "Close the display math with '$$' on a line of its own.",
    ElementKind.DEFINITION: "A line such as '[label]: target' is a link definition: escape the bracket, or separate it "
    "by a blank line.",
    ElementKind.RULE: "Separate the elements by a blank line.",
    ElementKind.PARAGRAPH: "Text lines that meet become one paragraph: separate them by a blank line.",
}


def refuse(plan: Plan, edits: TextEdits, proposal: MarkdownDocument, mismatch: Mismatch) -> StructureChanged:
    """The refusal of a proposal whose structure does not hold."""
    operation = _operation(plan, mismatch)
    harmed = _harmed(plan, edits, mismatch)
    what = _what_happens(plan, edits, proposal, mismatch, harmed)
    details: dict[str, object] = {"operation": operation}
    if harmed is not None:
        details["element"] = harmed.pointer
        details["line"] = harmed.lines[0]
    if mismatch.actual is not None:
        details["becomes"] = mismatch.actual.kind.value
    name = operation_name(plan.targets[operation].operation)
    return StructureChanged(
        f"Operation {operation} ({name}) was not applied: {what} {_hint(plan, proposal, edits, mismatch, harmed)}",
        reason=StructureReason.NEIGHBOUR,
        details=details,
    )


def refuse_definition(plan: Plan, changed: ChangedLabel, operation: int) -> StructureChanged:
    """The refusal of a link definition that would change how an untouched element reads."""
    element = changed.element
    name = operation_name(plan.targets[operation].operation)
    return StructureChanged(
        f"Operation {operation} ({name}) was not applied: its link definition of [{changed.label}] would change how "
        f"{describe(element)} reads, which uses that label. Choose another label, or edit it in the same call.",
        reason=StructureReason.NEIGHBOUR,
        details={"operation": operation, "element": element.pointer, "line": element.lines[0], "label": changed.label},
    )


def describe(element: Element) -> str:
    """An element for a message: kind, address, line and the head of its text."""
    lines = element.text.strip().splitlines()
    head = lines[0].strip() if lines else ""
    if len(head) > _EXCERPT_CHARACTERS:
        head = head[: _EXCERPT_CHARACTERS - 1] + "…"
    return f"the {element.kind.value} {element.logical} (line {element.lines[0]}, {head!r})"


def _operation(plan: Plan, mismatch: Mismatch) -> int:
    if mismatch.operation is not None:
        return mismatch.operation
    near = plan.operations_near(mismatch.at)
    return near[0] if near else 0


def _harmed(plan: Plan, edits: TextEdits, mismatch: Mismatch) -> Element | None:
    """The untouched element to name: one that stands inside of what another became, else the one that does not fit."""
    expected, actual = mismatch.expected, mismatch.actual
    if actual is None or mismatch.why != "bytes" or (expected is not None and expected.level is not None):
        return expected if actual is None else expected or _inside(plan, edits, mismatch.at, actual)
    first = mismatch.at if expected is None else expected.index + 1
    return _inside(plan, edits, first, actual) or expected


def _inside(plan: Plan, edits: TextEdits, first: int, actual: Element) -> Element | None:
    """The first untouched element from an index on, if it stands inside an element of the proposal."""
    nested_in = actual.kind is ElementKind.LIST_ITEM
    for element in plan.document.elements[first:]:
        if element.index in plan.removed or element.index in plan.replaced:
            continue
        if nested_in and element.parent is not None:
            continue
        return element if edits.shifted(element.start) < actual.end else None
    return None


def _what_happens(
    plan: Plan, edits: TextEdits, proposal: MarkdownDocument, mismatch: Mismatch, harmed: Element | None
) -> str:
    actual = mismatch.actual
    if harmed is None:
        return _text_reads_otherwise(mismatch)
    subject = describe(harmed)
    if mismatch.why == "merged":
        return f"{subject} would be merged into the list beside it."
    if mismatch.why == "split":
        return f"{subject} would be split from the list that it belongs to."
    if mismatch.why == "parent":
        return f"{subject} would belong to another list item than before."
    start = edits.shifted(harmed.start)
    holder = proposal.element_at(start)
    if holder is None or actual is None:
        return f"{subject} would be lost."
    while holder.parent is not None and holder.start > start:
        holder = proposal.elements[holder.parent]
    if holder.start < start:
        return f"{subject} would be swallowed by the {holder.kind.value} that begins at line {holder.lines[0]}."
    if holder.kind is not harmed.kind:
        return f"{subject} would become a {holder.kind.value}."
    if len(harmed.segments) > 1:
        return f"the parts of {subject} that a nested item keeps apart would be joined."
    grown = holder.end - holder.start > harmed.end - harmed.start
    return f"{subject} would be {'merged with what follows it' if grown else 'split'}."


def _text_reads_otherwise(mismatch: Mismatch) -> str:
    actual, piece = mismatch.actual, mismatch.piece
    if piece is None:
        found = f"a further {actual.kind.value} at line {actual.lines[0]}" if actual is not None else "something"
        return f"there would be {found} that no operation gives."
    if actual is None:
        return f"the {piece.kind.value} of its text would be swallowed by what stands before it."
    if mismatch.why in ("merged", "split"):
        return "the list items of its text would not form the lists that they form on their own."
    if mismatch.why == "parent":
        return "its list item would not stand where its sibling stands."
    if actual.kind is piece.kind:
        return f"the {piece.kind.value} of its text would be merged with, or split by, what stands beside it."
    return f"the {piece.kind.value} of its text would be read as a {actual.kind.value} there."


def _hint(plan: Plan, proposal: MarkdownDocument, edits: TextEdits, mismatch: Mismatch, harmed: Element | None) -> str:
    if mismatch.why == "bytes" and harmed is not None and len(harmed.segments) > 1:
        return "Use replace_subtree on that item to say how its text reads then."
    if mismatch.why == "merged" and harmed is not None:
        return "Lists with the same marker that meet become one; keep an element between them, or use another marker."
    holder = mismatch.actual
    if harmed is not None:
        holder = proposal.element_at(edits.shifted(harmed.start)) or holder
        while holder is not None and holder.parent is not None:
            holder = proposal.elements[holder.parent]
    if holder is not None and holder.kind is ElementKind.CODE and not holder.own_bytes.lstrip().startswith(_FENCES):
        return "Indented code goes on over blank lines: keep another element in between, or give it a fence."
    if holder is None:
        holder = proposal.elements[-1] if proposal.elements else None
    return _HINTS.get(holder.kind, "") if holder is not None else "Read the document again and choose another place."
