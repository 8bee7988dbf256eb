"""Vector search: speed against an exact scan of the same table, recall, and how both grow."""

import tempfile
from pathlib import Path

import apsw
import numpy as np
from tests.benchmarks.support import Row, alternate

from local_vector_search_mcp.index import coarse, vectors
from local_vector_search_mcp.index.connection import find_vector_library

_DIMENSIONS = 1_024
_QUERIES = 20
_TOP = 10


def run(quick: bool) -> list[Row]:
    """Measure on random directions, the hardest case for codes: no vector is near any other."""
    count = 20_000 if quick else 100_000
    with tempfile.TemporaryDirectory(prefix="lvs-bench-") as folder:
        connection = _filled(Path(folder) / "vectors.db", count)
        try:
            return _measured(connection, count)
        finally:
            connection.close()


def _measured(connection: apsw.Connection, count: int) -> list[Row]:
    rng = np.random.default_rng(2)
    queries = [_unit(rng.standard_normal(_DIMENSIONS)) for _ in range(_QUERIES)]
    coarse.refresh(connection, vectors=count, dimensions=_DIMENSIONS, exact_most_numbers=0)
    exact = [_exact(connection, query) for query in queries]
    ours = [_coarse(connection, query) for query in queries]
    recall = sum(len(set(one) & set(other)) for one, other in zip(exact, ours, strict=True)) / (_TOP * _QUERIES)
    turn = iter(range(1_000_000))
    coarse_time, exact_time = alternate(
        lambda: _coarse(connection, queries[next(turn) % _QUERIES]),
        lambda: _exact(connection, queries[next(turn) % _QUERIES]),
        repeats=_QUERIES,
    )
    ratio = coarse_time.median / exact_time.median
    size = f"{count:,} x {_DIMENSIONS:,}, top {_TOP}"
    return [
        Row(
            name=f"vector search, {size}",
            value=coarse_time.median * 1000,
            unit="ms",
            baseline=exact_time.median * 1000,
            ratio=ratio,
            bar="<= 0.35 x exact sqlite-vec float search of the same table",
            note="random directions",
            passed=ratio <= 0.35,
        ),
        Row(
            name=f"vector search recall@{_TOP}, {size}",
            value=recall,
            unit="share",
            bar=">= 0.97",
            note=f"{_QUERIES} queries against the exact order",
            passed=recall >= 0.97,
        ),
    ]


def _filled(path: Path, count: int) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(find_vector_library().library or "")
    connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF")
    connection.execute(vectors.VECTOR_TABLES)
    rng = np.random.default_rng(1)
    for start in range(0, count, 5_000):
        block = rng.standard_normal((min(5_000, count - start), _DIMENSIONS))
        with connection:
            vectors.put(
                connection,
                (
                    vectors.VectorRow(
                        chunk_id=start + place + 1,
                        text_hash=(start + place).to_bytes(16, "little"),
                        vector=_unit(values),
                    )
                    for place, values in enumerate(block)
                ),
            )
    return connection


def _unit(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> bytes:
    return (values / np.linalg.norm(values)).astype("<f4").tobytes()


def _coarse(connection: apsw.Connection, query: bytes) -> list[int]:
    return [one.chunk_id for one in vectors.nearest(connection, query, k=_TOP)]


def _exact(connection: apsw.Connection, query: bytes) -> list[int]:
    rows = connection.execute(
        "SELECT chunk_id FROM vectors ORDER BY vec_distance_cosine(vector, ?), chunk_id LIMIT ?", (query, _TOP)
    )
    return [int(row[0]) for row in rows]
