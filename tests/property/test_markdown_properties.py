"""Properties of the Markdown model that hold for every document."""

import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.strategies import markdown_documents, mutations
from tests.support.library_blocks import library_blocks, our_blocks
from tests.support.markdown_model import check_promises
from tests.support.spec_examples import spec_texts, tree_documents

from local_vector_search_mcp.errors import UnsupportedEncoding
from local_vector_search_mcp.markdown.links import LinkSyntax, survey
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.tables import parse_table, project_table

TREES = (
    "corpora/digital-garden.tar.gz",
    "corpora/rust-book.tar.gz",
    "corpora/vue-zh.tar.gz",
    "ir/cranfield.tar.gz",
    "ir/xquad-en.tar.gz",
    "ir/xquad-zh.tar.gz",
)
# The library takes a title without white space before it where it goes on in the next line; CommonMark does not.
_GLUED_TITLE = re.compile(rb">[\"'(]")
_SLOW = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_SLOW
@given(markdown_documents())
def test_model__generated_documents_keep_every_promise(data: bytes) -> None:
    """Ranges, coverage, addresses, hashes and pointers are right for documents made of Markdown's pieces."""
    check_promises(data)


@_SLOW
@given(st.binary(max_size=60))
def test_model__any_bytes_are_a_document_or_refused(data: bytes) -> None:
    """Bytes either are no UTF-8, and refused as such, or parse."""
    try:
        check_promises(data)
    except UnsupportedEncoding:
        with pytest.raises(UnicodeDecodeError):
            data.decode("utf-8")


@_SLOW
@given(st.data())
def test_model__mutated_examples_keep_every_promise(data: st.DataObject) -> None:
    """The examples of the standards, cut and mixed."""
    check_promises(data.draw(mutations(spec_texts())))


@_SLOW
@given(markdown_documents())
def test_blocks__are_the_librarys(data: bytes) -> None:
    """The block scan finds what the library's tokens say."""
    assume(not _GLUED_TITLE.search(data))
    assert our_blocks(data) == library_blocks(data)


@_SLOW
@given(st.data())
def test_blocks__of_mutated_examples_are_the_librarys(data: st.DataObject) -> None:
    """The same for the examples of the standards, cut and mixed."""
    document = data.draw(mutations(spec_texts()))
    assume(not _GLUED_TITLE.search(document))
    assert our_blocks(document) == library_blocks(document)


def test_model__examples_of_the_standards() -> None:
    """Every example keeps every promise, and its blocks are the library's."""
    for text in spec_texts():
        check_promises(text.encode())
        assert our_blocks(text.encode()) == library_blocks(text.encode()), text


@pytest.mark.parametrize("archive", TREES)
def test_model__real_trees(archive: str) -> None:
    """Every document of a real tree keeps every promise, and its blocks are the library's."""
    count = 0
    for name, data in tree_documents(archive):
        check_promises(data)
        assert our_blocks(data) == library_blocks(data), name
        count += 1
    assert count > 20


@_SLOW
@given(markdown_documents())
def test_links__point_to_the_bytes_they_name(data: bytes) -> None:
    """A link's ranges hold its destination, inside its element; everything else of a survey names elements too."""
    document = parse_bytes(data)
    found = survey(document)
    for link in found.links:
        assert link.destination.slice(data).decode() == link.target
        assert link.path_range.start == link.destination.start
        assert link.destination.contains(link.path_range)
        assert link.element.range.contains(link.destination)
        if link.syntax is LinkSyntax.WIKI:
            assert "|" not in link.target
    assert all(element in document.elements for element in (*found.slugs.values(), *found.blocks.values()))


@_SLOW
@given(markdown_documents())
def test_tables__cells_lie_in_their_lines(data: bytes) -> None:
    """Every row's cells are in order and inside its line, and the projection has a cell for every column."""
    document = parse_bytes(data)
    for element in document.elements:
        if element.kind != "table":
            continue
        table = parse_table(document, element)
        for line in table.lines:
            at = line.range.start
            for cell in line.cells:
                assert at <= cell.padded.start <= cell.content.start <= cell.content.end <= cell.padded.end
                at = cell.padded.end
            assert at <= line.range.end
        assert len(table.header.cells) == table.column_count
        projection = project_table(document, element)
        assert all(len(row.cells) == table.column_count for row in projection.rows)
