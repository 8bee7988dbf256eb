"""Soak: two servers, the command line and two editors on one workspace; nobody's work may be lost.

``python tests/benchmarks/soak_races.py [--operations 10000] [--seconds 600] [--seed 1]``. Every writer puts words of
its own into documents that it shares with the others. At the end each word whose writing was acknowledged must stand
in a document, or in the copy that a conflict left beside it, and the index must hold what one built from nothing holds.

An editor does not ask anybody before it saves: what a server wrote since the editor read the file is gone by the
editor's own doing. So servers are held to their words in the documents that no editor opens, and editors to theirs.
"""

import argparse
import json
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

from tests.support.index_contents import index_contents  # noqa: E402
from tests.support.stdio_client import StdioClient, child_environment, server_command  # noqa: E402

from local_vector_search_mcp.index.generations import current_file  # noqa: E402

_SHARED, _EDITED, _SETTLE_S = 8, 4, 90.0
_ALLOWED = {"CONFLICT", "BUSY", "NOT_FOUND", "ALREADY_EXISTS", "INDEX_NOT_READY", "TEXT_COUNT", "STRUCTURE_CHANGED"}
_OPTIONS = ("--scope", "full", "--embedding-provider", "none")


class _Ledger:
    """What everybody has done, for all threads."""

    def __init__(self, operations: int, until: float) -> None:
        self._lock = threading.Lock()
        self._left = operations
        self._until = until
        self.outcomes: Counter[str] = Counter()
        self.words: dict[str, str] = {}
        self.problems: list[str] = []

    def more(self) -> bool:
        """Take one operation from those that are left."""
        with self._lock:
            self._left -= 1
            return self._left >= 0 and time.monotonic() < self._until

    def done(self, outcome: str, word: str = "", where: str = "") -> None:
        """Note an outcome, and a word that is promised to stand from now on."""
        with self._lock:
            self.outcomes[outcome] += 1
            if word:
                self.words[word] = where

    def problem(self, what: str) -> None:
        """Note a broken rule."""
        with self._lock:
            self.problems.append(what)
        print(f"PROBLEM {what[:1500]}", flush=True)


def main() -> int:
    """Run until the operations or the seconds are used up."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    ledger = _Ledger(options.operations, time.monotonic() + options.seconds)
    with tempfile.TemporaryDirectory(prefix="lvs-races-") as folder:
        root = Path(folder) / "root"
        root.mkdir()
        for number in range(_SHARED):
            (root / f"shared{number}.md").write_text(
                f"# Shared {number}\n\n[[edited0]]\n\n## Words\n", encoding="utf-8"
            )
        for number in range(_EDITED):
            (root / f"edited{number}.md").write_text(f"# Edited {number}\n\n[s](shared{number}.md)\n", encoding="utf-8")
        clients = [StdioClient(server_command(root, *_OPTIONS), cwd=root, timeout_s=90) for _ in range(2)]
        for client in clients:
            client.initialize()
        writers: list[Callable[[random.Random], None]] = [
            *(_Server(f"server{number}", client, root, ledger).work for number, client in enumerate(clients)),
            _CommandLine(root, ledger).work,
            _Editor("renamer", root, ledger, in_place=False).work,
            _Editor("inplacer", root, ledger, in_place=True).work,
        ]
        threads = [
            threading.Thread(target=writer, args=(random.Random(options.seed * 100 + number),))
            for number, writer in enumerate(writers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _check(root, clients, ledger, Path(folder))
    print(dict(ledger.outcomes.most_common()))
    print(f"{ledger.outcomes.total()} operations, {len(ledger.words)} words promised, {len(ledger.problems)} problems")
    return 1 if ledger.problems else 0


# Those who write.


class _Server:
    """Calls of one server process."""

    def __init__(self, name: str, client: StdioClient, root: Path, ledger: _Ledger) -> None:
        self._name = name
        self._client = client
        self._root = root
        self._ledger = ledger
        self._own: list[str] = []
        self._number = 0

    def work(self, rng: random.Random) -> None:
        """Do one thing after another."""
        weights = {
            self._append: 10,
            self._append_to_edited: 3,
            self._front_matter: 2,
            self._create: 1,
            self._move: 1,
            self._undo_own: 1,
            self._search: 4,
            self._reindex: 0.3,
            self._replace: 1,
        }
        while self._ledger.more():
            (what,) = rng.choices(list(weights), list(weights.values()))
            try:
                what(rng)
            except (TimeoutError, OSError) as error:
                self._ledger.problem(f"{self._name} is gone or silent: {str(error)[-800:]}")
                return

    def _word(self) -> str:
        self._number += 1
        return f"{self._name}w{self._number}"

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        result = self._client.call(name, arguments)
        if not result.get("isError"):
            value: dict[str, Any] = result["structuredContent"]
            return value
        error = json.loads(result["content"][0]["text"])
        self._ledger.done(f"{name} {error['code']}")
        if error["code"] not in _ALLOWED:
            self._ledger.problem(f"{self._name} {name}: {error} for {arguments}")
        return None

    def _append(self, rng: random.Random) -> None:
        self._append_to(f"shared{rng.randrange(_SHARED)}.md", rng, promised=True)

    def _append_to_edited(self, rng: random.Random) -> None:
        self._append_to(f"edited{rng.randrange(_EDITED)}.md", rng, promised=False)

    def _append_to(self, path: str, rng: random.Random, *, promised: bool) -> None:
        word = self._word()
        pointer = "document"
        if rng.random() < 0.5:
            found = self._call("kb_outline", {"path": path})
            if found and found["headings"]:
                pointer = found["headings"][0]["pointer"]
        kind = "insert_after" if pointer == "document" else "append_to_section"
        operation = {"kind": kind, "pointer": pointer, "markdown": f"Word {word}."}
        if self._call("kb_patch", {"path": path, "operations": [operation]}) is not None:
            self._ledger.done("kb_patch", word if promised else "", path)

    def _front_matter(self, rng: random.Random) -> None:
        word = self._word()
        path = f"shared{rng.randrange(_SHARED)}.md"
        if self._call("kb_edit_frontmatter", {"path": path, "set": {f"k{word}": word}}) is not None:
            self._ledger.done("kb_edit_frontmatter", word, path)

    def _create(self, rng: random.Random) -> None:
        word = self._word()
        path = f"{self._name}/{word}.md"
        markdown = f"# {word}\n\n[s](../shared{rng.randrange(_SHARED)}.md)\n"
        if self._call("kb_create", {"path": path, "markdown": markdown}) is not None:
            self._own.append(path)
            self._ledger.done("kb_create", word, path)

    def _move(self, rng: random.Random) -> None:
        if not self._own:
            return
        path = rng.choice(self._own)
        target = f"{self._name}/{rng.choice('ab')}/{path.rpartition('/')[2]}"
        if target != path and self._call("kb_move", {"path": path, "targetPath": target}) is not None:
            self._own[self._own.index(path)] = target
            self._ledger.done("kb_move")

    def _undo_own(self, rng: random.Random) -> None:
        """Write a word and take it back, which is allowed to come too late."""
        path = f"shared{rng.randrange(_SHARED)}.md"
        word = f"{self._word()}undone"
        operation = {"kind": "insert_after", "pointer": "document", "markdown": f"Word {word}."}
        done = self._call("kb_patch", {"path": path, "operations": [operation]})
        if done is not None and self._call("kb_undo", {"changeId": done["changeId"]}) is not None:
            self._ledger.done("kb_undo")

    def _search(self, rng: random.Random) -> None:
        if self._call("kb_search", {"query": rng.choice(["word", "shared", "server0w3", "edited"])}) is not None:
            self._ledger.done("kb_search")

    def _reindex(self, rng: random.Random) -> None:
        arguments = {"scope": rng.choice(["changed", "all"]), "force": rng.random() < 0.3, "wait": rng.random() < 0.5}
        if self._call("kb_reindex", arguments) is not None:
            self._ledger.done("kb_reindex")

    def _replace(self, rng: random.Random) -> None:
        query, other = rng.choice([("Word", "word"), ("word", "Word")])
        arguments = {"query": query, "replacement": other, "maxChanges": 10_000, "pathPrefix": "", "dryRun": False}
        arguments["includeGlob"] = f"shared{rng.randrange(_SHARED)}.md"
        if self._call("kb_replace_text", arguments) is not None:
            self._ledger.done("kb_replace_text")


class _CommandLine:
    """Runs of the command line, each a process of its own."""

    def __init__(self, root: Path, ledger: _Ledger) -> None:
        self._root = root
        self._ledger = ledger
        self._number = 0

    def work(self, rng: random.Random) -> None:
        """Do one thing after another."""
        while self._ledger.more():
            if rng.random() < 0.15:
                self._run("--reindex", "--embedding-provider", "none")
                continue
            self._number += 1
            word = f"cliw{self._number}"
            path = f"shared{rng.randrange(_SHARED)}.md"
            operation = {"kind": "insert_after", "pointer": "document", "markdown": f"Word {word}."}
            if self._run("patch", path, "-", "--project-root", str(self._root), text=json.dumps([operation])):
                self._ledger.done("cli", word, path)

    def _run(self, *arguments: str, text: str = "") -> bool:
        done = subprocess.run(
            [sys.executable, "-m", "local_vector_search_mcp", *arguments],
            input=text,
            capture_output=True,
            text=True,
            cwd=self._root,
            env=child_environment(),
            timeout=120,
            check=False,
        )
        self._ledger.done(f"cli {arguments[0]} {done.returncode}")
        said = done.stdout + done.stderr
        if done.returncode not in (0, 4) or "Traceback" in said or "database is locked" in said:
            self._ledger.problem(f"the command line: {arguments} ended with {done.returncode}: {said[-1500:]}")
        return done.returncode == 0


class _Editor:
    """A person's editor: reads a file, thinks, and saves the whole, by renaming or in place."""

    def __init__(self, name: str, root: Path, ledger: _Ledger, *, in_place: bool) -> None:
        self._name = name
        self._root = root
        self._ledger = ledger
        self._in_place = in_place
        self._number = 0

    def work(self, rng: random.Random) -> None:
        """Save one document after another; each editor has its own ones."""
        mine = [number for number in range(_EDITED) if number % 2 == self._in_place]
        while self._ledger.more():
            self._number += 1
            word = f"{self._name}w{self._number}"
            path = self._root / f"edited{rng.choice(mine)}.md"
            if self._in_place:
                self._save_in_place(path, word, rng)
            else:
                self._save_by_renaming(path, word, rng)
            self._ledger.done(self._name, word, path.name)
            time.sleep(rng.random() * 0.1)

    def _save_by_renaming(self, path: Path, word: str, rng: random.Random) -> None:
        text = path.read_bytes() + f"\nWord {word}.\n".encode()
        time.sleep(rng.random() * 0.02)
        temporary = path.with_name(f"{path.name}.{self._name}~")
        temporary.write_bytes(text)
        temporary.replace(path)

    def _save_in_place(self, path: Path, word: str, rng: random.Random) -> None:
        with path.open("r+b") as file:
            text = file.read() + f"\nWord {word}.\n".encode()
            time.sleep(rng.random() * 0.02)
            file.seek(0)
            file.truncate()
            file.write(text)


# What must hold at the end.


def _check(root: Path, clients: list[StdioClient], ledger: _Ledger, folder: Path) -> None:
    time.sleep(6)  # The replaced files of the last swaps are watched for so long.
    for number, client in enumerate(clients):
        answer = client.call("kb_reindex", {"wait": True})
        if answer.get("isError"):
            ledger.problem(f"server{number}: the last run: {answer}")
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.md")}
    standing = {word for text in texts.values() for word in _words_of(text)}
    lost = sorted(word for word in ledger.words if word not in standing)
    if lost:
        ledger.problem(f"{len(lost)} acknowledged words are gone: {[(word, ledger.words[word]) for word in lost[:20]]}")
    for number, client in enumerate(clients):
        log = client.errors()
        for word in ("Traceback", "database is locked"):
            if word in log:
                ledger.problem(f"server{number}: {word} in the log: {log[max(0, log.index(word) - 500) :][:3000]}")
        if client.stray:
            ledger.problem(f"server{number}: output that is no message: {client.stray[:3]}")
        client.close()
    left = [path.name for path in root.rglob(".lvs-tmp-*")]
    if left:
        ledger.problem(f"temporary files are left: {left}")
    print(f"{len(texts)} documents, {sum('.conflict-' in path for path in texts)} of them copies of conflicts")
    _check_index(root, folder, ledger)


def _check_index(root: Path, folder: Path, ledger: _Ledger) -> None:
    fresh = folder / "fresh"
    fresh.mkdir()
    command = [*server_command(root, "--embedding-provider", "none"), "--reindex", "--storage-path", str(fresh)]
    subprocess.run(command, check=True, env=child_environment(), capture_output=True)
    ours, theirs = (
        index_contents(current_file(each / "index.db")) for each in (root / ".local-vector-search-mcp", fresh)
    )
    for name, rows in theirs.items():
        missing, surplus = (
            [row for row in rows if row not in ours[name]],
            [row for row in ours[name] if row not in rows],
        )
        if missing or surplus:
            ledger.problem(f"the index differs in {name}: lacks {missing[:3]}, has {surplus[:3]}")


def _words_of(text: str) -> set[str]:
    return {word.strip(".'\"#") for word in text.split()}


if __name__ == "__main__":
    sys.exit(main())
