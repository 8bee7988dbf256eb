"""The links and anchors of one document as they are stored: packed, since they are only read by link tools."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import xxhash

from local_vector_search_mcp.index.link_names import name_key
from local_vector_search_mcp.index.packing import pack_texts, unpack_texts

_CODES: Final = {"link": "l", "image": "i", "wikilink": "w", "embed": "e"}
_KINDS: Final = {code: kind for kind, code in _CODES.items()}
_TEXTS_PER_LINK: Final = 4
_BLOCK: Final = "^"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLink:
    """One link of a document.

    Attributes:
        kind: ``link``, ``image``, ``wikilink`` or ``embed``.
        target: As written.
        path: Its decoded path part; see ``link_names.link_parts``.
        anchor: Its decoded anchor; None where there is none.
        logical: The address of the element that it stands in.
    """

    kind: str
    target: str
    path: str
    anchor: str | None
    logical: str


@dataclass(frozen=True, slots=True)
class Anchors:
    """What links can point to inside a document."""

    headings: frozenset[str]  # GitHub's slugs.
    blocks: frozenset[str]  # Folded, without ``^``.


def pack_links(links: Sequence[StoredLink]) -> bytes | None:
    """Links for a row, in document order; None where there are none."""
    if not links:
        return None
    texts: list[str] = []
    for link in links:
        # A link without an anchor and one with an empty anchor are told apart by the mark before it.
        anchor = "" if link.anchor is None else f"#{link.anchor}"
        path = "" if link.path == link.target else f"/{link.path}"
        texts += [f"{_CODES[link.kind]}{link.target}", path, anchor, link.logical]
    return pack_texts(texts)


def unpack_links(packed: bytes | None) -> list[StoredLink]:
    """The links that ``pack_links`` packed."""
    texts = unpack_texts(packed) if packed else []
    return [_link(*texts[place : place + _TEXTS_PER_LINK]) for place in range(0, len(texts), _TEXTS_PER_LINK)]


def pack_anchors(slugs: Iterable[str], blocks: Iterable[str]) -> bytes | None:
    """Anchors for a row; None where there are none."""
    texts = [*dict.fromkeys(slugs), *dict.fromkeys(f"{_BLOCK}{name.casefold()}" for name in blocks)]
    return pack_texts(texts) if texts else None


def unpack_anchors(packed: bytes | None) -> Anchors:
    """The anchors that ``pack_anchors`` packed."""
    texts = unpack_texts(packed) if packed else []
    return Anchors(
        frozenset(text for text in texts if not text.startswith(_BLOCK)),
        frozenset(text[1:] for text in texts if text.startswith(_BLOCK)),
    )


def link_name_hashes(links: Iterable[StoredLink]) -> tuple[int, ...]:
    """The names under which a document's links are found by ``name_hash``, each once."""
    return tuple(sorted({name_hash(key) for link in links if (key := name_key(link.path))}))


def name_hash(key: str) -> int:
    """A number for a folded name; different names may share one."""
    return xxhash.xxh32_intdigest(key.encode("utf-8"))


def _link(head: str, path: str, anchor: str, logical: str) -> StoredLink:
    return StoredLink(
        kind=_KINDS[head[:1]],
        target=head[1:],
        path=path[1:] if path else head[1:],
        anchor=anchor[1:] if anchor else None,
        logical=logical,
    )
