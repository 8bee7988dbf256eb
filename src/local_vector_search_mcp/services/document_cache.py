"""DocumentCache: parsed documents by the hash of their bytes, so that unchanged ones are parsed once."""

import threading
from collections import OrderedDict
from typing import Final

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileSnapshot
from local_vector_search_mcp.workspace.files import Workspace

_MOST_DOCUMENTS: Final = 64
# A parsed document takes a multiple of its bytes in memory.
_MOST_BYTES: Final = 24 * 1024 * 1024


class DocumentCache:
    """Reads documents as they are now. The file is read every time; only parsing it is saved.

    Safe to use from several threads.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._documents: OrderedDict[str, MarkdownDocument] = OrderedDict()
        self._bytes = 0

    def load(self, path: RelPath) -> tuple[FileSnapshot, MarkdownDocument]:
        """A document's bytes as they are on disk, and what they parse to.

        Raises:
            NotFound, UnsupportedFormat, InvalidPath, TooLarge, IoFailure: As ``Workspace.read_document``.
            UnsupportedEncoding: It is not UTF-8.
        """
        snapshot = self._workspace.read_document(path)
        key = xxh64_hex(snapshot.data)
        with self._lock:
            document = self._documents.get(key)
            if document is not None:
                self._documents.move_to_end(key)
        if document is not None and document.source.data == snapshot.data:
            return snapshot, document
        document = parse_bytes(snapshot.data)
        self._keep(key, document)
        return snapshot, document

    def keep(self, document: MarkdownDocument) -> None:
        """Take over a document that was parsed elsewhere, such as the result of an edit that was just written."""
        self._keep(document.source_hash, document)

    def _keep(self, key: str, document: MarkdownDocument) -> None:
        size = len(document.source.data)
        if size > _MOST_BYTES:
            return
        with self._lock:
            replaced = self._documents.pop(key, None)
            if replaced is not None:
                self._bytes -= len(replaced.source.data)
            self._documents[key] = document
            self._bytes += size
            while len(self._documents) > _MOST_DOCUMENTS or self._bytes > _MOST_BYTES:
                _, oldest = self._documents.popitem(last=False)
                self._bytes -= len(oldest.source.data)
