"""Search filters → SQL. They decide which chunks are searched, not which results are thrown away."""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import apsw

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.index.chunks import kind_mask
from local_vector_search_mcp.index.vectors import ChunkScope
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.relpath import parse_prefix
from local_vector_search_mcp.search.conditions import Condition, all_hold, parse_where

_KINDS: Final = tuple(kind for kind in ElementKind if kind is not ElementKind.DOCUMENT)
_MOST_TAGS: Final = 100
# What SQLite holds: years 1677 to 2262. Files with times beyond it are none of this world.
_LAST_NS: Final = (1 << 63) - 1
_DATE: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)\s*([Zz]|[+-]\d{2}(?::?\d{2})?)?)?", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """What limits a search; the defaults limit nothing.

    Attributes:
        path_prefix: A folder or a file; empty for everything.
        path_fits: Whether the globs let a path in; None where there are none.
        tags: Case-folded, without ``#``; a document has all of them, or tags below them.
        conditions: On front matter; all hold.
        kinds: A chunk holds an element of one of these kinds; empty for any.
        modified_after_ns: Documents changed after this time (nanoseconds since 1970-01-01).
    """

    path_prefix: str = ""
    path_fits: Callable[[str], bool] | None = None
    tags: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    kinds: frozenset[ElementKind] = frozenset()
    modified_after_ns: int | None = None

    @classmethod
    def parse(
        cls,
        *,
        path_prefix: str | None = None,
        path_fits: Callable[[str], bool] | None = None,
        tags: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        kinds: Sequence[str] | None = None,
        modified_after: str | None = None,
    ) -> "SearchFilters":
        """Check filters as a caller gives them.

        Raises:
            InvalidArgument: An unknown kind or operator, an empty tag, too many tags, or no date.
            InvalidPath: A prefix that no path can have.
        """
        return cls(
            path_prefix=parse_prefix(path_prefix),
            path_fits=path_fits,
            tags=_tags(tags or ()),
            conditions=parse_where(where),
            kinds=frozenset(map(_kind, kinds or ())),
            modified_after_ns=None if modified_after is None else _parse_time(modified_after),
        )

    @property
    def by_document(self) -> bool:
        """Whether they leave documents out."""
        return bool(
            self.path_prefix or self.path_fits or self.tags or self.conditions or self.modified_after_ns is not None
        )


def chunk_scope(connection: apsw.Connection, filters: SearchFilters) -> ChunkScope | None:
    """The chunks that the filters let in; None where they let everything in."""
    clauses: list[str] = []
    bindings: list[apsw.SQLiteValue] = []
    if filters.by_document:
        documents, bound = _documents(connection, filters)
        clauses.append(f"document_id IN ({documents})")
        bindings += bound
    if filters.kinds:
        clauses.append("kinds & ? <> 0")
        bindings.append(kind_mask(tuple(filters.kinds)))
    if not clauses:
        return None
    return ChunkScope(sql=f"SELECT id FROM chunks WHERE {' AND '.join(clauses)}", bindings=tuple(bindings))


def lets_in(connection: apsw.Connection, filters: SearchFilters, document_id: int) -> bool:
    """Whether the filters let any chunk of a document in."""
    scope = chunk_scope(connection, filters)
    if scope is None:
        return True
    found = connection.execute(f"{scope.sql} AND document_id = ? LIMIT 1", (*scope.bindings, document_id)).get
    return found is not None


def _documents(connection: apsw.Connection, filters: SearchFilters) -> tuple[str, list["apsw.SQLiteValue"]]:
    """A query for the ids of the documents, with its bindings."""
    clauses = ["1"]
    bindings: list[apsw.SQLiteValue] = []
    if filters.path_prefix:
        # '0' is the character after '/', so the range holds exactly what lies below the folder.
        clauses.append("(path = ? OR (path >= ? AND path < ?))")
        bindings += [filters.path_prefix, f"{filters.path_prefix}/", f"{filters.path_prefix}0"]
    if filters.modified_after_ns is not None:
        clauses.append("mtime_ns >= ?")
        bindings.append(filters.modified_after_ns)
    for tag in filters.tags:
        clauses.append("id IN (SELECT document_id FROM tags WHERE tag = ? OR (tag >= ? AND tag < ?))")
        bindings += [tag, f"{tag}/", f"{tag}0"]
    where = " AND ".join(clauses)
    if filters.path_fits is None and not filters.conditions:
        return f"SELECT id FROM documents WHERE {where}", bindings
    rows = connection.execute(f"SELECT id, path, metadata FROM documents WHERE {where}", tuple(bindings))
    ids = [int(row[0]) for row in rows if _fits(filters, str(row[1]), row[2])]
    return "SELECT value FROM json_each(?)", [json.dumps(ids)]


def _fits(filters: SearchFilters, path: str, metadata: Any) -> bool:
    if filters.path_fits is not None and not filters.path_fits(path):
        return False
    if not filters.conditions:
        return True
    return all_hold(filters.conditions, {} if metadata is None else _decoded(str(metadata)))


@lru_cache(maxsize=16_384)
def _decoded(metadata: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(metadata)
    return found


def _tags(texts: Sequence[str]) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(map(_tag, texts)))
    if len(tags) > _MOST_TAGS:
        raise InvalidArgument(f"tags names more than {_MOST_TAGS} tags, all of which a document would need; use fewer.")
    return tags


def _tag(text: str) -> str:
    tag = unicodedata.normalize("NFC", text).strip().lstrip("#").rstrip("/").casefold()
    if not tag:
        raise InvalidArgument("A tag is empty; give tags such as project or area/health.")
    return tag


def _kind(text: str) -> ElementKind:
    if text not in _KINDS:
        raise InvalidArgument(f"There is no element kind {text!r}; known are {', '.join(_KINDS)}.")
    return ElementKind(text)


def _parse_time(text: str) -> int:
    """The first nanosecond that counts as after a date or time; UTC unless it says otherwise.

    A time without a fraction stands for its whole second, because that is how times are shown: a document is not
    after the very time that was shown for it. A date stands for its midnight.
    """
    found = _DATE.fullmatch(text.strip())
    if found is None:
        raise _no_time(text)
    day, clock, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{(clock or '00:00:00').replace(',', '.')[:15]}")
        offset = _offset(zone)
    except ValueError as error:
        raise _no_time(text) from error
    seconds = int((moment.replace(tzinfo=UTC, microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    fraction = re.split(r"[.,]", clock)[1] if clock and re.search(r"[.,]", clock) else ""
    start_ns = (seconds - int(offset.total_seconds())) * 1_000_000_000
    first_ns = start_ns + (int(fraction.ljust(9, "0")) + 1 if fraction else 1_000_000_000 if clock else 1)
    return max(-_LAST_NS, min(first_ns, _LAST_NS))


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in "Zz":
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if offset >= timedelta(hours=24) or int(digits[2:]) > 59:
        raise ValueError("no such time zone")
    return -offset if zone[0] == "-" else offset


def _no_time(text: str) -> InvalidArgument:
    return InvalidArgument(
        f"modifiedAfter is {text[:40]!r}; give an ISO date or time such as 2026-01-31 or 2026-01-31T12:00:00Z."
    )
