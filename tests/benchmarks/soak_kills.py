"""Soak: a whole app killed at random moments of writes, moves, undo and indexing; nothing may be lost.

``python tests/benchmarks/soak_kills.py [--kills 500] [--seed 1]``. A child process changes a small tree and notes,
flushed to disk, the state that each change starts from and the one that it leads to; now and then it rebuilds its
index meanwhile. After every ``SIGKILL`` the next start must find exactly one of the two, without temporary files, and a
history whose newest change is that one. From time to time, and at the end, the index must heal by itself to what one
built from nothing holds.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "src")]

from tests.support.index_contents import index_contents  # noqa: E402

from local_vector_search_mcp.app import App, open_app  # noqa: E402
from local_vector_search_mcp.config.loader import load_config  # noqa: E402
from local_vector_search_mcp.digests import xxh64_hex  # noqa: E402
from local_vector_search_mcp.errors import AlreadyExists, Conflict, StructureChanged  # noqa: E402
from local_vector_search_mcp.index.generations import current_file  # noqa: E402
from local_vector_search_mcp.markdown.parser import parse_bytes  # noqa: E402
from local_vector_search_mcp.services.job_state import RunOutcome  # noqa: E402

_DOCUMENTS = 30
_LONGEST_LIFE_S = 0.6
_REBUILT = 0.02

State = dict[str, str]


def main() -> int:
    """Run as the parent, or with ``--child`` as the process that is killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", type=Path, help="the folder to work in; for the child process only")
    options = parser.parse_args()
    if options.child is not None:
        _work(options.child, random.Random(options.seed))
        return 0
    with tempfile.TemporaryDirectory(prefix="lvs-kills-") as folder:
        _kill(Path(folder), options.kills, options.seed)
    return 0


# The parent


def _kill(folder: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    root = folder / "project"
    root.mkdir()
    for number in range(_DOCUMENTS):
        links = " ".join(f"[n{other}](n{other}.md) [[n{other}]]" for other in rng.sample(range(_DOCUMENTS), 4))
        (root / f"n{number}.md").write_text(f"# Note {number}\n\n{links}\n\n- item\n", encoding="utf-8")
    changes = cut_off = 0
    for number in range(kills):
        log = folder / "log.jsonl"
        log.unlink(missing_ok=True)
        command = [sys.executable, __file__, "--child", str(folder), "--seed", str(seed * 100_003 + number)]
        child = subprocess.Popen(command)
        _wait_for(log, child)
        time.sleep(rng.random() * _LONGEST_LIFE_S)  # The random moment is what this is about.
        child.send_signal(signal.SIGKILL)
        child.wait()
        done, was_cut = _check(folder, log, number)
        changes += done
        cut_off += was_cut
        if number % 25 == 24:
            print(
                f"{number + 1} kills, {changes} changes before them, {cut_off} of them in the middle of one", flush=True
            )
            _check_index(folder)
    _check_index(folder)
    print(f"{kills} kills, {changes} changes before them, {cut_off} in the middle of one; nothing was lost")


def _wait_for(log: Path, child: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while not log.exists():
        assert child.poll() is None, "the child ended by itself"
        assert time.monotonic() < deadline, "the child did not begin"
        time.sleep(0.002)


def _check(folder: Path, log: Path, number: int) -> tuple[int, bool]:
    """Start anew and compare; the changes that were complete, and whether one was cut off."""
    notes = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    app = _open(folder, for_server=True)
    try:
        app.mutations.recover()
        with app.mutations.locked():
            app.workspace.remove_leftovers()
        now = _state(folder / "project")
        newest = app.undo.history(page_size=1).changes
    finally:
        app.close()
    last = notes[-1]
    allowed = [last["before"]] if last["after"] is None else [last["before"], last["after"]]
    assert now in allowed, f"kill {number}: the tree is neither as before nor as after {last['what']}: {now}"
    left = [path.name for path in (folder / "project").rglob(".lvs-tmp-*")]
    assert not left, f"kill {number}: temporary files are left: {left}"
    if last["after"] is not None and now == last["after"] != last["before"]:
        assert newest, f"kill {number}: the history does not know {last['what']}"
        assert newest[0].tool == last["what"], f"kill {number}: the newest change is {newest[0].tool}"
    return sum(note["after"] is not None for note in notes), last["after"] is not None


def _check_index(folder: Path) -> None:
    fresh = folder / "fresh"
    for storage in (folder / "storage", fresh):
        app = _open(folder, for_server=False, storage=storage)
        try:
            app.start()
            ticket = app.indexer.request()
            assert app.indexer.wait(ticket.run_id, timeout_s=60).outcome is RunOutcome.SUCCEEDED
            assert app.status.status().index.documents == len(_state(folder / "project"))
        finally:
            app.close()
    ours, theirs = (index_contents(current_file(_database(storage))) for storage in (folder / "storage", fresh))
    for name, rows in theirs.items():
        surplus = [row for row in ours[name] if row not in rows]
        assert ours[name] == rows, f"the index differs in {name}: has {surplus[:3]} of {len(rows)}"
    shutil.rmtree(fresh)


def _database(storage: Path) -> Path:
    return storage / "index.db"


# The child


def _work(folder: Path, rng: random.Random) -> None:
    root, log = folder / "project", folder / "log.jsonl"
    app = _open(folder, for_server=True)
    app.mutations.recover()
    app.start()
    _note(log, "start", _state(root), None)
    while True:
        if rng.random() < _REBUILT:
            app.indexer.request(force=rng.random() < 0.5)
        what = rng.choice([_patch, _move, _replace, _undo, _create, _delete])
        before = _state(root)
        try:
            tool, arguments, call = what(app, root, rng)
            dry = call(**arguments, dry_run=True)
        except (Conflict, AlreadyExists, StructureChanged, IndexError):
            continue
        _note(log, tool, before, _expected(before, tool, dry))
        call(**arguments, dry_run=False, plan_hash=dry.plan_hash)
        _note(log, "done", _state(root), None)


def _patch(app: App, root: Path, rng: random.Random) -> tuple[str, dict[str, Any], Any]:
    path = rng.choice(sorted(_state(root)))
    element = rng.choice(parse_bytes((root / path).read_bytes()).elements)
    operation = {"kind": "insert_after", "pointer": element.pointer, "markdown": f"- item {rng.random()}"}
    return "kb_patch", {"path": path, "operations": [operation]}, app.patching.patch


def _move(app: App, root: Path, rng: random.Random) -> tuple[str, dict[str, Any], Any]:
    path = rng.choice(sorted(_state(root)))
    name = path.rpartition("/")[2]
    target = f"{rng.choice(['', 'a/', 'b/', 'b/c/'])}{name}"
    return "kb_move", {"path": path, "target_path": target if target != path else f"d/{name}"}, app.documents.move


def _replace(app: App, root: Path, rng: random.Random) -> tuple[str, dict[str, Any], Any]:
    query = rng.choice(["Note", "item", "Item"])
    arguments = {"query": query, "replacement": query.swapcase()[:1] + query[1:], "max_changes": 10_000}
    return "kb_replace_text", arguments, app.replacing.replace


def _undo(app: App, root: Path, rng: random.Random) -> tuple[str, dict[str, Any], Any]:
    change = rng.choice(app.undo.history(page_size=5).changes)
    return "kb_undo", {"change_id": change.change_id}, app.undo.undo


def _create(app: App, root: Path, rng: random.Random) -> tuple[str, dict[str, Any], Any]:
    arguments = {"path": f"new/x{rng.randrange(10**6)}.md", "markdown": "# New\n\n[[n1]]\n"}
    return "kb_create", arguments, app.documents.create


def _delete(app: App, root: Path, rng: random.Random) -> tuple[str, dict[str, Any], Any]:
    path = rng.choice([path for path in sorted(_state(root)) if path.startswith("new/")])
    arguments = {"path": path, "expected_source_hash": _state(root)[path]}
    return "kb_delete", arguments, app.documents.delete


def _expected(before: State, tool: str, dry: Any) -> State:
    """The state that a dry run promises."""
    after = dict(before)
    files: list[tuple[str | None, str, str | None]] = []
    if tool == "kb_undo":
        files = [(file.previous_path, file.path, file.source_hash) for file in dry.files]
    elif tool == "kb_replace_text":
        files = [(None, file.path, file.source_hash) for file in dry.files]
    elif tool == "kb_move":
        files = [(None, each.path, each.source_hash) for each in dry.updated_links]
        files.append((dry.previous_path, dry.path, dry.source_hash))
    else:
        files = [(None, dry.path, dry.source_hash)]
    for previous, path, source_hash in files:
        if previous is not None:
            after.pop(previous, None)
        after.pop(path, None)
        if source_hash is not None:
            after[path] = source_hash
    return after


# Both


def _open(folder: Path, *, for_server: bool, storage: Path | None = None) -> App:
    config = load_config(
        config_file=None,
        environ={},
        overrides={
            "--embedding-provider": "none",
            "--allow-writes": True,
            "--storage-path": str(_database(storage or folder / "storage")),
        },
        project_root=folder / "project",
    )
    return open_app(config, for_server=for_server, environ={})


def _state(root: Path) -> State:
    return {
        path.relative_to(root).as_posix(): xxh64_hex(path.read_bytes())
        for path in sorted(root.rglob("*.md"))
        if not path.name.startswith(".lvs-tmp-")
    }


def _note(log: Path, what: str, before: State, after: State | None) -> None:
    line = json.dumps({"what": what, "before": before, "after": after}) + "\n"
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, line.encode())
        os.fsync(fd)
    finally:
        os.close(fd)


if __name__ == "__main__":
    sys.exit(main())
