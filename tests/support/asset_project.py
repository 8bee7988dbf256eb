"""A project with images and books: the writing services' workspace with an index that was never made."""

from dataclasses import dataclass
from pathlib import Path

from tests.support.writing import NotingIndexer

from local_vector_search_mcp.history.store import HistoryStore
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.services.corpus import PROJECT, Corpus
from local_vector_search_mcp.services.document_cache import DocumentCache
from local_vector_search_mcp.services.mutations import Mutations
from local_vector_search_mcp.workspace.files import Workspace


@dataclass
class AssetProject:
    """A root with files, the one write path to it, and its history."""

    root: Path
    workspace: Workspace
    mutations: Mutations
    history: HistoryStore
    indexer: NotingIndexer

    def write(self, path: str, data: bytes | str) -> None:
        """Put a file into the root."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)

    def read(self, path: str) -> bytes:
        """The bytes of a file of the root."""
        return (self.root / path).read_bytes()

    def files(self) -> dict[str, bytes]:
        """Every file of the root by path."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }

    @property
    def told(self) -> list[str]:
        """The documents that the indexer was told of."""
        return sorted(path.value for path in self.indexer.told)


def asset_project(folder: Path, files: dict[str, bytes | str] | None = None) -> AssetProject:
    """A project in a folder; its history and index stand beside the root."""
    root, storage = folder / "root", folder / "storage"
    root.mkdir()
    storage.mkdir()
    workspace = Workspace(root)
    indexer = NotingIndexer()
    corpus = Corpus(
        name=PROJECT,
        workspace=workspace,
        documents=DocumentCache(workspace),
        database=IndexDatabase(storage / "index.db", load_vectors=False),
        indexer=indexer,  # type: ignore[arg-type]
    )
    history = HistoryStore(storage / "history.db")
    project = AssetProject(root, workspace, Mutations(corpus, history), history, indexer)
    for path, data in (files or {}).items():
        project.write(path, data)
    return project
