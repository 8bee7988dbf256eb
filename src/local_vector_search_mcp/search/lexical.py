"""Weighted BM25 over the full-text rows: from a plan to scored chunks.

A row is scored by every word of the query, but only rows that hold one of the rarer words are looked at: a row that
holds nothing but the commonest words would hardly come to the top. Where those rows are too few, all are looked at,
so that nothing is lost.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from local_vector_search_mcp.index.vectors import ChunkScope
from local_vector_search_mcp.search.plan import Plan, Unit

COLUMN_WEIGHTS: Final = (1.0, 2.0, 4.0, 1.0)
"""What a word counts in body, headings, title, and keys (path, aliases, tags): the order of the table's columns."""

# How many rows are looked at because they hold a rare word: this share of all, and at least so many.
_RARE_SHARE: Final = 0.2
_RARE_ROWS: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalHit:
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
    if not plan.scored:
        return []
    driving = _driving(plan.scored, chunks)
    if driving is not None:
        hits = _ranked(connection, _expression(plan, driving), limit, scope)
        if len(hits) >= limit:
            return hits
    return _ranked(connection, _expression(plan, None), limit, scope)


def _driving(scored: Sequence[Unit], chunks: int) -> frozenset[Unit] | None:
    """The units one of which a row must hold to be looked at; None where every row may be looked at."""
    budget = max(_RARE_ROWS, int(_RARE_SHARE * chunks))
    distinct = sorted(dict.fromkeys(scored), key=lambda unit: (unit.rows, unit.match))
    if sum(unit.rows for unit in distinct if unit.single) <= budget:
        return None
    driving: set[Unit] = set()
    looked_at = 0
    for unit in distinct:
        if unit.single and driving and looked_at + unit.rows > budget:
            continue
        driving.add(unit)
        looked_at += unit.rows if unit.single else 0
    return frozenset(driving) if len(driving) < len(distinct) else None


def _expression(plan: Plan, driving: frozenset[Unit] | None) -> str:
    """The FTS5 expression for a plan; every phrase in it is a quoted run of words.

    FTS5 adds up the scores of all phrases of the expression that a row holds, those that stand in it several times
    several times. The units that drive the search stand once as condition and once to be scored, so the others
    stand twice: every unit has the same share then.
    """
    if driving is None:
        matches = [unit.match for unit in plan.scored]
        clauses = [_any(matches)]
    else:
        first = [unit.match for unit in plan.scored if unit in driving]
        others = [unit.match for unit in plan.scored if unit not in driving]
        clauses = [_any(first), _any([*first, *others, *others])]
    required = " AND ".join([*plan.required, *clauses])
    return f"({required}) NOT {_any(plan.excluded)}" if plan.excluded else required


def _any(matches: Sequence[str]) -> str:
    return f"({' OR '.join(matches)})"


def _ranked(connection: apsw.Connection, expression: str, limit: int, scope: ChunkScope | None) -> list[LexicalHit]:
    where = "fts MATCH ?"
    bindings: tuple[apsw.SQLiteValue, ...] = (*COLUMN_WEIGHTS, expression)
    if scope is not None:
        # The sign keeps FTS5 from looking the rows up one by one.
        where += f" AND +fts.rowid IN ({scope.sql})"
        bindings = (*bindings, *scope.bindings)
    scored = f"SELECT fts.rowid AS id, bm25(fts, ?, ?, ?, ?) AS score FROM fts WHERE {where}"
    rows = list(connection.execute(f"{scored} ORDER BY score, id LIMIT ?", (*bindings, limit + 1)))
    if len(rows) > limit and rows[limit - 1][1] == rows[limit][1]:
        # The place where the list is cut lies among equals: path and position decide, which costs more to ask for.
        rows = list(
            connection.execute(
                f"SELECT s.id, s.score FROM ({scored}) AS s JOIN chunks AS c ON c.id = s.id"
                " JOIN documents AS d ON d.id = c.document_id ORDER BY s.score, d.path, c.ordinal LIMIT ?",
                (*bindings, limit),
            )
        )
    return [LexicalHit(chunk_id=int(chunk_id), score=-float(score)) for chunk_id, score in rows[:limit]]
