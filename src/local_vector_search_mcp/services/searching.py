"""Searching all trees: ``kb_search``. Chooses the mode, asks every index, fuses the answers by rank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from local_vector_search_mcp.embeddings.provider import EmbeddingProvider
from local_vector_search_mcp.errors import EmbeddingUnavailable, InvalidArgument, InvalidPath
from local_vector_search_mcp.index import state
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.search.filters import SearchFilters
from local_vector_search_mcp.search.query import parse_query
from local_vector_search_mcp.search.read_hints import ReadHint
from local_vector_search_mcp.search.search import (
    Explanation,
    GroupBy,
    Hit,
    Ranks,
    Scores,
    Searcher,
    SearchOutcome,
    SearchRequest,
    SearchSettings,
)
from local_vector_search_mcp.services.corpus import Corpora, Corpus
from local_vector_search_mcp.services.freshness import Freshness
from local_vector_search_mcp.services.readiness import Readiness, readiness_of
from local_vector_search_mcp.services.search_arguments import FilterArguments, SearchMode, check_range, checked_mode

_MAX_TOP_K: Final = 50
_MAX_SNIPPET_BYTES: Final = 4_000
_FIRST_RUN_WAIT_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchingSettings:
    """Defaults of searches, and how they rank.

    Attributes:
        ranking: How hits are found and ranked.
        default_mode: Where a call does not say.
        max_results: ``topK`` where a call does not say.
    """

    ranking: SearchSettings
    default_mode: SearchMode = SearchMode.AUTO
    max_results: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One result."""

    rank: int
    path: str
    pointer: str
    full_pointer: str
    kind: str
    title: str
    heading_path: tuple[str, ...]
    lines: tuple[int, int]
    snippet: str
    scores: Scores
    indexed_source_hash: str
    stale: bool
    read_hint: ReadHint
    collection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchExplanation:
    """Why a document is found or not."""

    path: str
    selected: bool
    rule: str | None
    indexed: bool
    filtered_out: bool
    missing_terms: tuple[str, ...]
    ranks: Ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The answer of ``kb_search``."""

    results: tuple[SearchHit, ...]
    mode: SearchMode
    total_candidates: int
    missing_terms: tuple[str, ...]
    index: str
    warnings: tuple[str, ...]
    explanation: SearchExplanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHit:
    """A hit with the tree that it is from."""

    corpus: Corpus
    hit: Hit
    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What all trees gave, best first, with what there is to say about it."""

    hits: tuple[FoundHit, ...]
    mode: SearchMode
    candidates: int
    missing_terms: tuple[str, ...]
    warnings: tuple[str, ...]
    explanation: SearchExplanation | None


class SearchingService:
    """Searches the project and its collections.

    Args:
        corpora: All trees.
        provider: Makes the vectors of queries.
        settings: Defaults and ranking.
    """

    def __init__(self, corpora: Corpora, provider: EmbeddingProvider, settings: SearchingSettings) -> None:
        self._corpora = corpora
        self._provider = provider
        self._settings = settings

    def checked(self, filters: FilterArguments) -> SearchFilters:
        """The filters of a call.

        Raises:
            InvalidArgument, InvalidPath: One of them is wrong.
        """
        return filters.checked(self._corpora.project.workspace)

    def search(
        self,
        *,
        query: str,
        mode: str | None = None,
        top_k: int | None = None,
        path_prefix: str | None = None,
        include_glob: str | Sequence[str] | None = None,
        exclude_glob: str | Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        kinds: Sequence[str] | None = None,
        modified_after: str | None = None,
        collections: Sequence[str] | None = None,
        snippet_bytes: int = 400,
        group_by: str = GroupBy.DOCUMENT.value,
        explain: str | None = None,
    ) -> SearchResult:
        """Find passages. Arguments as for ``kb_search``.

        Raises:
            InvalidArgument, InvalidPath: An argument is wrong.
            NotFound: There is no document to explain.
            IndexNotReady: Nothing is indexed at all.
            IndexIncompatible: The index was built for another root or by another schema.
            EmbeddingUnavailable: ``semantic`` was asked for and there are no usable vectors.
        """
        limit = self._settings.max_results if top_k is None else top_k
        check_range("topK", limit, 1, _MAX_TOP_K)
        check_range("snippetBytes", snippet_bytes, 0, _MAX_SNIPPET_BYTES)
        if group_by not in tuple(GroupBy):
            raise InvalidArgument(f"groupBy is {group_by!r}; use {' or '.join(GroupBy)}.")
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
            filters=self.checked(filters),
            top_k=limit,
            group_by=GroupBy(group_by),
            snippet_bytes=snippet_bytes,
        )
        found = self.find(request, mode=mode, collections=collections, explain=explain)
        return SearchResult(
            results=tuple(_result(rank, one) for rank, one in enumerate(found.hits, start=1)),
            mode=found.mode,
            total_candidates=found.candidates,
            missing_terms=found.missing_terms,
            index=self._corpora.project.indexer.snapshot().state.value,
            warnings=found.warnings,
            explanation=found.explanation,
        )

    def find(
        self, request: SearchRequest, *, mode: str | None, collections: Sequence[str] | None, explain: str | None = None
    ) -> Found:
        """The best hits of several trees.

        Args:
            request: What is searched for; its branches are chosen here.
            mode: As a caller gives it; None for the default.
            collections: Names of trees; None for all.
            explain: A document to explain, in the first of the trees that has it.

        Raises:
            As ``search``.
        """
        chosen = self._corpora.choose(collections)
        wanted = checked_mode(mode, self._settings.default_mode)
        explained = None if explain is None else _document_to_explain(explain, chosen)
        ready, warnings = readiness_of(chosen, wait_s=_FIRST_RUN_WAIT_S)
        answering = self._choose_mode(wanted, request, ready)
        outcomes: list[tuple[Corpus, SearchOutcome, Freshness]] = []
        for one in ready:
            asked = answering.request_for(one)
            if asked is not None:
                freshness = Freshness(one.corpus)
                outcome = self._searcher(one.corpus).search(replace(asked, exists=freshness.exists))
                outcomes.append((one.corpus, outcome, freshness))
        said = [
            *warnings,
            *(warning for one in ready for warning in one.warnings),
            *answering.warnings,
            *(warning for _, outcome, _ in outcomes for warning in outcome.warnings),
            *(() if explained is None else _notes_on(*explained, ready)),
        ]
        return Found(
            hits=_by_rank(outcomes, request.top_k),
            mode=answering.mode,
            candidates=sum(outcome.candidates for _, outcome, _ in outcomes),
            missing_terms=_missing_everywhere([outcome for _, outcome, _ in outcomes]),
            warnings=tuple(dict.fromkeys(said)),
            explanation=None if explained is None else self._explain(*explained, ready, answering),
        )

    def _searcher(self, corpus: Corpus) -> Searcher:
        return Searcher(corpus.database, self._settings.ranking)

    # -- modes ------------------------------------------------------------------------------------------------

    def _choose_mode(self, wanted: SearchMode, request: SearchRequest, ready: Sequence[Readiness]) -> "_Answering":
        """The mode that can answer what is wanted.

        Raises:
            EmbeddingUnavailable: Only meaning is wanted and it cannot be searched.
        """
        lexical = _Answering(mode=SearchMode.LEXICAL, request=replace(request, lexical=True, vector=None))
        if wanted is SearchMode.LEXICAL:
            return lexical
        if not request.query.terms:
            # Without a letter or digit there is no meaning either, and whatever is near would be so by chance.
            return lexical if wanted is not SearchMode.SEMANTIC else _Answering(mode=wanted, request=lexical.request)
        reason = self._why_no_vectors(ready)
        if reason is None:
            try:
                vector = self._provider.embed_query(request.query.text_to_embed).vector
            except EmbeddingUnavailable as error:
                reason = error.message
            else:
                return _with_vectors(wanted, request, vector, ready)
        if wanted is SearchMode.SEMANTIC:
            raise EmbeddingUnavailable(f"Meaning cannot be searched: {reason} Search with mode lexical meanwhile.")
        if wanted is SearchMode.AUTO and self._provider.name == "none":
            return lexical
        return replace(lexical, warnings=(f"Only words were searched: {reason}",))

    def _why_no_vectors(self, ready: Sequence[Readiness]) -> str | None:
        """Why no index can be searched by meaning; None where one can."""
        if self._provider.name == "none":
            return "embedding.provider is none; configure a provider and reindex to search by meaning too."
        reasons = [one.why_no_vectors for one in ready]
        return reasons[0] if reasons and None not in reasons else None

    # -- explaining -------------------------------------------------------------------------------------------

    def _explain(
        self, corpus: Corpus, path: RelPath, ready: Sequence[Readiness], answering: "_Answering"
    ) -> SearchExplanation:
        rule = corpus.workspace.why_excluded(path)
        explanation = Explanation(indexed=False)
        for one in ready:
            asked = answering.request_for(one)
            if one.corpus is corpus and asked is not None:
                explanation = self._searcher(corpus).explain(asked, path.value)
        return SearchExplanation(
            path=path.value,
            selected=rule is None,
            rule=rule,
            indexed=explanation.indexed,
            filtered_out=explanation.filtered_out,
            missing_terms=explanation.missing_terms,
            ranks=explanation.ranks,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answering:
    """The mode that answers, and the request in it."""

    mode: SearchMode
    request: SearchRequest
    warnings: tuple[str, ...] = ()

    def request_for(self, one: Readiness) -> SearchRequest | None:
        """What is asked of an index; None where it cannot be asked in this mode."""
        if self.request.vector is None or one.why_no_vectors is None:
            return self.request
        return replace(self.request, vector=None) if self.request.lexical else None


def _with_vectors(wanted: SearchMode, request: SearchRequest, vector: bytes, ready: Sequence[Readiness]) -> _Answering:
    warnings: list[str] = []
    for one in ready:
        name = "" if one.corpus.is_project else f" of collection {one.corpus.name}"
        if one.why_no_vectors is not None:
            warnings.append(f"The meaning of texts{name} was not searched: {one.why_no_vectors}")
        elif one.awaiting:
            warnings.append(f"Passages that await embedding{name}, found by their words only: {one.awaiting}.")
    semantic_only = wanted is SearchMode.SEMANTIC
    return _Answering(
        mode=SearchMode.SEMANTIC if semantic_only else SearchMode.HYBRID,
        request=replace(request, lexical=not semantic_only, vector=vector),
        warnings=tuple(warnings),
    )


def _by_rank(outcomes: Sequence[tuple[Corpus, SearchOutcome, Freshness]], places: int) -> tuple[FoundHit, ...]:
    """The hits of all trees by their rank in each, the project first among equals."""
    ranked = [
        (rank, place, corpus, hit, freshness)
        for place, (corpus, outcome, freshness) in enumerate(outcomes)
        for rank, hit in enumerate(outcome.hits)
    ]
    ranked.sort(key=lambda one: one[:2])
    return tuple(
        FoundHit(corpus=corpus, hit=hit, stale=freshness.is_stale(hit.path, hit.chunk.source_hash))
        for _, _, corpus, hit, freshness in ranked[:places]
    )


def _missing_everywhere(outcomes: Sequence[SearchOutcome]) -> tuple[str, ...]:
    """Terms that occur in none of the indexes, in the query's order."""
    if not outcomes:
        return ()
    first, *others = outcomes
    return tuple(term for term in first.missing_terms if all(term in one.missing_terms for one in others))


def _document_to_explain(text: str, chosen: Sequence[Corpus]) -> tuple[Corpus, RelPath]:
    """The first of the trees that has the document."""
    path = chosen[0].workspace.parse(text)
    for corpus in chosen:
        try:
            if corpus.workspace.exists(path):
                return corpus, path
        except InvalidPath:
            if corpus is chosen[-1]:
                raise
    raise chosen[0].workspace.not_found(path)


def _notes_on(corpus: Corpus, path: RelPath, ready: Sequence[Readiness]) -> tuple[str, ...]:
    """What keeps a document that the rules select out of the index, or some of it from filters, as warnings."""
    if all(one.corpus is not corpus for one in ready):
        return ()
    with corpus.database.reader() as connection:
        record = state.document(connection, path)
    if record is None:
        return ()
    unread = () if record.reason is None else (f"{path} is not indexed: {record.reason}",)
    return unread if record.warning is None else (*unread, f"{path}: {record.warning}")


def _result(rank: int, found: FoundHit) -> SearchHit:
    hit, collection = found.hit, found.corpus.collection
    return SearchHit(
        rank=rank,
        path=hit.path,
        pointer=hit.pointer,
        full_pointer=f"{hit.path}::{hit.pointer}",
        kind=hit.kind,
        title=hit.chunk.title,
        heading_path=hit.heading_path,
        lines=hit.lines,
        snippet=hit.snippet,
        scores=hit.scores,
        indexed_source_hash=hit.chunk.source_hash,
        stale=found.stale,
        read_hint=replace(hit.read_hint, collection=collection),
        collection=collection,
    )
