"""OverviewService: what the index of the project holds as a whole, and whether that changed; cheap to ask often."""

from collections.abc import Collection
from dataclasses import dataclass, field

import apsw

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.index.state import revision
from local_vector_search_mcp.services.corpus import Corpora

_MOST_FOLDERS = 20
_MOST_TAGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a workspace holds, as far as the index knows.

    Attributes:
        documents: Indexed ones; None where there is no index yet.
        folders: Top-level folders with the number of their documents, most first.
        tags: Tags without ``#``, the most used first.
        collections: Names of the further trees.
    """

    documents: int | None = None
    folders: tuple[tuple[str, int], ...] = ()
    tags: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPrint:
    """The state of an index in a few bytes; two that are equal hold the same.

    Attributes:
        revision: Grows with every change of a document's rows.
        paths: A digest of the paths of all documents.
        hashes: The source hash of each document that was asked about; None where it is not there.
    """

    revision: int = -1
    paths: str = ""
    hashes: dict[str, str | None] = field(default_factory=dict[str, str | None])


class OverviewService:
    """Looks at the index as a whole; never at files."""

    def __init__(self, corpora: Corpora) -> None:
        self._corpora = corpora

    def overview(self) -> Overview:
        """What the project holds; without an index, what is known without one."""
        collections = tuple(corpus.name for corpus in self._corpora.collections)
        try:
            with self._corpora.project.database.reader() as connection:
                return Overview(
                    documents=_count(connection),
                    folders=_folders(connection),
                    tags=_tags(connection),
                    collections=collections,
                )
        except KnowledgeBaseError:
            # Instructions and notifications do not need the index; what does need it says what is wrong.
            return Overview(collections=collections)

    def revision(self) -> int | None:
        """Grows with every change of the project's rows; None where there is no index yet."""
        try:
            with self._corpora.project.database.reader() as connection:
                return revision(connection)
        except KnowledgeBaseError:
            return None

    def index_print(self, watched: Collection[str], before: IndexPrint) -> IndexPrint:
        """The state of the index now; ``before`` itself where nothing has changed, or nothing can be told.

        Args:
            watched: Paths of documents whose hashes are wanted.
            before: The last answer.
        """
        try:
            with self._corpora.project.database.reader() as connection:
                now = revision(connection)
                if now == before.revision and watched == before.hashes.keys():
                    return before
                paths = (str(path) for (path,) in connection.execute("SELECT path FROM documents ORDER BY path"))
                return IndexPrint(
                    revision=now,
                    paths=xxh64_hex("\n".join(paths).encode()),
                    hashes={path: _hash(connection, path) for path in watched},
                )
        except KnowledgeBaseError:
            return before


def _count(connection: apsw.Connection) -> int:
    for (number,) in connection.execute("SELECT count(*) FROM documents WHERE state = 'indexed'"):
        return int(number)
    return 0


def _folders(connection: apsw.Connection) -> tuple[tuple[str, int], ...]:
    query = (
        "SELECT substr(path, 1, instr(path, '/') - 1) AS folder, count(*) FROM documents "
        "WHERE instr(path, '/') > 0 GROUP BY folder ORDER BY count(*) DESC, folder LIMIT ?"
    )
    return tuple((str(folder), int(number)) for folder, number in connection.execute(query, (_MOST_FOLDERS,)))


def _tags(connection: apsw.Connection) -> tuple[str, ...]:
    query = "SELECT tag FROM tags GROUP BY tag ORDER BY count(*) DESC, tag LIMIT ?"
    return tuple(str(tag) for (tag,) in connection.execute(query, (_MOST_TAGS,)))


def _hash(connection: apsw.Connection, path: str) -> str | None:
    for (source_hash,) in connection.execute("SELECT source_hash FROM documents WHERE path = ?", (path,)):
        return None if source_hash is None else str(source_hash)
    return None
