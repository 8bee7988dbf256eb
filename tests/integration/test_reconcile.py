"""Runs over real files and a real index: what is read, what is written, what stays when something goes wrong."""

import os
from collections.abc import Iterable
from pathlib import Path

import apsw
import pytest
from tests.support.indexed_project import Control, Project

from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.index import rows, state
from local_vector_search_mcp.index.chunker import ChunkerSettings
from local_vector_search_mcp.index.rows import ChunkHooks, DocumentRows, FileFacts
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services import reconcile
from local_vector_search_mcp.services.indexing import IndexingSettings, ParsedDocument, parse_documents
from local_vector_search_mcp.services.job_state import RunScope
from local_vector_search_mcp.workspace.entries import FileSnapshot, Skipped
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.listing import SelectionRules
from local_vector_search_mcp.workspace.neighbours import NeighbourReader
from local_vector_search_mcp.workspace.walking import TreeScan


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "root", tmp_path / "store")


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were parsed, in order."""
    seen: list[str] = []

    def watched(batch: Iterable[tuple[str, bytes]], settings: IndexingSettings) -> list[ParsedDocument]:
        given = list(batch)
        seen.extend(path for path, _ in given)
        return parse_documents(given, settings)

    monkeypatch.setattr(reconcile, "parse_documents", watched)
    return seen


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were read, in order."""
    seen: list[str] = []
    original = NeighbourReader.read

    def watched(self: NeighbourReader, path: RelPath, *, max_bytes: int) -> FileSnapshot:
        seen.append(path.value)
        return original(self, path, max_bytes=max_bytes)

    monkeypatch.setattr(NeighbourReader, "read", watched)
    return seen


def check(project: Project, changed: int, removed: int, failed: int = 0) -> None:
    tally = project.run()
    assert (tally.changed, tally.removed, tally.failed) == (changed, removed, failed)
    project.check_consistent()


def test_run__follows_the_files(project: Project) -> None:
    """New, changed and removed files are what the index holds after a run."""
    project.write(a="alpha\n", b="beta\n", sub__c="gamma\n")
    check(project, 3, 0)
    assert project.find("gamma") == ["sub/c.md"]
    project.write(a="delta\n", d="alpha\n")
    (project.root / "b.md").unlink()
    check(project, 2, 1)
    assert (project.find("alpha"), project.find("beta"), project.find("delta")) == (["d.md"], [], ["a.md"])
    check(project, 0, 0)


def test_run__reads_only_what_differs(project: Project, read: list[str]) -> None:
    """A run with nothing changed reads nothing, and one changed file is read alone."""
    project.write(a="alpha\n", b="beta\n")
    project.run()
    read.clear()
    project.run()
    project.run()
    assert read == []
    project.write(b="beta gamma\n")
    project.run()
    assert read == ["b.md"]


def test_run__scope_all_reads_everything(project: Project, read: list[str], parsed: list[str]) -> None:
    """Scope all reads and hashes every file, and parses only those whose content differs."""
    project.write(a="alpha\n", b="beta\n")
    project.run()
    read.clear()
    parsed.clear()
    project.run(scope=RunScope.ALL)
    assert (read, parsed) == (["a.md", "b.md"], [])


def test_run__touched_file_is_hashed_and_not_parsed(project: Project, parsed: list[str]) -> None:
    """A file with another time and the same content costs one reading."""
    project.write(a="alpha\n")
    project.run()
    parsed.clear()
    os.utime(project.root / "a.md", ns=(1, 1))
    check(project, 0, 0)
    assert parsed == []
    check(project, 0, 0)


def test_run__recent_file_is_read_again(tmp_path: Path, read: list[str]) -> None:
    """A file that changed within two seconds of its reading is read again on the next run, then no more."""
    clock = [0]
    project = Project(tmp_path / "root", tmp_path / "store", now_ns=lambda: clock[0])
    project.write(a="alpha\n")
    clock[0] = (project.root / "a.md").stat().st_mtime_ns + 10**9
    project.run()
    read.clear()
    clock[0] += 10 * 10**9
    project.run()
    assert read == ["a.md"]
    project.run()
    assert read == ["a.md"]


def test_run__same_length_edit_within_one_tick(tmp_path: Path) -> None:
    """An edit that leaves size, time and inode alone is found where the first reading was too near to it."""
    project = Project(tmp_path / "root", tmp_path / "store", now_ns=lambda: (tmp_path / "root/a.md").stat().st_ctime_ns)
    project.write(a="alpha\n")
    project.run()
    project.write(a="gamma\n")
    found = (project.root / "a.md").stat()
    with project.database.writer() as connection:
        connection.execute(
            "UPDATE documents SET mtime_ns = ?, ctime_ns = ?, inode = ?",
            (found.st_mtime_ns, found.st_ctime_ns, found.st_ino),
        )
    project.run()
    assert project.find("gamma") == ["a.md"]


@pytest.mark.parametrize("single", [False, True], ids=["whole run", "single paths"])
def test_rename__moves_rows(project: Project, parsed: list[str], single: bool) -> None:
    """A renamed file keeps its rows: nothing is parsed, chunk ids stay, and it is found by its new name."""
    project.write(old="---\ntags: [blue]\n---\n\n# Title\n\nalpha\n", plain="no heading\n", other="x\n")
    project.run()
    with project.database.reader() as connection:
        before = connection.execute("SELECT id FROM chunks ORDER BY id").fetchall()
    parsed.clear()
    (project.root / "new folder").mkdir()
    (project.root / "old.md").rename(project.root / "new folder" / "moved.md")
    (project.root / "plain.md").rename(project.root / "fancy.md")
    if single:
        project.update("new folder/moved.md", "fancy.md", "old.md", "plain.md")
    else:
        project.run()
    assert parsed == []
    assert project.paths() == ["fancy.md", "new folder/moved.md", "other.md"]
    assert project.find("moved") == ["new folder/moved.md"]
    assert project.find("alpha") == ["new folder/moved.md"]
    assert project.find("blue") == ["new folder/moved.md"]
    assert (project.find("fancy"), project.find("plain"), project.find("old")) == (["fancy.md"], [], [])
    with project.database.reader() as connection:
        assert connection.execute("SELECT id FROM chunks ORDER BY id").fetchall() == before
        fancy = state.document(connection, RelPath("fancy.md"))
        assert fancy is not None
        assert fancy.title == "fancy"
    project.check_consistent()


def test_rename__copies_and_twins(project: Project) -> None:
    """A copy is indexed beside its original; of two equal files one rename takes one set of rows."""
    project.write(a="same\n", b="same\n")
    project.run()
    project.write(c="same\n")
    project.run()
    assert project.find("same") == ["a.md", "b.md", "c.md"]
    (project.root / "a.md").rename(project.root / "x.md")
    (project.root / "b.md").rename(project.root / "y.md")
    project.write(z="same\n")
    project.run()
    assert project.find("same") == ["c.md", "x.md", "y.md", "z.md"]
    project.check_consistent()


def test_run__one_broken_file_fails_nothing(project: Project) -> None:
    """A file that is not UTF-8 is named with its reason and the rest is indexed; mended, it is indexed too."""
    project.write(a="alpha\n", bad=b"\xff\xfebad", c="gamma\n")
    check(project, 2, 0, failed=1)
    with project.database.reader() as connection:
        ((path, reason),) = state.unsupported(connection, limit=20)
        assert (path, "UTF-8" in reason) == ("bad.md", True)
        assert state.counts(connection).unsupported == 1
    check(project, 0, 0)
    project.write(bad="good\n")
    check(project, 1, 0)
    assert project.find("good") == ["bad.md"]
    project.write(bad=b"\xff")
    check(project, 0, 0, failed=1)
    assert project.find("good") == []


def test_run__too_large_is_unsupported(tmp_path: Path) -> None:
    """A document above the limit is listed with its reason."""
    project = Project(tmp_path / "root", tmp_path / "store")
    project.workspace = Workspace(project.root, SelectionRules(max_file_bytes=1024))
    project.reconciler = reconcile.Reconciler(
        project.workspace, settings=project.settings, hooks=rows.NoChunkHooks(), workers=1
    )
    project.write(a="x" * 1025, b="y" * 1024)
    project.run()
    assert project.find("y" * 1024) == ["b.md"]
    with project.database.reader() as connection:
        ((path, reason),) = state.unsupported(connection, limit=20)
    assert (path, "1025" in reason) == ("a.md", True)


def test_run__unreadable_file_keeps_its_rows_and_is_tried_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be read for a while stays as it was, is listed, and is read when it can be."""
    project.write(a="alpha\n", b="beta\n")
    project.run()
    project.write(a="gamma\n")
    original = NeighbourReader.read

    def refuse(self: NeighbourReader, path: RelPath, *, max_bytes: int) -> FileSnapshot:
        if path.value == "a.md":
            raise IoFailure("a.md may not be read.")
        return original(self, path, max_bytes=max_bytes)

    with monkeypatch.context() as patch:
        patch.setattr(NeighbourReader, "read", refuse)
        check(project, 0, 0, failed=1)
        check(project, 0, 0, failed=1)
        assert project.find("alpha") == ["a.md"]
        with project.database.reader() as connection:
            assert state.unsupported(connection, limit=20) == [("a.md", "a.md may not be read.")]
    check(project, 1, 0)
    assert project.find("gamma") == ["a.md"]


def test_run__file_that_breaks_its_transaction(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rows of one document cannot be written, the others are."""
    original = rows.write_document

    def refuse(
        connection: apsw.Connection, path: RelPath, facts: FileFacts, content: DocumentRows, *, hooks: ChunkHooks
    ) -> int:
        if path.value == "b.md":
            raise apsw.ConstraintError("no")
        return original(connection, path, facts, content, hooks=hooks)

    project.write(a="alpha\n", b="beta\n", c="gamma\n")
    with monkeypatch.context() as patch:
        patch.setattr(rows, "write_document", refuse)
        project.run()
        assert (project.find("alpha"), project.find("beta"), project.find("gamma")) == (["a.md"], [], ["c.md"])
    check(project, 1, 0)
    assert project.find("beta") == ["b.md"]


def test_run__folder_that_cannot_be_read_keeps_its_documents(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an unreadable folder held stays indexed; what is really gone beside it goes."""
    project.write(a="alpha\n", sub__b="beta\n", sub__deep__c="gamma\n")
    project.run()
    (project.root / "a.md").unlink()

    def blind(self: Workspace, prefix: str = "") -> TreeScan:
        del self, prefix
        return TreeScan(unreadable=[Skipped("sub", "it cannot be read")])

    monkeypatch.setattr(Workspace, "scan_documents", blind)
    project.run(Control(asked_for=True))
    assert project.paths() == ["a.md", "sub/b.md", "sub/deep/c.md"]  # The walk found nothing at all.
    project.run(Control(asked_for=False))
    assert project.paths() == ["sub/b.md", "sub/deep/c.md"]


def test_run__missing_root_drops_nothing(project: Project) -> None:
    """A root that is gone is an error, and the index stays."""
    project.write(a="alpha\n")
    project.run()
    project.root.rename(project.root.with_name("away"))
    with pytest.raises(IoFailure):
        project.run()
    assert project.paths() == ["a.md"]


def test_run__mass_deletion_is_held_back(project: Project) -> None:
    """A run that nobody asked for drops nothing where more than half would go; one that was asked for does."""
    for number in range(60):
        project.put(f"n{number}.md", f"note {number}\n")
    project.run()
    for number in range(31):
        (project.root / f"n{number}.md").unlink()
    tally = project.run(Control(asked_for=False))
    assert (tally.removed, tally.held_back) == (0, 31)
    assert len(project.paths()) == 60
    tally = project.run(Control(asked_for=True))
    assert (tally.removed, tally.held_back) == (31, 0)
    assert len(project.paths()) == 29


def test_run__many_renames_are_no_deletion(project: Project) -> None:
    """Renaming a folder with everything in it drops nothing."""
    for number in range(60):
        project.put(f"old/n{number}.md", f"note {number}\n")
    project.run()
    (project.root / "old").rename(project.root / "new")
    tally = project.run(Control(asked_for=False))
    assert (tally.changed, tally.removed, tally.held_back) == (60, 0, 0)
    assert all(path.startswith("new/") for path in project.paths())


def test_run__interrupted_goes_on_where_it_was(project: Project, parsed: list[str]) -> None:
    """A run that is stopped leaves whole documents, and the next one reads the rest only."""
    for number in range(40):
        project.put(f"n{number:02}.md", f"# Note {number}\n\ntext {number}\n")
    tally = project.run(Control(stop_after=10))
    assert tally.interrupted
    done = len(project.paths())
    assert 10 <= done < 40
    project.check_consistent()
    parsed.clear()
    assert not project.run().interrupted
    assert len(parsed) == 40 - done
    assert len(project.paths()) == 40


def test_run__urgent_documents_go_first(project: Project) -> None:
    """A document that somebody waits for is indexed in the middle of a run, and older content never wins."""
    for number in range(30):
        project.put(f"n{number:02}.md", f"note {number}\n")
    control = Control()
    seen: list[list[str]] = []
    control.waiting = [project.put("zz.md", "urgent\n")]
    control.on_written = lambda: seen.append(project.find("urgent"))
    project.run(control)
    assert seen[0] == ["zz.md"]
    assert len(project.paths()) == 31


def test_run__processes_give_the_same_rows(tmp_path: Path) -> None:
    """A tree that is parsed by several processes gives the same rows as one parsed here."""
    root = tmp_path / "root"
    single = Project(root, tmp_path / "one")
    for number in range(120):
        single.put(f"d{number % 7}/n{number}.md", f"# Note {number}\n\n" + f"Some text {number} about things. " * 150)
    single.put("bad.md", b"\xff")
    many = Project(root, tmp_path / "two", workers=2)
    assert single.run(Control()).changed == 120
    tally = many.run()
    assert (tally.changed, tally.failed) == (120, 1)
    assert many.dump() == single.dump()
    many.check_consistent()


def test_update__single_paths(project: Project) -> None:
    """Single documents are indexed, changed, dropped, and left out where the rules say so."""
    project.write(a="alpha\n")
    project.put(".gitignore", "hidden.md\n")
    project.write(hidden="secret\n")
    project.put("pic.png", b"x")
    assert project.update("a.md", "hidden.md", "pic.png", "gone.md").changed == 1
    assert project.paths() == ["a.md"]
    project.write(a="beta\n")
    project.update("a.md")
    assert project.find("beta") == ["a.md"]
    (project.root / "a.md").unlink()
    (project.root / "a.md").symlink_to(project.root / "hidden.md")
    assert project.update("a.md").removed == 1
    assert project.paths() == []


def test_run__dictionary_is_made_once(project: Project) -> None:
    """A first run over enough text gives the index a dictionary, which later runs keep."""
    for number in range(80):
        project.put(f"n{number}.md", f"# Note {number}\n\n" + f"Words about subject {number}. " * 200)
    project.run()
    with project.database.reader() as connection:
        dictionary = rows.read_dictionary(connection)
        assert len(dictionary) > 10_000
    project.put("later.md", "# Later\n\nmore words\n" * 200)
    project.run()
    with project.database.reader() as connection:
        assert rows.read_dictionary(connection) == dictionary
        ids = [int(row[0]) for row in connection.execute("SELECT id FROM chunks")]
        assert any("more words" in chunk.text for chunk in rows.read_chunks(connection, ids).values())


def test_rows__follow_the_settings(tmp_path: Path) -> None:
    """Chunk size and front matter are as the settings say."""
    project = Project(
        tmp_path / "root", tmp_path / "store", chunker=ChunkerSettings(max_chunk_bytes=256, include_front_matter=False)
    )
    project.write(a="---\nsecret: word\n---\n\n" + "text " * 200)
    project.run()
    assert project.find("secret") == []
    with project.database.reader() as connection:
        assert connection.execute("SELECT count(*) FROM chunks").get > 3
        assert connection.execute("SELECT metadata ->> 'secret' FROM documents").get == "word"


def test_update__long_document_goes_to_a_process(project: Project, parsed: list[str]) -> None:
    """A single long document is parsed outside of this process, so that searches are not kept waiting."""
    project.write(a="alpha\n")
    project.put("long.md", "# Long\n\n" + "Words that go on and on.\n\n" * 20_000)
    project.update("long.md")
    assert parsed == []
    assert project.find("Words") == ["long.md"]
    project.update("a.md")
    assert parsed == ["a.md"]
    project.check_consistent()
