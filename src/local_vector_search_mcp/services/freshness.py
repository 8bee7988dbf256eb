"""Whether what the index says of a document is still so: is its file there, and does it hold what was indexed."""

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import InvalidPath, IoFailure, KnowledgeBaseError, NotFound
from local_vector_search_mcp.index import state
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.corpus import Corpus
from local_vector_search_mcp.workspace.entries import FileEntry


class Freshness:
    """Answers for the documents of one tree; each file is looked at once.

    Args:
        corpus: The tree.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._entries: dict[str, FileEntry | None] = {}
        self._stale: dict[str, bool] = {}

    def exists(self, path: str) -> bool:
        """Whether a document's file is there and may be read."""
        return self._entry(path) is not None

    def is_stale(self, path: str, indexed_hash: str) -> bool:
        """Whether a document's file has other content than was indexed; one that cannot be read has."""
        known = self._stale.get(path)
        if known is None:
            known = self._stale[path] = self._differs(path, indexed_hash)
        return known

    def _entry(self, path: str) -> FileEntry | None:
        if path not in self._entries:
            self._entries[path] = self._look(RelPath(path))
        return self._entries[path]

    def _look(self, path: RelPath) -> FileEntry | None:
        if not self._corpus.workspace.is_document(path):
            return None
        try:
            return self._corpus.workspace.stat(path)
        except (InvalidPath, NotFound):
            return None  # A link stands there now, say.
        except IoFailure:
            return None

    def _differs(self, path: str, indexed_hash: str) -> bool:
        entry = self._entry(path)
        if entry is None:
            return True
        with self._corpus.database.reader() as connection:
            record = state.document(connection, RelPath(path))
        # Equal times prove nothing about a file that was read in the moment it was written.
        if record is not None and record.file_state == entry.state and not record.recheck:
            return record.source_hash != indexed_hash
        try:
            return xxh64_hex(self._corpus.workspace.read_present(RelPath(path)).data) != indexed_hash
        except KnowledgeBaseError:
            return True
