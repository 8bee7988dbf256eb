"""The status: what it says of an index that is empty, ready, damaged, incompatible, or at work."""

from pathlib import Path

import pytest
from tests.support.fake_embeddings import FakeEmbeddings
from tests.support.indexed_project import Project, wait_until

from local_vector_search_mcp.embeddings.provider import DisabledProvider
from local_vector_search_mcp.index.chunker import ChunkerSettings
from local_vector_search_mcp.services.index_state import IndexState
from local_vector_search_mcp.services.latency import LatencySamples, WatchLatency
from local_vector_search_mcp.services.status import ServerInfo, Status, StatusService
from local_vector_search_mcp.workspace.watcher import WatchState


def status_of(project: Project) -> Status:
    return StatusService(
        project.corpora(),
        server=ServerInfo(name="kb", version="1"),
        scope="read",
        provider=project.provider or DisabledProvider(),
        more_warnings=lambda: ("more",),
    ).status()


def make(tmp_path: Path, **options: object) -> Project:
    return Project(tmp_path / "root", tmp_path / "store", **options)  # type: ignore[arg-type]


def test_status__of_nothing(tmp_path: Path) -> None:
    """Before the first run everything is there and empty."""
    found = status_of(make(tmp_path))
    assert (found.server, found.scope, found.root) == (
        ServerInfo(name="kb", version="1"),
        "read",
        str(tmp_path / "root"),
    )
    assert (found.watching, found.last_event_at, found.watch_latency_ms) == (WatchState.OFF, None, None)
    assert (found.index.state, found.index.documents, found.index.bytes) == (IndexState.EMPTY, 0, 0)
    assert (found.index.manifest, found.index.differences, found.index.last_run) == (None, (), None)
    assert (found.indexing.state, found.indexing.last_outcome) == ("idle", None)
    assert (found.embedding.provider, found.embedding.model, found.embedding.reachable) == ("none", None, None)
    assert (found.unsupported, found.unsupported_count, found.collections) == ((), 0, ())
    assert found.warnings == ("more",)


def test_status__of_an_index(tmp_path: Path) -> None:
    """After a run it counts what there is and names what could not be indexed, twenty at most."""
    project = make(tmp_path, provider=FakeEmbeddings())
    project.write(a="# A\n\nalpha\n")
    for number in range(25):
        project.put(f"bad{number:02}.md", b"\xff")
    try:
        project.start()
        wait_until(lambda: status_of(project).index.vectors == 1 and status_of(project).indexing.state == "idle")
        found = status_of(project)
        assert found.index.state is IndexState.READY
        assert (found.index.documents, found.index.chunks, found.index.vectors, found.index.awaiting) == (1, 1, 1, 0)
        assert found.index.bytes > 0
        assert found.index.manifest is not None
        assert found.index.manifest.provider == "fake"
        assert found.index.last_run is not None
        assert (found.index.last_run.outcome, found.index.last_run.failed) == ("succeeded", 25)
        assert (found.unsupported_count, len(found.unsupported)) == (25, 20)
        assert found.unsupported[0].path == "bad00.md"
        assert (found.embedding.dimensions, found.embedding.reachable) == (32, True)
        assert found.indexing.last_outcome == "succeeded"
    finally:
        project.indexer.stop()


def test_status__of_another_configuration(tmp_path: Path) -> None:
    """Differences are named with both values, and the warnings say what they stop."""
    project = make(tmp_path)
    project.write(a="alpha\n")
    project.run()
    found = status_of(make(tmp_path, chunker=ChunkerSettings(max_chunk_bytes=512)))
    (difference,) = found.index.differences
    assert (difference.key, difference.stored, difference.configured) == ("maxChunkBytes", 4096, 512)
    assert "kb_reindex" in found.warnings[0]
    moved = Project(tmp_path / "other", tmp_path / "store")
    found = status_of(moved)
    assert found.index.state is IndexState.INCOMPATIBLE
    assert found.index.documents == 0


def test_status__of_a_damaged_index(tmp_path: Path) -> None:
    """A damaged index is a warning, never a failure of the status."""
    project = make(tmp_path)
    (tmp_path / "store" / "index.db").write_bytes(b"garbage " * 4000)
    found = status_of(project)
    assert found.index.state is IndexState.EMPTY
    assert any("damaged" in warning for warning in found.warnings)


def test_status__provider_that_is_away(tmp_path: Path) -> None:
    """A provider that does not answer is not reachable, and the warning says why."""
    provider = FakeEmbeddings()
    provider.down = True
    project = make(tmp_path, provider=provider)
    project.write(a="alpha\n")
    try:
        project.start()
        wait_until(lambda: status_of(project).embedding.reachable is False)
        found = status_of(project)
        assert found.index.awaiting == 1
        assert any("switched off" in warning for warning in found.warnings)
    finally:
        project.indexer.stop()


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], None),
        ([0.1], WatchLatency(p50=100, p95=100)),
        ([0.4, 0.1, 0.3, 0.2], WatchLatency(p50=200, p95=400)),
        ([*[0.01] * 19, 9.0], WatchLatency(p50=10, p95=10)),
        ([-1.0], WatchLatency(p50=0, p95=0)),
        ([5.0] * 10 + [0.1] * 256, WatchLatency(p50=100, p95=100)),
    ],
)
def test_latency__percentiles(samples: list[float], expected: WatchLatency | None) -> None:
    """Percentiles of the latest samples by nearest rank."""
    found = LatencySamples()
    for sample in samples:
        found.add(sample)
    assert found.summary() == expected
