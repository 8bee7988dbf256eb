"""What an index was built with, and what a difference from the present configuration stops.

The manifest is written once, when a generation is made. Nothing rewrites it later; a rebuild makes another one.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Final

import apsw

from local_vector_search_mcp.errors import IndexIncompatible
from local_vector_search_mcp.index.chunker import CHUNKER_VERSION, ChunkerSettings
from local_vector_search_mcp.index.embedding_text import EMBEDDING_TEXT_VERSION, EmbeddingTextSettings
from local_vector_search_mcp.index.schema import SCHEMA_VERSION, is_empty, is_ours, schema_version
from local_vector_search_mcp.markdown.dialect import DIALECT_VERSION

REBUILD_HINT: Final = "rebuild it with kb_reindex (force: true) or --reindex --force"


class Stops(StrEnum):
    """What a difference between manifest and configuration stops."""

    SEARCH = "search"  # Searching is refused; files are still read, outlined and listed.
    ROWS = "rows"  # Searches answer from the old rows; changed files wait for a rebuild.
    VECTORS = "vectors"  # Lexical search is kept up; the stored vectors are not used.


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What an index was, or would be, built with.

    ``dimensions`` is None until the first vector is stored, where the configuration leaves it to the model.
    """

    root: str
    schema_version: int
    dialect_version: int
    chunker_version: int
    max_chunk_bytes: int
    max_elements: int
    include_front_matter: bool
    embedding_text_version: int
    include_heading_context: bool
    provider: str
    model: str
    dimensions: int | None = None

    @classmethod
    def of(
        cls,
        *,
        root: str,
        chunker: ChunkerSettings,
        embedding_text: EmbeddingTextSettings,
        provider: str,
        model: str,
        dimensions: int | None,
    ) -> "Manifest":
        """The manifest of an index that is built now."""
        return cls(
            root=root,
            schema_version=SCHEMA_VERSION,
            dialect_version=DIALECT_VERSION,
            chunker_version=CHUNKER_VERSION,
            max_chunk_bytes=chunker.max_chunk_bytes,
            max_elements=chunker.max_elements,
            include_front_matter=chunker.include_front_matter,
            embedding_text_version=EMBEDDING_TEXT_VERSION,
            include_heading_context=embedding_text.include_heading_context,
            provider=provider,
            model=model,
            dimensions=dimensions,
        )


_STOPPED_BY: Final = {
    "root": Stops.SEARCH,
    "schema_version": Stops.SEARCH,
    "dialect_version": Stops.ROWS,
    "chunker_version": Stops.ROWS,
    "max_chunk_bytes": Stops.ROWS,
    "max_elements": Stops.ROWS,
    "include_front_matter": Stops.ROWS,
    "embedding_text_version": Stops.ROWS,
    "include_heading_context": Stops.ROWS,
    "provider": Stops.VECTORS,
    "model": Stops.VECTORS,
    "dimensions": Stops.VECTORS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDifference:
    """One value in which index and configuration differ."""

    key: str  # camelCase, as it is shown.
    stored: str | int | bool | None
    configured: str | int | bool | None
    stops: Stops


@dataclass(frozen=True, slots=True, kw_only=True)
class Compatibility:
    """What can be done with an index under the present configuration."""

    differences: tuple[ManifestDifference, ...] = ()

    @property
    def searchable(self) -> bool:
        """Whether searches may answer from it."""
        return not self._stops(Stops.SEARCH)

    @property
    def rows_writable(self) -> bool:
        """Whether changed files may be indexed into it."""
        return self.searchable and not self._stops(Stops.ROWS)

    @property
    def vectors_usable(self) -> bool:
        """Whether its vectors fit the configured model."""
        return self.searchable and not self._stops(Stops.VECTORS)

    @property
    def same_model(self) -> bool:
        """Whether stored vectors can be used in a new index, whatever else differs."""
        return not self._stops(Stops.VECTORS)

    def check_searchable(self) -> None:
        """Return where searches may answer.

        Raises:
            IndexIncompatible: The index was built for another root or by another schema.
        """
        if not self.searchable:
            raise IndexIncompatible(
                f"The index cannot be searched: {self._listed(Stops.SEARCH)}; {REBUILD_HINT}. "
                "Reading, outlines and lists work meanwhile."
            )

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each thing that is stopped."""
        found: list[str] = []
        if self._stops(Stops.SEARCH):
            found.append(f"The index cannot be searched: {self._listed(Stops.SEARCH)}; {REBUILD_HINT}.")
        if self._stops(Stops.ROWS):
            found.append(
                f"The index was built differently ({self._listed(Stops.ROWS)}): searches answer from the old rows and "
                f"changed files wait; {REBUILD_HINT}."
            )
        if self._stops(Stops.VECTORS):
            found.append(
                f"The index was made with another embedding provider or model ({self._listed(Stops.VECTORS)}), so only "
                f"words are searched; {REBUILD_HINT}."
            )
        return tuple(found)

    def _stops(self, what: Stops) -> bool:
        return any(difference.stops is what for difference in self.differences)

    def _listed(self, what: Stops) -> str:
        return ", ".join(
            f"{one.key} is {one.stored!r} in the index and {one.configured!r} now"
            for one in self.differences
            if one.stops is what
        )


def compare(stored: Manifest, wanted: Manifest) -> Compatibility:
    """What a stored index allows under the configuration that ``wanted`` was made from."""
    found: list[ManifestDifference] = []
    for name, stops in _STOPPED_BY.items():
        old, new = getattr(stored, name), getattr(wanted, name)
        if old == new or (name == "dimensions" and None in (old, new)):
            continue
        found.append(ManifestDifference(key=_camel(name), stored=old, configured=new, stops=stops))
    return Compatibility(differences=tuple(found))


def read_manifest(connection: apsw.Connection) -> Manifest | None:
    """The manifest of an open index; None where none was written yet.

    Of an index of another schema only the schema version is read, the rest is taken for equal to nothing.
    """
    if is_empty(connection):
        return None
    version = schema_version(connection)
    if version != SCHEMA_VERSION or not is_ours(connection):
        return _foreign(connection, version if is_ours(connection) else 0)
    values = _values(connection)
    return Manifest(**values) if values else None


def write_manifest(connection: apsw.Connection, manifest: Manifest) -> None:
    """Record what a new index is built with. Runs in the caller's transaction.

    Raises:
        ValueError: There is a manifest already.
    """
    if _values(connection):
        raise ValueError("the index has a manifest already")
    connection.executemany(
        "INSERT INTO manifest VALUES (?, ?)", [(name, json.dumps(value)) for name, value in asdict(manifest).items()]
    )


def record_dimensions(connection: apsw.Connection, dimensions: int) -> None:
    """Complete the manifest with the length of the first stored vector; a known length stays."""
    connection.execute("UPDATE manifest SET value = ? WHERE key = 'dimensions' AND value = 'null'", (str(dimensions),))


def _values(connection: apsw.Connection) -> dict[str, Any]:
    known = {field.name for field in fields(Manifest)}
    rows = connection.execute("SELECT key, value FROM manifest")
    return {str(key): json.loads(str(value)) for key, value in rows if key in known}


def _foreign(connection: apsw.Connection, version: int) -> Manifest:
    """The manifest of another schema, as far as it can be read in the form of this one."""
    try:
        values = _values(connection)
    except (apsw.SQLError, ValueError):
        values = {}
    unknown: dict[str, Any] = dict.fromkeys((field.name for field in fields(Manifest)), 0)
    unknown |= {"root": "", "provider": "", "model": "", "dimensions": None}
    unknown |= values
    unknown["schema_version"] = version
    return Manifest(**unknown)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
