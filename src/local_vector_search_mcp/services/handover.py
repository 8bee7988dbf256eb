"""What processes of one project tell each other through the storage directory.

Only the holder of the indexing lease writes the index. The others leave letters for it, with paths that changed and
runs that somebody asked for; it puts up a board that says what it is doing. Both are plain files that appear by
rename, so a reader never sees half of one, and whatever a crash leaves behind is read by the next holder.
"""

import contextlib
import json
import logging
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from local_vector_search_mcp.errors import InvalidPath
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.job_state import RunOutcome, RunPhase, RunRequest, RunResult, RunScope

_LOG = logging.getLogger(__name__)

_MAX_LETTER_BYTES: Final = 4 * 1024 * 1024
_RESULTS_KEPT: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What one process hands over.

    Attributes:
        paths: Documents that changed, in the order of their changes.
        rescan: Something changed that no path names.
        run_id: The name under which the sender waits for the run; empty where it asked for none.
        run: The run that was asked for.
    """

    paths: tuple[RelPath, ...] = ()
    rescan: bool = False
    run_id: str = ""
    run: RunRequest | None = None


class Mailbox:
    """Letters to the holder of the lease.

    Args:
        directory: Where they lie; made when the first one is sent.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def send(self, letter: Letter) -> bool:
        """Leave a letter; False where the file system does not let us."""
        body: dict[str, Any] = {"paths": [path.value for path in letter.paths], "rescan": letter.rescan}
        if letter.run is not None:
            body |= {"runId": letter.run_id, "scope": letter.run.scope.value, "force": letter.run.force}
        name = uuid.uuid4().hex
        temporary = self._directory / f"{name}.tmp"
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            temporary.write_text(json.dumps(body), encoding="utf-8")
            temporary.replace(self._directory / f"{name}.letter")
        except OSError as error:
            _LOG.warning("Changes could not be handed over to the indexing process: %s", error.strerror)
            with contextlib.suppress(OSError):
                temporary.unlink()
            return False
        return True

    def collect(self) -> list[Letter]:
        """Take all letters. One that cannot be read asks for a look at everything."""
        try:
            names = [entry.name for entry in os.scandir(self._directory) if entry.name.endswith(".letter")]
        except OSError:
            return []
        letters: list[Letter] = []
        for name in sorted(names):
            file = self._directory / name
            letters.append(_read_letter(file))
            with contextlib.suppress(OSError):
                file.unlink()
        return letters


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardEntry:
    """What the holder of the lease is doing.

    Attributes:
        run_id: The active run; empty where there is none.
        embedding_error: Why vectors are not made at present.
        results: Runs that have ended, by every name under which somebody may wait for them.
    """

    run_id: str = ""
    force: bool = False
    phase: RunPhase = RunPhase.SCAN
    processed: int = 0
    total: int = 0
    started_at: str = ""
    embedding_error: str | None = None
    warnings: tuple[str, ...] = ()
    results: tuple[tuple[str, RunResult], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()

    def result_of(self, run_id: str) -> RunResult | None:
        """How a run ended, whatever name it was asked for under; None while it goes on or is unknown."""
        ended = dict(self.results)
        return ended.get(run_id) or ended.get(dict(self.aliases).get(run_id, ""))


class Board:
    """The file on which the holder says what it is doing."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def put(self, entry: BoardEntry) -> None:
        """Show an entry in the place of the one before."""
        body = {
            "runId": entry.run_id,
            "force": entry.force,
            "phase": entry.phase.value,
            "processed": entry.processed,
            "total": entry.total,
            "startedAt": entry.started_at,
            "embeddingError": entry.embedding_error,
            "warnings": list(entry.warnings),
            "results": {name: _result_body(result) for name, result in entry.results[-_RESULTS_KEPT:]},
            "aliases": dict(entry.aliases[-_RESULTS_KEPT:]),
        }
        temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}.tmp")
        try:
            temporary.write_text(json.dumps(body), encoding="utf-8")
            temporary.replace(self._file)
        except OSError as error:
            _LOG.warning("The state of indexing could not be shown to other processes: %s", error.strerror)
            with contextlib.suppress(OSError):
                temporary.unlink()

    def read(self) -> BoardEntry:
        """What the holder shows; an empty entry where there is none."""
        body = _read_object(self._file)
        try:
            return _entry(body)
        except (KeyError, TypeError, ValueError):
            return BoardEntry()


def _read_letter(file: Path) -> Letter:
    body = _read_object(file)
    paths: list[RelPath] = []
    rescan = bool(body.get("rescan")) or not body
    given = body.get("paths")
    for text in cast(Iterable[Any], given) if isinstance(given, list) else ():
        try:
            paths.append(RelPath.parse(str(text)))
        except InvalidPath:
            rescan = True
    run_id, scope = body.get("runId"), body.get("scope")
    if not isinstance(run_id, str) or scope not in tuple(RunScope):
        return Letter(paths=tuple(paths), rescan=rescan)
    run = RunRequest(scope=RunScope(scope), force=body.get("force") is True, asked=True)
    return Letter(paths=tuple(paths), rescan=rescan, run_id=run_id, run=run)


def _read_object(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _MAX_LETTER_BYTES:
            return {}
        body: object = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], body) if isinstance(body, dict) else {}


def _entry(body: dict[str, Any]) -> BoardEntry:
    if not body:
        return BoardEntry()
    return BoardEntry(
        run_id=str(body["runId"]),
        force=body["force"] is True,
        phase=RunPhase(body["phase"]),
        processed=int(body["processed"]),
        total=int(body["total"]),
        started_at=str(body["startedAt"]),
        embedding_error=None if body["embeddingError"] is None else str(body["embeddingError"]),
        warnings=tuple(str(text) for text in body["warnings"]),
        results=tuple((str(name), _result(value)) for name, value in body["results"].items()),
        aliases=tuple((str(name), str(run_id)) for name, run_id in body["aliases"].items()),
    )


def _result_body(result: RunResult) -> dict[str, Any]:
    return {
        "runId": result.run_id,
        "outcome": result.outcome.value,
        "changed": result.changed,
        "removed": result.removed,
        "failed": result.failed,
        "seconds": result.seconds,
        "endedAt": result.ended_at,
        "message": result.message,
    }


def _result(body: dict[str, Any]) -> RunResult:
    return RunResult(
        run_id=str(body["runId"]),
        outcome=RunOutcome(body["outcome"]),
        changed=int(body["changed"]),
        removed=int(body["removed"]),
        failed=int(body["failed"]),
        seconds=float(body["seconds"]),
        ended_at=str(body["endedAt"]),
        message=None if body["message"] is None else str(body["message"]),
    )
