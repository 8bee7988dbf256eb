"""LinksService: links of documents, resolved over the files that exist now (``kb_links``).

What a document's own links are is read from its file; what links to it, from the index.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import apsw

from local_vector_search_mcp.errors import InvalidArgument, InvalidPath, IoFailure
from local_vector_search_mcp.index.home import check_indexed
from local_vector_search_mcp.index.link_names import LinkNames, name_key
from local_vector_search_mcp.index.link_rows import StoredLink, name_hash, unpack_links
from local_vector_search_mcp.index.rows import read_chunks
from local_vector_search_mcp.markdown.links import extract_links
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.corpus import Corpora, Corpus
from local_vector_search_mcp.services.indexing import stored_link
from local_vector_search_mcp.services.link_problems import LinkJudge, LinkProblem
from local_vector_search_mcp.workspace.cursors import CursorKey, decode_cursor, encode_cursor
from local_vector_search_mcp.workspace.entries import FileKind
from local_vector_search_mcp.workspace.files import Workspace

_MAX_PAGE: Final = 500
_FIRST_RUN_S: Final = 2.0
_SHAPE: Final = (str, str, int)
# From so many looks at the disk on, one walk is cheaper.
_LOOKS_BEFORE_WALK: Final = 64


class LinkDirection(StrEnum):
    """Which links are listed."""

    OUTGOING = "outgoing"
    INCOMING = "incoming"
    BROKEN = "broken"
    ORPHANS = "orphans"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLink:
    """One link.

    Attributes:
        path: The document that holds it.
        pointer: The element that it stands in.
        target: As written.
        resolved_path: The file that it means; None where there is none, or not exactly one, or it is outside.
        anchor: Its heading or block, decoded.
        problem: What is wrong with it; None where nothing is.
    """

    path: str
    pointer: str
    kind: str
    target: str
    resolved_path: str | None
    anchor: str | None
    problem: LinkProblem | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkList:
    """One page of links, or of documents that nothing links to."""

    links: tuple[ListedLink, ...] = ()
    documents: tuple[str, ...] = ()
    next_cursor: str | None = None
    collection: str | None = None


@dataclass(frozen=True, slots=True)
class _Placed:
    """A link with its place: the document, its number there, and the element where that is known already."""

    path: str
    ordinal: int
    link: StoredLink
    pointer: str | None = None

    @property
    def key(self) -> CursorKey:
        return (self.path.casefold(), self.path, self.ordinal)


class LinksService:
    """Lists links of the project and of collections."""

    def __init__(self, corpora: Corpora) -> None:
        self._corpora = corpora

    def links(
        self,
        *,
        direction: str,
        path: str | None = None,
        cursor: str | None = None,
        page_size: int = 100,
        collection: str | None = None,
    ) -> LinkList:
        """One page of links, in order of path and place.

        Args:
            direction: ``outgoing`` and ``incoming`` need ``path``; ``broken`` takes one; ``orphans`` none.
            path: A document; for ``incoming`` any file.
            cursor: ``next_cursor`` of the page before.
            page_size: 1 to 500.
            collection: Of another tree than the project's.

        Raises:
            InvalidArgument: An argument out of bounds, missing or contradicting, or a cursor of another list.
            InvalidPath, NotFound, UnsupportedFormat, UnsupportedEncoding: The path.
            IndexNotReady, IndexIncompatible: What exists cannot be told from the index.
        """
        wanted = _direction(direction)
        _check_path_given(wanted, path)
        if not 1 <= page_size <= _MAX_PAGE:
            raise InvalidArgument(f"pageSize is {page_size}; it has to lie between 1 and {_MAX_PAGE}.")
        corpus = self._corpora.get(collection)
        about = corpus.workspace.parse(path) if path is not None else None
        filters = {
            "direction": wanted.value,
            "path": None if about is None else about.value,
            "collection": corpus.name,
        }
        after = decode_cursor(cursor, filters, shape=_SHAPE)
        corpus.indexer.wait_first_run(_FIRST_RUN_S)
        corpus.indexer.home.check_searchable()
        with corpus.database.reader() as connection:
            check_indexed(connection)
            listing = _Listing(corpus, connection, after)
            if wanted is LinkDirection.ORPHANS:
                return _orphan_page(listing.orphans(), after, page_size, filters, corpus)
            return _link_page(listing, listing.links(wanted, about), after, page_size, filters, corpus)


def _orphan_page(
    orphans: Iterable[str], after: CursorKey | None, page_size: int, filters: dict[str, str | None], corpus: Corpus
) -> LinkList:
    keys: list[CursorKey] = sorted((path.casefold(), path, 0) for path in orphans)
    keys = [key for key in keys if after is None or key > after]
    page = keys[:page_size]
    return LinkList(
        documents=tuple(str(path) for _, path, _ in page),
        next_cursor=encode_cursor(page[-1], filters) if len(keys) > page_size else None,
        collection=corpus.collection,
    )


def _link_page(
    listing: "_Listing",
    links: "Iterator[_Placed]",
    after: CursorKey | None,
    page_size: int,
    filters: dict[str, str | None],
    corpus: Corpus,
) -> LinkList:
    page: list[_Placed] = []
    more = False
    for placed in links:
        if after is not None and placed.key <= after:
            continue
        if len(page) == page_size:
            more = True
            break
        page.append(placed)
    return LinkList(
        links=listing.shown(page),
        next_cursor=encode_cursor(page[-1].key, filters) if more else None,
        collection=corpus.collection,
    )


class _Listing:
    """One answer: the names of all documents, and the links that are asked for.

    Args:
        corpus: The tree.
        connection: A reader of its index.
        after: Where the page before ended; documents before that one need no look, except for orphans.
    """

    def __init__(self, corpus: Corpus, connection: apsw.Connection, after: CursorKey | None) -> None:
        self._corpus = corpus
        self._connection = connection
        self._after = after
        rows = connection.execute("SELECT path, id FROM documents")
        self._ids: dict[str, int] = {str(path): int(document_id) for path, document_id in rows}
        aliases = connection.execute(
            "SELECT d.path, a.alias_folded FROM aliases AS a JOIN documents AS d ON d.id = a.document_id"
        )
        disk = _Disk(corpus.workspace)
        self._names = LinkNames(
            self._ids,
            [(str(path), str(alias)) for path, alias in aliases],
            exists=disk.exists,
            other_files=disk.other_files,
        )
        self._judge = LinkJudge(self._names, self._anchors)

    def links(self, direction: LinkDirection, about: RelPath | None) -> "Iterator[_Placed]":
        """The links of one direction, in order of path and place."""
        match direction:
            case LinkDirection.OUTGOING | LinkDirection.BROKEN if about is not None:
                found: Iterable[_Placed] = self._own(about)
            case LinkDirection.INCOMING if about is not None:
                return self._incoming(about)
            case _:
                found = self._all(self._after)
        if direction is LinkDirection.BROKEN:
            return (one for one in found if self._judge.judge(one.path, one.link).problem is not None)
        return iter(found)

    def orphans(self) -> set[str]:
        """Documents that no other document links to."""
        linked = {
            meant
            for one in self._all(None)
            if (meant := self._names.resolve(one.path, one.link.kind, one.link.path).path) != one.path
        }
        documents = self._connection.execute("SELECT path FROM documents WHERE state = 'indexed'")
        return {str(row[0]) for row in documents} - linked

    def shown(self, page: "list[_Placed]") -> tuple[ListedLink, ...]:
        """Links as they are answered, with the pointers of their elements."""
        pointers: dict[str, dict[str, str]] = {}
        shown: list[ListedLink] = []
        for one in page:
            pointer = one.pointer
            if pointer is None:
                if one.path not in pointers:
                    pointers[one.path] = self._pointers(one.path)
                pointer = pointers[one.path].get(one.link.logical, one.link.logical)
            verdict = self._judge.judge(one.path, one.link)
            shown.append(
                ListedLink(
                    path=one.path,
                    pointer=pointer,
                    kind=one.link.kind,
                    target=one.link.target,
                    resolved_path=verdict.path,
                    anchor=one.link.anchor,
                    problem=verdict.problem,
                )
            )
        return tuple(shown)

    def _own(self, path: RelPath) -> "Iterator[_Placed]":
        """The links of one document as its file is now."""
        _, document = self._corpus.documents.load(path)
        for ordinal, link in enumerate(extract_links(document)):
            yield _Placed(path.value, ordinal, stored_link(link), link.element.pointer)

    def _incoming(self, path: RelPath) -> "Iterator[_Placed]":
        """Links of other documents that mean a file."""
        if self._corpus.workspace.kind_of(path) is FileKind.MARKDOWN:
            self._corpus.workspace.check_document(path)
        if path.value not in self._ids and not self._corpus.workspace.exists(path):
            raise self._corpus.workspace.not_found(path)
        document_id = self._ids.get(path.value)
        keys = {name_key(path.value)}
        if document_id is not None:
            rows = self._connection.execute("SELECT alias_folded FROM aliases WHERE document_id = ?", (document_id,))
            keys |= {name_key(str(row[0])) for row in rows}
        documents: dict[int, None] = {}
        for key in keys:
            rows = self._connection.execute("SELECT document_id FROM link_names WHERE name_hash = ?", (name_hash(key),))
            documents.update((int(row[0]), None) for row in rows)
        for one in self._stored(documents, self._after):
            if (
                one.path != path.value
                and self._names.resolve(one.path, one.link.kind, one.link.path).path == path.value
            ):
                yield one

    def _all(self, after: CursorKey | None) -> "Iterator[_Placed]":
        rows = self._connection.execute("SELECT id FROM documents WHERE links IS NOT NULL")
        return self._stored([int(row[0]) for row in rows], after)

    def _stored(self, document_ids: Iterable[int], after: CursorKey | None) -> "Iterator[_Placed]":
        """The indexed links of documents, in order, from the one on that a cursor stands in."""
        wanted = set(document_ids)
        first = ("", "") if after is None else after[:2]
        paths = sorted(
            (path.casefold(), path, document_id)
            for path, document_id in self._ids.items()
            if document_id in wanted and (path.casefold(), path) >= first
        )
        for _, path, document_id in paths:
            packed = self._connection.execute("SELECT links FROM documents WHERE id = ?", (document_id,)).get
            for ordinal, link in enumerate(unpack_links(packed)):
                yield _Placed(path, ordinal, link)

    def _anchors(self, path: str) -> bytes | None:
        packed = self._connection.execute("SELECT anchors FROM documents WHERE path = ?", (path,)).get
        return None if packed is None else bytes(packed)

    def _pointers(self, path: str) -> dict[str, str]:
        """The pointers of a document's elements by their addresses, as they are indexed."""
        rows = self._connection.execute("SELECT id FROM chunks WHERE document_id = ?", (self._ids[path],))
        chunks = read_chunks(self._connection, [int(row[0]) for row in rows])
        return {element.logical: element.pointer for chunk in chunks.values() for element in chunk.elements}


class _Disk:
    """Which files there are that are no documents; looks for single ones first and walks when that pays."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, bool] = {}
        self._files: frozenset[str] | None = None

    def other_files(self) -> frozenset[str]:
        """Paths of all files that may be listed and are no documents."""
        if self._files is None:
            walked = self._workspace.walk().files
            self._files = frozenset(file.path.value for file in walked if file.kind is not FileKind.MARKDOWN)
        return self._files

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        if not path:
            return True
        found = self._known.get(path)
        if found is None:
            if len(self._known) >= _LOOKS_BEFORE_WALK and path in self.other_files():
                found = True
            else:
                found = self._look(path)
            self._known[path] = found
        return found

    def _look(self, path: str) -> bool:
        try:
            return self._workspace.exists(RelPath.parse(path, directory=True))
        except InvalidPath:
            return False
        except IoFailure:
            return True  # What cannot be looked at is not known to be missing.


def _direction(text: str) -> LinkDirection:
    try:
        return LinkDirection(text)
    except ValueError as error:
        known = ", ".join(direction.value for direction in LinkDirection)
        raise InvalidArgument(f"direction is {text!r}; use one of {known}.") from error


def _check_path_given(direction: LinkDirection, path: str | None) -> None:
    if path is None and direction in (LinkDirection.OUTGOING, LinkDirection.INCOMING):
        raise InvalidArgument(f"direction {direction.value} needs the path of a document; give path.")
    if path is not None and direction is LinkDirection.ORPHANS:
        raise InvalidArgument("direction orphans looks at all documents; leave path out.")
