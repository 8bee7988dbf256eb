"""Weighted BM25 over the full-text rows: from a plan to scored chunks.

A row is scored by every word of the query, but only rows that hold one of the rarer words are looked at: a row that
holds nothing but the commonest words would hardly come to the top. Where those rows are too few, more words let rows
in, in the end all, so that nothing is lost.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import apsw

from local_vector_search_mcp.index.vectors import ChunkScope
from local_vector_search_mcp.search.plan import Plan, Unit

COLUMN_WEIGHTS: Final = (1.0, 2.0, 4.0, 1.0)
"""What a word counts in body, headings, title, and keys (path, aliases, tags): the order of the table's columns."""

# How many rows are looked at because they hold a rare word: this share of all, and at least so many.
_RARE_SHARE: Final = 0.2
_RARE_ROWS: Final = 2_000
# Equal scores around the end of the list are asked for until their last one is known; hardly ever more than these.
_BEYOND: Final = 200


class LexicalHit(NamedTuple):
    """A chunk with its score; larger is better, comparable within one search only."""

    chunk_id: int
    score: float


def lexical_hits(
    connection: apsw.Connection, plan: Plan, *, chunks: int, limit: int, scope: ChunkScope | None
) -> list[LexicalHit]:
    """The best chunks for a plan, best first; equal scores are ordered by path and position.

    Args:
        connection: A reader.
        plan: What is asked.
        chunks: How many chunks the index holds.
        limit: Most hits, >= 1.
        scope: Only these chunks; None means all.
    """
    hits: list[LexicalHit] = []
    for driving in _drivings(plan.scored, chunks):
        hits = _best(connection, _expressions(plan, driving, chunks), limit, scope)
        if len(hits) >= limit:
            break
    return hits


def _drivings(scored: Sequence[Unit], chunks: int) -> Iterator[frozenset[Unit]]:
    """The units one of which a row must hold to be looked at: the rarer ones, then one more, then all."""
    budget = max(_RARE_ROWS, int(_RARE_SHARE * chunks))
    distinct = sorted(dict.fromkeys(scored), key=lambda unit: (unit.rows, unit.match))
    driving: set[Unit] = set()
    looked_at = 0
    for unit in distinct:
        # For what is no single word the number of rows is only a bound.
        if not unit.single:
            driving.add(unit)
        elif looked_at + unit.rows <= budget or not driving:
            driving.add(unit)
            looked_at += unit.rows
    left = [unit for unit in distinct if unit not in driving]
    if driving:
        yield frozenset(driving)
    if len(left) > 1:
        yield frozenset({*driving, left[0]})
    if left:
        yield frozenset(distinct)


def _expressions(plan: Plan, driving: frozenset[Unit], chunks: int) -> list[str]:
    """The FTS5 expressions for a plan, each phrase in them a quoted run of words; a row's best score counts.

    FTS5 adds up the scores of all phrases of an expression that a row holds, and reads every row of each phrase once
    to weigh it. So the driving units are asked for alone, and then together with the others: that gives every row its
    score, while no phrase stands in an expression twice.
    """
    first = [unit.match for unit in plan.scored if unit in driving]
    # FTS5 gives next to no weight to what stands in more than half of all rows, and to all of it the same.
    telling = any(unit.rows * 2 < chunks for unit in driving)
    others = [unit.match for unit in plan.scored if unit not in driving and (unit.rows * 2 < chunks or not telling)]
    clauses = [[_any(first)], [_any(first), _any(others)]] if others else [[_any(first)]]
    required = [" AND ".join([*plan.required, *clause]) for clause in clauses]
    if not plan.excluded:
        return required
    return [f"({one}) NOT {_any(plan.excluded)}" for one in required]


def _any(matches: Sequence[str]) -> str:
    return f"({' OR '.join(matches)})"


def _best(
    connection: apsw.Connection, expressions: Sequence[str], limit: int, scope: ChunkScope | None
) -> list[LexicalHit]:
    """The rows with the best scores, equal ones by path and position."""
    most = limit + _BEYOND
    while True:
        scores: dict[int, float] = {}
        last = 0.0
        for expression in expressions:
            rows = _ranked(connection, expression, most, scope)
            if len(rows) == most:
                last = min(last, rows[-1][1])
            scores.update(rows)
        ranked = sorted(zip(scores.values(), scores.keys(), strict=True))
        # Every row with the score of the last one is among these, unless a list was cut off among its equals.
        if len(ranked) <= limit or ranked[limit - 1][0] < last or not last:
            break
        most *= 8
    if len(ranked) > limit:
        bound = ranked[limit - 1][0]
        ranked = [row for row in ranked if row[0] <= bound]
    return [LexicalHit(chunk_id, -score) for score, chunk_id in _by_path(connection, ranked)[:limit]]


def _ranked(
    connection: apsw.Connection, expression: str, most: int, scope: ChunkScope | None
) -> list[tuple[int, float]]:
    """Row ids with FTS5's scores, of which smaller is better."""
    where = "fts MATCH ?"
    bindings: tuple[apsw.SQLiteValue, ...] = (*COLUMN_WEIGHTS, expression)
    if scope is not None:
        # The sign keeps FTS5 from looking the rows up one by one.
        where += f" AND +fts.rowid IN ({scope.sql})"
        bindings = (*bindings, *scope.bindings)
    found: Iterator[Any] = connection.execute(
        f"SELECT fts.rowid AS id, bm25(fts, ?, ?, ?, ?) AS score FROM fts WHERE {where} ORDER BY score, id LIMIT ?",
        (*bindings, most),
    )
    return list(found)


def _by_path(connection: apsw.Connection, ranked: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Scores and rows, the lowest score first, rows with equal scores by path and position."""
    times = Counter([score for score, _ in ranked])
    if len(times) == len(ranked):
        return ranked
    equals = [chunk_id for score, chunk_id in ranked if times[score] > 1]
    rows: Iterator[Any] = connection.execute(
        "SELECT c.id FROM chunks AS c JOIN documents AS d ON d.id = c.document_id"
        " WHERE c.id IN (SELECT value FROM json_each(?)) ORDER BY d.path, c.ordinal",
        (json.dumps(equals),),
    )
    places = {chunk_id: place for place, (chunk_id,) in enumerate(rows)}
    ordered = sorted([(score, places.get(chunk_id, 0), chunk_id) for score, chunk_id in ranked])
    return [(score, chunk_id) for score, _, chunk_id in ordered]
