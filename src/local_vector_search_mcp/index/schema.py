"""The tables of the index and their version.

Everything here is derived from Markdown files. A database of another version is never altered in place: it is
left as it is and reported, until a forced rebuild makes a new one.
"""

from typing import Final

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false
import apsw

from local_vector_search_mcp.index.normalize import FTS_TOKENIZE, NORMALIZER_VERSION
from local_vector_search_mcp.index.vectors import VECTOR_TABLES

TABLES_VERSION: Final = 1
"""Raised whenever a table, a column or a packed format changes."""

APPLICATION_ID: Final = 0x4C565349
"""Marks a database file as an index of ours; no other file is ever altered or deleted."""

# Rows and queries must agree on tokens, so another normaliser is another schema.
SCHEMA_VERSION: Final = TABLES_VERSION * 1000 + NORMALIZER_VERSION

_TABLES: Final = """
CREATE TABLE manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters VALUES ('revision', 0), ('runs', 0);

CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- One row for every selected file, those that cannot be indexed included.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    recheck INTEGER NOT NULL,       -- 1: read and hash again on the next run, whatever its times say
    state TEXT NOT NULL,            -- indexed, unsupported, failed
    reason TEXT,                    -- why it is unsupported, or why the last reading failed
    source_hash TEXT,               -- of the bytes whose rows these are; NULL where there are none
    title TEXT NOT NULL,
    title_from_name INTEGER NOT NULL,
    warning TEXT,
    metadata TEXT,                  -- front matter as JSON object; NULL where there is none
    anchors BLOB,                   -- heading slugs and block ids, see link_rows.pack_anchors
    links BLOB,                     -- see link_rows.pack_links
    modified TEXT GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%SZ', mtime_ns / 1000000000, 'unixepoch')) VIRTUAL
);
CREATE INDEX documents_odd ON documents (state) WHERE state <> 'indexed';

CREATE TABLE tags (
    document_id INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    tag TEXT NOT NULL,              -- case-folded, without '#'
    PRIMARY KEY (document_id, tag)
) WITHOUT ROWID;
CREATE INDEX tags_tag ON tags (tag);

CREATE TABLE aliases (
    document_id INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    alias_folded TEXT NOT NULL,
    PRIMARY KEY (document_id, alias_folded)
) WITHOUT ROWID;

-- Which documents hold a link whose target has a name: finds the links that may lead to a file.
CREATE TABLE link_names (
    name_hash INTEGER NOT NULL,     -- of the folded last segment without .md, see link_rows.name_hash
    document_id INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    PRIMARY KEY (name_hash, document_id)
) WITHOUT ROWID;
CREATE INDEX link_names_document ON link_names (document_id);

-- What the packed chunks of this index are compressed with.
CREATE TABLE dictionary (id INTEGER PRIMARY KEY CHECK (id = 1), data BLOB NOT NULL);

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    kinds INTEGER NOT NULL,         -- one bit per element kind, see chunks.KIND_BITS
    line_start INTEGER NOT NULL,
    line_end INTEGER NOT NULL,
    byte_start INTEGER NOT NULL,
    byte_end INTEGER NOT NULL,
    embed_state INTEGER NOT NULL,   -- 0 awaiting, 1 done, 2 failed, 3 never wanted
    embed_hash BLOB NOT NULL,       -- 16 bytes: hash of the text to embed; empty where none is wanted
    content BLOB NOT NULL           -- elements and text, see packing.pack_chunk
);
CREATE INDEX chunks_document ON chunks (document_id, ordinal);
CREATE INDEX chunks_awaiting ON chunks (embed_hash) WHERE embed_state = 0;
CREATE INDEX chunks_embed_failed ON chunks (embed_hash) WHERE embed_state = 2;
"""


def _full_text_table() -> str:
    tokenize = FTS_TOKENIZE.replace("'", "''")
    # FTS5 spends two bytes per word and row to name any column but the first, which saves a quarter of the table.
    return (
        "CREATE VIRTUAL TABLE fts USING fts5("
        f"body, headings, title, keys, content='', contentless_delete=1, tokenize='{tokenize}')"
    )


def create_schema(connection: apsw.Connection) -> None:
    """Make all tables in an empty database, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if schema_version(connection) == 0 and is_empty(connection):
            connection.execute(_TABLES)
            connection.execute(_full_text_table())
            # Gives searches how many rows hold a term.
            connection.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(fts, row)")
            connection.execute(VECTOR_TABLES)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", SCHEMA_VERSION)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def schema_version(connection: apsw.Connection) -> int:
    """The version that the database was made with; 0 for one without tables."""
    version = connection.pragma("user_version")
    return int(version) if isinstance(version, int) else 0


def is_ours(connection: apsw.Connection) -> bool:
    """Whether the database was made by this program."""
    return bool(connection.pragma("application_id") == APPLICATION_ID)


def is_empty(connection: apsw.Connection) -> bool:
    """Whether the database holds no table at all."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").get == 0)
