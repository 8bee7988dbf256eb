"""Sections: the tree of a document's headings, with the size of what each owns."""

import re
from bisect import bisect_left
from dataclasses import dataclass

from local_vector_search_mcp.markdown.elements import Element, ElementKind, Heading, MarkdownDocument

_PATH_OF_HEADINGS = re.compile(r"::|[/>]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineNode:
    """A heading in the outline.

    Attributes:
        bytes: The size of its section range.
        elements: How many elements the section holds: the heading itself, nested items and deeper sections included.
        children: The headings directly below it, in order.
    """

    element: Element
    bytes: int
    elements: int
    children: tuple["OutlineNode", ...]


def outline(document: MarkdownDocument, top: Element | None = None, *, max_depth: int = 6) -> tuple[OutlineNode, ...]:
    """The tree of headings; empty where there are none.

    Args:
        top: Only this heading's tree, as the one node.
        max_depth: How many levels of the tree are given, >= 1.
    """
    headings = [
        heading
        for heading in document.headings
        if top is None or top.start <= heading.start < max(top.section_end, top.start + 1)
    ]
    # Built from the last heading to the first, so that every node's children are known when it is made.
    pending: dict[int, list[OutlineNode]] = {}
    base = min((depth(heading) for heading in headings), default=1)
    for heading in reversed(headings):
        level = depth(heading)
        children = pending.pop(level + 1, [])
        if level - base >= max_depth:
            continue
        node = OutlineNode(
            element=heading,
            bytes=heading.section_end - heading.start,
            elements=bisect_left(document.starts, heading.section_end) - heading.index,
            children=tuple(reversed(children)),
        )
        pending.setdefault(level, []).append(node)
    return tuple(reversed(pending.get(base, [])))


def depth(heading: Element) -> int:
    """How deep a heading stands in the tree, from 1; skipped levels do not count."""
    return heading.logical.count(".") + 1


def headings_like(document: MarkdownDocument, name: str) -> tuple[Heading, ...]:
    """The headings that somebody may mean who gives a heading's text, or a path of such texts, in document order.

    Args:
        name: With or without ``#`` marks; letter case does not count, and the heading may hold more.
    """
    wanted = _PATH_OF_HEADINGS.split(name.split("~")[0])[-1].strip().strip("#").strip().casefold()
    return tuple(heading for heading in document.headings if wanted and wanted in heading.heading_text.casefold())


def section_elements(document: MarkdownDocument, heading: Element) -> tuple[Element, ...]:
    """The elements of a heading's section in order of their first byte, the heading first."""
    if heading.kind is not ElementKind.HEADING:
        raise ValueError(f"{heading.logical} is no heading")
    return document.elements[heading.index : bisect_left(document.starts, heading.section_end)]
