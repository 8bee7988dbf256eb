"""Front matter keys, values and tags in use."""

from pathlib import Path

import pytest
from tests.support.indexed_project import Project

from local_vector_search_mcp.errors import IndexNotReady, InvalidArgument, InvalidPath
from local_vector_search_mcp.services.metadata import MetadataPage, MetadataService

FILES = {
    "a.md": "---\ntitle: A\nstatus: draft\ntags: [Blue, x/y]\nauthor: {name: Ann, age: 30}\n---\n\n#red\n",
    "b.md": "---\nstatus: draft\nlist: [1, two, null]\n---\n\n#Blue text\n",
    "sub/c.md": "---\nstatus: final\nempty: {}\ndone: true\n---\n\nx\n",
    "sub2/d.md": "no front matter #deep\n",
    "e.md": "---\n: broken: [\n---\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "root", tmp_path / "store")
    for path, text in FILES.items():
        made.put(path, text)
    made.run()
    return made


def ask(project: Project, **arguments: object) -> MetadataPage:
    return MetadataService(project.corpora()).metadata(**arguments)  # type: ignore[arg-type]


def keys(project: Project, **arguments: object) -> dict[str, tuple[int, tuple[object, ...]]]:
    return {one.key: (one.documents, one.examples) for one in ask(project, **arguments).keys}


def values(project: Project, key: str, **arguments: object) -> list[tuple[object, int]]:
    return [(one.value, one.documents) for one in ask(project, key=key, **arguments).values]


def test_keys__with_counts_and_examples(project: Project) -> None:
    """Every key in use by name, dotted where it stands in another one, with examples."""
    assert keys(project) == {
        "author.age": (1, (30,)),
        "author.name": (1, ("Ann",)),
        "done": (1, (True,)),
        "empty": (1, ("{}",)),
        "list": (1, (1, "two", None)),
        "status": (3, ("draft", "final")),
        "tags": (3, ("blue", "deep", "red")),
        "title": (1, ("A",)),
    }
    assert [one.key for one in ask(project).keys] == sorted(one.key for one in ask(project).keys)


def test_values__most_used_first(project: Project) -> None:
    """The values of one key, items of lists one by one, each with its documents."""
    assert values(project, "status") == [("draft", 2), ("final", 1)]
    assert values(project, "list") == [("two", 1), (1, 1), (None, 1)]
    assert values(project, "author.name") == [("Ann", 1)]
    assert values(project, "nobody") == []


def test_tags__front_matter_and_inline(project: Project) -> None:
    """Tags count wherever they stand, without regard to case, each document once."""
    assert values(project, "tags") == [("blue", 2), ("deep", 1), ("red", 1), ("x/y", 1)]


def test_prefix__is_a_folder_or_a_file(project: Project) -> None:
    """A prefix is a folder or an exact file, never part of a name."""
    assert values(project, "status", path_prefix="sub") == [("final", 1)]
    assert values(project, "status", path_prefix="sub/") == [("final", 1)]
    assert values(project, "status", path_prefix="a.md") == [("draft", 1)]
    assert values(project, "tags", path_prefix="sub2") == [("deep", 1)]
    assert keys(project, path_prefix="su") == {}
    assert len(keys(project, path_prefix="/")) == 8


def test_pages__joined_are_the_whole(project: Project) -> None:
    """Pages of one give the same lists as one page."""
    for key in (None, "tags"):
        whole = ask(project, key=key)
        pages: list[object] = []
        cursor: str | None = None
        while True:
            page = ask(project, key=key, page_size=1, cursor=cursor)
            pages += [*page.keys, *page.values]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert pages == [*whole.keys, *whole.values]


def test_metadata__refusals(project: Project, tmp_path: Path) -> None:
    """Wrong arguments are refused, and without an index the answer is an error."""
    for arguments in ({"page_size": 0}, {"page_size": 501}, {"key": " "}, {"cursor": "x"}, {"collection": "none"}):
        with pytest.raises(InvalidArgument):
            ask(project, **arguments)
    with pytest.raises(InvalidPath):
        ask(project, path_prefix="../x")
    cursor = ask(project, page_size=1).next_cursor
    with pytest.raises(InvalidArgument, match="cursor"):
        ask(project, key="status", cursor=cursor)
    with pytest.raises(IndexNotReady):
        ask(Project(tmp_path / "empty", tmp_path / "other"))
