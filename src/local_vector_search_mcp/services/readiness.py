"""Whether indexes can answer a search now, with vectors or without, and what to tell about it."""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import time
from collections.abc import Sequence
from dataclasses import dataclass

from local_vector_search_mcp.errors import IndexIncompatible, IndexNotReady
from local_vector_search_mcp.index.home import is_never_indexed
from local_vector_search_mcp.index.manifest import Compatibility
from local_vector_search_mcp.services.corpus import Corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """One index that can answer.

    Attributes:
        corpus: Its tree.
        why_no_vectors: Why meaning cannot be searched in it; None where it can.
        awaiting: Chunks that have no vector yet.
        warnings: What there is to say whatever the mode.
    """

    corpus: Corpus
    why_no_vectors: str | None
    awaiting: int
    warnings: tuple[str, ...]


def readiness_of(chosen: Sequence[Corpus], *, wait_s: float) -> tuple[tuple[Readiness, ...], tuple[str, ...]]:
    """Which of several indexes can answer, and warnings about those that cannot.

    Args:
        chosen: The trees to be searched.
        wait_s: How long a first run that has not ended is waited for, all indexes together.

    Raises:
        IndexIncompatible: The project's index, or the only one asked, was built for another root or schema.
        IndexNotReady: Nothing is indexed in any of them.
    """
    deadline = time.monotonic() + wait_s
    ready: list[Readiness] = []
    warnings: list[str] = []
    not_ready: IndexNotReady | None = None
    for corpus in chosen:
        try:
            ready.append(_readiness(corpus, max(0.0, deadline - time.monotonic())))
        except IndexIncompatible as error:
            if corpus.is_project or len(chosen) == 1:
                raise
            warnings.append(f"Collection {corpus.name} was not searched. {error.message}")
        except IndexNotReady as error:
            not_ready = not_ready or error
            warnings.append(f"{_named(corpus)} was not searched. {error.message}")
    if not ready and not_ready is not None:
        raise not_ready
    return tuple(ready), tuple(warnings)


def _readiness(corpus: Corpus, wait_s: float) -> Readiness:
    ended = corpus.indexer.wait_first_run(wait_s)
    compatibility = _compatibility(corpus)
    warnings = list(compatibility.warnings())
    with corpus.database.reader() as connection:
        if not ended and is_never_indexed(connection):
            raise IndexNotReady(
                "Nothing is indexed yet: the first run is not that far. Ask again in a moment; kb_status tells "
                "how far it is, and kb_reindex starts a run."
            )
        has_vectors = connection.execute("SELECT 1 FROM vectors LIMIT 1").get is not None
        awaiting = int(connection.execute("SELECT count(*) FROM chunks WHERE embed_state = 0").get)
    if not ended:
        warnings.append(_unfinished(corpus))
    reason: str | None = None
    if not corpus.database.vectors_available:
        reason = f"vectors cannot be used. {corpus.database.vectors_reason}"
    elif not compatibility.vectors_usable:
        reason = "the index has the vectors of other settings, or none; rebuild it with kb_reindex (force: true)."
    elif not has_vectors:
        error = corpus.indexer.snapshot().embedding_error
        reason = f"no text has been embedded yet{f': {error}' if error else '.'}"
    return Readiness(corpus=corpus, why_no_vectors=reason, awaiting=awaiting, warnings=tuple(warnings))


def _compatibility(corpus: Corpus) -> Compatibility:
    try:
        return corpus.indexer.home.check_searchable()
    except IndexNotReady as error:
        if corpus.workspace.root.is_dir():
            raise
        raise IndexNotReady(
            f"The root {corpus.workspace.root} is gone, and its index with it. Bring it back; what was indexed is then "
            "searched again."
        ) from error


def _unfinished(corpus: Corpus) -> str:
    left = corpus.indexer.files_to_come()
    if left:
        return f"{_named(corpus)} is still being indexed for the first time: {left} files are to come."
    return f"{_named(corpus)} has not been indexed to its end yet; results may be missing."


def _named(corpus: Corpus) -> str:
    return "The project" if corpus.is_project else f"Collection {corpus.name}"
