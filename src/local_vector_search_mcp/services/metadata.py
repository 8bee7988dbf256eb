"""MetadataService: which front matter keys, values and tags the documents use (``kb_metadata``)."""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, cast

import apsw

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.index.home import check_indexed
from local_vector_search_mcp.services.corpus import Corpora
from local_vector_search_mcp.workspace.cursors import CursorKey, decode_cursor, encode_cursor

_MAX_PAGE: Final = 500
_EXAMPLES: Final = 3
_LONGEST_EXAMPLE: Final = 200
_FIRST_RUN_S: Final = 2.0
_TAGS: Final = "tags"

_Item = TypeVar("_Item")
Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInUse:
    """A front matter key, dotted where it stands in another one."""

    key: str
    documents: int
    examples: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueInUse:
    """A value of one key; of a list, one of its items."""

    value: Scalar
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPage:
    """One page of keys, or of the values of one key."""

    keys: tuple[KeyInUse, ...] = ()
    values: tuple[ValueInUse, ...] = ()
    next_cursor: str | None = None
    collection: str | None = None


class MetadataService:
    """Counts front matter over the index."""

    def __init__(self, corpora: Corpora) -> None:
        self._corpora = corpora

    def metadata(
        self,
        *,
        key: str | None = None,
        path_prefix: str | None = None,
        cursor: str | None = None,
        page_size: int = 100,
        collection: str | None = None,
    ) -> MetadataPage:
        """One page of the keys in use by name, or of one key's values, the most used first.

        Args:
            key: Whose values are wanted; dotted for a key in another one. ``tags`` counts inline tags too.
            path_prefix: Only documents in a folder, or one document.
            cursor: ``next_cursor`` of the page before.
            page_size: 1 to 500.
            collection: Of another tree than the project's.

        Raises:
            InvalidArgument: An argument out of bounds, or a cursor of another list.
            InvalidPath: A prefix that no path can have.
            IndexNotReady, IndexIncompatible: The index cannot tell.
        """
        if not 1 <= page_size <= _MAX_PAGE:
            raise InvalidArgument(f"pageSize is {page_size}; it has to lie between 1 and {_MAX_PAGE}.")
        if key is not None and not key.strip():
            raise InvalidArgument("key is empty; leave it out to list the keys.")
        corpus = self._corpora.get(collection)
        prefix = corpus.workspace.parse_prefix(path_prefix)
        filters = {"key": key, "prefix": prefix, "collection": corpus.name}
        after = decode_cursor(cursor, filters, shape=(str,) if key is None else (int, str))
        corpus.indexer.wait_first_run(_FIRST_RUN_S)
        corpus.indexer.home.check_searchable()
        with corpus.database.reader() as connection:
            check_indexed(connection)
            if key is None:
                keys: dict[CursorKey, KeyInUse] = {(one.key,): one for one in _keys(connection, prefix)}
                page, cursor_key = _page(keys, after, page_size)
                found = MetadataPage(keys=tuple(page))
            else:
                counted = _tags(connection, prefix) if key == _TAGS else _values(connection, prefix, key)
                values: dict[CursorKey, ValueInUse] = {
                    (-number, text): ValueInUse(value=json.loads(text), documents=number)
                    for text, number in counted.items()
                }
                page_of_values, cursor_key = _page(values, after, page_size)
                found = MetadataPage(values=tuple(page_of_values))
        return MetadataPage(
            keys=found.keys,
            values=found.values,
            next_cursor=None if cursor_key is None else encode_cursor(cursor_key, filters),
            collection=corpus.collection,
        )


def _page(
    items: "Mapping[CursorKey, _Item]", after: CursorKey | None, page_size: int
) -> "tuple[list[_Item], CursorKey | None]":
    """The items of one page in order of their keys, and the key to go on after; None on the last page."""
    keys = sorted(key for key in items if after is None or key > after)
    page = keys[:page_size]
    return [items[key] for key in page], page[-1] if len(keys) > page_size else None


def _keys(connection: apsw.Connection, prefix: str) -> Iterator[KeyInUse]:
    documents: Counter[str] = Counter()
    examples: dict[str, dict[str, None]] = {}
    for metadata in _metadata(connection, prefix):
        for name, value in _flattened(metadata):
            documents[name] += 1
            known = examples.setdefault(name, {})
            for text in _texts_of(value):
                if len(known) < _EXAMPLES and len(text) <= _LONGEST_EXAMPLE:
                    known.setdefault(text)
    # Inline tags count where there is no front matter, too.
    tags = _tags(connection, prefix)
    if tags:
        documents[_TAGS] = _tagged_documents(connection, prefix)
        examples[_TAGS] = dict.fromkeys(text for text, _ in tags.most_common(_EXAMPLES))
    for name, number in documents.items():
        yield KeyInUse(key=name, documents=number, examples=tuple(json.loads(text) for text in examples[name]))


def _values(connection: apsw.Connection, prefix: str, key: str) -> "Counter[str]":
    """How many documents have each value, as JSON text."""
    counted: Counter[str] = Counter()
    for metadata in _metadata(connection, prefix):
        for name, value in _flattened(metadata):
            if name == key:
                counted.update(set(_texts_of(value)))
    return counted


def _tags(connection: apsw.Connection, prefix: str) -> "Counter[str]":
    rows = connection.execute(
        "SELECT t.tag, count(*) FROM tags AS t JOIN documents AS d ON d.id = t.document_id"
        f" WHERE {_UNDER} GROUP BY t.tag",
        _bindings(prefix),
    )
    return Counter({json.dumps(str(tag), ensure_ascii=False): int(number) for tag, number in rows})


def _tagged_documents(connection: apsw.Connection, prefix: str) -> int:
    return int(
        connection.execute(
            "SELECT count(DISTINCT t.document_id) FROM tags AS t JOIN documents AS d ON d.id = t.document_id"
            f" WHERE {_UNDER}",
            _bindings(prefix),
        ).get
    )


# '0' is the character after '/', so the range holds exactly the paths that begin with the folder.
_UNDER: Final = "(?1 = '' OR d.path = ?1 OR (d.path >= ?1 || '/' AND d.path < ?1 || '0'))"


def _bindings(prefix: str) -> tuple[str]:
    return (prefix,)


def _metadata(connection: apsw.Connection, prefix: str) -> Iterator[dict[str, Any]]:
    rows = connection.execute(
        f"SELECT d.metadata FROM documents AS d WHERE d.metadata IS NOT NULL AND {_UNDER}", _bindings(prefix)
    )
    for row in rows:
        yield json.loads(str(row[0]))


def _flattened(metadata: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Keys with their values; a key that holds others gives those, dotted."""
    for name, value in metadata.items():
        if isinstance(value, dict) and value:
            yield from _flattened(cast("dict[str, Any]", value), f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _texts_of(value: object) -> Iterator[str]:
    """A value, or the items of a list, as JSON text; what is neither is shown as its JSON."""
    for item in cast("list[object]", value) if isinstance(value, list) else (value,):
        text = json.dumps(item, ensure_ascii=False)
        yield json.dumps(text, ensure_ascii=False) if isinstance(item, dict | list) else text
