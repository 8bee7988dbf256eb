"""The promises of the Markdown model, checked on one document without using the code that keeps them."""

import re

import xxhash

from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.pointers import parse_pointer
from local_vector_search_mcp.markdown.resolve import resolve

_BLANK = re.compile(rb"[ \t\r\n]*")
_ENDING = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_LEAVES = {
    ElementKind.PARAGRAPH: "p",
    ElementKind.CODE: "code",
    ElementKind.LIST_ITEM: "li",
    ElementKind.BLOCK_QUOTE: "q",
    ElementKind.TABLE: "t",
    ElementKind.HTML: "html",
    ElementKind.MATH: "math",
    ElementKind.FOOTNOTE: "fn",
    ElementKind.DEFINITION: "ref",
    ElementKind.RULE: "hr",
}


def check_promises(data: bytes) -> MarkdownDocument:
    """Assert the five properties, and what follows from the rules of ranges, addresses and hashes."""
    document = parse_bytes(data)
    _check_coverage(document)
    _check_ranges(document)
    _check_addresses(document)
    _check_hashes(document)
    _check_items(document)
    _check_pointers(document)
    _check_repeatable(document)
    return document


def line_starts(data: bytes) -> list[int]:
    """The offset of each line's first byte, counted without the code under test."""
    first = len(_BOM) if data.startswith(_BOM) else 0
    return [first, *(match.end() for match in _ENDING.finditer(data, first))]


def hash_of(data: bytes) -> str:
    """XXH64 with seed 0 as 16 hex digits."""
    return xxhash.xxh64(data, seed=0).hexdigest()


def _check_coverage(document: MarkdownDocument) -> None:
    """Between top-level ranges, before the first and after the last there is nothing but blank lines."""
    data = document.source.data
    at = len(_BOM) if data.startswith(_BOM) else 0
    for element in document.top_level:
        assert element.start >= at, f"{element} overlaps what is before it"
        assert _BLANK.fullmatch(data, at, element.start), f"something before {element} is in no element"
        at = element.end
    assert _BLANK.fullmatch(data, at), "something at the end is in no element"


def _check_ranges(document: MarkdownDocument) -> None:
    """Ranges are whole lines without the last ending, and end with a line that is not blank."""
    data = document.source.data
    starts = line_starts(data)
    ends = {match.start() for match in _ENDING.finditer(data)} | {len(data)}
    for element in document.elements:
        first, last = element.lines
        assert starts[first - 1] <= element.start < element.end
        assert element.end in ends, f"{element} does not end where a line does"
        assert starts[last - 1] < element.end
        assert data[starts[last - 1] : element.end].strip(b" \t"), f"{element} ends with a blank line"
        on_parents_line = element.parent is not None and document.elements[element.parent].lines[0] == first
        assert on_parents_line == (element.start != starts[first - 1])
        assert document.element_at(element.end - 1) is not None
    offsets = [element.start for element in document.elements]
    assert offsets == sorted(offsets)


def _check_addresses(document: MarkdownDocument) -> None:
    """Addresses follow from kinds, levels and nesting alone."""
    open_headings: list[tuple[int, str]] = []
    children: dict[str, int] = {}
    counts: dict[str, int] = {}
    section = ""
    for place, element in enumerate(document.elements):
        assert element.index == place
        if element.kind is ElementKind.FRONTMATTER:
            assert place == 0
            expected = "frontmatter"
        elif element.kind is ElementKind.HEADING:
            assert element.level is not None
            while open_headings and open_headings[-1][0] >= element.level:
                open_headings.pop()
            above = open_headings[-1][1] if open_headings else ""
            children[above] = children.get(above, 0) + 1
            section = expected = f"{above}.{children[above]}".lstrip(".")
            open_headings.append((element.level, section))
        else:
            holder = section if element.parent is None else document.elements[element.parent].logical
            stem = f"{holder}.{_LEAVES[element.kind]}".lstrip(".")
            counts[stem] = counts.get(stem, 0) + 1
            expected = f"{stem}{counts[stem]}"
        assert element.logical == expected
        assert element.section == section
        assert len(element.heading_path) == len(open_headings)


def _check_hashes(document: MarkdownDocument) -> None:
    data = document.source.data
    for element in document.elements:
        own = b"\n".join(segment.slice(data) for segment in element.segments)
        assert element.self_hash == hash_of(own)
        assert element.text.encode() == own
        end = _section_end(document, element) if element.kind is ElementKind.HEADING else element.end
        assert element.section_end == end
        assert element.subtree_hash == hash_of(data[element.start : end])
        assert element.pointer == f"{element.logical}~{element.self_hash}~{element.subtree_hash}"
    assert document.source_hash == hash_of(data)


def _section_end(document: MarkdownDocument, heading: Element) -> int:
    end = heading.end
    for element in document.elements[heading.index + 1 :]:
        if element.level is not None and heading.level is not None and element.level <= heading.level:
            break
        end = max(end, element.end)
    return end


def _check_items(document: MarkdownDocument) -> None:
    """An item's own segments and its nested items are its range, but for blank lines."""
    data = document.source.data
    for element in document.elements:
        if element.kind is not ElementKind.LIST_ITEM:
            assert element.parent is None
            assert element.list_id is None
            continue
        children = document.children(element)
        assert all(child.list_id is not None and child.depth == element.depth + 1 <= 50 for child in children)
        pieces = sorted([*((s.start, s.end) for s in element.segments), *((c.start, c.end) for c in children)])
        at = element.start
        for start, end in pieces:
            assert start >= at
            assert _BLANK.fullmatch(data, at, start)
            at = end
        assert at == element.end
        assert pieces[0][0] == element.start


def _check_pointers(document: MarkdownDocument) -> None:
    assert len({element.logical for element in document.elements}) == len(document.elements)
    for element in document.elements:
        for pointer in (
            element.pointer,
            element.logical,
            element.pointer.upper().replace(element.logical.upper(), element.logical),
        ):
            found = resolve(document, parse_pointer(pointer))
            assert found.element is element
            assert found.relocated_from is None


def _check_repeatable(document: MarkdownDocument) -> None:
    data = document.source.data
    pointers = [element.pointer for element in document.elements]
    assert [element.pointer for element in parse_bytes(data).elements] == pointers
    ended = data if not data or data.endswith((b"\n", b"\r")) else data + b"\n"
    for blank in (b"\n", b"\r\n\r\n", b" \t\n\n", b"\n  "):
        assert [element.pointer for element in parse_bytes(ended + blank).elements] == pointers
    for element in document.elements:
        cut = element.range.slice(data)
        assert data[: element.start] + cut + data[element.end :] == data
