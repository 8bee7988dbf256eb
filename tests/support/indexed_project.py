"""A project with its index, worked by the real indexer or by single runs, for tests of indexing."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from local_vector_search_mcp.embeddings.provider import EmbeddingProvider
from local_vector_search_mcp.errors import IndexNotReady
from local_vector_search_mcp.index import state
from local_vector_search_mcp.index.chunker import ChunkerSettings
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.embedding_text import EmbeddingTextSettings
from local_vector_search_mcp.index.home import IndexHome
from local_vector_search_mcp.index.manifest import Manifest
from local_vector_search_mcp.index.rows import NoChunkHooks
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.background import Indexer, IndexerParts, Watching
from local_vector_search_mcp.services.corpus import PROJECT, Corpora, Corpus
from local_vector_search_mcp.services.document_cache import DocumentCache
from local_vector_search_mcp.services.embedding import EmbeddingBacklog, VectorHooks
from local_vector_search_mcp.services.handover import Board, Mailbox
from local_vector_search_mcp.services.indexing import IndexingSettings
from local_vector_search_mcp.services.job_state import RunPhase, RunScope
from local_vector_search_mcp.services.reconcile import Reconciler, Tally
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.guard import OwnPaths
from local_vector_search_mcp.workspace.locks import IndexingLease

DEADLINE_S = 20.0


@dataclass(slots=True)
class Control:
    """A run as a test drives it."""

    stop_after: int | None = None
    asked_for: bool = True
    waiting: list[RelPath] = field(default_factory=list[RelPath])
    phases: list[RunPhase] = field(default_factory=list[RunPhase])
    on_written: Callable[[], None] = lambda: None
    processed: int = 0

    def should_stop(self) -> bool:
        return self.stop_after is not None and self.processed >= self.stop_after

    def asked(self) -> bool:
        return self.asked_for

    def progress(self, phase: RunPhase, processed: int, total: int, /) -> None:
        del total
        self.processed = processed
        self.phases.append(phase)

    def embedding(self) -> None:
        self.phases.append(RunPhase.EMBED)

    def urgent(self) -> Sequence[RelPath]:
        taken, self.waiting = self.waiting, []
        return taken

    def written(self) -> None:
        self.on_written()


class Project:
    """A folder of Markdown and an index of it.

    Args:
        root: The folder; made where it is missing.
        store: Where the index lies.
        provider: Makes vectors; None for an index without.
        chunker: Other than the default settings.
        now_ns: The clock that decides what was changed a moment ago; default: an hour from now, so that nothing was.
    """

    def __init__(
        self,
        root: Path,
        store: Path,
        *,
        provider: EmbeddingProvider | None = None,
        chunker: ChunkerSettings | None = None,
        workers: int = 1,
        watching: Watching | None = None,
        reconcile_on_start: bool = True,
        now_ns: Callable[[], int] = lambda: time.time_ns() + 3_600 * 10**9,
    ) -> None:
        root.mkdir(parents=True, exist_ok=True)
        store.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.store = store
        self.provider = provider
        self.settings = IndexingSettings(chunker=chunker or ChunkerSettings(), embeds=provider is not None)
        self.workspace = Workspace(root, own=OwnPaths(directories=(store,)))
        self.home = IndexHome(store / "index.db", self._manifest)
        hooks = NoChunkHooks() if provider is None else VectorHooks(time.time)
        self.reconciler = Reconciler(
            self.workspace, settings=self.settings, hooks=hooks, workers=workers, now_ns=now_ns
        )
        self.parts = IndexerParts(
            home=self.home,
            reconciler=self.reconciler,
            lease=IndexingLease(store),
            mailbox=Mailbox(store / "mail"),
            board=Board(store / "indexing.json"),
            backlog_of=None if provider is None else self._backlog,
            watching=watching,
            reconcile_on_start=reconcile_on_start,
        )
        self.indexer = Indexer(self.parts)

    # -- files ------------------------------------------------------------------------------------------------

    def write(self, **texts: str | bytes) -> None:
        """Write files named by keyword, ``a__b`` for ``a/b.md``."""
        for name, text in texts.items():
            self.put(name.replace("__", "/") + ".md", text)

    def put(self, path: str, text: str | bytes) -> RelPath:
        """Write one file; its folders are made."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return RelPath(path)

    # -- single runs ------------------------------------------------------------------------------------------

    def run(self, control: Control | None = None, *, scope: RunScope = RunScope.CHANGED) -> Tally:
        """One run over the tree, in this thread."""
        self.home.ensure()
        database = self.home.database
        return self.reconciler.run(database, scope, control=control or Control(), live=database)

    def update(self, *paths: str) -> Tally:
        """Index single documents, in this thread."""
        self.home.ensure()
        return self.reconciler.update(self.home.database, [RelPath(path) for path in paths], control=Control())

    # -- looking ----------------------------------------------------------------------------------------------

    @property
    def database(self) -> IndexDatabase:
        """The index."""
        return self.home.database

    def find(self, word: str) -> list[str]:
        """Paths of the documents that hold a word; none while there is no index."""
        try:
            return self._find(word)
        except IndexNotReady:
            return []

    def _find(self, word: str) -> list[str]:
        with self.database.reader() as connection:
            rows = connection.execute(
                "SELECT DISTINCT d.path FROM fts JOIN chunks AS c ON c.id = fts.rowid"
                " JOIN documents AS d ON d.id = c.document_id WHERE fts MATCH ? ORDER BY d.path",
                (f'"{word}"',),
            )
            return [str(row[0]) for row in rows]

    def paths(self) -> list[str]:
        """Every path that the index knows."""
        with self.database.reader() as connection:
            return sorted(path for path, _ in state.file_states(connection))

    def dump(self) -> dict[str, list[object]]:
        """What is stored of each document, without ids."""
        with self.database.reader() as connection:
            return {
                str(path): [
                    tuple(row)
                    for row in connection.execute(
                        "SELECT c.ordinal, c.kinds, c.line_start, c.line_end, c.byte_start, c.byte_end, c.content"
                        " FROM chunks AS c WHERE c.document_id = ? ORDER BY c.ordinal",
                        (document_id,),
                    )
                ]
                for path, document_id in list(connection.execute("SELECT path, id FROM documents"))
            }

    def check_consistent(self) -> None:
        """Chunks, full-text rows and vectors belong together, and every chunk to a document."""
        with self.database.reader() as connection:
            chunks = {row[0] for row in connection.execute("SELECT id FROM chunks")}
            assert {row[0] for row in connection.execute("SELECT rowid FROM fts")} == chunks
            assert {row[0] for row in connection.execute("SELECT chunk_id FROM vectors")} <= chunks
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            assert connection.pragma("integrity_check") == "ok"

    # -- the worker -------------------------------------------------------------------------------------------

    def start(self) -> "Project":
        """Start the indexer and wait for its first run."""
        self.indexer.start()
        assert self.indexer.wait_first_run(DEADLINE_S)
        return self

    def reindex(self, *, force: bool = False, scope: str = "changed") -> object:
        """Ask for a run and wait for its end; its outcome."""
        ticket = self.indexer.request(scope=scope, force=force)
        return self.indexer.wait(ticket.run_id, timeout_s=DEADLINE_S).outcome

    def corpora(self) -> Corpora:
        """The project for services."""
        return Corpora(
            Corpus(
                name=PROJECT,
                workspace=self.workspace,
                documents=DocumentCache(self.workspace),
                database=self.database,
                indexer=self.indexer,
            )
        )

    def _manifest(self) -> Manifest:
        provider = self.provider
        return Manifest.of(
            root=str(self.root),
            chunker=self.settings.chunker,
            embedding_text=EmbeddingTextSettings(),
            provider="none" if provider is None else provider.name,
            model="" if provider is None else provider.model,
            dimensions=None if provider is None else provider.dimensions,
        )

    def _backlog(self, database: IndexDatabase) -> EmbeddingBacklog:
        assert self.provider is not None
        return EmbeddingBacklog(
            database,
            self.provider,
            settings=EmbeddingTextSettings(),
            cache_days=30,
            now_s=time.time,
            record_dimensions=self.home.record_dimensions,
        )


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a state; fails at a deadline."""
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the state did not come"
        pause.wait(0.01)
