"""Weighted BM25: looking only at rows with a rare word gives the best rows in the same order."""

import random
from collections.abc import Iterator, Sequence

import apsw
import pytest

from local_vector_search_mcp.index.schema import create_schema
from local_vector_search_mcp.index.vectors import ChunkScope
from local_vector_search_mcp.search.lexical import lexical_hits
from local_vector_search_mcp.search.plan import Plan, make_plan
from local_vector_search_mcp.search.query import parse_query
from local_vector_search_mcp.search.stop_words import ENGLISH
from local_vector_search_mcp.search.vocabulary import Vocabulary

_ROWS = 6_000
_NO_WEIGHT = 1e-5


@pytest.fixture(scope="module")
def connection() -> Iterator[apsw.Connection]:
    """Rows of words of very different frequency, each row another length."""
    dice = random.Random(3)
    common, middle = ["alpha", "beta", "gamma"], [f"middle{letter}" for letter in "abcdefgh"]
    bodies: list[str] = []
    for number in range(1, _ROWS + 1):
        words = dice.choices(common, k=dice.randint(2, 9)) + dice.choices(middle, k=dice.randint(0, 2))
        words += ["needle"] * (number % 97 == 0) + ["filler"] * (number % 29)
        dice.shuffle(words)
        bodies.append(" ".join(words))
    made = index_of(bodies)
    yield made
    made.close()


def index_of(bodies: Sequence[str]) -> apsw.Connection:
    """An index with a document of one chunk for each text, named by its number from 1."""
    made = apsw.Connection(":memory:")
    create_schema(made)
    with made:
        for number, body in enumerate(bodies, start=1):
            made.execute("INSERT INTO fts (rowid, body) VALUES (?, ?)", (number, body))
            made.execute(
                "INSERT INTO documents (id, path, size, mtime_ns, ctime_ns, inode, recheck, state, title,"
                " title_from_name) VALUES (?, ?, 0, 0, 0, 0, 0, 'indexed', '', 0)",
                (number, f"{number}.md"),
            )
            made.execute(
                "INSERT INTO chunks (id, document_id, ordinal, kinds, line_start, line_end, byte_start, byte_end,"
                " embed_state, embed_hash, content) VALUES (?, ?, 0, 0, 1, 1, 0, 1, 1, x'', x'')",
                (number, number),
            )
    return made


def plan_of(connection: apsw.Connection, query: str) -> Plan:
    """The plan of a query."""
    return make_plan(parse_query(query), Vocabulary(connection), ENGLISH)


def check(connection: apsw.Connection, query: str, *, limit: int = 20, scope: ChunkScope | None = None) -> None:
    """The rows found first have the scores of those that a search over all rows finds first.

    What stands in more than half of all rows has next to no weight, and is left out where rarer words are there.
    """
    plan = plan_of(connection, query)
    found = lexical_hits(connection, plan, chunks=_ROWS, limit=limit, scope=scope)
    # With a budget as large as the index every row is looked at.
    every = lexical_hits(connection, plan, chunks=100 * _ROWS, limit=limit, scope=scope)
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in every], abs=_NO_WEIGHT)
    assert len({hit.chunk_id for hit in found}) == len(found) == limit


@pytest.mark.parametrize(
    "query",
    ["needle alpha beta", "needle needle alpha gamma gamma", "middlea alpha", "alpha needle middleb beta middlec"],
)
def test_lexical_hits__rare_words_drive(connection: apsw.Connection, query: str) -> None:
    """Rows with a rare word are looked at alone, and give the same answer as all rows."""
    check(connection, query)


def test_lexical_hits__too_few_rare_rows(connection: apsw.Connection) -> None:
    """Where rows with a rare word cannot fill the list, the others do."""
    check(connection, "needle alpha beta", limit=500)


def test_lexical_hits__scope(connection: apsw.Connection) -> None:
    """A scope holds for every way of looking."""
    scope = ChunkScope(sql="SELECT id FROM chunks WHERE id % 2 = ?", bindings=(0,))
    check(connection, "needle alpha beta", limit=25, scope=scope)
    plan = plan_of(connection, "needle alpha beta")
    hits = lexical_hits(connection, plan, chunks=_ROWS, limit=100, scope=scope)
    assert {hit.chunk_id % 2 for hit in hits} == {0}


def test_lexical_hits__scores(connection: apsw.Connection) -> None:
    """Scores are positive and fall."""
    hits = lexical_hits(connection, plan_of(connection, "needle alpha"), chunks=_ROWS, limit=50, scope=None)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


def test_lexical_hits__nothing_scored(connection: apsw.Connection) -> None:
    """A plan that occurs nowhere finds nothing."""
    assert lexical_hits(connection, plan_of(connection, "unheard"), chunks=_ROWS, limit=5, scope=None) == []


def test_lexical_hits__equal_rows_by_path(connection: apsw.Connection) -> None:
    """Equal rows at the end of the list are chosen by path."""
    hits = lexical_hits(connection, plan_of(connection, "filler"), chunks=_ROWS, limit=3, scope=None)
    wanted = [hit.score for hit in hits]
    again = lexical_hits(connection, plan_of(connection, "filler"), chunks=_ROWS, limit=400, scope=None)
    best = sorted((f"{hit.chunk_id}.md", hit.chunk_id) for hit in again if hit.score == wanted[-1])
    assert [hit.chunk_id for hit in hits if hit.score == wanted[-1]] == [
        number for _, number in best[: sum(1 for score in wanted if score == wanted[-1])]
    ]


@pytest.mark.parametrize("query", ["same", "same thing"])
def test_lexical_hits__very_many_equal_rows(query: str) -> None:
    """Of more equal rows than are asked for at first, the first ones by path are given."""
    connection = index_of(["same thing"] * 2_500 + ["another thing"] * 3_000)
    hits = lexical_hits(connection, plan_of(connection, query), chunks=5_500, limit=4, scope=None)
    assert [hit.chunk_id for hit in hits] == [1, 10, 100, 1000]
    connection.close()


def test_lexical_hits__common_words_count() -> None:
    """A word that lets no row in is scored all the same, where it does not stand nearly everywhere."""
    connection = index_of(
        ["rare word"] * 30 + ["rare frequent"] + ["rare word"] * 30 + ["frequent word"] * 2_100 + ["w"] * 3_000
    )
    hits = lexical_hits(connection, plan_of(connection, "rare frequent"), chunks=5_161, limit=3, scope=None)
    assert [hit.chunk_id for hit in hits] == [31, 1, 10]
    assert hits[0].score > hits[1].score == hits[2].score
    connection.close()


def test_make_plan__many_words(connection: apsw.Connection) -> None:
    """A very long query keeps its rarest words."""
    with connection:
        for number in range(100):
            connection.execute("INSERT INTO fts (rowid, body) VALUES (?, ?)", (_ROWS + 1 + number, f"rare{number}x"))
    query = "alpha beta gamma " + " ".join(f"rare{number}x" for number in range(100))
    plan = plan_of(connection, query)
    assert len(plan.scored) <= 64
    assert "alpha" not in plan.words
    connection.execute("DELETE FROM fts WHERE rowid > ?", (_ROWS,))


@pytest.mark.parametrize(
    ("query", "words", "missing"),
    [
        ("the alpha", ("alpha",), ()),
        ("the of", (), ("the", "of")),
        ("alpha unheard", ("alpha",), ("unheard",)),
        ("alphas", ("alphas",), ()),
        ("alph", (), ()),
        ("alph beta", ("beta",), ("alph",)),
        ("al", (), ("al",)),
        ('"alph"', (), ('"alph"',)),
        ("alpha alpha", ("alpha",), ()),
        ("AlphaUnheard", ("alpha",), ("AlphaUnheard",)),
        ("alpha.unheard", ("alpha",), ("alpha.unheard",)),
    ],
)
def test_make_plan__table(
    connection: apsw.Connection, query: str, words: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    """Which words score, and which terms are missing; the beginning of a word counts at the end only."""
    plan = plan_of(connection, query)
    assert plan.words == words
    assert plan.missing == missing


def test_make_plan__own_stop_words(connection: apsw.Connection) -> None:
    """A configured list takes the place of the English one."""
    plan = make_plan(parse_query("alpha beta"), Vocabulary(connection), frozenset({"beta"}))
    assert plan.words == ("alpha",)
