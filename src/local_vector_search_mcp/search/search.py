"""Searcher: one index and one query → ranked hits, each with the place in it that says most."""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import apsw

from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.index.chunks import StoredChunk
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.rows import read_chunks
from local_vector_search_mcp.index.vectors import ChunkScope, Neighbour, nearest
from local_vector_search_mcp.search.aside import aside
from local_vector_search_mcp.search.filters import SearchFilters, chunk_scope, lets_in
from local_vector_search_mcp.search.fusion import fuse, spread
from local_vector_search_mcp.search.lexical import LexicalHit, lexical_hits
from local_vector_search_mcp.search.matches import ReadText, Wanted
from local_vector_search_mcp.search.plan import Plan, any_piece, lone_symbols, make_plan
from local_vector_search_mcp.search.query import ParsedQuery, latin_share
from local_vector_search_mcp.search.read_hints import ReadHint, read_hint
from local_vector_search_mcp.search.rescoring import rescore
from local_vector_search_mcp.search.snippets import best_element, make_snippet
from local_vector_search_mcp.search.stop_words import ENGLISH
from local_vector_search_mcp.search.vocabulary import Vocabulary

_LOOK_AT_LEAST: Final = 12
_POOL_GROWS: Final = 8
_PLACES_AT_ONCE: Final = 16
_LEAST_SHARE: Final = 0.005


class GroupBy(StrEnum):
    """Whether one document may fill the list."""

    DOCUMENT = "document"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How hits are found and ranked.

    Attributes:
        stop_words: Words that never decide, lower case.
        lexical_pool, semantic_pool: Candidates of each branch that fusion looks at.
        rrf_k: Damping of reciprocal rank fusion.
        lexical_weight, semantic_weight: Of each branch in fusion.
        max_per_document: Chunks of one document before other documents come first.
        latin_only: The model knows next to no words but those of the Latin script, so the semantic branch weighs in
            fusion by the share of Latin letters in the query.
    """

    stop_words: AbstractSet[str] = ENGLISH
    lexical_pool: int = 50
    semantic_pool: int = 50
    rrf_k: int = 60
    lexical_weight: float = 1.0
    semantic_weight: float = 1.0
    max_per_document: int = 3
    latin_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is searched for.

    Attributes:
        query: The query taken apart.
        lexical: Whether words are searched.
        vector: The query's vector where meaning is searched; little-endian float32 of length 1.
        filters: What limits the search.
        top_k: Most hits.
        group_by: Whether one document may fill the list.
        snippet_bytes: Size of each snippet; 0 for none.
        exists: Whether a document's file is still there; hits of others are left out.
    """

    query: ParsedQuery
    lexical: bool = True
    vector: bytes | None = None
    filters: SearchFilters = field(default_factory=SearchFilters)
    top_k: int = 10
    group_by: GroupBy = GroupBy.DOCUMENT
    snippet_bytes: int = 400
    exists: Callable[[str], bool] = lambda _: True


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """A hit's score in each branch that found it, and of both fused; larger is better."""

    lexical: float | None = None
    semantic: float | None = None
    fused: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk that was found, and the element of it that says most."""

    chunk: StoredChunk
    pointer: str
    kind: str
    heading_path: tuple[str, ...]
    lines: tuple[int, int]
    snippet: str
    scores: Scores
    read_hint: ReadHint

    @property
    def path(self) -> str:
        """The document."""
        return self.chunk.path


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutcome:
    """What was found.

    Attributes:
        hits: Best first.
        candidates: How many chunks were in the running for a place.
        missing_terms: Terms of the query that occur nowhere in the index.
        warnings: What was read or searched otherwise than asked.
    """

    hits: tuple[Hit, ...] = ()
    candidates: int = 0
    missing_terms: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Where a document's best chunk stands in each branch, from 1; None where the branch does not find it."""

    lexical: int | None = None
    semantic: int | None = None
    fused: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a document is found or not."""

    indexed: bool
    filtered_out: bool = False
    missing_terms: tuple[str, ...] = ()
    ranks: Ranks = Ranks()


class Searcher:
    """Searches one index.

    Args:
        database: The index.
        settings: How hits are found and ranked.
    """

    def __init__(self, database: IndexDatabase, settings: SearchSettings) -> None:
        self._database = database
        self._settings = settings

    def search(self, request: SearchRequest) -> SearchOutcome:
        """The best hits for a request.

        Raises:
            InvalidArgument: A filter is wrong.
            IndexNotReady, Busy, IoFailure: The index cannot be read.
        """
        epoch = self._database.epoch
        with self._database.reader() as connection:
            outcome = self._run(connection, epoch, request).outcome()
            if outcome.hits or not request.query.exclusions:
                return _warned(outcome, request.query)
            as_text = request.query.with_exclusions_as_text()
            again = self._run(connection, epoch, replace(request, query=as_text)).outcome()
            return _warned(again, as_text) if again.hits else outcome

    def explain(self, request: SearchRequest, path: str) -> Explanation:
        """Why the document at a path is found or not.

        Raises:
            As ``search``.
        """
        epoch = self._database.epoch
        with self._database.reader() as connection:
            found = connection.execute("SELECT id FROM documents WHERE path = ? AND source_hash IS NOT NULL", (path,))
            document_id = found.get
            if document_id is None:
                return Explanation(indexed=False)
            return self._run(connection, epoch, request).explanation(int(document_id))

    def _run(self, connection: apsw.Connection, epoch: int, request: SearchRequest) -> "_Run":
        return _Run(self._database, connection, epoch, self._settings, request)


class _Place(NamedTuple):
    """Where a chunk stands: what orders equals."""

    path: str
    ordinal: int
    document_id: int


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The candidates of all branches, best first, and the score of each in each branch that found it."""

    order: tuple[int, ...]
    lexical: Mapping[int, float]
    semantic: Mapping[int, float]
    fused: Mapping[int, float]

    def scores(self, chunk_id: int) -> Scores:
        """A candidate's scores."""
        return Scores(
            lexical=self.lexical.get(chunk_id), semantic=self.semantic.get(chunk_id), fused=self.fused.get(chunk_id)
        )


@dataclass(frozen=True, slots=True)
class _Branches:
    """What each branch found, best first, and whether there may be more."""

    lexical: list[LexicalHit] = field(default_factory=list[LexicalHit])
    semantic: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    more: bool = False


class _Run:
    """One request against one state of the index."""

    def __init__(
        self,
        database: IndexDatabase,
        connection: apsw.Connection,
        epoch: int,
        settings: SearchSettings,
        request: SearchRequest,
    ) -> None:
        self._database = database
        self._connection = connection
        self._epoch = epoch  # Of the database, from before the connection was taken.
        self._settings = settings
        self._request = request
        self._vocabulary = Vocabulary(connection)
        self._plan = make_plan(request.query, self._vocabulary, settings.stop_words)
        self._wanted = Wanted(self._plan, self._vocabulary)
        self._chunks: dict[int, StoredChunk] = {}
        self._texts: dict[int, ReadText] = {}
        self._places: dict[int, _Place] = {}
        self._warnings: list[str] = []
        if self._plan.absent_phrases and self._plan.scored:
            absent = ", ".join(self._plan.absent_phrases)
            self._warn(f"{absent} occurs nowhere in the index; the rest of the query was searched without it.")

    @cached_property
    def _scope(self) -> ChunkScope | None:
        return chunk_scope(self._connection, self._request.filters)

    def outcome(self) -> SearchOutcome:
        """The hits, with what there is to say about them."""
        places = self._request.top_k
        share = self._settings.max_per_document if self._request.group_by is GroupBy.DOCUMENT else None
        factor = 1
        while True:
            branches = self._branches(self._plan, factor)
            ranking = self._ranked(branches)
            chosen, full = spread(
                self._with_files(ranking.order),
                group_of=lambda one: self._places[one].document_id,
                most_per_group=share,
                places=places,
            )
            if full or not branches.more:
                break
            # Documents further down may have a right to a place.
            factor *= _POOL_GROWS
        self._read(chosen)
        return SearchOutcome(
            hits=tuple(self._hit(one, ranking.scores(one)) for one in chosen),
            candidates=len(ranking.order),
            missing_terms=self._plan.missing,
            warnings=tuple(self._warnings),
        )

    def explanation(self, document_id: int) -> Explanation:
        """Why a document that is indexed is found or not."""
        lacking = [
            term.text
            for term in dict.fromkeys(self._request.query.terms)
            if not term.is_only(self._settings.stop_words) and not self._document_holds(any_piece(term), document_id)
        ]
        branches = self._branches(self._plan, factor=self._vocabulary.chunks + 1)
        own = {
            int(row[0])
            for row in self._connection.execute("SELECT id FROM chunks WHERE document_id = ?", (document_id,))
        }
        fused = self._ranked(branches).order if self._is_hybrid else ()
        return Explanation(
            indexed=True,
            filtered_out=not lets_in(self._connection, self._request.filters, document_id),
            missing_terms=(*lacking, *lone_symbols(self._request.query)),
            ranks=Ranks(
                lexical=_rank([hit.chunk_id for hit in branches.lexical], own),
                semantic=_rank([chunk_id for chunk_id, _ in branches.semantic], own),
                fused=_rank(fused, own),
            ),
        )

    def _with_files(self, candidates: Sequence[int]) -> Iterator[int]:
        """The candidates whose files are there, looked at one by one."""
        for number, chunk_id in enumerate(candidates):
            place = self._place_of(candidates, number)
            if place is not None and self._request.exists(place.path):
                yield chunk_id

    @property
    def _is_hybrid(self) -> bool:
        return self._request.lexical and self._request.vector is not None

    def _warn(self, warning: str) -> None:
        if warning not in self._warnings:
            self._warnings.append(warning)

    # -- branches ---------------------------------------------------------------------------------------------

    def _branches(self, plan: Plan, factor: int) -> _Branches:
        vector = self._request.vector
        if vector is None:
            lexical, more = self._lexical(plan, factor)
            return _Branches(lexical, [], more)
        limit = self._limit(self._settings.semantic_pool, factor)
        scope = self._semantic_scope(plan)
        if self._is_hybrid:
            seen = self._epoch, _revision(self._connection)
            found = aside(lambda: self._nearest_elsewhere(vector, limit, scope, seen))
            lexical, more = self._lexical(plan, factor)
            near = found()
        else:
            lexical, more, near = [], False, None
        if near is None:
            near = nearest(self._connection, vector, k=limit, scope=scope)
        likeness = {one.chunk_id: 1 - one.distance for one in near}
        semantic = [(one, likeness[one]) for one in self._in_order(likeness)][:limit]
        return _Branches(lexical, semantic, more or self._may_be_more(len(semantic), limit))

    def _nearest_elsewhere(
        self, vector: bytes, limit: int, scope: ChunkScope | None, seen: tuple[int, int]
    ) -> list[Neighbour] | None:
        """The nearest chunks by another connection; None where it does not see the chunks that this run does."""
        try:
            with self._database.reader() as connection:
                # Another generation of the index counts its revisions anew, and may have come to the same number.
                if (self._database.epoch, _revision(connection)) != seen:
                    return None
                return nearest(connection, vector, k=limit, scope=scope)
        except KnowledgeBaseError:
            # The connection of this run is open and may still do what another one cannot; if not, it says why.
            return None

    def _lexical(self, plan: Plan, factor: int) -> tuple[list[LexicalHit], bool]:
        if not self._request.lexical:
            return [], False
        limit = self._limit(self._settings.lexical_pool, factor)
        hits = self._lexical_hits(plan, limit)
        look_at = max(_LOOK_AT_LEAST, self._request.top_k + self._request.top_k // 4)
        self._read(hit.chunk_id for hit in hits[:look_at])
        return rescore(hits, self._chunks, self._wanted, look_at=look_at, read=self._text_of), self._may_be_more(
            len(hits), limit
        )

    def _lexical_hits(self, plan: Plan, limit: int) -> list[LexicalHit]:
        chunks = self._vocabulary.chunks
        hits = lexical_hits(self._connection, plan, chunks=chunks, limit=limit, scope=self._scope)
        if hits or len(plan.required) < 2:
            return hits
        either = replace(plan, required=(f"({' OR '.join(plan.required)})",))
        hits = lexical_hits(self._connection, either, chunks=chunks, limit=limit, scope=self._scope)
        if hits:
            self._warn("No passage holds all the quoted phrases; those that hold one of them are given.")
        return hits

    def _limit(self, pool: int, factor: int) -> int:
        return max(1, min(factor * max(pool, self._request.top_k), self._vocabulary.chunks))

    def _may_be_more(self, found: int, limit: int) -> bool:
        # With as many places as there are chunks, a full list is the whole index.
        return found == limit < self._vocabulary.chunks

    def _semantic_scope(self, plan: Plan) -> ChunkScope | None:
        """The chunks that may be near: none that holds what is excluded, and in hybrid mode all quoted phrases."""
        clauses: list[str] = []
        bindings: list[apsw.SQLiteValue] = []
        if self._scope is not None:
            clauses.append(f"id IN ({self._scope.sql})")
            bindings += self._scope.bindings
        for match in plan.required if self._request.lexical else ():
            clauses.append("id IN (SELECT rowid FROM fts WHERE fts MATCH ?)")
            bindings.append(match)
        for match in plan.excluded:
            clauses.append("id NOT IN (SELECT rowid FROM fts WHERE fts MATCH ?)")
            bindings.append(match)
        if not clauses:
            return None
        return ChunkScope(sql=f"SELECT id FROM chunks WHERE {' AND '.join(clauses)}", bindings=tuple(bindings))

    def _ranked(self, branches: _Branches) -> _Ranking:
        """The candidates of all branches; equal ones by path and position."""
        lexical = {hit.chunk_id: hit.score for hit in branches.lexical}
        semantic = dict(branches.semantic)
        fused: dict[int, float] = {}
        if self._is_hybrid:
            rankings = [
                (list(lexical), self._settings.lexical_weight),
                (list(semantic), self._semantic_weight()),
            ]
            fused = fuse(rankings, k=self._settings.rrf_k)
        scores = fused or lexical or semantic
        return _Ranking(tuple(self._in_order(scores)), lexical, semantic, fused)

    def _in_order(self, scores: Mapping[int, float]) -> Iterable[int]:
        """Chunks by falling score, equal ones by path and position."""
        ranked = sorted(scores, key=scores.__getitem__, reverse=True)
        equals = {
            one for first, second in pairwise(ranked) if scores[first] == scores[second] for one in (first, second)
        }
        if not equals:
            return ranked
        self._learn_places(equals)
        there = [one for one in ranked if one not in equals or one in self._places]
        return sorted(there, key=lambda one: (-scores[one], self._places[one] if one in equals else ()))

    def _place_of(self, candidates: Sequence[int], number: int) -> _Place | None:
        """Where a candidate stands; asked for a screenful at a time, as the last ones are rarely needed."""
        chunk_id = candidates[number]
        if chunk_id not in self._places:
            self._learn_places(candidates[number : number + _PLACES_AT_ONCE])
        return self._places.get(chunk_id)

    def _learn_places(self, chunk_ids: Iterable[int]) -> None:
        wanted = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._places]
        if not wanted:
            return
        rows = self._connection.execute(
            "SELECT c.id, d.path, c.ordinal, d.id FROM chunks AS c JOIN documents AS d ON d.id = c.document_id"
            " WHERE c.id IN (SELECT value FROM json_each(?))",
            (json.dumps(wanted),),
        )
        self._places.update({int(row[0]): _Place(str(row[1]), int(row[2]), int(row[3])) for row in rows})

    def _semantic_weight(self) -> float:
        weight = self._settings.semantic_weight
        if not self._settings.latin_only:
            return weight
        # Never nothing at all: what words do not find is still in the order that the model gives it.
        return weight * max(latin_share(self._request.query.text_to_embed), _LEAST_SHARE)

    def _read(self, chunk_ids: Iterable[int]) -> None:
        """Have the chunks of these ids at hand; unpacking one costs more than all else that is done with it."""
        wanted = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._chunks]
        chunks = read_chunks(self._connection, wanted)
        self._chunks.update(chunks)
        self._places.update({number: _Place(one.path, one.ordinal, one.document_id) for number, one in chunks.items()})

    def _text_of(self, chunk: StoredChunk) -> ReadText:
        """A chunk's text taken apart, once: for its score and for its snippet."""
        read = self._texts.get(chunk.id)
        if read is None:
            read = self._texts[chunk.id] = self._wanted.read(chunk.text)
        return read

    def _hit(self, chunk_id: int, scores: Scores) -> Hit:
        chunk = self._chunks[chunk_id]
        matches = self._wanted.find(self._text_of(chunk))
        element = best_element(chunk.elements, matches, kinds=self._request.filters.kinds)
        return Hit(
            chunk=chunk,
            pointer=element.pointer,
            kind=element.kind.value,
            heading_path=chunk.heading_paths[element.heading_path],
            lines=chunk.lines_of(element),
            snippet=make_snippet(chunk.text, matches, element=element, max_bytes=self._request.snippet_bytes),
            scores=scores,
            read_hint=read_hint(self._connection, chunk),
        )

    def _document_holds(self, match: str, document_id: int) -> bool:
        found = self._connection.execute(
            "SELECT 1 FROM fts WHERE fts MATCH ? AND +rowid IN (SELECT id FROM chunks WHERE document_id = ?) LIMIT 1",
            (match, document_id),
        )
        return found.get is not None


def _revision(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT value FROM counters WHERE name = 'revision'").get)


def _rank(ranking: Sequence[int], own: AbstractSet[int]) -> int | None:
    return next((rank for rank, chunk_id in enumerate(ranking, start=1) if chunk_id in own), None)


def _warned(outcome: SearchOutcome, query: ParsedQuery) -> SearchOutcome:
    if not query.exclusions_read_as_text:
        return outcome
    warning = "Words with a hyphen before them were read as text, because nothing else was asked or found."
    return replace(outcome, warnings=(warning, *outcome.warnings))
