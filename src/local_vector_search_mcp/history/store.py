"""HistoryStore: changes with the bytes that they replaced, newest first, and how long they are kept."""

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import apsw

from local_vector_search_mcp.errors import InvalidPath, NotFound
from local_vector_search_mcp.history.changes import Change, ChangedFile, ChangeState, FileChange, FileImages
from local_vector_search_mcp.history.database import HistoryDatabase
from local_vector_search_mcp.history.images import pack, pack_against, unpack, unpack_against
from local_vector_search_mcp.relpath import RelPath

_log = logging.getLogger(__name__)

_DAY_NS = 86_400 * 1_000_000_000
_COLUMNS = "sequence, change_id, time_ns, tool, summary, state, undoes"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """How much is kept, and for how long."""

    enabled: bool = True
    max_bytes: int = 256 * 1024 * 1024
    max_age_days: int = 90


class HistoryStore:
    """The changes of one workspace. Several threads and processes may use one file at once."""

    def __init__(
        self, path: Path, settings: HistorySettings | None = None, *, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self.settings = settings or HistorySettings()
        self._database = HistoryDatabase(path)
        self._clock = clock

    @property
    def path(self) -> Path:
        """The database file."""
        return self._database.path

    # -- writing, for the journal

    def begin(self, *, tool: str, summary: str, files: Sequence[FileChange], undoes: str | None = None) -> str:
        """Record what is going to happen; on disk when this returns. Gives the change id.

        Raises:
            IoFailure, Busy: It cannot be recorded, so the change must not be made.
        """
        now = self._clock()
        change_id = f"{datetime.fromtimestamp(now // 1_000_000_000, tz=UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        rows = [_packed(file) for file in files]
        size = sum(len(before or b"") + len(after or b"") for before, after in rows)
        with self._database.writing(flushed=True) as connection:
            connection.execute(
                "INSERT INTO changes(change_id, time_ns, tool, summary, state, undoes, bytes)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (change_id, now, tool, summary, ChangeState.PENDING.value, undoes, size),
            )
            sequence = connection.last_insert_rowid()
            connection.executemany(
                "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        sequence,
                        ordinal,
                        file.path.value,
                        None if file.previous_path is None else file.previous_path.value,
                        file.previous_hash,
                        file.new_hash,
                        before,
                        after,
                    )
                    for ordinal, (file, (before, after)) in enumerate(zip(files, rows, strict=True))
                ],
            )
        return change_id

    def finish(self, change_id: str) -> None:
        """Mark a change as done, and drop what is too old or too much; without history, drop the record itself.

        Raises:
            IoFailure, Busy: The mark cannot be written; the change is then still taken as pending.
        """
        with self._database.writing(flushed=False) as connection:
            if not self.settings.enabled:
                connection.execute("DELETE FROM changes WHERE change_id = ?", (change_id,))
                return
            connection.execute(
                "UPDATE changes SET state = ? WHERE change_id = ?", (ChangeState.APPLIED.value, change_id)
            )
            self._prune(connection)

    def drop(self, change_id: str) -> None:
        """Take the record of a change away that did not happen, or was put back whole.

        Raises:
            IoFailure, Busy: It cannot be written.
        """
        with self._database.writing(flushed=False) as connection:
            connection.execute("DELETE FROM changes WHERE change_id = ?", (change_id,))

    def interrupt(self, change_id: str, remaining: Sequence[ChangedFile]) -> None:
        """Mark a change as cut off; it keeps the bytes of the files that could not be put back.

        Raises:
            IoFailure, Busy: It cannot be written.
        """
        with self._database.writing(flushed=True) as connection:
            sequence = _sequence_of(connection, change_id)
            kept = {file.path.value for file in remaining}
            for (path,) in _rows(connection, "SELECT path FROM files WHERE sequence = ?", (sequence,)):
                if path not in kept:
                    connection.execute(
                        "DELETE FROM files WHERE sequence = ? AND path = ?", (sequence, cast("str", path))
                    )
            connection.execute(
                "UPDATE changes SET state = ? WHERE sequence = ?", (ChangeState.INTERRUPTED.value, sequence)
            )

    # -- reading

    def has_pending(self) -> bool:
        """Whether some change was begun and neither finished nor dropped.

        Raises:
            IoFailure, Busy: The file cannot be read.
        """
        self._database.follow()
        with self._database.reading() as connection:
            return connection is not None and bool(
                _rows(connection, "SELECT 1 FROM changes WHERE state = 'pending' LIMIT 1", ())
            )

    def pending(self) -> tuple[Change, ...]:
        """Changes that were begun and neither finished nor dropped, newest first.

        Raises:
            IoFailure, Busy: The file cannot be read.
        """
        with self._database.reading() as connection:
            if connection is None:
                return ()
            sql = f"SELECT {_COLUMNS} FROM changes WHERE state = 'pending' ORDER BY sequence DESC"
            return _changes(connection, _rows(connection, sql, ()))

    def list(self, *, path: RelPath | None = None, before: int | None = None, limit: int = 20) -> tuple[Change, ...]:
        """Changes that happened, newest first.

        Args:
            path: Only those that touched this file, under this name, or a file in this folder.
            before: Only those with a smaller ``sequence``: the last one of the page before.
            limit: At most so many.

        Raises:
            IoFailure, Busy: The file cannot be read.
        """
        conditions = ["state <> 'pending'"]
        values: list[str | int] = []
        if before is not None:
            conditions.append("sequence < ?")
            values.append(before)
        if path is not None:
            conditions.append(
                "sequence IN (SELECT sequence FROM files WHERE path = ?1 OR previous_path = ?1"
                " OR substr(path, 1, length(?1) + 1) = ?1 || '/'"
                " OR substr(previous_path, 1, length(?1) + 1) = ?1 || '/')".replace("?1", "?")
            )
            values.extend([path.value] * 6)
        sql = f"SELECT {_COLUMNS} FROM changes WHERE {' AND '.join(conditions)} ORDER BY sequence DESC LIMIT ?"
        self._database.follow()
        with self._database.reading() as connection:
            if connection is None:
                return ()
            return _changes(connection, _rows(connection, sql, (*values, limit)))

    def get(self, change_id: str) -> Change:
        """One change that happened.

        Raises:
            NotFound: There is none of that id, or it is kept no longer.
            IoFailure, Busy: The file cannot be read.
        """
        self._database.follow()
        with self._database.reading() as connection:
            sql = f"SELECT {_COLUMNS} FROM changes WHERE change_id = ? AND state <> 'pending'"
            found = () if connection is None else _changes(connection, _rows(connection, sql, (change_id,)))
        if not found:
            raise _unknown(change_id)
        return found[0]

    def undone_by(self, change_id: str) -> Change | None:
        """The change that took one back and stands; None where it was never undone, or has been redone since.

        Raises:
            IoFailure, Busy: The file cannot be read.
        """
        sql = f"SELECT {_COLUMNS} FROM changes WHERE undoes = ? AND state = 'applied' ORDER BY sequence DESC LIMIT 1"
        undoing: dict[str, Change] = {}
        with self._database.reading() as connection:
            while connection is not None:
                found = _changes(connection, _rows(connection, sql, (change_id,)))
                if not found or found[0].change_id in undoing:
                    break
                change_id = found[0].change_id
                undoing[change_id] = found[0]
        # Each of them takes the one before it back, so the first stands where their number is odd.
        return next(iter(undoing.values())) if len(undoing) % 2 else None

    def images(self, change_id: str) -> tuple[FileImages, ...]:
        """The files of a change, pending ones included, with the bytes that were kept.

        Raises:
            NotFound: There is none of that id.
            IoFailure, Busy: The file cannot be read.
        """
        with self._database.reading() as connection:
            if connection is None:
                raise _unknown(change_id)
            sequence = _sequence_of(connection, change_id)
            sql = (
                "SELECT path, previous_path, previous_hash, new_hash, before, after FROM files"
                " WHERE sequence = ? ORDER BY ordinal"
            )
            return tuple(each for row in _rows(connection, sql, (sequence,)) if (each := _images(row)) is not None)

    def total_bytes(self) -> int:
        """How many bytes of documents are kept, as stored.

        Raises:
            IoFailure, Busy: The file cannot be read.
        """
        with self._database.reading() as connection:
            return 0 if connection is None else _number(connection, "SELECT bytes FROM totals") or 0

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _prune(self, connection: apsw.Connection) -> None:
        oldest = self._clock() - self.settings.max_age_days * _DAY_NS
        connection.execute("DELETE FROM changes WHERE time_ns < ? AND state <> 'pending'", (oldest,))
        # The newest stays, however large it is.
        oldest_but_one = (
            "SELECT sequence FROM changes WHERE state <> 'pending'"
            " AND sequence < (SELECT max(sequence) FROM changes) ORDER BY sequence LIMIT 1"
        )
        while (_number(connection, "SELECT bytes FROM totals") or 0) > self.settings.max_bytes:
            first = _number(connection, oldest_but_one)
            if first is None:
                break
            connection.execute("DELETE FROM changes WHERE sequence = ?", (first,))
        connection.execute("PRAGMA incremental_vacuum(1000)").fetchall()


def _packed(file: FileChange) -> tuple[bytes | None, bytes | None]:
    if file.keeps_bytes:
        return None, None
    before = None if file.before is None else pack(file.before)
    if file.after is None or not file.is_text:
        return before, None
    return before, pack_against(file.after, file.before or b"")


def _images(row: tuple[object, ...]) -> FileImages | None:
    file = _changed_file(row[:4])
    if file is None:
        return None
    stored_before, stored_after = cast("tuple[bytes | None, bytes | None]", row[4:])
    before = None if stored_before is None else unpack(stored_before)
    return FileImages(
        file=file,
        before=before,
        after=None if stored_after is None else unpack_against(stored_after, before or b""),
    )


def _changes(connection: apsw.Connection, rows: "Sequence[tuple[object, ...]]") -> tuple[Change, ...]:
    sql = "SELECT path, previous_path, previous_hash, new_hash FROM files WHERE sequence = ? ORDER BY ordinal"
    found: list[Change] = []
    for row in rows:
        sequence, change_id, time_ns, tool, summary, state, undoes = cast(
            "tuple[int, str, int, str, str, str, str | None]", row
        )
        files = tuple(file for each in _rows(connection, sql, (sequence,)) if (file := _changed_file(each)) is not None)
        found.append(
            Change(
                sequence=sequence,
                change_id=change_id,
                time_ns=time_ns,
                tool=tool,
                summary=summary,
                state=ChangeState(state),
                undoes=undoes,
                files=files,
            )
        )
    return tuple(found)


def _changed_file(row: tuple[object, ...]) -> ChangedFile | None:
    """A file of a change; None where its path passes no check: rows are not trusted to be the ones we wrote."""
    path, previous_path, previous_hash, new_hash = cast("tuple[str, str | None, str | None, str | None]", row)
    try:
        return ChangedFile(
            path=RelPath.parse(path),
            previous_path=None if previous_path is None else RelPath.parse(previous_path),
            previous_hash=previous_hash,
            new_hash=new_hash,
        )
    except InvalidPath:
        _log.warning("The history names a path that is refused; it is passed over.")
        return None


def _sequence_of(connection: apsw.Connection, change_id: str) -> int:
    rows = _rows(connection, "SELECT sequence FROM changes WHERE change_id = ?", (change_id,))
    if not rows:
        raise _unknown(change_id)
    return cast("int", rows[0][0])


def _rows(connection: apsw.Connection, sql: str, values: Sequence[str | int]) -> "Sequence[tuple[object, ...]]":
    return cast("Sequence[tuple[object, ...]]", connection.execute(sql, tuple(values)).fetchall())


def _number(connection: apsw.Connection, sql: str) -> int | None:
    rows = _rows(connection, sql, ())
    return cast("int", rows[0][0]) if rows else None


def _unknown(change_id: str) -> NotFound:
    return NotFound(f"There is no change {change_id!r}; it may be too old. List the changes with kb_history.")
