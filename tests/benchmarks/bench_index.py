"""Indexing: from nothing, with nothing changed, with one file changed; size and memory of the index."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import apsw
from markdown_it import MarkdownIt
from tests.benchmarks.support import Row, alternate, data_root
from tests.benchmarks.trees import bare_scan, fill_tree
from tests.support.indexed_project import Control, Project

from local_vector_search_mcp.index.schema import create_schema
from local_vector_search_mcp.relpath import RelPath

_WORKERS = 2
_MEMORY_SIZES = (1_000, 10_000)


def run(quick: bool) -> list[Row]:
    """Measure over a tree of real documents, repeated until there are enough files."""
    if data_root() is None:
        return []
    files = 2_000 if quick else 10_000
    with tempfile.TemporaryDirectory(prefix="lvs-bench-") as folder:
        root = Path(folder) / "tree"
        size = fill_tree(root, files)
        rows = [_from_nothing(root, Path(folder), files, size, repeats=1 if quick else 3)]
        project = Project(root, Path(folder) / "store", workers=_WORKERS, now_ns=lambda: time.time_ns() + 10**13)
        project.run()
        project.home.compact(project.database, should_stop=lambda: False)
        rows.append(_size(project, files, size))
        rows.append(_unchanged(project, files))
        rows.append(_one_changed(project, files))
        project.database.close()
        rows.append(_memory(Path(folder), files))
        return rows


def _from_nothing(root: Path, folder: Path, files: int, size: int, *, repeats: int) -> Row:
    number = iter(range(1_000))

    def ours() -> None:
        project = Project(root, folder / f"new{next(number)}", workers=_WORKERS)
        project.run()
        project.database.close()

    with ProcessPoolExecutor(_WORKERS, mp_context=get_context("spawn")) as pool:
        paths = sorted(str(path) for path in root.rglob("*.md"))
        batches = [paths[start : start + 64] for start in range(0, len(paths), 64)]
        list(pool.map(_bare_parse, batches[:_WORKERS]))

        def baseline() -> None:
            sum(pool.map(_bare_parse, batches))
            _bare_inserts(paths, folder / f"bare{next(number)}.db")

        our_time, base_time = alternate(ours, baseline, repeats=repeats, warm_up=0)
    ratio = our_time.median / base_time.median
    return Row(
        name=f"index from nothing, {files:,} files, {size / 1e6:.0f} MB, {_WORKERS} processes",
        value=our_time.median,
        unit="s",
        baseline=base_time.median,
        ratio=ratio,
        bar="<= 1.5 x bare parse in as many processes and bare FTS5 inserts",
        note="markdown-it-py's block parse, inline rules off; inserts with the same tokenizer, one row per file",
        passed=ratio <= 1.5,
    )


def _bare_parse(paths: Sequence[str]) -> int:
    """What the library itself takes: its block parse with the inline rules off."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return sum(len(parser.parse(_text(path))) for path in paths)


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _bare_inserts(paths: Sequence[str], file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.pragma("journal_mode", "wal")
    create_schema(connection)
    with connection:
        connection.executemany(
            "INSERT INTO fts (rowid, title, body) VALUES (?, ?, ?)",
            ((number, Path(path).name, _text(path)) for number, path in enumerate(paths, 1)),
        )
    connection.close()


def _size(project: Project, files: int, size: int) -> Row:
    taken = project.database.file.stat().st_size
    return Row(
        name=f"index size, {files:,} files, lexical",
        value=taken / 1e6,
        unit="MB",
        baseline=size / 1e6,
        ratio=taken / size,
        bar="<= 1.5 x the Markdown's bytes",
        note="links, metadata, packed text and full-text rows",
        passed=taken / size <= 1.5,
    )


def _unchanged(project: Project, files: int) -> Row:
    project.run()
    ours, baseline = alternate(lambda: project.run(), lambda: bare_scan(str(project.root)), repeats=21)
    ratio = ours.median / baseline.median
    return Row(
        name=f"reconcile with nothing changed, {files:,} files",
        value=ours.median * 1000,
        unit="ms",
        baseline=baseline.median * 1000,
        ratio=ratio,
        bar="<= 2 x os.scandir and stat of the same tree",
        passed=ratio <= 2,
    )


def _one_changed(project: Project, files: int) -> Row:
    text = "# Changed\n\n" + "A paragraph of twenty words or so that says a little about something.\n\n" * 280
    path = RelPath("changed.md")
    number = iter(range(1_000))

    def change() -> None:
        (project.root / path.value).write_text(f"{text}\nVersion {next(number)}.\n", encoding="utf-8")

    spent: list[float] = []
    for _ in range(15):
        change()
        begun = time.process_time()
        project.reconciler.update(project.database, [path], control=Control())
        spent.append(time.process_time() - begun)
    own = statistics.median(spent) * 1000
    return Row(
        name=f"one changed file of {len(text) / 1000:.0f} KB in an index of {files:,}, to searchable",
        value=own,
        unit="ms",
        bar="<= 100 ms of own work",
        note="processor time",
        passed=own <= 100,
    )


def _memory(folder: Path, most: int) -> Row:
    peaks: list[float] = []
    sizes = [min(size, most) for size in _MEMORY_SIZES]
    whole = folder / "memory"
    fill_tree(whole, sizes[-1])
    for size in sizes:
        root = folder / f"memory{size}"
        _take_share(whole, root, size)
        command = [sys.executable, "-c", _MEMORY_SCRIPT, str(root), str(folder / f"memory-store{size}")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        peaks.append(float(json.loads(done.stdout)))
    return Row(
        name=f"peak memory while indexing, {sizes[-1]:,} files",
        value=peaks[-1],
        unit="MiB",
        baseline=peaks[0],
        ratio=peaks[-1] / peaks[0],
        bar=f"does not grow with the tree (itself at {sizes[0]:,} files)",
        note="resident size of the indexing process; the same kinds of documents in both trees",
        passed=peaks[-1] / peaks[0] <= 1.3,
    )


def _take_share(whole: Path, root: Path, files: int) -> None:
    """Copy documents at even distances from a tree, so that trees of every size hold the same kinds of documents."""
    paths = sorted(whole.rglob("*.md"))
    for number in range(files):
        path = paths[number * len(paths) // files]
        target = root / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


_MEMORY_SCRIPT = """
import json, resource, sys
from pathlib import Path
from tests.support.indexed_project import Project
Project(Path(sys.argv[1]), Path(sys.argv[2]), workers=2).run()
status = Path("/proc/self/status")
if status.exists():
    # Linux counts the memory of the process that started this one in ru_maxrss.
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
print(json.dumps(peak / 1024))
"""
