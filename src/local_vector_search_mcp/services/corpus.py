"""Corpus: one tree of documents with its index. The project is one, every collection another.

Only the project is ever written to; ``get`` and ``choose`` are for tools that read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.watcher import Watcher

if TYPE_CHECKING:
    from local_vector_search_mcp.services.background import Indexer
    from local_vector_search_mcp.services.document_cache import DocumentCache

PROJECT: Final = "project"
"""The reserved name of the project's own tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One tree of documents, the cache of its parsed documents, and its index."""

    name: str
    workspace: Workspace
    documents: "DocumentCache"
    database: IndexDatabase
    indexer: "Indexer"
    watcher: Watcher | None = None  # None where changes are not followed.

    @property
    def is_project(self) -> bool:
        """Whether this is the project's own tree."""
        return self.name == PROJECT

    @property
    def collection(self) -> str | None:
        """What results carry: the collection's name, None for the project."""
        return None if self.is_project else self.name


class Corpora:
    """The project and the collections that the configuration names, the project first."""

    def __init__(self, project: Corpus, collections: Sequence[Corpus] = ()) -> None:
        self.project = project
        self._by_name = {corpus.name: corpus for corpus in (project, *collections)}

    def __iter__(self) -> Iterator[Corpus]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def collections(self) -> tuple[Corpus, ...]:
        """All but the project."""
        return tuple(corpus for corpus in self if not corpus.is_project)

    def get(self, name: str | None = None) -> Corpus:
        """The corpus of a name; None is the project.

        Raises:
            InvalidArgument: There is none of that name; the message lists those there are.
        """
        if name is None:
            return self.project
        corpus = self._by_name.get(name)
        if corpus is None:
            raise InvalidArgument(f"There is no collection {name!r}; known are {', '.join(self._by_name)}.")
        return corpus

    def choose(self, names: Sequence[str] | None = None) -> tuple[Corpus, ...]:
        """The corpora of several names, each once, the project first; None means all.

        Raises:
            InvalidArgument: There is none of one of the names.
        """
        if names is None:
            return tuple(self)
        wanted = {self.get(name).name for name in names}
        return tuple(corpus for corpus in self if corpus.name in wanted)
