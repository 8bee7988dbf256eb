"""Reading many files one after the other: the folder of the last one stays open for its neighbours.

Whatever is not plain (a link, a second name, a file that is written to meanwhile, any error) is left to ``FileReader``,
which looks at the whole way again and finds the right words.
"""

import os
from types import TracebackType

from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileIdentity, FileSnapshot
from local_vector_search_mcp.workspace.folders import Folder
from local_vector_search_mcp.workspace.guard import CASE_IS_KEPT_ONLY, WorkspaceGuard
from local_vector_search_mcp.workspace.reading import FileReader


class NeighbourReader:
    """Reads files of one root; quickest in the order of their paths. Leave the ``with`` soon: a folder is kept open."""

    def __init__(self, guard: WorkspaceGuard, reader: FileReader) -> None:
        self._guard = guard
        self._reader = reader
        self._parent: str | None = None  # Whose folder was entered last; None where none was.
        self._folder: Folder | None = None  # None where it cannot be entered, or has to be looked at file by file.
        self._names: frozenset[str] | None = None

    def read(self, path: RelPath, *, max_bytes: int) -> FileSnapshot:
        """As ``FileReader.read``.

        Raises:
            InvalidPath, NotFound, TooLarge, IoFailure: As ``FileReader.read``.
        """
        parent, _, name = path.value.rpartition("/")
        if parent != self._parent:
            self._enter(parent)
        found = None if self._folder is None else self._read_plain(self._folder, path, name, max_bytes)
        return self._reader.read(path, max_bytes=max_bytes) if found is None else found

    def leave(self) -> None:
        """Let go of the folder."""
        folder, self._folder, self._parent = self._folder, None, None
        if folder is not None:
            folder.close()

    def _enter(self, parent: str) -> None:
        self.leave()
        self._parent = parent
        path = RelPath(parent) if parent else None
        if self._guard.holds_own(path.folded if path is not None else ""):
            return
        try:
            folder = self._guard.open_folder(path)
            if not folder.is_held:
                # A link may take its place at any time, so that the whole way is looked at for each file.
                folder.close()
                return
            self._folder = folder
            # Such systems find a file under any case of its name, and only one of them is its path.
            self._names = frozenset(folder.names()) if CASE_IS_KEPT_ONLY else None
        except (KnowledgeBaseError, OSError):
            return  # Reading a file in it says why.

    def _read_plain(self, folder: Folder, path: RelPath, name: str, max_bytes: int) -> FileSnapshot | None:
        """The file, where all is as it mostly is; None where a closer look is needed."""
        if self._guard.is_refused_name(name) or (self._names is not None and name not in self._names):
            return None
        try:
            fd = folder.open_to_read(name)
        except OSError:
            return None
        try:
            before = os.fstat(fd)
            size = before.st_size
            if size > max_bytes or before.st_nlink > 1:
                return None
            data = os.read(fd, size + 1)
            identity = FileIdentity.of(os.fstat(fd))
            if len(data) != size or identity != FileIdentity.of(before):
                return None
            return FileSnapshot(path=path, data=data, identity=identity)
        except OSError:
            return None
        finally:
            os.close(fd)

    def __enter__(self) -> "NeighbourReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
