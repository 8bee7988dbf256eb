"""How everything grows: 10,000, 100,000 and 1,000,000 chunks, filled, searched, listed and reconciled.

Takes an hour and four gigabytes, so it runs only when it is named: ``python tests/benchmarks/run.py scale``. Documents
have ten chunks each, of sentences of the real trees and question sets, or of made-up words where the third-party data
is absent. Vectors are those of the default model. Every stage is a process of its own, whose peak memory is its own.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import apsw
from tests.benchmarks.retrieval import load_questions
from tests.benchmarks.support import Row, Timing
from tests.benchmarks.trees import bare_scan, sentences
from tests.support.indexed_project import Control, Project

from local_vector_search_mcp.app import App, open_app
from local_vector_search_mcp.config.loader import load_config
from local_vector_search_mcp.embeddings.local import StaticProvider
from local_vector_search_mcp.index import state, vectors
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.normalize import query_piece
from local_vector_search_mcp.search.lexical import COLUMN_WEIGHTS
from local_vector_search_mcp.services.embedding import EmbeddingBacklog

ONLY_WHEN_NAMED: Final = True

_SIZES: Final = (10_000, 100_000, 1_000_000)
_QUICK_SIZES: Final = (1_000, 10_000)
_CHUNKS_PER_FILE: Final = 10
_FILES_PER_FOLDER: Final = 100
_QUERIES: Final = 40
_EXACT_QUERIES: Final = 20
_FEW: Final = 10
_TOP: Final = 10
_REPEATS: Final = 5
_WARM_UP: Final = 3


@dataclass(frozen=True, slots=True)
class _Measure:
    """A figure of every size: its name in the children's answers and on the page."""

    key: str
    name: str
    unit: str
    note: str = ""
    baseline: str = ""  # The key of what it is compared with in the same run.
    least: float | None = None  # The bar, where every size has one.


_MEASURES: Final = (
    _Measure("index_ms", "time to index a chunk", "ms", "lexical, one process, merging included"),
    _Measure("index_mib", "peak memory while indexing", "MiB"),
    _Measure("lexical_mb", "index size, lexical", "MB", "baseline: the Markdown's bytes", "tree_mb"),
    _Measure("embed_ms", "time to embed a chunk", "ms", "model and rows"),
    _Measure("embed_mib", "peak memory while embedding", "MiB"),
    _Measure("vector_mb", "index size, with vectors of 256 dimensions", "MB"),
    _Measure("lexical_ms", "lexical search, median", "ms", "baseline: a plain OR of all words", "plain_ms"),
    _Measure("lexical_p95_ms", "lexical search, p95", "ms", "baseline: a plain OR of all words", "plain_p95_ms"),
    _Measure("nearest_ms", "vector search, median", "ms", "baseline: exact search of the same table", "exact_ms"),
    _Measure(
        "recall", "vector search, recall@10", "share", f"{_EXACT_QUERIES} queries against the exact order", least=0.97
    ),
    _Measure("hybrid_ms", "hybrid search, median", "ms", "the query's vector included"),
    _Measure("hybrid_p95_ms", "hybrid search, p95", "ms"),
    _Measure("tenth_ms", "hybrid search in a tenth of the documents, median", "ms", "a glob"),
    _Measure("all_ms", "hybrid search with a filter that all documents pass, median", "ms", "modifiedAfter"),
    _Measure("context_ms", "kb_context of 8,000 tokens, median", "ms", "in process"),
    _Measure("links_ms", "kb_links, incoming, median", "ms", "in process"),
    _Measure("status_ms", "kb_status, median", "ms", "in process"),
    _Measure("list_ms", "kb_list_files, first page of 100, median", "ms", "in process; walks the tree"),
    _Measure("search_mib", "peak memory of a searching process", "MiB", "all of these calls"),
    _Measure("unchanged_ms", "reconcile with nothing changed", "ms", "baseline: os.scandir and stat", "scan_ms"),
    _Measure("changed_ms", "one changed document, to searchable", "ms", "processor time"),
    _Measure("unchanged_mib", "peak memory of that reconciling", "MiB"),
)


def run(quick: bool) -> list[Row]:
    """Measure every size in turn; the files of one are gone before the next is made."""
    sizes = _QUICK_SIZES if quick else _SIZES
    found: list[Mapping[str, float]] = []
    for chunks in sizes:
        with tempfile.TemporaryDirectory(prefix="lvs-scale-") as folder:
            found.append(_measure(Path(folder), chunks // _CHUNKS_PER_FILE))
    return [row for measure in _MEASURES for row in _rows(measure, sizes, found)]


def _measure(folder: Path, files: int) -> dict[str, float]:
    figures = {"tree_mb": _write_tree(folder / "tree", files) / 1e6}
    for stage in _STAGES:
        command = [sys.executable, "-m", "tests.benchmarks.bench_scale", stage, str(folder)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        print(f"{files:,} files, {stage}: {answer}", file=sys.stderr, flush=True)
        figures |= answer
    return figures


def _rows(measure: _Measure, sizes: Sequence[int], found: Sequence[Mapping[str, float]]) -> Iterator[Row]:
    for place, (chunks, figures) in enumerate(zip(sizes, found, strict=True)):
        value = figures[measure.key]
        baseline = figures.get(measure.baseline)
        notes = [measure.note] if measure.note else []
        if place:
            grown = value / found[place - 1][measure.key]
            notes.append(f"x {grown:.2f} for x {chunks / sizes[place - 1]:g} chunks")
        yield Row(
            name=f"{measure.name}, {chunks:,} chunks",
            value=value,
            unit=measure.unit,
            baseline=baseline,
            ratio=None if baseline is None else value / baseline,
            bar="" if measure.least is None else f">= {measure.least}",
            note="; ".join(notes),
            passed=None if measure.least is None else value >= measure.least,
        )


def _write_tree(root: Path, files: int) -> int:
    """Documents of ten sections of the first level, so of ten chunks each; the bytes of all."""
    pool, size = sentences(), 0
    for number in range(files):
        dice = random.Random(number)
        folder = root / f"folder{number // _FILES_PER_FOLDER:04}"
        folder.mkdir(parents=True, exist_ok=True)
        parts = (
            f"# Part {part} of {number}\n\n{' '.join(dice.choices(pool, k=dice.randint(3, 6)))}\n"
            for part in range(_CHUNKS_PER_FILE)
        )
        size += (folder / f"note{number}.md").write_bytes("\n".join(parts).encode())
    return size


# Stages, each in a process of its own


def _index(folder: Path) -> dict[str, float]:
    project = _project(folder)
    began = time.perf_counter()
    project.run()
    with project.database.writer() as connection:
        state.count_run(connection)
    project.home.compact(project.database, should_stop=lambda: False)
    seconds = time.perf_counter() - began
    chunks = _chunks(project.database)
    taken = project.database.file.stat().st_size
    project.database.close()
    return {"index_ms": seconds * 1000 / chunks, "lexical_mb": taken / 1e6, "index_mib": _peak_mib()}


def _embed(folder: Path) -> dict[str, float]:
    project = _project(folder)
    parts = project.parts
    assert parts.backlog_of is not None
    project.home.ensure()
    backlog: EmbeddingBacklog = parts.backlog_of(project.database)
    began = time.perf_counter()
    outcome = backlog.run(should_stop=lambda: False, progress=lambda _done, _total: None)
    seconds = time.perf_counter() - began
    assert outcome.embedded == _chunks(project.database), outcome
    project.database.trim()
    taken = project.database.file.stat().st_size
    project.database.close()
    return {"embed_ms": seconds * 1000 / outcome.embedded, "vector_mb": taken / 1e6, "embed_mib": _peak_mib()}


def _search(folder: Path) -> dict[str, float]:
    app = _app(folder)
    queries = _queries()
    with app.corpora.project.database.reader() as connection:
        ours, plain = _in_turn(
            lambda text: app.searching.search(query=text, mode="lexical"),
            lambda text: _plain(connection, text),
            queries,
        )
        packed = [app.provider.embed_query(text).vector for text in queries[:_EXACT_QUERIES]]
        found: dict[bytes, list[int]] = {}
        expected: dict[bytes, list[int]] = {}
        near, exact = _in_turn(
            lambda vector: found.update({vector: _nearest(connection, vector)}),
            lambda vector: expected.update({vector: _exact(connection, vector)}),
            packed,
        )
    shared = sum(len(set(found[vector]) & set(expected[vector])) for vector in packed)
    answer = {
        "lexical_ms": ours.median * 1000,
        "lexical_p95_ms": ours.percentile(0.95) * 1000,
        "plain_ms": plain.median * 1000,
        "plain_p95_ms": plain.percentile(0.95) * 1000,
        "nearest_ms": near.median * 1000,
        "exact_ms": exact.median * 1000,
        "recall": shared / sum(map(len, expected.values())),
    }
    app.close()
    return answer


def _serve(folder: Path) -> dict[str, float]:
    """What a server does all day, without baselines that would take memory of their own."""
    app = _app(folder)
    queries = _queries()
    for mode in ("lexical", "semantic"):
        for text in queries:
            assert app.searching.search(query=text, mode=mode).results
    hybrid = Timing(tuple(_seconds(partial(_hybrid, app, text)) for text in queries))
    few = queries[:: _QUERIES // _FEW]
    tenth = [_seconds(partial(_hybrid, app, text, include_glob="**/note*7.md")) for text in few]
    everything = [_seconds(partial(_hybrid, app, text, modified_after="2000-01-01")) for text in few]
    contexts = [_seconds(partial(app.context.context, query=text, token_budget=8_000)) for text in few]
    incoming = [
        _seconds(partial(app.links.links, direction="incoming", path=f"folder0000/note{number}.md"))
        for number in range(_REPEATS)
    ]
    status = [_seconds(app.status.status) for _ in range(_REPEATS)]
    pages = [_seconds(app.listing.list_files) for _ in range(_REPEATS)]
    answer = {
        "hybrid_ms": hybrid.median * 1000,
        "hybrid_p95_ms": hybrid.percentile(0.95) * 1000,
        "tenth_ms": statistics.median(tenth) * 1000,
        "all_ms": statistics.median(everything) * 1000,
        "context_ms": statistics.median(contexts) * 1000,
        "links_ms": statistics.median(incoming) * 1000,
        "status_ms": statistics.median(status) * 1000,
        "list_ms": statistics.median(pages) * 1000,
        "search_mib": _peak_mib(),
    }
    app.close()
    return answer


def _hybrid(app: App, text: str, *, include_glob: str | None = None, modified_after: str | None = None) -> None:
    result = app.searching.search(query=text, mode="hybrid", include_glob=include_glob, modified_after=modified_after)
    assert result.mode == "hybrid" and result.results, result.warnings


def _reconcile(folder: Path) -> dict[str, float]:
    project = _project(folder)
    project.run()

    def unchanged() -> None:
        tally = project.run()
        assert not tally.changed and not tally.removed, tally

    tree = str(project.root)
    ours, scans = _in_turn(lambda _: unchanged(), lambda _: bare_scan(tree), range(_REPEATS))
    answer = {
        "unchanged_ms": ours.median * 1000,
        "scan_ms": scans.median * 1000,
        "unchanged_mib": _peak_mib(),
        "changed_ms": _one_changed(project) * 1000,
    }
    project.database.close()
    return answer


def _one_changed(project: Project) -> float:
    """Processor time from a changed document of twenty kilobytes to its rows."""
    text = "# Changed\n\n" + "A paragraph of twenty words or so that says a little about something.\n\n" * 280
    spent: list[float] = []
    for number in range(_REPEATS + 2):
        path = project.put("changed.md", f"{text}\nVersion {number}.\n")
        began = time.process_time()
        project.reconciler.update(project.database, [path], control=Control())
        spent.append(time.process_time() - began)
    return statistics.median(spent)


_STAGES: Final[dict[str, Callable[[Path], dict[str, float]]]] = {
    "index": _index,
    "embed": _embed,
    "search": _search,
    "serve": _serve,
    "reconcile": _reconcile,
}


# What stages share


def _project(folder: Path) -> Project:
    # A clock far ahead: nothing was changed a moment ago.
    return Project(folder / "tree", folder / "store", provider=StaticProvider(), now_ns=lambda: time.time_ns() + 10**13)


def _app(folder: Path) -> App:
    overrides: dict[str, Any] = {"--storage-path": str(folder / "store" / "index.db")}
    config = load_config(config_file=None, environ={}, overrides=overrides, project_root=folder / "tree")
    return open_app(config, for_server=False, environ={})


def _queries() -> list[str]:
    """The same questions for every size; half of each set."""
    dice = random.Random(1)
    sets = [found for name in ("cranfield", "xquad-en") if (found := load_questions(name)) is not None]
    chosen = [one.queries[query] for one in sets for query in dice.sample(sorted(one.queries), _QUERIES // len(sets))]
    return chosen or [f"what is w{number:x} of the w{number * 7:x} and w{number % 9:x}" for number in range(_QUERIES)]


def _in_turn(
    ours: Callable[[Any], object], baseline: Callable[[Any], object], given: Sequence[Any]
) -> tuple[Timing, Timing]:
    """Times of both for each of what is given, after a few that do not count."""
    for one in given[:_WARM_UP]:
        ours(one)
        baseline(one)
    first: list[float] = []
    second: list[float] = []
    for one in given:
        first.append(_seconds(partial(ours, one)))
        second.append(_seconds(partial(baseline, one)))
    return Timing(tuple(first)), Timing(tuple(second))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _plain(connection: apsw.Connection, text: str) -> list[int]:
    match = " OR ".join(f'"{token}"' for token in query_piece(text).tokens)
    rows = connection.execute(
        "SELECT rowid, bm25(fts, ?, ?, ?, ?) AS score FROM fts WHERE fts MATCH ? ORDER BY score LIMIT 10",
        (*COLUMN_WEIGHTS, match),
    )
    return [int(row[0]) for row in rows]


def _nearest(connection: apsw.Connection, vector: bytes) -> list[int]:
    return [one.chunk_id for one in vectors.nearest(connection, vector, k=_TOP)]


def _exact(connection: apsw.Connection, vector: bytes) -> list[int]:
    rows = connection.execute(
        "SELECT chunk_id FROM vectors ORDER BY vec_distance_cosine(vector, ?), chunk_id LIMIT ?", (vector, _TOP)
    )
    return [int(row[0]) for row in rows]


def _chunks(database: IndexDatabase) -> int:
    with database.reader() as connection:
        return state.counts(connection).chunks


def _peak_mib() -> float:
    """The most memory that this process ever had resident; 0 where the system does not say."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    lines = status.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    print(json.dumps(_STAGES[sys.argv[1]](Path(sys.argv[2]))))
