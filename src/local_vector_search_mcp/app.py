"""App: the one place that builds objects. ``open_app`` opens what a configuration names; services are built when used.

Opening reads no document and imports nothing heavy. What runs in the background begins with ``start``.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from local_vector_search_mcp import __version__
from local_vector_search_mcp.config.layout import StorageLayout
from local_vector_search_mcp.config.models import Config, OnStart, ProviderName
from local_vector_search_mcp.config.settings import (
    chunker_settings,
    collection_rules,
    embedding_settings,
    embedding_text_settings,
    history_settings,
    search_settings,
    selection_rules,
)
from local_vector_search_mcp.errors import ConfigError, IoFailure, KnowledgeBaseError
from local_vector_search_mcp.index.connection import IndexDatabase
from local_vector_search_mcp.index.home import IndexHome
from local_vector_search_mcp.index.manifest import Manifest, record_dimensions
from local_vector_search_mcp.index.storage import StorageAccess, prepare_storage
from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.services.background import Indexer, IndexerParts
from local_vector_search_mcp.services.corpus import PROJECT, Corpora, Corpus
from local_vector_search_mcp.services.embedding import EmbeddingBacklog, VectorHooks
from local_vector_search_mcp.services.handover import Board, Mailbox
from local_vector_search_mcp.services.indexing import IndexingSettings
from local_vector_search_mcp.services.reconcile import Reconciler
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.listing import SelectionRules
from local_vector_search_mcp.workspace.locks import IndexingLease
from local_vector_search_mcp.workspace.watcher import Watcher, make_watcher

if TYPE_CHECKING:
    from typing import Self

    from local_vector_search_mcp.embeddings.provider import EmbeddingProvider
    from local_vector_search_mcp.services.books import BookService
    from local_vector_search_mcp.services.context import ContextService
    from local_vector_search_mcp.services.documents import DocumentService
    from local_vector_search_mcp.services.downloads import DownloadService
    from local_vector_search_mcp.services.frontmatter import FrontmatterService
    from local_vector_search_mcp.services.health import Check
    from local_vector_search_mcp.services.images import ImageService
    from local_vector_search_mcp.services.links import LinksService
    from local_vector_search_mcp.services.listing import ListingService
    from local_vector_search_mcp.services.metadata import MetadataService
    from local_vector_search_mcp.services.mutations import Mutations
    from local_vector_search_mcp.services.overview import OverviewService
    from local_vector_search_mcp.services.patching import PatchingService
    from local_vector_search_mcp.services.reading import ReadingService
    from local_vector_search_mcp.services.replacing import ReplacingService
    from local_vector_search_mcp.services.searching import SearchingService
    from local_vector_search_mcp.services.status import StatusService
    from local_vector_search_mcp.services.tables import TableService
    from local_vector_search_mcp.services.undo import UndoService

_log = logging.getLogger(__name__)

_MOST_DEFAULT_WORKERS: Final = 4

_Built = TypeVar("_Built")


class lazy(Generic[_Built]):  # noqa: N801  It reads as a decorator.
    """An attribute that is built at its first use, once, whichever thread comes first."""

    def __init__(self, build: Callable[[Any], _Built]) -> None:
        self._build = build
        self._name = build.__name__
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, app: None, owner: type["App"]) -> "Self": ...
    @overload
    def __get__(self, app: "App", owner: type["App"]) -> _Built: ...
    def __get__(self, app: "App | None", owner: type["App"]) -> "_Built | Self":
        if app is None:
            return self
        with app.building:
            if self._name not in app.__dict__:
                # Found there from now on, before this descriptor is asked.
                app.__dict__[self._name] = self._build(app)
            built: _Built = app.__dict__[self._name]
            return built


class App:
    """Everything that tools and commands use, over one configuration.

    Attributes:
        config: The settings in force.
        scope: What clients of a server may do.
        corpora: The project's tree and those of the collections.
        workspace: The project's files.
        indexer: Keeps the project's index in line with its files.
        provider: Makes the vectors.
        building: Held while a service is built.
    """

    def __init__(
        self,
        config: Config,
        *,
        corpora: Corpora,
        provider: "EmbeddingProvider",
        layout: StorageLayout,
        for_server: bool,
    ) -> None:
        self.config = config
        self.provider = provider
        self.scope: Scope = config.scope
        self.corpora = corpora
        self.workspace = corpora.project.workspace
        self.indexer = corpora.project.indexer
        self.building = threading.RLock()
        self._layout = layout
        self._for_server = for_server
        self._opened = ExitStack()

    def start(self) -> None:
        """Begin what runs in the background: indexing, and watching for a server. Returns at once."""
        for corpus in self.corpora:
            corpus.indexer.start()
        if self._for_server and self.scope is not Scope.READ:
            threading.Thread(target=self._recover, name="recovery", daemon=True).start()

    def _recover(self) -> None:
        """Finish or put back what a crash cut off, before somebody asks for a change, and clear up after it."""
        try:
            self.mutations.recover()
            with self.mutations.locked():
                self.workspace.remove_leftovers()
        except KnowledgeBaseError as error:
            # Tried again before the next change, which then fails with the same error.
            _log.warning("changes that were cut off could not be looked at: %s", error.code)

    def close(self) -> None:
        """End what runs in the background and close every file. May be called more than once."""
        # Side by side: a run of one may wait for that of another, and all have to end in two seconds.
        stopping = [threading.Thread(target=corpus.indexer.stop, name="stop") for corpus in self.corpora]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        for corpus in self.corpora:
            # What an editor wrote to a replaced file goes into the history, which is closed next.
            corpus.workspace.close()
        self._opened.close()
        self.provider.close()

    # -- reading

    @lazy
    def reading(self) -> "ReadingService":
        """``kb_read``, ``kb_outline``."""
        from local_vector_search_mcp.services.reading import ReadingService

        return ReadingService(self.corpora)

    @lazy
    def listing(self) -> "ListingService":
        """``kb_list_files``."""
        from local_vector_search_mcp.services.listing import ListingService

        return ListingService(self.corpora)

    @lazy
    def links(self) -> "LinksService":
        """``kb_links``."""
        from local_vector_search_mcp.services.links import LinksService

        return LinksService(self.corpora)

    @lazy
    def metadata(self) -> "MetadataService":
        """``kb_metadata``."""
        from local_vector_search_mcp.services.metadata import MetadataService

        return MetadataService(self.corpora)

    @lazy
    def status(self) -> "StatusService":
        """``kb_status``."""
        from local_vector_search_mcp.services.status import ServerInfo, StatusService

        return StatusService(
            self.corpora,
            server=ServerInfo(name=self.config.server.name, version=__version__),
            scope=self.scope.value,
            provider=self.provider,
            more_warnings=self._notices,
        )

    def _notices(self) -> tuple[str, ...]:
        # Nothing can have happened beside calls that were never made.
        mutations: Mutations | None = self.__dict__.get("mutations")
        return () if mutations is None else mutations.notices

    @lazy
    def overview(self) -> "OverviewService":
        """What the project holds as a whole."""
        from local_vector_search_mcp.services.overview import OverviewService

        return OverviewService(self.corpora)

    @lazy
    def searching(self) -> "SearchingService":
        """``kb_search``."""
        from local_vector_search_mcp.services.search_arguments import SearchMode
        from local_vector_search_mcp.services.searching import SearchingService, SearchingSettings

        settings = SearchingSettings(
            ranking=search_settings(self.config),
            default_mode=SearchMode(self.config.search.default_mode.value),
            max_results=self.config.search.max_results,
        )
        return SearchingService(self.corpora, self.provider, settings)

    @lazy
    def context(self) -> "ContextService":
        """``kb_context``."""
        from local_vector_search_mcp.services.context import ContextService

        return ContextService(self.searching)

    @lazy
    def downloads(self) -> "DownloadService":
        """``kb_download_file``."""
        from local_vector_search_mcp.services.downloads import DownloadService

        return DownloadService(self.workspace)

    # -- writing

    @lazy
    def mutations(self) -> "Mutations":
        """The one write path, which every writing service goes through."""
        from local_vector_search_mcp.history.store import HistoryStore
        from local_vector_search_mcp.services.mutations import Mutations, MutationSettings

        history = HistoryStore(self._layout.history_path, history_settings(self.config))
        self._opened.callback(history.close)
        settings = MutationSettings(write_wait_ms=self.config.index.write_wait_ms)
        return Mutations(self.corpora.project, history, settings)

    @lazy
    def patching(self) -> "PatchingService":
        """``kb_patch``."""
        from local_vector_search_mcp.services.patching import PatchingService

        return PatchingService(self.mutations)

    @lazy
    def tables(self) -> "TableService":
        """``kb_edit_table``."""
        from local_vector_search_mcp.services.tables import TableService

        return TableService(self.mutations)

    @lazy
    def frontmatter(self) -> "FrontmatterService":
        """``kb_edit_frontmatter``."""
        from local_vector_search_mcp.services.frontmatter import FrontmatterService

        return FrontmatterService(self.mutations)

    @lazy
    def documents(self) -> "DocumentService":
        """``kb_create``, ``kb_move``, ``kb_delete``."""
        from local_vector_search_mcp.services.documents import DocumentService

        return DocumentService(self.mutations)

    @lazy
    def replacing(self) -> "ReplacingService":
        """``kb_replace_text``."""
        from local_vector_search_mcp.services.replacing import ReplacingService

        return ReplacingService(self.mutations)

    @lazy
    def undo(self) -> "UndoService":
        """``kb_history``, ``kb_undo``."""
        from local_vector_search_mcp.services.undo import UndoService

        return UndoService(self.mutations)

    @lazy
    def images(self) -> "ImageService":
        """The image tools."""
        from local_vector_search_mcp.services.images import ImageService

        return ImageService(self.mutations)

    @lazy
    def books(self) -> "BookService":
        """``kb_create_pdf_book``."""
        from local_vector_search_mcp.services.books import BookService

        books = BookService(self.mutations)
        self._opened.callback(books.close)
        return books


def open_app(config: Config, *, for_server: bool, environ: Mapping[str, str] = os.environ) -> App:
    """Open the project and the collections of a configuration.

    Args:
        config: The settings in force.
        for_server: Whether a server will run: changes are followed and the index is kept up in the background.
            Otherwise one command runs, which asks for what it needs.
        environ: Where keys are read from.

    Raises:
        ConfigError: Settings that are wrong together, or a root that cannot be opened.
        IoFailure: Another user's directory stands in place of the storage.
    """
    from local_vector_search_mcp.embeddings.factory import make_provider

    layout = StorageLayout.of(config)
    layout.check_index_file()
    provider = make_provider(embedding_settings(config, environ), base_folder=config.project_root)
    builder = _CorpusBuilder(config, layout, provider, for_server=for_server)
    project = builder.build(
        PROJECT,
        _workspace("knowledgeBase.root", config.root, selection_rules(config), layout),
        index_path=layout.index_path,
        directory=layout.state_directory,
        prepare=partial(_storage_access, layout, config.project_root),
    )
    collections: list[Corpus] = []
    for collection in config.collections:
        root = config.collection_root(collection)
        directory = layout.collection_directory(collection.name)
        collections.append(
            builder.build(
                collection.name,
                _workspace(f"collections: {collection.name}: root", root, collection_rules(config, collection), layout),
                index_path=directory / "index.db",
                directory=directory,
                prepare=partial(_collection_access, directory, config.project_root),
            )
        )
    return App(config, corpora=Corpora(project, collections), provider=provider, layout=layout, for_server=for_server)


def _workspace(key: str, root: Path, rules: SelectionRules, layout: StorageLayout) -> Workspace:
    try:
        return Workspace(root, rules, own=layout.own_paths(root))
    except IoFailure as error:
        raise ConfigError(f"{key}: {error.message}") from error


def _storage_access(layout: StorageLayout, project_root: Path) -> StorageAccess:
    """What can be done where the index lies; a directory around a named index file is not ours to judge."""
    if layout.owns_directory or not layout.directory.exists():
        access = prepare_storage(layout.directory, project_root=project_root)
        if access is not StorageAccess.WRITABLE or layout.owns_directory:
            return access
    return prepare_storage(layout.state_directory, project_root=project_root)


def _collection_access(directory: Path, project_root: Path) -> StorageAccess:
    parent = prepare_storage(directory.parent, project_root=project_root)
    return prepare_storage(directory, project_root=project_root) if parent is StorageAccess.WRITABLE else parent


class _CorpusBuilder:
    """Builds the project's corpus and those of the collections alike; they share model and workers."""

    def __init__(
        self, config: Config, layout: StorageLayout, provider: "EmbeddingProvider", *, for_server: bool
    ) -> None:
        self._config = config
        self._layout = layout
        self._provider = provider
        self._for_server = for_server
        # Two runs at once would only take the processors from each other, and from the searches.
        self._one_at_a_time = threading.Lock()

    def build(
        self,
        name: str,
        workspace: Workspace,
        *,
        index_path: Path,
        directory: Path,
        prepare: Callable[[], StorageAccess],
    ) -> Corpus:
        """The corpus of one tree, whose state lies in ``directory``, which ``prepare`` makes where it is missing."""
        from local_vector_search_mcp.services.document_cache import DocumentCache

        config = self._config
        read_only = prepare() is not StorageAccess.WRITABLE
        home = IndexHome(index_path, lambda: self._manifest(workspace), read_only=read_only)
        watcher = make_watcher(workspace) if self._for_server and config.knowledge_base.watch_files else None
        embeds = config.embedding.provider is not ProviderName.NONE
        indexing = IndexingSettings(
            chunker=chunker_settings(config), embedding_text=embedding_text_settings(config), embeds=embeds
        )
        parts = IndexerParts(
            home=home,
            reconciler=Reconciler(workspace, settings=indexing, hooks=VectorHooks(time.time), workers=self._workers()),
            lease=IndexingLease(directory),
            mailbox=Mailbox(directory / "mail"),
            board=Board(directory / "indexing.json"),
            backlog_of=self._backlog if embeds else None,
            watching=None if watcher is None else _Watching(watcher),
            reconcile_on_start=self._for_server and config.index.on_start is OnStart.RECONCILE,
            one_at_a_time=self._one_at_a_time,
            root_is_there=partial(os.path.isdir, workspace.root),
            prepare_storage=prepare,
        )
        return Corpus(
            name=name,
            workspace=workspace,
            documents=DocumentCache(workspace),
            database=home.database,
            indexer=Indexer(parts, read_only=read_only),
            watcher=watcher,
        )

    def _manifest(self, workspace: Workspace) -> Manifest:
        return Manifest.of(
            root=str(workspace.root),
            chunker=chunker_settings(self._config),
            embedding_text=embedding_text_settings(self._config),
            provider=self._provider.name,
            model=self._provider.model,
            dimensions=self._provider.dimensions,
        )

    def _backlog(self, database: IndexDatabase) -> EmbeddingBacklog:
        return EmbeddingBacklog(
            database,
            self._provider,
            settings=embedding_text_settings(self._config),
            cache_days=self._config.embedding.cache_days,
            now_s=time.time,
            record_dimensions=record_dimensions,
        )

    def _workers(self) -> int:
        return self._config.index.workers or min(_MOST_DEFAULT_WORKERS, os.cpu_count() or 1)


class _Watching:
    """A watcher as the indexer sees it: batches of paths, or None where anything may have changed."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def start(self, seen: Callable[[Sequence[str] | None, float], None]) -> None:
        """Begin to watch."""
        self._watcher.start(
            lambda changes: seen(None if changes.everything else (*changes.paths, *changes.folders), changes.first_at)
        )

    def stop(self) -> None:
        """End."""
        self._watcher.stop()


def check_health(config: Config, environ: Mapping[str, str] = os.environ) -> "Iterator[Check]":
    """Check what the program rests on, for a configuration; works where ``open_app`` does not."""
    from local_vector_search_mcp.embeddings.factory import make_provider
    from local_vector_search_mcp.services.health import HealthSettings, check_all

    settings = HealthSettings(
        root=config.root,
        storage=StorageLayout.of(config).directory,
        writes=config.scope is not Scope.READ,
        watches=config.knowledge_base.watch_files,
    )
    return check_all(
        settings,
        lambda: Workspace(config.root, selection_rules(config)),
        lambda: make_provider(embedding_settings(config, environ), base_folder=config.project_root),
    )
