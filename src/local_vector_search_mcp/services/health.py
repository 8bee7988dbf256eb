"""What this machine offers: each thing that the program rests on, whether it works, and how to mend it.

Every check stands alone and is carried out for real: a database is opened, a vector is made, a page is set.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import apsw

from local_vector_search_mcp.embeddings.provider import DisabledProvider, EmbeddingProvider
from local_vector_search_mcp.errors import DependencyMissing, EmbeddingUnavailable, KnowledgeBaseError
from local_vector_search_mcp.index.connection import IndexDatabase, find_vector_library
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.watcher import WatchState, make_watcher

# One word each of scripts that people are likely to meet.
_SAMPLE: Final = "Aé Ωж 中文 日本 한글 ไทย עב عر हि ∑ 😀"


class Health(StrEnum):
    """How well one thing works."""

    OK = "ok"
    LIMITED = "limited"  # Something is left out; the rest works.
    FAILED = "failed"  # What rests on it does not work.


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was checked.

    Attributes:
        name: What was checked.
        health: How well it works.
        found: What was found.
        remedy: How to mend it; None where nothing needs mending.
    """

    name: str
    health: Health
    found: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """What is to be checked for: the project's places and what it wants to do there."""

    root: Path
    storage: Path
    writes: bool  # Clients may change files.
    watches: bool


def check_all(
    settings: HealthSettings, workspace: Callable[[], Workspace], provider: Callable[[], EmbeddingProvider]
) -> Iterator[Check]:
    """Check one thing after the other; each is given as soon as it is known.

    Args:
        settings: What is checked for.
        workspace: Opens the workspace.
        provider: Makes the embedding provider.
    """
    yield _sqlite()
    yield _vectors()
    yield _provider(provider)
    yield _root(settings)
    yield _storage(settings.storage)
    yield _watching(settings, workspace)
    yield from _books()


def _sqlite() -> Check:
    version = apsw.sqlite_lib_version()
    connection = apsw.Connection(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(text, content='', contentless_delete=1)")
    except apsw.Error as error:
        remedy = "Install the package apsw again; its wheel brings a SQLite that has everything."
        return Check(name="SQLite", health=Health.FAILED, found=f"{version}, without FTS5: {error}", remedy=remedy)
    finally:
        connection.close()
    return Check(name="SQLite", health=Health.OK, found=f"{version} with FTS5")


def _vectors() -> Check:
    support = find_vector_library()
    reason = support.reason
    if reason is None:
        with tempfile.TemporaryDirectory() as folder:
            database = IndexDatabase(Path(folder) / "probe.db")
            try:
                with database.writer() as connection:
                    if database.vectors_available:
                        version = str(connection.execute("SELECT vec_version()").get)
                        return Check(name="sqlite-vec", health=Health.OK, found=version)
                reason = database.vectors_reason
            except KnowledgeBaseError as error:
                reason = error.message
            finally:
                database.close()
    remedy = "Install the package sqlite-vec again; until then search is lexical."
    return Check(name="sqlite-vec", health=Health.LIMITED, found=reason or "cannot be loaded", remedy=remedy)


def _provider(make: Callable[[], EmbeddingProvider]) -> Check:
    name = "embedding provider"
    try:
        provider = make()
        if isinstance(provider, DisabledProvider):
            remedy = "Remove embedding.provider, or set it to local, to search by meaning too."
            return Check(name=name, health=Health.LIMITED, found="none: search is lexical", remedy=remedy)
        try:
            provider.check()
            dimensions = f", {provider.dimensions} dimensions" if provider.dimensions else ""
            return Check(name=name, health=Health.OK, found=f"{provider.name}, {provider.model}{dimensions}")
        finally:
            provider.close()
    except EmbeddingUnavailable as error:
        remedy = "Start or configure the provider as the message says; until then search is lexical."
        return Check(name=name, health=Health.FAILED, found=error.message, remedy=remedy)
    except KnowledgeBaseError as error:
        return Check(name=name, health=Health.FAILED, found=error.message, remedy="Correct the setting.")


def _root(settings: HealthSettings) -> Check:
    name, root = "root", settings.root
    if not root.is_dir():
        remedy = "Set knowledgeBase.root or --project-root to a directory that exists."
        return Check(name=name, health=Health.FAILED, found=f"{root} is no directory", remedy=remedy)
    if not os.access(root, os.R_OK | os.X_OK):
        remedy = "Give yourself the right to read it."
        return Check(name=name, health=Health.FAILED, found=f"{root} cannot be read", remedy=remedy)
    if settings.writes and not _can_write(root):
        remedy = "Give yourself the right to write there, or use the scope read."
        return Check(name=name, health=Health.FAILED, found=f"{root} cannot be written", remedy=remedy)
    return Check(
        name=name, health=Health.OK, found=f"{root}, {'writable' if settings.writes else 'read only by scope'}"
    )


def _storage(storage: Path) -> Check:
    name = "storage"
    remedy = "Set storage.path to a directory that you can write; until then an index that is there is only read."
    if storage.is_symlink():
        return Check(
            name=name, health=Health.FAILED, found=f"{storage} is a link", remedy="Remove it, or set storage.path."
        )
    existing = storage if storage.exists() else storage.parent
    if not existing.is_dir() or not _can_write(existing):
        return Check(name=name, health=Health.LIMITED, found=f"{existing} cannot be written", remedy=remedy)
    return Check(name=name, health=Health.OK, found=f"{storage}{'' if storage.exists() else ', to be made'}")


def _can_write(directory: Path) -> bool:
    # Asking for rights does not find a read-only mount everywhere, so a file is really made.
    try:
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _watching(settings: HealthSettings, workspace: Callable[[], Workspace]) -> Check:
    name = "file watching"
    if not settings.watches:
        remedy = "Remove knowledgeBase.watchFiles: false to follow changes."
        return Check(name=name, health=Health.LIMITED, found="switched off", remedy=remedy)
    try:
        watcher = make_watcher(workspace())
    except KnowledgeBaseError as error:
        return Check(name=name, health=Health.FAILED, found=error.message, remedy="Mend the root first.")
    watcher.start(lambda _: None)
    try:
        state, reason = watcher.state, watcher.reason
    finally:
        watcher.stop()
    if state is WatchState.NATIVE:
        return Check(name=name, health=Health.OK, found="native events")
    remedy = (
        "Changes are found by looking in intervals, which works and is slower; the reason says what to raise or move."
    )
    return Check(name=name, health=Health.LIMITED, found=f"polling: {reason or 'no native events'}", remedy=remedy)


def _books() -> Iterator[Check]:
    from local_vector_search_mcp.book.fonts import font_warnings
    from local_vector_search_mcp.book.pdf import PrintJob, pdf_support, print_book
    from local_vector_search_mcp.book.profiles import PROFILES, ImageProfile

    try:
        support = pdf_support()
    except DependencyMissing as error:
        found, _, remedy = error.message.partition(". ")
        yield Check(
            name="Pango", health=Health.LIMITED, found=found, remedy=f"{remedy} Everything but PDF books works."
        )
        return
    yield Check(name="Pango", health=Health.OK, found=f"{support.pango}, WeasyPrint {support.weasyprint}")
    profile = PROFILES[ImageProfile.STANDARD]
    page = print_book(
        PrintJob(html=f"<p>{_SAMPLE}</p>", css="", pictures={}, drawings={}, profile=profile), lambda _: None
    )
    missing = font_warnings(page.messages)
    if missing:
        yield Check(
            name="fonts",
            health=Health.LIMITED,
            found=" ".join(missing),
            remedy="Install these fonts if your books use such characters (Debian: fonts-noto-core, fonts-noto-cjk, "
            "fonts-noto-color-emoji).",
        )
    else:
        yield Check(name="fonts", health=Health.OK, found="all sample scripts can be set")
    if any("HarfBuzz-Subset" in message for message in page.messages):
        remedy = "Install it (Debian: libharfbuzz-subset0); until then books with large fonts take seconds longer."
        yield Check(name="HarfBuzz-Subset", health=Health.LIMITED, found="not installed", remedy=remedy)
