"""What the index holds: counts, indexed hashes and file states, and the few marks that runs leave.

Every function takes a connection and runs in the caller's transaction.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import apsw

from local_vector_search_mcp.relpath import RelPath

# Size, modification time (ns), change time (ns) and inode, as a walk of the workspace gives them.
FileState: TypeAlias = tuple[int, int, int, int]

_SETTLED: Final = "settled"
_PASSING_CACHE_KIB: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCounts:
    """How much the index holds. ``awaiting`` counts chunks whose text is to be embedded and was not yet."""

    documents: int
    chunks: int
    embedded: int
    awaiting: int
    embed_failed: int
    unsupported: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """What the index knows of one file."""

    id: int
    path: str
    file_state: FileState
    recheck: bool
    state: str
    reason: str | None
    source_hash: str | None
    title: str
    warning: str | None


def counts(connection: apsw.Connection) -> IndexCounts:
    """How much the index holds."""
    # Both questions are answered by indexes; the table itself is many times as large.
    odd = {
        str(state): int(number)
        for state, number in connection.execute(
            "SELECT state, count(*) FROM documents WHERE state <> 'indexed' GROUP BY state"
        )
    }
    documents = _number(connection, "SELECT count(*) FROM documents")
    awaiting = _number(connection, "SELECT count(*) FROM chunks WHERE embed_state = 0")
    failed = _number(connection, "SELECT count(*) FROM chunks WHERE embed_state = 2")
    return IndexCounts(
        documents=documents - sum(odd.values()),
        chunks=_number(connection, "SELECT count(*) FROM chunks"),
        embedded=_number(connection, "SELECT count(*) FROM vectors"),
        awaiting=awaiting,
        embed_failed=failed,
        unsupported=odd.get("unsupported", 0),
        failed=odd.get("failed", 0),
    )


def revision(connection: apsw.Connection) -> int:
    """A number that grows whenever the rows of a document change."""
    return _number(connection, "SELECT value FROM counters WHERE name = 'revision'")


def completed_runs(connection: apsw.Connection) -> int:
    """How many whole runs have ended well."""
    return _number(connection, "SELECT value FROM counters WHERE name = 'runs'")


def count_run(connection: apsw.Connection) -> None:
    """Record that a whole run has ended well."""
    connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'runs'")


def settled_signature(connection: apsw.Connection) -> str | None:
    """What the tree looked like when a run last found nothing to do; None where the rows have changed since."""
    found = connection.execute("SELECT value FROM notes WHERE name = ?", (_SETTLED,)).get
    if found is None:
        return None
    seen, _, signature = str(found).partition(" ")
    return signature if seen == str(revision(connection)) else None


def settle(connection: apsw.Connection, signature: str) -> None:
    """Record that every file of the tree with this signature is indexed and need not be looked at again."""
    connection.execute(
        "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_SETTLED, f"{revision(connection)} {signature}"),
    )


def document(connection: apsw.Connection, path: RelPath) -> DocumentRecord | None:
    """What the index knows of one file."""
    return next(_records(connection, "path = ?", (path.value,)), None)


def documents_under(connection: apsw.Connection, prefix: str) -> list[DocumentRecord]:
    """What the index knows of the files in a folder and below it; an empty prefix means all."""
    if not prefix:
        return list(_records(connection, "1", ()))
    # '0' is the character after '/', so the range holds exactly the paths that begin with the folder.
    return list(_records(connection, "path >= ? AND path < ?", (f"{prefix}/", f"{prefix}0")))


def documents_with_hash(connection: apsw.Connection, source_hash: str) -> list[DocumentRecord]:
    """Indexed documents of this very content, in order of their paths. Reads every row: there is no index on it."""
    return list(_records(connection, "source_hash = ? AND state = 'indexed' ORDER BY path", (source_hash,)))


def file_states(connection: apsw.Connection) -> Iterator[tuple[str, FileState]]:
    """The path and recorded state of every file, in no order."""
    for row in connection.execute("SELECT path, size, mtime_ns, ctime_ns, inode FROM documents"):
        yield row[0], row[1:]


@contextmanager
def passing_by(connection: apsw.Connection) -> Generator[None]:
    """Whole tables are read once: their pages are not kept, which would take as much memory as the cache may have."""
    kept = connection.pragma("cache_size")
    connection.pragma("cache_size", -_PASSING_CACHE_KIB)
    try:
        yield
    finally:
        connection.pragma("cache_size", kept)


def paths_to_recheck(connection: apsw.Connection) -> set[str]:
    """Files that are to be read again whatever their state: changed too shortly before, or not readable then."""
    return {row[0] for row in connection.execute("SELECT path FROM documents WHERE recheck = 1 OR state = 'failed'")}


def indexed_hash(connection: apsw.Connection, path: RelPath) -> str | None:
    """The source hash under which a document is indexed; None where it is not."""
    found = connection.execute(
        "SELECT source_hash FROM documents WHERE path = ? AND state = 'indexed'", (path.value,)
    ).get
    return None if found is None else str(found)


def unsupported(connection: apsw.Connection, *, limit: int) -> list[tuple[str, str]]:
    """Paths that cannot be indexed, with the reason, in order."""
    rows = connection.execute(
        "SELECT path, reason FROM documents WHERE state <> 'indexed' ORDER BY path LIMIT ?", (limit,)
    )
    return [(str(path), str(reason)) for path, reason in rows]


def _records(connection: apsw.Connection, where: str, bindings: tuple[str, ...]) -> Iterator[DocumentRecord]:
    rows = connection.execute(
        "SELECT id, path, size, mtime_ns, ctime_ns, inode, recheck, state, reason, source_hash, title, warning"
        f" FROM documents WHERE {where}",
        bindings,
    )
    for row in rows:
        yield DocumentRecord(
            id=row[0],
            path=row[1],
            file_state=row[2:6],
            recheck=bool(row[6]),
            state=row[7],
            reason=row[8],
            source_hash=row[9],
            title=row[10],
            warning=row[11],
        )


def _number(connection: apsw.Connection, query: str) -> int:
    found = connection.execute(query).get
    return 0 if found is None else int(found)
