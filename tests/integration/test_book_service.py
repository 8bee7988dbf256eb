"""Books as a tool makes them: sources, places, joining, cancelling, history."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.asset_project import AssetProject, asset_project
from tests.support.pdfs import pdf_text
from tests.support.pictures import picture

from local_vector_search_mcp.errors import (
    AlreadyExists,
    Busy,
    InvalidArgument,
    InvalidPath,
    KnowledgeBaseError,
    NotFound,
    UnsupportedEncoding,
    UnsupportedFormat,
)
from local_vector_search_mcp.services.books import BookResult, BookService
from local_vector_search_mcp.services.undo import UndoService

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def project(tmp_path: Path) -> AssetProject:
    return asset_project(
        tmp_path,
        {
            "index.md": (
                "---\ntitle: Whole Book\nauthor: A\n---\n# Index\n\n- [b](docs/b.md)\n- [[a]]\n"
                "- [again](docs/b.md#x)\n- [web](https://e.example)\n- [none](none.md)\n"
            ),
            "docs/a.md": "# Alpha\n\n![p](../img/p.png) ![q](q.png)\n\n![[note]]\n",
            "docs/b.md": "# Beta\n\ntext\n",
            "docs/note.md": "noted words\n",
            "img/p.png": picture("PNG"),
            "bad.md": b"\xff\xfe",
            "taken.txt": "x",
        },
    )


@pytest.fixture
def books(project: AssetProject) -> Iterator[BookService]:
    service = BookService(project.mutations)
    yield service
    service.close()


def check(
    books: BookService, project: AssetProject, tmp_path: Path, output: str, words: list[str], **given: Any
) -> BookResult:
    before = {path: data for path, data in project.files().items() if path != output}
    result = books.create(wait_s=200, **given)
    assert (str(result.path), result.state) == (output, None)
    data = project.read(output)
    assert data.startswith(b"%PDF-") and len(data) == result.bytes
    text = pdf_text(data, tmp_path)
    position = 0
    for word in words:
        assert word in text[position:], word
        position = text.index(word, position)
    assert {path: data for path, data in project.files().items() if path != output} == before
    assert project.told == []
    return result


@pytest.mark.parametrize(
    ("given", "output", "words"),
    [
        ({"path": "docs/b.md"}, "docs/b.pdf", ["Beta", "text"]),
        ({"path": "docs/a.md", "output_path": "out/new/x.PDF"}, "out/new/x.PDF", ["Alpha", "noted words"]),
        ({"paths": ["docs/b.md", "docs/a.md"]}, "docs/b.pdf", ["Contents", "Beta", "Alpha"]),
        ({"include_glob": "docs/*.md"}, "docs/a.pdf", ["Contents", "Alpha", "Beta", "noted words"]),
        ({"include_glob": ["docs/b.md", "docs/n*.md"]}, "docs/b.pdf", ["Beta", "noted words"]),
        ({"path": "index.md", "chapters_from_links": True}, "index.pdf", ["Whole Book", "Contents", "Beta", "Alpha"]),
    ],
)
def test_create__sources_and_places(
    books: BookService, project: AssetProject, tmp_path: Path, given: dict[str, Any], output: str, words: list[str]
) -> None:
    """One document, several in order, all that match, or the links of one; the PDF is the only file written."""
    result = check(books, project, tmp_path, output, words, **given)
    assert result.pages is not None and result.pages >= 1
    assert result.change_id is not None


def test_create__warnings_name_document_and_target(books: BookService, project: AssetProject) -> None:
    """What is not shown is said."""
    result = books.create(path="docs/a.md", wait_s=200)
    assert any("docs/a.md" in warning and "q.png" in warning for warning in result.warnings)


def test_create__a_bad_file_among_others_is_left_out(books: BookService, project: AssetProject) -> None:
    """But one that is named alone is refused."""
    result = books.create(include_glob=["bad.md", "docs/b.md"], output_path="x.pdf", wait_s=200)
    assert any("bad.md" in warning for warning in result.warnings)
    with pytest.raises(UnsupportedEncoding):
        books.create(path="bad.md", wait_s=200)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, InvalidArgument),
        ({"path": "index.md", "paths": ["docs/a.md"]}, InvalidArgument),
        ({"paths": []}, InvalidArgument),
        ({"paths": ["docs/a.md", "./docs/a.md"]}, InvalidArgument),
        ({"include_glob": "nothing/*.md"}, InvalidArgument),
        ({"include_glob": "[", "output_path": "x.pdf"}, InvalidArgument),
        ({"chapters_from_links": True, "paths": ["index.md"]}, InvalidArgument),
        ({"path": "docs/b.md", "chapters_from_links": True}, InvalidArgument),
        ({"path": "none.md"}, NotFound),
        ({"paths": ["docs/a.md", "none.md"]}, NotFound),
        ({"path": "taken.txt"}, UnsupportedFormat),
        ({"path": "../x.md"}, InvalidPath),
        ({"path": "docs/b.md", "output_path": "taken.txt"}, InvalidArgument),
        ({"path": "docs/b.md", "output_path": "../x.pdf"}, InvalidPath),
        ({"path": "docs/b.md", "output_path": "/tmp/x.pdf"}, InvalidPath),
        ({"path": "docs/b.md", "output_path": ".git/x.pdf"}, InvalidPath),
        ({"path": "docs/b.md", "output_path": "a?.pdf"}, InvalidPath),
        ({"path": "docs/b.md", "output_path": "Docs/x.pdf"}, AlreadyExists),
        ({"path": "docs/b.md", "output_path": "taken.txt/x.pdf"}, AlreadyExists),
        ({"path": "docs/b.md", "page_format": "a3"}, InvalidArgument),
        ({"path": "docs/b.md", "style": "fancy"}, InvalidArgument),
        ({"path": "docs/b.md", "profile": "web"}, InvalidArgument),
        ({"path": "docs/b.md", "language": "not a tag!"}, InvalidArgument),
    ],
)
def test_create__refusals_write_nothing(
    books: BookService, project: AssetProject, given: dict[str, Any], error: type[KnowledgeBaseError]
) -> None:
    """Wrong arguments and documents are noticed before a process starts."""
    before = project.files()
    with pytest.raises(error):
        books.create(wait_s=60, **given)
    assert project.files() == before


def test_create__an_older_book_is_replaced_and_can_be_had_back(books: BookService, project: AssetProject) -> None:
    """Undo restores the bytes that were there, or removes a book that is new."""
    project.write("docs/b.pdf", b"%PDF-old")
    first = books.create(path="docs/b.md", wait_s=200)
    new = project.read("docs/b.pdf")
    undo = UndoService(project.mutations)
    assert first.change_id is not None
    undo.undo(change_id=first.change_id)
    assert project.read("docs/b.pdf") == b"%PDF-old"
    second = books.create(path="docs/b.md", output_path="fresh.pdf", wait_s=200)
    assert project.read("fresh.pdf") == new
    assert second.change_id is not None
    undo.undo(change_id=second.change_id)
    assert "fresh.pdf" not in project.files()


def test_create__the_same_call_joins_and_takes_the_result(books: BookService, project: AssetProject) -> None:
    """An answer in time, then the result of the same work; afterwards a new book is made."""
    given: dict[str, Any] = {"path": "docs/a.md", "output_path": "j.pdf"}
    first = books.create(wait_s=0.05, **given)
    assert (first.state, first.path) == ("running", None)
    assert first.progress is not None and 0 <= first.progress <= 1
    done = books.create(wait_s=200, **given)
    assert done.state is None and done.change_id is not None
    project.write("docs/a.md", "# Changed")
    again = books.create(wait_s=200, **given)
    assert again.change_id not in (None, done.change_id)


def test_create__two_callers_share_one_book(books: BookService, project: AssetProject) -> None:
    """Both get the one result, and hear of its progress."""
    results: list[BookResult] = []
    heard: list[float] = []

    def call() -> None:
        results.append(books.create(path="docs/b.md", wait_s=200, report_progress=lambda share, _: heard.append(share)))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({result.change_id for result in results}) == 1
    assert len(project.history.list()) == 1
    assert heard and max(heard) <= 1


def test_create__cancelling_ends_the_work(books: BookService, project: AssetProject) -> None:
    """Nothing is written, and the next call begins anew."""
    project.write("long.md", "# L\n\n" + "Many words to set. " * 40_000)
    asked = threading.Event()

    def cancelled() -> bool:
        asked.set()
        return True

    answer = books.create(path="long.md", wait_s=100, cancelled=cancelled)
    assert answer.state == "running" and asked.is_set()
    # Books are set one at a time: that another one is done shows that the first has ended.
    assert books.create(path="docs/b.md", wait_s=100).state is None
    assert "long.pdf" not in project.files()


def test_close__ends_what_is_being_set(books: BookService, project: AssetProject) -> None:
    """No process outlives the server, and nothing new begins."""
    project.write("long.md", "# L\n\n" + "Many words to set. " * 40_000)
    assert books.create(path="long.md", wait_s=0.5).state == "running"
    books.close()
    with pytest.raises(Busy):
        books.create(path="docs/b.md", wait_s=5)
    assert "long.pdf" not in project.files()


def test_create__a_picture_behind_a_link_is_not_read(books: BookService, project: AssetProject, tmp_path: Path) -> None:
    """The rules of every tool hold for books, too."""
    outside = tmp_path / "outside.png"
    outside.write_bytes(picture("PNG"))
    try:
        (project.root / "docs" / "link.png").symlink_to(outside)
    except OSError:
        pytest.skip("the system makes no symbolic links")
    project.write("docs/l.md", "![x](link.png) ![y](../../outside.png) ![z](../.git/x.png)")
    result = books.create(path="docs/l.md", wait_s=200)
    assert len(result.warnings) >= 3
