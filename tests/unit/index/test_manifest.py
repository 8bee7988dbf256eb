"""The manifest: written once, compared value by value, and what each difference stops."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from local_vector_search_mcp.errors import IndexIncompatible
from local_vector_search_mcp.index.chunker import ChunkerSettings
from local_vector_search_mcp.index.embedding_text import EmbeddingTextSettings
from local_vector_search_mcp.index.manifest import (
    Compatibility,
    Manifest,
    Stops,
    compare,
    read_manifest,
    record_dimensions,
    write_manifest,
)
from local_vector_search_mcp.index.schema import SCHEMA_VERSION, create_schema

WANTED = Manifest.of(
    root="/project",
    chunker=ChunkerSettings(),
    embedding_text=EmbeddingTextSettings(),
    provider="local",
    model="wordllama",
    dimensions=256,
)


@pytest.fixture
def connection(tmp_path: Path) -> apsw.Connection:
    made = apsw.Connection(str(tmp_path / "index.db"))
    create_schema(made)
    return made


@pytest.mark.parametrize(
    ("name", "stops"),
    [
        ("root", Stops.SEARCH),
        ("schema_version", Stops.SEARCH),
        ("dialect_version", Stops.ROWS),
        ("chunker_version", Stops.ROWS),
        ("max_chunk_bytes", Stops.ROWS),
        ("max_elements", Stops.ROWS),
        ("include_front_matter", Stops.ROWS),
        ("embedding_text_version", Stops.ROWS),
        ("include_heading_context", Stops.ROWS),
        ("provider", Stops.VECTORS),
        ("model", Stops.VECTORS),
        ("dimensions", Stops.VECTORS),
    ],
)
def test_compare__each_value_stops_its_part(name: str, stops: Stops) -> None:
    """Every value of the manifest is compared and stops what depends on it, and no more."""
    value = getattr(WANTED, name)
    other = not value if isinstance(value, bool) else f"{value}x" if isinstance(value, str) else value + 1
    changed: dict[str, Any] = {name: other}
    found = compare(replace(WANTED, **changed), WANTED)
    (difference,) = found.differences
    assert (difference.stored, difference.configured, difference.stops) == (other, value, stops)
    assert "_" not in difference.key
    assert found.searchable is (stops is not Stops.SEARCH)
    assert found.rows_writable is (stops is Stops.VECTORS)
    assert found.vectors_usable is (stops is Stops.ROWS)
    assert found.same_model is (stops is not Stops.VECTORS)
    (warning,) = found.warnings()
    assert "kb_reindex (force: true)" in warning
    assert difference.key in warning


def test_compare__covers_every_field() -> None:
    """A value that is added to the manifest is compared as well."""
    different: dict[str, Any] = {field.name: "x" for field in fields(Manifest)}
    other = Manifest(**different)
    assert len(compare(other, WANTED).differences) == len(fields(Manifest))


def test_compare__unknown_dimensions_are_no_difference() -> None:
    """A length that is not known yet, on either side, contradicts nothing."""
    assert compare(replace(WANTED, dimensions=None), WANTED) == Compatibility()
    assert compare(WANTED, replace(WANTED, dimensions=None)) == Compatibility()
    assert Compatibility().warnings() == ()


def test_check_searchable__says_what_to_do() -> None:
    """An index of another root is refused for searching, with both values and the way out."""
    with pytest.raises(IndexIncompatible, match="root is '/old' in the index and '/project' now"):
        compare(replace(WANTED, root="/old"), WANTED).check_searchable()
    compare(replace(WANTED, provider="none"), WANTED).check_searchable()


def test_write_manifest__once(connection: apsw.Connection) -> None:
    """It comes back as written, and is never written over."""
    assert read_manifest(connection) is None
    write_manifest(connection, WANTED)
    assert read_manifest(connection) == WANTED
    with pytest.raises(ValueError, match="already"):
        write_manifest(connection, WANTED)


def test_record_dimensions__completes_only(connection: apsw.Connection) -> None:
    """The length of the first vectors is filled in; a known one stays."""
    write_manifest(connection, replace(WANTED, dimensions=None))
    record_dimensions(connection, 64)
    record_dimensions(connection, 128)
    found = read_manifest(connection)
    assert found is not None
    assert found.dimensions == 64


def test_read_manifest__of_another_schema(connection: apsw.Connection, tmp_path: Path) -> None:
    """Of another schema at least the version is known; another program's database has none of ours."""
    write_manifest(connection, WANTED)
    connection.pragma("user_version", SCHEMA_VERSION + 1)
    found = read_manifest(connection)
    assert found == replace(WANTED, schema_version=SCHEMA_VERSION + 1)
    connection.execute("DROP TABLE manifest")
    found = read_manifest(connection)
    assert found is not None
    assert not compare(found, WANTED).searchable
    foreign = apsw.Connection(str(tmp_path / "foreign.db"))
    assert read_manifest(foreign) is None
    foreign.execute("CREATE TABLE mine (x)")
    foreign.pragma("user_version", SCHEMA_VERSION)
    found = read_manifest(foreign)
    assert found is not None
    assert not compare(found, WANTED).searchable
