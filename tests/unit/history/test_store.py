"""HistoryStore: what is recorded comes back, newest first, as long as it is kept."""

import os
import stat
import threading
from pathlib import Path

import apsw
import pytest

from local_vector_search_mcp.errors import Busy, IoFailure, KnowledgeBaseError, NotFound
from local_vector_search_mcp.history import database
from local_vector_search_mcp.history.changes import ChangeState, FileChange
from local_vector_search_mcp.history.store import HistorySettings, HistoryStore
from local_vector_search_mcp.relpath import RelPath

P = RelPath
DAY_NS = 86_400 * 10**9


class Clock:
    """A clock that the test moves; nanoseconds."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * 10**9

    def __call__(self) -> int:
        return self.now


def edit(path: str, before: bytes = b"old text", after: bytes = b"new text") -> FileChange:
    return FileChange(path=P(path), before=before, after=after)


def record(store: HistoryStore, *files: FileChange, summary: str = "one line", undoes: str | None = None) -> str:
    change_id = store.begin(tool="kb_patch", summary=summary, files=files or (edit("a.md"),), undoes=undoes)
    store.finish(change_id)
    return change_id


def test_record__comes_back_whole(tmp_path: Path) -> None:
    """Every part of a change, its bytes included, after the file was closed and opened again."""
    clock = Clock()
    files = (
        edit("a.md", b"\xef\xbb\xbfold\r\n\0", b"new"),
        FileChange(path=P("n/new.md"), before=None, after=b"made"),
        FileChange(path=P("gone.md"), before=b"was", after=None),
        FileChange(path=P("x/moved.md"), previous_path=P("moved.md"), before=b"[a](b)", after=b"[a](../b)"),
        FileChange(path=P("x/same.md"), previous_path=P("same.md"), before=b"same", after=b"same"),
        FileChange(path=P("x/pic.png"), previous_path=P("pic.png"), before=b"png", after=b"png"),
        FileChange(path=P("book.pdf"), before=b"old pdf", after=b"new pdf"),
    )
    store = HistoryStore(tmp_path / "history.db", clock=clock)
    change_id = record(store, *files, summary="Zeile ü", undoes="earlier")
    store.close()
    store = HistoryStore(tmp_path / "history.db")
    change = store.get(change_id)
    assert (change.tool, change.summary, change.undoes, change.state) == (
        "kb_patch",
        "Zeile ü",
        "earlier",
        ChangeState.APPLIED,
    )
    assert change.time == "2023-11-14T22:13:20Z"
    assert [(file.path, file.previous_path, file.previous_hash, file.new_hash) for file in change.files] == [
        (file.path, file.previous_path, file.previous_hash, file.new_hash) for file in files
    ]
    assert [(each.before, each.after) for each in store.images(change_id)] == [
        (b"\xef\xbb\xbfold\r\n\0", b"new"),
        (None, b"made"),
        (b"was", None),
        (b"[a](b)", b"[a](../b)"),
        (None, None),
        (None, None),
        (b"old pdf", None),
    ]
    assert [each.keeps_bytes for each in store.images(change_id)] == [False] * 4 + [True] * 2 + [False]


@pytest.mark.parametrize(
    "arguments",
    [
        {"before": None, "after": None},
        {"before": None, "after": b"", "previous_path": P("b.md")},
        {"before": b"", "after": None, "previous_path": P("b.md")},
    ],
)
def test_file_change__contradictions(arguments: dict[str, object]) -> None:
    """A change of nothing, and a rename without a file, are mistakes."""
    with pytest.raises(ValueError):
        FileChange(path=P("a.md"), **arguments)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_list__newest_first_and_paged(tmp_path: Path) -> None:
    """Pages join to the whole list, also when changes of the same moment meet and the last of a page goes."""
    store = HistoryStore(tmp_path / "history.db", clock=Clock())
    ids = [record(store, edit(f"{number}.md")) for number in range(7)]
    first = store.list(limit=3)
    assert [change.change_id for change in first] == ids[:3:-1]
    store.drop(first[-1].change_id)
    rest = store.list(before=first[-1].sequence, limit=100)
    assert [change.change_id for change in rest] == ids[3::-1]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.md", [0]),
        ("n/b.md", [1, 3]),
        ("old/b.md", [3]),
        ("n", [1, 2, 3]),
        ("n/c.md", [2]),
        ("b.md", []),
        ("n/b", []),
        ("N", []),
    ],
)
def test_list__by_path(tmp_path: Path, path: str, expected: list[int]) -> None:
    """A file under each of its names, or all files of a folder."""
    store = HistoryStore(tmp_path / "history.db")
    moved = FileChange(path=P("n/b.md"), previous_path=P("old/b.md"), before=b"x", after=b"x")
    ids = [record(store, *files) for files in ([edit("a.md")], [edit("n/b.md")], [edit("n/c.md")], [moved])]
    assert [change.change_id for change in store.list(path=P(path))] == [ids[place] for place in reversed(expected)]


def test_pending__is_not_listed(tmp_path: Path) -> None:
    """A change that is under way is known as pending, and listed only when it is done."""
    store = HistoryStore(tmp_path / "history.db")
    change_id = store.begin(tool="kb_patch", summary="", files=[edit("a.md")])
    assert store.has_pending()
    assert [change.change_id for change in store.pending()] == [change_id]
    assert store.list() == ()
    with pytest.raises(NotFound):
        store.get(change_id)
    store.finish(change_id)
    assert not store.has_pending()
    assert len(store.list()) == 1


def test_interrupt__keeps_what_is_left(tmp_path: Path) -> None:
    """A change that was cut off is listed with the files that it still concerns, and their bytes."""
    store = HistoryStore(tmp_path / "history.db")
    change_id = store.begin(tool="kb_move", summary="", files=[edit("a.md"), edit("b.md", b"kept")])
    store.interrupt(change_id, [file for file in store.pending()[0].files if file.path == P("b.md")])
    change = store.get(change_id)
    assert (change.state, [file.path.value for file in change.files]) == (ChangeState.INTERRUPTED, ["b.md"])
    assert [each.before for each in store.images(change_id)] == [b"kept"]


def test_disabled__keeps_nothing_afterwards(tmp_path: Path) -> None:
    """Without history the record stands only while the change is under way."""
    store = HistoryStore(tmp_path / "history.db", HistorySettings(enabled=False))
    change_id = store.begin(tool="kb_patch", summary="", files=[edit("a.md")])
    assert store.has_pending()
    store.finish(change_id)
    assert store.list() == ()
    assert store.total_bytes() == 0


def noise(number: int) -> bytes:
    return os.urandom(1000) + bytes([number])


def test_retention__by_size(tmp_path: Path) -> None:
    """The oldest go until the rest fits; the newest stays, however large."""
    store = HistoryStore(tmp_path / "history.db", HistorySettings(max_bytes=5_000))
    ids = [record(store, edit(f"{number}.md", noise(number), b"")) for number in range(10)]
    assert [change.change_id for change in store.list()] == ids[:5:-1]
    assert store.total_bytes() <= 5_000
    large = record(store, edit("large.md", os.urandom(50_000), b""))
    assert [change.change_id for change in store.list()] == [large]


def test_retention__by_age(tmp_path: Path) -> None:
    """What is older than the limit goes when the next change is recorded."""
    clock = Clock()
    store = HistoryStore(tmp_path / "history.db", HistorySettings(max_age_days=90), clock=clock)
    record(store)
    clock.now += 50 * DAY_NS
    middle = record(store)
    clock.now += 41 * DAY_NS
    newest = record(store)
    assert [change.change_id for change in store.list()] == [newest, middle]


def test_retention__spares_pending(tmp_path: Path) -> None:
    """A change that waits for recovery is kept, whatever its age and size."""
    clock = Clock()
    store = HistoryStore(tmp_path / "history.db", HistorySettings(max_bytes=10, max_age_days=1), clock=clock)
    pending = store.begin(tool="kb_patch", summary="", files=[edit("a.md", noise(1), b"")])
    clock.now += 10 * DAY_NS
    record(store)
    assert [change.change_id for change in store.pending()] == [pending]
    assert store.images(pending)[0].before is not None


def test_retention__gives_room_back(tmp_path: Path) -> None:
    """What is dropped leaves the file, too, and its text cannot be found in it."""
    store = HistoryStore(tmp_path / "history.db", HistorySettings(max_bytes=1_000))
    secret = os.urandom(2_000_000)
    record(store, edit("a.md", secret, b""))
    record(store)
    store.close()
    stored = (tmp_path / "history.db").read_bytes()
    assert len(stored) < 1_000_000
    assert secret[1_000:1_100] not in stored


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_file__is_private(tmp_path: Path) -> None:
    """Only the user can read the database and its side files, in a folder made for it alone."""
    store = HistoryStore(tmp_path / "storage" / "history.db")
    record(store)
    for path in (tmp_path / "storage").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "storage").stat().st_mode) == 0o700


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege on Windows")
def test_file__link_in_its_place(tmp_path: Path) -> None:
    """A link where the database should be is refused, and what it leads to stays."""
    (tmp_path / "elsewhere").write_text("text")
    (tmp_path / "history.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IoFailure):
        record(HistoryStore(tmp_path / "history.db"))
    assert (tmp_path / "elsewhere").read_text() == "text"


def test_reading__makes_no_file(tmp_path: Path) -> None:
    """Asking for a history that does not exist answers and makes nothing."""
    store = HistoryStore(tmp_path / "none" / "history.db")
    assert (store.list(), store.pending(), store.has_pending(), store.total_bytes()) == ((), (), False, 0)
    with pytest.raises(NotFound, match="no change 'x'"):
        store.get("x")
    with pytest.raises(NotFound):
        store.images("x")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_file__damaged(tmp_path: Path, content: bytes) -> None:
    """A damaged file is told with what to do, and stays as it is."""
    (tmp_path / "history.db").write_bytes(content)
    with pytest.raises(IoFailure, match="damaged"):
        record(HistoryStore(tmp_path / "history.db"))
    assert (tmp_path / "history.db").read_bytes() == content


def test_file__of_another_version(tmp_path: Path) -> None:
    """A format of the future is not touched."""
    connection = apsw.Connection(str(tmp_path / "history.db"))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(IoFailure, match="another version"):
        record(HistoryStore(tmp_path / "history.db"))


def test_file__read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a read-only system the history is read as it stands, and cannot be added to."""
    store = HistoryStore(tmp_path / "history.db")
    change_id = record(store)
    store.close()
    monkeypatch.setattr(database, "_make_private", lambda path: False)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    store = HistoryStore(tmp_path / "history.db")
    assert store.get(change_id).files[0].path == P("a.md")
    with pytest.raises(IoFailure, match="read-only"):
        record(store)


def test_busy__is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that another process holds for too long is busy, and nothing is recorded."""
    store = HistoryStore(tmp_path / "history.db")
    record(store)
    monkeypatch.setattr(database, "_BUSY_MS", 20)
    other = apsw.Connection(str(tmp_path / "history.db"))
    other.execute("BEGIN IMMEDIATE")
    late = HistoryStore(tmp_path / "history.db")
    with pytest.raises(Busy):
        record(late)
    other.execute("ROLLBACK")
    other.close()
    record(late)
    assert len(store.list()) == 2


SQLITE_ERRORS = sorted(
    (each for each in vars(apsw).values() if isinstance(each, type) and issubclass(each, apsw.Error)), key=str
)


@pytest.mark.parametrize("error", SQLITE_ERRORS)
def test_errors__every_one_of_sqlites(error: type[apsw.Error]) -> None:
    """Whatever SQLite raises becomes an error that a caller knows; only a lock is busy."""
    told = database.as_failure(error("text"), Path("history.db"))
    assert isinstance(told, Busy) is (error in (apsw.BusyError, apsw.LockedError))
    assert isinstance(told, Busy) or (isinstance(told, IoFailure) and "othing was changed" in told.message)


def test_paths_in_the_file__are_not_believed(tmp_path: Path) -> None:
    """A record that somebody has forged to lead outside is passed over."""
    store = HistoryStore(tmp_path / "history.db")
    change_id = record(store, edit("a.md"), edit("b.md"))
    store.close()
    connection = apsw.Connection(str(tmp_path / "history.db"))
    connection.execute("UPDATE files SET path = '../../etc/passwd' WHERE ordinal = 0")
    connection.close()
    store = HistoryStore(tmp_path / "history.db")
    assert [file.path.value for file in store.get(change_id).files] == ["b.md"]
    assert [each.file.path.value for each in store.images(change_id)] == ["b.md"]


def test_threads__and_objects_together(tmp_path: Path) -> None:
    """Several threads over two openings of one file lose nothing."""
    stores = [HistoryStore(tmp_path / "history.db") for _ in range(2)]
    failures: list[KnowledgeBaseError] = []

    def work(store: HistoryStore, number: int) -> None:
        try:
            for step in range(10):
                record(store, edit(f"{number}-{step}.md"))
                store.list(limit=5)
        except KnowledgeBaseError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(stores[number % 2], number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert failures == []
    assert len(stores[0].list(limit=100)) == 40
    assert len({change.change_id for change in stores[1].list(limit=100)}) == 40


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder with open files")
def test_file__moved_away_and_back(tmp_path: Path) -> None:
    """A file that is moved away with its folder is left at the next change, and found again when it is back."""
    folder, away = tmp_path / "storage", tmp_path / "away"
    store = HistoryStore(folder / "history.db")
    first = record(store)
    folder.rename(away)
    assert not store.has_pending()
    assert store.list(limit=10) == ()
    with pytest.raises(NotFound):
        store.get(first)
    second = record(store)
    assert [change.change_id for change in store.list(limit=10)] == [second]
    other = HistoryStore(folder / "history.db")
    assert other.get(second).change_id == second
    other.close()
    folder.rename(tmp_path / "second")
    away.rename(folder)
    assert [change.change_id for change in store.list(limit=10)] == [first]
    store.close()
    left = HistoryStore(tmp_path / "second" / "history.db")
    assert [change.change_id for change in left.list(limit=10)] == [second]
    left.close()
