"""Whether what the index says of a document is still so: is its file there, and does it hold what was indexed."""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import json

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import InvalidPath, IoFailure, KnowledgeBaseError
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.corpus import Corpus
from local_vector_search_mcp.workspace.entries import FileEntry, FileState


class Freshness:
    """Answers for the documents of one tree; each file is looked at once.

    Args:
        corpus: The tree.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._entries: dict[str, FileEntry | None] = {}
        self._settled: dict[str, tuple[FileState, str] | None] = {}
        self._stale: dict[str, bool] = {}

    def exists(self, path: str) -> bool:
        """Whether a document's file is there and may be read."""
        if path not in self._entries:
            self._entries[path] = self._look(RelPath(path))
        return self._entries[path] is not None

    def is_stale(self, path: str, indexed_hash: str) -> bool:
        """Whether a document's file has other content than was indexed; one that cannot be read has."""
        if path not in self._stale:
            self._stale[path] = not self.exists(path) or self._differs(path, indexed_hash)
        return self._stale[path]

    def _look(self, path: RelPath) -> FileEntry | None:
        try:
            return self._corpus.workspace.stat(path)
        except (InvalidPath, IoFailure):
            return None  # A link stands in its place now, say, or its folder cannot be entered any more.

    def _differs(self, path: str, indexed_hash: str) -> bool:
        entry = self._entries[path]
        if entry is not None and (entry.state, indexed_hash) == self._settled_state(path):
            return False
        try:
            return xxh64_hex(self._corpus.workspace.read(RelPath(path)).data) != indexed_hash
        except KnowledgeBaseError:
            return True

    def _settled_state(self, path: str) -> tuple[FileState, str] | None:
        """The file's state and hash when it was indexed; None where equal times prove nothing about it."""
        if path not in self._settled:
            # All that were looked at so far are asked for together.
            wanted = [known for known in self._entries if known not in self._settled]
            self._settled.update(dict.fromkeys(wanted))
            with self._corpus.database.reader() as connection:
                rows = connection.execute(
                    "SELECT path, size, mtime_ns, ctime_ns, inode, source_hash FROM documents"
                    " WHERE path IN (SELECT value FROM json_each(?)) AND recheck = 0 AND state = 'indexed'",
                    (json.dumps(wanted),),
                )
                self._settled.update({str(row[0]): ((row[1], row[2], row[3], row[4]), str(row[5])) for row in rows})
        return self._settled[path]
