"""Vectors of chunks: kept by text, found by nearness, exactly and through coarse codes."""

import random
import struct
from collections.abc import Iterator, Sequence

import apsw
import numpy as np
import pytest

from local_vector_search_mcp.index import coarse, vectors
from local_vector_search_mcp.index.connection import find_vector_library
from local_vector_search_mcp.index.vectors import ChunkScope, VectorRow, nearest

DIMENSIONS = 24


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    """An empty database with the vector tables and sqlite-vec."""
    opened = apsw.Connection(":memory:")
    opened.enable_load_extension(True)
    library = find_vector_library().library
    assert library is not None
    opened.load_extension(library)
    opened.execute(vectors.VECTOR_TABLES)
    yield opened
    opened.close()


def unit(values: Sequence[float]) -> bytes:
    length = sum(value * value for value in values) ** 0.5
    return struct.pack(f"<{len(values)}f", *(value / length for value in values))


def random_unit(rng: random.Random) -> bytes:
    return unit([rng.gauss(0, 1) for _ in range(DIMENSIONS)])


def row(chunk_id: int, vector: bytes, text: str | None = None) -> VectorRow:
    return VectorRow(chunk_id=chunk_id, text_hash=(text or f"text {chunk_id}").encode().ljust(16), vector=vector)


def by_hand(rows: Sequence[VectorRow], query: bytes, k: int) -> list[int]:
    wanted = struct.unpack(f"<{DIMENSIONS}f", query)

    def distance(one: VectorRow) -> float:
        return -float(sum(a * b for a, b in zip(wanted, struct.unpack(f"<{DIMENSIONS}f", one.vector), strict=True)))

    return [one.chunk_id for one in sorted(rows, key=distance)[:k]]


def filled(connection: apsw.Connection, count: int, *, coded: bool) -> list[VectorRow]:
    rng = random.Random(7)
    rows = [row(number, random_unit(rng)) for number in range(1, count + 1)]
    vectors.put(connection, rows)
    if coded:
        coarse.refresh(connection, vectors=count, dimensions=DIMENSIONS, exact_most_numbers=0)
        assert coarse.is_built(connection)
    return rows


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("k", [1, 10, 400])
def test_nearest__agrees_with_arithmetic(connection: apsw.Connection, *, coded: bool, k: int) -> None:
    """Exact and coarse search give the nearest chunks, nearest first, at most k of them."""
    rows = filled(connection, 300, coded=coded)
    query = random_unit(random.Random(3))
    found = nearest(connection, query, k=k)
    assert [one.chunk_id for one in found] == by_hand(rows, query, k)
    assert [one.distance for one in found] == sorted(one.distance for one in found)


@pytest.mark.parametrize("coded", [False, True])
def test_nearest__a_scope_is_searched_inside(connection: apsw.Connection, *, coded: bool) -> None:
    """A lone chunk of the scope is found though hundreds of others are nearer."""
    rows = filled(connection, 300, coded=coded)
    query = random_unit(random.Random(3))
    farthest = by_hand(rows, query, 300)[-1]
    scope = ChunkScope(sql="SELECT ? UNION ALL SELECT 999999", bindings=(farthest,))
    assert [one.chunk_id for one in nearest(connection, query, k=5, scope=scope)] == [farthest]


def test_nearest__a_large_scope_goes_through_the_codes(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scope above the exact limit is searched coarsely and still holds only its own chunks."""
    rows = filled(connection, 300, coded=True)
    monkeypatch.setattr(vectors, "_EXACT_SCOPE_ROWS", 10)
    query = random_unit(random.Random(3))
    even = ChunkScope(sql="SELECT chunk_id FROM vectors WHERE chunk_id % 2 = 0")
    found = [one.chunk_id for one in nearest(connection, query, k=10, scope=even)]
    assert found == by_hand([one for one in rows if one.chunk_id % 2 == 0], query, 10)


def test_nearest__a_large_scope_holds_what_has_no_code_yet(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors that no block holds are found in the scope and left out outside it; so is a scope without any."""
    filled(connection, 300, coded=True)
    monkeypatch.setattr(vectors, "_EXACT_SCOPE_ROWS", 0)
    query = random_unit(random.Random(3))
    vectors.put(connection, [row(7_000, query), row(7_001, query)])
    for scope, expected in (("chunk_id % 2 = 0", [7_000]), ("chunk_id > 7000", [7_001]), ("chunk_id = 9000", [])):
        inside = ChunkScope(sql=f"SELECT chunk_id FROM vectors WHERE {scope}")
        assert [one.chunk_id for one in nearest(connection, query, k=1, scope=inside)] == expected, scope


def test_nearest__more_than_sqlite_vec_takes_as_k(connection: apsw.Connection) -> None:
    """No limit of 4,096 on k: every chunk comes back."""
    filled(connection, 5_000, coded=False)
    assert len(nearest(connection, random_unit(random.Random(1)), k=10_000)) == 5_000


@pytest.mark.parametrize(("equals", "k"), [(4, 3), (300, 2), (3_000, 1)])
def test_nearest__equals_of_the_last_come_too(connection: apsw.Connection, equals: int, k: int) -> None:
    """Which of them stay is for whoever knows more than their ids, which another index of the same files has not."""
    same, opposite = unit([1.0] * DIMENSIONS), unit([-1.0] * DIMENSIONS)
    vectors.put(connection, [row(number, same, "same") for number in range(1, equals + 1)])
    vectors.put(connection, [row(equals + 1, opposite)])
    assert [one.chunk_id for one in nearest(connection, same, k=k)] == list(range(1, equals + 1))


def test_nearest__nothing_stored_finds_nothing(connection: apsw.Connection) -> None:
    """An empty table has no neighbours."""
    assert nearest(connection, random_unit(random.Random(1)), k=5) == []


def test_coarse__finds_nearly_all_that_an_exact_search_finds(connection: apsw.Connection) -> None:
    """Of several blocks of random directions, the hardest case, hardly any of the nearest are overlooked."""
    rng = np.random.default_rng(5)
    made = rng.standard_normal((10_000, 128))
    made = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype("<f4")
    vectors.put(connection, [row(number, one.tobytes()) for number, one in enumerate(made)])
    coarse.refresh(connection, vectors=len(made), dimensions=128, exact_most_numbers=0)
    for k, share in ((10, 0.97), (50, 0.9)):
        hits = 0
        for query in made[:20] + 0.3 * made[20:40]:
            wanted = np.argsort(-(made @ query), kind="stable")[:k].tolist()
            hits += len({one.chunk_id for one in nearest(connection, query.tobytes(), k=k)} & set(wanted))
        assert hits >= share * 20 * k


def test_coarse__new_and_changed_and_gone_vectors_count_at_once(connection: apsw.Connection) -> None:
    """Between two refreshes the codes are out of step, and the answers are not."""
    rows = filled(connection, 300, coded=True)
    query = random_unit(random.Random(3))
    first, second = by_hand(rows, query, 2)
    vectors.drop(connection, [first], today=1)
    vectors.put(connection, [row(7_000, query)])
    opposite = struct.pack(f"<{DIMENSIONS}f", *(-value for value in struct.unpack(f"<{DIMENSIONS}f", query)))
    vectors.put(connection, [row(second, opposite)])
    found = [one.chunk_id for one in nearest(connection, query, k=300)]
    assert found[0] == 7_000
    assert found[-1] == second
    assert first not in found


def test_coarse__a_reused_id_is_found_by_its_new_vector(connection: apsw.Connection) -> None:
    """An id that is given again is not searched under the code of its former vector."""
    rows = filled(connection, 300, coded=True)
    query = random_unit(random.Random(3))
    last = by_hand(rows, query, 300)[-1]
    vectors.drop(connection, [last], today=1)
    vectors.put(connection, [row(last, query)])
    assert nearest(connection, query, k=1)[0].chunk_id == last


def test_coarse__refresh_appends_rebuilds_and_leaves_alone(connection: apsw.Connection) -> None:
    """Few new vectors wait, many are appended, and codes of many dead ones are made anew."""
    filled(connection, 1_000, coded=True)

    def blocks() -> int:
        return int(connection.execute("SELECT count(*) FROM vector_blocks").get)

    def coded() -> int:
        return int(connection.execute("SELECT coded FROM vector_levels").get)

    def refresh(count: int) -> None:
        coarse.refresh(connection, vectors=count, dimensions=DIMENSIONS, exact_most_numbers=0)

    rng = random.Random(9)
    vectors.put(connection, [row(number, random_unit(rng)) for number in range(2_000, 2_010)])
    refresh(1_010)
    assert (blocks(), coded()) == (1, 1_000)
    vectors.put(connection, [row(number, random_unit(rng)) for number in range(3_000, 3_600)])
    refresh(1_610)
    assert (blocks(), coded()) == (2, 1_610)
    vectors.drop(connection, range(1, 901), today=1)
    refresh(710)
    assert (blocks(), coded()) == (1, 710)


def test_coarse__levels_are_the_same_however_many_vectors_are_in_memory(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample is read a few vectors at a time: levels lie around the mean of each number, at its deviation."""
    monkeypatch.setattr(coarse, "_SAMPLE_STEP_ROWS", 7)
    rows = filled(connection, 300, coded=True)
    numbers = np.stack([np.frombuffer(one.vector, dtype="<f4") for one in rows])
    stored = connection.execute("SELECT levels FROM vector_levels").get
    low, middle, high = np.frombuffer(stored, dtype="<f4").reshape(3, DIMENSIONS)
    assert np.allclose(middle, numbers.mean(axis=0), atol=1e-6)
    assert np.allclose(high - middle, 0.9816 * numbers.std(axis=0), atol=1e-6)
    assert np.allclose(middle - low, high - middle, atol=1e-6)


def test_coarse__small_tables_get_no_codes(connection: apsw.Connection) -> None:
    """Below the limit exact search is quick enough."""
    filled(connection, 300, coded=False)
    coarse.refresh(connection, vectors=300, dimensions=DIMENSIONS, exact_most_numbers=vectors.EXACT_MOST_NUMBERS)
    assert not coarse.is_built(connection)


def test_adopt__known_texts_cost_nothing(connection: apsw.Connection) -> None:
    """A vector is adopted from a living chunk of the same text, or from one that is gone."""
    rng = random.Random(1)
    living, gone = row(1, random_unit(rng), "living"), row(2, random_unit(rng), "gone")
    vectors.put(connection, [living, gone])
    vectors.drop(connection, [2], today=100)
    wanted = [(11, living.text_hash), (12, gone.text_hash), (13, b"never seen".ljust(16))]
    assert vectors.adopt(connection, wanted) == [11, 12]
    assert nearest(connection, gone.vector, k=1)[0].chunk_id == 12
    assert connection.execute("SELECT count(*) FROM vector_cache").get == 0


def test_cache__old_vectors_are_dropped_after_their_time(connection: apsw.Connection) -> None:
    """Vectors that no chunk has are forgotten by the day they were dropped."""
    rng = random.Random(1)
    rows = [row(number, random_unit(rng)) for number in (1, 2)]
    vectors.put(connection, rows)
    vectors.drop(connection, [1], today=100)
    vectors.drop(connection, [2], today=120)
    assert vectors.prune_cache(connection, before_day=110) == 1
    assert vectors.known_vector(connection, rows[0].text_hash) is None
    assert vectors.known_vector(connection, rows[1].text_hash) == rows[1].vector


def test_copy_known__a_rebuild_brings_all_vectors_along(connection: apsw.Connection) -> None:
    """A new database starts with every vector of the old one, by text."""
    rng = random.Random(1)
    rows = [row(number, random_unit(rng)) for number in range(1, 1_202)]
    vectors.put(connection, rows)
    vectors.drop(connection, [1], today=100)
    other = apsw.Connection(":memory:")
    other.execute(vectors.VECTOR_TABLES)
    assert vectors.copy_known(connection, other, today=5) == 1_201
    assert all(vectors.known_vector(other, one.text_hash) == one.vector for one in rows)
    other.close()


def test_clear__leaves_nothing(connection: apsw.Connection) -> None:
    """After another model was chosen nothing of the old one remains."""
    filled(connection, 300, coded=True)
    vectors.drop(connection, [1], today=1)
    vectors.clear(connection)
    for table in ("vectors", "vector_cache", "vector_pending", "vector_blocks", "vector_levels"):
        assert connection.execute(f"SELECT count(*) FROM {table}").get == 0
