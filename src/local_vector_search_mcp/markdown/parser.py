"""parse(source) to MarkdownDocument: composes front matter, blocks, section numbers and list items."""

from local_vector_search_mcp.markdown.blocks import Leaf, scan_blocks
from local_vector_search_mcp.markdown.containers import Block
from local_vector_search_mcp.markdown.elements import Element, ElementKind, Heading, ListItem, MarkdownDocument
from local_vector_search_mcp.markdown.frontmatter import find_frontmatter
from local_vector_search_mcp.markdown.inline import DefinedLabels
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


def parse(source: SourceText, leaves: list[Leaf] | None = None) -> MarkdownDocument:
    """The elements of a document. Never fails: every UTF-8 source is some document.

    Args:
        source: The document.
        leaves: Gets the document's leaves, which ``links.survey`` would otherwise scan for once more.
    """
    builder = _Builder(source)
    body = 0
    frontmatter = find_frontmatter(source)
    if frontmatter is not None:
        builder.add_frontmatter(frontmatter.last)
        body = frontmatter.last + 1
    scan_blocks(source, body, builder.add, builder.labels, leaves)
    builder.close_sections()
    return MarkdownDocument(source, builder.elements, builder.labels)


class _Builder:
    """Numbers blocks and makes elements of them, in order."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.starts = source.line_starts
        self.lines = source.lines
        self.labels = DefinedLabels()
        self.elements: list[Element] = []
        # The open headings, outermost first; beside each, and before the first, the number of child headings so far.
        self.open: list[Heading] = []
        self.children: list[int] = [0]
        self.prefix = ""
        self.heading: Heading | None = None
        self.counts: dict[ElementKind, int] = {}
        self.last_end = source.bom_len

    def add_frontmatter(self, last: int) -> None:
        """Make the front matter's element; it ends at a line (from 0)."""
        start, end = self.source.bom_len, self.starts[last] + len(self.lines[last])
        kind = ElementKind.FRONTMATTER
        self.elements.append(Element(self.source, kind, "frontmatter", start, end, 1, last + 1, 0, None))

    def add(self, block: Block) -> None:
        """Make a top-level block's element, and those of its nested items."""
        kind = block.kind
        if kind is ElementKind.HEADING:
            self._add_heading(block)
            return
        number = self.counts.get(kind, 0) + 1
        self.counts[kind] = number
        logical = f"{self.prefix}{_LEAVES[kind]}{number}"
        if kind is ElementKind.LIST_ITEM:
            self._add_item(block, logical)
            return
        last = block.last
        self.last_end = end = self.starts[last] + len(self.lines[last])
        self.elements.append(
            Element(
                self.source,
                kind,
                logical,
                block.start,
                end,
                block.first + 1,
                last + 1,
                len(self.elements),
                self.heading,
            )
        )

    def close_sections(self) -> None:
        """End the sections that run to the end of the document."""
        for heading in self.open:
            heading.end_section(self.last_end)

    def _add_heading(self, block: Block) -> None:
        while self.open and self.open[-1].level >= block.level:
            self.open.pop().end_section(self.last_end)
            self.children.pop()
        self.children[-1] += 1
        above = self.open[-1] if self.open else None
        number = str(self.children[-1])
        logical = f"{above.logical}.{number}" if above is not None else number
        last = block.last
        self.last_end = end = self.starts[last] + len(self.lines[last])
        heading = Heading(
            self.source,
            logical,
            block.start,
            end,
            block.first + 1,
            last + 1,
            len(self.elements),
            above,
            block.level,
            self.labels,
        )
        self.elements.append(heading)
        self.prefix = logical + "."
        self.counts = {}
        self.heading = heading
        self.open.append(heading)
        self.children.append(0)

    def _add_item(self, block: Block, logical: str) -> None:
        """Make an item's element and, before any later one, those of its nested items; without recursion."""
        item = self._item(block, logical)
        self.last_end = item.end
        if block.items is None:
            return
        stack = self._nested(block, item)
        while stack:
            nested, address, parent = stack.pop()
            made = self._item(nested, address)
            made.nest(parent.index, parent.depth + 1)
            if nested.items is not None:
                stack.extend(self._nested(nested, made))

    def _nested(self, block: Block, item: ListItem) -> list[tuple[Block, str, ListItem]]:
        """Split an item around its nested ones, and list these with their addresses, the last first."""
        item.split(own_segments(self.source, block, item.end))
        items = block.items or []
        return [(nested, f"{item.logical}.li{number}", item) for number, nested in enumerate(items, 1)][::-1]

    def _item(self, block: Block, logical: str) -> ListItem:
        last = block.last
        item = ListItem(
            self.source,
            logical,
            block.start,
            self.starts[last] + len(self.lines[last]),
            block.first + 1,
            last + 1,
            len(self.elements),
            self.heading,
            block.list_id,
        )
        self.elements.append(item)
        return item
