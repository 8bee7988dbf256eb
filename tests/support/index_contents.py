"""What an index says about its documents, without the ids and times that no two indexes share."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from local_vector_search_mcp.index.packing import unpack_chunk

_BY_PATH = {
    "documents": "SELECT path, state, size, source_hash, title, metadata FROM documents",
    "tags": "SELECT d.path, t.tag FROM tags AS t JOIN documents AS d ON d.id = t.document_id",
    "aliases": "SELECT d.path, a.alias_folded FROM aliases AS a JOIN documents AS d ON d.id = a.document_id",
    "link names": "SELECT d.path, l.name_hash FROM link_names AS l JOIN documents AS d ON d.id = l.document_id",
}
_CHUNKS = (
    "SELECT d.path, c.ordinal, c.kinds, c.line_start, c.line_end, c.byte_start, c.byte_end, c.content"
    " FROM chunks AS c JOIN documents AS d ON d.id = c.document_id"
)


def index_contents(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that stands for something in a file, in order; two indexes of one tree have the same ones."""
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        found = {name: sorted(connection.execute(query), key=repr) for name, query in _BY_PATH.items()}
        dictionary = connection.execute("SELECT data FROM dictionary").fetchone()
        unpacking = b"" if dictionary is None else bytes(dictionary[0])
        rows = connection.execute(_CHUNKS).fetchall()
        found["chunks"] = sorted(((*row[:-1], unpack_chunk(row[-1], unpacking)) for row in rows), key=repr)
        ids = {row[0] for row in connection.execute("SELECT id FROM chunks")}
        full_text = {row[0] for row in connection.execute("SELECT id FROM fts_docsize")}
        assert full_text == ids, f"{len(full_text ^ ids)} full-text rows and chunks do not belong together"
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        return found
