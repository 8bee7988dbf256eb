"""Maintenance without a server: the state of the index, and bringing it in line with the files."""

from typing import TYPE_CHECKING, Any

import click

from local_vector_search_mcp.cli.calls import call_tool, opened
from local_vector_search_mcp.cli.exits import ExitCode
from local_vector_search_mcp.cli.options import Given
from local_vector_search_mcp.cli.render import screen

_LONGEST_RUN_S = 86_400.0

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App


def status(chosen: Given) -> int:
    """``--status``: what ``kb_status`` answers."""
    with opened(chosen) as app:
        result = call_tool(app, "kb_status", {})
    if chosen.as_json:
        screen.json(result)
        return ExitCode.DONE
    index, embedding = result["index"], result.get("embedding", {})
    screen.line(f"{result['server']['name']} {result['server']['version']}, scope {result['scope']}", style="bold")
    rows = [
        ("root", str(result["root"])),
        ("index", f"{index['state']}: {_count(index, 'documents')} documents, {_count(index, 'chunks')} chunks"),
        ("vectors", f"{_count(index, 'vectors')}, {_count(index, 'awaiting')} awaiting"),
        ("index size", f"{_count(index, 'bytes')} bytes"),
        ("embedding", _embedding(embedding)),
        ("indexing", _indexing(result["indexing"])),
    ]
    rows += [("differs", _difference(difference)) for difference in index.get("differences", ())]
    rows += [("unsupported", f"{item['path']}: {item['reason']}") for item in result["unsupported"]]
    if result.get("unsupportedCount", 0) > len(result["unsupported"]):
        rows.append(("unsupported", f"{result['unsupportedCount']} in all"))
    rows += [("collection", _collection(collection)) for collection in result["collections"]]
    rows += [("warning", warning) for warning in result["warnings"]]
    screen.table(("what", "state"), rows)
    return ExitCode.DONE


def reindex(chosen: Given, *, force: bool) -> int:
    """``--reindex``: what ``kb_reindex`` with ``wait`` answers, however long it takes."""
    with opened(chosen) as app:
        result = run_index(app, {"force": force})
        succeeded = result["outcome"] == "succeeded"
        if chosen.as_json:
            screen.json(result)
        elif succeeded:
            failed = f", {result['failed']} failed (see --status)" if result.get("failed") else ""
            screen.line(
                f"{result['changed']} changed, {result['removed']} removed{failed} in {result['seconds']:.1f} s"
            )
            _tell_what_is_left(call_tool(app, "kb_status", {}))
        else:
            last = call_tool(app, "kb_status", {})["index"].get("lastRun", {})
            click.echo(f"error: run {result['outcome']}: {last.get('message', 'see --log-level info')}", err=True)
    return ExitCode.DONE if succeeded else ExitCode.FAILED


def _tell_what_is_left(status: dict[str, Any]) -> None:
    """Say what a run that succeeded has not mended, so that nobody waits for it."""
    notes = list(status["warnings"])
    awaiting = status["index"].get("awaiting", 0)
    if awaiting and not notes:
        notes.append(f"{awaiting:,} chunks are not embedded yet; doctor says whether the provider can be reached.")
    for note in notes:
        click.echo(f"note: {' '.join(note.split())}", err=True)


def run_index(app: "App", arguments: dict[str, Any]) -> dict[str, Any]:
    """Start or join a run of the project and of every collection, and wait for all, with a progress bar for a person.

    Returns:
        What ``kb_reindex`` answered for the project.
    """
    app.start()
    with screen.progress("indexing") as show:
        result = call_tool(app, "kb_reindex", {**arguments, "wait": True}, report_progress=show)
        while result.get("outcome") == "running":
            # The run goes on; with force asked for again, another would begin after it.
            result = call_tool(app, "kb_reindex", {"wait": True}, report_progress=show)
        for corpus in app.corpora.collections:
            ticket = corpus.indexer.request(force=bool(arguments.get("force")))
            corpus.indexer.wait(ticket.run_id, timeout_s=_LONGEST_RUN_S)
    return result


def _indexing(indexing: dict[str, Any]) -> str:
    if indexing["state"] != "running":
        return str(indexing["state"])
    done = f"{indexing.get('processedFiles', 0):,} of {indexing.get('totalFiles', 0):,} files"
    return f"running, {indexing.get('phase', '')}, {done}, since {indexing.get('startedAt', '')}"


def _collection(collection: dict[str, Any]) -> str:
    index = collection["index"]
    return f"{collection['name']}: {collection['root']}, {index['state']}, {_count(index, 'documents')} documents"


def _difference(difference: dict[str, Any]) -> str:
    return f"{difference['key']}: {difference.get('stored')} in the index, {difference.get('configured')} now"


def _count(values: dict[str, Any], key: str) -> str:
    return f"{values.get(key, 0):,}"


def _embedding(embedding: dict[str, Any]) -> str:
    parts = [str(embedding.get("provider", "none")), str(embedding.get("model") or "")]
    if embedding.get("dimensions"):
        parts.append(f"{embedding['dimensions']} dimensions")
    if embedding.get("reachable") is False:
        parts.append("not reachable")
    return ", ".join(part for part in parts if part)
