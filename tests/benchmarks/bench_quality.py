"""Retrieval quality: nDCG@10 with default settings, beside plain FTS5, bm25s and grep, one row per set and mode.

A folder with an ONNX sentence-embedding model, named by ``LVS_ONNX_MODEL``, adds a hybrid row with that model.
"""

import importlib
import math
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
from tests.benchmarks.retrieval import PLACES, QuestionSet, load_questions, mean_ndcg, question_sets
from tests.benchmarks.support import Row
from tests.support.indexed_project import Project

from local_vector_search_mcp.config.models import Config, EmbeddingSection
from local_vector_search_mcp.config.settings import search_settings
from local_vector_search_mcp.embeddings.factory import EmbeddingSettings, make_provider
from local_vector_search_mcp.embeddings.provider import EmbeddingProvider
from local_vector_search_mcp.search.query import parse_query
from local_vector_search_mcp.search.search import Searcher, SearchRequest, SearchSettings
from local_vector_search_mcp.search.stop_words import ENGLISH
from local_vector_search_mcp.services.embedding import EmbeddingBacklog

_WORD: Final = re.compile(r"\w+")
_TITLE_WEIGHT: Final = 5.0
_NEAR: Final = 0.01
_MINILM_GAIN: Final = 0.03

Rank = Callable[[str], Sequence[str]]


def run(quick: bool) -> list[Row]:
    """Measure every question set that is there; a quick run takes one question in five."""
    rows: list[Row] = []
    for name in question_sets():
        questions = load_questions(name)
        if questions is not None:
            rows += _rows_of(questions, step=5 if quick else 1)
    return [*rows, *_averages(rows)]


def _rows_of(questions: QuestionSet, *, step: int) -> list[Row]:
    asked = {query: questions.queries[query] for query in sorted(questions.queries)[::step]}
    relevant = {query: grades for query, grades in questions.relevant.items() if query in asked}

    def measured(rank: Rank) -> float:
        return mean_ndcg({query: rank(text) for query, text in asked.items()}, relevant)

    baselines = {
        "plain FTS5": measured(_plain_fts5(questions)),
        "bm25s": measured(_bm25s(questions)),
        "grep": measured(_grep(questions)),
    }
    better = max(baselines["plain FTS5"], baselines["bm25s"])
    scores = _ours(questions, measured)
    rows = [
        _row(questions.name, mode, value, _bar(mode, value, scores, better), note=f"{len(relevant)} questions")
        for mode, value in scores.items()
    ]
    rows += [
        Row(name=f"{questions.name}, {name}", value=value, unit="nDCG@10", note="baseline")
        for name, value in baselines.items()
    ]
    return rows


def _ours(questions: QuestionSet, measured: Callable[[Rank], float]) -> dict[str, float]:
    """Each mode with default settings; a document counts once, by its best hit."""
    with tempfile.TemporaryDirectory(prefix="lvs-quality-") as folder:
        scores = _with_model(questions, measured, Path(folder) / "local", EmbeddingSection())
        model = os.environ.get("LVS_ONNX_MODEL")
        if model:
            section = EmbeddingSection(model=model)
            found = _with_model(questions, measured, Path(folder) / "onnx", section)
            scores["hybrid, sentence model"] = found["hybrid"]
        return scores


def _with_model(
    questions: QuestionSet, measured: Callable[[Rank], float], folder: Path, section: EmbeddingSection
) -> dict[str, float]:
    provider = make_provider(EmbeddingSettings(model=section.model), base_folder=folder)
    project = Project(folder / "notes", folder / "store", provider=provider)
    for name, text in questions.documents():
        project.put(f"{questions.name}/{name}.md", text)
    project.run()
    EmbeddingBacklog(
        project.database,
        provider,
        settings=project.settings.embedding_text,
        cache_days=1,
        now_s=time.time,
        record_dimensions=project.home.record_dimensions,
    ).run(should_stop=lambda: False, progress=lambda _done, _total: None)
    settings = search_settings(Config(project_root=folder, embedding=section))
    scores = {
        mode: measured(_searching(project, settings, provider, lexical=lexical, semantic=semantic))
        for mode, lexical, semantic in (("lexical", True, False), ("semantic", False, True), ("hybrid", True, True))
    }
    project.database.close()
    return scores


def _searching(
    project: Project, settings: SearchSettings, provider: EmbeddingProvider, *, lexical: bool, semantic: bool
) -> Rank:
    searcher = Searcher(project.database, settings)

    def rank(text: str) -> Sequence[str]:
        query = parse_query(text)
        vector = provider.embed_query(query.text_to_embed).vector if semantic else None
        # One chunk of a document fills a place, as only the best one counts.
        found = searcher.search(SearchRequest(query=query, lexical=lexical, vector=vector, top_k=PLACES))
        return [hit.path for hit in found.hits]

    return rank


def _bar(mode: str, value: float, scores: Mapping[str, float], better: float) -> tuple[str, float | None, bool | None]:
    """The bar of a mode in words, what it is compared with, and whether it is met."""
    if mode == "lexical":
        return f">= better baseline - {_NEAR}", better, value >= better - _NEAR
    if mode == "hybrid":
        part = max(scores["lexical"], scores["semantic"])
        return f">= better part - {_NEAR}", part, value >= part - _NEAR
    if mode == "semantic":
        return "", None, None
    return f">= lexical + {_MINILM_GAIN} on Cranfield", scores["lexical"], None


def _row(name: str, mode: str, value: float, bar: tuple[str, float | None, bool | None], *, note: str) -> Row:
    words, baseline, passed = bar
    return Row(
        name=f"{name}, {mode}",
        value=value,
        unit="nDCG@10",
        baseline=baseline,
        ratio=value / baseline if baseline else None,
        bar=words,
        note=note,
        passed=passed,
    )


def _averages(rows: Sequence[Row]) -> list[Row]:
    """The averages over all sets that the bars speak of."""
    found: list[Row] = []
    for mode, bar in (("lexical", "> better baseline on average"), ("hybrid", "> both parts on average")):
        own = [row for row in rows if row.name.endswith(f", {mode}")]
        if not own:
            continue
        value = math.fsum(row.value for row in own) / len(own)
        baseline = math.fsum(row.baseline or 0.0 for row in own) / len(own)
        if mode == "hybrid":
            parts = [
                math.fsum(row.value for row in rows if row.name.endswith(f", {part}")) / len(own)
                for part in ("lexical", "semantic")
            ]
            baseline = max(parts)
        found.append(
            Row(
                name=f"average of {len(own)} sets, {mode}",
                value=value,
                unit="nDCG@10",
                baseline=baseline,
                ratio=value / baseline,
                bar=bar,
                passed=value > baseline,
            )
        )
    return found


def _split(text: str) -> tuple[str, str]:
    """Title and rest of a document that begins with a heading."""
    first, _, rest = text.partition("\n")
    return (first.lstrip("# "), rest) if first.startswith("#") else ("", text)


def _telling(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return [word for word in words if word not in ENGLISH] or words


def _plain_fts5(questions: QuestionSet) -> Rank:
    """``porter unicode61``, any term, stop words dropped, BM25 with the title weighted."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(title, body, tokenize='porter unicode61')")
    names = [f"{questions.name}/{name}.md" for name, _ in questions.documents()]
    connection.executemany(
        "INSERT INTO t (rowid, title, body) VALUES (?, ?, ?)",
        [(number, *_split(text)) for number, (_, text) in enumerate(questions.documents())],
    )

    def rank(text: str) -> Sequence[str]:
        match = " OR ".join(f'"{word}"' for word in _telling(text))
        rows = connection.execute(
            "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t, ?, 1.0) LIMIT ?", (match, _TITLE_WEIGHT, PLACES)
        )
        return [names[int(row[0])] for row in rows]

    return rank


def _bm25s(questions: QuestionSet) -> Rank:
    """The bm25s library with its English stop words and Snowball's stemmer."""
    # Neither library says what its functions take and give.
    bm25s: Any = importlib.import_module("bm25s")
    stemmer: Any = importlib.import_module("Stemmer").Stemmer("english")
    names = [f"{questions.name}/{name}.md" for name, _ in questions.documents()]
    tokens = bm25s.tokenize(
        [text for _, text in questions.documents()], stopwords="en", stemmer=stemmer, show_progress=False
    )
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)

    def rank(text: str) -> Sequence[str]:
        asked = bm25s.tokenize([text], stopwords="en", stemmer=stemmer, show_progress=False)
        documents, _ = index.retrieve(asked, k=PLACES, show_progress=False)
        return [names[int(number)] for number in documents[0]]

    return rank


def _grep(questions: QuestionSet) -> Rank:
    """Documents by how many of the words they hold, then by how often: what ``grep -ic`` for each word tells."""
    counts = {
        f"{questions.name}/{name}.md": Counter(_WORD.findall(text.lower())) for name, text in questions.documents()
    }

    def rank(text: str) -> Sequence[str]:
        words = set(_telling(text))
        scored = [
            (sum(1 for word in words if count[word]), sum(count[word] for word in words), name)
            for name, count in counts.items()
        ]
        best = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], -one[1], one[2]))
        return [name for _, _, name in best[:PLACES]]

    return rank
