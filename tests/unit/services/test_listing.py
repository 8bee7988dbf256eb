"""ListingService: pages of files in three orders, with filters, cursors and titles."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.search_index import IndexedTree
from tests.support.trees import write_tree

from local_vector_search_mcp.errors import InvalidArgument, InvalidPath, IoFailure, KnowledgeBaseError
from local_vector_search_mcp.services.corpus import Corpora, Corpus
from local_vector_search_mcp.services.listing import FileList, ListingService
from local_vector_search_mcp.workspace.files import Workspace

TREE: dict[str, str | bytes | None] = {
    "b.md": "# Title of b\n",
    "B2.md": "22",
    "a.md": "333",
    "docs/a.md": "---\ntitle: Front\n---\n",
    "docs/pic.PNG": b"55555",
    "docs/deep/z.txt": "666666",
    "docs2/x.md": "7",
    ".env": "8",
    "node_modules/n.md": "9",
    "not-utf8.md": b"\xff",
}
# By path: case is ignored, and breaks ties.
BY_PATH = ["a.md", "b.md", "B2.md", "docs/a.md", "docs/deep/z.txt", "docs/pic.PNG", "docs2/x.md", "not-utf8.md"]


class Listed:
    """The project, indexed, and a collection that is not."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = write_tree(tmp_path / "root", TREE)
        for number, path in enumerate(sorted(TREE)):
            os.utime(self.root / path, ns=(0, 1_700_000_000_000_000_000 + number % 5 * 1_000_000_000))
        self.index = IndexedTree(self.root, tmp_path / "index.db")
        self.bare = IndexedTree(write_tree(tmp_path / "bare", {"only.md": "x"}), tmp_path / "bare.db")
        self.service = ListingService(Corpora(self._corpus("project", self.index), [self._corpus("wiki", self.bare)]))

    def _corpus(self, name: str, tree: IndexedTree) -> Corpus:
        unused: Any = SimpleNamespace()
        return Corpus(name=name, workspace=tree.workspace, documents=unused, database=tree.database, indexer=unused)

    def page(self, **arguments: Any) -> FileList:
        return self.service.list_files(**arguments)

    def paths(self, **arguments: Any) -> list[str]:
        """All paths of a list, page by page."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            listed = self.page(**arguments, cursor=cursor)
            assert len(listed.files) <= arguments.get("page_size", 100)
            found += [str(file.path) for file in listed.files]
            cursor = listed.next_cursor
            if cursor is None:
                return found


@pytest.fixture
def listed(tmp_path: Path) -> Iterator[Listed]:
    """The trees."""
    made = Listed(tmp_path)
    yield made
    made.index.close()
    made.bare.close()


@pytest.mark.parametrize("page_size", [1, 2, 3, 7, 8, 500])
def test_pages__join_to_the_list(listed: Listed, page_size: int) -> None:
    """Pages of every size give every file once, in order."""
    assert listed.paths(page_size=page_size) == BY_PATH


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ({"kind": "markdown"}, "a.md b.md B2.md docs/a.md docs2/x.md not-utf8.md"),
        ({"kind": "image"}, "docs/pic.PNG"),
        ({"kind": "other"}, "docs/deep/z.txt"),
        ({"path_prefix": "docs"}, "docs/a.md docs/deep/z.txt docs/pic.PNG"),
        ({"path_prefix": "docs/"}, "docs/a.md docs/deep/z.txt docs/pic.PNG"),
        ({"path_prefix": "doc"}, ""),
        ({"path_prefix": "docs/a.md"}, "docs/a.md"),
        ({"path_prefix": "docs/a.md", "kind": "image"}, ""),
        ({"path_prefix": "nowhere"}, ""),
        ({"path_prefix": "node_modules"}, ""),
        ({"path_prefix": "node_modules/n.md"}, ""),
        ({"path_prefix": ".env"}, ""),
        ({"path_prefix": "", "kind": "other"}, "docs/deep/z.txt"),
        ({"path_prefix": ".", "kind": "image"}, "docs/pic.PNG"),
        ({"path_prefix": "/", "kind": "image"}, "docs/pic.PNG"),
        ({"path_prefix": "docs", "kind": "markdown"}, "docs/a.md"),
        ({"include_glob": "a.md"}, "a.md docs/a.md"),
        ({"include_glob": ["docs/*.md", "b*"]}, "b.md docs/a.md"),
        ({"include_glob": "**/*.{txt,PNG}"}, "docs/deep/z.txt docs/pic.PNG"),
        ({"include_glob": "*.png"}, ""),
        ({"include_glob": []}, " ".join(BY_PATH)),
        ({"collection": "wiki"}, "only.md"),
        ({"collection": "project", "kind": "image"}, "docs/pic.PNG"),
    ],
)
def test_filters(listed: Listed, arguments: dict[str, object], paths: str) -> None:
    """Each filter lets through what it says; none of them matches parts of names."""
    assert listed.paths(**arguments, page_size=2) == paths.split()


@pytest.mark.parametrize("page_size", [1, 3, 100])
def test_sort__modified_and_size(listed: Listed, page_size: int) -> None:
    """Newest and largest first; ties by path."""
    files = {path: (listed.root / path).stat() for path in BY_PATH}
    by_time = sorted(BY_PATH, key=lambda path: (-files[path].st_mtime_ns, path.casefold(), path))
    by_size = sorted(BY_PATH, key=lambda path: (-files[path].st_size, path.casefold(), path))
    assert listed.paths(sort="modified", page_size=page_size) == by_time
    assert listed.paths(sort="size", page_size=page_size) == by_size
    assert len({files[path].st_mtime_ns for path in BY_PATH}) < len(BY_PATH)


def test_files__facts(listed: Listed) -> None:
    """Size, time and kind are those of the disk; titles come from the index."""
    before = {str(file.path): file for file in listed.page().files}
    assert {path: (file.title, file.indexed) for path, file in before.items()} == dict.fromkeys(BY_PATH, (None, False))
    listed.index.update()
    files = {str(file.path): file for file in listed.page().files}
    assert files["docs/pic.PNG"].bytes == 5
    assert files["docs/pic.PNG"].kind == "image"
    assert files["a.md"].modified.startswith("2023-11-14T22:13:2")
    assert {path: file.title for path, file in files.items() if file.indexed} == {
        "a.md": "a",
        "b.md": "Title of b",
        "B2.md": "B2",
        "docs/a.md": "Front",
        "docs2/x.md": "x",
    }
    assert [str(file.path) for file in files.values() if not file.indexed] == [
        "docs/deep/z.txt",
        "docs/pic.PNG",
        "not-utf8.md",
    ]


def test_collection__is_named(listed: Listed) -> None:
    """Only a list of another tree carries its name."""
    assert listed.page().collection is None
    assert listed.page(collection="wiki").collection == "wiki"


def test_cursor__survives_deletion_and_restart(listed: Listed) -> None:
    """The last file of a page may go; the next page goes on after it, in a new service too."""
    first = listed.page(page_size=3)
    (listed.root / "B2.md").unlink()
    write_tree(listed.root, {"b3.md": "new", "aa.md": "new, and before the cursor"})
    again = ListingService(Corpora(listed._corpus("project", listed.index)))  # pyright: ignore[reportPrivateUsage]
    rest = again.list_files(page_size=100, cursor=first.next_cursor)
    assert [str(file.path) for file in rest.files] == ["b3.md", *BY_PATH[3:]]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"page_size": 0}, InvalidArgument),
        ({"page_size": 501}, InvalidArgument),
        ({"kind": "pictures"}, InvalidArgument),
        ({"sort": "name"}, InvalidArgument),
        ({"include_glob": "{a"}, InvalidArgument),
        ({"include_glob": ["*.md", ""]}, InvalidArgument),
        ({"cursor": "nonsense"}, InvalidArgument),
        ({"collection": "none"}, InvalidArgument),
        ({"path_prefix": "../x"}, InvalidPath),
        ({"path_prefix": "/etc"}, InvalidPath),
        ({"path_prefix": ".git"}, InvalidPath),
    ],
)
def test_list_files__refuses(listed: Listed, arguments: dict[str, object], error: type[KnowledgeBaseError]) -> None:
    """What is out of bounds is told, never answered with an empty list."""
    with pytest.raises(error):
        listed.page(**arguments)


@pytest.mark.parametrize(
    "other",
    [{"kind": "markdown"}, {"path_prefix": "docs"}, {"include_glob": "*.md"}, {"sort": "size"}, {"collection": "wiki"}],
)
def test_cursor__of_another_list(listed: Listed, other: dict[str, object]) -> None:
    """A cursor goes on in its own list only; the page size may change."""
    cursor = listed.page(page_size=1).next_cursor
    with pytest.raises(InvalidArgument, match="other filters"):
        listed.page(**other, cursor=cursor)
    assert [str(file.path) for file in listed.page(cursor=cursor, page_size=2).files] == BY_PATH[1:3]


def test_vanished_root__is_an_error(tmp_path: Path) -> None:
    """A root that is gone is no empty list."""
    root = write_tree(tmp_path / "root", {"a.md": ""})
    corpus = SimpleNamespace(name="project", workspace=Workspace(root), collection=None)
    (root / "a.md").unlink()
    root.rmdir()
    with pytest.raises(IoFailure):
        ListingService(Corpora(cast("Corpus", corpus))).list_files()
