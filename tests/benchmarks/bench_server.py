"""The server: cost of a call over stdio, time to start, memory at rest, search through the protocol.

The baseline is an empty FastMCP server with one tool, driven by the same client in the same run.
``python -m tests.benchmarks.bench_server empty`` and ``… ours ROOT`` are the two servers that are compared.
"""

import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks.support import Row, Timing, alternate
from tests.support.stdio_client import StdioClient, server_command

_ROOT = Path(__file__).resolve().parents[2]
_FILES, _QUICK_FILES = 10_000, 500
_VOCABULARY = 20_000


def run(quick: bool) -> list[Row]:
    """Measure against an empty server."""
    with tempfile.TemporaryDirectory(prefix="lvs-bench-server-") as folder:
        root = Path(folder)
        files = _QUICK_FILES if quick else _FILES
        _write_tree(root, files)
        _index(root)
        return [
            *_calls(root, repeats=200 if quick else 1000),
            _start(root, files, repeats=3 if quick else 9),
            _memory(root, files),
            _search(root, files, repeats=30 if quick else 200),
        ]


def serve(arguments: Sequence[str]) -> None:
    """One of the two servers, each with a tool that does nothing."""
    if arguments[0] == "empty":
        from fastmcp import FastMCP

        server: FastMCP[None] = FastMCP("empty")
        server.add_tool(noop)
        server.run("stdio", show_banner=False)
        return
    from local_vector_search_mcp.app import open_app
    from local_vector_search_mcp.config.loader import load_config
    from local_vector_search_mcp.server import stdio
    from local_vector_search_mcp.server.build import STDIO_RESULT_LIMIT, build_server

    root = Path(arguments[1])
    config = load_config(config_file=None, environ={}, overrides={"--embedding-provider": "none"}, project_root=root)
    ours = build_server(open_app(config, for_server=True), result_limit=STDIO_RESULT_LIMIT)
    ours.add_tool(noop)
    stdio.serve(ours)


async def noop(text: str = "") -> str:
    """Give back what was given."""
    return text


def _calls(root: Path, *, repeats: int) -> list[Row]:
    with _client("ours", str(root)) as ours, _client("empty") as empty:
        mine, theirs = _alternate_calls(lambda: ours.call("noop"), lambda: empty.call("noop"), repeats)
        status, _ = _alternate_calls(lambda: ours.call("kb_status"), lambda: empty.call("noop"), min(repeats, 200))
    return [
        _row("a no-op tool over stdio, p50", mine, theirs, bar=0.7, note=f"{repeats} calls in turn"),
        Row(name="kb_status over stdio, p50", value=status.median * 1000, unit="ms"),
    ]


def _start(root: Path, files: int, *, repeats: int) -> Row:
    def begin(command: list[str]) -> Callable[[], None]:
        def once() -> None:
            client = StdioClient(command, cwd=_ROOT, env=_environment())
            client.initialize()
            client.request("tools/list")
            client.process.kill()
            client.close()

        return once

    mine, theirs = alternate(
        begin([*server_command(root), "--embedding-provider", "none"]), begin(_command("empty")), repeats=repeats
    )
    note = f"the installed command over {files:,} indexed files"
    return _row("spawn to tools/list answered", mine, theirs, bar=1.0, note=note)


def _memory(root: Path, files: int) -> Row:
    with _real(root, "--embedding-provider", "none") as ours:
        ours.request("tools/list")
        _wait_until_idle(ours)
        time.sleep(5)  # What a run leaves behind is given back after it.
        mine = _resident(ours.process.pid)
    with _client("empty") as empty:
        empty.request("tools/list")
        theirs = _resident(empty.process.pid)
    ratio = mine / theirs
    return Row(
        name=f"resident memory at rest, {files:,} files",
        value=mine,
        unit="MiB",
        baseline=theirs,
        ratio=ratio,
        bar="<= 1.3 x an empty FastMCP server",
        passed=ratio <= 1.3,
    )


def _search(root: Path, files: int, *, repeats: int) -> Row:
    with _real(root) as ours, _client("empty") as empty:
        _wait_until_idle(ours)
        while ours.value("kb_reindex", {"force": True, "wait": True})["outcome"] == "running":
            pass
        _wait_until_embedded(ours)
        words = _Words(random.Random(7))
        queries = [" ".join(words.take(4)) for _ in range(repeats + 1)]
        mode = ours.value("kb_search", {"query": queries[0]})["mode"]
        remaining = iter(queries * 2)
        mine, theirs = _alternate_calls(
            lambda: ours.call("kb_search", {"query": next(remaining)}), lambda: empty.call("noop"), repeats
        )
    return _row(f"{mode} search through stdio, {files:,} files, median", mine, theirs, bar=3.0, note="")


def _row(name: str, mine: Timing, theirs: Timing, *, bar: float, note: str) -> Row:
    ratio = mine.median / theirs.median
    return Row(
        name=name,
        value=mine.median * 1000,
        unit="ms",
        baseline=theirs.median * 1000,
        ratio=ratio,
        bar=f"<= {bar:.1f} x an empty FastMCP server",
        note=note,
        passed=ratio <= bar,
    )


def _alternate_calls(mine: Callable[[], object], theirs: Callable[[], object], repeats: int) -> tuple[Timing, Timing]:
    """Calls in turn, without collecting garbage before each: that would cool the caches of a call this short."""
    first: list[float] = []
    second: list[float] = []
    for number in range(repeats + 20):
        for work, seconds in ((mine, first), (theirs, second)):
            begin = time.perf_counter()
            work()
            if number >= 20:
                seconds.append(time.perf_counter() - begin)
    return Timing(tuple(first)), Timing(tuple(second))


def _index(root: Path) -> None:
    with _real(root, "--embedding-provider", "none") as client:
        while client.value("kb_reindex", {"wait": True})["outcome"] == "running":
            pass


def _wait_until_idle(client: StdioClient) -> None:
    until = time.monotonic() + 300
    while client.value("kb_status")["indexing"]["state"] != "idle":
        if time.monotonic() > until:
            raise TimeoutError("the index does not come to rest")
        time.sleep(0.2)


def _wait_until_embedded(client: StdioClient) -> None:
    until = time.monotonic() + 600
    while client.value("kb_status")["index"]["awaiting"] > 0:
        if time.monotonic() > until:
            raise TimeoutError("the backlog of embeddings does not come to an end")
        time.sleep(0.5)


def _real(root: Path, *options: str) -> StdioClient:
    return StdioClient([*server_command(root), *options], env=_environment(), timeout_s=300)


def _client(*arguments: str) -> StdioClient:
    return StdioClient(_command(*arguments), cwd=_ROOT, env=_environment(), timeout_s=300)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.benchmarks.bench_server", *arguments]


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}"}


def _resident(pid: int) -> float:
    """Resident memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError("no VmRSS")


def _write_tree(root: Path, files: int) -> None:
    """Notes of some two kilobytes each, in folders of a hundred."""
    chosen = random.Random(1)
    words = _Words(chosen)
    for number in range(files):
        folder = root / f"folder-{number // 100:03}"
        folder.mkdir(exist_ok=True)
        paragraphs = [" ".join(words.take(60)).capitalize() + "." for _ in range(5)]
        text = f"# {' '.join(words.take(3))} {number}\n\n" + "\n\n## Part\n\n".join(paragraphs) + "\n"
        (folder / f"note-{number:05}.md").write_text(text, encoding="utf-8")


class _Words:
    """Made-up words, as often as words are: the n-th word n times less often than the first."""

    def __init__(self, chosen: random.Random) -> None:
        self._chosen = chosen
        spelling = random.Random(0)
        syllables = [first + second for first in "bdfgklmnprstvz" for second in ("a", "e", "i", "o", "u", "an", "er")]
        made = dict.fromkeys(
            "".join(spelling.choices(syllables, k=spelling.choice((2, 3, 3, 4)))) for _ in range(_VOCABULARY * 2)
        )
        self._words = list(made)[:_VOCABULARY]
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))

    def take(self, count: int) -> list[str]:
        """Some words of a text."""
        return self._chosen.choices(self._words, cum_weights=self._weights, k=count)


if __name__ == "__main__":
    serve(sys.argv[1:])
