"""Stress: servers, an editor, git and the command line on one tree of a few thousand documents; one index at the end.

``python tests/benchmarks/stress_sync.py [--seconds 300] [--seed 1] [--files 3000]``. Two servers patch, create, move
and search, an editor saves in every way that editors know, ``git checkout`` and ``git stash`` go to and fro between two
branches that differ in a thousand files, and the command line indexes now and then. Nobody asks for a run at the end:
the watchers alone must have led to the index that is built from nothing.

``--latency`` measures instead: save to searchable in 10,000 documents, and how soon and how well a second server takes
over from one that is killed in the middle of a run.
"""

import argparse
import multiprocessing
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "src")]

from tests.benchmarks.support import Timing  # noqa: E402
from tests.benchmarks.trees import fill_tree  # noqa: E402
from tests.support.editor_saves import documents, edit  # noqa: E402
from tests.support.index_contents import index_contents  # noqa: E402
from tests.support.stdio_client import StdioClient, child_environment, server_command  # noqa: E402

from local_vector_search_mcp.digests import xxh64_hex  # noqa: E402
from local_vector_search_mcp.index.generations import current_file  # noqa: E402

_OPTIONS = ("--scope", "full", "--embedding-provider", "none")
_STORAGE = ".local-vector-search-mcp"
_DIFFERENT = 1_000
_SETTLE_S, _QUIET_S = 180.0, 3.0
_MOST_WAL = 1024 * 1024
_TRIMMED_S = 6.0  # So long after its last work the holder has emptied the log.
_ALLOWED = {"CONFLICT", "BUSY"}
# The checkout or the editor was there first.
_TAKEN_AWAY = {"NOT_FOUND", "POINTER_NOT_FOUND", "ALREADY_EXISTS"}
_LATENCY_FILES, _SAVES, _KILLS = 10_000, 40, 3


def main() -> int:
    """Run until the time is up; 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=0, help="documents; 3000, or 10000 with --latency")
    parser.add_argument("--latency", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lvs-stress-") as folder:
        root = Path(folder) / "project"
        root.mkdir()
        if options.latency:
            problems = _latency(root, options.files or _LATENCY_FILES, options.seed)
        else:
            problems = _stress(root, options.files or 3_000, options.seconds, options.seed)
    for problem in problems[:20]:
        print(f"WRONG: {problem}")
    print("nothing was wrong" if not problems else f"{len(problems)} things were wrong", flush=True)
    return 1 if problems else 0


# Stress


class _Notes:
    """What everybody did and what went wrong, for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.outcomes: Counter[str] = Counter()
        self.problems: list[str] = []
        self.slowest: dict[str, float] = {}

    def done(self, what: str, seconds: float = 0.0) -> None:
        with self._lock:
            self.outcomes[what] += 1
            tool = what.partition(" ")[0]
            self.slowest[tool] = max(self.slowest.get(tool, 0.0), round(seconds, 2))

    def problem(self, what: str) -> None:
        with self._lock:
            self.problems.append(what)


def _stress(root: Path, files: int, seconds: float, seed: int) -> list[str]:
    fill_tree(root, files)
    _make_branches(root, random.Random(seed))
    _index(root)
    notes = _Notes()
    clients = [StdioClient(server_command(root, *_OPTIONS), timeout_s=60) for _ in range(2)]
    try:
        for client in clients:
            client.initialize()
        until = time.monotonic() + seconds
        editor = multiprocessing.get_context("spawn").Process(target=edit, args=(root, seed, seconds))
        work = [
            *((_agent, (client, root, random.Random(seed * 100 + n))) for n, client in enumerate(clients)),
            (_git_loop, (root, random.Random(seed * 100 + 50))),
            (_command_line, (root, random.Random(seed * 100 + 60))),
        ]
        threads = [threading.Thread(target=_guarded, args=(one, rest, until, notes)) for one, rest in work]
        editor.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        editor.join()
        if editor.exitcode != 0:
            notes.problem(f"the editor ended with {editor.exitcode}")
        print(dict(sorted(notes.outcomes.items())), f"slowest in seconds {notes.slowest}", flush=True)
        settled = _settle(clients)
        print(f"idle {settled:.1f} s after the last change", flush=True)
        time.sleep(_TRIMMED_S)
        notes.problems += _compare(root)
        for client in clients:
            if "database is locked" in client.errors() or "Traceback" in client.errors():
                notes.problem(client.errors()[-3000:])
    finally:
        for client in clients:
            client.close()
    return notes.problems


def _guarded(work: Callable[..., None], arguments: tuple[Any, ...], until: float, notes: _Notes) -> None:
    try:
        work(*arguments, until, notes)
    except BaseException as error:
        notes.problem(f"{work.__name__} ended: {error!r}")
        raise


def _agent(client: StdioClient, root: Path, rng: random.Random, until: float, notes: _Notes) -> None:
    paths: list[str] = []
    number = 0
    while time.monotonic() < until:
        if number % 100 == 0:
            paths = documents(root)
        number += 1
        tool = rng.choices(["kb_patch", "kb_create", "kb_move", "kb_search"], [4, 2, 1, 3])[0]
        path = rng.choice(paths)
        arguments: dict[str, Any]
        if tool == "kb_patch":
            arguments = {"path": path, "operations": []}
            outline = client.call("kb_outline", {"path": path, "maxDepth": 1})
            if outline.get("isError"):
                _judge("kb_outline", path, outline, 0.0, notes)
                continue
            headings = outline["structuredContent"]["headings"]
            if not headings:
                continue
            text = f"Said by an agent {rng.random()}."
            arguments["operations"].append(
                {"kind": "insert_after", "pointer": rng.choice(headings)["pointer"], "markdown": text}
            )
        elif tool == "kb_create":
            name = f"agents/{rng.randrange(40)}/n{rng.randrange(10**5)}.md"
            arguments = {
                "path": name,
                "markdown": f"# New {number}\n\nSee [it]({'../' * 2}{path.replace(' ', '%20')}).\n",
            }
            paths.append(name)
        elif tool == "kb_move":
            arguments = {"path": path, "targetPath": f"moved/{rng.randrange(40)}/{rng.randrange(10**6)}.md"}
            paths.append(arguments["targetPath"])
        else:
            arguments = {"query": rng.choice(["agent says", "editor saved", "heading link", "component", "pressure"])}
        began = time.monotonic()
        result = client.call(tool, arguments)
        _judge(tool, path, result, time.monotonic() - began, notes)


def _judge(tool: str, path: str, result: dict[str, Any], seconds: float, notes: _Notes) -> None:
    if not result.get("isError"):
        notes.done(f"{tool} ok", seconds)
        return
    text = result["content"][0]["text"]
    code = text.partition('"code":')[2].partition('"')[2].partition('"')[0]
    notes.done(f"{tool} {code}{' (taken away)' if code in _TAKEN_AWAY else ''}", seconds)
    if code not in _ALLOWED | _TAKEN_AWAY or "locked" in text:
        notes.problem(f"{tool} {path}: {text[:500]}")


def _command_line(root: Path, rng: random.Random, until: float, notes: _Notes) -> None:
    while time.monotonic() < until:
        time.sleep(min(rng.uniform(3, 20), max(0.0, until - time.monotonic())))
        done = _run_index(root)
        notes.done(f"--reindex exit {done.returncode}")
        if done.returncode or "locked" in done.stderr:
            notes.problem(f"--reindex: {done.returncode} {done.stdout[-500:]} {done.stderr[-1000:]}")


# Git


def _git(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    identity = ("-c", "user.name=Stress", "-c", "user.email=stress@example.org", "-c", "core.autocrlf=false")
    return subprocess.run(["git", *identity, *arguments], cwd=root, capture_output=True, text=True, check=False)


def _make_branches(root: Path, rng: random.Random) -> None:
    """A branch ``one`` with everything, and ``two`` that changes, lacks and adds a third each of a thousand."""
    _git(root, "init", "-q", "-b", "one")
    with (root / ".git" / "info" / "exclude").open("a", encoding="utf-8") as file:
        file.write(f"{_STORAGE}/\n")
    _commit(root, "one")
    _git(root, "checkout", "-qb", "two")
    third = _DIFFERENT // 3
    chosen = rng.sample(documents(root), min(2 * third, len(documents(root)) // 2))
    for number, path in enumerate(chosen):
        if number % 2:
            (root / path).unlink()
        else:
            with (root / path).open("a", encoding="utf-8") as file:
                file.write(f"\n\nOn the second branch, {number}.\n")
    for number in range(third):
        target = root / "second" / str(number % 10) / f"two{number}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"# Two {number}\n\nOnly on the second branch.\n", encoding="utf-8")
    _commit(root, "two")


def _commit(root: Path, message: str) -> None:
    _git(root, "add", "-A")
    done = _git(root, "commit", "-qm", message)
    assert done.returncode == 0, done.stderr


def _git_loop(root: Path, rng: random.Random, until: float, notes: _Notes) -> None:
    here = 1
    while time.monotonic() < until:
        if rng.random() < 0.4:
            done = _git(root, "stash", "-q")
            notes.done(f"git stash {done.returncode}")
            time.sleep(rng.uniform(0.1, 2))
            notes.done(f"git stash pop {_git(root, 'stash', 'pop', '-q').returncode}")
            # Where a document was changed meanwhile the stash stays; the next checkout throws all away.
            _git(root, "stash", "clear")
        here = 1 - here
        # Others write meanwhile, so a file in the way may make it fail half-way: the next one goes on from there.
        notes.done(f"git checkout {_git(root, 'checkout', '-qf', ('one', 'two')[here]).returncode}")
        time.sleep(rng.uniform(0.3, 6))


# Latency


def _latency(root: Path, files: int, seed: int) -> list[str]:
    fill_tree(root, files)
    rng = random.Random(seed)
    _index(root)
    problems: list[str] = []
    holder = _start(root)
    try:
        seconds = Timing(tuple(_save_to_searchable(holder, root, rng, n) for n in range(_SAVES)))
        bar = seconds.percentile(0.95) <= 1.0
        print(
            f"save to searchable, {files} documents, {_SAVES} saves: p50 {seconds.median * 1000:.0f} ms,"
            f" p95 {seconds.percentile(0.95) * 1000:.0f} ms, most {max(seconds.seconds) * 1000:.0f} ms"
            f" (bar: p95 <= 1000 ms, {'met' if bar else 'MISSED'});"
            f" by the server's own watch {holder.value('kb_status')['watchLatencyMs']}",
            flush=True,
        )
        if not bar:
            problems.append("p95 of save to searchable is above one second")
        for number in range(_KILLS):
            other = _start(root)
            problems += _take_over(holder, other, root, rng, force=number == 0)
            holder = other
    finally:
        holder.close()
    return problems


def _save_to_searchable(client: StdioClient, root: Path, rng: random.Random, number: int) -> float:
    time.sleep(rng.uniform(0, 0.6))
    path = root / rng.choice(documents(root))
    word = f"zyx{number}q{rng.randrange(10**8)}"
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(path.read_bytes() + f"\n\nSaved with {word}.\n".encode())
    temporary.replace(path)
    began = time.monotonic()
    while not client.value("kb_search", {"query": word, "topK": 1})["results"]:
        assert time.monotonic() - began < 60, f"{path} is not found after a minute"
        time.sleep(0.01)
    return time.monotonic() - began


def _take_over(holder: StdioClient, other: StdioClient, root: Path, rng: random.Random, *, force: bool) -> list[str]:
    """Kill the holder in the middle of a run; what is wrong with how the other server went on."""
    lock = root / _STORAGE / "indexing.lock"
    _until(lambda: holder.value("kb_status")["indexing"]["state"] == "idle", "the holder is not idle")
    assert _has_lock(holder, lock), "the first server does not hold the lease"
    holder.value("kb_reindex", {"scope": "all", "force": force})
    _until(lambda: _files_done(holder) > (200 if force else 20), "the run does not begin")
    assert holder.value("kb_status")["indexing"]["state"] == "running", "the run was over before the kill"
    holder.process.kill()
    began = time.monotonic()
    holder.process.wait()
    _until(lambda: _has_lock(other, lock), "nobody takes the lease", pause_s=0.005)
    took = time.monotonic() - began
    found = _save_to_searchable(other, root, rng, rng.randrange(1000, 9999))
    _settle([other])
    finished = time.monotonic() - began
    print(
        f"kill -9 in a {'rebuild' if force else 'run that reads all'}: lease taken after {took * 1000:.0f} ms"
        f" (bar: <= 2000 ms), a save after that found in {found:.2f} s, run finished after {finished:.1f} s",
        flush=True,
    )
    return [*_compare(root), *([] if took <= 2.0 else [f"the lease was taken after {took:.2f} s"])]


def _files_done(client: StdioClient) -> int:
    indexing = client.value("kb_status")["indexing"]
    return int(indexing.get("processedFiles", 0)) if indexing.get("phase") == "parse" else 0


def _has_lock(client: StdioClient, lock: Path) -> bool:
    """Whether a process has the lock, by what the kernel says."""
    inode = str(lock.stat().st_ino)
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[4] == str(client.process.pid) and fields[5].endswith(f":{inode}"):
            return True
    return False


# Both


def _start(root: Path) -> StdioClient:
    client = StdioClient(server_command(root, *_OPTIONS), timeout_s=60)
    client.initialize()
    return client


def _run_index(root: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = server_command(root, "--embedding-provider", "none", "--reindex", *options)
    return subprocess.run(command, capture_output=True, text=True, env=child_environment(), timeout=600, check=False)


def _index(root: Path, *options: str) -> None:
    done = _run_index(root, *options)
    assert done.returncode == 0, f"{done.stdout} {done.stderr}"


def _until(reached: Callable[[], bool], what: str, *, timeout_s: float = 60, pause_s: float = 0.02) -> None:
    deadline = time.monotonic() + timeout_s
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(pause_s)


def _settle(clients: list[StdioClient]) -> float:
    """Wait until every server has been idle and in step for a while; seconds until that began."""
    began = quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET_S:
        assert time.monotonic() - began < _SETTLE_S, [client.value("kb_status") for client in clients]
        for client in clients:
            status = client.value("kb_status")
            if status["indexing"]["state"] != "idle" or status["index"]["state"] != "ready":
                quiet_since = time.monotonic()
        time.sleep(0.1)
    return quiet_since - began


def _compare(root: Path) -> list[str]:
    """How the index differs from the files and from one that is built from nothing."""
    live = current_file(root / _STORAGE / "index.db")
    wal = live.with_name(live.name + "-wal")
    wal_bytes = wal.stat().st_size if wal.exists() else 0
    with tempfile.TemporaryDirectory(prefix="lvs-stress-fresh-") as folder:
        _index(root, "--storage-path", folder)
        fresh = index_contents(current_file(Path(folder) / "index.db"))
    ours = index_contents(live)
    problems = [f"the write-ahead log has {wal_bytes} bytes"] if wal_bytes > _MOST_WAL else []
    hashes = {row[0]: row[3] for row in ours["documents"]}
    for path in sorted({*documents(root), *hashes}):
        now = xxh64_hex((root / path).read_bytes()) if (root / path).exists() else None
        if hashes.get(path) != now:
            problems.append(f"{path}: the file is {now}, the index has {hashes.get(path)}")
    for name, rows in fresh.items():
        if rows != ours[name]:
            left, right = {repr(row) for row in ours[name]}, {repr(row) for row in rows}
            problems.append(
                f"{name}: only live {sorted(left - right)[:3]}, only fresh {sorted(right - left)[:3]}"[:1500]
            )
    print(
        f"{len(hashes)} documents, {len(ours['chunks'])} chunks compared with an index built from nothing;"
        f" {live.stat().st_size / 2**20:.1f} MiB, log {wal_bytes / 2**10:.0f} KiB",
        flush=True,
    )
    return problems


if __name__ == "__main__":
    sys.exit(main())
