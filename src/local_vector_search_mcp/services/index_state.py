"""What an index and its worker are doing, as it is shown."""

from dataclasses import dataclass
from enum import StrEnum

from local_vector_search_mcp.services.job_state import RunResult
from local_vector_search_mcp.services.latency import WatchLatency
from local_vector_search_mcp.services.run_ledger import RunProgress


class IndexState(StrEnum):
    """The state of an index, as it is shown."""

    EMPTY = "empty"  # Never indexed.
    READY = "ready"  # In line with the files, vectors awaited or not.
    STALE = "stale"  # Changes are known and not yet indexed.
    INCOMPATIBLE = "incompatible"
    REBUILDING = "rebuilding"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerSnapshot:
    """What the worker is doing, for the status. ``holder`` says whether this process is the one that indexes."""

    state: IndexState
    running: bool
    progress: RunProgress | None
    started_at: str | None
    last: RunResult | None
    latency: WatchLatency | None
    embedding_error: str | None
    holder: bool
    warnings: tuple[str, ...]
