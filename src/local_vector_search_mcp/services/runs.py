"""Carry out one run: reconcile, or rebuild beside the old index; then let vectors follow."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from local_vector_search_mcp.errors import IndexIncompatible, IoFailure
from local_vector_search_mcp.index import state
from local_vector_search_mcp.index.connection import IndexDamaged, IndexDatabase
from local_vector_search_mcp.index.home import IndexHome
from local_vector_search_mcp.index.manifest import Compatibility
from local_vector_search_mcp.services.embedding_worker import EmbeddingWorker
from local_vector_search_mcp.services.job_state import RunRequest, RunScope
from local_vector_search_mcp.services.reconcile import Reconciler, RunControl, Tally

_LOG = logging.getLogger(__name__)

_SECONDS_PER_DAY = 86_400
_TURN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What runs work with.

    Attributes:
        home: The index on disk.
        reconciler: Brings it in line with the files.
        embedding: Makes vectors in the background; None without embeddings.
        may_end: Whether the run may end; otherwise somebody joined it, and it looks at the tree once more.
        meanwhile: Lets a moment pass and does what is due; False where a wait should end.
        turn: Held while files are read and rows written; shared by the indexers of a process.
        now_s: The wall clock in seconds since 1970-01-01.
    """

    home: IndexHome
    reconciler: Reconciler
    embedding: EmbeddingWorker | None
    may_end: Callable[[], bool]
    meanwhile: Callable[[], bool]
    turn: threading.Lock
    now_s: Callable[[], float]


class Runs:
    """Carries out runs under the indexing lease."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._home = parts.home

    def carry_out(self, request: RunRequest, control: RunControl) -> Tally:
        """Do what a request asks.

        Raises:
            IndexIncompatible: The index was built differently, and somebody asked for a run that is no rebuild.
            IoFailure: The root cannot be read, or the index cannot be written.
        """
        return self._rebuild(control) if request.force else self._reconcile(request, control)

    def _reconcile(self, request: RunRequest, control: RunControl) -> Tally:
        compatibility = self._home.compatibility()
        if not compatibility.rows_writable:
            # Somebody may join a run that nobody asked for, and is to hear why nothing is done.
            while not control.asked():
                if self._parts.may_end():
                    return Tally()
            raise IndexIncompatible(" ".join(compatibility.warnings()))
        self._home.ensure()
        database = self._home.database
        filling = _is_empty(database)
        tally = self._look(database, request.scope, control)
        if tally.interrupted:
            return tally
        with database.writer() as connection:
            state.count_run(connection)
        if filling:
            self._compact(database, control)
        self._embed(database, control)
        return self._look_again(tally, control)

    def _look_again(self, tally: Tally, control: RunControl) -> Tally:
        """Take up what changed since the last look, for everybody who joined the run meanwhile."""
        database = self._home.database
        while not (tally.interrupted or control.should_stop() or self._parts.may_end()):
            again = self._look(database, RunScope.CHANGED, control)
            self._embed(database, control)
            tally = replace(
                again,
                changed=tally.changed + again.changed,
                removed=tally.removed + again.removed,
                failed=max(tally.failed, again.failed),
            )
        return tally

    def _look(self, database: IndexDatabase, scope: RunScope, control: RunControl) -> Tally:
        return self._fill(database, scope, control, live=database)

    def _fill(self, database: IndexDatabase, scope: RunScope, control: RunControl, *, live: IndexDatabase) -> Tally:
        """Run over the tree when it is this index's turn; documents that somebody waits for do not wait for that."""
        while not self._parts.turn.acquire(timeout=_TURN_S):
            self._parts.meanwhile()
            if control.should_stop():
                return Tally(interrupted=True)
        try:
            return self._parts.reconciler.run(database, scope, control=control, live=live)
        finally:
            self._parts.turn.release()

    def _rebuild(self, control: RunControl) -> Tally:
        """Fill a new generation beside the old one, which answers until the new one is complete."""
        compatibility = self._compatibility()
        new = self._home.begin_rebuild()
        try:
            self._home.adopt_vectors(new, today=int(self._parts.now_s() // _SECONDS_PER_DAY))
            live = self._home.database if compatibility is not None and compatibility.rows_writable else new
            tally = self._fill(new, RunScope.CHANGED, control, live=live)
            if tally.interrupted:
                return tally
            with new.writer() as connection:
                state.count_run(connection)
            self._compact(new, control)
            if compatibility is not None and compatibility.vectors_usable:
                # The old generation answers by meaning; the new one must, before it takes over.
                self._embed(new, control)
            if control.should_stop():
                return replace(tally, interrupted=True)
            self._home.finish_rebuild(new)
        finally:
            if self._parts.embedding is not None:
                self._parts.embedding.release(new)
            new.close()
        self._home.remove_unused()
        # What was announced while the new generation was filled and not taken up is found by one more look.
        again = self._look(self._home.database, RunScope.CHANGED, control)
        self._embed(self._home.database, control)
        tally = replace(tally, changed=tally.changed + again.changed, removed=tally.removed + again.removed)
        return self._look_again(tally, control)

    def _compact(self, database: IndexDatabase, control: RunControl) -> None:
        try:
            self._home.compact(database, should_stop=control.should_stop)
        except IoFailure as error:
            # Everything is indexed already; it only takes more room than it could.
            _LOG.warning("The index could not be compacted: %s", error.message)

    def _compatibility(self) -> Compatibility | None:
        """What the old index allows; None where there is none that can be read."""
        try:
            return self._home.compatibility() if self._home.database.exists() else None
        except IndexDamaged:
            return None

    def _embed(self, database: IndexDatabase, control: RunControl) -> None:
        """Let vectors follow; the run goes on until they are there, unless something else has to be done."""
        worker = self._parts.embedding
        if worker is None or control.should_stop():
            return
        if database is self._home.database and not self._home.compatibility().vectors_usable:
            return
        control.embedding()
        worker.wake(database)
        while worker.busy and self._parts.meanwhile():
            continue


def _is_empty(database: IndexDatabase) -> bool:
    with database.reader() as connection:
        return connection.execute("SELECT 1 FROM documents LIMIT 1").get is None
