"""Link updates: which links on disk lead to given files, and what must be written where files move.

The files decide, never the index, which may be behind: every document that can hold such a link is read.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from local_vector_search_mcp.editing.link_edits import path_choices, path_edit
from local_vector_search_mcp.editing.patcher import rewrite
from local_vector_search_mcp.editing.text_edits import TextEdit, TextEdits
from local_vector_search_mcp.errors import InvalidPath, IoFailure, NotFound, TooLarge, UnsupportedEncoding
from local_vector_search_mcp.index.link_names import LinkNames, fold_name
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.markdown.frontmatter import read_metadata
from local_vector_search_mcp.markdown.links import Link, extract_links
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileSnapshot
from local_vector_search_mcp.workspace.files import Workspace

_RUN = re.compile(r"[a-z0-9]+")
# Letters and digits written as escapes, which nobody does and a link may still hold.
_ODD_ESCAPES = re.compile(rb"&#|%(?:3[0-9]|[46][1-9a-f]|[57][0-9a])")


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


@dataclass(slots=True, kw_only=True)
class _Tree:
    """Every file of the workspace by path, and the documents' aliases."""

    documents: set[str]
    others: set[str]
    folders: set[str]
    aliases: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def names(self, moves: Mapping[str, str]) -> LinkNames:
        """The names that links can mean once files have moved."""
        documents = {moves.get(path, path) for path in self.documents}
        others = {moves.get(path, path) for path in self.others}
        folders = self.folders | _folders([*documents, *others]) if moves else self.folders
        return LinkNames(
            documents,
            [(moves.get(path, path), alias) for path, alias in self.aliases],
            exists=lambda path: path in others or path in folders or not path,
            other_files=lambda: others,
        )


def plan_link_updates(
    workspace: Workspace, moves: Mapping[RelPath, RelPath], *, folder: tuple[RelPath, RelPath] | None = None
) -> LinkUpdates:
    """What must be written so that every link that led to a moved file, or stands in one, leads where it led.

    Args:
        workspace: The files, as they are before the move.
        moves: Documents and images with their new paths.
        folder: The folder that moves as a whole, with its new path; links to it follow.

    Raises:
        IoFailure: The root cannot be read.
        StructureChanged: A new destination would change how a document is read.
    """
    names = {old.value: new.value for old, new in moves.items()}
    mentioned = [old.name for old in moves] if folder is None else [folder[0].name]
    reader = _Reader(workspace, mentioned, first=set(names))
    candidates = reader.candidates()
    tree = reader.tree
    before, after = tree.names({}), tree.names(names)
    updates = LinkUpdates(warnings=reader.warnings)
    prefixes = (f"{folder[0]}/", f"{folder[1]}/") if folder is not None else None
    move = _Move(names, prefixes, before, after)
    for path, snapshot, document in candidates:
        edits = _document_edits(move, path, document, updates.warnings)
        if len(edits):
            outcome = rewrite(document, edits)
            updates.documents[path] = UpdatedDocument(snapshot=snapshot, data=outcome.source, count=len(edits))
    return updates


def incoming_links(workspace: Workspace, targets: Iterable[RelPath], *, most: int) -> tuple[IncomingLink, ...]:
    """The links of other documents that lead to given files, by path, then in document order.

    Args:
        workspace: The files.
        targets: Files that exist.
        most: No more links than this.

    Raises:
        IoFailure: The root cannot be read.
    """
    wanted = {target.value for target in targets}
    reader = _Reader(workspace, [RelPath(path).name for path in wanted], first=wanted)
    candidates = sorted(reader.candidates(), key=lambda each: each[0])
    names = reader.tree.names({})
    found: list[IncomingLink] = []
    for path, _, document in candidates:
        if path in wanted:
            continue
        for link in extract_links(document):
            if _meant(names, path, link) in wanted:
                found.append(IncomingLink(path=path, pointer=link.element.pointer, target=link.target))
                if len(found) == most:
                    return tuple(found)
    return tuple(found)


class _Reader:
    """Reads every document once: for the aliases of all, and for the text of those that may hold a link."""

    def __init__(self, workspace: Workspace, mentioned: Iterable[str], *, first: set[str]) -> None:
        self._workspace = workspace
        self._mentioned = list(mentioned)
        self._first = first
        self.warnings: list[str] = []
        documents = set(workspace.scan_documents().documents)
        others = {entry.path.value for entry in workspace.walk().files} - documents
        self.tree = _Tree(documents=documents, others=others, folders=_folders([*documents, *others]))

    def candidates(self) -> list[tuple[str, FileSnapshot, MarkdownDocument]]:
        """The documents that may hold a link that matters; only after the last of them are all aliases known."""
        tokens = [_token(name) for name in self._mentioned]
        found: list[tuple[str, FileSnapshot, MarkdownDocument]] = []
        # Those that are linked to come first, as links may name them by their aliases.
        for path in sorted(self.tree.documents, key=lambda path: (path not in self._first, path)):
            try:
                # The walk has just applied the rules, so that only the bytes are wanted.
                snapshot = self._workspace.read(RelPath(path), max_bytes=self._workspace.rules.max_file_bytes)
                aliases = _aliases(snapshot.data)
                self.tree.aliases += [(path, alias) for alias in aliases]
                if path in self._first:
                    tokens += [_token(alias) for alias in aliases]
                if path in self._first or _may_mention(snapshot.data, tokens):
                    found.append((path, snapshot, parse_bytes(snapshot.data)))
            except NotFound:
                # Gone since the walk.
                continue
            except (UnsupportedEncoding, TooLarge, InvalidPath, IoFailure) as error:
                self.warnings.append(f"Links in {path} were not looked at: {error.message}")
        return found


@dataclass(frozen=True, slots=True)
class _Move:
    """Where files go, and what names mean before and after."""

    names: Mapping[str, str]
    folder: tuple[str, str] | None
    before: LinkNames
    after: LinkNames

    def new_place(self, path: str) -> str:
        """Where a file or folder stands afterwards."""
        if path in self.names:
            return self.names[path]
        if self.folder is not None and f"{path}/".startswith(self.folder[0]):
            # Only folders themselves come here; files of a moved folder that stay are not followed.
            return (self.folder[1] + f"{path}/"[len(self.folder[0]) :]).rstrip("/")
        return path


def _document_edits(move: _Move, path: str, document: MarkdownDocument, warnings: list[str]) -> TextEdits:
    source = move.names.get(path, path)
    edits: list[TextEdit] = []
    for link in extract_links(document):
        meant = _meant(move.before, path, link)
        if meant is None:
            continue
        wanted = move.new_place(meant)
        if _meant(move.after, source, link) == wanted:
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
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    return beside != meant and posixpath.normpath(path) == meant


def _aliases(data: bytes) -> list[str]:
    head = data[:5].removeprefix(b"\xef\xbb\xbf")
    if not head.startswith((b"--", b"++")) or b"alias" not in data[:65_536]:
        return []
    return [fold_name(alias) for alias in read_metadata(parse_bytes(data)).aliases]


def _folders(paths: Iterable[str]) -> set[str]:
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def _token(name: str) -> bytes | None:
    """The longest part of a name that a link to it writes as it is; None where there is none."""
    stem = name.rpartition(".")[0] or name
    runs: list[str] = _RUN.findall(stem.casefold())
    return max(runs, key=len).encode("ascii") if runs else None


def _may_mention(data: bytes, tokens: Iterable[bytes | None]) -> bool:
    lowered = data.lower()
    return any(token is None or token in lowered for token in tokens) or _ODD_ESCAPES.search(lowered) is not None
