"""An index over a folder of Markdown, built at once by the real reconciler, for tests and measurements of searching."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from local_vector_search_mcp.embeddings.provider import EmbeddingProvider
from local_vector_search_mcp.index.chunker import ChunkerSettings
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.embedding_text import EmbeddingTextSettings
from local_vector_search_mcp.index.home import IndexHome
from local_vector_search_mcp.index.manifest import Manifest
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.embedding import EmbeddingBacklog, VectorHooks
from local_vector_search_mcp.services.indexing import IndexingSettings
from local_vector_search_mcp.services.job_state import RunPhase, RunScope
from local_vector_search_mcp.services.reconcile import Reconciler
from local_vector_search_mcp.workspace.files import Workspace


@dataclass(slots=True)
class _Quiet:
    """A run that nobody watches or stops."""

    phases: list[RunPhase] = field(default_factory=list[RunPhase])

    def should_stop(self) -> bool:
        return False

    def asked(self) -> bool:
        return True

    def embedding(self) -> None:
        return

    def progress(self, phase: RunPhase, processed: int, total: int, /) -> None:
        del processed, total
        self.phases.append(phase)

    def urgent(self) -> Sequence[RelPath]:
        return ()

    def written(self) -> None:
        return


class IndexedTree:
    """A folder of Markdown with its index.

    Args:
        root: The folder.
        index: The index file, outside of the folder.
        provider: Makes vectors; None for an index without.
    """

    def __init__(self, root: Path, index: Path, *, provider: EmbeddingProvider | None = None, workers: int = 1) -> None:
        self.provider = provider
        self.workspace = Workspace(root)
        self.home = IndexHome(index, self._manifest)
        self._settings = IndexingSettings()
        self._reconciler = Reconciler(
            self.workspace, settings=self._settings, hooks=VectorHooks(time.time), workers=workers
        )

    @property
    def database(self) -> IndexDatabase:
        """The index."""
        return self.home.database

    def update(self) -> None:
        """Bring the index in line with the files, vectors included."""
        with self.database.writer():
            pass  # Makes the tables where there are none yet.
        self._reconciler.run(self.database, RunScope.CHANGED, control=_Quiet(), live=self.database)
        if self.provider is not None:
            EmbeddingBacklog(
                self.database,
                self.provider,
                settings=self._settings.embedding_text,
                cache_days=1,
                now_s=time.time,
                record_dimensions=self.home.record_dimensions,
            ).run(should_stop=lambda: False, progress=lambda done, total: None)

    def close(self) -> None:
        """Let go of every file."""
        self.database.close()
        self.workspace.close()

    def _manifest(self) -> Manifest:
        return Manifest.of(
            root=str(self.workspace.root),
            chunker=ChunkerSettings(),
            embedding_text=EmbeddingTextSettings(),
            provider="none" if self.provider is None else self.provider.name,
            model="" if self.provider is None else self.provider.model,
            dimensions=None,
        )
