"""Cursors of paged lists: the sort key of the last item, and which list it belongs to (pure).

Because a cursor holds a key and no position, it survives the deletion of that item and a restart.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import InvalidArgument

CursorKey: TypeAlias = tuple[str | int, ...]
_MAX_LENGTH = 8_192


def encode_cursor(key: CursorKey, filters: Mapping[str, object]) -> str:
    """A cursor that goes on after an item.

    Args:
        key: The sort key of the last item of the page.
        filters: All arguments that decide what the list holds and in which order; JSON values.
    """
    text = json.dumps([_fingerprint(filters), *key], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode("utf-8")).decode("ascii").rstrip("=")


def decode_cursor(cursor: str | None, filters: Mapping[str, object], *, shape: Sequence[type]) -> CursorKey | None:
    """The key in a cursor; None for no cursor.

    Args:
        cursor: What the caller sent.
        filters: As for ``encode_cursor``.
        shape: The type of each part of the key, ``str`` or ``int``.

    Raises:
        InvalidArgument: It is none of ours, or belongs to a list with other filters.
    """
    if cursor is None:
        return None
    parts = _parts(cursor)
    if not parts or not isinstance(parts[0], str):
        raise _malformed()
    if parts[0] != _fingerprint(filters):
        raise InvalidArgument("The cursor belongs to a list with other filters; leave it out to begin anew.")
    key = parts[1:]
    # bool is an int to Python, and not to us.
    if [type(part) for part in key] != list(shape):
        raise _malformed()
    return tuple(cast("Sequence[str | int]", key))


def _malformed() -> InvalidArgument:
    return InvalidArgument("The cursor is malformed; pass on nextCursor as it came, or leave it out to begin anew.")


def _parts(cursor: str) -> Sequence[object] | None:
    if len(cursor) > _MAX_LENGTH:
        return None
    try:
        data = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        value: object = json.loads(data.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (binascii.Error, ValueError, RecursionError):
        # ValueError covers JSON, Unicode and numbers too long to read.
        return None
    return cast("Sequence[object]", value) if isinstance(value, list) else None


def _fingerprint(filters: Mapping[str, object]) -> str:
    return xxh64_hex(json.dumps(filters, sort_keys=True, ensure_ascii=True).encode("ascii"))
