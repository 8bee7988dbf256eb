"""An app whose services answer at once with small, fixed results: the server layer without what stands below it."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from local_vector_search_mcp.config.models import Config, KnowledgeBaseSection, Scope
from local_vector_search_mcp.errors import Conflict, ConflictReason


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeStatus:
    """The least that ``kb_status`` has to say."""

    server: dict[str, str] = field(default_factory=lambda: {"name": "fake", "version": "0"})
    scope: str = "read"
    root: str = "."
    index: dict[str, Any] = field(default_factory=lambda: {"state": "ready", "documents": 0})
    last_event_at: str | None = None
    unsupported: tuple[str, ...] = ()
    unsupported_count: int = 0


class FakeApp:
    """Records what it was called with; a call can be told to take its time, to fail, or to clash."""

    def __init__(self, root: Path, *, scope: str = "full") -> None:
        self.config = Config(project_root=root, knowledge_base=KnowledgeBaseSection(scope=Scope(scope)))
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.started = threading.Event()
        self.closed = threading.Event()
        self.status = SimpleNamespace(status=self._status)
        self.reading = SimpleNamespace(read=self._read, outline=self._answer("outline"))

    def start(self) -> None:
        """Begin background work."""
        self.started.set()

    def close(self) -> None:
        """End background work."""
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

    def _answer(self, name: str) -> Any:
        def answer(**arguments: Any) -> dict[str, Any]:
            self.calls.append((name, arguments))
            return {"path": "a.md", "source_hash": "0" * 16, "headings": ()}

        return answer
