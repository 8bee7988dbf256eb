"""Vectors of chunks: stored once by text hash, found by nearness.

A chunk's vector stands in a plain table under the chunk's id and is compared by sqlite-vec's distance
functions, so filters and deletions are ordinary SQL and no limit on k applies. Large tables get coarse
codes beside the vectors (``coarse.py``); what these propose is scored exactly before it is returned.
Vectors of chunks that are gone are kept for a while by the hash of the embedded text, so that text which
moves, or is chunked anew, is not embedded again.
"""

import itertools
import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import apsw

from local_vector_search_mcp.index import coarse

VECTOR_TABLES: Final = f"""
CREATE TABLE vectors (
    chunk_id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,             -- of the embedded text
    vector BLOB NOT NULL            -- little-endian float32, length 1
);
CREATE INDEX vectors_hash ON vectors (hash);
-- Vectors that no chunk has at present.
CREATE TABLE vector_cache (
    hash BLOB PRIMARY KEY,
    vector BLOB NOT NULL,
    dropped_day INTEGER NOT NULL    -- days since 1970-01-01
) WITHOUT ROWID;
CREATE INDEX vector_cache_dropped ON vector_cache (dropped_day);
-- Texts that the model refuses while it takes others.
CREATE TABLE embedding_failures (hash BLOB PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
{coarse.COARSE_TABLES}
"""

# Exact search reads every vector; above this many numbers it takes longer than all the rest of a search.
EXACT_MOST_NUMBERS: Final = 1_000_000
# With a scope, so many vectors are compared exactly whatever their length.
_EXACT_SCOPE_ROWS: Final = 20_000
# The codes of one in so many vectors are looked at twice, within these bounds. On random directions, where no vector
# is near any other, this keeps recall@10 at 0.98.
_LOOK_SHARE: Final = 8
_LOOKED_AT: Final = (500, 8_000)
# Of those, one in so many is compared exactly, and so many for each one that is asked for.
_EXACT_SHARE: Final = 5
_EXACT_TIMES: Final = 6
# Equal distances around the end of the list are asked for until their last one is known; hardly ever more than these.
_BEYOND: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    """One chunk's vector; ``vector`` is little-endian float32 of length 1."""

    chunk_id: int
    text_hash: bytes
    vector: bytes


class Neighbour(NamedTuple):
    """A chunk and its cosine distance from the query: 0 is the same direction, 2 the opposite."""

    chunk_id: int
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkScope:
    """The chunks to search: a query that gives chunk ids, with its bindings in order."""

    sql: str
    bindings: tuple["apsw.SQLiteValue", ...] = ()


def put(connection: apsw.Connection, rows: Iterable[VectorRow]) -> None:
    """Write vectors of chunks that have none yet, or have another. Runs in the caller's transaction."""
    for row in rows:
        connection.execute(
            "INSERT INTO vectors (chunk_id, hash, vector) VALUES (?, ?, ?) "
            "ON CONFLICT (chunk_id) DO UPDATE SET hash = excluded.hash, vector = excluded.vector",
            (row.chunk_id, row.text_hash, row.vector),
        )
        connection.execute("DELETE FROM vector_cache WHERE hash = ?", (row.text_hash,))
        coarse.mark_pending(connection, row.chunk_id)


def adopt(connection: apsw.Connection, wanted: Sequence[tuple[int, bytes]]) -> list[int]:
    """Give chunks the vectors that are known for their text already. Runs in the caller's transaction.

    Args:
        connection: A writer.
        wanted: Chunk ids with the hash of the text to embed.

    Returns:
        The ids of the chunks that have a vector now.
    """
    adopted: list[int] = []
    for chunk_id, text_hash in wanted:
        vector = known_vector(connection, text_hash)
        if vector is not None:
            put(connection, [VectorRow(chunk_id=chunk_id, text_hash=text_hash, vector=vector)])
            adopted.append(chunk_id)
    return adopted


def known_vector(connection: apsw.Connection, text_hash: bytes) -> bytes | None:
    """The vector of a text that a chunk has, or had a while ago; None where it must be embedded."""
    for table in ("vectors", "vector_cache"):
        row = connection.execute(f"SELECT vector FROM {table} WHERE hash = ? LIMIT 1", (text_hash,)).fetchone()
        if row is not None:
            return bytes(row[0])
    return None


def drop(connection: apsw.Connection, chunk_ids: Iterable[int], *, today: int) -> None:
    """Take vectors from chunks that go; they stay known by their text. Runs in the caller's transaction.

    Args:
        connection: A writer.
        chunk_ids: The chunks; those without a vector are passed over.
        today: Days since 1970-01-01.
    """
    for chunk_id in chunk_ids:
        connection.execute(
            "INSERT INTO vector_cache (hash, vector, dropped_day) "
            "SELECT hash, vector, ? FROM vectors WHERE chunk_id = ? "
            "ON CONFLICT (hash) DO UPDATE SET dropped_day = excluded.dropped_day",
            (today, chunk_id),
        )
        connection.execute("DELETE FROM vectors WHERE chunk_id = ?", (chunk_id,))
        coarse.forget_pending(connection, chunk_id)


def prune_cache(connection: apsw.Connection, *, before_day: int) -> int:
    """Drop cached vectors that no chunk has had since before a day (days since 1970-01-01); how many."""
    connection.execute("DELETE FROM vector_cache WHERE dropped_day < ?", (before_day,))
    return connection.changes()


def copy_known(source: apsw.Connection, target: apsw.Connection, *, today: int, batch: int = 500) -> int:
    """Bring all vectors of one database into the cache of another, for a rebuild with the same model; how many.

    The target commits in batches of its own; no transaction may be open on it.
    """
    copied = 0
    cursor = source.execute("SELECT hash, vector FROM vectors UNION ALL SELECT hash, vector FROM vector_cache")
    while rows := list(itertools.islice(cursor, batch)):
        with target:
            target.executemany(
                "INSERT INTO vector_cache (hash, vector, dropped_day) VALUES (?, ?, ?) ON CONFLICT (hash) DO NOTHING",
                [(row[0], row[1], today) for row in rows],
            )
        copied += len(rows)
    return copied


def clear(connection: apsw.Connection) -> None:
    """Drop every vector, cached ones too: another model is in use. Runs in the caller's transaction."""
    for table in ("vectors", "vector_cache", "embedding_failures"):
        connection.execute(f"DELETE FROM {table}")
    coarse.clear(connection)


def nearest(connection: apsw.Connection, query: bytes, *, k: int, scope: ChunkScope | None = None) -> list[Neighbour]:
    """The chunks nearest to a query vector, nearest first, with all that are as near as the last of them.

    Equal distances are ordered by chunk id.

    Args:
        connection: A reader with sqlite-vec loaded.
        query: Little-endian float32 of length 1, with as many dimensions as the stored vectors.
        k: How many, >= 1.
        scope: Only these chunks; None means all.

    Returns:
        Every one of the scope's chunks that has a vector, where they are fewer than ``k``.
    """
    if not coarse.is_built(connection):
        where = "" if scope is None else f"WHERE chunk_id IN ({scope.sql})"
        return _exact(connection, query, k, where, () if scope is None else scope.bindings)
    # Packed, because most of a million chunks may be in scope.
    rows = () if scope is None else connection.execute(scope.sql, scope.bindings)
    among = None if scope is None else array("q", (row[0] for row in rows))
    if among is not None and len(among) <= _EXACT_SCOPE_ROWS:
        return _rescored(connection, query, k, among)
    fewest, most = _LOOKED_AT
    looked_at = max(16 * k, fewest, min(most, coarse.coded(connection) // _LOOK_SHARE))
    count = max(_EXACT_TIMES * k, looked_at // _EXACT_SHARE)
    return _rescored(
        connection, query, k, coarse.candidates(connection, query, count, looked_at=looked_at, among=among)
    )


def _rescored(connection: apsw.Connection, query: bytes, k: int, chunk_ids: Sequence[int]) -> list[Neighbour]:
    return _exact(
        connection, query, k, "WHERE chunk_id IN (SELECT value FROM json_each(?))", (json.dumps(list(chunk_ids)),)
    )


def _exact(
    connection: apsw.Connection, query: bytes, k: int, where: str, bindings: tuple["apsw.SQLiteValue", ...]
) -> list[Neighbour]:
    most = k + _BEYOND
    while True:
        rows: list[Any] = connection.execute(
            f"SELECT chunk_id, vec_distance_cosine(vector, ?) AS distance FROM vectors {where} "
            "ORDER BY distance, chunk_id LIMIT ?",
            (query, *bindings, most),
        ).fetchall()
        # Every row as near as the last one is among these, unless the list was cut off among its equals.
        if len(rows) < most or rows[k - 1][1] < rows[-1][1]:
            break
        most *= 8
    bound = rows[min(k, len(rows)) - 1][1] if rows else 0.0
    return [Neighbour(chunk_id, distance) for chunk_id, distance in rows if distance <= bound]
