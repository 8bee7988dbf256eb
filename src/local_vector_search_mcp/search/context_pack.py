"""Hits → one bounded, cited Markdown text made of whole elements. Pure.

Every element stands under a line with its full pointer, so that whatever is used of the text can be cited, read
again and patched. Elements of one document stand together and in their order, the document with the best hit first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.search.read_hints import ReadHint

BYTES_PER_TOKEN: Final = 4
"""How tokens are estimated: bytes of UTF-8, divided by this and rounded up."""

_NOT_CONTEXT: Final = frozenset({ElementKind.FRONTMATTER, ElementKind.RULE})


@dataclass(frozen=True, slots=True, kw_only=True)
class PackHit:
    """One hit, best first: its document as it is now, and the element that it points to.

    ``indexed_source_hash`` is of the state that was searched.
    """

    path: str
    document: MarkdownDocument
    element: Element
    indexed_source_hash: str
    collection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One element of a pack. ``read_hint`` is there where only its beginning is."""

    full_pointer: str
    path: str
    pointer: str
    heading_path: tuple[str, ...]
    lines: tuple[int, int]
    indexed_source_hash: str
    read_hint: ReadHint | None = None
    collection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """An element that did not fit, with its size."""

    full_pointer: str
    bytes: int
    collection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPack:
    """The text, what it is made of, in order, and what did not fit."""

    text: str
    citations: tuple[Citation, ...]
    omitted: tuple[Omitted, ...]

    @property
    def tokens(self) -> int:
        """The estimated size of the text."""
        return -(-len(self.text.encode("utf-8")) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """An element as it stands in the text, or its beginning."""

    group: int
    hit: PackHit
    element: Element
    body: str
    read_hint: ReadHint | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands: documents by their best hit, elements in order."""
        return self.group, self.element.index

    @property
    def full_pointer(self) -> str:
        return f"{self.hit.path}::{self.element.pointer}"

    @property
    def rendered(self) -> str:
        """The citation line, a blank line, the element."""
        collection = f"{self.hit.collection}: " if self.hit.collection else ""
        above = (
            self.element.heading_path[:-1] if self.element.kind is ElementKind.HEADING else self.element.heading_path
        )
        headings = f" {' > '.join(above)}" if above else ""
        return f"[{collection}{self.full_pointer}]{headings}\n\n{self.body}\n"

    @property
    def size(self) -> int:
        """Bytes in the text, the blank line before the next element included."""
        return len(self.rendered.encode("utf-8")) + 1


def pack_context(hits: Sequence[PackHit], *, token_budget: int, around: int) -> ContextPack:
    """Make a pack of hits.

    Args:
        hits: Best first.
        token_budget: Most tokens of the text, citation lines included.
        around: How many elements of context each hit brings along on each side.
    """
    # Every block is counted with the blank line before the next one; the last block needs none.
    room = token_budget * BYTES_PER_TOKEN + 1
    groups: dict[tuple[str | None, str], int] = {}
    blocks: list[_Block] = []
    omitted: dict[tuple[str | None, str], Omitted] = {}
    taken: set[tuple[int, int]] = set()
    for number, hit in enumerate(hits):
        group = groups.setdefault((hit.collection, hit.path), len(groups))
        for element in _with_context(hit, around):
            block = _Block(group=group, hit=hit, element=element, body=_source_of(hit.document, element))
            if block.place in taken or any(place in taken for place in _places_above(block)):
                continue
            if block.size > room and number == 0 and not blocks:
                block = _cut(block, room)
            if block.size <= room:
                taken.update({block.place, *_places_below(block)})
                blocks.append(block)
                room -= block.size
            else:
                omitted.setdefault(
                    (hit.collection, block.full_pointer),
                    Omitted(
                        full_pointer=block.full_pointer,
                        bytes=len(block.body.encode("utf-8")),
                        collection=hit.collection,
                    ),
                )
    blocks.sort(key=lambda block: block.place)
    return ContextPack(
        text="\n".join(block.rendered for block in blocks),
        citations=tuple(map(_citation, blocks)),
        omitted=tuple(one for key, one in omitted.items() if not _is_in(key, blocks)),
    )


def _with_context(hit: PackHit, around: int) -> Iterator[Element]:
    """The hit's element, then its neighbours, nearest first; a heading brings what stands under it."""
    top = hit.document.top_level
    main = hit.element
    while main.parent is not None:
        main = hit.document.elements[main.parent]
    place = top.index(main)
    yield main
    after = max(around, 1) if main.kind is ElementKind.HEADING else around
    for distance in range(1, max(after, around) + 1):
        if distance <= after and place + distance < len(top) and top[place + distance].kind not in _NOT_CONTEXT:
            yield top[place + distance]
        if distance <= around and place - distance >= 0 and top[place - distance].kind not in _NOT_CONTEXT:
            yield top[place - distance]


def _source_of(document: MarkdownDocument, element: Element) -> str:
    """The element's own source, nested items of a list item included."""
    place = element.subtree_range if element.kind is ElementKind.LIST_ITEM else element.range
    return place.slice(document.source.data).decode("utf-8")


def _places_above(block: _Block) -> Iterator[tuple[int, int]]:
    above = block.element.parent
    while above is not None:
        yield block.group, above
        above = block.hit.document.elements[above].parent


def _places_below(block: _Block) -> Iterator[tuple[int, int]]:
    if block.element.kind is ElementKind.LIST_ITEM:
        yield from ((block.group, one.index) for one in block.hit.document.descendants(block.element))


def _cut(block: _Block, room: int) -> _Block:
    """The beginning of an element that fits, up to a line end where there is one, with how to read on."""
    data = block.body.encode("utf-8")
    frame = replace(block, body=_cut_mark(block, len(data), len(data)))
    size = max(room - frame.size - 1, 0)
    kept = data[:size].decode("utf-8", errors="ignore").encode("utf-8")
    line_end = max(kept.rfind(b"\n"), kept.rfind(b"\r"))
    if line_end > 0:
        kept = kept[:line_end]
    shown = kept.decode("utf-8").rstrip("\r\n")
    offset = len(shown.encode("utf-8"))
    hint = ReadHint(
        path=block.hit.path, pointer=block.element.pointer, offset=offset or None, collection=block.hit.collection
    )
    return replace(block, body=f"{shown}\n{_cut_mark(block, offset, len(data))}", read_hint=hint)


def _cut_mark(block: _Block, shown: int, size: int) -> str:
    return f"[… cut: {shown} of {size} bytes; read on with kb_read, offset {shown}]"


def _citation(block: _Block) -> Citation:
    return Citation(
        full_pointer=block.full_pointer,
        path=block.hit.path,
        pointer=block.element.pointer,
        heading_path=block.element.heading_path,
        lines=block.element.lines,
        indexed_source_hash=block.hit.indexed_source_hash,
        read_hint=block.read_hint,
        collection=block.hit.collection,
    )


def _is_in(key: tuple[str | None, str], blocks: Sequence[_Block]) -> bool:
    return any((block.hit.collection, block.full_pointer) == key for block in blocks)
