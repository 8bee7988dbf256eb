"""Fragments: supplied Markdown in the document's line endings, parsed on its own, and what it must look like.

A fragment is judged before the document is: a text of the wrong count, kind, level, marker or indentation is
``STRUCTURE_CHANGED`` with the reason ``fragment``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from local_vector_search_mcp.editing.list_edits import ItemMarker, marker_of, read_marker
from local_vector_search_mcp.errors import InvalidArgument, StructureChanged, StructureReason
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.source import ByteRange, SourceText

_ENDING = re.compile(r"\r\n|\r|\n")
_LEADING_BLANK_LINES = re.compile(rb"(?:[ \t]*(?:\r\n|\r|\n))+")
_LAST_ENDING = re.compile(rb"(?:\r\n|\r|\n)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One element that a text gives on its own.

    Attributes:
        kind: What it is.
        own_bytes: Its own bytes as they will stand in the document, an item's segments joined by ``\\n``.
        parent: The place of the enclosing item among the pieces; None at the top of the fragment.
        list_id: Which list of the fragment an item belongs to.
        level: A heading's level.
    """

    kind: ElementKind
    own_bytes: bytes
    parent: int | None = None
    list_id: int | None = None
    level: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A supplied or moved text: its bytes as they go into the document, and the elements it gives.

    Attributes:
        content: The bytes, without a last line ending.
        pieces: Its elements in order of their first byte, nested items included; never empty.
        first_marker: The marker of its first element, if that is a list item.
        last_marker: The marker of its last top-level element, if that is a list item.
    """

    content: bytes
    pieces: tuple[Piece, ...]
    first_marker: ItemMarker | None = None
    last_marker: ItemMarker | None = None

    @property
    def top(self) -> tuple[Piece, ...]:
        """The pieces that no item of the fragment holds."""
        return tuple(piece for piece in self.pieces if piece.parent is None)


def refuse_fragment(message: str, **details: object) -> StructureChanged:
    """The refusal of a text that is not what its operation takes."""
    return StructureChanged(message, reason=StructureReason.FRAGMENT, details=details)


def ending_in_use(source: SourceText, line: int) -> bytes:
    """The line ending for text supplied at a 1-based line.

    That of the line, else of the line before it, else of the document's first line, else ``\\n``.
    """
    for candidate in (line, line - 1, 1):
        if 1 <= candidate <= source.line_count:
            ending = source.line_ending(candidate)
            if ending is not None:
                return ending.encode("ascii")
    return b"\n"


def encode_text(text: str, ending: bytes, *, keep_bom: bool = False) -> bytes:
    """Supplied text as bytes: every line ending the one in use, and without a leading U+FEFF unless it is to be kept.

    Raises:
        InvalidArgument: It holds a lone surrogate.
    """
    try:
        plain = text if keep_bom else text.removeprefix("\ufeff")
        return _ENDING.sub(ending.decode("ascii"), plain).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument("The text holds a lone surrogate; send valid Unicode.") from error


def without_last_ending(data: bytes) -> bytes:
    """The text without one trailing line ending."""
    return _LAST_ENDING.sub(b"", data, count=1)


def without_blank_ends(data: bytes) -> bytes:
    """The text without blank lines at its ends, and without its last line ending."""
    leading = _LEADING_BLANK_LINES.match(data)
    if leading is not None:
        data = data[leading.end() :]
    core = data.rstrip(b" \t\r\n")
    if not core:
        return b""
    # Blanks at the end of the last line that is not blank are its own.
    rest = data[len(core) :]
    return data[: len(data) - len(rest.lstrip(b" \t"))]


def block_fragment(markdown: str, ending: bytes) -> Fragment:
    """Text that stands among blocks: blank lines at its ends dropped, front matter not looked for.

    Raises:
        StructureChanged: It holds no element.
    """
    content = without_blank_ends(encode_text(markdown, ending))
    # A line before the text keeps a leading "---" from being read as front matter, which it cannot be here.
    document = parse_bytes(b"\n" + content)
    return _fragment(document, content, 1)


def frontmatter_fragment(markdown: str, ending: bytes) -> Fragment:
    """Text that takes the place of front matter.

    Raises:
        StructureChanged: It is not exactly one front matter block.
    """
    content = without_blank_ends(encode_text(markdown, ending))
    document = parse_bytes(content)
    if len(document.elements) != 1 or document.frontmatter is None:
        raise refuse_fragment(
            "Front matter is replaced by front matter: give one block between two '---' lines at column 0 and nothing "
            "else; edit the body by its own pointers."
        )
    return _fragment(document, content, 0)


def item_fragment(markdown: str, ending: bytes, wanted: ItemMarker, *, nested: bool) -> Fragment:
    """Text of one list item that stands where ``wanted`` says.

    Args:
        markdown: The item with its indentation; blank lines at its ends stay.
        ending: The line ending in use.
        wanted: The marker of the item that is replaced or gets a sibling.
        nested: Whether nested items are allowed.

    Raises:
        StructureChanged: It is not one item with that indentation and kind of marker.
    """
    content = without_last_ending(encode_text(markdown, ending))
    first_line = without_blank_ends(content)
    marker = read_marker(first_line)
    on_own_line = wanted.first_on_line
    if marker is None or (on_own_line and marker.indent != wanted.indent) or marker.kind != wanted.kind:
        raise refuse_fragment(_wrong_marker(wanted, marker))
    if not on_own_line and marker.indent:
        raise refuse_fragment("This item starts on its parent's line: its text begins with its marker.")
    stripped, offsets = _without_indent(content, wanted)
    document = parse_bytes(b"\n" + stripped)
    fragment = _fragment(document, content, 1, offsets=offsets)
    top = fragment.top
    if len(top) != 1 or top[0].kind is not ElementKind.LIST_ITEM:
        found = _names([piece.kind for piece in top])
        raise refuse_fragment(
            f"The text must be exactly one list item; on its own it is {found}. Indent what belongs to the item by the "
            "width of its marker, and give other items in operations of their own."
        )
    if not nested and len(fragment.pieces) > 1:
        raise refuse_fragment(
            f"The text holds {len(fragment.pieces) - 1} nested item(s); replace_element keeps the nested items that "
            "are there. Leave them out, or use replace_subtree."
        )
    return fragment


def moved_fragment(document: MarkdownDocument, elements: Sequence[Element], content: ByteRange) -> Fragment:
    """Elements of a document that move with their exact bytes; the first of them is the outermost."""
    base = elements[0].index
    pieces = tuple(_piece(element, base) for element in elements)
    last_top = next(element for element in reversed(elements) if element.parent is None or element.parent < base)
    first = elements[0]
    return Fragment(
        content=content.slice(document.source.data),
        pieces=pieces,
        first_marker=marker_of(document, first) if first.kind is ElementKind.LIST_ITEM else None,
        last_marker=marker_of(document, last_top) if last_top.kind is ElementKind.LIST_ITEM else None,
    )


def _piece(element: Element, base: int) -> Piece:
    parent = element.parent - base if element.parent is not None and element.parent >= base else None
    return Piece(
        kind=element.kind,
        own_bytes=element.own_bytes,
        parent=parent,
        list_id=element.list_id,
        level=element.level,
    )


class _Offsets:
    """Where the bytes of an unindented text stand in the text as it was given."""

    def __init__(self, removed: list[tuple[int, int]]) -> None:
        self.removed = removed  # Per line: its start in the unindented text, and how many bytes were taken so far.

    def original(self, offset: int) -> int:
        """The offset in the given text; of a line's first byte, before its indentation."""
        low, high = 0, len(self.removed)
        while low < high:
            middle = (low + high) // 2
            if self.removed[middle][0] <= offset:
                low = middle + 1
            else:
                high = middle
        start, taken = self.removed[low - 1]
        if offset == start:
            return offset + (self.removed[low - 2][1] if low > 1 else 0)
        return offset + taken


def _without_indent(content: bytes, wanted: ItemMarker) -> tuple[bytes, _Offsets]:
    lines = content.splitlines(keepends=True)
    removed: list[tuple[int, int]] = []
    pieces: list[bytes] = []
    position = taken = 0
    for number, line in enumerate(lines):
        kept = _unindented(line, wanted, first=number == 0)
        taken += len(line) - len(kept)
        removed.append((position, taken))
        position += len(kept)
        pieces.append(kept)
    removed.append((position, taken))
    return b"".join(pieces), _Offsets(removed)


def _unindented(line: bytes, wanted: ItemMarker, *, first: bool) -> bytes:
    if wanted.first_on_line:
        return line.removeprefix(wanted.indent)
    if first:
        return line
    # The item stands behind its parent's marker: its later lines are indented as deep as that marker is wide.
    width = len(wanted.indent)
    return line[width:] if not line[:width].strip(b" ") else line


def _fragment(document: MarkdownDocument, content: bytes, shift: int, *, offsets: _Offsets | None = None) -> Fragment:
    if not document.elements:
        raise refuse_fragment("The text holds no Markdown element; give the text to write, or use delete.")
    pieces = tuple(
        Piece(
            kind=element.kind,
            own_bytes=_own_bytes(element, content, shift, offsets),
            parent=element.parent,
            list_id=element.list_id,
            level=element.level,
        )
        for element in document.elements
    )
    top = document.top_level
    return Fragment(
        content=content,
        pieces=pieces,
        first_marker=_marker(document, top[0]),
        last_marker=_marker(document, top[-1]),
    )


def _own_bytes(element: Element, content: bytes, shift: int, offsets: _Offsets | None) -> bytes:
    if offsets is None:
        return element.own_bytes
    return b"\n".join(
        content[offsets.original(segment.start - shift) : offsets.original(segment.end - shift)]
        if segment.end > segment.start
        else b""
        for segment in element.segments
    )


def _marker(document: MarkdownDocument, element: Element) -> ItemMarker | None:
    return marker_of(document, element) if element.kind is ElementKind.LIST_ITEM else None


def _wrong_marker(wanted: ItemMarker, found: ItemMarker | None) -> str:
    has = "has no list marker" if found is None else f"begins with {found.describe()}"
    hint = "begin it with that marker"
    if found is not None and found.kind == wanted.kind:
        hint = "give every line the indentation that the item has in the document"
    return f"The text must be one list item that begins with {wanted.describe()}, but it {has}; {hint}."


def _names(kinds: Sequence[ElementKind]) -> str:
    shown = ", ".join(kind.value for kind in kinds[:5])
    return f"{len(kinds)} elements ({shown}{', …' if len(kinds) > 5 else ''})" if len(kinds) != 1 else f"one {shown}"
