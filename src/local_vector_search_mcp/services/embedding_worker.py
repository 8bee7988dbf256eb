"""A thread that embeds the backlog while indexing goes on, and waits for the provider where it is away."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from local_vector_search_mcp.errors import EmbeddingUnavailable, KnowledgeBaseError
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.services.embedding import EmbeddingBacklog

_LOG = logging.getLogger(__name__)

_FIRST_RETRY_S: Final = 15.0
_LONGEST_RETRY_S: Final = 300.0


class EmbeddingWorker:
    """Embeds what waits whenever it is woken.

    Args:
        backlog_of: Makes the backlog of an index.
        progress: Told how many chunks are embedded and how many there are to embed.
        changed: Called when the worker has begun, paused or ended.
    """

    def __init__(
        self,
        backlog_of: Callable[[IndexDatabase], EmbeddingBacklog],
        *,
        progress: Callable[[int, int], None],
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backlog_of = backlog_of
        self._progress = progress
        self._changed = changed
        self._clock = clock
        self._condition = threading.Condition()
        self._wanted: IndexDatabase | None = None
        self._released: IndexDatabase | None = None
        self._waiting: IndexDatabase | None = None  # Embedding it failed; it is tried again at ``_retry_at``.
        self._retry_at = 0.0
        self._retry_s = _FIRST_RETRY_S
        self._busy = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._error: str | None = None

    @property
    def busy(self) -> bool:
        """Whether something is being embedded or about to be."""
        with self._condition:
            return self._busy or self._wanted is not None

    @property
    def error(self) -> str | None:
        """Why nothing can be embedded at present; None where it can."""
        return self._error

    def wake(self, database: IndexDatabase) -> None:
        """Embed what waits in an index."""
        with self._condition:
            if self._stopping:
                return
            self._wanted = database
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="embedding", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def release(self, database: IndexDatabase) -> None:
        """Embed no more for an index that is about to be closed; what fails for that reason is no failure."""
        with self._condition:
            self._released = database
            if self._wanted is database:
                self._wanted = None
            if self._waiting is database:
                self._waiting = None

    def stop(self, *, timeout_s: float) -> None:
        """End after the step that is under way, without waiting longer than ``timeout_s``."""
        with self._condition:
            self._stopping = True
            self._wanted = self._waiting = None
            thread = self._thread
            self._condition.notify_all()
        if thread is not None:
            thread.join(timeout=timeout_s)

    def _loop(self) -> None:
        while (database := self._next()) is not None:
            self._changed()
            self._embed(database)
            with self._condition:
                self._busy = False
            self._changed()

    def _next(self) -> IndexDatabase | None:
        with self._condition:
            while not self._stopping:
                if self._waiting is not None and self._clock() >= self._retry_at:
                    self._wanted, self._waiting = self._wanted or self._waiting, None
                if self._wanted is not None:
                    database, self._wanted = self._wanted, None
                    self._busy = True
                    return database
                pause = None if self._waiting is None else max(self._retry_at - self._clock(), 0.0)
                self._condition.wait(pause)
            return None

    def _embed(self, database: IndexDatabase) -> None:
        try:
            self._backlog_of(database).run(should_stop=lambda: self._should_stop(database), progress=self._progress)
        except EmbeddingUnavailable as error:
            self._fail(database, error.message)
        except KnowledgeBaseError as error:
            _LOG.info("Vectors could not be written: %s", error.message)
            self._fail(database, error.message)
        except Exception as error:  # noqa: BLE001  (a broken model must not end the thread; it is shown and tried again)
            _LOG.exception("Embedding failed unexpectedly")
            self._fail(database, f"Embedding failed ({type(error).__name__}); the log says more.")
        else:
            self._error = None
            self._retry_s = _FIRST_RETRY_S

    def _fail(self, database: IndexDatabase, message: str) -> None:
        with self._condition:
            if database is self._released:
                return
            self._error = message
            self._waiting = database
            self._retry_at = self._clock() + self._retry_s
            self._retry_s = min(self._retry_s * 2, _LONGEST_RETRY_S)

    def _should_stop(self, database: IndexDatabase) -> bool:
        with self._condition:
            return self._stopping or self._wanted is not None or self._released is database
