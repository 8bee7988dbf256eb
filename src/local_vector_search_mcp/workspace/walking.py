"""Walking the tree: every file that may be listed, or the states of the documents alone.

Written for speed, because a reconcile of many thousand unchanged files is little more than this: entries are plain
tuples, excluded folders are not entered, and nothing is computed for a name that its folder has already decided.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from local_vector_search_mcp.errors import InvalidPath
from local_vector_search_mcp.relpath import MAX_FOLDERS, RelPath
from local_vector_search_mcp.workspace.entries import TEMPORARY_PREFIX, FileEntry, FileKind, FileState, Skipped
from local_vector_search_mcp.workspace.folders import Folder, LinkRefused
from local_vector_search_mcp.workspace.guard import WorkspaceGuard
from local_vector_search_mcp.workspace.ignore import IgnoreCache, IgnoreFile
from local_vector_search_mcp.workspace.listing import Selection, ignored_by
from local_vector_search_mcp.workspace.os_errors import is_absent

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


class Walker:
    """Walks one workspace by its rules."""

    def __init__(self, guard: WorkspaceGuard, selection: Selection, ignores: IgnoreCache) -> None:
        self._guard = guard
        self._selection = selection
        self._ignores = ignores

    def scan_documents(self, below: str = "") -> TreeScan:
        """The state of every document that the rules select.

        Args:
            below: Only those in this folder; ``""`` is the root.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        scan = TreeScan()
        selection = self._selection

        def is_found(path: str, name: str, _: os.stat_result) -> bool:
            return selection.includes(path, name) and selection.is_document_name(name)

        self._walk(
            _Step(
                scan=scan,
                is_found=None if selection.endings_decide else is_found,
                endings=selection.document_endings,
                enters=selection.may_include_below,
                excludes_files=selection.may_exclude_files(selection.document_endings),
                only=below,
            )
        )
        return scan

    def walk(self, below: str = "") -> WalkResult:
        """Every file that may be listed: documents that the rules select, and files of other kinds.

        Args:
            below: Only those in this folder; ``""`` is the root.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        scan = TreeScan()
        files: list[FileEntry] = []
        selection = self._selection

        def is_found(path: str, name: str, status: os.stat_result) -> bool:
            kind = selection.kind_of(path)
            if kind is FileKind.MARKDOWN:
                listed = selection.includes(path, name)
            else:
                listed = not selection.is_hidden(path, name)
            if listed:
                files.append(entry_of(path, kind, status))
            return False

        enters = self._may_list_below
        self._walk(_Step(scan=scan, is_found=is_found, endings=("",), enters=enters, excludes_files=True, only=below))
        return WalkResult(files=tuple(files), unreadable=tuple(scan.unreadable), skipped=tuple(scan.skipped))

    def folders(self, below: str = "") -> Iterator[tuple[str, str]]:
        """The folders that a walk for documents or listable files enters, each before those in it.

        A folder is given before it is listed, so that whoever starts to watch it misses nothing. Those that cannot be
        read are left out.

        Args:
            below: Only this folder and those in it; ``""`` is the root.

        Yields:
            The path in NFC, and the path as it is spelled on disk; ``""`` is the root.
        """
        with self._guard.open_root() as root:
            step = _Step(scan=TreeScan(), is_found=None, endings=(), enters=self._may_list_below, excludes_files=False)
            yield from self._folders(step, root, "", "", (), below.split("/") if below else [])

    def _folders(
        self,
        step: "_Step",
        folder: Folder,
        path: str,
        disk_path: str,
        ignores: "tuple[tuple[str, IgnoreFile], ...]",
        wanted: "list[str]",
    ) -> Iterator[tuple[str, str]]:
        if not wanted:
            yield path, disk_path
        prefix, disk_prefix = (f"{path}/", f"{disk_path}/") if path else ("", "")
        entries = folder.scan()
        names = [entry.name for entry in entries]
        if self._selection.rules.respect_gitignore and ".gitignore" in names:
            ignores = self._with_ignores_of(path, entries[names.index(".gitignore")], ignores)
        names, entries = self._addressable(step.scan, prefix, entries)
        for name, entry in zip(names, entries, strict=True):
            if wanted and name != wanted[0]:
                continue
            below = prefix + name
            if (
                entry.is_dir(follow_symlinks=False)
                and self._is_entered(step, below, name, ignores)
                and not self._guard.is_own(RelPath(below).folded)
                and below.count("/") < MAX_FOLDERS
            ):
                with suppress(OSError), folder.folder(entry.name) as opened:
                    yield from self._folders(step, opened, below, disk_prefix + entry.name, ignores, wanted[1:])

    def remove_leftovers(self) -> int:
        """Remove the temporary files that dead processes left in folders which are not excluded.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        removed = 0

        def look_through(folder: Folder, prefix: str, depth: int) -> None:
            nonlocal removed
            for entry in folder.scan():
                path = prefix + entry.name
                if entry.name.startswith(TEMPORARY_PREFIX) and entry.is_file(follow_symlinks=False):
                    if not _is_alive(entry.name):
                        with suppress(OSError):
                            folder.remove(entry.name)
                            removed += 1
                elif (
                    entry.is_dir(follow_symlinks=False)
                    and depth < MAX_FOLDERS
                    and entry.name.lower() != ".git"
                    and not self._selection.excludes_folder(path, entry.name)
                ):
                    with suppress(OSError), folder.folder(entry.name) as below:
                        look_through(below, path + "/", depth + 1)

        with self._guard.open_root() as root:
            look_through(root, "", 0)
        return removed

    def _may_list_below(self, folder: str) -> bool:
        hidden = folder.startswith(".") or "/." in folder
        return not hidden or self._selection.may_include_below(folder)

    def _walk(self, step: "_Step") -> None:
        with self._guard.open_root() as root:
            try:
                self._walk_folder(step, root, "", (), 0)
            except OSError as error:
                step.scan.unreadable.append(Skipped("", _why(error)))

    def _walk_folder(
        self, step: "_Step", folder: Folder, prefix: str, ignores: "tuple[tuple[str, IgnoreFile], ...]", depth: int
    ) -> None:
        entries = folder.scan()
        here = prefix.rstrip("/")
        names = [entry.name for entry in entries]
        if self._selection.rules.respect_gitignore and ".gitignore" in names:
            ignores = self._with_ignores_of(here, entries[names.index(".gitignore")], ignores)
        own = self._guard.is_own if self._guard.holds_own(RelPath(here).folded if here else "") else None
        # One look at all names together spares one at each.
        joined = "/".join(names)
        if not joined.isascii() or _ODD_NAME.search(joined) is not None:
            names, entries = self._addressable(step.scan, prefix, entries)
        documents, endings, is_found = step.scan.documents, step.endings, step.is_found
        if step.is_on_the_way(here):
            endings = ()
        spoken_of = self._that_speak_of(ignores, here, names, endings)
        checked = step.excludes_files or own is not None or bool(spoken_of)
        for name, entry in zip(names, entries, strict=True):
            if name.endswith(endings) and entry.is_file(follow_symlinks=False):
                path = prefix + name
                if name.startswith(TEMPORARY_PREFIX) or (checked and self._is_kept_out(path, name, spoken_of, own)):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    # It went between the listing and the look at it.
                    continue
                if is_found is None or is_found(path, name, status):
                    documents[path] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            elif entry.is_dir(follow_symlinks=False):
                path = prefix + name
                if self._is_entered(step, path, name, ignores) and not (own and own(RelPath(path).folded)):
                    self._enter(step, folder, entry, path, ignores, depth + 1)
            elif entry.is_symlink() and name.endswith(endings):
                step.scan.skipped.append(Skipped(prefix + name, "it is a link, which is never followed"))

    def _that_speak_of(
        self, ignores: "tuple[tuple[str, IgnoreFile], ...]", here: str, names: list[str], endings: tuple[str, ...]
    ) -> "tuple[tuple[str, IgnoreFile], ...]":
        """Those ignore files that may say something about the files of a folder."""
        if not ignores:
            return ()
        asked = [name for name in names if name.endswith(endings)]
        return tuple(
            (place, rules)
            for place, rules in ignores
            if rules.may_speak_of(here[len(place) + 1 :] if place else here, asked)
        )

    def _is_kept_out(
        self,
        path: str,
        name: str,
        ignores: "tuple[tuple[str, IgnoreFile], ...]",
        own: Callable[[str], bool] | None,
    ) -> bool:
        return (
            self._selection.excludes_file(path, name)
            or (own is not None and own(RelPath(path).folded))
            or bool(ignores and ignored_by(ignores, path, folder=False) is not None)
        )

    def _is_entered(self, step: "_Step", path: str, name: str, ignores: "tuple[tuple[str, IgnoreFile], ...]") -> bool:
        return not (
            name.lower() == ".git"
            or not step.leads_on(path)
            or self._selection.excludes_folder(path, name)
            or not step.enters(path)
            or (ignores and ignored_by(ignores, path, folder=True) is not None)
        )

    def _enter(
        self,
        step: "_Step",
        folder: Folder,
        entry: "os.DirEntry[str]",
        path: str,
        ignores: "tuple[tuple[str, IgnoreFile], ...]",
        depth: int,
    ) -> None:
        if depth > MAX_FOLDERS:
            step.scan.unreadable.append(Skipped(path, f"it lies more than {MAX_FOLDERS} folders deep"))
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
        self, here: str, entry: "os.DirEntry[str]", ignores: "tuple[tuple[str, IgnoreFile], ...]"
    ) -> "tuple[tuple[str, IgnoreFile], ...]":
        if not entry.is_file(follow_symlinks=False):
            return ignores
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return ignores
        state = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        rules = self._ignores.get(here, state)
        return ignores if rules is None else (*ignores, (here, rules))

    def _addressable(
        self, scan: TreeScan, prefix: str, entries: "list[os.DirEntry[str]]"
    ) -> "tuple[list[str], list[os.DirEntry[str]]]":
        """Entries with their names in NFC, without those that no path can mean, which are reported."""
        meant = _by_composed_name(entries)
        names: list[str] = []
        kept: list[os.DirEntry[str]] = []
        for entry in entries:
            composed = _composed(entry.name)
            if composed is None:
                scan.skipped.append(Skipped(_shown(prefix + entry.name), "its name is not valid Unicode"))
            elif meant[composed] is not entry:
                scan.skipped.append(Skipped(prefix + composed, "another spelling of the same name stands beside it"))
            elif _is_addressable(scan, prefix, composed):
                names.append(composed)
                kept.append(entry)
        return names, kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What is the same for all folders of one walk."""

    scan: TreeScan
    # Whether a regular file, by path, name and status, is a document; None where its ending has decided that.
    is_found: Callable[[str, str, os.stat_result], bool] | None
    endings: tuple[str, ...]  # Only files whose names end so are looked at.
    enters: Callable[[str], bool]
    excludes_files: bool  # Whether some exclude pattern can fit a file with such an ending.
    only: str = ""  # The one folder that is wanted; those on the way to it are entered, and nothing is found there.

    def is_on_the_way(self, folder: str) -> bool:
        """Whether a folder (``""`` is the root) only leads to the one that is wanted."""
        return self.only.startswith(f"{folder}/" if folder else "") and self.only != folder

    def leads_on(self, folder: str) -> bool:
        """Whether a folder is the one that is wanted, lies in it, or leads to it."""
        if not self.only or folder == self.only:
            return True
        return folder.startswith(f"{self.only}/") or self.only.startswith(f"{folder}/")


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


def _is_alive(temporary: str) -> bool:
    """Whether another process that still runs made a temporary file."""
    digits = temporary.removeprefix(TEMPORARY_PREFIX).partition("-")[0]
    if not digits.isdigit() or int(digits) == os.getpid() or os.name != "posix":
        return False
    try:
        os.kill(int(digits), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


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
    if name.casefold() == ".git":
        return False
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
