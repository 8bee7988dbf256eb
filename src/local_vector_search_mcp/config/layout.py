"""Where the server's own files lie: index, history, indexing lease, one index per collection."""

from dataclasses import dataclass
from pathlib import Path

from local_vector_search_mcp.config.models import Config
from local_vector_search_mcp.digests import sha256_hex
from local_vector_search_mcp.errors import ConfigError
from local_vector_search_mcp.workspace.guard import OwnPaths

_DATABASE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})
_SQLITE_HEADER = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLayout:
    """Absolute places of the server's own files.

    With ``storage.path`` naming a file, everything else is named after it, so that the indexes of two projects
    can share a directory and nothing else.
    """

    directory: Path  # Holds all of them; made by the server where it is missing.
    index_path: Path
    history_path: Path
    state_directory: Path  # Leases and collections; the directory itself unless storage.path names a file.
    owns_directory: bool  # Whether the directory is the server's own, and not one that a named file lies in.

    @classmethod
    def of(cls, config: Config) -> "StorageLayout":
        """Read ``storage.path``: an existing file or a database suffix means the index file, all else a directory."""
        text = config.storage.path
        path = config.project_root / Path(text).expanduser()
        names_file = path.is_file() or (
            path.suffix.lower() in _DATABASE_SUFFIXES and not path.is_dir() and not text.endswith(("/", "\\"))
        )
        if not names_file:
            return cls(
                directory=path,
                index_path=path / "index.db",
                history_path=path / "history.db",
                state_directory=path,
                owns_directory=True,
            )
        own_name = path.name == "index.db"
        return cls(
            directory=path.parent,
            index_path=path,
            history_path=path.with_name("history.db" if own_name else f"{path.stem}.history.db"),
            state_directory=path.parent if own_name else path.with_name(f"{path.name}.d"),
            owns_directory=False,
        )

    def check_index_file(self) -> None:
        """Return where the named index file may be used; a damaged one that was ours may, for it is healed.

        Raises:
            ConfigError: It is a file of somebody else, such as a note: healing would put an index in its place.
        """
        if self.owns_directory or self.index_path.name == "index.db" or self.state_directory.is_dir():
            return
        try:
            with self.index_path.open("rb") as file:
                head = file.read(len(_SQLITE_HEADER))
        except OSError:
            return  # It is not there, or opening the index says what is wrong.
        if head and head != _SQLITE_HEADER:
            raise ConfigError(
                f"storage.path: {self.index_path} is no index of this server and is left alone; name a directory, or a "
                "file that does not exist yet."
            )

    def own_paths(self, root: Path) -> OwnPaths:
        """What no tool may touch below a root.

        A directory that holds the root, or one around a named index file, holds files of others too, so there the
        single files are named.
        """
        if self.owns_directory and not root.is_relative_to(self.directory):
            return OwnPaths(directories=(self.directory,))
        state = () if root.is_relative_to(self.state_directory) else (self.state_directory,)
        singles = ("indexing.lock", "indexing.json", "mail", "collections")
        files = (self.index_path, self.history_path, *(self.state_directory / name for name in singles))
        return OwnPaths(directories=state, files=files)

    def collection_directory(self, name: str) -> Path:
        """The directory of one collection's index; names that differ by case only never share one."""
        readable = "".join(char if char.isascii() and char.isalnum() else "-" for char in name)[:32]
        digest = sha256_hex(name.encode("utf-8"))[:8]
        return self.state_directory / "collections" / f"{readable}-{digest}"
