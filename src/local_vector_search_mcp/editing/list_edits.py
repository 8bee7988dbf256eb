"""List items: their markers, their indentation, and which items can stand side by side."""

import re
from dataclasses import dataclass

from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument

_MARKER = re.compile(rb"([ \t]*)(?:([-+*])|([0-9]{1,9})([.)]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMarker:
    """How a list item begins.

    Attributes:
        indent: The bytes of its line before its marker; blanks only, unless it starts on another item's line.
        kind: ``-``, ``+``, ``*``, or an ordered list's delimiter, ``.`` or ``)``.
        first_on_line: Whether nothing but blanks stands before the marker.
    """

    indent: bytes
    kind: str
    first_on_line: bool = True

    @property
    def ordered(self) -> bool:
        """Whether it is a number."""
        return self.kind in ".)"

    def joins(self, other: "ItemMarker") -> bool:
        """Whether two items side by side belong to one list."""
        return self == other and self.first_on_line

    def describe(self) -> str:
        """The marker in words, with its indentation."""
        shown = f"a number followed by {self.kind!r}" if self.ordered else repr(self.kind)
        width = len(self.indent)
        if not width:
            return f"{shown} without indentation"
        return f"{shown} indented by {self.indent.decode('utf-8', 'replace')!r} ({width} characters)"


def read_marker(line: bytes) -> ItemMarker | None:
    """The marker that a line begins with; None where it begins with none."""
    match = _MARKER.match(line)
    if match is None:
        return None
    kind = match.group(2) or match.group(4)
    return ItemMarker(indent=match.group(1), kind=kind.decode("ascii"))


def marker_of(document: MarkdownDocument, item: Element) -> ItemMarker:
    """The marker of a list item of a document."""
    source = document.source
    line_start = source.line_starts[item.lines[0] - 1]
    before = source.data[line_start : item.start]
    marker = read_marker(source.data[item.start : item.end])
    if marker is None:
        raise ValueError(f"{item.logical} does not begin with a list marker")
    if not before:
        return marker
    return ItemMarker(indent=before + marker.indent, kind=marker.kind, first_on_line=not before.strip(b" \t"))


def holds_item_on_first_line(document: MarkdownDocument, item: Element) -> bool:
    """Whether a nested item starts on the item's own first line, as in ``- - a``."""
    following = item.index + 1
    if following >= len(document.elements):
        return False
    nested = document.elements[following]
    return nested.parent == item.index and nested.lines[0] == item.lines[0]


def is_item(element: Element) -> bool:
    """Whether an element is a list item."""
    return element.kind is ElementKind.LIST_ITEM


def subtree_end_index(document: MarkdownDocument, element: Element) -> int:
    """The index after the last element nested in an item; after the element itself for every other kind."""
    index = element.index + 1
    if is_item(element):
        elements = document.elements
        while index < len(elements) and elements[index].start < element.end:
            index += 1
    return index


def section_end_index(document: MarkdownDocument, heading: Element) -> int:
    """The index after the last element of a heading's section, items nested in it included."""
    end = heading.subtree_range.end
    elements = document.elements
    low, high = heading.index + 1, len(elements)
    while low < high:
        middle = (low + high) // 2
        if elements[middle].start < end:
            low = middle + 1
        else:
            high = middle
    return low


def last_item_before(document: MarkdownDocument, index: int) -> Element | None:
    """The top-level list item that ends right before the element at an index, if what stands there is one."""
    if index <= 0:
        return None
    element = document.elements[index - 1]
    while element.parent is not None:
        element = document.elements[element.parent]
    return element if is_item(element) else None
