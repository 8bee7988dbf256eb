"""IndexHome: one index on disk with all its generations: made when first written, judged by its manifest, healed,
and rebuilt beside itself.

Everything that changes which file is current is done under the indexing lease, by its holder.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from local_vector_search_mcp.errors import IndexIncompatible, IndexNotReady
from local_vector_search_mcp.index import generations, state
from local_vector_search_mcp.index.connection import IndexDamaged, IndexDatabase
from local_vector_search_mcp.index.manifest import (
    Compatibility,
    Manifest,
    compare,
    read_manifest,
    record_dimensions,
    write_manifest,
)
from local_vector_search_mcp.index.schema import SCHEMA_VERSION, create_schema, is_empty, is_ours, schema_version
from local_vector_search_mcp.index.vectors import copy_known

_MERGE_PAGES: Final = 1000


class IndexHome:
    """One index and the configuration that it is used under.

    Args:
        path: The index file; later generations lie beside it.
        wanted: Gives the manifest that an index built now would have.
        read_only: The file system cannot be written.
    """

    def __init__(self, path: Path, wanted: Callable[[], Manifest], *, read_only: bool = False) -> None:
        self.path = path
        self._wanted = wanted
        self._lock = threading.Lock()
        self.damage: str | None = None
        """What became of an index that was found damaged, for warnings; None where none was."""
        self.database = IndexDatabase(path, read_only=read_only, on_open=self._prepare)

    # -- judging ----------------------------------------------------------------------------------------------

    def manifest(self) -> Manifest | None:
        """What the index was built with; None where there is none yet.

        Raises:
            IndexDamaged: The file is no database.
        """
        try:
            with self.database.reader() as connection:
                return read_manifest(connection)
        except IndexDamaged:
            raise
        except IndexNotReady:
            return None

    def compatibility(self) -> Compatibility:
        """What the index allows under the present configuration; everything, where there is none yet.

        Raises:
            IndexDamaged: The file is no database.
        """
        stored = self.manifest()
        return Compatibility() if stored is None else compare(stored, self._wanted())

    def check_searchable(self) -> Compatibility:
        """The compatibility of an index that answers searches.

        Raises:
            IndexNotReady: Nothing has been indexed yet.
            IndexIncompatible: It was built for another root or by another schema.
        """
        stored = self.manifest()
        if stored is None:
            raise IndexNotReady("Nothing is indexed yet; wait for the first run or start kb_reindex.")
        compatibility = compare(stored, self._wanted())
        compatibility.check_searchable()
        return compatibility

    def size_bytes(self) -> int:
        """Bytes of the current generation on disk, its write-ahead log included."""
        file = self.database.file
        total = 0
        for name in (file.name, f"{file.name}-wal"):
            with contextlib.suppress(OSError):
                total += file.with_name(name).stat().st_size
        return total

    def ensure(self) -> None:
        """Make the index where there is none, so that it can be read.

        Raises:
            IndexIncompatible: Another program's database stands in its place.
            IoFailure: It cannot be made.
        """
        with self.database.writer():
            pass  # Opening for writing makes tables and manifest.

    # -- writing ----------------------------------------------------------------------------------------------

    def record_dimensions(self, connection: apsw.Connection, dimensions: int) -> None:
        """Note the length of the vectors when the first ones are stored."""
        record_dimensions(connection, dimensions)

    def _prepare(self, connection: apsw.Connection) -> None:
        """Make tables and manifest in a new file.

        Raises:
            IndexIncompatible: The file is a database of another program, or of another schema.
        """
        if schema_version(connection) == 0 and is_empty(connection):
            create_schema(connection)
        if not is_ours(connection):
            raise IndexIncompatible(
                f"{self.path.name} is another program's database and is left alone; set storage.path to another file."
            )
        if schema_version(connection) != SCHEMA_VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            if read_manifest(connection) is None:
                write_manifest(connection, self._wanted())
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    # -- under the lease --------------------------------------------------------------------------------------

    def heal(self, *, damaged: bool) -> bool:
        """Set a damaged index aside, with its side files, so that the next write makes a new one.

        Args:
            damaged: A use has found it damaged; otherwise it is only opened.

        Returns:
            Whether the index was set aside.

        Raises:
            IoFailure: It could not be set aside.
        """
        if not damaged:
            try:
                self.manifest()
            except IndexDamaged:
                damaged = True
        file = self.database.file
        if damaged and file.exists():
            self.set_aside(file)
            return True
        return False

    def set_aside(self, file: Path) -> None:
        """Rename a damaged index file and remember that for the status.

        Raises:
            IoFailure: It could not be renamed.
        """
        self.database.reopen()
        aside = generations.set_aside(file)
        self.damage = (
            f"The index was damaged; it was set aside as {aside.name} and is rebuilt from the Markdown files. "
            "The set-aside file can be deleted."
        )

    def begin_rebuild(self) -> IndexDatabase:
        """An empty generation beside the current one; one that a former rebuild left unfinished goes on.

        The caller fills it and then calls ``finish_rebuild``, or leaves it for the next rebuild.
        """
        wanted = self._wanted()
        unfinished = generations.unfinished(self.path)
        if unfinished is not None:
            database = self._beside(unfinished)
            if _manifest_of(database) == wanted:
                return database
            database.close()
            generations.remove_files(unfinished)
        database = self._beside(generations.new_generation(self.path))
        with database.writer():
            pass  # Opening for writing makes tables and manifest.
        return database

    def adopt_vectors(self, new: IndexDatabase, *, today: int) -> None:
        """Bring the old generation's vectors into a new one that is built for the same model."""
        try:
            with self.database.reader() as old:
                stored = read_manifest(old)
                if stored is None or not compare(stored, self._wanted()).same_model:
                    return
                with new.maintenance() as connection:
                    copy_known(old, connection, today=today)
                    if stored.dimensions is not None:
                        record_dimensions(connection, stored.dimensions)
        except (IndexNotReady, IndexIncompatible):
            return

    def finish_rebuild(self, new: IndexDatabase) -> None:
        """Make a complete generation the current one.

        Raises:
            IoFailure: The pointer could not be written; the old generation goes on.
        """
        with new.maintenance() as connection:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        file = new.path
        new.close()
        generations.switch(self.path, file)
        self.database.reopen()

    def remove_unused(self) -> int:
        """Delete old generations that nobody has open; how many are left."""
        return generations.remove_unused(self.path)

    def compact(self, database: IndexDatabase, *, should_stop: Callable[[], bool]) -> None:
        """Merge the full-text segments of a freshly filled index and give empty pages back, step by step."""
        # A negative number begins a merge of all segments, positive ones go on with it.
        pages = -_MERGE_PAGES
        while not should_stop():
            with database.writer() as connection:
                before = connection.total_changes()
                connection.execute("INSERT INTO fts (fts, rank) VALUES ('merge', ?)", (pages,))
                # FTS5 says by fewer than two changes that there was nothing to merge.
                if connection.total_changes() - before < 2:
                    break
            pages = _MERGE_PAGES
        with database.maintenance() as connection:
            connection.execute("PRAGMA incremental_vacuum").fetchall()
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def has_unfinished_rebuild(self) -> bool:
        """Whether a rebuild was interrupted and can go on."""
        return generations.unfinished(self.path) is not None

    def _beside(self, file: Path) -> IndexDatabase:
        return IndexDatabase(file, follow_generations=False, on_open=self._prepare)


def is_never_indexed(connection: apsw.Connection) -> bool:
    """Whether no run has ended well yet and no document is indexed."""
    return state.completed_runs(connection) == 0 and state.counts(connection).documents == 0


def check_indexed(connection: apsw.Connection) -> None:
    """Return where the index can answer, in part at least.

    Raises:
        IndexNotReady: Nothing has been indexed yet.
    """
    if is_never_indexed(connection):
        raise IndexNotReady(
            "Nothing is indexed yet: the first run has not come that far. Ask again in a moment; kb_status tells how "
            "far it is, and kb_reindex starts a run."
        )


def _manifest_of(database: IndexDatabase) -> Manifest | None:
    try:
        with database.reader() as connection:
            return read_manifest(connection)
    except IndexNotReady:
        return None
