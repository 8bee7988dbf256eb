"""Workspace: the façade through which other packages read and change the files of one root.

A change is made by name inside an open folder, checked once more in the last moment, and either happens whole or not
at all. Who calls these methods holds the workspace lock (``locks.py``) and has recorded the change (``history``).
"""

import errno
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import AlreadyExists, InvalidPath, IoFailure, NotFound, UnsupportedFormat
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.atomic_write import (
    changed,
    expect,
    move_expected,
    read_fully,
    refuse_shared,
    rename_case,
    replace_expected,
    take_out_expected,
    temporary_file,
    with_retries,
)
from local_vector_search_mcp.workspace.document_rules import DocumentRules
from local_vector_search_mcp.workspace.entries import FileEntry, FileIdentity, FileKind, FileSnapshot
from local_vector_search_mcp.workspace.folders import LinkRefused
from local_vector_search_mcp.workspace.guard import OwnPaths, Place, WorkspaceGuard, link_refused, status_of
from local_vector_search_mcp.workspace.late_writes import LateWrites
from local_vector_search_mcp.workspace.listing import Selection, SelectionRules, nfc
from local_vector_search_mcp.workspace.near_paths import near_paths
from local_vector_search_mcp.workspace.neighbours import NeighbourReader
from local_vector_search_mcp.workspace.new_names import check_free
from local_vector_search_mcp.workspace.os_errors import as_failure
from local_vector_search_mcp.workspace.reading import FileReader, open_place
from local_vector_search_mcp.workspace.walking import TreeScan, Walker, WalkResult, entry_of

_OPEN_FILES_MAY_GO = os.name != "nt"
_NEW_FILE_MODE = 0o666  # Before the process's mask, as for any file a program makes.


class Workspace:
    """The files of one root, under the rules of the configuration.

    Raises:
        IoFailure: The root cannot be opened.
        InvalidArgument: A glob of the rules is malformed.
    """

    def __init__(self, root: Path, rules: SelectionRules | None = None, *, own: OwnPaths | None = None) -> None:
        self.rules = rules or SelectionRules()
        self.guard = WorkspaceGuard(root, own)
        self.root = self.guard.root
        self.selection = Selection(self.rules)
        self.late_writes = LateWrites()
        self._reader = FileReader(self.guard)
        self._documents = DocumentRules(self.guard, self.selection, self._reader)
        self._walker = Walker(self.guard, self.selection, self._documents.ignores)

    # -- paths and rules

    def parse(self, text: str, *, directory: bool = False) -> RelPath:
        """Check a path given by a caller; an absolute one under the root is told its relative form.

        Raises:
            InvalidPath: It is no root-relative path.
        """
        return self.guard.parse(text, directory=directory)

    def parse_prefix(self, text: str | None) -> str:
        """Check the prefix of a list; empty for everything, an absolute one is told its relative form.

        Raises:
            InvalidPath: No path can begin so.
        """
        return self.guard.parse_prefix(text)

    def parse_new(self, text: str) -> RelPath:
        """As ``parse``, for the path of a file that is to be made.

        Raises:
            InvalidPath: As ``parse``, or some systems could not hold the name.
        """
        return self.guard.parse_new(text)

    def why_excluded(self, path: RelPath) -> str | None:
        """The rule that keeps a path from being a document, in words; None where it is one or could be."""
        return self._documents.why_excluded(path)

    def is_document(self, path: RelPath) -> bool:
        """Whether the rules make a path a document; says nothing about whether there is such a file."""
        return self._documents.is_document(path)

    def kind_of(self, path: RelPath) -> FileKind:
        """The kind of a file by its name."""
        return self.selection.kind_of(path.value)

    def check_document(self, path: RelPath) -> None:
        """Refuse a path that no Markdown tool takes.

        Raises:
            InvalidPath: No tool may touch it.
            UnsupportedFormat: Its name is not that of a Markdown file.
            NotFound: The rules keep it out; the message names the rule.
        """
        self._documents.check_document(path)

    def check_visible(self, path: RelPath) -> None:
        """Refuse a path that may be neither listed nor downloaded.

        Raises:
            InvalidPath: No tool may touch it.
            NotFound: A Markdown file that the rules keep out, or a name with a dot that no include pattern selects.
        """
        self._documents.check_visible(path)

    def check_new(self, path: RelPath, *, replacing: RelPath | None = None) -> None:
        """Refuse a path for a new file if the name is taken, also in another case or Unicode form.

        Args:
            path: Where the file is to stand.
            replacing: The file that is to be renamed to ``path``; it may differ from it in case only.

        Raises:
            InvalidPath: No tool may touch it, or it passes through a link.
            NotFound: The rules keep a Markdown name out.
            AlreadyExists: The name is taken.
        """
        self.guard.check(path)
        if self.selection.is_document_name(path.name):
            self.check_document(path)
        check_free(self.guard, path, replacing=replacing)

    # -- reading

    def read(self, path: RelPath, *, max_bytes: int | None = None) -> FileSnapshot:
        """All bytes of a regular file, whatever the selection rules say.

        Raises:
            InvalidPath: No tool may touch it, it passes through a link, or it is no regular file.
            NotFound: There is none; the message names near paths.
            TooLarge: It has more than ``max_bytes``.
            IoFailure: The system does not let it be read.
        """
        try:
            return self._reader.read(path, max_bytes=max_bytes)
        except NotFound as error:
            raise self.not_found(path) from error

    def read_present(self, path: RelPath, *, max_bytes: int | None = None) -> FileSnapshot:
        """As ``read``, for a path that was there a moment ago: if it has gone since, no near paths are looked for.

        Raises:
            InvalidPath, NotFound, TooLarge, IoFailure: As ``read``.
        """
        return self._reader.read(path, max_bytes=max_bytes)

    def neighbours(self) -> NeighbourReader:
        """Reads many files one after the other, as ``read_present`` does and in less time where they are neighbours."""
        return NeighbourReader(self.guard, self._reader)

    def read_document(self, path: RelPath) -> FileSnapshot:
        """The bytes of a document that the rules select.

        Raises:
            NotFound, UnsupportedFormat: As ``check_document``.
            InvalidPath, NotFound, TooLarge, IoFailure: As ``read``; the limit is ``max_file_bytes``.
        """
        self.check_document(path)
        return self.read(path, max_bytes=self.rules.max_file_bytes)

    @contextmanager
    def open(self, path: RelPath) -> Generator[tuple[int, FileIdentity]]:
        """A regular file open for reading, as a descriptor and its identity.

        Raises:
            InvalidPath, NotFound, IoFailure: As ``read``, without near paths.
        """
        with self._reader.open(path) as opened:
            yield opened

    def stat(self, path: RelPath) -> FileEntry | None:
        """What a path stands for now, whatever the selection rules say; None where there is no regular file.

        Raises:
            InvalidPath: No tool may touch it, or it passes through a link.
            IoFailure: A folder on the way cannot be read.
        """
        status = self._reader.status(path)
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        return entry_of(path.value, self.kind_of(path), status)

    def identity(self, path: RelPath) -> FileIdentity | None:
        """The identity of a regular file now, or None.

        Raises:
            InvalidPath, IoFailure: As ``stat``.
        """
        return self._reader.identity(path)

    def exists(self, path: RelPath) -> bool:
        """Whether there is a file or folder.

        Raises:
            InvalidPath, IoFailure: As ``stat``.
        """
        return self._reader.status(path) is not None

    def is_folder(self, path: RelPath) -> bool:
        """Whether there is a folder.

        Raises:
            InvalidPath, IoFailure: As ``stat``.
        """
        status = self._reader.status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    # -- walking

    def walk(self, below: str = "") -> WalkResult:
        """Every file that may be listed, or those in one folder, in no particular order, and what could not be read.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        return self._walker.walk(below)

    def visible_file(self, path: RelPath) -> FileEntry | None:
        """A regular file that a walk would list, or None.

        Raises:
            IoFailure: A folder on the way cannot be read.
        """
        try:
            self.check_visible(path)
            entry = self.stat(path)
        except (InvalidPath, NotFound, UnsupportedFormat):
            return None
        if entry is None or self.is_in_excluded_folder(path.value) or self._documents.ignored(path) is not None:
            return None
        return entry

    def scan_documents(self, below: str = "") -> TreeScan:
        """The state of every document by path, or of those in one folder: the leanest walk, for reconciling.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        return self._walker.scan_documents(below)

    def folders(self, below: str = "") -> Iterator[tuple[str, str]]:
        """The folders that walks enter, in NFC and as spelled on disk; each is given before it is listed.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        return self._walker.folders(below)

    def is_in_excluded_folder(self, path: str) -> bool:
        """Whether an exclude pattern covers a folder, or one above it, or what else stands at a path."""
        parts = path.split("/")
        return any(
            self.selection.excludes_folder("/".join(parts[: depth + 1]), part) for depth, part in enumerate(parts)
        )

    def near(self, path: RelPath, known: Iterable[str] | None = None) -> tuple[str, ...]:
        """Up to three paths near to one that does not exist; among ``known``, else among the files of the workspace."""
        if known is None:
            known = (entry.path.value for entry in self.walk().files)
        return near_paths(path.value, known)

    def not_found(self, path: RelPath, known: Iterable[str] | None = None) -> NotFound:
        """The error for a path without a file; it names up to three near paths."""
        try:
            near = self.near(path, known)
        except IoFailure:
            near = ()
        hint = f" Did you mean {', '.join(near)}?" if near else " List the files to see what there is."
        return NotFound(f"There is no file {path}.{hint}", details={"nearPaths": list(near)} if near else None)

    # -- changing

    def swap(self, path: RelPath, data: bytes, expected: FileIdentity) -> FileIdentity:
        """Replace a file's bytes in one step, if it is still the one that was read; mode and owner stay.

        Raises:
            Conflict: It changed or went since (``source_changed``); its present version stays.
            InvalidPath: It is a hard link, or as ``read``.
            IoFailure, Busy: The system does not let it; nothing was changed.
        """
        with self._changing(path, "written"), self.guard.at(path) as place:
            if place.status is None:
                raise changed(place)
            expect(place, expected)
            refuse_shared(place)
            with self._kept_open(place, expected) as old:
                with temporary_file(place.folder, data, mode=0o600, like=old) as temporary:
                    replace_expected(place, temporary, expected)
                place.folder.flush()
            return FileIdentity.of(place.folder.stat(place.name))

    def create(self, path: RelPath, data: bytes, *, create_directories: bool = True) -> FileIdentity:
        """Make a new file; nothing is ever overwritten. Folders that were made go again if it fails.

        Raises:
            AlreadyExists: The name is taken.
            NotFound: Its folder does not exist and may not be made.
            InvalidPath, IoFailure, Busy: As ``swap``.
        """
        with self._changing(path, "written"), self._new_place(path, create_directories=create_directories) as place:
            if place.status is not None:
                raise AlreadyExists(f"{path} exists already; choose another path.")
            with temporary_file(place.folder, data, mode=_NEW_FILE_MODE) as temporary:
                with_retries(lambda: place.folder.rename(temporary, place.folder, place.name))
            place.folder.flush()
            return FileIdentity.of(place.folder.stat(place.name))

    def move(
        self, old: RelPath, new: RelPath, *, expected: FileIdentity | None = None, create_directories: bool = True
    ) -> FileIdentity:
        """Rename a file; nothing is ever overwritten. A name that differs in case only works on every system.

        Raises:
            Conflict: It is no longer the one that was read.
            NotFound: There is no file ``old``.
            AlreadyExists: The new name is taken by another file.
            InvalidPath, IoFailure, Busy: As ``swap``.
        """
        with self._changing(old, "moved"), self.guard.at(old) as source:
            if not stat.S_ISREG(source.found.st_mode):
                raise InvalidPath(f"{old} is no regular file.")
            if expected is not None:
                expect(source, expected)
            with self._new_place(new, create_directories=create_directories) as target:
                there = target.status or status_of(target.folder, new.name)
                if there is None:
                    move_expected(source, target, expected)
                elif os.path.samestat(there, source.found):
                    rename_case(source, target)
                else:
                    raise AlreadyExists(f"{new} exists already; choose another path.")
                target.folder.flush()
                source.folder.flush()
                return FileIdentity.of(target.folder.stat(new.name))

    def delete(self, path: RelPath, expected: FileIdentity) -> None:
        """Remove a file, if it is still the one that was read.

        Raises:
            Conflict: It changed or went since.
            InvalidPath, IoFailure, Busy: As ``swap``.
        """
        with self._changing(path, "deleted"), self.guard.at(path) as place:
            if place.status is None:
                raise changed(place)
            expect(place, expected)
            with self._kept_open(place, expected):
                take_out_expected(place, expected)
                place.folder.flush()

    def remove_empty_folders(self, folder: RelPath) -> None:
        """Remove a folder, and the folders in it, as far as they are empty; what holds anything stays.

        Raises:
            InvalidPath, IoFailure: As ``stat``.
        """
        with self._changing(folder, "removed"):
            self._remove_if_empty(folder)

    def remove_folder_if_empty(self, folder: RelPath) -> None:
        """Remove a folder that holds nothing at all, not even a folder; any other stays.

        Raises:
            InvalidPath, IoFailure: As ``stat``.
        """
        with self._changing(folder, "removed"):
            self._remove_folder(folder)

    def remove_leftovers(self) -> int:
        """Remove temporary files that a crash left behind, and nothing else. Hold the workspace lock.

        Gives how many there were.

        Raises:
            IoFailure: The root is gone or cannot be read.
        """
        return self._walker.remove_leftovers()

    def close(self) -> None:
        """Let go of all files that are still kept open."""
        self.late_writes.close()

    # -- helpers

    def _remove_if_empty(self, folder: RelPath) -> None:
        with self.guard.folder(folder) as opened:
            below = [entry.name for entry in opened.scan() if entry.is_dir(follow_symlinks=False)]
        for name in below:
            path = RelPath(f"{folder.value}/{nfc(name)}")
            if self.guard.refusal(path) is None:
                self._remove_if_empty(path)
        self._remove_folder(folder)

    def _remove_folder(self, folder: RelPath) -> None:
        with self.guard.at(folder) as place:
            try:
                place.folder.remove_folder(place.name)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise

    @contextmanager
    def _kept_open(self, place: Place, expected: FileIdentity) -> Generator[int | None]:
        """The file that is about to go, open; once it is gone it is watched for late writes.

        None on Windows, which lets no open file go.
        """
        if not _OPEN_FILES_MAY_GO:
            yield None
            return
        fd = open_place(place)
        try:
            content_hash = xxh64_hex(read_fully(fd))
            yield fd
        except BaseException:
            os.close(fd)
            raise
        self.late_writes.keep(place.path, fd, expected, content_hash)

    @contextmanager
    def _new_place(self, path: RelPath, *, create_directories: bool) -> Generator[Place]:
        if create_directories:
            with self.guard.at_new(path) as (place, _):
                yield place
        else:
            with self.guard.at(path) as place:
                yield place

    @contextmanager
    def _changing(self, path: RelPath, doing: str) -> Generator[None]:
        try:
            yield
        except LinkRefused as error:
            raise link_refused(path) from error
        except OSError as error:
            raise as_failure(error, str(path), doing=doing) from error
