"""Link updates: which links on disk lead to given files, and what must be written where files move."""

import posixpath
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from local_vector_search_mcp.editing.link_edits import path_choices, path_edit
from local_vector_search_mcp.editing.patcher import rewrite
from local_vector_search_mcp.editing.text_edits import TextEdit, TextEdits
from local_vector_search_mcp.index.link_names import LinkNames
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.markdown.links import Link
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.link_reading import Candidate, LinkReader, Tree
from local_vector_search_mcp.workspace.entries import FileSnapshot
from local_vector_search_mcp.workspace.files import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingLink:
    """A link that leads to one of the files asked for."""

    path: str
    pointer: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedDocument:
    """A document whose links must be written anew.

    Attributes:
        snapshot: As it was read.
        data: Its new bytes.
        count: How many links were changed.
    """

    snapshot: FileSnapshot
    data: bytes
    count: int


@dataclass(slots=True, kw_only=True)
class LinkUpdates:
    """What files that move ask of the documents: by present path, and what could not be updated."""

    documents: dict[str, UpdatedDocument] = field(default_factory=dict[str, UpdatedDocument])
    warnings: list[str] = field(default_factory=list[str])


class LinkPlanner:
    """Says what a change of files means for links.

    Ask it once before the workspace lock is taken and again under it: the second answer is as true as the first one
    was, and takes little time, because only what has changed is read and worked out again.

    Args:
        workspace: The files.
        now_ns: The wall clock, in nanoseconds since 1970.
    """

    def __init__(self, workspace: Workspace, *, now_ns: Callable[[], int]) -> None:
        self._reader = LinkReader(workspace, now_ns=now_ns)
        self._move: _Move | None = None
        self._done: dict[str, _Done] = {}

    def updates(
        self, moves: Mapping[RelPath, RelPath], *, folder: tuple[RelPath, RelPath] | None = None
    ) -> LinkUpdates:
        """What must be written so that every link that led to a moved file, or stands in one, leads where it led.

        Args:
            moves: Documents and images with their new paths; the files are as they are before the move.
            folder: The folder that moves as a whole, with its new path; links to it follow.

        Raises:
            IoFailure: The root cannot be read.
            StructureChanged: A new destination would change how a document is read.
        """
        names = {old.value: new.value for old, new in moves.items()}
        mentioned = [old.name for old in moves] if folder is None else [folder[0].name]
        look = self._reader.look(mentioned, asked=names.keys())
        prefixes = (f"{folder[0]}/", f"{folder[1]}/") if folder is not None else None
        move = self._move
        if move is None or (move.tree, move.names, move.folder) != (look.tree, names, prefixes):
            move, self._done = _Move.of(look.tree, names, prefixes), {}
        self._move = move
        updates = LinkUpdates(warnings=list(look.warnings))
        for path, candidate in look.candidates.items():
            done = self._done.get(path)
            if done is None or done.candidate is not candidate:
                done = self._done[path] = _worked_out(move, path, candidate)
            updates.warnings += done.warnings
            if done.update is not None:
                updates.documents[path] = done.update
        return updates

    def incoming(self, targets: Iterable[RelPath], *, most: int) -> tuple[IncomingLink, ...]:
        """The links of other documents that lead to given files, by path, then in document order.

        Args:
            targets: Files that exist.
            most: No more links than this.

        Raises:
            IoFailure: The root cannot be read.
        """
        wanted = {target.value for target in targets}
        look = self._reader.look([RelPath(path).name for path in wanted], asked=wanted)
        names = look.tree.names()
        found: list[IncomingLink] = []
        for path, candidate in look.candidates.items():
            if path in wanted:
                continue
            for link in candidate.links:
                if _meant(names, path, link) in wanted:
                    found.append(IncomingLink(path=path, pointer=link.element.pointer, target=link.target))
                    if len(found) == most:
                        return tuple(found)
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """What a move means for one document."""

    candidate: Candidate
    update: UpdatedDocument | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Move:
    """Where files go, and what names mean before and after."""

    tree: Tree
    names: Mapping[str, str]
    folder: tuple[str, str] | None
    before: LinkNames
    after: LinkNames

    @classmethod
    def of(cls, tree: Tree, names: Mapping[str, str], folder: tuple[str, str] | None) -> "_Move":
        """A move of files in a tree."""
        return cls(tree, names, folder, tree.names(), tree.names(names))

    def new_place(self, path: str) -> str:
        """Where a file or folder stands afterwards."""
        if path in self.names:
            return self.names[path]
        if self.folder is not None and f"{path}/".startswith(self.folder[0]):
            # Only folders themselves come here; files of a moved folder that stay are not followed.
            return (self.folder[1] + f"{path}/"[len(self.folder[0]) :]).rstrip("/")
        return path


def _worked_out(move: _Move, path: str, candidate: Candidate) -> _Done:
    warnings: list[str] = []
    edits = _document_edits(move, path, candidate, warnings)
    update: UpdatedDocument | None = None
    if len(edits):
        data = rewrite(candidate.document, edits).source
        update = UpdatedDocument(snapshot=candidate.snapshot, data=data, count=len(edits))
    return _Done(candidate=candidate, update=update, warnings=tuple(warnings))


def _document_edits(move: _Move, path: str, candidate: Candidate, warnings: list[str]) -> TextEdits:
    source, document = move.names.get(path, path), candidate.document
    edits: list[TextEdit] = []
    for link in candidate.links:
        meant = _meant(move.before, path, link)
        if meant is None:
            continue
        wanted = move.new_place(meant)
        # A path taken from its document's folder stays one: other programs know none that is taken from the root.
        holds = _beside(link, source) == wanted or _beside(link, path) != meant
        if holds and _meant(move.after, source, link) == wanted:
            continue
        edit = _new_path(move, link, document, source, wanted, from_root=_is_from_root(link, path, meant))
        if edit is None:
            warnings.append(
                f"The link {link.target!r} in {path} (line {link.element.lines[0]}) could not be updated to {wanted}; "
                "mend it by hand."
            )
        else:
            edits.append(edit)
    return TextEdits(edits)


def _new_path(
    move: _Move, link: Link, document: MarkdownDocument, source: str, wanted: str, *, from_root: bool
) -> TextEdit | None:
    for choice in path_choices(link, source, wanted, from_root=from_root):
        if move.after.resolve(source, link.kind.value, choice).path == wanted:
            edit = path_edit(link, choice, document.source)
            if edit is not None:
                return edit
    return None


def _meant(names: LinkNames, source: str, link: Link) -> str | None:
    """The file or folder that a link of a document means; None for none, several, URLs and the document itself."""
    if link.is_url or not link.path:
        return None
    return names.resolve(source, link.kind.value, unicodedata.normalize("NFC", link.path)).path


def _is_from_root(link: Link, source: str, meant: str) -> bool:
    """Whether a link's path is taken from the root, and not from its document's folder."""
    path = unicodedata.normalize("NFC", link.path).rstrip("/")
    return _beside(link, source) != meant and posixpath.normpath(path) == meant


def _beside(link: Link, source: str) -> str | None:
    """Where a link's path leads from its document's folder; None for what is never taken from there alone."""
    if link.is_wiki or link.path.startswith("/"):
        return None
    path = unicodedata.normalize("NFC", link.path).rstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
