"""Walking the tree: every file that may be listed, or the states of the documents alone.

Written for speed, because a reconcile of many thousand unchanged files is little more than this: entries are plain
tuples, excluded folders are not entered, and nothing is computed for a name that its folder has already decided.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from local_vector_search_mcp.errors import InvalidPath
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import TEMPORARY_PREFIX, FileEntry, FileKind, FileState, Skipped
from local_vector_search_mcp.workspace.folders import Folder, LinkRefused
from local_vector_search_mcp.workspace.guard import WorkspaceGuard
from local_vector_search_mcp.workspace.ignore import IgnoreCache, IgnoreFile
from local_vector_search_mcp.workspace.listing import Selection, ignored_by
from local_vector_search_mcp.workspace.os_errors import is_absent

# Each level holds a descriptor while those below it are read.
_MAX_DEPTH = 128
# Names that need the full look of RelPath: control characters, separators of other systems, percent signs, drives.
_ODD_NAME = re.compile(r"[\x00-\x1f\x7f\\%:]")


@dataclass(slots=True, kw_only=True)
class TreeScan:
    """The documents that one walk found, and what it could not look into."""

    documents: dict[str, FileState] = field(default_factory=dict[str, FileState])
    # Folders that could not be read ("" is the root): what they held is unknown, not gone.
    unreadable: list[Skipped] = field(default_factory=list[Skipped])
    # Files and folders with names that no path can address, links, and second spellings of one name.
    skipped: list[Skipped] = field(default_factory=list[Skipped])


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkResult:
    """The files that one walk found, in no particular order, and what it could not look into."""

    files: tuple[FileEntry, ...]
    unreadable: tuple[Skipped, ...]
    skipped: tuple[Skipped, ...]


_Found = Callable[[str, str, "os.DirEntry[str]"], None]


class Walker:
    """Walks one workspace by its rules."""

    def __init__(self, guard: WorkspaceGuard, selection: Selection, ignores: IgnoreCache) -> None:
        self._guard = guard
        self._selection = selection
        self._ignores = ignores

    def scan_documents(self) -> TreeScan:
        """The state of every document that the rules select.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        scan = TreeScan()
        documents = scan.documents
        includes = self._selection.includes
        is_document_name = self._selection.is_document_name

        def found(path: str, name: str, entry: "os.DirEntry[str]") -> None:
            if includes(path, name) and is_document_name(name):
                status = entry.stat(follow_symlinks=False)
                documents[path] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

        self._walk(scan, found, wants=lambda name: is_document_name(name), enters=self._selection.may_include_below)
        return scan

    def walk(self) -> WalkResult:
        """Every file that may be listed: documents that the rules select, and files of other kinds.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        scan = TreeScan()
        files: list[FileEntry] = []
        selection = self._selection

        def found(path: str, name: str, entry: "os.DirEntry[str]") -> None:
            kind = selection.kind_of(path)
            if kind is FileKind.MARKDOWN:
                if not selection.includes(path, name):
                    return
            elif selection.is_hidden(path, name):
                return
            status = entry.stat(follow_symlinks=False)
            files.append(entry_of(path, kind, status))

        self._walk(scan, found, wants=lambda _: True, enters=self._may_list_below)
        return WalkResult(files=tuple(files), unreadable=tuple(scan.unreadable), skipped=tuple(scan.skipped))

    def _may_list_below(self, folder: str) -> bool:
        hidden = folder.startswith(".") or "/." in folder
        return not hidden or self._selection.may_include_below(folder)

    def _walk(
        self, scan: TreeScan, found: _Found, *, wants: Callable[[str], bool], enters: Callable[[str], bool]
    ) -> None:
        with self._guard.open_root() as root:
            try:
                self._walk_folder(_Step(scan, found, wants, enters), root, "", (), 0)
            except OSError as error:
                scan.unreadable.append(Skipped("", _why(error)))

    def _walk_folder(
        self, step: "_Step", folder: Folder, prefix: str, ignores: "tuple[tuple[str, IgnoreFile], ...]", depth: int
    ) -> None:
        entries = folder.scan()
        here = prefix.rstrip("/")
        if self._selection.rules.respect_gitignore:
            ignores = self._with_ignores_of(here, entries, ignores)
        own = self._guard.is_own if self._guard.holds_own(RelPath(here).folded if here else "") else None
        selection = self._selection
        scan = step.scan
        for name, entry in self._usable(scan, prefix, entries):
            path = prefix + name
            if entry.is_dir(follow_symlinks=False):
                if (
                    selection.excludes_folder(path, name)
                    or not step.enters(path)
                    or (own is not None and own(RelPath(path).folded))
                    or (ignores and ignored_by(ignores, path, folder=True) is not None)
                ):
                    continue
                self._enter(step, folder, entry, path, ignores, depth + 1)
            elif step.wants(name) and not selection.excludes_file(path, name):
                if own is not None and own(RelPath(path).folded):
                    continue
                if ignores and ignored_by(ignores, path, folder=False) is not None:
                    continue
                if not entry.is_file(follow_symlinks=False):
                    if entry.is_symlink():
                        scan.skipped.append(Skipped(path, "it is a link, which is never followed"))
                    continue
                try:
                    step.found(path, name, entry)
                except FileNotFoundError:
                    # It went between the listing and the look at it.
                    continue

    def _enter(
        self,
        step: "_Step",
        folder: Folder,
        entry: "os.DirEntry[str]",
        path: str,
        ignores: "tuple[tuple[str, IgnoreFile], ...]",
        depth: int,
    ) -> None:
        if depth > _MAX_DEPTH:
            step.scan.unreadable.append(Skipped(path, f"it lies more than {_MAX_DEPTH} folders deep"))
            return
        try:
            with folder.folder(entry.name) as below:
                self._walk_folder(step, below, path + "/", ignores, depth)
        except LinkRefused:
            step.scan.skipped.append(Skipped(path, "it is a link, which is never followed"))
        except OSError as error:
            if not is_absent(error):
                step.scan.unreadable.append(Skipped(path, _why(error)))

    def _with_ignores_of(
        self, here: str, entries: "list[os.DirEntry[str]]", ignores: "tuple[tuple[str, IgnoreFile], ...]"
    ) -> "tuple[tuple[str, IgnoreFile], ...]":
        for entry in entries:
            if entry.name == ".gitignore" and entry.is_file(follow_symlinks=False):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    return ignores
                state = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
                rules = self._ignores.get(here, state)
                return ignores if rules is None else (*ignores, (here, rules))
        return ignores

    def _usable(
        self, scan: TreeScan, prefix: str, entries: "list[os.DirEntry[str]]"
    ) -> "Iterator[tuple[str, os.DirEntry[str]]]":
        """Entries with their names in NFC; those that no path can mean are reported."""
        taken: dict[str, os.DirEntry[str]] | None = None
        for entry in entries:
            name = entry.name
            if name.isascii():
                if name.startswith("."):
                    if name.startswith(TEMPORARY_PREFIX) or name.lower() == ".git":
                        continue
                elif _ODD_NAME.search(name) is not None and not _is_addressable(scan, prefix, name):
                    continue
                yield name, entry
                continue
            if taken is None:
                taken = _by_composed_name(entries)
            composed = _composed(name)
            if composed is None or not _is_addressable(scan, prefix, composed):
                if composed is None:
                    scan.skipped.append(Skipped(_shown(prefix + name), "its name is not valid Unicode"))
                continue
            if taken[composed] is not entry:
                scan.skipped.append(Skipped(prefix + composed, "another spelling of the same name stands beside it"))
                continue
            yield composed, entry


@dataclass(frozen=True, slots=True)
class _Step:
    """What is the same for all folders of one walk."""

    scan: TreeScan
    found: _Found
    wants: Callable[[str], bool]
    enters: Callable[[str], bool]


def entry_of(path: str, kind: FileKind, status: os.stat_result) -> FileEntry:
    """A file entry from a stat result."""
    return FileEntry(
        path=RelPath(path),
        kind=kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        inode=status.st_ino,
    )


def _by_composed_name(entries: "list[os.DirEntry[str]]") -> "dict[str, os.DirEntry[str]]":
    """For each name in NFC the entry that a path means: the one spelled so, else the first."""
    taken: dict[str, os.DirEntry[str]] = {}
    for entry in sorted(entries, key=lambda each: each.name):
        composed = _composed(entry.name)
        if composed is not None and (composed == entry.name or composed not in taken):
            taken[composed] = entry
    return taken


def _composed(name: str) -> str | None:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return None
    return unicodedata.normalize("NFC", name)


def _is_addressable(scan: TreeScan, prefix: str, name: str) -> bool:
    try:
        RelPath.parse(prefix + name)
    except InvalidPath:
        scan.skipped.append(Skipped(_shown(prefix + name), "its name cannot be written as a path"))
        return False
    return True


def _shown(text: str) -> str:
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8").encode("unicode_escape").decode("ascii")


def _why(error: OSError) -> str:
    return f"it cannot be read: {(error.strerror or 'the system reported an error').lower()}"
