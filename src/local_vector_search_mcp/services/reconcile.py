"""One run: scan the tree, plan, read and hash what differs, parse it, write the rows.

A document is always as before or as after, whenever the run ends: rows are written in transactions that hold whole
documents. What a file holds is decided by its bytes; times and inodes only say which files need not be read.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import apsw

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import IndexNotReady, InvalidPath, IoFailure, KnowledgeBaseError, NotFound, TooLarge
from local_vector_search_mcp.index import rows, state
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.packing import DICTIONARY_BYTES, make_dictionary
from local_vector_search_mcp.index.reconcile_plan import (
    PackedPaths,
    ReconcilePlan,
    may_drop,
    needs_recheck,
    plan,
    tree_signature,
)
from local_vector_search_mcp.index.rows import FAILED, UNSUPPORTED, ChunkHooks, FileFacts
from local_vector_search_mcp.index.state import DocumentRecord
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.indexing import IndexingSettings, ParsedDocument, parse_documents
from local_vector_search_mcp.services.job_state import RunPhase, RunScope
from local_vector_search_mcp.services.parse_pool import ParseJob, ParsePool
from local_vector_search_mcp.workspace.entries import FileIdentity
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.neighbours import NeighbourReader
from local_vector_search_mcp.workspace.walking import TreeScan

_LOG = logging.getLogger(__name__)

# From so many bytes on, starting processes costs less than it saves.
_WORTH_PROCESSES_BYTES: Final = 400_000
_BATCH_BYTES: Final = 96 * 1024
_BATCH_FILES: Final = 32
# Full-text segments are written at every commit and merged later, so small commits cost twice.
_COMMIT_DOCUMENTS: Final = 128
_COMMIT_BYTES: Final = 2 * 1024 * 1024
_COMMIT_S: Final = 1.0
_WORTH_DICTIONARY_BYTES: Final = 256 * 1024
_SAMPLES: Final = 64
_MOST_PASSES: Final = 4


class RunControl(Protocol):
    """What a run asks whoever drives it."""

    def should_stop(self) -> bool:
        """Whether the run is to end at the next document."""
        ...

    def progress(self, phase: RunPhase, processed: int, total: int, /) -> None:
        """How far the run is."""
        ...

    def embedding(self) -> None:
        """The rows are written; vectors follow."""
        ...

    def urgent(self) -> Sequence[RelPath]:
        """Documents that somebody waits for; they go before the rest. Each is given once."""
        ...

    def asked(self) -> bool:
        """Whether somebody asked for the run, so that many documents may leave."""
        ...

    def written(self) -> None:
        """Rows were committed: whoever waits for a document may look."""
        ...


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a run has done so far, in numbers of documents.

    Attributes:
        changed: Documents whose rows were written or moved.
        removed: Documents that left the index.
        failed: Documents that could not be read or indexed.
        to_retry: Those among them that may be indexed when they are tried again as they are.
        held_back: Documents that are gone and were kept, because too many would go at once.
        interrupted: The run was told to stop.
    """

    changed: int = 0
    removed: int = 0
    failed: int = 0
    to_retry: int = 0
    held_back: int = 0
    interrupted: bool = False
    failed_paths: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class _Read:
    """A document whose content is to be parsed, as it was read."""

    path: RelPath
    facts: FileFacts


_Write = Callable[[apsw.Connection], None]


class Reconciler:
    """Brings one index in line with one workspace.

    Args:
        workspace: The files.
        settings: How documents become rows.
        hooks: What else is kept per chunk.
        workers: Most processes that parse.
        now_ns: The wall clock.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        settings: IndexingSettings,
        hooks: ChunkHooks,
        workers: int,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._hooks = hooks
        self._workers = workers
        self._now_ns = now_ns

    def run(self, database: IndexDatabase, scope: RunScope, *, control: RunControl, live: IndexDatabase) -> Tally:
        """Reconcile the whole tree.

        Args:
            database: The index to fill.
            scope: Which files are read.
            control: Told about progress, asked about stopping and urgent documents.
            live: The index that answers meanwhile; urgent documents go there too.

        Raises:
            IoFailure: The root cannot be read, or the index cannot be written.
        """
        return _Run(self, database, control=control, live=live).all(scope)

    def update(self, database: IndexDatabase, paths: Iterable[RelPath], *, control: RunControl) -> Tally:
        """Index single documents as they are now, or drop them where they are gone.

        Raises:
            IoFailure: The index cannot be written.
        """
        return _Run(self, database, control=control, live=database).paths(paths)

    def pending(self, database: IndexDatabase) -> int:
        """How many documents differ from the index by their states, without reading any."""
        scan = self._workspace.scan_documents()
        with database.reader() as connection:
            found = _plan(connection, scan, RunScope.CHANGED, recheck=False)
        return len(found.look_at) + len(found.gone)

    def mass_deletion(self, database: IndexDatabase, paths: Collection[RelPath]) -> frozenset[RelPath]:
        """The paths whose documents are gone, where these are more than may leave the index unasked; else none."""
        with database.reader() as connection:
            indexed = _indexed_files(connection)
            if may_drop(dropped=len(paths), indexed=indexed, found=0, asked=False):
                return frozenset()
            known = [path for path in paths if state.document(connection, path) is not None]
        gone = frozenset(path for path in known if not _still_there(self._workspace, path))
        return frozenset() if may_drop(dropped=len(gone), indexed=indexed, found=0, asked=False) else gone

    def names_folder(self, database: IndexDatabase, paths: Iterable[RelPath]) -> bool:
        """Whether one of the paths is, or was, a folder: then only a walk tells what changed."""
        for path in paths:
            try:
                if self._workspace.is_folder(path):
                    return True
                with database.reader() as connection:
                    if state.documents_under(connection, path.value):
                        return True
            except (InvalidPath, IndexNotReady):
                continue
        return False

    @property
    def workspace(self) -> Workspace:
        """The files."""
        return self._workspace

    @property
    def settings(self) -> IndexingSettings:
        """How documents become rows."""
        return self._settings

    @property
    def hooks(self) -> ChunkHooks:
        """What else is kept per chunk."""
        return self._hooks

    @property
    def workers(self) -> int:
        """Most processes that parse."""
        return self._workers

    def now_ns(self) -> int:
        """The wall clock."""
        return self._now_ns()


class _Run:
    """One run's own state: what it has read and not yet written."""

    def __init__(self, owner: Reconciler, database: IndexDatabase, *, control: RunControl, live: IndexDatabase) -> None:
        self._owner = owner
        self._workspace = owner.workspace
        self._database = database
        self._live = live
        self._control = control
        self._tally = Tally()
        self._writes: list[tuple[str, _Write]] = []
        self._writes_bytes = 0  # Of the documents whose rows wait to be written.
        self._last_commit = time.monotonic()
        self._superseded: set[str] = set()
        self._settings = owner.settings
        self._filling = False  # The index held nothing when the pass began.
        self._gone: dict[str, list[DocumentRecord]] | None = None  # By source hash; None where it is not known.
        self._processed = 0
        self._total = 0

    # -- the whole tree ---------------------------------------------------------------------------------------

    def all(self, scope: RunScope) -> Tally:
        again = self._pass(scope, first=True)
        for _ in range(_MOST_PASSES - 1):
            if not again:
                break
            again = self._pass(RunScope.CHANGED, first=False)
        return self._tally

    def _pass(self, scope: RunScope, *, first: bool) -> bool:
        """Look at the tree once; whether files were read, so that another look is worth it.

        Files that were changed a moment ago are read again on the next run, not on the next pass of this one.
        """
        self._control.progress(RunPhase.SCAN, 0, 0)
        scan = self._workspace.scan_documents()
        signature, walked = None if scan.unreadable else tree_signature(scan.documents), len(scan.documents)
        with self._database.reader() as connection:
            if scope is RunScope.CHANGED and signature and state.settled_signature(connection) == signature:
                return False
            found = _plan(connection, scan, scope, recheck=first)
            known, empty = _indexed_files(connection), state.counts(connection).chunks == 0
        selected = [path for path in found.look_at if path not in self._tally.failed_paths]
        size = sum(scan.documents[path][0] for path in selected)
        gone = found.gone
        self._filling = known == 0
        self._know_gone(gone)
        self._choose_dictionary(selected, size, empty=empty)
        look_at = PackedPaths(selected)
        # The walk is as large as the tree; nothing of it is needed while files are read.
        del scan, found, selected
        self._processed, self._total = 0, len(look_at)
        self._read_and_write(look_at, size)
        if self._tally.interrupted:
            return False
        self._drop(gone, known=known, found=walked)
        self._flush()
        if not look_at and not gone and not self._tally.failed_paths and signature is not None:
            self._settle(signature)
        return bool(look_at)

    def _know_gone(self, gone: Sequence[str]) -> None:
        """Remember the documents that left their places: a new file may be one of them under another name."""
        self._gone = {}
        with self._database.reader() as connection:
            for path in gone:
                record = state.document(connection, RelPath(path))
                if record is not None and record.source_hash is not None:
                    self._gone.setdefault(record.source_hash, []).append(record)

    def _choose_dictionary(self, look_at: Sequence[str], size: int, *, empty: bool) -> None:
        """Give an index that is filled for the first time a dictionary of the tree's own text, if that pays."""
        with self._database.reader() as connection:
            dictionary = rows.read_dictionary(connection)
        if empty and not dictionary and size >= _WORTH_DICTIONARY_BYTES:
            dictionary = make_dictionary(self._samples(look_at))
            with self._database.writer() as connection:
                rows.write_dictionary(connection, dictionary)
        self._settings = replace(self._owner.settings, dictionary=dictionary)

    def _samples(self, look_at: Sequence[str]) -> list[bytes]:
        samples: list[bytes] = []
        stride = max(len(look_at) // _SAMPLES, 1)
        for path in look_at[::stride][:_SAMPLES]:
            try:
                data = self._workspace.read_present(RelPath(path), max_bytes=self._workspace.rules.max_file_bytes).data
            except KnowledgeBaseError:
                continue  # It is reported when its turn comes.
            samples.append(data[: DICTIONARY_BYTES // _SAMPLES])
        return samples

    def _settle(self, signature: str) -> None:
        with self._database.writer() as connection:
            if not state.paths_to_recheck(connection):
                state.settle(connection, signature)

    def _drop(self, gone: Sequence[str], *, known: int, found: int) -> None:
        # A renamed document has left its old path by now.
        with self._database.reader() as connection:
            left = [record for path in gone if (record := state.document(connection, RelPath(path))) is not None]
        if not may_drop(dropped=len(left), indexed=known, found=found, asked=self._control.asked()):
            self._tally.held_back = len(left)
            return
        for record in left:
            if self._control.should_stop():
                self._tally.interrupted = True
                return
            self._remove(record)

    # -- single documents -------------------------------------------------------------------------------------

    def paths(self, paths: Iterable[RelPath]) -> Tally:
        wanted = [path for path in dict.fromkeys(paths) if path.value]
        self._total = len(wanted)
        jobs: list[ParseJob] = []
        reads: dict[str, _Read] = {}
        for path in wanted:
            job = self._look_at(path, reads, None)
            if job is not None:
                jobs.append(job)
        with self._database.reader() as connection:
            self._settings = replace(self._owner.settings, dictionary=rows.read_dictionary(connection))
        if sum(len(job.data) for job in jobs) < _WORTH_PROCESSES_BYTES:
            for parsed in parse_documents([(job.path, job.data) for job in jobs], self._settings):
                self._take(parsed, reads)
        elif jobs:
            self._take_from_processes([[job] for job in jobs], reads)
        self._flush()
        return self._tally

    # -- reading ----------------------------------------------------------------------------------------------

    def _read_and_write(self, look_at: PackedPaths, size: int) -> None:
        """Read what the plan names, in this thread; parse it here or in processes; write it in this thread."""
        if not look_at:
            return
        self._control.progress(RunPhase.PARSE, 0, self._total)
        reads: dict[str, _Read] = {}
        batches = self._batches(look_at, reads)
        if size < _WORTH_PROCESSES_BYTES:
            for job in (job for batch in batches for job in batch):
                self._take_all(parse_documents([(job.path, job.data)], self._settings), reads)
                if self._tally.interrupted:
                    return
            return
        self._take_from_processes(batches, reads)

    def _take_from_processes(self, batches: Iterable[Sequence[ParseJob]], reads: dict[str, _Read]) -> None:
        with closing(ParsePool(self._settings, workers=self._owner.workers)) as pool:
            for parsed in pool.parse(batches):
                self._take_all(parsed, reads)
                if self._tally.interrupted:
                    return

    def _batches(self, look_at: Iterable[str], reads: dict[str, _Read]) -> Iterator[Sequence[ParseJob]]:
        batch: list[ParseJob] = []
        size = 0
        with self._workspace.neighbours() as reader:
            for path in look_at:
                if self._stopping():
                    return
                job = self._look_at(RelPath(path), reads, reader)
                if job is None:
                    self._step()
                    continue
                batch.append(job)
                size += len(job.data)
                if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
                    # Nobody knows when the next batch is wanted.
                    reader.leave()
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch

    def _look_at(self, path: RelPath, reads: dict[str, _Read], reader: NeighbourReader | None) -> ParseJob | None:
        """Read one file and decide: nothing to do, a rename, a refusal, or content to parse.

        Args:
            path: The file.
            reads: Takes note of what is to be parsed.
            reader: Reads files that a walk has found; None for a path of which nothing is known.
        """
        record = None if self._filling else self._record(path)
        read_at_ns = self._owner.now_ns()
        try:
            most = self._workspace.rules.max_file_bytes
            if reader is not None:
                snapshot = reader.read(path, max_bytes=most)
            elif _is_document_now(self._workspace, path):
                snapshot = self._workspace.read_present(path, max_bytes=most)
            else:
                self._forget(record)
                return None
        except (NotFound, InvalidPath):
            # Gone, or a link now, since the walk saw it.
            self._forget(record)
            return None
        except TooLarge as error:
            self._refuse(path, record, UNSUPPORTED, error.message)
            return None
        except KnowledgeBaseError as error:
            self._refuse(path, record, FAILED, error.message)
            return None
        facts = _facts(snapshot.identity, read_at_ns)
        source_hash = xxh64_hex(snapshot.data)
        if record is not None and record.state == rows.INDEXED and record.source_hash == source_hash:
            document_id = record.id
            if record.file_state != snapshot.identity.state or record.recheck != facts.recheck:
                self._write(path.value, lambda connection: rows.update_facts(connection, document_id, facts))
            return None
        if record is None and self._rename(path, source_hash, facts):
            return None
        reads[path.value] = _Read(path, facts)
        self._superseded.discard(path.value)
        return ParseJob(path.value, snapshot.data)

    def _record(self, path: RelPath) -> DocumentRecord | None:
        with self._database.reader() as connection:
            return state.document(connection, path)

    def _rename(self, path: RelPath, source_hash: str, facts: FileFacts) -> bool:
        """Move the rows of a document that stood elsewhere with the same content and is gone from there."""
        if self._gone is not None:
            same = self._gone.get(source_hash, [])
        else:
            with self._database.reader() as connection:
                same = state.documents_with_hash(connection, source_hash)
        taken = {name for name, _ in self._writes} if same else set[str]()
        for record in same:
            if record.path in taken or _still_there(self._workspace, RelPath(record.path)):
                continue
            # Another new file with the same content must not move the same rows.
            same.remove(record)
            self._flush()
            with self._database.writer() as connection:
                moved = rows.move_document(connection, record.id, path, facts, source_hash=source_hash)
                if moved:
                    rows.count_revision(connection)
            if moved:
                self._tally.changed += 1
                self._control.written()
            return moved
        return False

    # -- writing ----------------------------------------------------------------------------------------------

    def _take_all(self, parsed: Iterable[ParsedDocument], reads: dict[str, _Read]) -> None:
        for document in parsed:
            self._take(document, reads)
            self._step()
        self._serve_urgent()
        self._tally.interrupted = self._tally.interrupted or self._control.should_stop()
        if self._tally.interrupted:
            self._flush()

    def _take(self, parsed: ParsedDocument, reads: dict[str, _Read]) -> None:
        read = reads.pop(parsed.path, None)
        if read is None or parsed.path in self._superseded:
            return
        if parsed.rows is None:
            self._refuse_read(read.path, read.facts, parsed.state, parsed.reason)
            return
        content, path, facts = parsed.rows, read.path, read.facts
        hooks = self._owner.hooks

        def write(connection: apsw.Connection) -> None:
            rows.write_document(connection, path, facts, content, hooks=hooks)

        self._tally.changed += 1
        self._write(path.value, write, size=facts.size)

    def _refuse(self, path: RelPath, record: DocumentRecord | None, state_name: str, reason: str) -> None:
        identity = self._identity(path)
        if identity is None:
            self._refuse_read(path, _record_facts(record), state_name, reason)
        else:
            self._refuse_read(path, _facts(identity, self._owner.now_ns()), state_name, reason)

    def _refuse_read(self, path: RelPath, facts: FileFacts, state_name: str, reason: str) -> None:
        hooks = self._owner.hooks
        self._tally.failed += 1
        self._tally.to_retry += state_name == FAILED
        self._tally.failed_paths.add(path.value)
        self._write(
            path.value,
            lambda connection: rows.mark_unreadable(
                connection, path, facts, state=state_name, reason=reason, hooks=hooks
            ),
        )

    def _identity(self, path: RelPath) -> FileIdentity | None:
        try:
            return self._workspace.identity(path)
        except KnowledgeBaseError:
            return None

    def _forget(self, record: DocumentRecord | None) -> None:
        if record is not None:
            self._remove(record)

    def _remove(self, record: DocumentRecord) -> None:
        hooks = self._owner.hooks
        document_id = record.id
        self._tally.removed += 1
        self._write(record.path, lambda connection: rows.delete_document(connection, document_id, hooks=hooks))

    def _write(self, path: str, write: _Write, *, size: int = 0) -> None:
        self._writes.append((path, write))
        self._writes_bytes += size
        if (
            len(self._writes) >= _COMMIT_DOCUMENTS
            or self._writes_bytes >= _COMMIT_BYTES
            or time.monotonic() - self._last_commit >= _COMMIT_S
        ):
            self._flush()

    def _flush(self) -> None:
        """Commit what is ready; where one document breaks the transaction, the others are written one by one."""
        writes, self._writes, self._writes_bytes = self._writes, [], 0
        self._last_commit = time.monotonic()
        if not writes:
            return
        try:
            with self._database.writer() as connection:
                for _, write in writes:
                    write(connection)
                rows.count_revision(connection)
        except apsw.Error as error:
            _LOG.warning("Writing %d documents together failed (%s); trying each.", len(writes), error)
            for path, write in writes:
                self._write_alone(path, write)
        self._control.written()

    def _write_alone(self, path: str, write: _Write) -> None:
        try:
            with self._database.writer() as connection:
                write(connection)
                rows.count_revision(connection)
        except apsw.Error as error:
            _LOG.warning("Writing the rows of %s failed: %s", path, error)
            self._tally.failed += 1
            self._tally.to_retry += 1
            self._tally.failed_paths.add(path)
            reason = f"its rows could not be written ({type(error).__name__})"
            with self._database.writer() as connection:
                rows.mark_unreadable(
                    connection, RelPath(path), _record_facts(None), state=FAILED, reason=reason, hooks=self._owner.hooks
                )

    # -- driving ----------------------------------------------------------------------------------------------

    def _serve_urgent(self) -> None:
        urgent = self._control.urgent()
        if not urgent:
            return
        self._flush()
        self._superseded.update(path.value for path in urgent)
        for database in dict.fromkeys((self._live, self._database)):
            tally = _Run(self._owner, database, control=self._control, live=database).paths(urgent)
            if database is self._database:
                self._tally.changed += tally.changed
                self._tally.removed += tally.removed
                self._tally.to_retry += tally.to_retry

    def _stopping(self) -> bool:
        self._serve_urgent()
        if self._control.should_stop():
            self._tally.interrupted = True
        return self._tally.interrupted

    def _step(self) -> None:
        self._processed += 1
        self._control.progress(RunPhase.PARSE, self._processed, self._total)


def _is_document_now(workspace: Workspace, path: RelPath) -> bool:
    return workspace.identity(path) is not None and workspace.is_document(path) and workspace.why_excluded(path) is None


def _still_there(workspace: Workspace, path: RelPath) -> bool:
    try:
        return _is_document_now(workspace, path)
    except InvalidPath:
        return False
    except IoFailure:
        return True  # What cannot be looked at is not known to be gone.


def _indexed_files(connection: apsw.Connection) -> int:
    counts = state.counts(connection)
    return counts.documents + counts.unsupported + counts.failed


def _plan(connection: apsw.Connection, scan: TreeScan, scope: RunScope, *, recheck: bool) -> ReconcilePlan:
    """What is to be done; takes what needs no look out of the scan."""
    with state.passing_by(connection):
        return plan(
            scan.documents,
            state.file_states(connection),
            recheck=state.paths_to_recheck(connection) if recheck else (),
            unreadable=[skipped.path for skipped in scan.unreadable],
            read_all=scope is RunScope.ALL,
        )


def _facts(identity: FileIdentity, read_at_ns: int) -> FileFacts:
    return FileFacts(
        size=identity.size,
        mtime_ns=identity.mtime_ns,
        ctime_ns=identity.ctime_ns,
        inode=identity.inode,
        recheck=needs_recheck(identity.state, read_at_ns=read_at_ns),
    )


def _record_facts(record: DocumentRecord | None) -> FileFacts:
    size, mtime_ns, ctime_ns, inode = record.file_state if record is not None else (0, 0, 0, 0)
    return FileFacts(size=size, mtime_ns=mtime_ns, ctime_ns=ctime_ns, inode=inode, recheck=True)
