"""Question sets of the third-party data, and the measure of retrieval: nDCG@10."""

import json
import math
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.benchmarks.support import data_root

PLACES = 10
"""How many places count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """Documents, questions, and which documents answer each question.

    ``relevant`` names documents by ``set/name.md``, the path under which the measurements index them.
    """

    name: str
    texts: Mapping[str, str]
    queries: Mapping[str, str]
    relevant: Mapping[str, Mapping[str, int]]

    def documents(self) -> Iterator[tuple[str, str]]:
        """Names without extension, and texts."""
        yield from self.texts.items()


def question_sets() -> list[str]:
    """The names of all question sets that are there."""
    root = data_root()
    return [] if root is None else sorted(path.name.removesuffix(".tar.gz") for path in (root / "ir").glob("*.tar.gz"))


def load_questions(name: str) -> QuestionSet | None:
    """One question set; None where the data is absent. Ids of questions are made unique by the set's name."""
    root = data_root()
    if root is None or not (root / "ir" / f"{name}.tar.gz").is_file():
        return None
    texts: dict[str, str] = {}
    queries: dict[str, str] = {}
    relevant: dict[str, dict[str, int]] = {}
    with tarfile.open(root / "ir" / f"{name}.tar.gz") as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is None:
                continue
            path, text = PurePosixPath(member.name), stream.read().decode("utf-8")
            if path.suffix == ".md":
                texts["/".join((*path.parts[2:-1], path.stem))] = text
            elif path.name == "queries.jsonl":
                for line in text.splitlines():
                    row = json.loads(line)
                    queries[f"{name}/{row['id']}"] = row["text"]
            elif path.name == "qrels.tsv":
                for line in text.splitlines():
                    query, document, grade = line.split("\t")
                    relevant.setdefault(f"{name}/{query}", {})[f"{name}/{document}.md"] = int(grade)
    return QuestionSet(name=name, texts=texts, queries=queries, relevant=relevant)


def mean_ndcg(found: Mapping[str, Sequence[str]], relevant: Mapping[str, Mapping[str, int]]) -> float:
    """Mean nDCG@10 over the questions that have an answer; a document counts once, by its best hit.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002, with gains 2^g - 1.
    """
    values = [_ndcg(found.get(query, ()), grades) for query, grades in relevant.items() if any(grades.values())]
    return sum(values) / len(values)


def _ndcg(ranking: Sequence[str], grades: Mapping[str, int]) -> float:
    gained = _gain([grades.get(name, 0) for name in dict.fromkeys(ranking)])
    return gained / _gain(sorted(grades.values(), reverse=True))


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades[:PLACES]))
