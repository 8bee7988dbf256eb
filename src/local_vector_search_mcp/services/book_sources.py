"""WorkspaceSources: what a book may see of the workspace, through the same rules as every tool."""

from typing import Final

from local_vector_search_mcp.book.sources import FoundFile, Unavailable
from local_vector_search_mcp.errors import InvalidPath, KnowledgeBaseError, NotFound, TooLarge
from local_vector_search_mcp.index.link_names import LinkNames
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.files import Workspace

_MAX_PICTURE_BYTES: Final = 25 * 1024 * 1024
_NO_FILE: Final = Unavailable(reason="there is no such file")


class WorkspaceSources:
    """Answers what the documents of a book refer to; a refusal is an answer, never an error."""

    def __init__(self, workspace: Workspace, names: LinkNames) -> None:
        self._workspace = workspace
        self._names = names

    def resolve(self, target: str, from_path: str, *, wiki: bool) -> str | None:
        """The root-relative path that a link leads to, or ``None``."""
        return self._names.resolve(from_path, "wikilink" if wiki else "link", target).path

    def note(self, target: str, from_path: str) -> FoundFile | Unavailable:
        """The document that an embed names."""
        found = self._find(target, from_path, "embed")
        if isinstance(found, Unavailable):
            return found
        try:
            return FoundFile(path=found.value, data=self._workspace.read_document(found).data)
        except KnowledgeBaseError as error:
            return _unavailable(error)

    def image(self, target: str, from_path: str, *, wiki: bool) -> FoundFile | Unavailable:
        """The bytes of a local image."""
        found = self._find(target, from_path, "embed" if wiki else "image")
        if isinstance(found, Unavailable):
            return found
        try:
            self._workspace.check_visible(found)
            return FoundFile(path=found.value, data=self._workspace.read(found, max_bytes=_MAX_PICTURE_BYTES).data)
        except KnowledgeBaseError as error:
            return _unavailable(error)

    def _find(self, target: str, from_path: str, kind: str) -> RelPath | Unavailable:
        try:
            meant = self._names.resolve(from_path, kind, target)
            if meant.candidates:
                return Unavailable(reason=f"it could be {', '.join(meant.candidates[:3])}")
            if meant.outside:
                return Unavailable(reason="it leads outside the root")
            return _NO_FILE if meant.path is None else RelPath.parse(meant.path)
        except KnowledgeBaseError as error:
            return _unavailable(error)


def _unavailable(error: KnowledgeBaseError) -> Unavailable:
    match error:
        case NotFound():
            return _NO_FILE
        case InvalidPath():
            return Unavailable(reason="no tool may read it: it is a link, or not a file under the root")
        case TooLarge():
            return Unavailable(reason="it is too large")
        case _:
            return Unavailable(reason=f"it cannot be read ({error.code})")
