"""What leads on from a hit: its pointer is the element that says most, and its read hint gives the whole chunk."""

from collections.abc import Iterator

import pytest
from tests.support.indexed_project import Project

from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.pointers import parse_pointer
from local_vector_search_mcp.markdown.resolve import resolve
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.search.query import parse_query
from local_vector_search_mcp.search.search import GroupBy, Hit, Searcher, SearchRequest, SearchSettings
from local_vector_search_mcp.services.reading import ReadingService, ReadPage

_TABLE = "| name | price |\n| --- | ---: |\n" + "".join(f"| row{number:04} | {number} |\n" for number in range(1500))
_PARAGRAPH = " ".join(f"sentence{number:04} ends." for number in range(1200))
NOTES = {
    "small.md": "# Small\n\nOne elephant.\n\n- two\n  - three elephants\n\n## More\n\nFour.\n",
    "table.md": f"# Table\n\nBefore it.\n\n{_TABLE}\nAfter it.\n",
    "long.md": f"# Long\n\n{_PARAGRAPH}\n\nThe end.\n",
    "code.md": "# Code\n\n```py\n" + "".join(f"line{number:04} = {number}\n" for number in range(900)) + "```\n",
    "crlf.md": "# Crlf\r\n\r\n" + "Windows text here.\r\n\r\n" * 60,
    "wide.md": "# 広い\n\n" + "".join(f"段落{number:03}番です。豆腐鍋をつくった。\n\n" for number in range(200)),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("reading")
    made = Project(folder / "notes", folder / "store")
    for path, text in NOTES.items():
        made.put(path, text)
    made.run()
    yield made
    made.database.close()


def found(project: Project, query: str, *, top_k: int = 50) -> tuple[Hit, ...]:
    """All hits in rank order."""
    request = SearchRequest(query=parse_query(query), top_k=top_k, group_by=GroupBy.NONE)
    return Searcher(project.database, SearchSettings()).search(request).hits


QUERIES = ["elephants", "row0003", "row0700", "row1499", "sentence0001", "sentence0600", "sentence1199", "line0450",
           "windows", "豆腐鍋", "before after", "the end price name"]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_hit__pointer_resolves(project: Project, query: str) -> None:
    """Every hit's pointer is that of an element of the file, with its kind, lines and heading path."""
    hits = found(project, query)
    assert hits
    for hit in hits:
        document = parse_bytes((project.root / hit.path).read_bytes())
        element = resolve(document, parse_pointer(hit.pointer)).element
        assert element.pointer == hit.pointer
        assert (element.kind.value, element.heading_path) == (hit.kind, hit.heading_path)
        assert element.lines[0] <= hit.lines[0] <= hit.lines[1] <= element.lines[1]
        assert len(hit.snippet.encode()) <= 400


@pytest.mark.parametrize("query", QUERIES)
def test_hit__read_hint_gives_the_chunk(project: Project, query: str) -> None:
    """Reading with the hint gives all of the chunk."""
    reading = ReadingService(project.corpora())
    for hit in found(project, query):
        hint = hit.read_hint
        page = reading.read(
            path=hint.path,
            pointer=hint.pointer,
            max_elements=hint.max_elements or 20,
            max_bytes=hint.max_bytes or 12_000,
            offset=hint.offset or 0,
            include=["markdown"],
        )
        assert isinstance(page, ReadPage)
        assert page.markdown is not None
        data = (project.root / hit.path).read_bytes()
        chunk = data[hit.chunk.range.start : hit.chunk.range.end].decode()
        assert chunk.strip() in page.markdown


@pytest.mark.parametrize(
    ("query", "path", "line"),
    [("row0700", "table.md", 707), ("line0450", "code.md", 454), ("elephants", "small.md", 3)],
)
def test_hit__lines(project: Project, query: str, path: str, line: int) -> None:
    """The lines of a hit hold the match, or the part of a long element that does."""
    hit = found(project, query)[0]
    assert hit.path == path
    assert hit.lines[0] <= line <= hit.lines[1]


def test_hit__snippets_of_long_elements(project: Project) -> None:
    """A snippet shows the match, wherever it stands in a long element."""
    for query in ("row0700", "sentence0600", "line0450"):
        assert f"**{query}**" in found(project, query)[0].snippet


def test_search__documents_far_down_get_their_place(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A document with hundreds of good chunks does not hide the others, however far down they stand."""
    folder = tmp_path_factory.mktemp("pool")
    made = Project(folder / "notes", folder / "store")
    made.put("huge.md", "# Walrus\n\n" + "".join(f"# Walrus {n}\n\nwalrus walrus walrus\n\n" for n in range(300)))
    for number in range(5):
        made.put(f"other{number}.md", f"# Other\n\n{'Many other words stand here. ' * 40}One walrus.\n")
    made.run()
    request = SearchRequest(query=parse_query("walrus"), top_k=8)
    hits = Searcher(made.database, SearchSettings()).search(request).hits
    assert len({hit.path for hit in hits}) == 6
    assert [hit.path for hit in hits].count("huge.md") == 3
    made.database.close()


def test_search__path_of_hits_is_a_path(project: Project) -> None:
    """Paths of hits are paths that every tool takes."""
    assert all(RelPath.parse(hit.path).value == hit.path for hit in found(project, "elephants"))
