"""Links of a whole workspace: what they mean, what is wrong with them, and pages of them."""

from pathlib import Path

import pytest
from tests.support.indexed_project import Project

from local_vector_search_mcp.errors import IndexNotReady, InvalidArgument, InvalidPath, NotFound, UnsupportedFormat
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.services.links import LinksService, ListedLink

FILES = {
    "index.md": (
        "# Index\n\n[setup](guide/setup.md#first-steps) ![logo](img/logo.png) [out](https://example.com)\n\n"
        "- [[Setup]]\n- [gone](gone.md)\n\n[self](#index)\n"
    ),
    "guide/setup.md": "---\naliases: [Getting Started]\n---\n\n# First steps\n\n[[index#Index]] ![[shot.png]] ^b1\n",
    "guide/more.md": "# More\n\n[[Getting Started]] [[setup#^b1]] [[setup#^none]] [x](setup.md#Missing)\n",
    "lonely.md": "# Lonely\n\n[me](lonely.md)\n",
    "a/same.md": "a\n",
    "b/same.md": "[[../a/same]] ![pic](none.png) ![[none.png]] [up](../../x.md) [[same]]\n",
    "c.md": "[[same]]\n\n[d]: guide/more.md\n\n[d] <a href='guide/setup.md'>h</a>\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "root", tmp_path / "store")
    for path, text in FILES.items():
        made.put(path, text)
    made.put("img/logo.png", b"x")
    made.put("guide/img/shot.png", b"x")
    made.run()
    return made


def check(project: Project, direction: str, path: str | None, *expected: tuple[object, ...]) -> None:
    """Each link as path, target, resolved path, problem."""
    found = LinksService(project.corpora()).links(direction=direction, path=path)
    shown = [
        (link.path, link.target, link.resolved_path, None if link.problem is None else link.problem.value)
        for link in found.links
    ]
    assert shown == list(expected)


def test_outgoing__in_order_with_what_they_mean(project: Project) -> None:
    """The links of a document stand in order, URLs and links to itself included."""
    check(
        project, "outgoing", "index.md",
        ("index.md", "guide/setup.md#first-steps", "guide/setup.md", None),
        ("index.md", "img/logo.png", "img/logo.png", None),
        ("index.md", "https://example.com", None, None),
        ("index.md", "Setup", "guide/setup.md", None),
        ("index.md", "gone.md", None, "missing_file"),
        ("index.md", "#index", "index.md", None),
    )  # fmt: skip
    check(
        project, "outgoing", "guide/more.md",
        ("guide/more.md", "Getting Started", "guide/setup.md", None),
        ("guide/more.md", "setup#^b1", "guide/setup.md", None),
        ("guide/more.md", "setup#^none", "guide/setup.md", "missing_block"),
        ("guide/more.md", "setup.md#Missing", "guide/setup.md", "missing_heading"),
    )  # fmt: skip


def test_outgoing__reads_the_file_as_it_is(project: Project) -> None:
    """What a document links to is read from its file, indexed or not yet."""
    project.put("lonely.md", "# New\n\n[[index]]\n")
    project.put("fresh.md", "[c](c.md)\n")
    check(project, "outgoing", "lonely.md", ("lonely.md", "index", "index.md", None))
    check(project, "outgoing", "fresh.md", ("fresh.md", "c.md", "c.md", None))


def test_incoming__from_other_documents(project: Project) -> None:
    """Links that mean a file, by path, name or alias; those of the document itself left out."""
    check(
        project, "incoming", "guide/setup.md",
        ("c.md", "guide/setup.md", "guide/setup.md", None),
        ("guide/more.md", "Getting Started", "guide/setup.md", None),
        ("guide/more.md", "setup#^b1", "guide/setup.md", None),
        ("guide/more.md", "setup#^none", "guide/setup.md", "missing_block"),
        ("guide/more.md", "setup.md#Missing", "guide/setup.md", "missing_heading"),
        ("index.md", "guide/setup.md#first-steps", "guide/setup.md", None),
        ("index.md", "Setup", "guide/setup.md", None),
    )  # fmt: skip
    check(project, "incoming", "lonely.md")
    check(project, "incoming", "img/logo.png", ("index.md", "img/logo.png", "img/logo.png", None))


def test_broken__of_everything_and_of_one(project: Project) -> None:
    """Everything that leads nowhere, or to several places; what leaves the root is nobody's business."""
    check(
        project, "broken", None,
        ("b/same.md", "none.png", None, "missing_image"),
        ("b/same.md", "none.png", None, "missing_image"),
        ("c.md", "same", None, "ambiguous"),
        ("guide/more.md", "setup#^none", "guide/setup.md", "missing_block"),
        ("guide/more.md", "setup.md#Missing", "guide/setup.md", "missing_heading"),
        ("index.md", "gone.md", None, "missing_file"),
    )  # fmt: skip
    check(project, "broken", "index.md", ("index.md", "gone.md", None, "missing_file"))
    check(project, "broken", "lonely.md")


def test_broken__follows_files_that_come_and_go(project: Project) -> None:
    """A file that comes mends the links to it, one that goes breaks them; no row of others changes for that."""
    project.put("gone.md", "x\n")
    project.put("b/none.png", b"x")
    (project.root / "b" / "same.md").rename(project.root / "b" / "other.md")
    project.run()
    check(
        project, "broken", None,
        ("guide/more.md", "setup#^none", "guide/setup.md", "missing_block"),
        ("guide/more.md", "setup.md#Missing", "guide/setup.md", "missing_heading"),
    )  # fmt: skip
    (project.root / "guide" / "setup.md").unlink()
    project.run()
    found = LinksService(project.corpora()).links(direction="broken")
    assert len(found.links) == 7


def test_orphans__nothing_links_to(project: Project) -> None:
    """Documents that no other one links to; a link to itself does not count."""
    found = LinksService(project.corpora()).links(direction="orphans")
    assert found.documents == ("b/same.md", "c.md", "lonely.md")
    assert found.links == ()


def test_pointer__names_the_element(project: Project) -> None:
    """Every link carries the full pointer of the element that it stands in, from file and index alike."""
    service = LinksService(project.corpora())

    def check_pointer(link: ListedLink) -> None:
        known = [element.pointer for element in parse_bytes(FILES[link.path].encode()).elements]
        assert link.pointer in known
        assert link.pointer.count("~") == 2

    for link in (*service.links(direction="broken").links, *service.links(direction="outgoing", path="c.md").links):
        check_pointer(link)


@pytest.mark.parametrize(
    ("direction", "path"), [("broken", None), ("incoming", "guide/setup.md"), ("outgoing", "index.md")]
)
def test_pages__joined_are_the_whole(project: Project, direction: str, path: str | None) -> None:
    """Pages of one link each give the same list, and a cursor survives its item."""
    service = LinksService(project.corpora())
    whole = service.links(direction=direction, path=path).links
    cursor: str | None = None
    pages: list[ListedLink] = []
    while True:
        page = service.links(direction=direction, path=path, page_size=1, cursor=cursor)
        pages += page.links
        cursor = page.next_cursor
        if cursor is None:
            break
    assert tuple(pages) == whole


def test_pages__of_orphans(project: Project) -> None:
    """Orphans are paged; what was deleted meanwhile is skipped."""
    service = LinksService(project.corpora())
    first = service.links(direction="orphans", page_size=2)
    assert first.documents == ("b/same.md", "c.md")
    (project.root / "c.md").unlink()
    project.run()
    second = service.links(direction="orphans", page_size=2, cursor=first.next_cursor)
    assert (second.documents, second.next_cursor) == (("guide/more.md", "lonely.md"), None)


def test_links__refusals(project: Project) -> None:
    """Wrong arguments, paths and cursors are refused, each with its own error."""
    service = LinksService(project.corpora())
    for direction, path, error in (
        ("sideways", None, InvalidArgument),
        ("outgoing", None, InvalidArgument),
        ("incoming", None, InvalidArgument),
        ("orphans", "index.md", InvalidArgument),
        ("outgoing", "../x.md", InvalidPath),
        ("outgoing", "nothing.md", NotFound),
        ("incoming", "nothing.md", NotFound),
        ("incoming", "nothing.png", NotFound),
        ("outgoing", "img/logo.png", UnsupportedFormat),
    ):
        with pytest.raises(error):
            service.links(direction=direction, path=path)
    for size in (0, 501):
        with pytest.raises(InvalidArgument, match="pageSize"):
            service.links(direction="broken", page_size=size)
    cursor = service.links(direction="broken", page_size=1).next_cursor
    with pytest.raises(InvalidArgument, match="cursor"):
        service.links(direction="broken", path="index.md", cursor=cursor)
    with pytest.raises(InvalidArgument, match="collection"):
        service.links(direction="broken", collection="none")


def test_links__without_an_index(tmp_path: Path) -> None:
    """Without an index the answer is an error, never an empty list."""
    project = Project(tmp_path / "root", tmp_path / "store")
    for _ in range(2):
        with pytest.raises(IndexNotReady):
            LinksService(project.corpora()).links(direction="broken")
        project.home.ensure()
