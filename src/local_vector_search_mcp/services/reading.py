"""ReadingService: slices and outlines of documents as they are now (``kb_read``, ``kb_outline``)."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

from local_vector_search_mcp.errors import InvalidArgument, InvalidPointer, KnowledgeBaseError
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.links import extract_tags
from local_vector_search_mcp.markdown.pointers import DOCUMENT, Pointer, parse_pointer, split_full_pointer
from local_vector_search_mcp.markdown.resolve import resolve
from local_vector_search_mcp.markdown.sections import OutlineNode, outline
from local_vector_search_mcp.markdown.slices import Page, PageLimits, read_page
from local_vector_search_mcp.markdown.tables import project_table
from local_vector_search_mcp.markdown.yaml_values import JsonValue
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.corpus import Corpora, Corpus

TEXT: Final = "text"
MARKDOWN: Final = "markdown"
_MOST_POINTERS: Final = 20
_MOST_OUTLINES: Final = 8  # Of one document.
_BOUNDS: Final = {
    "maxElements": (1, 200),
    "maxBytes": (200, 200_000),
    "before": (0, 50),
    "offset": (0, 2**31),
    "maxDepth": (1, 6),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadElement:
    """One element of a page; ``text`` is left out where only the page's Markdown was asked for."""

    pointer: str
    kind: ElementKind
    text: str | None
    heading_path: tuple[str, ...]
    level: int | None
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadColumn:
    """A column of a table."""

    index: int
    name: str
    alignment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRow:
    """A data row of a table; ``extra_cells`` only where the row has more cells than the table has columns."""

    index: int
    cells: tuple[str, ...]
    extra_cells: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable:
    """What a reader sees of a table, or of the part of it that the page holds."""

    columns: tuple[ReadColumn, ...]
    rows: tuple[ReadRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadError:
    """Why one of several pointers could not be read."""

    code: str
    message: str
    details: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """One page of a document, or why there is none."""

    path: str | None = None
    source_hash: str | None = None
    elements: tuple[ReadElement, ...] | None = None
    markdown: str | None = None
    next_pointer: str | None = None
    previous_pointer: str | None = None
    relocated_from: str | None = None
    truncated: bool | None = None
    next_offset: int | None = None
    table: ReadTable | None = None
    metadata: dict[str, JsonValue] | None = None
    collection: str | None = None
    error: ReadError | None = None
    pointer: str | None = None  # As it was asked for; only where it could not be read.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSlices:
    """One page for each of several pointers, in their order."""

    slices: tuple[ReadPage, ...]
    collection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineHeading:
    """A heading with the headings below it."""

    pointer: str
    level: int
    text: str
    line: int
    bytes: int
    elements: int
    children: tuple["OutlineHeading", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOutline:
    """The tree of a document's headings."""

    path: str
    source_hash: str
    title: str
    tags: tuple[str, ...]
    headings: tuple[OutlineHeading, ...]
    relocated_from: str | None = None
    collection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What one page is read with."""

    limits: PageLimits
    section: bool = False
    offset: int = 0
    with_text: bool = True
    with_markdown: bool = False


class ReadingService:
    """Reads the files, never the index."""

    def __init__(self, corpora: Corpora) -> None:
        self._corpora = corpora
        self._outlines: WeakKeyDictionary[MarkdownDocument, dict[tuple[int | None, int], tuple[OutlineHeading, ...]]]
        self._outlines = WeakKeyDictionary()

    def read(
        self,
        *,
        path: str | None = None,
        pointer: str | None = None,
        max_elements: int = 20,
        max_bytes: int = 12_000,
        before: int = 0,
        section: bool = False,
        include: Sequence[str] = (TEXT,),
        offset: int | None = None,
        pointers: Sequence[str] | None = None,
        collection: str | None = None,
    ) -> ReadPage | ReadSlices:
        """One page from a pointer on, or one page for each of several full pointers.

        Args:
            path: The document; not needed where ``pointer`` is a full pointer.
            pointer: Where to start; None is ``document``, its first byte.
            max_elements: 1 to 200.
            max_bytes: Of the page's Markdown, 200 to 200,000; several pointers share it.
            before: Elements before the pointer, 0 to 50, in addition to ``max_elements``.
            section: ``pointer`` is a heading and the page ends with its section.
            include: ``text`` (of each element), ``markdown`` (of the page), or both.
            offset: Go on so many bytes inside the element.
            pointers: Up to 20 full pointers in the place of ``path`` and ``pointer``.
            collection: Of another tree than the project's.

        Raises:
            InvalidArgument, InvalidPath, InvalidPointer, PointerNotFound, Conflict, NotFound,
            UnsupportedFormat, UnsupportedEncoding, TooLarge, IoFailure.
        """
        corpus = self._corpora.get(collection)
        for name, value in (("maxElements", max_elements), ("maxBytes", max_bytes), ("before", before)):
            _check_bounds(name, value)
        _check_bounds("offset", offset or 0)
        unknown = [part for part in include if part not in (TEXT, MARKDOWN)]
        if unknown or not include:
            raise InvalidArgument("include lists what to answer: text, markdown, or both.")
        wanted = _Wanted(
            limits=PageLimits(max_elements=max_elements, max_bytes=max_bytes, before=before),
            section=section,
            offset=offset or 0,
            with_text=TEXT in include,
            with_markdown=MARKDOWN in include,
        )
        if pointers is not None:
            if path is not None or pointer not in (None, DOCUMENT):
                raise InvalidArgument("Give either pointers or path and pointer, not both.")
            if offset:
                raise InvalidArgument("offset goes on inside one element; give it with path and pointer.")
            return self._read_several(corpus, pointers, wanted)
        target, parsed = _target(corpus, path, pointer)
        return self._read_one(corpus, target, parsed, wanted)

    def outline(
        self,
        *,
        path: str | None = None,
        max_depth: int = 6,
        pointer: str | None = None,
        collection: str | None = None,
    ) -> DocumentOutline:
        """The tree of a document's headings.

        Args:
            path: The document; not needed where ``pointer`` is a full pointer.
            max_depth: How many levels of the tree, 1 to 6.
            pointer: Only the tree of this heading.
            collection: Of another tree than the project's.

        Raises:
            As ``read``; ``InvalidArgument`` where the pointer is no heading's.
        """
        _check_bounds("maxDepth", max_depth)
        corpus = self._corpora.get(collection)
        target, parsed = _target(corpus, path, pointer)
        snapshot, document = corpus.documents.load(target)
        top, relocated_from = _resolved(document, parsed)
        if top is not None and top.kind is not ElementKind.HEADING:
            raise InvalidArgument(f"{parsed.logical} is no heading; take a heading's pointer from kb_outline.")
        return DocumentOutline(
            path=snapshot.path.value,
            source_hash=document.source_hash,
            title=document.title or target.stem,
            tags=_tags(document),
            headings=self._headings(document, top, max_depth),
            relocated_from=relocated_from,
            collection=corpus.collection,
        )

    def _headings(self, document: MarkdownDocument, top: Element | None, max_depth: int) -> tuple[OutlineHeading, ...]:
        """The tree of headings, kept for as long as the parsed document is."""
        kept = self._outlines.setdefault(document, {})
        key = (None if top is None else top.index, max_depth)
        found = kept.get(key)
        if found is None:
            found = kept[key] = _headings(outline(document, top, max_depth=max_depth))
            while len(kept) > _MOST_OUTLINES:
                kept.pop(next(iter(kept)), None)
        return found

    def _read_several(self, corpus: Corpus, pointers: Sequence[str], wanted: _Wanted) -> ReadSlices:
        if not 1 <= len(pointers) <= _MOST_POINTERS:
            raise InvalidArgument(f"pointers lists {len(pointers)} pointers; give 1 to {_MOST_POINTERS}.")
        left = wanted.limits.max_bytes
        pages: list[ReadPage] = []
        for place, text in enumerate(pointers):
            # What one pointer leaves over is shared by those after it.
            share = max(left // (len(pointers) - place), 1)
            limits = replace(wanted.limits, max_bytes=share)
            try:
                target, parsed = _full_target(corpus, text)
                page = self._read_one(corpus, target, parsed, replace(wanted, limits=limits, with_markdown=True))
            except KnowledgeBaseError as error:
                failure = ReadError(code=error.code, message=error.message, details=error.details or None)
                pages.append(ReadPage(pointer=text, error=failure))
                continue
            left = max(left - len((page.markdown or "").encode("utf-8")), 0)
            pages.append(page if wanted.with_markdown else replace(page, markdown=None))
        return ReadSlices(slices=tuple(pages), collection=corpus.collection)

    def _read_one(self, corpus: Corpus, target: RelPath, pointer: Pointer, wanted: _Wanted) -> ReadPage:
        snapshot, document = corpus.documents.load(target)
        start, relocated_from = _resolved(document, pointer)
        if wanted.section and (start is None or start.kind is not ElementKind.HEADING):
            raise InvalidArgument(
                "section needs a heading's pointer; go on after it with nextPointer and without section."
            )
        page = read_page(document, start, limits=wanted.limits, section_only=wanted.section, offset=wanted.offset)
        return ReadPage(
            path=snapshot.path.value,
            source_hash=document.source_hash,
            elements=tuple(
                _element(element, text if wanted.with_text else None)
                for element, text in zip(page.elements, page.texts, strict=True)
            ),
            markdown=document.source.decode(page.start, page.end) if wanted.with_markdown else None,
            next_pointer=page.next_element.pointer if page.next_element is not None else None,
            previous_pointer=page.previous_element.pointer if page.previous_element is not None else None,
            relocated_from=relocated_from,
            truncated=True if page.truncated else None,
            next_offset=page.next_offset,
            table=_table(document, start, page),
            metadata=_metadata(document, start),
            collection=corpus.collection,
        )


def _target(corpus: Corpus, path: str | None, pointer: str | None) -> tuple[RelPath, Pointer]:
    """The document and the pointer in it, of a path with a pointer or of a full pointer."""
    inside, text = split_full_pointer(pointer) if pointer is not None else (None, DOCUMENT)
    if path is None and inside is None:
        raise InvalidArgument("Say which document: give path, or a full pointer (path::pointer).")
    target = corpus.workspace.parse(path if path is not None else str(inside))
    if path is not None and inside is not None and corpus.workspace.parse(inside) != target:
        raise InvalidArgument(f"path is {target} and the full pointer names {inside}; leave one of them out.")
    return target, parse_pointer(text)


def _full_target(corpus: Corpus, text: str) -> tuple[RelPath, Pointer]:
    path, pointer = split_full_pointer(text)
    if path is None:
        raise InvalidPointer("pointers lists full pointers such as notes/plan.md::1.2.p3; this one names no document.")
    return corpus.workspace.parse(path), parse_pointer(pointer)


def _resolved(document: MarkdownDocument, pointer: Pointer) -> tuple[Element | None, str | None]:
    """The element that a pointer means, None for the document, and where it stood before."""
    if pointer.is_document:
        return None, None
    resolution = resolve(document, pointer)
    return resolution.element, resolution.relocated_from


def _element(element: Element, text: str | None) -> ReadElement:
    return ReadElement(
        pointer=element.pointer,
        kind=element.kind,
        text=text,
        heading_path=element.heading_path,
        level=element.level,
        lines=element.lines,
    )


def _table(document: MarkdownDocument, start: Element | None, page: Page) -> ReadTable | None:
    """The table that the pointer means; of a cut one the rows whose lines begin on the page."""
    if start is None or start.kind is not ElementKind.TABLE:
        return None
    # Header and delimiter row stand on the first two lines, each data row on one after them.
    first_row = start.first_line + 1
    starts = document.source.line_starts
    begin = bisect_left(starts, page.start, first_row, start.last_line) - first_row
    end = bisect_left(starts, page.end, first_row, start.last_line) - first_row
    table = project_table(document, start, range(begin, end))
    return ReadTable(
        columns=tuple(
            ReadColumn(index=column.index, name=column.name, alignment=str(column.alignment))
            for column in table.columns
        ),
        rows=tuple(
            ReadRow(index=row.index, cells=row.cells, extra_cells=row.extra_cells or None) for row in table.rows
        ),
    )


def _metadata(document: MarkdownDocument, start: Element | None) -> dict[str, JsonValue] | None:
    if start is None or start.kind is not ElementKind.FRONTMATTER:
        return None
    return document.metadata.as_json()


def _tags(document: MarkdownDocument) -> tuple[str, ...]:
    """Front matter tags, then inline ones, each once, without ``#``."""
    found = (tag.lstrip("#") for tag in (*document.metadata.tags, *extract_tags(document)))
    by_key: dict[str, str] = {}
    for tag in found:
        by_key.setdefault(tag.casefold(), tag)
    return tuple(by_key.values())


def _headings(nodes: Sequence[OutlineNode]) -> tuple[OutlineHeading, ...]:
    return tuple(
        OutlineHeading(
            pointer=node.element.pointer,
            level=node.element.level or 1,
            text=node.element.heading_text or "",
            line=node.element.first_line,
            bytes=node.bytes,
            elements=node.elements,
            children=_headings(node.children),
        )
        for node in nodes
    )


def _check_bounds(name: str, value: int) -> None:
    low, high = _BOUNDS[name]
    if not low <= value <= high:
        raise InvalidArgument(f"{name} is {value}; it has to lie between {low} and {high}.")
