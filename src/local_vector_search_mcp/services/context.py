"""Context for a question: ``kb_context``. Searches, reads the documents of the hits as they are now, packs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local_vector_search_mcp.errors import (
    Conflict,
    InvalidPath,
    NotFound,
    PointerNotFound,
    UnsupportedEncoding,
    UnsupportedFormat,
)
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.pointers import parse_pointer
from local_vector_search_mcp.markdown.resolve import resolve
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.search.context_pack import Citation, Omitted, PackHit, pack_context
from local_vector_search_mcp.search.query import parse_query
from local_vector_search_mcp.search.search import SearchRequest
from local_vector_search_mcp.services.corpus import Corpus
from local_vector_search_mcp.services.search_arguments import FilterArguments, SearchMode, check_range
from local_vector_search_mcp.services.searching import FoundHit, SearchingService

_MIN_TOKENS: Final = 100
_MAX_TOKENS: Final = 50_000
_MAX_AROUND: Final = 10
# A hit takes this many tokens or more in most documents, so more hits than this would not fit.
_TOKENS_PER_HIT: Final = 100
_FEWEST_HITS: Final = 5
_MOST_HITS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextResult:
    """The answer of ``kb_context``: the Markdown, and what there is to know about it."""

    text: str
    tokens: int
    mode: SearchMode
    citations: tuple[Citation, ...]
    omitted: tuple[Omitted, ...]
    warnings: tuple[str, ...]


class ContextService:
    """Packs what a search finds.

    Args:
        searching: Finds it.
    """

    def __init__(self, searching: SearchingService) -> None:
        self._searching = searching

    def context(
        self,
        *,
        query: str,
        mode: str | None = None,
        token_budget: int = 2_000,
        around: int = 1,
        path_prefix: str | None = None,
        include_glob: str | Sequence[str] | None = None,
        exclude_glob: str | Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        kinds: Sequence[str] | None = None,
        modified_after: str | None = None,
        collections: Sequence[str] | None = None,
    ) -> ContextResult:
        """One cited text for a question. Arguments as for ``kb_context``.

        Raises:
            As ``SearchingService.search``.
        """
        check_range("tokenBudget", token_budget, _MIN_TOKENS, _MAX_TOKENS)
        check_range("around", around, 0, _MAX_AROUND)
        filters = FilterArguments(
            path_prefix=path_prefix,
            include_glob=include_glob,
            exclude_glob=exclude_glob,
            tags=tags,
            where=where,
            kinds=kinds,
            modified_after=modified_after,
        )
        request = SearchRequest(
            query=parse_query(query),
            filters=self._searching.checked(filters),
            top_k=max(_FEWEST_HITS, min(token_budget // _TOKENS_PER_HIT, _MOST_HITS)),
            snippet_bytes=0,
        )
        found = self._searching.find(request, mode=mode, collections=collections)
        hits, warnings = _pack_hits(found.hits)
        pack = pack_context(hits, token_budget=token_budget, around=around)
        return ContextResult(
            text=pack.text,
            tokens=pack.tokens,
            mode=found.mode,
            citations=pack.citations,
            omitted=pack.omitted,
            warnings=(*found.warnings, *_about_missing(found.missing_terms), *warnings),
        )


def _pack_hits(found: Sequence[FoundHit]) -> tuple[list[PackHit], list[str]]:
    """The hits in their documents as they are now, and warnings about those that are not there any more."""
    documents: dict[tuple[str, str], MarkdownDocument | None] = {}
    hits: list[PackHit] = []
    changed: dict[str, None] = {}
    for one in found:
        key = (one.corpus.name, one.hit.path)
        if key not in documents:
            documents[key] = _document(one.corpus, RelPath(one.hit.path))
        document = documents[key]
        element = None if document is None else _element(document, one.hit.pointer)
        if document is None or element is None:
            if one.hit.kind != ElementKind.DOCUMENT:
                changed[one.hit.path] = None
            continue
        hits.append(
            PackHit(
                path=one.hit.path,
                document=document,
                element=element,
                indexed_source_hash=one.hit.chunk.source_hash,
                collection=one.corpus.collection,
            )
        )
    return hits, [f"{path} has changed since it was indexed; a passage found there was left out." for path in changed]


def _document(corpus: Corpus, path: RelPath) -> MarkdownDocument | None:
    """A document as it is now; None where it went or can no longer be read as one."""
    try:
        return corpus.documents.load(path)[1]
    except (NotFound, InvalidPath, UnsupportedEncoding, UnsupportedFormat):
        return None


def _element(document: MarkdownDocument, pointer: str) -> Element | None:
    """The element that a hit points to; None where it changed, and for the whole of an empty document."""
    parsed = parse_pointer(pointer)
    if parsed.is_document:
        return None
    try:
        return resolve(document, parsed).element
    except (Conflict, PointerNotFound):
        return None


def _about_missing(terms: Sequence[str]) -> tuple[str, ...]:
    return (f"Not in the index: {', '.join(terms)}.",) if terms else ()
