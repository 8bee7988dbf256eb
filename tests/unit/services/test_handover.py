"""Letters and board between processes come back as they were sent, and nothing broken stops anybody."""

from pathlib import Path

import pytest

from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.handover import Board, BoardEntry, Letter, Mailbox
from local_vector_search_mcp.services.job_state import RunOutcome, RunPhase, RunRequest, RunResult, RunScope

PATHS = (RelPath("a.md"), RelPath("ü/b c.md"))
RUN = RunRequest(scope=RunScope.ALL, force=True, asked=True)


def test_mailbox__letters_are_collected_once(tmp_path: Path) -> None:
    """Every letter is read once, whatever it holds."""
    box = Mailbox(tmp_path / "mail")
    letters = [
        Letter(paths=PATHS),
        Letter(rescan=True),
        Letter(run_id="r1", run=RUN),
        Letter(paths=PATHS[:1], rescan=True, run_id="r2", run=RunRequest()),
    ]
    assert box.collect() == []
    assert all(box.send(letter) for letter in letters)
    found = box.collect()
    assert len(found) == 4
    assert all(letter in found for letter in letters)
    assert box.collect() == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"x"', "{}", '{"paths": 3, "rescan": true}', '{"paths": ["../x", "ok.md"]}', "\x00" * 99]
)
def test_mailbox__broken_letter_asks_for_a_look(tmp_path: Path, text: str) -> None:
    """A letter that cannot be understood makes the holder look at everything; what can be read of it counts."""
    box = Mailbox(tmp_path)
    (tmp_path / "one.letter").write_text(text)
    (tmp_path / "half.tmp").write_text("x")
    (letter,) = box.collect()
    assert letter.rescan
    assert letter.run is None
    assert not (tmp_path / "one.letter").exists()


@pytest.mark.parametrize("scope", ["none", "", None, 3])
def test_mailbox__unknown_run_is_no_run(tmp_path: Path, scope: object) -> None:
    """A run with a scope that nobody knows is not carried out."""
    import json

    (tmp_path / "one.letter").write_text(json.dumps({"paths": ["a.md"], "rescan": False, "runId": "x", "scope": scope}))
    assert Mailbox(tmp_path).collect() == [Letter(paths=PATHS[:1])]


def test_mailbox__cannot_be_written(tmp_path: Path) -> None:
    """Where nothing can be left, the sender is told."""
    (tmp_path / "mail").write_text("in the way")
    assert not Mailbox(tmp_path / "mail").send(Letter(paths=PATHS))


def test_board__shows_what_was_put(tmp_path: Path) -> None:
    """The entry comes back whole; runs are found under every name."""
    board = Board(tmp_path / "indexing.json")
    assert board.read() == BoardEntry()
    result = RunResult(
        run_id="r1",
        outcome=RunOutcome.SUCCEEDED,
        changed=1,
        removed=2,
        failed=3,
        seconds=0.5,
        ended_at="t",
        message="m",
    )
    entry = BoardEntry(
        run_id="r2", force=True, phase=RunPhase.EMBED, processed=1, total=2, started_at="s", embedding_error="e",
        warnings=("w",), results=(("r1", result),), aliases=(("other", "r1"),),
    )  # fmt: skip
    board.put(entry)
    assert board.read() == entry
    assert board.read().result_of("r1") == result
    assert board.read().result_of("other") == result
    assert board.read().result_of("r2") is None
    assert [file.name for file in tmp_path.iterdir()] == ["indexing.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"runId": 1}', '{"runId": "x", "force": true, "phase": "dance"}'])
def test_board__broken(tmp_path: Path, text: str) -> None:
    """A board that cannot be read shows nothing."""
    (tmp_path / "indexing.json").write_text(text)
    assert Board(tmp_path / "indexing.json").read() == BoardEntry()


def test_board__cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A board that cannot be written is no reason to stop."""
    Board(tmp_path / "missing" / "indexing.json").put(BoardEntry())
    assert "could not be shown" in caplog.text
