"""The embedding thread: it works when woken, waits for the provider, and lets go of what is closed."""

import threading
from collections.abc import Callable, Iterator

import pytest
from tests.support.indexed_project import DEADLINE_S, wait_until

from local_vector_search_mcp.errors import EmbeddingUnavailable, IoFailure
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.services import embedding_worker
from local_vector_search_mcp.services.embedding import BacklogOutcome
from local_vector_search_mcp.services.embedding_worker import EmbeddingWorker


class Backlog:
    """A backlog whose runs a test lets begin and end."""

    def __init__(self) -> None:
        self.runs = 0
        self.stopped = 0
        self.error: Exception | None = None
        self.hold = threading.Event()
        self.hold.set()

    def run(self, *, should_stop: Callable[[], bool], progress: Callable[[int, int], None]) -> BacklogOutcome:
        self.runs += 1
        progress(1, 2)
        while not self.hold.wait(0.005):
            if should_stop():
                self.stopped += 1
                break
        if self.error is not None:
            raise self.error
        return BacklogOutcome(embedded=1, failed=0, interrupted=False)


@pytest.fixture
def backlog() -> Backlog:
    return Backlog()


@pytest.fixture
def worker(backlog: Backlog, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingWorker]:
    monkeypatch.setattr(embedding_worker, "_FIRST_RETRY_S", 0.02)

    def backlog_of(_database: IndexDatabase) -> Backlog:
        return backlog

    made = EmbeddingWorker(
        backlog_of,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        progress=lambda _done, _total: None,
        changed=lambda: None,
    )
    made._retry_s = 0.02  # pyright: ignore[reportPrivateUsage]
    yield made
    backlog.hold.set()
    made.stop(timeout_s=DEADLINE_S)


def index(tmp_path_factory: pytest.TempPathFactory) -> IndexDatabase:
    return IndexDatabase(tmp_path_factory.mktemp("index") / "index.db")


def test_wake__embeds_once_each_time(
    worker: EmbeddingWorker, backlog: Backlog, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every wake is followed by a run, and the worker rests between them."""
    database = index(tmp_path_factory)
    assert not worker.busy
    for number in (1, 2):
        worker.wake(database)
        wait_until(lambda: not worker.busy)
        assert backlog.runs == number
    assert worker.error is None


@pytest.mark.parametrize(
    "error",
    [EmbeddingUnavailable("away"), IoFailure("full"), ValueError("broken")],
    ids=["provider away", "disk full", "broken model"],
)
def test_failure__is_told_and_tried_again(
    worker: EmbeddingWorker, backlog: Backlog, tmp_path_factory: pytest.TempPathFactory, error: Exception
) -> None:
    """A failure is told until a later try succeeds; the thread outlives it."""
    backlog.error = error
    worker.wake(index(tmp_path_factory))
    wait_until(lambda: worker.error is not None)
    wait_until(lambda: backlog.runs >= 2)
    backlog.error = None
    wait_until(lambda: worker.error is None)


def test_release__ends_work_for_an_index(
    worker: EmbeddingWorker, backlog: Backlog, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Work for an index that is closed ends, and its failure is none; the next index is embedded."""
    old, new = index(tmp_path_factory), index(tmp_path_factory)
    backlog.hold.clear()
    backlog.error = IoFailure("closed")
    worker.wake(old)
    wait_until(lambda: backlog.runs == 1)
    worker.release(old)
    wait_until(lambda: not worker.busy)
    assert (backlog.stopped, worker.error) == (1, None)
    backlog.error = None
    backlog.hold.set()
    worker.wake(new)
    wait_until(lambda: not worker.busy and backlog.runs == 2)


def test_stop__in_the_middle(
    worker: EmbeddingWorker, backlog: Backlog, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Stopping ends the work under way; nothing begins afterwards."""
    backlog.hold.clear()
    worker.wake(index(tmp_path_factory))
    wait_until(lambda: backlog.runs == 1)
    worker.stop(timeout_s=DEADLINE_S)
    worker.wake(index(tmp_path_factory))
    assert (backlog.runs, backlog.stopped) == (1, 1)
