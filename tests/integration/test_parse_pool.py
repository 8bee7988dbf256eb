"""Parser processes: bounded, replaceable, and never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.indexed_project import DEADLINE_S, wait_until
from tests.support.stdio_client import SOURCE

from local_vector_search_mcp.services import parse_pool
from local_vector_search_mcp.services.indexing import IndexingSettings, ParsedDocument, parse_documents
from local_vector_search_mcp.services.parse_pool import ParseJob, ParsePool

SETTINGS = IndexingSettings()


def jobs(count: int) -> list[list[ParseJob]]:
    return [[ParseJob(f"n{number}.md", f"# Note {number}\n\ntext\n".encode())] for number in range(count)]


def parse(pool: ParsePool, batches: list[list[ParseJob]]) -> dict[str, ParsedDocument]:
    return {parsed.path: parsed for answer in pool.parse(batches) for parsed in answer}


def test_pool__parses_as_this_process_does() -> None:
    """The rows from other processes are those of this one; each document comes back once."""
    batches = [*jobs(40), [ParseJob("bad.md", b"\xff")], []]
    with closing(ParsePool(SETTINGS, workers=2)) as pool:
        found = parse(pool, batches)
    here = parse_documents([(job.path, job.data) for batch in batches for job in batch], SETTINGS)
    assert found == {parsed.path: parsed for parsed in here}
    assert found["bad.md"].state == "unsupported"


def test_pool__takes_few_batches_ahead() -> None:
    """Batches are read only as they are needed, so that memory stays bounded."""
    taken: list[int] = []

    def batches() -> Iterator[list[ParseJob]]:
        for number, batch in enumerate(jobs(50)):
            taken.append(number)
            yield batch

    with closing(ParsePool(SETTINGS, workers=2)) as pool:
        answers = pool.parse(batches())
        next(answers)
        assert len(taken) <= 9
        assert sum(len(answer) for answer in answers) >= 49


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_pool__document_that_ends_the_process(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """A document that brings the parser down is reported; its neighbours and what was sent with it are parsed."""
    deadly = (
        "import sys; sys.path.insert(0, sys.argv[1]); import os\n"
        "from local_vector_search_mcp.services import indexing, parse_worker\n"
        "def deadly(batch, settings, original=indexing.parse_documents):\n"
        "    if any(b'DEADLY' in data for _, data in batch): os._exit(3)\n"
        "    return original(batch, settings)\n"
        "indexing.parse_documents = deadly\n"
        "parse_worker.main()\n"
    )
    monkeypatch.setattr(parse_pool, "_START", deadly)
    batch = [ParseJob("a.md", b"a\n"), ParseJob("b.md", b"DEADLY\n"), ParseJob("c.md", b"c\n")]
    with closing(ParsePool(SETTINGS, workers=1)) as pool:
        found = parse(pool, [*jobs(6)[:before], batch, *jobs(6)[before:]])
    assert found.pop("b.md") == ParsedDocument.failed("b.md", "parsing it ended the parser process")
    others = [job for batch in [batch, *jobs(6)] for job in batch if job.path != "b.md"]
    here = parse_documents([(job.path, job.data) for job in others], SETTINGS)
    assert found == {parsed.path: parsed for parsed in here}


def test_pool__batch_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is at work on one document for too long is ended, and the document reported."""
    monkeypatch.setattr(parse_pool, "_LONGEST_BATCH_S", 0.5)
    with closing(ParsePool(SETTINGS, workers=1)) as pool:
        found = parse(pool, [*jobs(1), [ParseJob("big.md", b"- x\n" * 2_000_000)], *jobs(3)[1:]])
    assert found.pop("big.md").reason == "parsing it ended the parser process"
    assert all(parsed.rows is not None for parsed in found.values())
    assert sorted(found) == ["n0.md", "n1.md", "n2.md"]


def test_pool__next_batch_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that lets no other thread run, and so takes nothing in, is ended as well."""
    stuck = (
        "import sys; sys.path.insert(0, sys.argv[1]); import re\n"
        "from local_vector_search_mcp.services import indexing, parse_worker\n"
        "def stuck(batch, settings, original=indexing.parse_documents):\n"
        "    if any(b'STUCK' in data for _, data in batch): re.match('(a+)+b', 'a' * 64)\n"
        "    return original(batch, settings)\n"
        "indexing.parse_documents = stuck\n"
        "parse_worker.main()\n"
    )
    monkeypatch.setattr(parse_pool, "_START", stuck)
    monkeypatch.setattr(parse_pool, "_LONGEST_BATCH_S", 2.0)
    long = [ParseJob("long.md", b"\xff" * 5_000_000)]
    found: dict[str, ParsedDocument] = {}
    begun = time.monotonic()
    with closing(ParsePool(SETTINGS, workers=1)) as pool:
        for answer in pool.parse([*jobs(2), [ParseJob("stuck.md", b"STUCK\n")], long, *jobs(3)[2:]]):
            found |= {parsed.path: parsed for parsed in answer}
            assert time.monotonic() - begun < DEADLINE_S, sorted(found)
    assert found.pop("stuck.md").reason == "parsing it ended the parser process"
    assert sorted(found) == ["long.md", "n0.md", "n1.md", "n2.md"]


def test_pool__without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started, documents are parsed in this one."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with closing(ParsePool(SETTINGS, workers=2)) as pool:
        assert len(parse(pool, jobs(5))) == 5


def test_pool__closes_in_the_middle_of_a_document() -> None:
    """Closing does not wait for a document that takes long."""
    with closing(ParsePool(SETTINGS, workers=1)) as pool:
        answers = pool.parse([*jobs(1), [ParseJob("big.md", b"- x\n" * 2_000_000)], *jobs(3)])
        assert next(answer for answer in answers if answer)
        # Whoever waits for the long document is not kept from what is due.
        assert next(answers) == []
        begun = time.monotonic()
    assert time.monotonic() - begun < 2.0


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "parsing"])
def test_worker__dies_with_its_parent(busy: bool) -> None:
    """When the parent is killed, no parser process is left, not even one in the middle of a document."""
    script = (
        "import sys, time\n"
        "from local_vector_search_mcp.services.parse_pool import ParsePool, ParseJob\n"
        "from local_vector_search_mcp.services.indexing import IndexingSettings\n"
        "pool = ParsePool(IndexingSettings(), workers=1)\n"
        "answers = pool.parse([[ParseJob('a.md', b'x')], [ParseJob('b.md', b'x')],"
        f" [ParseJob('c.md', b'- x\\n' * {5_000_000 if busy else 1})]])\n"
        "next(answer for answer in answers if answer)\n"
        "print(pool._workers[0]._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert _is_alive(worker)
    parent.send_signal(signal.SIGKILL)
    parent.wait(DEADLINE_S)
    parent.stdout.close()
    begun = time.monotonic()
    wait_until(lambda: not _is_alive(worker))
    assert time.monotonic() - begun < 2.0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        # A zombie that nobody has collected is dead.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True
