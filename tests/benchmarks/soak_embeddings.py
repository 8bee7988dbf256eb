"""Soak: an index of very many chunks whose embedding is cut off again and again; nothing is lost or done twice.

``python tests/benchmarks/soak_embeddings.py [--chunks 100000] [--rounds 8] [--seed 1]``. The real command and the real
server embed with the default model. In the middle of that they are ended: by the end of the server's input, SIGTERM,
SIGINT and SIGKILL in turn. After each end no vector is gone, no text is embedded that had a vector, and the database is
whole; at the end the index holds what one holds that was made without interruption. Progress must show both phases, on
a terminal and through the protocol. The most memory that embedding takes is measured for a hundredth, a tenth and all
of the chunks, and must level off. A rebuild in the end, cut off as well, embeds nothing.
"""

import argparse
import os
import pty
import random
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Final

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "src")]

from tests.benchmarks.trees import sentences  # noqa: E402
from tests.support.index_contents import index_contents  # noqa: E402
from tests.support.stdio_client import StdioClient, child_environment  # noqa: E402

from local_vector_search_mcp.index.embedding_text import embed_hash  # noqa: E402
from local_vector_search_mcp.index.generations import current_file, unfinished  # noqa: E402

_CHUNKS_PER_FILE: Final = 20
_HASH_BYTES: Final = 16
# What may be lost by an end: the step that was under way, and the one whose transaction was not complete.
_SURPLUS_MOST: Final = 256
_END_MOST_S: Final = 10.0
_POLL_S: Final = 0.05
_SHOWN_S: Final = 2.0
_STALLED_S: Final = 120.0
_MEMORY_BAR: Final = 1.25
# Batches of padded texts differ between runs, and with them the last bit of a number.
_TOLERANCE: Final = 1e-5
_PROGRESS: Final = re.compile(rb"(scan|parse|embed)\W[^\r\n]*?(\d+)/(\d+)")


def main() -> int:
    """Run; 1 where something was wrong. With ``--child`` the product itself, which notes what it embeds."""
    if sys.argv[1:2] == ["--child"]:
        return _product(Path(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=8, help="how often embedding is cut off")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # Where a shell has started this in the background, interrupts are ignored, and would be by all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="lvs-embeddings-") as folder:
        problems = _soak(Path(folder), options.chunks, options.rounds, random.Random(options.seed))
    for problem in problems[:20]:
        print(f"WRONG: {problem}")
    print("nothing was wrong" if not problems else f"{len(problems)} things were wrong", flush=True)
    return 1 if problems else 0


def _soak(folder: Path, chunks: int, rounds: int, rng: random.Random) -> list[str]:
    problems: list[str] = []
    peaks: list[float] = []
    for size in (chunks // 100, chunks // 10, chunks):
        root = folder / f"tree{size}"
        _write_tree(root, size // _CHUNKS_PER_FILE)
        whole = _Index(root, folder / f"whole{size}")
        peak, shown = _uninterrupted(whole, problems)
        peaks.append(peak)
        print(f"{size:,} chunks: {peak:.0f} MiB at most while embedding; shown last {shown}", flush=True)
    # Few chunks are embedded before anything of them is shown.
    _check_phases(shown, "the command", problems)
    if peaks[-1] > _MEMORY_BAR * peaks[-2]:
        problems.append(f"memory grows with the index: {', '.join(f'{peak:.0f}' for peak in peaks)} MiB")
    cut = _Index(root, folder / "cut")
    _interrupted(cut, whole.vectors, rounds, rng, problems)
    _compare(cut, whole, problems)
    _rebuilt(cut, rng, problems)
    _compare(cut, whole, problems)
    return problems


def _write_tree(root: Path, files: int) -> None:
    """Documents of twenty sections of the first level, so of as many chunks each; hardly a text stands twice."""
    pool = sentences()
    for number in range(files):
        dice = random.Random(number)
        file = root / f"folder{number // 100:03}" / f"note{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        parts = (
            f"# Part {part}\n\n{' '.join(dice.choices(pool, k=dice.randint(2, 6)))}\n"
            for part in range(_CHUNKS_PER_FILE)
        )
        file.write_text("\n".join(parts), encoding="utf-8")


# Runs


@dataclass(slots=True)
class _Index:
    """One index of a tree, and what was ever embedded for it."""

    root: Path
    storage: Path
    embedded: list[bytes] = field(default_factory=list[bytes])

    @property
    def log(self) -> Path:
        return self.storage.with_suffix(".log")

    def command(self, *options: str) -> list[str]:
        start = [sys.executable, __file__, "--child", str(self.log), "--project-root", str(self.root)]
        return [*start, "--storage-path", str(self.storage / "index.db"), *options]

    def connect(self) -> sqlite3.Connection:
        file = current_file(self.storage / "index.db")
        return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=30)

    def count(self, what: str) -> int:
        """A number from the database; 0 while there is none."""
        if not (self.storage / "index.db").exists():
            return 0
        try:
            with closing(self.connect()) as connection:
                return int(connection.execute(what).fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # The tables are being made.

    @property
    def vectors(self) -> int:
        return self.count("SELECT count(*) FROM vectors")

    def known(self) -> set[bytes]:
        """The texts that have a vector."""
        if not self.vectors:
            return set()
        with closing(self.connect()) as connection:
            return {
                row[0] for row in connection.execute("SELECT hash FROM vectors UNION SELECT hash FROM vector_cache")
            }

    def take_log(self) -> list[bytes]:
        """What was given to the model since the last time."""
        data = self.log.read_bytes() if self.log.exists() else b""
        self.log.unlink(missing_ok=True)
        taken = [data[start : start + _HASH_BYTES] for start in range(0, len(data), _HASH_BYTES)]
        self.embedded += taken
        return taken


class _Terminal:
    """A run of the command whose standard error is a terminal, and what that showed."""

    def __init__(self, command: Sequence[str]) -> None:
        self.shown = bytearray()
        self._ours, theirs = pty.openpty()
        environment = child_environment({"TERM": "xterm", "COLUMNS": "120"})
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment)
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def phases(self) -> dict[str, tuple[int, int]]:
        """The last numbers of each phase that was shown."""
        found = _PROGRESS.findall(bytes(self.shown))
        return {name.decode(): (int(done), int(total)) for name, done, total in found}

    def text(self) -> str:
        return self.shown.decode("utf-8", "replace")

    def close(self) -> None:
        self._reader.join(_END_MOST_S)
        os.close(self._ours)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65_536)
            except OSError:  # So Linux says that nobody holds the other end any more.
                return
            if not data:
                return
            self.shown += data


def _uninterrupted(index: _Index, problems: list[str]) -> tuple[float, dict[str, tuple[int, int]]]:
    """Make an index in one go; the most MiB that its process had from the first vector on, and what was shown."""
    run = _Terminal(index.command("--reindex"))
    peak, embedding = 0.0, False
    while run.process.poll() is None:
        if not embedding and index.vectors:
            embedding = True
            _forget_peak(run.process.pid)
        if embedding:
            peak = max(peak, _peak_mib(run.process.pid))
        time.sleep(_POLL_S)
    run.close()
    index.take_log()
    if run.process.returncode != 0:
        problems.append(f"--reindex ended with {run.process.returncode}: {bytes(run.shown[-500:])!r}")
    _check_whole(index, "made in one go", problems)
    return peak, run.phases()


def _interrupted(index: _Index, wanted: int, rounds: int, rng: random.Random, problems: list[str]) -> None:
    """Make an index of ``wanted`` vectors that is cut off ``rounds`` times, then to the end."""
    for number, (way, start) in zip(range(rounds), cycle(_WAYS)):
        before, known = index.vectors, index.known()
        share = rng.uniform(0.3, 1.0) / (rounds - number + 1)
        goal = before + int((wanted - before) * share)
        began = time.monotonic()
        seen, ended_s = start(index, goal, problems, number)
        what = f"round {number}, {way}"
        after = index.vectors
        texts = index.take_log()
        print(
            f"{what}: {before:,} → {after:,} of {wanted:,} vectors, {len(texts):,} texts given to the model,"
            f" {time.monotonic() - began:.0f} s, ended in {ended_s:.2f} s",
            flush=True,
        )
        if after < max(before, seen):
            problems.append(f"{what}: {max(before, seen)} vectors before the end, {after} after it")
        again = known & set(texts)
        if again:
            problems.append(f"{what}: {len(again)} texts were embedded that had a vector")
        if len(texts) - (after - before) > _SURPLUS_MOST:
            problems.append(f"{what}: {len(texts)} texts were embedded for {after - before} vectors")
        _check_whole(index, what, problems)
    last = subprocess.run(index.command("--reindex"), env=child_environment(), capture_output=True, text=True)
    index.take_log()
    if last.returncode != 0:
        problems.append(f"the last --reindex ended with {last.returncode}: {last.stderr[-500:]}")
    surplus = len(index.embedded) - len(set(index.embedded))
    print(f"{len(index.embedded):,} texts given to the model, {surplus:,} of them twice, in {rounds} rounds and a last")
    if surplus > rounds * _SURPLUS_MOST:
        problems.append(f"{surplus} texts were embedded twice in {rounds} rounds")


def _rebuilt(index: _Index, rng: random.Random, problems: list[str]) -> None:
    """Rebuild an index, killed and gone on with: every text has a vector already, so the model is not asked."""
    kills = sum(_kill_rebuild(index, rng, *options) for options in (("--force",), (), ()))
    last = subprocess.run(index.command("--reindex"), env=child_environment(), capture_output=True, text=True)
    texts = index.take_log()
    print(f"rebuilt, killed {kills} times: {len(texts)} texts given to the model", flush=True)
    if last.returncode != 0:
        problems.append(f"--reindex after a rebuild that was cut off: {last.returncode} {last.stderr[-500:]}")
    if current_file(index.storage / "index.db").name == "index.db":
        problems.append("the rebuild made no new generation")
    if texts:
        problems.append(f"a rebuild embedded {len(texts)} texts that had a vector")
    _check_whole(index, "rebuilt", problems)


def _kill_rebuild(index: _Index, rng: random.Random, *options: str) -> bool:
    """Begin a rebuild or go on with it, and kill it; False where it came to its end before."""
    run = subprocess.Popen(index.command("--reindex", *options), env=child_environment(), stdout=subprocess.PIPE)
    until = time.monotonic() + _STALLED_S
    while unfinished(index.storage / "index.db") is None and run.poll() is None and time.monotonic() < until:
        time.sleep(_POLL_S)
    time.sleep(rng.uniform(0.5, 4.0))  # The random moment is what this is about.
    killed = run.poll() is None
    run.kill()
    run.communicate()
    return killed


def _command_until(number: signal.Signals) -> Callable[[_Index, int, list[str], int], tuple[int, float]]:
    def run(index: _Index, goal: int, problems: list[str], round_number: int) -> tuple[int, float]:
        terminal = _Terminal(index.command("--reindex"))
        seen = _watch(index, goal, terminal.process, lambda: time.sleep(_POLL_S), terminal.text)
        until = time.monotonic() + _SHOWN_S
        while "embed" not in terminal.phases() and time.monotonic() < until:
            time.sleep(_POLL_S)
        if "embed" not in terminal.phases():
            problems.append(f"round {round_number}: the command showed {terminal.phases()} while it embedded")
        terminal.process.send_signal(number)
        ended_s = _ended(terminal.process, problems)
        terminal.close()
        return seen, ended_s

    return run


def _server_until(end: Callable[[StdioClient], None]) -> Callable[[_Index, int, list[str], int], tuple[int, float]]:
    def run(index: _Index, goal: int, problems: list[str], round_number: int) -> tuple[int, float]:
        client = StdioClient(index.command(), timeout_s=60)
        client.initialize()
        begins_anew = index.vectors == 0
        meta = {"progressToken": "soak"}
        client.send("tools/call", {"name": "kb_reindex", "arguments": {"wait": True}, "_meta": meta})
        states: dict[str, tuple[int, int]] = {}

        def look() -> None:
            indexing = client.value("kb_status")["indexing"]
            if "phase" in indexing:
                states[indexing["phase"]] = (indexing.get("processedFiles", 0), indexing.get("totalFiles", 0))
            time.sleep(_POLL_S)

        seen = _watch(index, goal, client.process, look, client.errors)
        found = client.value("kb_search", {"query": "boundary layer", "mode": "hybrid"})
        if not found["results"] or not any("await" in warning for warning in found.get("warnings", ())):
            problems.append(
                f"round {round_number}: a search meanwhile gave {len(found['results'])} results"
                f" and the warnings {found.get('warnings')}"
            )
        told = {
            note["params"]["message"]: (int(note["params"]["progress"]), int(note["params"].get("total") or 0))
            for note in client.notifications
            if note["method"] == "notifications/progress"
        }
        if begins_anew:
            _check_phases(states, "kb_status", problems)
            _check_phases(told, "notifications", problems)
        end(client)
        ended_s = _ended(client.process, problems)
        if "Traceback" in client.errors():
            problems.append(f"round {round_number}: {client.errors()[-2000:]}")
        return seen, ended_s

    return run


def _close_input(client: StdioClient) -> None:
    assert client.process.stdin is not None
    client.process.stdin.close()


_WAYS: Final = (
    ("the server's input ends", _server_until(_close_input)),
    ("SIGKILL of the command", _command_until(signal.SIGKILL)),
    ("SIGTERM of the command", _command_until(signal.SIGTERM)),
    ("SIGINT of the command", _command_until(signal.SIGINT)),
    ("SIGKILL of the server", _server_until(lambda client: client.process.send_signal(signal.SIGKILL))),
    ("SIGTERM of the server", _server_until(lambda client: client.process.send_signal(signal.SIGTERM))),
)


def _watch(
    index: _Index,
    goal: int,
    process: "subprocess.Popen[bytes]",
    between: Callable[[], None],
    said: Callable[[], str],
) -> int:
    """Wait until an index has so many vectors; how many were seen last.

    Raises:
        TimeoutError: The process has ended, or nothing has moved for two minutes.
    """
    state, moved = (-1, -1), time.monotonic()
    while (seen := index.vectors) < goal:
        now = (seen, index.count("SELECT count(*) FROM documents"))
        if now != state:
            state, moved = now, time.monotonic()
        if process.poll() is not None or time.monotonic() - moved > _STALLED_S:
            raise TimeoutError(f"{seen} of {goal} vectors; end: {process.poll()}; it said {said()[-2000:]}")
        between()
    return seen


def _ended(process: "subprocess.Popen[bytes]", problems: list[str]) -> float:
    began = time.monotonic()
    try:
        process.wait(_END_MOST_S)
    except subprocess.TimeoutExpired:
        problems.append(f"a process did not end in {_END_MOST_S:.0f} s")
        process.kill()
        process.wait()
    return time.monotonic() - began


# Checks


def _check_phases(seen: dict[str, tuple[int, int]], where: str, problems: list[str]) -> None:
    """Both phases must have been shown, each with what is done of how much."""
    for phase in ("parse", "embed"):
        done, total = seen.get(phase, (0, 0))
        if not 0 < done <= total:
            problems.append(f"{where} showed {seen}: nothing useful of phase {phase}")


def _check_whole(index: _Index, what: str, problems: list[str]) -> None:
    """The database is sound, and what it says of vectors is so."""
    with closing(index.connect()) as connection:
        sound = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if sound != "ok":
            problems.append(f"{what}: {sound}")
        odd = connection.execute(
            "SELECT count(*) FROM chunks AS c LEFT JOIN vectors AS v ON v.chunk_id = c.id"
            " WHERE (c.embed_state = 1) <> (v.chunk_id IS NOT NULL) OR v.hash <> c.embed_hash"
        ).fetchone()[0]
        lost = connection.execute(
            "SELECT count(*) FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks)"
        ).fetchone()
        if odd or lost[0]:
            problems.append(f"{what}: {odd} chunks and their vectors do not agree, {lost[0]} vectors have no chunk")


def _compare(cut: _Index, whole: _Index, problems: list[str]) -> None:
    """The interrupted index holds what the other one holds: documents, chunks, and a vector for every text."""
    ours, theirs = (index_contents(current_file(index.storage / "index.db")) for index in (cut, whole))
    problems += [f"the indexes differ in {name}" for name in theirs if ours[name] != theirs[name]]
    mine, other = _vectors(cut), _vectors(whole)
    if mine.keys() != other.keys():
        problems.append(f"{len(mine.keys() ^ other.keys())} texts have a vector in one index only")
    worst = max((_distance(mine[key], other[key]) for key in mine.keys() & other.keys()), default=0.0)
    if worst > _TOLERANCE:
        problems.append(f"a number of a vector differs by {worst}")
    left = cut.count("SELECT count(*) FROM chunks WHERE embed_state <> 1")
    if left:
        problems.append(f"{left} chunks have no vector at the end")
    print(f"{len(mine):,} texts, largest difference of a number of their vectors {worst:.1g}")


def _vectors(index: _Index) -> dict[bytes, bytes]:
    with closing(index.connect()) as connection:
        return dict(connection.execute("SELECT hash, vector FROM vectors"))


def _distance(one: bytes, other: bytes) -> float:
    if one == other:
        return 0.0
    numbers = [struct.unpack(f"<{len(vector) // 4}f", vector) for vector in (one, other)]
    return max((abs(a - b) for a, b in zip(*numbers, strict=True)), default=0.0)


def _forget_peak(pid: int) -> None:
    """Let the most memory that a process had count from now on, where the system allows it."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def _peak_mib(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0  # It has just ended.
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


# The product


def _product(log: Path, arguments: Sequence[str]) -> int:
    """The command line as it is, except that the hash of each text is noted before the model is given it."""
    from local_vector_search_mcp.cli.main import run
    from local_vector_search_mcp.embeddings.local import StaticProvider
    from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure

    embed = StaticProvider.embed_documents
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def noted(self: StaticProvider, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
        os.write(fd, b"".join(map(embed_hash, texts)))
        return embed(self, texts)

    StaticProvider.embed_documents = noted  # type: ignore[method-assign]
    return run(list(arguments))


if __name__ == "__main__":
    sys.exit(main())
