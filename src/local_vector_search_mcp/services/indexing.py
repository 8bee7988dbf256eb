"""Index one document: its bytes → the rows that are stored of it. Pure; runs in any process."""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import UnsupportedEncoding
from local_vector_search_mcp.index.chunker import ChunkerSettings, chunk_document
from local_vector_search_mcp.index.chunks import Chunk
from local_vector_search_mcp.index.embedding_text import EmbeddingTextSettings, embed_hash, embedding_text
from local_vector_search_mcp.index.link_names import fold_name, link_parts
from local_vector_search_mcp.index.link_rows import StoredLink, link_name_hashes, pack_anchors, pack_links
from local_vector_search_mcp.index.normalize import index_text
from local_vector_search_mcp.index.packing import pack_chunk
from local_vector_search_mcp.index.rows import FAILED, UNSUPPORTED, ChunkRow, DocumentRows, heading_text, key_text
from local_vector_search_mcp.markdown.blocks import Leaf
from local_vector_search_mcp.markdown.frontmatter import read_metadata
from local_vector_search_mcp.markdown.links import Link, survey
from local_vector_search_mcp.markdown.parser import parse
from local_vector_search_mcp.markdown.source import decode_source
from local_vector_search_mcp.relpath import RelPath

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexingSettings:
    """How documents become rows.

    Attributes:
        chunker, embedding_text: How they are cut, and what of a chunk is embedded.
        embeds: Vectors are wanted.
        dictionary: What the chunks of the index are compressed with.
    """

    chunker: ChunkerSettings = field(default_factory=ChunkerSettings)
    embedding_text: EmbeddingTextSettings = field(default_factory=EmbeddingTextSettings)
    embeds: bool = True
    dictionary: bytes = b""


class ParsedDocument(NamedTuple):
    """What became of one document: its rows, or why there are none. Crosses process boundaries."""

    path: str
    rows: DocumentRows | None
    state: str = ""
    reason: str = ""

    @classmethod
    def unsupported(cls, path: str, reason: str) -> "ParsedDocument":
        """The file is not one that can be indexed; reading it again is of no use while it is as it is."""
        return cls(path, None, UNSUPPORTED, reason)

    @classmethod
    def failed(cls, path: str, reason: str) -> "ParsedDocument":
        """Indexing failed; it is tried again later."""
        return cls(path, None, FAILED, reason)


def parse_documents(batch: Iterable[tuple[str, bytes]], settings: IndexingSettings) -> list[ParsedDocument]:
    """The rows of several documents; one that cannot be indexed does not keep the others from it."""
    return [_parse_one(path, data, settings) for path, data in batch]


def index_document(path: RelPath, data: bytes, settings: IndexingSettings) -> DocumentRows:
    """The rows of one document.

    Raises:
        UnsupportedEncoding: The bytes are not UTF-8.
    """
    leaves: list[Leaf] = []
    document = parse(decode_source(data), leaves)
    metadata = read_metadata(document)
    title = document.title
    shown_title = title or path.stem
    found = survey(document, leaves)
    links = tuple(stored_link(link) for link in found.links)
    aliases = tuple(dict.fromkeys(fold_name(alias) for alias in metadata.aliases))
    tags = _tags((*metadata.tags, *found.tags))
    return DocumentRows(
        source_hash=xxh64_hex(data),
        title=shown_title,
        title_from_name=not title,
        warning=metadata.warning,
        metadata=json.dumps(metadata.as_json(), ensure_ascii=False) if metadata.values else None,
        aliases=aliases,
        tags=tags,
        anchors=pack_anchors(found.slugs, found.blocks),
        links=pack_links(links),
        link_names=link_name_hashes(links),
        fts_title=index_text(shown_title),
        fts_keys=index_text(key_text(path, aliases, tags)),
        chunks=tuple(_chunk_row(chunk, shown_title, settings) for chunk in chunk_document(document, settings.chunker)),
    )


def _parse_one(path: str, data: bytes, settings: IndexingSettings) -> ParsedDocument:
    try:
        return ParsedDocument(path, index_document(RelPath(path), data, settings))
    except UnsupportedEncoding as error:
        return ParsedDocument.unsupported(path, error.message)
    except Exception as error:  # noqa: BLE001  (one broken file never fails a run; it is reported and tried again)
        _LOG.warning("Indexing %s failed: %s", path, type(error).__name__, exc_info=_LOG.isEnabledFor(logging.DEBUG))
        return ParsedDocument.failed(path, f"indexing it failed ({type(error).__name__})")


def _chunk_row(chunk: Chunk, title: str, settings: IndexingSettings) -> ChunkRow:
    text = embedding_text(title, chunk.heading_path, chunk.text, settings.embedding_text) if settings.embeds else ""
    return ChunkRow(
        kinds=chunk.kinds,
        line_start=chunk.lines[0],
        line_end=chunk.lines[1],
        byte_start=chunk.range.start,
        byte_end=chunk.range.end,
        embed_hash=embed_hash(text) if settings.embeds else b"",
        content=pack_chunk(chunk, settings.dictionary),
        fts_headings=index_text(heading_text(chunk.heading_paths)),
        fts_body=index_text(chunk.text),
    )


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (tag.lstrip("#").casefold() for tag in tags))))


def stored_link(link: Link) -> StoredLink:
    """A link of a document as it is stored."""
    parts = link_parts(link.kind.value, link.path, link.anchor)
    return StoredLink(
        kind=link.kind.value,
        target=link.target,
        path=parts.path,
        anchor=parts.anchor,
        logical=link.element.logical,
    )
