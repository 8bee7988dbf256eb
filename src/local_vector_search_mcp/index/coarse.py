"""Coarse codes of vectors: a few bits a number, compared by counting differing bits.

Each number becomes three bits that say above which of three levels it lies, the levels being the mean and
0.98 standard deviations on either side of it, per dimension. The number of differing bits of two codes is
then the distance between coarsely rounded vectors. What differs least is compared again, with the query's
numbers as they are. The codes of many vectors stand together in blocks, so that one search reads a few large
rows. Numpy is imported when codes are first made or searched.

Sources: Lloyd, "Least squares quantization in PCM", 1982 (four levels for a normal variable); Jégou, Douze and
Schmid, "Product Quantization for Nearest Neighbor Search", TPAMI 2011, III.A (the query is not rounded, and its
share in each possible piece of a code is looked up in a table).
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import apsw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COARSE_TABLES: Final = """
-- Vectors that no block holds yet; they are searched exactly.
CREATE TABLE vector_pending (chunk_id INTEGER PRIMARY KEY);
CREATE TABLE vector_blocks (
    block INTEGER PRIMARY KEY,
    chunk_ids BLOB NOT NULL,        -- little-endian int64; chunks that are gone may still stand here
    codes BLOB NOT NULL             -- as many codes of equal length
);
-- One row once there are blocks.
CREATE TABLE vector_levels (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    dimensions INTEGER NOT NULL,
    levels BLOB NOT NULL,           -- little-endian float32: low, middle and high for each dimension
    coded INTEGER NOT NULL          -- how many chunk ids stand in blocks
);
"""

_BLOCK_ROWS: Final = 4_096
_ROWS_AT_ONCE: Final = 1_024
_SAMPLE_ROWS: Final = 20_000
_SAMPLE_STEP_ROWS: Final = 1_024
_SPREAD: Final = 0.9816
# What the four ranges of a normal variable stand for, in standard deviations.
_OUTER, _INNER = 1.510, 0.4528
# So few vectors are quickly compared exactly; coding them one at a time would leave tiny blocks.
_PENDING_MOST: Final = 512
_DEAD_SHARE_MOST: Final = 0.3


def mark_pending(connection: apsw.Connection, chunk_id: int) -> None:
    """Note that a chunk's vector is in no block."""
    connection.execute("INSERT OR IGNORE INTO vector_pending VALUES (?)", (chunk_id,))


def forget_pending(connection: apsw.Connection, chunk_id: int) -> None:
    """Note that a chunk has no vector any more."""
    connection.execute("DELETE FROM vector_pending WHERE chunk_id = ?", (chunk_id,))


def clear(connection: apsw.Connection) -> None:
    """Drop all codes."""
    for table in ("vector_pending", "vector_blocks", "vector_levels"):
        connection.execute(f"DELETE FROM {table}")


def is_built(connection: apsw.Connection) -> bool:
    """Whether there are codes to search."""
    return connection.execute("SELECT 1 FROM vector_levels").fetchone() is not None


def coded(connection: apsw.Connection) -> int:
    """How many vectors have codes, some of which may be gone; 0 where there are no codes."""
    return int(connection.execute("SELECT coded FROM vector_levels").get or 0)


def refresh(connection: apsw.Connection, *, vectors: int, dimensions: int, exact_most_numbers: int) -> None:
    """Bring the codes in line with the vectors, where there are enough of them to need codes.

    Opens one transaction of its own. Called after vectors were written; doing nothing is the usual case.

    Args:
        connection: A writer.
        vectors: How many vectors there are.
        dimensions: Their length.
        exact_most_numbers: Up to so many numbers (vectors x dimensions), no codes are made.
    """
    if vectors * dimensions <= exact_most_numbers:
        return
    row: Any = connection.execute("SELECT dimensions, coded FROM vector_levels").fetchone()
    pending = int(connection.execute("SELECT count(*) FROM vector_pending").get)
    with connection:
        if row is None or row[0] != dimensions or row[1] + pending > vectors * (1 + _DEAD_SHARE_MOST):
            _rebuild(connection, dimensions)
        elif pending > _PENDING_MOST:
            _append(connection, _levels(connection))


def candidates(
    connection: apsw.Connection, query: bytes, count: int, *, looked_at: int, among: Sequence[int] | None
) -> list[int]:
    """Chunks whose codes are nearest to the query, and all that have no code yet; at most one entry each.

    Args:
        connection: A reader.
        query: The query vector, little-endian float32.
        count: How many coded chunks to name.
        looked_at: How many codes, of those that differ least from the query's, are compared with its numbers.
        among: Only these chunks; None means all.
    """
    import numpy as np

    levels = _levels(connection)
    numbers = np.frombuffer(query, dtype="<f4")
    code = _encode(numbers[None, :], levels)[0]
    wanted = None if among is None else np.sort(np.asarray(among, dtype=np.int64))
    nearest = _Nearest(max(count, looked_at))
    for block_ids, codes in _blocks(connection, len(code)):
        if wanted is not None:
            inside = _inside(block_ids, wanted)
            block_ids, codes = block_ids[inside], codes[inside]
        nearest.add(block_ids, codes, _differing(codes, code))
    rows = connection.execute("SELECT chunk_id FROM vector_pending")
    pending = np.fromiter((row[0] for row in rows), dtype=np.int64)
    if wanted is not None:
        pending = pending[_inside(pending, wanted)]
    ids, codes = nearest.best()
    if len(ids) > count:
        ids = ids[np.argpartition(-_likeness(codes, numbers, levels), count)[:count]]
    return sorted({*ids.tolist(), *pending.tolist()})


def _inside(ids: "NDArray[np.int64]", wanted: "NDArray[np.int64]") -> "NDArray[np.bool_]":
    """Which of the ids stand among the wanted ones, which are in order. Numpy's own test would sort those each time."""
    import numpy as np

    if not len(wanted):
        return np.zeros(len(ids), dtype=np.bool_)
    places = np.searchsorted(wanted, ids)
    found: NDArray[np.bool_] = wanted[np.minimum(places, len(wanted) - 1)] == ids
    return found


class _Nearest:
    """The codes that differ least among those seen so far, so that no more than a few blocks are held."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._seen: list[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]] = []
        self._bound: float | None = None

    def add(self, ids: "NDArray[np.int64]", codes: "NDArray[np.uint64]", differing: "NDArray[np.float32]") -> None:
        """Look at the codes of a block."""
        if self._bound is not None:
            inside = differing < self._bound
            ids, codes, differing = ids[inside], codes[inside], differing[inside]
        self._seen.append((ids, codes, differing))
        if sum(len(seen) for seen, _, _ in self._seen) >= 2 * self._count:
            self._keep_best()

    def best(self) -> "tuple[NDArray[np.int64], NDArray[np.uint64]]":
        """The ids and codes of the best, in no order."""
        import numpy as np

        if not self._seen:
            return np.empty(0, dtype=np.int64), np.empty((0, 1), dtype=np.uint64)
        self._keep_best()
        ids, codes, _ = self._seen[0]
        return ids, codes

    def _keep_best(self) -> None:
        import numpy as np

        ids, codes, differing = (np.concatenate(parts) for parts in zip(*self._seen, strict=True))
        if len(ids) > self._count:
            kept = np.argpartition(differing, self._count)[: self._count]
            ids, codes, differing = ids[kept], codes[kept], differing[kept]
            self._bound = float(differing.max())
        self._seen = [(ids, codes, differing)]


def _differing(codes: "NDArray[np.uint64]", code: "NDArray[np.uint64]") -> "NDArray[np.float32]":
    """How many bits of each code differ from those of one."""
    import numpy as np

    # A product of matrices adds up short rows several times as fast as ``sum``, and such numbers it adds exactly.
    ones = np.ones(len(code), dtype=np.float32)
    differing: NDArray[np.float32] = np.bitwise_count(codes ^ code).astype(np.float32) @ ones
    return differing


def _likeness(
    codes: "NDArray[np.uint64]", numbers: "NDArray[np.float32]", levels: "NDArray[np.float32]"
) -> "NDArray[np.float32]":
    """The product of each coded vector with a vector that is not rounded, but for a constant."""
    import numpy as np

    deviations = (levels[2] - levels[1]) / _SPREAD
    # What a number gains with each level that it lies above.
    gains = [(_OUTER - _INNER) * deviations, 2 * _INNER * deviations, (_OUTER - _INNER) * deviations]
    padding = -len(numbers) % 8
    shares = np.concatenate([np.pad(gain * numbers, (0, padding)) for gain in gains]).astype(np.float32)
    every_byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)
    table = shares.reshape(-1, 8) @ every_byte.T
    pieces, places = codes.view(np.uint8)[:, : len(table)], np.arange(0, table.size, 256)
    # A few rows at a time stay in the processor's cache.
    likeness = np.empty(len(codes), dtype=np.float32)
    for at in range(0, len(codes), _ROWS_AT_ONCE):
        likeness[at : at + _ROWS_AT_ONCE] = table.ravel().take(pieces[at : at + _ROWS_AT_ONCE] + places).sum(axis=1)
    return likeness


def _rebuild(connection: apsw.Connection, dimensions: int) -> None:
    import numpy as np

    connection.execute("DELETE FROM vector_blocks")
    connection.execute("DELETE FROM vector_levels")
    connection.execute("INSERT OR IGNORE INTO vector_pending SELECT chunk_id FROM vectors")
    # A stride over the ids samples every part of the tree.
    stride = max(1, int(connection.execute("SELECT count(*) FROM vector_pending").get) // _SAMPLE_ROWS)
    rows: Iterator[Any] = connection.execute(
        "SELECT vector FROM vectors WHERE chunk_id % ? = 0 LIMIT ?", (stride, _SAMPLE_ROWS)
    )
    middle, deviation = _distribution(rows, dimensions)
    spread = deviation * _SPREAD
    levels = np.stack([middle - spread, middle, middle + spread]).astype("<f4")
    connection.execute("INSERT INTO vector_levels VALUES (1, ?, ?, 0)", (dimensions, levels.tobytes()))
    _append(connection, levels)


def _distribution(rows: Iterator[Any], dimensions: int) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Mean and standard deviation of each number, a few vectors in memory at a time."""
    import numpy as np

    count, total, squares = 0, np.zeros(dimensions), np.zeros(dimensions)
    while taken := list(islice(rows, _SAMPLE_STEP_ROWS)):
        part = np.stack([np.frombuffer(row[0], dtype="<f4") for row in taken]).astype(np.float64)
        count += len(part)
        total += part.sum(axis=0)
        squares += np.square(part).sum(axis=0)
    middle = total / max(count, 1)
    return middle, np.sqrt(np.maximum(squares / max(count, 1) - np.square(middle), 0.0))


def _append(connection: apsw.Connection, levels: "NDArray[np.float32]") -> None:
    """Code every pending vector."""
    import numpy as np

    while rows := _pending_rows(connection):
        ids = np.asarray([row[0] for row in rows], dtype="<i8")
        codes = _encode(np.stack([np.frombuffer(row[1], dtype="<f4") for row in rows]), levels)
        connection.execute(
            "INSERT INTO vector_blocks (chunk_ids, codes) VALUES (?, ?)", (ids.tobytes(), codes.tobytes())
        )
        connection.execute("UPDATE vector_levels SET coded = coded + ?", (len(rows),))
        connection.executemany("DELETE FROM vector_pending WHERE chunk_id = ?", [(row[0],) for row in rows])


def _pending_rows(connection: apsw.Connection) -> list[Any]:
    return connection.execute(
        "SELECT chunk_id, vector FROM vector_pending JOIN vectors USING (chunk_id) ORDER BY chunk_id LIMIT ?",
        (_BLOCK_ROWS,),
    ).fetchall()


def _levels(connection: apsw.Connection) -> "NDArray[np.float32]":
    import numpy as np

    row: Any = connection.execute("SELECT dimensions, levels FROM vector_levels").fetchone()
    if row is None:
        raise LookupError("there are no codes to search")
    return np.frombuffer(row[1], dtype="<f4").reshape(3, row[0])


def _encode(vectors: "NDArray[np.float32]", levels: "NDArray[np.float32]") -> "NDArray[np.uint64]":
    """The codes of vectors, one row each, padded to whole words of 64 bits."""
    import numpy as np

    bits = np.concatenate([np.packbits(vectors > level, axis=1) for level in levels], axis=1)
    padding = -bits.shape[1] % 8
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, padding)))).view(np.uint64)


def _blocks(connection: apsw.Connection, words: int) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]":
    import numpy as np

    rows: Iterator[Any] = connection.execute("SELECT chunk_ids, codes FROM vector_blocks ORDER BY block")
    for chunk_ids, codes in rows:
        yield np.frombuffer(chunk_ids, dtype="<i8"), np.frombuffer(codes, dtype=np.uint64).reshape(-1, words)
