"""StatusService: what the server is, what it knows and what it is doing (``kb_status``)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local_vector_search_mcp.embeddings.provider import EmbeddingProvider
from local_vector_search_mcp.errors import EmbeddingUnavailable, IndexNotReady
from local_vector_search_mcp.index import state
from local_vector_search_mcp.index.manifest import Compatibility, Manifest, ManifestDifference
from local_vector_search_mcp.services.corpus import Corpora, Corpus
from local_vector_search_mcp.services.index_state import IndexerSnapshot, IndexState
from local_vector_search_mcp.services.job_state import RunOutcome, RunPhase
from local_vector_search_mcp.services.latency import WatchLatency
from local_vector_search_mcp.workspace.entries import iso_time
from local_vector_search_mcp.workspace.watcher import WatchState

_MOST_UNSUPPORTED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Which program answers."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """How the last run ended, with the numbers of its documents."""

    run_id: str
    outcome: RunOutcome
    changed: int
    removed: int
    failed: int
    seconds: float
    ended_at: str
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexInfo:
    """What the index holds; ``awaiting`` counts chunks without a vector that shall have one."""

    state: IndexState
    documents: int
    chunks: int
    vectors: int
    awaiting: int
    bytes: int
    manifest: Manifest | None
    differences: tuple[ManifestDifference, ...]
    last_run: LastRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexingInfo:
    """What is being done; phase and numbers only while a run goes on."""

    state: str
    phase: RunPhase | None = None
    processed_files: int | None = None
    total_files: int | None = None
    eta_seconds: int | None = None
    started_at: str | None = None
    last_outcome: RunOutcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingInfo:
    """Where vectors come from. ``reachable`` is None where nobody has asked yet."""

    provider: str
    model: str | None
    dimensions: int | None
    reachable: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedFile:
    """A selected file that is not indexed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionInfo:
    """One further tree."""

    name: str
    root: str
    watching: WatchState
    index: IndexInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole status; the fields are those of ``kb_status``."""

    server: ServerInfo
    scope: str
    root: str
    watching: WatchState
    last_event_at: str | None
    watch_latency_ms: WatchLatency | None
    index: IndexInfo
    indexing: IndexingInfo
    embedding: EmbeddingInfo
    unsupported: tuple[UnsupportedFile, ...]
    unsupported_count: int
    collections: tuple[CollectionInfo, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _IndexView:
    info: IndexInfo
    snapshot: IndexerSnapshot
    unsupported: tuple[UnsupportedFile, ...]
    unsupported_count: int
    warnings: tuple[str, ...]


class StatusService:
    """Tells the state of everything; never waits for anything.

    Args:
        corpora: The project and the collections.
        server: Which program this is.
        scope: What clients may do.
        provider: Where vectors come from.
        more_warnings: What other parts have to say.
    """

    def __init__(
        self,
        corpora: Corpora,
        *,
        server: ServerInfo,
        scope: str,
        provider: EmbeddingProvider,
        more_warnings: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._corpora = corpora
        self._server = server
        self._scope = scope
        self._provider = provider
        self._more_warnings = more_warnings

    def status(self) -> Status:
        """The state of things now."""
        project = self._corpora.project
        view = _view_of(project)
        collections: list[CollectionInfo] = []
        warnings = [*view.warnings, *self._more_warnings()]
        for corpus in self._corpora.collections:
            other = _view_of(corpus)
            collections.append(
                CollectionInfo(
                    name=corpus.name,
                    root=str(corpus.workspace.root),
                    watching=_watching(corpus),
                    index=other.info,
                )
            )
            warnings.extend(f"{corpus.name}: {warning}" for warning in other.warnings)
        last_event = project.watcher.last_event_at if project.watcher is not None else None
        return Status(
            server=self._server,
            scope=self._scope,
            root=str(project.workspace.root),
            watching=_watching(project),
            last_event_at=None if last_event is None else iso_time(int(last_event * 1e9)),
            watch_latency_ms=view.snapshot.latency,
            index=view.info,
            indexing=_indexing(view.snapshot),
            embedding=self._embedding(view),
            unsupported=view.unsupported,
            unsupported_count=view.unsupported_count,
            collections=tuple(collections),
            warnings=tuple(dict.fromkeys(warnings)),
        )

    def _embedding(self, view: _IndexView) -> EmbeddingInfo:
        manifest = view.info.manifest
        stored = manifest.dimensions if manifest is not None else None
        reachable: bool | None = None
        if view.snapshot.embedding_error is not None:
            reachable = False
        elif self._provider.name == "none":
            reachable = None
        elif view.info.vectors:
            reachable = True
        return EmbeddingInfo(
            provider=self._provider.name,
            model=self._provider.model or None,
            dimensions=self._provider.dimensions or stored,
            reachable=reachable,
        )


def is_reachable(provider: EmbeddingProvider) -> bool:
    """Whether a provider answers; asks it."""
    try:
        provider.check()
    except EmbeddingUnavailable:
        return False
    return True


def _view_of(corpus: Corpus) -> _IndexView:
    home = corpus.indexer.home
    snapshot = corpus.indexer.snapshot()
    warnings = list(snapshot.warnings)
    manifest: Manifest | None = None
    compatibility = Compatibility()
    counts: state.IndexCounts | None = None
    unsupported: list[tuple[str, str]] = []
    try:
        manifest = home.manifest()
        compatibility = home.compatibility()
        if manifest is not None and compatibility.searchable:
            with corpus.database.reader() as connection:
                counts = state.counts(connection)
                unsupported = state.unsupported(connection, limit=_MOST_UNSUPPORTED)
    except IndexNotReady as error:
        warnings.append(error.message)
    warnings.extend(compatibility.warnings())
    warnings.extend(_warnings_of(corpus, snapshot, counts))
    info = IndexInfo(
        state=snapshot.state,
        documents=counts.documents if counts else 0,
        chunks=counts.chunks if counts else 0,
        vectors=counts.embedded if counts else 0,
        awaiting=counts.awaiting if counts else 0,
        bytes=home.size_bytes(),
        manifest=manifest,
        differences=compatibility.differences,
        last_run=_last_run(snapshot),
    )
    return _IndexView(
        info,
        snapshot,
        tuple(UnsupportedFile(path=path, reason=reason) for path, reason in unsupported),
        counts.unsupported + counts.failed if counts else 0,
        tuple(warnings),
    )


def _warnings_of(corpus: Corpus, snapshot: IndexerSnapshot, counts: state.IndexCounts | None) -> list[str]:
    found: list[str] = []
    reason = corpus.database.vectors_reason
    if reason is not None:
        found.append(f"Vectors are off: {reason}")
    if snapshot.embedding_error is not None:
        found.append(f"Vectors are not made at present: {snapshot.embedding_error}")
    if counts is not None and counts.embed_failed:
        found.append(
            f"{counts.embed_failed} chunks could not be embedded by this model; they are found by their words."
        )
    watcher = corpus.watcher
    if watcher is not None and watcher.reason is not None:
        found.append(f"Changes are noticed by polling: {watcher.reason}.")
    if corpus.database.read_only:
        found.append("The storage cannot be written: the index is not kept up to date.")
    return found


def _watching(corpus: Corpus) -> WatchState:
    return WatchState.OFF if corpus.watcher is None else corpus.watcher.state


def _last_run(snapshot: IndexerSnapshot) -> LastRun | None:
    last = snapshot.last
    if last is None:
        return None
    return LastRun(
        run_id=last.run_id,
        outcome=last.outcome,
        changed=last.changed,
        removed=last.removed,
        failed=last.failed,
        seconds=last.seconds,
        ended_at=last.ended_at,
        message=last.message,
    )


def _indexing(snapshot: IndexerSnapshot) -> IndexingInfo:
    outcome = snapshot.last.outcome if snapshot.last is not None else None
    if not snapshot.running:
        return IndexingInfo(state="idle", last_outcome=outcome)
    progress = snapshot.progress
    return IndexingInfo(
        state="running",
        phase=progress.phase if progress else RunPhase.SCAN,
        processed_files=progress.processed if progress else None,
        total_files=progress.total if progress else None,
        eta_seconds=progress.eta_seconds if progress else None,
        started_at=snapshot.started_at,
        last_outcome=outcome,
    )
