"""A workspace to write in: real files, history and lock; an indexer that notes what it is told."""

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from local_vector_search_mcp.history.store import HistorySettings, HistoryStore
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.corpus import Corpus
from local_vector_search_mcp.services.document_cache import DocumentCache
from local_vector_search_mcp.services.documents import DocumentService
from local_vector_search_mcp.services.frontmatter import FrontmatterService
from local_vector_search_mcp.services.mutations import Mutations, MutationSettings
from local_vector_search_mcp.services.patching import PatchingService
from local_vector_search_mcp.services.replacing import ReplacingService
from local_vector_search_mcp.services.tables import TableService
from local_vector_search_mcp.services.undo import UndoService
from local_vector_search_mcp.workspace.entries import FileSnapshot
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.listing import SelectionRules
from local_vector_search_mcp.workspace.neighbours import NeighbourReader


class NotingIndexer:
    """Takes what an indexer is told and says that it is indexed, or not."""

    def __init__(self) -> None:
        self.told: list[RelPath] = []
        self.synchronized = True
        self._lock = threading.Lock()

    def notify_paths(self, paths: Iterable[RelPath]) -> None:
        """Note the paths."""
        with self._lock:
            self.told.extend(paths)

    def wait_indexed(self, path: RelPath, source_hash: str | None, *, timeout_ms: int) -> bool:
        """Whether the index is said to be up to date."""
        return self.synchronized


class Writing:
    """The writing services over one folder."""

    def __init__(
        self,
        root: Path,
        history: Path,
        *,
        rules: SelectionRules | None = None,
        settings: HistorySettings | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.root = root
        self.workspace = Workspace(root, rules)
        self.indexer = NotingIndexer()
        self.history = HistoryStore(history, settings)
        corpus = SimpleNamespace(
            name="project",
            workspace=self.workspace,
            documents=DocumentCache(self.workspace),
            indexer=self.indexer,
        )
        self.mutations = Mutations(
            cast("Corpus", corpus), self.history, MutationSettings(write_wait_ms=50), wall_clock=wall_clock
        )
        self.patching = PatchingService(self.mutations)
        self.tables = TableService(self.mutations)
        self.frontmatter = FrontmatterService(self.mutations)
        self.documents = DocumentService(self.mutations)
        self.replacing = ReplacingService(self.mutations)
        self.undo = UndoService(self.mutations)

    def write(self, path: str, text: str | bytes) -> None:
        """Put a file there, as another program would."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)

    def text(self, path: str) -> str:
        """A file's text."""
        return (self.root / path).read_bytes().decode()

    def files(self) -> dict[str, bytes]:
        """Every file by path."""
        return {
            place.relative_to(self.root).as_posix(): place.read_bytes()
            for place in sorted(self.root.rglob("*"))
            if place.is_file()
        }

    def pointer(self, path: str, logical: str) -> str:
        """The full pointer of an element as the file is now."""
        element = parse_bytes((self.root / path).read_bytes()).by_logical(logical)
        assert element is not None, f"there is no {logical} in {path}"
        return element.pointer

    def source_hash(self, path: str) -> str:
        """The hash of a file as it is now."""
        return parse_bytes((self.root / path).read_bytes()).source_hash

    def close(self) -> None:
        """Let go of the files."""
        self.workspace.close()
        self.history.close()


def note_reads(workspace: Workspace, note: Callable[[RelPath], None]) -> None:
    """Have a workspace tell of every file that it reads as one of many, before it is read."""
    neighbours = workspace.neighbours

    def noting() -> NeighbourReader:
        reader = neighbours()
        read = reader.read

        def noted(path: RelPath, *, max_bytes: int) -> FileSnapshot:
            note(path)
            return read(path, max_bytes=max_bytes)

        reader.read = noted  # type: ignore[method-assign]
        return reader

    workspace.neighbours = noting  # type: ignore[method-assign]


def act_before_lock(writing: Writing, act: Callable[[Writing], object]) -> None:
    """Let something happen once, after what is planned ahead, in the moment before the lock is taken."""
    locked = writing.mutations.locked

    @contextmanager
    def late() -> Generator[None]:
        writing.mutations.locked = locked  # type: ignore[method-assign]
        act(writing)
        with locked():
            yield

    writing.mutations.locked = late  # type: ignore[method-assign]
