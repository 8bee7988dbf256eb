"""An app whose services answer at once with small, fixed results: the server layer without what stands below it."""

import os
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from local_vector_search_mcp.config.models import Config, HttpSection, KnowledgeBaseSection
from local_vector_search_mcp.errors import Conflict, ConflictReason, NotFound
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.services.overview import IndexPrint, Overview

FILES = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeIndex:
    """The state of an index."""

    state: str = "ready"
    documents: int = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeStatus:
    """The least that ``kb_status`` has to say."""

    server: dict[str, str] = field(default_factory=lambda: {"name": "fake", "version": "0"})
    scope: str = "read"
    root: str = "."
    index: FakeIndex = field(default_factory=lambda: FakeIndex())
    last_event_at: str | None = None
    unsupported: tuple[str, ...] = ()
    unsupported_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeFile:
    """A listed file."""

    path: str
    kind: str = "markdown"
    bytes: int = 3
    modified: str = "2026-01-31T12:00:00Z"
    title: str | None = None
    indexed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeFiles:
    """A page of files."""

    files: tuple[FakeFile, ...]
    next_cursor: str | None = None


class FakeApp:
    """Records what it was called with; a call can be told to take its time, to fail, or to clash."""

    def __init__(self, root: Path, *, scope: str = "full", http: Mapping[str, Any] | None = None) -> None:
        listening = HttpSection()
        if http is not None:
            listening = HttpSection(host=http["host"], port=http["port"], allowed_hosts=tuple(http["hosts"]))
        self.config = Config(project_root=root, knowledge_base=KnowledgeBaseSection(scope=Scope(scope)), http=listening)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._state: object = None
        self._revision = 0
        self.started = threading.Event()
        self.closed = threading.Event()
        self.status = SimpleNamespace(status=self._status)
        self.reading = SimpleNamespace(read=self._read, outline=self._answer("outline"))
        self.listing = SimpleNamespace(list_files=self._list_files)
        self.documents = FILES
        self.overview = SimpleNamespace(
            overview=self._overview, index_print=self._index_print, revision=lambda: self.documents
        )
        self.workspace = SimpleNamespace(read_document=self._read_document)

    def start(self) -> None:
        """Begin background work."""
        self.started.set()

    def close(self) -> None:
        """End background work; as slowly as ``TEST_CLOSE_S`` says."""
        time.sleep(float(os.environ.get("TEST_CLOSE_S", "0")))
        self.closed.set()

    def _status(self) -> FakeStatus:
        self.calls.append(("status", {}))
        return FakeStatus(scope=str(self.config.scope), root=str(self.config.root))

    def _read(self, **arguments: Any) -> dict[str, Any]:
        self.calls.append(("read", arguments))
        path = str(arguments.get("path", ""))
        if path.startswith("sleep-"):
            time.sleep(float(path.removeprefix("sleep-")))
        if path == "crash.md":
            raise RuntimeError("secret detail of a crash")
        if path == "conflict.md":
            raise Conflict("It changed; read it again.", reason=ConflictReason.CHANGED, details={"candidates": []})
        if path == "print.md":
            print("stray output")
        return {"path": path, "source_hash": "0" * 16, "elements": (), "next_pointer": None}

    def _list_files(self, *, cursor: str | None = None, page_size: int = 100, **arguments: Any) -> FakeFiles:
        self.calls.append(("list_files", arguments))
        first = int(cursor) if cursor else 0
        paths = [f"notes/n{number:03}.md" for number in range(first, min(first + page_size, FILES))]
        rest = first + page_size
        return FakeFiles(
            files=tuple(FakeFile(path=path) for path in paths), next_cursor=str(rest) if rest < FILES else None
        )

    def _overview(self) -> Overview:
        return Overview(documents=self.documents, folders=(("notes", FILES),), tags=("ideas",))

    def _index_print(self, watched: Collection[str], before: IndexPrint) -> IndexPrint:
        """The files of the root stand for the rows of the index."""
        files = {path.name: path.read_text("utf-8") for path in self.config.root.glob("*.md")}
        hashes = {path: files.get(path) for path in watched}
        digest = "\n".join(sorted(files))
        state = (digest, sorted(files.items()))
        if state != self._state:
            self._state, self._revision = state, self._revision + 1
        return IndexPrint(revision=self._revision, paths=digest, hashes=hashes)

    def _read_document(self, path: RelPath) -> SimpleNamespace:
        if path.name == "missing.md":
            raise NotFound(f"There is no {path}.")
        if path.name == "latin.md":
            return SimpleNamespace(data=b"caf\xe9")
        return SimpleNamespace(data=f"# {path}\r\n".encode())

    def _answer(self, name: str) -> Any:
        def answer(**arguments: Any) -> dict[str, Any]:
            self.calls.append((name, arguments))
            return {"path": "a.md", "source_hash": "0" * 16, "headings": ()}

        return answer
