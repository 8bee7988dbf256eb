"""ListingService: the files of a tree, page by page, as they are on disk now (``kb_list_files``)."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from local_vector_search_mcp.errors import IndexIncompatible, IndexNotReady, InvalidArgument
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.corpus import Corpora, Corpus
from local_vector_search_mcp.workspace.cursors import CursorKey, decode_cursor, encode_cursor
from local_vector_search_mcp.workspace.entries import FileKind, FileState, iso_time
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.globs import Glob, compile_globs

_MAX_PAGE = 500
_ALL = "all"


class FileSort(StrEnum):
    """The orders of a list of files."""

    PATH = "path"
    MODIFIED = "modified"
    SIZE = "size"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """One file of a list."""

    path: RelPath
    kind: FileKind
    bytes: int
    modified: str
    title: str | None  # Of documents that are in the index.
    indexed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileList:
    """One page of files."""

    files: tuple[ListedFile, ...]
    next_cursor: str | None
    collection: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    kind: FileKind
    state: FileState


class ListingService:
    """Lists files of the project and of collections. Reads the disk; the index only adds titles."""

    def __init__(self, corpora: Corpora) -> None:
        self._corpora = corpora

    def list_files(
        self,
        *,
        path_prefix: str | None = None,
        include_glob: str | Sequence[str] | None = None,
        kind: str = _ALL,
        sort: str = FileSort.PATH.value,
        cursor: str | None = None,
        page_size: int = 100,
        collection: str | None = None,
    ) -> FileList:
        """One page of the files that a walk may list.

        Args:
            path_prefix: Only a folder or a file; None, ``""``, ``.`` and ``/`` mean everything.
            include_glob: Only paths that one of these globs fits.
            kind: ``all``, ``markdown``, ``image`` or ``other``.
            sort: ``path``, ``modified`` (newest first) or ``size`` (largest first).
            cursor: ``next_cursor`` of the page before.
            page_size: 1 to 500.
            collection: Of another tree than the project's.

        Raises:
            InvalidArgument: An argument out of bounds, a malformed glob, or a cursor of another list.
            InvalidPath: A prefix that no path can have.
            IoFailure: The root is gone or cannot be read.
        """
        corpus = self._corpora.get(collection)
        wanted = _kind(kind)
        order = _sort(sort)
        if not 1 <= page_size <= _MAX_PAGE:
            raise InvalidArgument(f"pageSize is {page_size}; it has to lie between 1 and {_MAX_PAGE}.")
        patterns = [include_glob] if isinstance(include_glob, str) else list(include_glob or ())
        globs = compile_globs(patterns)
        prefix = corpus.workspace.parse_prefix(path_prefix)
        filters = {
            "prefix": prefix,
            "globs": patterns,
            "kind": kind,
            "sort": order.value,
            "collection": corpus.name,
        }
        key_of, shape = _KEYS[order]
        after = decode_cursor(cursor, filters, shape=shape)
        found = _fitting(_files(corpus.workspace, prefix, wanted), globs)
        if after is not None:
            found = (file for file in found if key_of(file) > after)
        page = heapq.nsmallest(page_size + 1, found, key=key_of)
        more = len(page) > page_size
        page = page[:page_size]
        return FileList(
            files=_with_titles(corpus, page),
            next_cursor=encode_cursor(key_of(page[-1]), filters) if more else None,
            collection=corpus.collection,
        )


def _files(workspace: Workspace, prefix: str, wanted: FileKind | None) -> Iterable[_Found]:
    """Every file of a kind under a prefix, in no particular order."""
    if prefix:
        workspace.guard.check(RelPath(prefix))
        single = workspace.visible_file(RelPath(prefix))
        if single is not None:
            return [_Found(single.path.value, single.kind, single.state)] if wanted in (None, single.kind) else []
    if wanted is FileKind.MARKDOWN:
        documents = workspace.scan_documents(prefix).documents
        return (_Found(path, FileKind.MARKDOWN, state) for path, state in documents.items())
    return (
        _Found(entry.path.value, entry.kind, entry.state)
        for entry in workspace.walk(prefix).files
        if wanted in (None, entry.kind)
    )


def _fitting(files: Iterable[_Found], globs: Sequence[Glob]) -> Iterable[_Found]:
    if not globs:
        return files
    return (file for file in files if any(glob.matches(file.path) for glob in globs))


def _with_titles(corpus: Corpus, page: Sequence[_Found]) -> tuple[ListedFile, ...]:
    titles = _titles(corpus, [file.path for file in page if file.kind is FileKind.MARKDOWN])
    return tuple(
        ListedFile(
            path=RelPath(file.path),
            kind=file.kind,
            bytes=file.state[0],
            modified=iso_time(file.state[1]),
            title=titles.get(file.path),
            indexed=file.path in titles,
        )
        for file in page
    )


def _titles(corpus: Corpus, paths: Sequence[str]) -> dict[str, str]:
    """The titles of those documents that are in the index."""
    if not paths:
        return {}
    marks = ", ".join("?" * len(paths))
    try:
        with corpus.database.reader() as connection:
            rows = connection.execute(
                f"SELECT path, title FROM documents WHERE state = 'indexed' AND path IN ({marks})", tuple(paths)
            )
            return {str(path): str(title) for path, title in rows}
    except (IndexNotReady, IndexIncompatible):
        # The list is of the disk; it stands without an index.
        return {}


def _by_path(file: _Found) -> CursorKey:
    return (file.path.casefold(), file.path)


def _by_modified(file: _Found) -> CursorKey:
    return (-file.state[1], file.path.casefold(), file.path)


def _by_size(file: _Found) -> CursorKey:
    return (-file.state[0], file.path.casefold(), file.path)


_KEYS: dict[FileSort, tuple[Callable[[_Found], CursorKey], tuple[type, ...]]] = {
    FileSort.PATH: (_by_path, (str, str)),
    FileSort.MODIFIED: (_by_modified, (int, str, str)),
    FileSort.SIZE: (_by_size, (int, str, str)),
}


def _kind(text: str) -> FileKind | None:
    if text == _ALL:
        return None
    try:
        return FileKind(text)
    except ValueError as error:
        raise InvalidArgument(f"kind is {text!r}; it has to be one of all, markdown, image, other.") from error


def _sort(text: str) -> FileSort:
    try:
        return FileSort(text)
    except ValueError as error:
        raise InvalidArgument(f"sort is {text!r}; it has to be one of path, modified, size.") from error
