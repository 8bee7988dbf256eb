"""Rules for the texts of operations: what may take the place of what, judged on the text alone."""

from local_vector_search_mcp.editing.fragments import Fragment, refuse_fragment
from local_vector_search_mcp.editing.list_edits import is_item, marker_of, read_marker
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes


def check_one(element: Element, fragment: Fragment) -> None:
    """Refuse a text that is not one element which may take an element's place.

    Raises:
        StructureChanged: Its count, kind or heading level is wrong.
    """
    pieces = fragment.pieces
    if len(pieces) != 1:
        kinds = ", ".join(piece.kind.value for piece in pieces[:5])
        raise refuse_fragment(
            f"The text must be exactly one element, but on its own it is {len(pieces)} ({kinds}); give one of them, "
            "and the others with insert_after."
        )
    piece = pieces[0]
    if element.kind is ElementKind.HEADING:
        if piece.kind is not ElementKind.HEADING or piece.level != element.level:
            found = f"a level-{piece.level} heading" if piece.kind is ElementKind.HEADING else f"a {piece.kind.value}"
            raise refuse_fragment(
                f"{element.logical} is a level-{element.level} heading and is replaced by one of that level; the text "
                f"is {found}. Use replace_section to change more."
            )
    elif piece.kind is ElementKind.HEADING:
        raise refuse_fragment(
            f"{element.logical} is a {element.kind.value} and cannot become a heading, which would change the "
            "sections; insert the heading and delete this element."
        )


def check_section(heading: Element, fragment: Fragment) -> None:
    """Refuse a text that is not one section of a heading's level.

    Raises:
        StructureChanged: It does not start with such a heading, or holds one that is not deeper.
    """
    first = fragment.pieces[0]
    if first.kind is not ElementKind.HEADING or first.level != heading.level:
        found = f"a level-{first.level} heading" if first.kind is ElementKind.HEADING else f"a {first.kind.value}"
        raise refuse_fragment(
            f"The text of replace_section must start with a level-{heading.level} heading, as {heading.logical} is; "
            f"it starts with {found}."
        )
    for piece in fragment.pieces[1:]:
        if piece.kind is ElementKind.HEADING and (piece.level or 0) <= (heading.level or 0):
            raise refuse_fragment(
                f"After its first heading the text of replace_section may hold only headings deeper than level "
                f"{heading.level}, but it holds one of level {piece.level}; insert that section with insert_after or "
                "insert_before."
            )


def refuse_headings(heading: Element, fragment: Fragment) -> None:
    """Refuse a text that would end the section that it is put into.

    Raises:
        StructureChanged: It holds a heading of the section's level or a higher one.
    """
    for piece in fragment.pieces:
        if piece.kind is ElementKind.HEADING and (piece.level or 0) <= (heading.level or 0):
            raise refuse_fragment(
                f"The text holds a level-{piece.level} heading, which would end the section of {heading.logical} "
                f"(level {heading.level}) right there; use deeper headings, or insert it beside another element."
            )


def check_rewritten(document: MarkdownDocument, element: Element, own: bytes) -> None:
    """Refuse a rewritten text that is not one element of its kind on its own.

    Raises:
        StructureChanged: It is not, or the text of a list item lost its marker.
    """
    if is_item(element):
        marker = read_marker(own.lstrip(b" \t"))
        if marker is None or marker.kind != marker_of(document, element).kind:
            raise refuse_fragment(f"The replacement would take the list marker off {element.logical}.")
        return
    elements = _alone(element, own)
    if _is_like(element, elements) or not _is_like(element, _alone(element, element.own_bytes)):
        # What reads otherwise on its own anyway is judged in its place.
        return
    kinds = ", ".join(found.kind.value for found in elements[:5]) or "nothing"
    raise refuse_fragment(
        f"With the text replaced, {element.logical} would not stay one {element.kind.value}"
        f"{'' if element.level is None else f' of level {element.level}'}: it would be {kinds}. Use "
        "replace_element or replace_section to change its form."
    )


def _alone(element: Element, own: bytes) -> tuple[Element, ...]:
    return parse_bytes(own if element.kind is ElementKind.FRONTMATTER else b"\n" + own).elements


def _is_like(element: Element, found: tuple[Element, ...]) -> bool:
    return len(found) == 1 and found[0].kind is element.kind and found[0].level == element.level
