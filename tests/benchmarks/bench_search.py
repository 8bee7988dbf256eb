"""Lexical search in a large index, beside a plain OR of all words on the same full-text table.

The index holds the passages of two question sets among many made of sentences of the real trees, which answer none
of the questions, so that ranking can be compared too. Without the third-party data the sentences are made up, and
ranking is not compared.
"""

import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
from tests.benchmarks.retrieval import QuestionSet, load_questions, mean_ndcg
from tests.benchmarks.support import Row, Timing, unpacked
from tests.benchmarks.trees import split_sentences
from tests.support.indexed_project import Project

from local_vector_search_mcp.index.home import IndexHome
from local_vector_search_mcp.index.normalize import query_piece
from local_vector_search_mcp.index.rows import FileFacts, NoChunkHooks, write_document
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.search.lexical import COLUMN_WEIGHTS
from local_vector_search_mcp.search.query import parse_query
from local_vector_search_mcp.search.search import Searcher, SearchRequest, SearchSettings
from local_vector_search_mcp.services.indexing import IndexingSettings, index_document

_CHUNKS: Final = 100_000
_QUICK_CHUNKS: Final = 10_000
_QUERIES: Final = 300
_BAR: Final = 0.3


@dataclass(frozen=True, slots=True)
class _Answers:
    """Times of one way to search, and what it found for each question."""

    timing: Timing
    found: Mapping[str, Sequence[str]]


def run(quick: bool) -> list[Row]:
    """Search an index of 100,000 chunks (10,000 where it is to be quick)."""
    chunks = _QUICK_CHUNKS if quick else _CHUNKS
    questions = [found for name in ("cranfield", "xquad-en") if (found := load_questions(name)) is not None]
    with tempfile.TemporaryDirectory(prefix="lvs-search-") as folder:
        project = Project(Path(folder) / "notes", Path(folder) / "store")
        _fill(project.home, _passages(questions, chunks))
        asked = _asked(questions)
        ours, plain = _measure(project, asked)
        rows = [
            _time_row("median", chunks, ours.timing.median, plain.timing.median),
            _time_row("p95", chunks, ours.timing.percentile(0.95), plain.timing.percentile(0.95)),
        ]
        for one in questions:
            # Which of two rankings is better shows in all questions only: a hundred or two are as good as a coin.
            ours, plain = _measure(project, asked if quick else one.queries)
            rows.append(_quality_row(one, chunks, ours.found, plain.found))
        project.database.close()
    return rows


def _quality_row(
    questions: QuestionSet, chunks: int, ours: Mapping[str, Sequence[str]], plain: Mapping[str, Sequence[str]]
) -> Row:
    relevant = {query: judged for query, judged in questions.relevant.items() if query in ours}
    value, baseline = mean_ndcg(ours, relevant), mean_ndcg(plain, relevant)
    return Row(
        name=f"lexical search, {chunks:,} chunks, quality, {questions.name}",
        value=value,
        unit="nDCG@10",
        baseline=baseline,
        ratio=value / baseline,
        bar=">= plain OR",
        note=f"{len(relevant)} questions",
        passed=value >= baseline,
    )


def _time_row(what: str, chunks: int, seconds: float, baseline: float) -> Row:
    return Row(
        name=f"lexical search, {chunks:,} chunks, {what}",
        value=seconds * 1000,
        unit="ms",
        baseline=baseline * 1000,
        ratio=seconds / baseline,
        bar=f"<= {_BAR} x plain OR of all words",
        note="ours with filters, second look and snippets; the OR gives row ids and scores",
        passed=seconds <= _BAR * baseline,
    )


def _passages(questions: Sequence[QuestionSet], chunks: int) -> Iterator[tuple[str, str]]:
    """Paths and texts, one chunk each: the passages that answer questions, then mixtures of sentences."""
    made = 0
    sentences: list[str] = []
    for one in questions:
        for name, text in one.documents():
            yield f"{one.name}/{name}.md", text
            made += 1
    for archive in ("corpora/rust-book.tar.gz", "corpora/digital-garden.tar.gz"):
        with unpacked(archive) as folder:
            for path in sorted(folder.rglob("*.md")) if folder is not None else ():
                sentences += split_sentences(path.read_text(encoding="utf-8", errors="replace"))
    dice = random.Random(7)
    if not sentences:
        words = [f"w{number:x}" for number in range(20_000)]
        sentences = [" ".join(dice.choices(words, k=15)) + "." for _ in range(20_000)]
    while made < chunks:
        chosen = dice.choices(sentences, k=dice.randint(3, 14))
        yield f"notes/{made // 1000}/n{made}.md", f"# Note {made}\n\n{' '.join(chosen)}\n"
        made += 1


def _fill(home: IndexHome, passages: Iterator[tuple[str, str]]) -> None:
    home.ensure()
    settings = IndexingSettings(embeds=False)
    facts = FileFacts(size=1, mtime_ns=1, ctime_ns=1, inode=1)
    with home.database.writer() as connection:
        for path, text in passages:
            place = RelPath(path)
            rows = index_document(place, text.encode("utf-8"), settings)
            write_document(connection, place, facts, rows, hooks=NoChunkHooks())


def _asked(questions: Sequence[QuestionSet]) -> dict[str, str]:
    """So many questions, of every set the same number, by a fixed choice."""
    dice = random.Random(1)
    chosen: dict[str, str] = {}
    for one in questions:
        share = min(len(one.queries), _QUERIES // len(questions))
        chosen |= {query: one.queries[query] for query in dice.sample(sorted(one.queries), share)}
    if not chosen:
        chosen = {
            str(number): f"what is w{number:x} of the w{number * 7:x} and w{number % 9:x}" for number in range(200)
        }
    return chosen


def _measure(project: Project, asked: Mapping[str, str]) -> tuple[_Answers, _Answers]:
    searcher = Searcher(project.database, SearchSettings())
    ours: dict[str, list[str]] = {}
    plain: dict[str, list[str]] = {}
    our_seconds: list[float] = []
    plain_seconds: list[float] = []
    with project.database.reader() as connection:
        names = {
            int(row[0]): str(row[1])
            for row in connection.execute(
                "SELECT c.id, d.path FROM chunks AS c JOIN documents AS d ON d.id = c.document_id"
            )
        }
        for text in list(asked.values())[:20]:
            searcher.search(SearchRequest(query=parse_query(text)))
            _plain(connection, text)
        for query, text in asked.items():
            start = time.perf_counter()
            found = searcher.search(SearchRequest(query=parse_query(text)))
            between = time.perf_counter()
            ids = _plain(connection, text)
            end = time.perf_counter()
            our_seconds.append(between - start)
            plain_seconds.append(end - between)
            ours[query] = list(dict.fromkeys(hit.path for hit in found.hits))
            plain[query] = list(dict.fromkeys(names[chunk_id] for chunk_id in ids))
    return _Answers(Timing(tuple(our_seconds)), ours), _Answers(Timing(tuple(plain_seconds)), plain)


def _plain(connection: apsw.Connection, text: str) -> list[int]:
    """The ten best rows for a plain OR of all words, with the weights that we use."""
    match = " OR ".join(f'"{token}"' for token in query_piece(text).tokens)
    rows = connection.execute(
        "SELECT rowid, bm25(fts, ?, ?, ?, ?) AS score FROM fts WHERE fts MATCH ? ORDER BY score LIMIT 10",
        (*COLUMN_WEIGHTS, match),
    )
    return [int(row[0]) for row in rows]
