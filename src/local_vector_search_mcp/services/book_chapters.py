"""Which documents a book is made of, in which order, and where it goes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from local_vector_search_mcp.book.mentions import document_links
from local_vector_search_mcp.book.sources import ChapterSource
from local_vector_search_mcp.errors import (
    IndexIncompatible,
    IndexNotReady,
    InvalidArgument,
    IoFailure,
    KnowledgeBaseError,
    TooLarge,
)
from local_vector_search_mcp.index.link_names import LinkNames
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.corpus import Corpus
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.globs import compile_globs

MOST_CHAPTERS: Final = 5_000
# What a process can set within its limits of time and memory, many times over.
_MOST_BYTES: Final = 64 * 1024 * 1024
_PDF: Final = ".pdf"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookRequest:
    """What a caller asks to be made into a book."""

    path: str | None
    paths: tuple[str, ...] | None
    include_glob: tuple[str, ...]
    chapters_from_links: bool
    output_path: str | None

    def check(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            InvalidArgument: Not exactly one source, or too many, or one twice, or an output that is no PDF.
        """
        given = [name for name, value in self._sources() if value]
        if len(given) != 1:
            asked = " and ".join(given) or "none of them"
            raise InvalidArgument(f"Give exactly one of path, paths and includeGlob; {asked} was given.")
        if self.chapters_from_links and self.path is None:
            raise InvalidArgument("chaptersFromLinks needs path: the document whose links are the chapters.")
        if self.paths is not None and len(self.paths) > MOST_CHAPTERS:
            raise InvalidArgument(f"A book has {MOST_CHAPTERS} chapters at most; {len(self.paths)} were given.")
        if self.output_path is not None and not self.output_path.lower().endswith(_PDF):
            raise InvalidArgument(f"outputPath {self.output_path!r} must end in .pdf.")

    def _sources(self) -> Iterator[tuple[str, object]]:
        yield "path", self.path is not None
        yield "paths", self.paths
        yield "includeGlob", self.include_glob


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapters:
    """The documents of a book as they are now, and what goes with them.

    ``front`` is the document that speaks for the whole book where that is no chapter; ``names`` resolves links.
    """

    documents: tuple[ChapterSource, ...]
    front: ChapterSource | None
    output: RelPath
    names: LinkNames
    warnings: tuple[str, ...]


def gather_chapters(corpus: Corpus, request: BookRequest) -> Chapters:
    """Read the documents that a book is asked to be made of.

    Raises:
        InvalidPath, NotFound, UnsupportedFormat, IoFailure: One of the named documents cannot be taken.
        InvalidArgument: No document fits, or one is named twice.
        TooLarge: All together are too large for one book.
    """
    workspace = corpus.workspace
    names = link_names(corpus)
    warnings: list[str] = []
    front: ChapterSource | None = None
    if request.include_glob:
        documents = _matching(workspace, request.include_glob, warnings)
    elif request.chapters_from_links:
        front = _read(workspace, workspace.parse(request.path or ""))
        documents = _linked(workspace, front, names, warnings)
    else:
        given = request.paths if request.paths is not None else (request.path or "",)
        documents = _named(workspace, given)
    total = sum(len(document.data) for document in documents)
    if total > _MOST_BYTES:
        raise TooLarge(f"The documents have {total} bytes in all; one book takes {_MOST_BYTES} at most.")
    first = front or documents[0]
    return Chapters(
        documents=documents,
        front=front,
        output=_output(workspace, request.output_path, first.path),
        names=names,
        warnings=tuple(warnings),
    )


def link_names(corpus: Corpus) -> LinkNames:
    """The names that links of the corpus can mean, by the files as they are now."""
    workspace = corpus.workspace
    documents = list(workspace.scan_documents().documents)

    def exists(path: str) -> bool:
        try:
            return workspace.exists(RelPath.parse(path))
        except KnowledgeBaseError:
            # No path that a tool could read, so nothing to show.
            return False

    def others() -> Iterator[str]:
        return (entry.path.value for entry in workspace.walk().files)

    return LinkNames(documents, _aliases(corpus), exists=exists, other_files=others)


def _aliases(corpus: Corpus) -> list[tuple[str, str]]:
    try:
        with corpus.database.reader() as connection:
            rows = connection.execute(
                "SELECT documents.path, aliases.alias_folded FROM aliases "
                "JOIN documents ON documents.id = aliases.document_id"
            )
            return [(str(path), str(alias)) for path, alias in rows]
    except (IndexNotReady, IndexIncompatible):
        # Aliases help to find a note; the book is made of files and stands without an index.
        return []


def _read(workspace: Workspace, path: RelPath) -> ChapterSource:
    snapshot = workspace.read_document(path)
    return ChapterSource(path=path.value, data=snapshot.data)


def _named(workspace: Workspace, given: tuple[str, ...]) -> tuple[ChapterSource, ...]:
    paths = [workspace.parse(text) for text in given]
    twice = next((path for index, path in enumerate(paths) if path in paths[:index]), None)
    if twice is not None:
        raise InvalidArgument(f"{twice} is named twice; each document is one chapter.")
    return tuple(_read(workspace, path) for path in paths)


def _matching(workspace: Workspace, patterns: tuple[str, ...], warnings: list[str]) -> tuple[ChapterSource, ...]:
    globs = compile_globs(list(patterns))
    found = [path for path in workspace.scan_documents().documents if any(glob.matches(path) for glob in globs)]
    if not found:
        raise InvalidArgument(f"No document matches {', '.join(patterns)}; list the files to see what there is.")
    if len(found) > MOST_CHAPTERS:
        raise TooLarge(f"{len(found)} documents match; a book has {MOST_CHAPTERS} chapters at most.")
    ordered = sorted(found, key=lambda path: (path.casefold(), path))
    return _readable(workspace, ordered, warnings)


def _linked(
    workspace: Workspace, front: ChapterSource, names: LinkNames, warnings: list[str]
) -> tuple[ChapterSource, ...]:
    found: dict[str, None] = {}
    for kind, target in document_links(front.path, front.data):
        path = names.resolve(front.path, kind, target).path
        if path is not None and path in names and path != front.path:
            found.setdefault(path)
    if not found:
        raise InvalidArgument(f"{front.path} links to no other document, so there are no chapters.")
    if len(found) > MOST_CHAPTERS:
        raise TooLarge(f"{front.path} links to {len(found)} documents; a book has {MOST_CHAPTERS} chapters at most.")
    return _readable(workspace, list(found), warnings)


def _readable(workspace: Workspace, paths: list[str], warnings: list[str]) -> tuple[ChapterSource, ...]:
    """Documents that were found rather than named; one that cannot be read does not stop the others."""
    documents: list[ChapterSource] = []
    failure: KnowledgeBaseError | None = None
    for path in paths:
        try:
            documents.append(_read(workspace, RelPath(path)))
        except KnowledgeBaseError as error:
            failure = error
            warnings.append(f"{path} is left out: {error.message}")
    if not documents:
        raise failure or IoFailure("None of the documents can be read.")
    return tuple(documents)


def _output(workspace: Workspace, given: str | None, first: str) -> RelPath:
    """Where the PDF goes: a name that every system can hold, or a file that exists."""
    text = given if given is not None else first[: -len(RelPath(first).suffix)] + _PDF
    path = workspace.parse(text)
    if workspace.identity(path) is None:
        path = workspace.parse_new(text)
        workspace.check_new(path)
    return path
