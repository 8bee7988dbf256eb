"""Element, ElementKind and MarkdownDocument: what a document consists of.

Elements are made in great numbers and mostly read in part, so hashes, texts and heading paths are
computed when first asked for. Nothing observable ever changes after that.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cached_property

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.markdown.frontmatter import NO_METADATA, Metadata, parse_metadata
from local_vector_search_mcp.markdown.inline import DefinedLabels, heading_content, plain_text
from local_vector_search_mcp.markdown.source import ByteRange, SourceText


class ElementKind(StrEnum):
    """What an element is."""

    DOCUMENT = "document"
    FRONTMATTER = "frontmatter"
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    CODE = "code"
    LIST_ITEM = "list_item"
    BLOCK_QUOTE = "block_quote"
    TABLE = "table"
    HTML = "html"
    MATH = "math"
    FOOTNOTE = "footnote"
    DEFINITION = "definition"
    RULE = "rule"


class Element:
    """One addressable piece of a document; headings and list items are subclasses. Compared by identity.

    Attributes:
        kind: What it is.
        logical: Its address, such as ``1.2.p3``.
        start, end: Its byte range; of a list item the subtree range.
        first_line, last_line: Of its range, from 1, inclusive.
        index: Its place in ``document.elements``.
        heading: The heading whose section it stands in; of a heading, itself. None before the first heading.
    """

    __slots__ = (
        "_self_hash",
        "_source",
        "end",
        "first_line",
        "heading",
        "index",
        "kind",
        "last_line",
        "logical",
        "start",
    )

    def __init__(
        self,
        source: SourceText,
        kind: ElementKind,
        logical: str,
        start: int,
        end: int,
        first_line: int,
        last_line: int,
        index: int,
        heading: "Heading | None",
    ) -> None:
        self._source = source
        self.kind = kind
        self.logical = logical
        self.start = start
        self.end = end
        self.first_line = first_line
        self.last_line = last_line
        self.index = index
        self.heading = heading
        self._self_hash: str | None = None

    def __repr__(self) -> str:
        return f"<Element {self.logical} {self.kind.value} [{self.start}, {self.end})>"

    @property
    def lines(self) -> tuple[int, int]:
        """The first and last line of the range, from 1, inclusive."""
        return self.first_line, self.last_line

    @property
    def section(self) -> str:
        """The number of the section it stands in, or is; empty before the first heading."""
        return "" if self.heading is None else self.heading.logical

    @property
    def parent(self) -> int | None:
        """The index of the list item that holds it; None at top level."""
        return None

    @property
    def level(self) -> int | None:
        """A heading's level; None for every other kind."""
        return None

    @property
    def list_id(self) -> int | None:
        """Which list an item belongs to; items of one list share it. None for every other kind."""
        return None

    @property
    def depth(self) -> int:
        """1 at top level; of a nested item one more than its parent's."""
        return 1

    @property
    def section_end(self) -> int:
        """Where the subtree range ends."""
        return self.end

    @property
    def range(self) -> ByteRange:
        """The element's bytes: whole lines without the last ending. Of a list item: with its nested items."""
        return ByteRange(self.start, self.end)

    @property
    def subtree_range(self) -> ByteRange:
        """What the element owns: a heading's section, an item with its nested items; else its range."""
        return ByteRange(self.start, self.section_end)

    @property
    def segments(self) -> tuple[ByteRange, ...]:
        """The ranges of the element's own text; several only for an item whose text goes on after nested ones."""
        return (ByteRange(self.start, self.end),)

    @property
    def own_bytes(self) -> bytes:
        """The self hash's input: the range's bytes; of an item its segments joined by ``\\n``."""
        return self._source.data[self.start : self.end]

    @property
    def text(self) -> str:
        """The element's own source as text."""
        return self.own_bytes.decode("utf-8")

    @property
    def self_hash(self) -> str:
        """The hash of the own bytes; of a heading, of the heading alone."""
        if self._self_hash is None:
            self._self_hash = xxh64_hex(self.own_bytes)
        return self._self_hash

    @property
    def subtree_hash(self) -> str:
        """The hash of the section (heading) or subtree (list item); else the self hash."""
        return self.self_hash

    @property
    def pointer(self) -> str:
        """The public pointer ``logical~selfHash~subtreeHash``."""
        return f"{self.logical}~{self.self_hash}~{self.subtree_hash}"

    @property
    def heading_text(self) -> str | None:
        """The plain text of a heading; None for every other kind."""
        return None

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The plain texts of the headings above, outermost first; a heading's own path ends with itself."""
        return () if self.heading is None else self.heading.heading_path


class Heading(Element):
    """A heading with the section that it owns.

    Attributes:
        above: The heading above it in the tree; None at the top.
    """

    __slots__ = ("_heading_path", "_heading_text", "_labels", "_level", "_section_end", "_subtree_hash", "above")

    def __init__(
        self,
        source: SourceText,
        logical: str,
        start: int,
        end: int,
        first_line: int,
        last_line: int,
        index: int,
        above: "Heading | None",
        level: int,
        labels: DefinedLabels,
    ) -> None:
        super().__init__(source, ElementKind.HEADING, logical, start, end, first_line, last_line, index, self)
        self.above = above
        self._level = level
        self._labels = labels
        self._section_end = end
        self._subtree_hash: str | None = None
        self._heading_path: tuple[str, ...] | None = None
        self._heading_text: str | None = None

    def end_section(self, end: int) -> None:
        """Say where the section ends; for the parser, once."""
        self._section_end = end

    @property
    def level(self) -> int:
        """From 1 to 6."""
        return self._level

    @property
    def section_end(self) -> int:
        """The end of the last element before the next heading of the same or a smaller level."""
        return self._section_end

    @property
    def subtree_hash(self) -> str:
        """The hash of the section range."""
        if self._subtree_hash is None:
            self._subtree_hash = xxh64_hex(memoryview(self._source.data)[self.start : self._section_end])
        return self._subtree_hash

    @property
    def heading_text(self) -> str:
        """The plain text."""
        if self._heading_text is None:
            self._heading_text = plain_text(heading_content(self.text), self._labels)
        return self._heading_text

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The plain texts of the headings above and of this one."""
        if self._heading_path is None:
            above = () if self.above is None else self.above.heading_path
            self._heading_path = (*above, self.heading_text)
        return self._heading_path


class ListItem(Element):
    """An item of a list, with its nested items in its range."""

    __slots__ = ("_depth", "_list_id", "_parent", "_segments", "_subtree_hash")

    def __init__(
        self,
        source: SourceText,
        logical: str,
        start: int,
        end: int,
        first_line: int,
        last_line: int,
        index: int,
        heading: Heading | None,
        list_id: int,
    ) -> None:
        super().__init__(source, ElementKind.LIST_ITEM, logical, start, end, first_line, last_line, index, heading)
        self._list_id = list_id
        self._parent: int | None = None
        self._depth = 1
        self._segments: tuple[ByteRange, ...] | None = None
        self._subtree_hash: str | None = None

    def nest(self, parent: int, depth: int) -> None:
        """Say which item holds it; for the parser, once."""
        self._parent = parent
        self._depth = depth

    def split(self, segments: tuple[ByteRange, ...]) -> None:
        """Give its own segments, where it holds nested items; for the parser, once."""
        self._segments = segments

    @property
    def parent(self) -> int | None:
        """The index of the item that holds it; None at top level."""
        return self._parent

    @property
    def list_id(self) -> int:
        """Which list it belongs to."""
        return self._list_id

    @property
    def depth(self) -> int:
        """1 at top level."""
        return self._depth

    @property
    def segments(self) -> tuple[ByteRange, ...]:
        """The runs of its lines that belong to no direct nested item."""
        return (self.range,) if self._segments is None else self._segments

    @property
    def own_bytes(self) -> bytes:
        """The segments joined by ``\\n``."""
        data = self._source.data
        if self._segments is None:
            return data[self.start : self.end]
        return b"\n".join([data[segment.start : segment.end] for segment in self._segments])

    @property
    def subtree_hash(self) -> str:
        """The hash of the subtree range; where nothing is nested, the self hash."""
        if self._segments is None:
            return self.self_hash
        if self._subtree_hash is None:
            self._subtree_hash = xxh64_hex(memoryview(self._source.data)[self.start : self.end])
        return self._subtree_hash


class MarkdownDocument:
    """A parsed document: its source, its elements in order of their first byte, nested items included, and
    the labels that it defines.
    """

    def __init__(self, source: SourceText, elements: Sequence[Element], labels: DefinedLabels) -> None:
        self.source = source
        self.labels = labels
        self.elements: tuple[Element, ...] = tuple(elements)

    @property
    def source_hash(self) -> str:
        """The hash of the document's bytes."""
        return self.source.source_hash

    @cached_property
    def top_level(self) -> tuple[Element, ...]:
        """The elements that no list item holds; their ranges are disjoint."""
        return tuple(element for element in self.elements if element.parent is None)

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        """The headings in document order."""
        return tuple(element for element in self.elements if isinstance(element, Heading))

    @property
    def frontmatter(self) -> Element | None:
        """The front matter, where there is one."""
        if self.elements and self.elements[0].kind is ElementKind.FRONTMATTER:
            return self.elements[0]
        return None

    @cached_property
    def _by_logical(self) -> dict[str, Element]:
        return {element.logical: element for element in self.elements}

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each element's first byte; rising."""
        return [element.start for element in self.elements]

    @cached_property
    def owners(self) -> list[int | None]:
        """Per element the index of the heading whose section it stands in; of a heading, of the one above."""
        owners: list[int | None] = []
        above: list[Heading] = []
        for element in self.elements:
            if isinstance(element, Heading):
                while above and above[-1].level >= element.level:
                    above.pop()
            owners.append(above[-1].index if above else None)
            if isinstance(element, Heading):
                above.append(element)
        return owners

    def by_logical(self, logical: str) -> Element | None:
        """The element at an address, or None."""
        return self._by_logical.get(logical)

    @cached_property
    def _by_self_hash(self) -> dict[tuple[ElementKind, str], list[Element]]:
        found: dict[tuple[ElementKind, str], list[Element]] = {}
        for element in self.elements:
            found.setdefault((element.kind, element.self_hash), []).append(element)
        return found

    def by_self_hash(self, kind: ElementKind, self_hash: str) -> Sequence[Element]:
        """The elements of a kind with a self hash, in document order."""
        return self._by_self_hash.get((kind, self_hash), ())

    def element_at(self, offset: int) -> Element | None:
        """The innermost element whose range holds the byte at ``offset``, or None (blank lines, BOM)."""
        place = bisect_right(self.starts, offset) - 1
        while place >= 0:
            element = self.elements[place]
            if offset < element.end:
                return element
            if element.parent is None:
                return None
            place = element.parent
        return None

    def children(self, element: Element) -> tuple[Element, ...]:
        """The direct nested items of a list item, in order; empty for every other element."""
        return tuple(other for other in self.descendants(element) if other.parent == element.index)

    def descendants(self, element: Element) -> Iterator[Element]:
        """All nested items of a list item, in order of their first byte."""
        if element.kind is not ElementKind.LIST_ITEM:
            return
        for place in range(element.index + 1, len(self.elements)):
            other = self.elements[place]
            if other.start >= element.end:
                return
            yield other

    @cached_property
    def metadata(self) -> Metadata:
        """The front matter's values; empty without front matter, with a warning where it does not parse."""
        return parse_metadata(self.frontmatter.own_bytes) if self.frontmatter is not None else NO_METADATA

    @cached_property
    def title(self) -> str | None:
        """The front matter's title, else the first level-1 heading, else the first heading, else None."""
        if self.metadata.title:
            return self.metadata.title
        first = next((heading for heading in self.headings if heading.level == 1), None)
        if first is None and self.headings:
            first = self.headings[0]
        return (first.heading_text or None) if first is not None else None
