"""Where the server's own files lie: index, history, indexing lease, one index per collection."""

from dataclasses import dataclass
from pathlib import Path

from local_vector_search_mcp.config.models import Config
from local_vector_search_mcp.digests import sha256_hex

_DATABASE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})


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
            )
        own_name = path.name == "index.db"
        return cls(
            directory=path.parent,
            index_path=path,
            history_path=path.with_name("history.db" if own_name else f"{path.stem}.history.db"),
            state_directory=path.parent if own_name else path.with_name(f"{path.name}.d"),
        )

    def collection_directory(self, name: str) -> Path:
        """The directory of one collection's index; names that differ by case only never share one."""
        readable = "".join(char if char.isascii() and char.isalnum() else "-" for char in name)[:32]
        digest = sha256_hex(name.encode("utf-8"))[:8]
        return self.state_directory / "collections" / f"{readable}-{digest}"
