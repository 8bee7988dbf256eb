"""The state of the index and how to bring it up to date: kb_status, kb_reindex."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.schemas import (
    anything,
    array,
    boolean,
    closed,
    integer,
    number,
    result,
    text,
    texts,
)
from local_vector_search_mcp.server.toolspec import Answer, Structured, ToolCall, ToolSpec

if TYPE_CHECKING:
    from local_vector_search_mcp.services.run_ledger import RunProgress

_RUNNING = "running"


def _status(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.status.status(**arguments))


def _reindex(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    wait = arguments.pop("wait", False)
    ticket = call.app.indexer.request(**arguments)
    if not wait:
        return Structured(Reindexing(run_id=ticket.run_id, joined=ticket.joined))

    def report(progress: "RunProgress") -> None:
        call.report_progress(progress.processed, progress.total, progress.phase.value)

    run = call.app.indexer.wait(ticket.run_id, timeout_s=call.wait_s, progress=report)
    ended = run.outcome.value != _RUNNING
    return Structured(
        Reindexing(
            run_id=ticket.run_id,
            joined=ticket.joined,
            outcome=run.outcome.value,
            changed=run.changed if ended else None,
            removed=run.removed if ended else None,
            failed=run.failed if ended else None,
            seconds=run.seconds if ended else None,
            message=run.message if ended else None,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexing:
    """A run that was started or joined; with its outcome if that was waited for."""

    run_id: str
    joined: bool
    outcome: str | None = None
    changed: int | None = None
    removed: int | None = None
    failed: int | None = None
    seconds: float | None = None
    message: str | None = None  # Why it failed.


STATUS = ToolSpec(
    name="kb_status",
    title="Knowledge base status",
    description="State of the index, running work, embeddings, unreadable files, scope, warnings.",
    scope=Scope.READ,
    parameters=closed({}),
    output=result(
        {
            "server": anything(),
            "scope": text(),
            "root": text(),
            "watching": text(),
            "lastEventAt": text(),
            "watchLatencyMs": anything(),
            "index": anything(),
            "indexing": anything(),
            "embedding": anything(),
            "unsupported": array(result({"path": text(), "reason": text()})),
            "unsupportedCount": integer(),
            "collections": array(anything()),
            "warnings": texts(),
        },
        required=("server", "scope", "root", "index"),
    ),
    run=_status,
    read_only=True,
    idempotent=True,
)

REINDEX = ToolSpec(
    name="kb_reindex",
    title="Reindex the knowledge base",
    description=(
        "Bring the index up to date with the files, or join the run that does. "
        "Rarely needed, as changes are followed by themselves."
    ),
    scope=Scope.READ,
    parameters=closed(
        {
            "scope": text("all reads and hashes every file again", enum=("changed", "all"), default="changed"),
            "force": boolean("Rebuild the index from nothing", default=False),
            "wait": boolean("Answer when the run has ended, within 45 s", default=False),
        }
    ),
    output=result(
        {
            "runId": text(),
            "joined": boolean(),
            "outcome": text(enum=("succeeded", "failed", "cancelled", _RUNNING)),
            "changed": integer(),
            "removed": integer(),
            "failed": integer(),
            "seconds": number(),
            "message": text(),
        },
        required=("runId", "joined"),
    ),
    run=_reindex,
    idempotent=True,
)
