"""parse(source) to MarkdownDocument: composes front matter, blocks, section numbers and list items."""

from local_vector_search_mcp.markdown.blocks import scan_blocks
from local_vector_search_mcp.markdown.containers import Block
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.frontmatter import find_frontmatter
from local_vector_search_mcp.markdown.lists import own_segments
from local_vector_search_mcp.markdown.source import SourceText, decode_source

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


def parse_bytes(data: bytes) -> MarkdownDocument:
    """Decode and parse a document.

    Raises:
        UnsupportedEncoding: The bytes are not valid UTF-8.
    """
    return parse(decode_source(data))


def parse(source: SourceText) -> MarkdownDocument:
    """The elements of a document. Never fails: every UTF-8 source is some document."""
    builder = _Builder(source)
    body = 0
    frontmatter = find_frontmatter(source)
    if frontmatter is not None:
        builder.add_frontmatter(frontmatter.last)
        body = frontmatter.last + 1
    for block in scan_blocks(source, body):
        builder.add(block)
    builder.close_sections()
    return MarkdownDocument(source, builder.elements)


class _Builder:
    """Numbers blocks and makes elements of them, in order."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.starts = source.line_starts
        self.lines = source.lines
        self.elements: list[Element] = []
        # The open headings, outermost first, each with the number of its child headings so far.
        self.open: list[Element] = []
        self.children: list[int] = [0]
        self.section = ""
        self.prefix = ""
        self.heading: Element | None = None
        self.counts: dict[ElementKind, int] = {}
        self.last_end = source.bom_len

    def add_frontmatter(self, last: int) -> None:
        """Make the front matter's element; it ends at a line (0-based)."""
        self.elements.append(
            Element(
                self.source,
                ElementKind.FRONTMATTER,
                "frontmatter",
                self.source.bom_len,
                self._end(last),
                (1, last + 1),
                0,
                "",
                None,
            )
        )

    def add(self, block: Block) -> None:
        """Make a top-level block's element, and those of its nested items."""
        if block.kind is ElementKind.HEADING:
            element = self._add_heading(block)
        else:
            number = self.counts.get(block.kind, 0) + 1
            self.counts[block.kind] = number
            logical = f"{self.prefix}{_LEAVES[block.kind]}{number}"
            if block.kind is ElementKind.LIST_ITEM:
                element = self._add_items(block, logical)
            else:
                element = self._element(block, block.kind, logical)
        self.last_end = element.end

    def close_sections(self) -> None:
        """End the sections that run to the end of the document."""
        for heading in self.open:
            heading.section_end = self.last_end

    def _add_heading(self, block: Block) -> Element:
        while self.open and (self.open[-1].level or 0) >= block.level:
            self.open.pop().section_end = self.last_end
            self.children.pop()
        self.children[-1] += 1
        above = self.open[-1] if self.open else None
        number = str(self.children[-1])
        self.section = f"{above.logical}.{number}" if above is not None else number
        self.prefix = self.section + "."
        self.counts = {}
        element = self._element(block, ElementKind.HEADING, self.section)
        element.link_heading(element, above)
        element.level = block.level
        self.heading = element
        self.open.append(element)
        self.children.append(0)
        return element

    def _add_items(self, block: Block, logical: str) -> Element:
        """Make an item's element and those of its nested items, without recursion."""
        top = self._element(block, ElementKind.LIST_ITEM, logical)
        stack = [(block, top)]
        while stack:
            item, element = stack.pop()
            if item is not block:
                self.elements.append(element)
            element.index = len(self.elements) - 1
            element.list_id = item.list_id
            element.set_segments(own_segments(self.source, item, element.end))
            nested: list[tuple[Block, Element]] = []
            for number, child in enumerate(item.items, 1):
                made = self._make(child, ElementKind.LIST_ITEM, f"{element.logical}.li{number}")
                made.parent = element.index
                made.depth = element.depth + 1
                nested.append((child, made))
            stack.extend(reversed(nested))
        return top

    def _element(self, block: Block, kind: ElementKind, logical: str) -> Element:
        element = self._make(block, kind, logical)
        self.elements.append(element)
        return element

    def _make(self, block: Block, kind: ElementKind, logical: str) -> Element:
        return Element(
            self.source,
            kind,
            logical,
            block.start,
            self._end(block.last),
            (block.first + 1, block.last + 1),
            len(self.elements),
            self.section,
            self.heading,
        )

    def _end(self, line: int) -> int:
        return self.starts[line] + len(self.lines[line])
