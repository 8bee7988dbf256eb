"""The background worker over real files: events, requests, rebuilds, several processes, damage, and a clean end."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.fake_embeddings import FakeEmbeddings
from tests.support.indexed_project import DEADLINE_S, Project, wait_until

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import IndexIncompatible, IndexNotReady, InvalidArgument, IoFailure
from local_vector_search_mcp.index import state
from local_vector_search_mcp.index.chunker import ChunkerSettings
from local_vector_search_mcp.index.generations import current_file
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services import schedule
from local_vector_search_mcp.services.background import Indexer
from local_vector_search_mcp.services.handover import BoardEntry
from local_vector_search_mcp.services.index_state import IndexState
from local_vector_search_mcp.services.job_state import RunOutcome, RunPhase
from local_vector_search_mcp.services.reconcile import Reconciler

Make = Callable[..., Project]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes projects over one root and one store; all are stopped at the end."""
    made: list[Project] = []

    def project(**options: object) -> Project:
        made.append(Project(tmp_path / "root", tmp_path / "store", **options))  # type: ignore[arg-type]
        return made[-1]

    yield project
    for one in made:
        one.indexer.stop()


class Events:
    """File events as a test sends them."""

    def __init__(self) -> None:
        self.seen: Callable[[Sequence[str] | None, float], None] | None = None
        self.stopped = False

    def start(self, seen: Callable[[Sequence[str] | None, float], None]) -> None:
        self.seen = seen

    def stop(self) -> None:
        self.stopped = True

    def send(self, *paths: str) -> None:
        assert self.seen is not None
        self.seen(paths or None, time.time())


def state_of(project: Project) -> IndexState:
    return project.indexer.snapshot().state


def test_start__indexes_and_is_ready(make: Make) -> None:
    """A worker that starts brings the index in line and is ready."""
    project = make()
    project.write(a="alpha\n")
    assert state_of(project) is IndexState.EMPTY
    project.start()
    assert project.find("alpha") == ["a.md"]
    wait_until(lambda: not project.indexer.snapshot().running)
    snapshot = project.indexer.snapshot()
    assert (snapshot.state, snapshot.holder, snapshot.warnings) == (IndexState.READY, True, ())
    assert snapshot.last is not None
    assert (snapshot.last.outcome, snapshot.last.changed) == (RunOutcome.SUCCEEDED, 1)


def test_start__without_reconciling_waits_to_be_asked(make: Make) -> None:
    """With onStart none nothing is indexed until somebody asks."""
    project = make(reconcile_on_start=False)
    project.write(a="alpha\n")
    project.indexer.start()
    wait_until(lambda: project.indexer.snapshot().holder)
    assert not project.indexer.wait_first_run(5.0)
    project.indexer.notify_paths([RelPath("a.md")])
    project.indexer.changes_seen(None, time.time())
    assert not project.indexer.wait_indexed(RelPath("a.md"), xxh64_hex(b"alpha\n"), timeout_ms=300)
    assert state_of(project) is IndexState.EMPTY
    with pytest.raises(IndexNotReady):
        project.home.check_searchable()
    assert project.reindex() is RunOutcome.SUCCEEDED
    assert project.find("alpha") == ["a.md"]


def test_events__are_followed(make: Make) -> None:
    """Files, folders and lost events lead to an index that is in line; the time it took is known."""
    events = Events()
    project = make(watching=events)
    project.start()
    project.write(a="alpha\n", sub__b="beta\n")
    events.send("a.md")
    wait_until(lambda: project.find("alpha") == ["a.md"])
    assert project.find("beta") == []
    events.send("sub")
    wait_until(lambda: project.find("beta") == ["sub/b.md"])
    (project.root / "sub").rename(project.root / "moved")
    events.send("sub", "moved")
    wait_until(lambda: project.find("beta") == ["moved/b.md"])
    (project.root / "a.md").unlink()
    events.send()
    wait_until(lambda: project.paths() == ["moved/b.md"])
    project.put(".gitignore", "moved\n")
    events.send(".gitignore")
    wait_until(lambda: project.paths() == [])
    events.send("odd\\name", "", "gone.md")
    latency = project.indexer.snapshot().latency
    assert latency is not None
    assert 0 <= latency.p50 <= latency.p95 < DEADLINE_S * 1000
    project.indexer.stop()
    assert events.stopped


def test_notify_paths__are_visible_soon(make: Make) -> None:
    """What this process has written can be waited for: new content, other content, and absence."""
    project = make().start()
    for text in ("one\n", "two\n"):
        path = project.put("a.md", text)
        project.indexer.notify_paths([path])
        assert project.indexer.wait_indexed(path, xxh64_hex(text.encode()), timeout_ms=5_000)
    assert project.find("two") == ["a.md"]
    (project.root / "a.md").unlink()
    project.indexer.notify_paths([RelPath("a.md")])
    assert project.indexer.wait_indexed(RelPath("a.md"), None, timeout_ms=5_000)
    assert not project.indexer.wait_indexed(RelPath("a.md"), "0" * 16, timeout_ms=30)


def test_request__joins_and_refuses(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests during a run join it, and what was written before them is in the index when it ends."""
    project = make(reconcile_on_start=False)
    project.write(a="alpha\n")
    project.indexer.start()
    begun, go = threading.Event(), threading.Event()
    original = Reconciler.run

    def slow(self: Reconciler, *arguments: object, **named: object) -> object:
        tally = original(self, *arguments, **named)  # type: ignore[arg-type]
        begun.set()
        assert go.wait(DEADLINE_S)
        return tally

    monkeypatch.setattr(Reconciler, "run", slow)
    first = project.indexer.request()
    assert begun.wait(DEADLINE_S)
    project.write(b="beta\n")
    second = project.indexer.request()
    assert (first.joined, second.joined, second.run_id) == (False, True, first.run_id)
    assert project.indexer.wait(first.run_id, timeout_s=0.01).outcome is RunOutcome.RUNNING
    assert project.indexer.snapshot().running
    go.set()
    result = project.indexer.wait(second.run_id, timeout_s=DEADLINE_S)
    assert (result.outcome, result.changed) == (RunOutcome.SUCCEEDED, 2)
    assert project.find("beta") == ["b.md"]
    with pytest.raises(InvalidArgument, match="changed or all"):
        project.indexer.request(scope="some")


def test_request__reports_progress(make: Make) -> None:
    """A wait is told the phase and the numbers of the run."""
    project = make(reconcile_on_start=False)
    for number in range(50):
        project.put(f"n{number}.md", f"# Note {number}\n\n" + "words and more words\n" * 200)
    project.indexer.start()
    ticket = project.indexer.request()
    seen: list[tuple[RunPhase, int, int]] = []
    project.indexer.wait(
        ticket.run_id, timeout_s=DEADLINE_S, progress=lambda now: seen.append((now.phase, now.processed, now.total))
    )
    assert seen
    assert all(done <= total for _, done, total in seen)


def test_rebuild__answers_from_the_old_until_the_new_is_complete(make: Make) -> None:
    """A forced rebuild fills another file; the old one is searched meanwhile and deleted afterwards."""
    project = make().start()
    project.write(a="alpha\n")
    project.reindex()
    before = current_file(project.home.path)
    seen: list[list[str]] = []
    original = project.reconciler.run

    def watched(*arguments: object, **named: object) -> object:
        tally = original(*arguments, **named)  # type: ignore[arg-type]
        seen.append(project.find("alpha"))
        return tally

    project.reconciler.run = watched  # type: ignore[method-assign,assignment]
    assert project.reindex(force=True) is RunOutcome.SUCCEEDED
    assert seen[0] == ["a.md"]
    after = current_file(project.home.path)
    assert after != before
    assert not before.exists()
    assert project.find("alpha") == ["a.md"]
    project.check_consistent()


def test_rebuild__interrupted_goes_on_at_the_next_start(make: Make) -> None:
    """A rebuild that was stopped is finished by the next process; until then the old index answers."""
    project = make().start()
    project.write(a="alpha\n")
    project.reindex()
    new = project.home.begin_rebuild()
    new.close()
    project.indexer.stop()
    again = make()
    again.indexer.start()
    wait_until(lambda: current_file(again.home.path).name == "index.db.2")
    wait_until(lambda: state_of(again) is IndexState.READY)
    assert again.find("alpha") == ["a.md"]


def test_rebuild__other_processes_follow(make: Make) -> None:
    """A process that has the old file open reads the new one at its next use."""
    project = make().start()
    project.write(a="alpha\n")
    project.reindex()
    other = make(reconcile_on_start=False)
    assert other.find("alpha") == ["a.md"]
    project.write(a="beta\n")
    project.reindex(force=True)
    assert other.find("beta") == ["a.md"]
    assert other.find("alpha") == []


def test_mismatch__rows_wait_for_a_rebuild(make: Make) -> None:
    """With other chunk settings searches answer from old rows, changed files wait, and a rebuild mends it."""
    project = make().start()
    project.write(a="alpha\n")
    project.reindex()
    project.indexer.stop()
    other = make(chunker=ChunkerSettings(max_elements=7)).start()
    assert other.home.check_searchable().warnings() != ()
    path = other.put("a.md", "beta\n")
    other.indexer.notify_paths([path])
    wait_until(lambda: state_of(other) is IndexState.STALE)
    assert not other.indexer.wait_indexed(path, xxh64_hex(b"beta\n"), timeout_ms=200)
    assert other.find("alpha") == ["a.md"]
    ticket = other.indexer.request()
    result = other.indexer.wait(ticket.run_id, timeout_s=DEADLINE_S)
    assert (result.outcome, "maxElements" in (result.message or "")) == (RunOutcome.FAILED, True)
    assert other.reindex(force=True) is RunOutcome.SUCCEEDED
    assert other.find("beta") == ["a.md"]
    assert other.home.compatibility().differences == ()
    wait_until(lambda: state_of(other) is IndexState.READY)


def test_mismatch__another_root_is_not_searched(make: Make, tmp_path: Path) -> None:
    """An index of another root refuses searches and is left as it is until it is rebuilt."""
    project = make().start()
    project.write(a="alpha\n")
    project.reindex()
    project.indexer.stop()
    moved = Project(tmp_path / "elsewhere", tmp_path / "store")
    moved.write(b="beta\n")
    try:
        moved.indexer.start()
        wait_until(lambda: state_of(moved) is IndexState.INCOMPATIBLE)
        with pytest.raises(IndexIncompatible, match="root"):
            moved.home.check_searchable()
        assert moved.paths() == ["a.md"]
        assert moved.reindex(force=True) is RunOutcome.SUCCEEDED
        assert moved.paths() == ["b.md"]
    finally:
        moved.indexer.stop()


def test_mismatch__another_provider_keeps_lexical_up(make: Make) -> None:
    """With another provider rows follow the files and the old vectors are left aside."""
    project = make().start()
    project.write(a="alpha\n")
    project.reindex()
    project.indexer.stop()
    other = make(provider=FakeEmbeddings()).start()
    other.write(a="beta\n")
    assert other.reindex() is RunOutcome.SUCCEEDED
    assert other.find("beta") == ["a.md"]
    assert not other.home.compatibility().vectors_usable
    assert other.reindex(force=True) is RunOutcome.SUCCEEDED
    with other.database.reader() as connection:
        counts = state.counts(connection)
    assert (counts.embedded, counts.awaiting) == (1, 0)


def test_foreign_database__is_left_alone(make: Make, tmp_path: Path) -> None:
    """Another program's database in place of the index is never changed, and the run says what to do."""
    import apsw

    (tmp_path / "store").mkdir()
    foreign = apsw.Connection(str(tmp_path / "store" / "index.db"))
    foreign.execute("CREATE TABLE mine (x)")
    foreign.close()
    before = (tmp_path / "store" / "index.db").read_bytes()
    project = make()
    project.write(a="alpha\n")
    project.indexer.start()
    assert project.reindex() is RunOutcome.FAILED
    assert state_of(project) is IndexState.INCOMPATIBLE
    assert (tmp_path / "store" / "index.db").read_bytes() == before
    assert project.reindex(force=True) is RunOutcome.SUCCEEDED
    assert project.find("alpha") == ["a.md"]
    assert (tmp_path / "store" / "index.db").read_bytes() == before


def test_vectors__follow_the_rows(make: Make) -> None:
    """A run with embeddings ends when the vectors are there; renames and rebuilds embed nothing again."""
    provider = FakeEmbeddings()
    project = make(provider=provider)
    project.write(a="# One\n\nalpha\n", b="# Two\n\nbeta\n")
    project.start()
    wait_until(lambda: provider.calls == 2)
    wait_until(lambda: state_of(project) is IndexState.READY)
    (project.root / "a.md").rename(project.root / "c.md")
    project.reindex()
    project.reindex(force=True)
    assert provider.calls == 2
    with project.database.reader() as connection:
        counts = state.counts(connection)
    assert (counts.embedded, counts.awaiting) == (2, 0)


def test_vectors__provider_that_is_away(make: Make) -> None:
    """While the provider is away files are indexed lexically and await embedding, and the status says why."""
    provider = FakeEmbeddings()
    provider.down = True
    project = make(provider=provider)
    project.write(a="alpha\n")
    project.start()
    assert project.reindex() is RunOutcome.SUCCEEDED
    assert project.find("alpha") == ["a.md"]
    wait_until(lambda: project.indexer.snapshot().embedding_error is not None)
    with project.database.reader() as connection:
        assert state.counts(connection).awaiting == 1
    provider.down = False
    assert project.reindex() is RunOutcome.SUCCEEDED
    wait_until(lambda: project.indexer.snapshot().embedding_error is None)
    with project.database.reader() as connection:
        assert state.counts(connection).awaiting == 0


def test_lease__one_indexes_and_the_other_hands_over(make: Make) -> None:
    """Of two workers one writes; the other's changes, requests and waits go through it, and it takes over."""
    holder = make().start()
    other = make()
    other.indexer.start()
    path = other.put("a.md", "alpha\n")
    other.indexer.notify_paths([path])
    assert other.indexer.wait_indexed(path, xxh64_hex(b"alpha\n"), timeout_ms=5_000)
    assert not other.indexer.snapshot().holder
    other.write(b="beta\n")
    ticket = other.indexer.request()
    result = other.indexer.wait(ticket.run_id, timeout_s=DEADLINE_S)
    assert (result.outcome, result.changed) == (RunOutcome.SUCCEEDED, 1)
    assert other.find("beta") == ["b.md"]
    assert other.reindex(force=True) is RunOutcome.SUCCEEDED
    assert other.find("beta") == ["b.md"]
    other.indexer.changes_seen(None, time.time())
    other.indexer.changes_seen(["a.md"], time.time())
    began = time.monotonic()
    holder.indexer.stop()
    wait_until(lambda: other.indexer.snapshot().holder)
    assert time.monotonic() - began < 4.0
    other.write(c="gamma\n")
    assert other.reindex() is RunOutcome.SUCCEEDED
    assert other.find("gamma") == ["c.md"]


def test_lease__letters_of_the_dead_are_read(make: Make) -> None:
    """What a process handed over before nobody was there is indexed by the next holder."""
    first = make().start()
    first.indexer.stop()
    project = make(reconcile_on_start=False)
    project.write(a="alpha\n")
    project.indexer.notify_paths([RelPath("a.md")])
    project.indexer.start()
    wait_until(lambda: project.find("alpha") == ["a.md"])


def test_lease__a_request_survives_its_holder(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run asked of a holder that leaves before it begins is carried out by the one that asked."""
    holder = make().start()
    other = make()
    other.indexer.start()
    wait_until(lambda: not other.indexer.snapshot().holder)
    monkeypatch.setattr(holder.indexer, "_read_mail", lambda: None)
    other.write(a="alpha\n")
    ticket = other.indexer.request()
    holder.indexer.stop()
    assert other.indexer.wait(ticket.run_id, timeout_s=DEADLINE_S).outcome is RunOutcome.SUCCEEDED
    assert other.find("alpha") == ["a.md"]


@pytest.mark.parametrize("content", [b"garbage " * 2000, b"SQLite format 3\0" + b"\x99" * 9000], ids=["text", "pages"])
def test_damage__at_start_is_set_aside(make: Make, tmp_path: Path, content: bytes) -> None:
    """A damaged index is kept under another name and rebuilt, with a warning."""
    project = make()
    project.write(a="alpha\n")
    (tmp_path / "store" / "index.db").write_bytes(content)
    project.indexer.start()
    wait_until(lambda: project.indexer.wait_first_run(1.0))
    assert project.find("alpha") == ["a.md"]
    (aside,) = (tmp_path / "store").glob("index.db.damaged-*")
    assert aside.read_bytes() == content
    assert any("damaged" in warning for warning in project.indexer.snapshot().warnings)
    project.check_consistent()


def test_damage__found_later_is_mended(make: Make, tmp_path: Path) -> None:
    """Damage that a search comes upon is mended by the worker."""
    project = make().start()
    project.write(a="alpha " * 500)
    project.reindex()
    project.database.trim()
    with (tmp_path / "store" / "index.db").open("r+b") as file:
        file.write(b"\x13" * 200_000)
    with pytest.raises((IndexNotReady, IoFailure)), project.database.reader() as connection:
        connection.execute("SELECT * FROM chunks").fetchall()
    wait_until(lambda: list((tmp_path / "store").glob("index.db.damaged-*")) != [])
    wait_until(lambda: project.indexer.wait_first_run(1.0) and project.database.exists())
    assert project.reindex() is RunOutcome.SUCCEEDED
    assert project.find("alpha") == ["a.md"]


def test_deleted_index__comes_again(make: Make, tmp_path: Path) -> None:
    """An index that somebody deletes under a running server is made anew."""
    project = make().start()
    project.write(a="alpha\n")
    project.reindex()
    project.database.trim()
    for file in (tmp_path / "store").glob("index.db*"):
        file.unlink()
    wait_until(lambda: project.database.exists() and state_of(project) is IndexState.READY)
    assert project.find("alpha") == ["a.md"]


class Place:
    """The root and the storage of a project, which come and go as a test wants."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.away = project.root.with_name("away")
        self.prepared = self.looks = 0
        parts = replace(project.parts, root_is_there=self._is_there, prepare_storage=self._prepare)
        project.indexer = Indexer(parts)

    def leave(self) -> None:
        self.project.root.rename(self.away)
        wait_until(lambda: any("root is gone" in text for text in self.project.indexer.snapshot().warnings))

    def come_back(self) -> None:
        self.away.rename(self.project.root)
        wait_until(lambda: self.project.indexer.snapshot().warnings == ())

    def _is_there(self) -> bool:
        self.looks += 1
        return self.project.root.is_dir()

    def _prepare(self) -> None:
        self.prepared += 1
        self.project.store.mkdir(exist_ok=True)


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder with open files")
def test_root__goes_and_comes_back(make: Make) -> None:
    """While the root is gone nothing is dropped or run; when it is back, what changed meanwhile is found at once."""
    project = make()
    project.write(a="alpha\n", b="beta\n")
    place = Place(project)
    project.start()
    wait_until(lambda: state_of(project) is IndexState.READY)
    place.leave()
    project.indexer.changes_seen(None, time.time())
    with pytest.raises(IoFailure, match="root is gone"):
        project.reindex()
    assert (project.paths(), project.find("alpha")) == (["a.md", "b.md"], ["a.md"])
    assert project.indexer.snapshot().holder
    (place.away / "a.md").write_text("gamma\n")
    (place.away / "b.md").unlink()
    place.come_back()
    wait_until(lambda: project.find("gamma") == ["a.md"] and project.paths() == ["a.md"])
    wait_until(lambda: state_of(project) is IndexState.READY)


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder with open files")
def test_root__that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    """A process that waits for the lease makes no storage where the root was; later one of the two indexes."""
    root = tmp_path / "root"
    projects = [Project(root, root / "store") for _ in range(2)]
    projects[0].write(a="alpha\n")
    places = [Place(project) for project in projects]
    for project in projects:
        project.start()
    root.rename(tmp_path / "away")
    wait_until(lambda: all(project.indexer.snapshot().warnings for project in projects))
    prepared, looks = [place.prepared for place in places], [place.looks for place in places]
    wait_until(lambda: all(place.looks > before + 2 for place, before in zip(places, looks, strict=True)))
    assert not root.exists()
    assert [place.prepared for place in places] == prepared
    (tmp_path / "away").rename(root)
    (root / "b.md").write_text("beta\n")
    wait_until(lambda: all(project.find("beta") == ["b.md"] for project in projects))
    assert sorted(project.indexer.snapshot().holder for project in projects) == [False, True]
    for project in projects:
        project.indexer.stop()


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no open files")
def test_root__another_without_storage(tmp_path: Path) -> None:
    """A root that comes anew, as a fresh clone does, gets a storage and is indexed, by one of the processes."""
    root = tmp_path / "root"
    projects = [Project(root, root / "store") for _ in range(2)]
    projects[0].write(a="alpha\n")
    for place in [Place(project) for project in projects]:
        place.project.start()
    root.rename(tmp_path / "away")
    wait_until(lambda: all(project.indexer.snapshot().warnings for project in projects))
    root.mkdir()
    (root / "b.md").write_text("beta\n")
    wait_until(lambda: all(project.find("beta") == ["b.md"] for project in projects))
    assert all(project.paths() == ["b.md"] for project in projects)
    wait_until(lambda: sorted(project.indexer.snapshot().holder for project in projects) == [False, True])
    for project in projects:
        project.indexer.stop()


def test_failure__is_tried_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails is reported and tried again by itself."""
    monkeypatch.setattr(schedule, "FIRST_RETRY_S", 0.05)
    project = make(reconcile_on_start=False)
    project.write(a="alpha\n")
    project.root.rename(project.root.with_name("away"))
    project.indexer.start()
    assert project.reindex() is RunOutcome.FAILED
    project.root.with_name("away").rename(project.root)
    wait_until(lambda: project.database.exists() and project.find("alpha") == ["a.md"])


def test_guard__warns_and_looks_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mass deletion that nobody asked for is reported; reindexing drops what is gone."""
    events = Events()
    project = make(watching=events)
    for number in range(60):
        project.put(f"d/n{number}.md", f"note {number}\n")
    project.start()
    (project.root / "d").rename(project.root.parent / "away")
    project.write(left="x\n")
    events.send("d")
    wait_until(lambda: any("more than half" in warning for warning in project.indexer.snapshot().warnings))
    assert len(project.paths()) == 61
    assert state_of(project) is IndexState.STALE
    assert project.reindex() is RunOutcome.SUCCEEDED
    assert project.paths() == ["left.md"]
    assert project.indexer.snapshot().warnings == ()


def test_guard__single_files_that_vanish_at_once(make: Make) -> None:
    """Files that are deleted one by one in one burst are judged as a run would judge them; renamed ones are no loss."""
    events = Events()
    project = make(watching=events)
    for number in range(60):
        project.put(f"n{number}.md", f"note {number}\n")
    project.start()
    for number in range(31):
        (project.root / f"n{number}.md").rename(project.root / f"r{number}.md")
    events.send(*(f"{name}{number}.md" for number in range(31) for name in "nr"))
    wait_until(lambda: "r30.md" in project.paths())
    wait_until(lambda: state_of(project) is IndexState.READY)
    assert (len(project.paths()), project.indexer.snapshot().warnings) == (60, ())
    for number in range(31):
        (project.root / f"r{number}.md").unlink()
    events.send(*(f"r{number}.md" for number in range(31)))
    wait_until(lambda: any("more than half" in warning for warning in project.indexer.snapshot().warnings))
    assert (len(project.paths()), state_of(project)) == (60, IndexState.STALE)
    assert project.reindex() is RunOutcome.SUCCEEDED
    assert len(project.paths()) == 29


def test_guard__half_may_vanish(make: Make) -> None:
    """Half of the files may be deleted at once."""
    events = Events()
    project = make(watching=events)
    for number in range(60):
        project.put(f"n{number}.md", f"note {number}\n")
    project.start()
    for number in range(30):
        (project.root / f"n{number}.md").unlink()
    events.send(*(f"n{number}.md" for number in range(30)))
    wait_until(lambda: len(project.paths()) == 30)


def test_stop__in_the_middle_of_a_run(make: Make) -> None:
    """Stopping in the middle of a run takes less than two seconds and leaves whole documents."""
    project = make(workers=2, reconcile_on_start=False)
    for number in range(400):
        project.put(f"n{number}.md", f"# Note {number}\n\n" + f"Text about {number}. " * 400)
    project.indexer.start()
    ticket = project.indexer.request()
    wait_until(lambda: project.indexer.files_to_come() > 0)
    began = time.monotonic()
    project.indexer.stop()
    assert time.monotonic() - began < 2.0
    assert project.indexer.wait(ticket.run_id, timeout_s=1.0).outcome in (RunOutcome.RUNNING, RunOutcome.CANCELLED)
    again = make().start()
    wait_until(lambda: len(again.paths()) == 400)
    again.check_consistent()


def test_read_only__never_starts(make: Make, tmp_path: Path) -> None:
    """Without a place to write nothing is started, and requests are refused."""
    project = make()
    indexer = Indexer(project.parts, read_only=True)
    indexer.start()
    indexer.notify_paths([RelPath("a.md")])
    with pytest.raises(IoFailure, match="read-only"):
        indexer.request()
    assert not indexer.wait_first_run(5.0)
    assert indexer.snapshot().state is IndexState.EMPTY
    assert list((tmp_path / "store").iterdir()) == []
    assert project.parts.board.read() == BoardEntry()
    indexer.stop()
