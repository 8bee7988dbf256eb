"""Reading: pages and outlines of files as they are now."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.trees import write_tree

from local_vector_search_mcp.errors import (
    Conflict,
    InvalidArgument,
    InvalidPath,
    InvalidPointer,
    KnowledgeBaseError,
    NotFound,
    PointerNotFound,
    UnsupportedEncoding,
    UnsupportedFormat,
)
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.corpus import Corpora, Corpus
from local_vector_search_mcp.services.document_cache import DocumentCache
from local_vector_search_mcp.services.reading import OutlineHeading, ReadingService, ReadPage, ReadSlices
from local_vector_search_mcp.workspace.files import Workspace

PLAN = (
    "# Plan\n\nIntro.\n\n## Scope\n\n- one\n  - two\n\n  tail\n- three\n\n"
    "## Cost\n\n| a | b |\n|---|:-:|\n| 1 | *2* |\n| 3 |\n"
)


def _corpus(name: str, root: Path) -> Corpus:
    workspace = Workspace(root)
    parts = SimpleNamespace(
        name=name,
        workspace=workspace,
        documents=DocumentCache(workspace),
        collection=None if name == "project" else name,
    )
    return cast("Corpus", parts)


class Reading:
    """A reading service over one folder, and one collection beside it."""

    def __init__(self, tmp_path: Path, files: dict[str, str | bytes | None]) -> None:
        self.root = write_tree(tmp_path / "root", files)
        other = write_tree(tmp_path / "other", {"plan.md": "# Other\n"})
        self.service = ReadingService(Corpora(_corpus("project", self.root), [_corpus("books", other)]))

    def page(self, path: str | None = "plan.md", pointer: str | None = None, **arguments: Any) -> ReadPage:
        """One page."""
        page = self.service.read(path=path, pointer=pointer, **arguments)
        assert isinstance(page, ReadPage)
        return page

    def pointer(self, logical: str, path: str = "plan.md") -> str:
        """The full pointer text of an element as the file is now."""
        page = self.page(path, logical, max_elements=1)
        assert page.elements is not None
        return page.elements[0].pointer


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    """A folder with a plan, and files that cannot be read as documents."""
    return Reading(
        tmp_path,
        {
            "plan.md": PLAN,
            "meta.md": "---\ntitle: T\ntags: [Front]\n---\n# H\n\ntext #inline #front\n",
            "folder/deep.md": "deep\n",
            "latin.md": b"caf\xe9\n",
            "picture.png": b"x",
            "empty.md": "",
        },
    )


def addresses(page: ReadPage) -> list[str]:
    """The logical addresses of a page's elements."""
    return [element.pointer.split("~")[0] for element in page.elements or ()]


def test_read__a_document_from_its_start(reading: Reading) -> None:
    """Elements in order of their first byte, nested items included; texts, paths, levels and lines."""
    page = reading.page()
    assert addresses(page) == ["1", "1.p1", "1.1", "1.1.li1", "1.1.li1.li1", "1.1.li2", "1.2", "1.2.t1"]
    assert page.elements is not None
    heading, intro, scope, item, *_ = page.elements
    assert (heading.kind, heading.text, heading.level, heading.heading_path) == ("heading", "# Plan", 1, ("Plan",))
    assert (intro.text, intro.level, intro.lines, intro.heading_path) == ("Intro.", None, (3, 3), ("Plan",))
    assert scope.heading_path == ("Plan", "Scope")
    assert (item.text, item.lines) == ("- one\n  tail", (7, 10))
    assert (page.path, page.markdown, page.next_pointer, page.previous_pointer) == ("plan.md", None, None, None)
    assert (page.table, page.metadata, page.truncated, page.relocated_from, page.collection) == (None,) * 5


def test_read__pages_joined_are_the_file(reading: Reading) -> None:
    """Followed by nextPointer, the Markdown of the pages is the exact text."""
    joined = ""
    pointer: str | None = None
    while True:
        page = reading.page(pointer=pointer, max_elements=2, include=["markdown"])
        joined += page.markdown or ""
        assert all(element.text is None for element in page.elements or ())
        if page.next_pointer is None:
            break
        pointer = page.next_pointer
    assert joined == PLAN


def test_read__from_a_pointer_with_elements_before(reading: Reading) -> None:
    """``before`` comes in addition; previous and next lie outside the page."""
    page = reading.page(pointer="1.1", max_elements=2, before=1, include=["text", "markdown"])
    assert addresses(page) == ["1.p1", "1.1", "1.1.li1"]
    assert (page.markdown or "").startswith("Intro.\n\n## Scope")
    assert (page.previous_pointer, page.next_pointer) == (reading.pointer("1"), reading.pointer("1.1.li1.li1"))


def test_read__a_section_alone(reading: Reading) -> None:
    """It ends with its section, and nothing follows."""
    page = reading.page(pointer=reading.pointer("1.1"), section=True, include=["markdown"])
    assert addresses(page) == ["1.1", "1.1.li1", "1.1.li1.li1", "1.1.li2"]
    assert page.markdown == "## Scope\n\n- one\n  - two\n\n  tail\n- three"
    assert page.next_pointer is None
    for pointer in (None, "1.p1"):
        with pytest.raises(InvalidArgument, match="section needs a heading"):
            reading.page(pointer=pointer, section=True)


def test_read__a_table_pointer_adds_the_table(reading: Reading) -> None:
    """Columns and rows as plain text; only where the pointer is a table's."""
    table = reading.page(pointer="1.2.t1").table
    assert table is not None
    assert [(column.index, column.name, column.alignment) for column in table.columns] == [
        (0, "a", "none"),
        (1, "b", "center"),
    ]
    assert [(row.index, row.cells, row.extra_cells) for row in table.rows] == [
        (0, ("1", "2"), None),
        (1, ("3", ""), None),
    ]
    assert reading.page(pointer="1.2").table is None


def test_read__a_cut_table_has_the_rows_of_its_page(reading: Reading) -> None:
    """Followed by offset, the pages have every row once."""
    rows = "".join(f"| {number} | x |\n" for number in range(100))
    (reading.root / "long.md").write_text(f"text\n\n| a | b |\n|---|---|\n{rows}", encoding="utf-8")
    found: list[tuple[int, str]] = []
    offset: int | None = None
    while True:
        page = reading.page("long.md", "t1", max_bytes=200, offset=offset)
        assert page.table is not None
        found.extend((row.index, row.cells[0]) for row in page.table.rows)
        if not page.truncated:
            break
        offset = page.next_offset
    assert found == [(number, str(number)) for number in range(100)]


def test_read__front_matter_adds_metadata(reading: Reading) -> None:
    """Only where the pointer is the front matter's."""
    assert reading.page("meta.md", "frontmatter").metadata == {"title": "T", "tags": ["Front"]}
    assert reading.page("meta.md").metadata is None


def test_read__a_moved_element_says_where_it_was(reading: Reading) -> None:
    """The file is read as it is now."""
    pointer = reading.pointer("1.p1")
    (reading.root / "plan.md").write_text("# Plan\n\nNew.\n\nIntro.\n", encoding="utf-8")
    page = reading.page(pointer=pointer)
    assert (addresses(page), page.relocated_from) == (["1.p2"], "1.p1")
    (reading.root / "plan.md").write_text("# Plan\n\nOther.\n", encoding="utf-8")
    with pytest.raises(Conflict) as caught:
        reading.page(pointer=pointer)
    assert caught.value.details["reason"] == "changed"
    assert caught.value.details["currentText"] == "Other."


def test_read__full_pointers(reading: Reading) -> None:
    """A full pointer needs no path, and a path that contradicts it is refused."""
    assert addresses(reading.page(None, "plan.md::1.p1", max_elements=1)) == ["1.p1"]
    assert addresses(reading.page("./plan.md", "plan.md::1.p1", max_elements=1)) == ["1.p1"]
    with pytest.raises(InvalidArgument, match="leave one of them out"):
        reading.page("meta.md", "plan.md::1.p1")
    with pytest.raises(InvalidArgument, match="which document"):
        reading.page(None, "1.p1")


def test_read__several_pointers(reading: Reading) -> None:
    """One page each within one limit; one that fails has its error there."""
    pointers = ["plan.md::1.p1", "folder/deep.md::document", "plan.md::9", "gone.md::p1", "plan.md::x", "1.p1"]
    result = reading.service.read(pointers=pointers, max_elements=1)
    assert isinstance(result, ReadSlices)
    assert [(page.path, addresses(page)) for page in result.slices[:2]] == [
        ("plan.md", ["1.p1"]),
        ("folder/deep.md", ["p1"]),
    ]
    errors = [(page.pointer, page.error.code if page.error else None) for page in result.slices[2:]]
    assert errors == [
        ("plan.md::9", "POINTER_NOT_FOUND"),
        ("gone.md::p1", "NOT_FOUND"),
        ("plan.md::x", "INVALID_POINTER"),
        ("1.p1", "INVALID_POINTER"),
    ]


def test_read__several_pointers_share_one_limit(reading: Reading) -> None:
    """Together they hold no more Markdown than ``maxBytes``."""
    (reading.root / "long.md").write_text("word " * 1_000, encoding="utf-8")
    result = reading.service.read(pointers=["long.md::p1"] * 5, max_bytes=1_000, include=["markdown"])
    assert isinstance(result, ReadSlices)
    sizes = [len(page.markdown or "") for page in result.slices]
    assert sum(sizes) <= 1_000
    assert all(sizes)
    assert all(page.truncated for page in result.slices)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"path": "gone.md"}, NotFound),
        ({"path": "../plan.md"}, InvalidPath),
        ({"path": "picture.png"}, UnsupportedFormat),
        ({"path": "latin.md"}, UnsupportedEncoding),
        ({"path": "plan.md", "pointer": "nonsense"}, InvalidPointer),
        ({"path": "plan.md", "pointer": "1.p9"}, PointerNotFound),
        ({"path": "plan.md", "max_elements": 0}, InvalidArgument),
        ({"path": "plan.md", "max_elements": 201}, InvalidArgument),
        ({"path": "plan.md", "max_bytes": 199}, InvalidArgument),
        ({"path": "plan.md", "max_bytes": 200_001}, InvalidArgument),
        ({"path": "plan.md", "before": 51}, InvalidArgument),
        ({"path": "plan.md", "before": -1}, InvalidArgument),
        ({"path": "plan.md", "offset": -1}, InvalidArgument),
        ({"path": "plan.md", "offset": 10_000}, InvalidArgument),
        ({"path": "plan.md", "include": []}, InvalidArgument),
        ({"path": "plan.md", "include": ["html"]}, InvalidArgument),
        ({"pointers": []}, InvalidArgument),
        ({"pointers": ["plan.md::1"] * 21}, InvalidArgument),
        ({"pointers": ["plan.md::1"], "path": "plan.md"}, InvalidArgument),
        ({"pointers": ["plan.md::1"], "offset": 3}, InvalidArgument),
        ({"path": "plan.md", "collection": "nope"}, InvalidArgument),
        ({}, InvalidArgument),
    ],
)
def test_read__refusals(reading: Reading, arguments: dict[str, Any], error: type[KnowledgeBaseError]) -> None:
    """Each with its own code, and nothing is ever answered instead."""
    with pytest.raises(error):
        reading.service.read(**arguments)


def test_read__a_collection(reading: Reading) -> None:
    """Another tree's file of the same name."""
    page = reading.page(collection="books")
    assert (page.collection, [element.text for element in page.elements or ()]) == ("books", ["# Other"])


def test_read__an_empty_document(reading: Reading) -> None:
    """It has no elements and is no error."""
    page = reading.page("empty.md", include=["text", "markdown"])
    assert (page.elements, page.markdown, page.next_pointer) == ((), "", None)


def names(headings: tuple[OutlineHeading, ...]) -> list[object]:
    """Texts with those of the children."""
    return [(heading.text, names(heading.children)) if heading.children else heading.text for heading in headings]


def test_outline__of_a_document(reading: Reading) -> None:
    """The tree with line, size and count; title and tags of the document."""
    outline = reading.service.outline(path="plan.md")
    assert names(outline.headings) == [("Plan", ["Scope", "Cost"])]
    (plan,) = outline.headings
    scope = plan.children[0]
    assert (plan.level, plan.line, plan.bytes, plan.elements) == (1, 1, len(PLAN.rstrip()), 8)
    assert (scope.line, scope.elements, scope.pointer) == (5, 4, reading.pointer("1.1"))
    assert (outline.path, outline.title, outline.tags, outline.collection) == ("plan.md", "Plan", (), None)
    meta = reading.service.outline(path="meta.md")
    assert (meta.title, meta.tags) == ("T", ("Front", "inline"))
    deep = reading.service.outline(path="folder/deep.md")
    assert (deep.title, deep.headings) == ("deep", ())


def test_outline__of_one_heading_and_to_a_depth(reading: Reading) -> None:
    """A pointer makes its heading the top; depth 1 is the top alone."""
    outline = reading.service.outline
    assert names(outline(path="plan.md", pointer="1.2").headings) == ["Cost"]
    assert names(outline(path="plan.md", max_depth=1).headings) == ["Plan"]
    assert names(outline(pointer="plan.md::1", max_depth=2).headings) == [("Plan", ["Scope", "Cost"])]
    with pytest.raises(InvalidArgument, match="no heading"):
        outline(path="plan.md", pointer="1.p1")
    for depth in (0, 7):
        with pytest.raises(InvalidArgument, match="maxDepth"):
            outline(path="plan.md", max_depth=depth)


def test_outline__is_kept_with_the_document_and_follows_the_file(reading: Reading) -> None:
    """The same file gives the same tree without building it again; a changed one another."""
    first = reading.service.outline(path="plan.md")
    assert reading.service.outline(path="plan.md").headings is first.headings
    for depth in range(1, 7):
        for pointer in (None, "1", "1.1"):
            reading.service.outline(path="plan.md", pointer=pointer, max_depth=depth)
    assert reading.service.outline(path="plan.md").headings == first.headings
    (reading.root / "plan.md").write_text("# New\n", encoding="utf-8")
    assert names(reading.service.outline(path="plan.md").headings) == ["New"]


def test_cache__parses_unchanged_bytes_once(reading: Reading) -> None:
    """The file is read every time; equal bytes give the same parsed document."""
    cache = DocumentCache(Workspace(reading.root))
    first = cache.load(RelPath("plan.md"))[1]
    assert cache.load(RelPath("plan.md"))[1] is first
    (reading.root / "plan.md").write_text("changed\n", encoding="utf-8")
    snapshot, changed = cache.load(RelPath("plan.md"))
    assert changed is not first
    assert snapshot.data == b"changed\n"
