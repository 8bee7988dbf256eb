"""RestoringFiles: the few steps by which the history's journal puts files back, each checked by content."""

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import Conflict, ConflictReason, NotFound
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileSnapshot
from local_vector_search_mcp.workspace.files import Workspace


class RestoringFiles:
    """A workspace as the journal sees it: every step names the hash that the file must still have."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def read_bytes(self, path: RelPath) -> bytes | None:
        """A file's bytes; None where there is none.

        Raises:
            InvalidPath, IoFailure: As ``Workspace.read``.
        """
        if self._workspace.identity(path) is None and not self._workspace.exists(path):
            return None
        try:
            return self._workspace.read(path).data
        except NotFound:
            return None

    def put(self, path: RelPath, data: bytes, *, expected_hash: str | None) -> None:
        """Write a file whole, if it still has this hash; None: if there is none.

        Raises:
            Conflict: It has another.
            AlreadyExists, InvalidPath, IoFailure, Busy: As ``Workspace.create`` and ``swap``.
        """
        if expected_hash is None:
            self._workspace.create(path, data)
        else:
            self._workspace.swap(path, data, self._expected(path, expected_hash).identity)

    def take_away(self, path: RelPath, *, expected_hash: str) -> None:
        """Remove a file, if it still has this hash.

        Raises:
            Conflict: It has another.
            InvalidPath, IoFailure, Busy: As ``Workspace.delete``.
        """
        self._workspace.delete(path, self._expected(path, expected_hash).identity)

    def rename(self, old: RelPath, new: RelPath, *, expected_hash: str) -> None:
        """Rename a file, if it still has this hash; never over another.

        Raises:
            Conflict: It has another.
            AlreadyExists, InvalidPath, IoFailure, Busy: As ``Workspace.move``.
        """
        self._workspace.move(old, new, expected=self._expected(old, expected_hash).identity)

    def _expected(self, path: RelPath, expected_hash: str) -> FileSnapshot:
        snapshot = self._workspace.read(path)
        if xxh64_hex(snapshot.data) != expected_hash:
            raise Conflict(f"{path} was changed since; it is left alone.", reason=ConflictReason.SOURCE_CHANGED)
        return snapshot
