"""Chunk → text to embed, and the hash under which its vector is kept. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import xxhash

EMBEDDING_TEXT_VERSION: Final = 1
"""Raised whenever the same chunk gives another text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingTextSettings:
    """How the text to embed is made.

    Attributes:
        include_heading_context: Begin with the document's title and the heading path.
    """

    include_heading_context: bool = True


def embedding_text(title: str, heading_path: Sequence[str], text: str, settings: EmbeddingTextSettings) -> str:
    """The text to embed for a chunk.

    Args:
        title: The document's title.
        heading_path: Of the chunk's first element, outermost first; a title that it begins with stands once.
        text: The chunk's text.
        settings: Whether title and heading path are wanted.
    """
    if not settings.include_heading_context:
        return text
    names = [name for name in (title, *heading_path) if name]
    if len(names) > 1 and names[0] == names[1]:
        names = names[1:]
    context = " > ".join(names)
    if not context:
        return text
    return f"{context}\n\n{text}" if text else context


def embed_hash(text: str) -> bytes:
    """16 bytes that stand for a text to embed; the model is kept beside them."""
    return xxhash.xxh3_128_digest(text.encode("utf-8"))
