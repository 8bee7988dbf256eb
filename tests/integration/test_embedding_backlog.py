"""The backlog of chunks to embed, over a real index."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw
import pytest
from tests.support.fake_embeddings import FakeEmbeddings

from local_vector_search_mcp.embeddings.provider import Embedding, EmbeddingFailure
from local_vector_search_mcp.errors import EmbeddingUnavailable
from local_vector_search_mcp.index import vectors
from local_vector_search_mcp.index.chunks import Chunk, ChunkElement
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.embedding_text import EmbeddingTextSettings, embed_hash, embedding_text
from local_vector_search_mcp.index.packing import pack_chunk
from local_vector_search_mcp.index.rows import ChunkRow, DocumentRows, FileFacts, delete_document, write_document
from local_vector_search_mcp.index.schema import create_schema
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.source import ByteRange
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services import embedding
from local_vector_search_mcp.services.embedding import BacklogOutcome, EmbeddingBacklog, VectorHooks

SETTINGS = EmbeddingTextSettings(include_heading_context=False)
DAY_S = 86_400.0


class Index:
    """A real index file with documents of one paragraph per chunk, and its backlog."""

    def __init__(self, file: Path) -> None:
        self.database = IndexDatabase(file, on_open=create_schema)
        self.now_s = 1_000 * DAY_S
        self.hooks = VectorHooks(lambda: self.now_s)
        self.dimensions: int | None = None

    def write(self, path: str, *texts: str) -> int:
        facts = FileFacts(size=1, mtime_ns=1, ctime_ns=1, inode=1)
        rows = DocumentRows(
            source_hash="0" * 16, title=path, title_from_name=True, warning=None, metadata=None,
            aliases=(), tags=(), anchors=None, links=None, link_names=(), fts_title=path, fts_keys=path,
            chunks=tuple(self._chunk(number, text) for number, text in enumerate(texts)),
        )  # fmt: skip
        with self.database.writer() as connection:
            return write_document(connection, RelPath.parse(path), facts, rows, hooks=self.hooks)

    def delete(self, document_id: int) -> None:
        with self.database.writer() as connection:
            delete_document(connection, document_id, hooks=self.hooks)

    def backlog(self, provider: FakeEmbeddings, *, cache_days: int = 30) -> EmbeddingBacklog:
        return EmbeddingBacklog(
            self.database,
            provider,
            settings=SETTINGS,
            cache_days=cache_days,
            now_s=lambda: self.now_s,
            record_dimensions=self._record,
        )

    def _record(self, _connection: apsw.Connection, dimensions: int) -> None:
        if self.dimensions not in (None, dimensions):
            raise EmbeddingUnavailable("The index holds vectors of another length.")
        self.dimensions = dimensions

    def states(self) -> list[int]:
        with self.database.reader() as connection:
            return [row[0] for row in connection.execute("SELECT embed_state FROM chunks ORDER BY id")]

    def count(self, table: str) -> int:
        with self.database.reader() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").get)

    @staticmethod
    def _chunk(number: int, text: str) -> ChunkRow:
        element = ChunkElement("p1", ElementKind.PARAGRAPH, 0, len(text), 0, text)
        chunk = Chunk(
            ordinal=number, text=text, lead=0, range=ByteRange(0, len(text.encode())), lines=(1, 1),
            heading_paths=((),), elements=(element,),
        )  # fmt: skip
        return ChunkRow(
            kinds=chunk.kinds, line_start=1, line_end=1, byte_start=0, byte_end=chunk.range.end,
            embed_hash=embed_hash(embedding_text("", (), text, SETTINGS)), content=pack_chunk(chunk, b""),
            fts_headings="", fts_body=text,
        )  # fmt: skip


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    made = Index(tmp_path / "index.db")
    yield made
    made.database.close()


def run(
    backlog: EmbeddingBacklog,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> BacklogOutcome:
    return backlog.run(should_stop=should_stop, progress=progress)


def test_backlog__embeds_every_chunk_once(index: Index) -> None:
    """All waiting chunks get a vector; equal texts are embedded once; a second run has nothing to do."""
    index.write("a.md", "alpha beta", "same words")
    index.write("b.md", "same words", "gamma")
    provider = FakeEmbeddings()
    assert run(index.backlog(provider)) == BacklogOutcome(embedded=4, failed=0, interrupted=False)
    assert index.states() == [1, 1, 1, 1]
    assert provider.calls == 3
    assert run(index.backlog(provider)) == BacklogOutcome(embedded=0, failed=0, interrupted=False)
    with index.database.reader() as connection:
        query = provider.embed_query("gamma")
        assert vectors.nearest(connection, query.vector, k=1)[0].chunk_id == 4


def test_backlog__moved_and_rewritten_text_costs_no_call(index: Index) -> None:
    """Text that was embedded before is adopted when it is written elsewhere, or again."""
    first = index.write("a.md", "alpha", "beta")
    provider = FakeEmbeddings()
    run(index.backlog(provider))
    index.delete(first)
    assert index.count("vectors") == 0
    index.write("elsewhere/b.md", "beta", "alpha", "new")
    assert index.states() == [1, 1, 0]
    run(index.backlog(provider))
    assert provider.calls == 3


def test_backlog__a_refused_text_is_marked_and_the_rest_goes_on(index: Index) -> None:
    """One text that the model refuses has a reason and no vector, and can be tried again."""
    index.write("a.md", "good", "poison", "fine")
    backlog = index.backlog(FakeEmbeddings(refuse="poison"))
    assert run(backlog) == BacklogOutcome(embedded=2, failed=1, interrupted=False)
    assert index.states() == [1, 2, 1]
    assert index.count("embedding_failures") == 1
    assert index.backlog(FakeEmbeddings()).retry_failed() == 1
    assert run(index.backlog(FakeEmbeddings())).embedded == 1
    assert index.states() == [1, 1, 1]


def test_backlog__a_provider_that_is_down_leaves_the_backlog(index: Index) -> None:
    """Nothing is marked while the provider is away; the run after it is back embeds all."""
    index.write("a.md", "alpha", "beta")
    provider = FakeEmbeddings()
    provider.down = True
    with pytest.raises(EmbeddingUnavailable):
        run(index.backlog(provider))
    assert index.states() == [0, 0]
    provider.down = False
    assert run(index.backlog(provider)).embedded == 2


def test_backlog__goes_on_after_an_interruption(index: Index) -> None:
    """A run that is stopped between two steps keeps its work, and the next one does the rest."""
    index.write("a.md", *(f"text number {number}" for number in range(300)))
    provider = FakeEmbeddings()
    seen: list[tuple[int, int]] = []
    outcome = run(
        index.backlog(provider),
        should_stop=lambda: bool(seen),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert outcome.interrupted
    assert seen == [(outcome.embedded, 300)]
    assert 0 < outcome.embedded < 300
    rest = run(index.backlog(provider))
    assert (outcome.embedded + rest.embedded, rest.interrupted) == (300, False)
    assert provider.calls == 300


def test_backlog__chunks_are_embedded_in_the_order_of_their_rows(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are looked up at a time: rows that stand together are read, and vectors written, together."""
    monkeypatch.setattr(embedding, "_STEP_CHUNKS", 3)
    monkeypatch.setattr(embedding, "_AHEAD_CHUNKS", 7)
    texts = [f"text {number}" for number in range(40)]
    index.write("a.md", *texts[:25])
    index.write("b.md", *texts[25:], texts[0])
    provider = FakeEmbeddings()
    assert run(index.backlog(provider)).embedded == 41
    assert provider.texts == texts


def test_backlog__what_goes_while_others_are_embedded_is_passed_over(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that were looked up and then deleted cost no call, and those that came meanwhile are embedded."""
    monkeypatch.setattr(embedding, "_STEP_CHUNKS", 2)
    index.write("a.md", "one", "two")
    gone = index.write("b.md", "three", "four", "five", "six")
    index.write("c.md", "seven")

    def edit(done: int, _total: int) -> None:
        if done == 2:
            index.delete(gone)
            index.write("d.md", "eight", "one")

    provider = FakeEmbeddings()
    assert run(index.backlog(provider), progress=edit).interrupted is False
    assert provider.texts == ["one", "two", "seven", "eight"]
    assert set(index.states()) == {1}


def test_backlog__goes_on_after_a_step_whose_chunks_went_while_they_were_embedded(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors that nobody wants any more are not the end of the backlog."""
    monkeypatch.setattr(embedding, "_STEP_CHUNKS", 2)
    gone = index.write("a.md", "one", "two")
    index.write("b.md", "three", "four")

    class Slow(FakeEmbeddings):
        def embed_documents(self, texts: Sequence[str]) -> list[Embedding | EmbeddingFailure]:
            if "one" in texts:
                index.delete(gone)
            return super().embed_documents(texts)

    assert run(index.backlog(Slow())) == BacklogOutcome(embedded=2, failed=0, interrupted=False)
    assert index.states() == [1, 1]


def test_backlog__vectors_of_another_length_are_never_stored(index: Index) -> None:
    """A model that answers other dimensions than the index holds stops the run, and nothing is mixed."""
    first = index.write("a.md", "alpha")
    run(index.backlog(FakeEmbeddings(dimensions=32)))
    index.write("b.md", "beta")
    with pytest.raises(EmbeddingUnavailable):
        run(index.backlog(FakeEmbeddings(dimensions=48)))
    assert index.states() == [1, 0]
    assert index.count("vectors") == 1
    index.delete(first)


def test_backlog__a_model_that_mixes_lengths_is_refused(index: Index) -> None:
    """Two lengths in one answer write nothing at all."""

    class Mixing(FakeEmbeddings):
        def embed_documents(self, texts: object) -> list[Embedding | EmbeddingFailure]:
            return [Embedding(b"\0" * 4 * length, length) for length in (8, 9)]

    index.write("a.md", "alpha", "beta")
    with pytest.raises(EmbeddingUnavailable, match="different lengths"):
        run(index.backlog(Mixing()))
    assert index.states() == [0, 0]
    assert index.count("vectors") == 0


def test_backlog__cached_vectors_end_after_their_days(index: Index) -> None:
    """A text that is gone longer than the cache keeps it is embedded anew."""
    document = index.write("a.md", "alpha")
    provider = FakeEmbeddings()
    run(index.backlog(provider))
    index.delete(document)
    index.now_s += 31 * DAY_S
    run(index.backlog(provider, cache_days=30))
    assert index.count("vector_cache") == 0
    index.write("a.md", "alpha")
    assert index.states() == [0]


def test_backlog__deleted_documents_leave_no_vector(index: Index) -> None:
    """Chunks and vectors go together, however often a document is written and deleted."""
    provider = FakeEmbeddings()
    for turn in range(5):
        document = index.write("a.md", f"alpha {turn}", "beta")
        run(index.backlog(provider))
        index.write("a.md", f"alpha {turn} changed")
        run(index.backlog(provider))
        index.delete(document)
    assert index.count("vectors") == index.count("chunks") == index.count("vector_pending") == 0
