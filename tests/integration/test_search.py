"""Searching a real index: words, phrases, exclusions, filters, ranking, explanations."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.fake_embeddings import FakeEmbeddings
from tests.support.indexed_project import Control, Project

from local_vector_search_mcp.errors import InvalidArgument, InvalidPath
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.vectors import VectorRow, put
from local_vector_search_mcp.search.aside import Result, aside
from local_vector_search_mcp.search.filters import SearchFilters
from local_vector_search_mcp.search.query import parse_query
from local_vector_search_mcp.search.search import (
    GroupBy,
    Scores,
    Searcher,
    SearchOutcome,
    SearchRequest,
    SearchSettings,
)
from local_vector_search_mcp.services.job_state import RunScope

NOTES = {
    "cjk.md": (
        "# 料理帳\n\n昨夜は豆腐鍋をつくった。\n\n春天種下番茄與羅勒幼苗。\n\n"
        "어제 된장국수를 끓였다.\n\nเมื่อวานกินก๋วยเตี๋ยว\n"
    ),
    "ids.md": (
        "# Ids\n\nREQ-0173 uses save_all_rows and cook::mix.\n\nPeople can't open boxes on debian 12.4 or C++.\n"
    ),
    "code/tools.md": "# Tools\n\nThe KnowledgeBase class calls kb_edit_table with --embedding-provider in v1.2.3.\n",
    "code/names.md": "# Names\n\nA first element.\n\nSee HTTPServer2Config and parseHTML5Page.\n",
    "plans/a.md": (
        "---\nstatus: draft\npriority: 1\ntags: [Project/Alpha, home]\n---\n# Alpha plan\n\nShip the rocket soon.\n"
    ),
    "plans/b.md": (
        "---\nstatus: done\npriority: 2\ndate: 2026-02-01\ntags: project\n---\n# Beta plan\n\nThe rocket is late.\n"
    ),
    "plans/deep/c.md": (
        "# Gamma plan\n\n- rocket fuel #project/beta\n- rocket engine\n\n"
        "| part | price |\n| --- | --- |\n| rocket | 3 |\n"
    ),
    "plansx.md": "# Other\n\nA rocket elsewhere.\n\n```py\nlaunch(rocket)\n```\n",
    "café.md": "# Café Łódź\n\nNaïve résumé of the Straße.\n",
    "long.md": "# Long\n\n"
    + "".join(f"## Part {n}\n\n{'The tortoise walks on and on. ' * 40}Marker{n}.\n\n" for n in range(12)),
    "both.md": "# Both\n\nHeat conduction in slabs.\n\nNothing here.\n",
    "apart.md": "# Apart\n\nHeat is one thing. A long sentence stands between the two. Conduction is another.\n",
    "empty.md": "",
    "stop.md": "# Hamlet\n\nTo be or not to be, that is the question.\n",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("search")
    project = Project(folder / "notes", folder / "store")
    for path, text in NOTES.items():
        project.put(path, text)
        os.utime(project.root / path, ns=(1_700_000_000_000_000_000, 1_700_000_000_000_000_000))
    os.utime(project.root / "ids.md", ns=(1_769_860_800_500_000_000, 1_769_860_800_500_000_000))
    project.run()
    yield project
    project.database.close()


def search(project: Project, query: str, *, top_k: int = 10, **filters: Any) -> SearchOutcome:
    """The outcome of a lexical search."""
    request = SearchRequest(query=parse_query(query), top_k=top_k, filters=SearchFilters.parse(**filters))
    return Searcher(project.database, SearchSettings()).search(request)


def paths(outcome: SearchOutcome) -> list[str]:
    """The documents found, in order, each once."""
    return list(dict.fromkeys(hit.path for hit in outcome.hits))


def check(project: Project, query: str, first: str, *, missing: tuple[str, ...] = ()) -> None:
    """Which document comes first, and which terms are missing."""
    outcome = search(project, query)
    assert paths(outcome)[:1] == [first]
    assert outcome.missing_terms == missing


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("REQ-0173", "ids.md"),
        ('"REQ-0173"', "ids.md"),
        ("can't open boxes", "ids.md"),
        ("cook::mix", "ids.md"),
        ("save_all_rows", "ids.md"),
        ("save all rows", "ids.md"),
        ("debian 12.4", "ids.md"),
        ("C++", "ids.md"),
        ("豆腐鍋", "cjk.md"),
        ("つくった", "cjk.md"),
        ("鍋を", "cjk.md"),
        ("鍋", "cjk.md"),
        ("番茄", "cjk.md"),
        ("된장국수", "cjk.md"),
        ("장국", "cjk.md"),
        ("ก๋วยเตี๋ยว", "cjk.md"),
        ("KnowledgeBase", "code/tools.md"),
        ("knowledge base", "code/tools.md"),
        ("edit table", "code/tools.md"),
        ("--embedding-provider", "code/tools.md"),
        ("v1.2.3", "code/tools.md"),
        ("1.2.3", "code/tools.md"),
        ("cafe lodz", "café.md"),
        ("RESUME", "café.md"),
        ("strasse", "café.md"),
        ("rockets launching", "plansx.md"),
        ("hamlet", "stop.md"),
        ("to be or not to be", "stop.md"),
        ('"to be or not to be"', "stop.md"),
        ("launc", "plansx.md"),
        ("code/tools", "code/tools.md"),
        ("empty", "empty.md"),
        ("heat conduction", "both.md"),
        ("Marker7", "long.md"),
        ("HTTPServer2Config", "code/names.md"),
        ("server page", "code/names.md"),
        ("HTTPServer2", "code/names.md"),
        ("html5", "code/names.md"),
        ("kb_edi", "code/tools.md"),
        ("kb_ed", "code/tools.md"),
    ],
)
def test_search__found(project: Project, query: str, first: str) -> None:
    """Words, identifiers, parts of words of scripts without spaces, phrases and names find their document."""
    check(project, query, first)


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("zebra", ("zebra",)),
        ("zebra rocket unicorn", ("zebra", "unicorn")),
        ("REQ-9999", ("REQ-9999",)),
        ('"rocket plan"', ('"rocket plan"',)),
        ("the zebra", ("zebra",)),
        ("量子力学", ("量子力学",)),
        ("*", ("*",)),
        ("( ***", ("(", "***")),
        ("zebra .", ("zebra",)),
        ("rocket - fuel ?", ()),
        ("ZebraRocket", ("ZebraRocket",)),
    ],
)
def test_search__missing_terms(project: Project, query: str, missing: tuple[str, ...]) -> None:
    """Terms that occur nowhere are named as they were typed."""
    assert search(project, query).missing_terms == missing


def test_search__phrase_is_required(project: Project) -> None:
    """A quoted phrase is in every hit."""
    assert paths(search(project, '"heat conduction"')) == ["both.md"]
    assert paths(search(project, '"heat conduction" rocket')) == ["both.md"]
    assert paths(search(project, '"conduction heat"')) == []
    assert paths(search(project, '"豆腐鍋を"')) == ["cjk.md"]
    assert paths(search(project, '"豆腐を"')) == []


def test_search__absent_phrase_with_other_words(project: Project) -> None:
    """A phrase that is nowhere does not hide what the other words find, and the answer says so."""
    outcome = search(project, '"rocket plan" tortoise')
    assert paths(outcome) == ["long.md"]
    assert outcome.missing_terms == ('"rocket plan"',)
    assert any("rocket plan" in warning for warning in outcome.warnings)


def test_search__phrases_in_different_places(project: Project) -> None:
    """Phrases that never stand together are looked for one by one, and the answer says so."""
    outcome = search(project, '"heat conduction" "open boxes"')
    assert sorted(paths(outcome)) == ["both.md", "ids.md"]
    assert len(outcome.warnings) == 1


def test_search__exclusions(project: Project) -> None:
    """Excluded words and phrases are in no hit."""
    assert "plans/b.md" in paths(search(project, "rocket"))
    outcome = search(project, "rocket -late")
    assert "plans/b.md" not in paths(outcome)
    assert "plans/a.md" in paths(outcome)
    assert outcome.warnings == ()
    assert paths(search(project, 'conduction -"heat conduction"')) == ["apart.md"]
    assert paths(search(project, "heat -slab")) == ["apart.md"]


@pytest.mark.parametrize(("query", "first"), [("-rocket", "plans"), ("tortoise -walks", "long.md")])
def test_search__exclusions_read_as_text(project: Project, query: str, first: str) -> None:
    """Where nothing else is asked or would be found, an exclusion is a word, and the answer says so."""
    outcome = search(project, query)
    assert outcome.hits[0].path.startswith(first)
    assert any("hyphen" in warning for warning in outcome.warnings)


def test_search__exclusion_that_does_not_matter(project: Project) -> None:
    """Nothing found either way is told without a warning about hyphens."""
    outcome = search(project, "zebra -unicorn")
    assert outcome.hits == ()
    assert outcome.warnings == ()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "plans/a.md plans/b.md plans/deep/c.md plansx.md"),
        ({"path_prefix": ""}, "plans/a.md plans/b.md plans/deep/c.md plansx.md"),
        ({"path_prefix": "."}, "plans/a.md plans/b.md plans/deep/c.md plansx.md"),
        ({"path_prefix": "/"}, "plans/a.md plans/b.md plans/deep/c.md plansx.md"),
        ({"path_prefix": "plans"}, "plans/a.md plans/b.md plans/deep/c.md"),
        ({"path_prefix": "plans/"}, "plans/a.md plans/b.md plans/deep/c.md"),
        ({"path_prefix": "./plans/deep"}, "plans/deep/c.md"),
        ({"path_prefix": "plans/a.md"}, "plans/a.md"),
        ({"path_prefix": "plan"}, ""),
        ({"path_prefix": "Plans"}, ""),
        ({"path_prefix": "plans/%"}, ""),
        ({"path_fits": re.compile(r".*c\.md").fullmatch}, "plans/deep/c.md"),
        ({"tags": ["project"]}, "plans/a.md plans/b.md plans/deep/c.md"),
        ({"tags": ["#PROJECT/alpha"]}, "plans/a.md"),
        ({"tags": ["project", "home"]}, "plans/a.md"),
        ({"tags": ["proj"]}, ""),
        ({"tags": ["project/"]}, "plans/a.md plans/b.md plans/deep/c.md"),
        ({"where": {"status": "draft"}}, "plans/a.md"),
        ({"where": {"status": {"$ne": "draft"}}}, "plans/b.md plans/deep/c.md plansx.md"),
        ({"where": {"priority": {"$gte": 1}, "status": "done"}}, "plans/b.md"),
        ({"where": {"date": {"$gte": "2026-01-01"}}}, "plans/b.md"),
        ({"where": {"tags": "Project/Alpha"}}, "plans/a.md"),
        ({"kinds": ["table"]}, "plans/deep/c.md"),
        ({"kinds": ["code"]}, "plansx.md"),
        ({"kinds": ["code", "list_item"]}, "plans/deep/c.md plansx.md"),
        ({"kinds": ["math"]}, ""),
        ({"modified_after": "2023-11-14"}, "plans/a.md plans/b.md plans/deep/c.md plansx.md"),
        ({"modified_after": "2023-11-15"}, ""),
        ({"path_prefix": "plans", "tags": ["project"], "kinds": ["list_item"]}, "plans/deep/c.md"),
    ],
)
def test_search__filters(project: Project, filters: dict[str, Any], expected: str) -> None:
    """Each filter alone and some together."""
    assert sorted(paths(search(project, "rocket", **filters))) == expected.split()


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ("2026-01-31", True),
        ("2026-01-31T12:00:00Z", False),
        ("2026-01-31T11:59:59Z", True),
        ("2026-01-31T12:00:00.4Z", True),
        ("2026-01-31T12:00:00.5Z", False),
        ("2026-01-31T13:00:00+01:00", False),
        ("2026-01-31T13:00:00+0101", True),
        ("2026-01-31 06:59:59-05", True),
        ("2026-01-31T11:59", True),
        ("2026-02-01", False),
        ("0001-01-01T00:00:00+23:59", True),
        ("9999-12-31T23:59:59-23:59", False),
    ],
)
def test_search__modified_after(project: Project, after: str, found: bool) -> None:
    """The time is exclusive, in UTC unless it says otherwise; the file was changed at 12:00:00.5 UTC."""
    assert bool(search(project, "debian", modified_after=after).hits) is found


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ({"path_prefix": "../x"}, InvalidPath),
        ({"path_prefix": "/etc"}, InvalidPath),
        ({"tags": [""]}, InvalidArgument),
        ({"tags": ["#"]}, InvalidArgument),
        ({"where": {"a": {"$regex": "x"}}}, InvalidArgument),
        ({"kinds": ["document"]}, InvalidArgument),
        ({"kinds": ["Table"]}, InvalidArgument),
        ({"modified_after": "yesterday"}, InvalidArgument),
        ({"modified_after": "2026-13-01"}, InvalidArgument),
        ({"modified_after": "2026-01-01T25:00"}, InvalidArgument),
        ({"modified_after": "2026-01-01T12:00:00+99:00"}, InvalidArgument),
        ({"modified_after": ""}, InvalidArgument),
        ({"tags": [f"t{number}" for number in range(2_000)]}, InvalidArgument),
    ],
)
def test_search__filters_refused(project: Project, filters: dict[str, Any], error: type[Exception]) -> None:
    """Filters that mean nothing are refused."""
    with pytest.raises(error):
        search(project, "rocket", **filters)


def test_search__kind_decides_the_pointer(project: Project) -> None:
    """With a filter on kinds, the hit points to an element of that kind."""
    (hit,) = search(project, "rocket", kinds=["table"]).hits
    assert hit.kind == "table"
    assert hit.pointer.startswith("1.t1~")
    assert hit.lines == (6, 8)
    assert hit.heading_path == ("Gamma plan",)


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("server", "HTTP**Server**2Config"),
        ("serv", "HTTP**Server**2Config"),
        ('"html 5"', "parse**HTML5**Page"),
        ("html5", "parse**HTML5**Page"),
        ('"server 2 config"', "HTTP**Server2Config**"),
        ("httpser", "**HTTPServer2Config**"),
    ],
)
def test_search__parts_of_identifiers_are_shown(project: Project, query: str, marked: str) -> None:
    """A word, its beginning or a phrase that stands inside an identifier is marked there, and the hit points to it."""
    (hit,) = search(project, query, path_prefix="code/names.md").hits
    assert hit.pointer.startswith("1.p2~")
    assert marked in hit.snippet


def test_search__one_document_does_not_fill_the_list(project: Project) -> None:
    """At most three chunks of a document come before others, and left places go to the rest."""
    outcome = search(project, "tortoise walks")
    assert paths(outcome) == ["long.md"]
    assert len(outcome.hits) > 3
    spread_out = search(project, "tortoise rocket walks on and the", top_k=5)
    assert [hit.path for hit in spread_out.hits].count("long.md") == 3


def test_search__group_by_none(project: Project) -> None:
    """Without grouping rank order alone decides."""
    request = SearchRequest(query=parse_query("tortoise rocket walks"), top_k=5, group_by=GroupBy.NONE)
    found = Searcher(project.database, SearchSettings()).search(request).hits
    assert [hit.path for hit in found].count("long.md") > 3


def test_search__scores_fall(project: Project) -> None:
    """In rank order the scores fall."""
    for query in ("rocket plan", "tortoise", "heat conduction in a slab", "the of and"):
        request = SearchRequest(query=parse_query(query), top_k=50, group_by=GroupBy.NONE)
        hits = Searcher(project.database, SearchSettings()).search(request).hits
        scores = [hit.scores.lexical or 0 for hit in hits]
        assert scores
        assert scores == sorted(scores, reverse=True)


def test_search__same_answer_again(project: Project) -> None:
    """The same query on the same index gives the same answer."""
    for query in ("rocket", "the tortoise walks", "plan 豆腐鍋 heat"):
        first, second = search(project, query), search(project, query)
        assert [(hit.pointer, hit.scores) for hit in first.hits] == [(hit.pointer, hit.scores) for hit in second.hits]


def put_vectors(database: IndexDatabase, model: FakeEmbeddings) -> None:
    """Give every chunk a vector: that of near.md is the one of "stream"."""
    with database.writer() as connection:
        for chunk_id, path in list(
            connection.execute("SELECT c.id, d.path FROM chunks AS c JOIN documents AS d ON d.id = c.document_id")
        ):
            vector = model.embed_query("stream" if path == "near.md" else f"some {path}").vector
            put(connection, [VectorRow(chunk_id=chunk_id, text_hash=path.encode(), vector=vector)])


_WINDOWS_KEEPS_OPEN_FILES = pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder of open files")


@pytest.mark.parametrize(
    "meanwhile", ["nothing", "rows", "rebuilt", pytest.param("gone", marks=_WINDOWS_KEEPS_OPEN_FILES)]
)
def test_search__both_branches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str) -> None:
    """Words and nearness are fused, whether or not the second connection sees the same state of the index."""
    project = Project(tmp_path / "notes", tmp_path / "store")
    model = FakeEmbeddings()
    for path, text in (("words.md", "the brook runs"), ("near.md", "a river in spring"), ("far.md", "nothing of it")):
        project.put(path, f"{text}\n")
    project.run()
    put_vectors(project.database, model)

    def change() -> None:
        if meanwhile == "rows":
            project.put("aside.md", "a new one\n")
            project.run()
        elif meanwhile == "rebuilt":
            # As many runs as before, so that both generations count the same, with other ids.
            (project.root / "far.md").rename(project.root / "new.md")
            new = project.home.begin_rebuild()
            project.reconciler.run(new, RunScope.ALL, control=Control(), live=new)
            put_vectors(new, model)
            project.home.finish_rebuild(new)
        elif meanwhile == "gone":
            project.store.rename(tmp_path / "away")

    def late(work: Callable[[], Result]) -> Callable[[], Result]:
        change()
        return aside(work)

    monkeypatch.setattr("local_vector_search_mcp.search.search.aside", late)
    request = SearchRequest(query=parse_query("brook -nothing"), vector=model.embed_query("stream").vector)
    outcome = Searcher(project.database, SearchSettings()).search(request)
    assert sorted(paths(outcome)) == ["near.md", "words.md"]
    scores = {hit.path: hit.scores for hit in outcome.hits}
    assert scores["near.md"].semantic == pytest.approx(1, abs=1e-6)
    assert scores["near.md"].lexical is None
    assert scores["words.md"].lexical is not None
    project.database.close()


@pytest.mark.parametrize("lexical", [False, True])
def test_search__equally_near_chunks(tmp_path: Path, *, lexical: bool) -> None:
    """Chunks that are equally near stand in the order of their paths, however the index came to be."""
    answers: list[list[tuple[str, Scores]]] = []
    vector = FakeEmbeddings().embed_query("stream").vector
    names = [f"{name}.md" for name in "abcdefgh"]
    for number, order in enumerate((names, names[::-1])):
        project = Project(tmp_path / f"notes{number}", tmp_path / f"store{number}")
        for path in order:
            project.put(path, "# Same\n\na river\n")
            project.update(path)
        with project.database.writer() as connection:
            ids = [row[0] for row in connection.execute("SELECT id FROM chunks")]
            put(connection, [VectorRow(chunk_id=each, text_hash=b"same", vector=vector) for each in ids])
        settings = SearchSettings(semantic_pool=3, lexical_pool=3)
        request = SearchRequest(query=parse_query("brook"), vector=vector, lexical=lexical, top_k=3)
        answers.append([(hit.path, hit.scores) for hit in Searcher(project.database, settings).search(request).hits])
        project.database.close()
    assert [path for path, _ in answers[0]] == names[:3]
    assert answers[0] == answers[1]


def test_search__vanished_files(project: Project) -> None:
    """Hits of files that are gone are left out, and others take their places."""
    request = SearchRequest(query=parse_query("rocket"), top_k=2, exists=lambda path: not path.startswith("plans/"))
    assert [hit.path for hit in Searcher(project.database, SearchSettings()).search(request).hits] == ["plansx.md"]


def test_search__explain(project: Project) -> None:
    """An explanation says what a document lacks, whether it was filtered out, and its rank."""

    def explain(path: str, query: str, **filters: Any) -> Any:
        request = SearchRequest(query=parse_query(query), filters=SearchFilters.parse(**filters))
        return Searcher(project.database, SearchSettings()).explain(request, path)

    found = explain("plans/b.md", "late rocket")
    assert (found.indexed, found.filtered_out, found.missing_terms) == (True, False, ())
    assert found.ranks.lexical == 1
    assert found.ranks.semantic is None
    lacking = explain("both.md", 'rocket "heat conduction" the zebra *')
    assert lacking.missing_terms == ("rocket", "zebra")
    filtered = explain("plans/b.md", "rocket", path_prefix="code")
    assert filtered.filtered_out
    assert filtered.ranks.lexical is None
    assert not explain("nowhere.md", "rocket").indexed


_SIGNS = ['"', "'", "(", ")", "*", "^", ":", "-", "+", "{", "}", "NEAR(", "AND", "OR", "NOT", "\x00", "\\", "--", '-"']
_WORDS = [
    "rocket",
    "plan",
    "the",
    "豆腐",
    "鍋",
    "ก",
    "é",
    "C++",
    "a.b",
    "title:",
    "#tag",
    " ",
    "\n",
    "\u2028",
    "🎉",
    "%_",
]
_PIECES = st.sampled_from([*_SIGNS, *_WORDS])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.lists(_PIECES, max_size=25).map("".join),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
        st.lists(_PIECES, max_size=12).map(" ".join),
    )
)
def test_search__hostile_queries(project: Project, query: str) -> None:
    """No text is an error but a blank one, and nothing found is never silent."""
    if not query.strip():
        return
    outcome = search(project, query)
    parsed = parse_query(query)
    if not outcome.hits:
        assert outcome.missing_terms or parsed.exclusions or outcome.warnings


def test_search__huge_queries(project: Project) -> None:
    """Very long queries are answered."""
    assert search(project, "rocket " * 20_000).hits
    assert len(search(project, " ".join(f"word{n}" for n in range(5_000)) + " rocket").missing_terms) == 50
    assert search(project, " ".join(f"-word{n}" for n in range(900)) + " rocket").hits
    assert search(project, '"' * 5_000 + " rocket").hits
    assert search(project, "番茄與羅勒幼苗" * 500).hits


def test_search__many_words(tmp_path: Path) -> None:
    """A rare word decides, however common the others are, and equal documents come in order of their paths."""
    project = Project(tmp_path / "notes", tmp_path / "store")
    for number in range(300):
        project.put(f"n{number:03}.md", f"# Note\n\nalpha beta gamma {'needle' if number == 177 else ''}\n")
    project.run()
    outcome = search(project, "alpha beta gamma needle", top_k=50)
    assert outcome.hits[0].path == "n177.md"
    expected = [f"n{number:03}.md" for number in range(60) if number != 177][:50]
    assert paths(search(project, "alpha", top_k=50)) == expected
    project.database.close()
