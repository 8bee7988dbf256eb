"""WorkspaceGuard: from a root-relative path to the one place on disk that it may mean.

Nothing is followed: a symbolic link or junction in any segment below the root is refused, and so are ``.git``, the
server's own files and its temporary files. The root itself is resolved once, at the start, and may be a link.
"""

import os
import stat
import sys
import unicodedata
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from local_vector_search_mcp.errors import AlreadyExists, InvalidPath, IoFailure, NotFound
from local_vector_search_mcp.relpath import RelPath, parse_prefix
from local_vector_search_mcp.workspace.entries import TEMPORARY_PREFIX
from local_vector_search_mcp.workspace.folders import Folder, LinkRefused, is_link, open_folder
from local_vector_search_mcp.workspace.os_errors import as_failure, is_absent

# A database's side files: write-ahead log, shared memory, journal, lock, generations and copies set aside.
_SIDE_FILE_MARKS = ("-", ".")

_Parsed = TypeVar("_Parsed")

CASE_IS_KEPT_ONLY = sys.platform in ("darwin", "win32")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPaths:
    """The server's own places, as absolute paths; those outside the root are harmless here.

    A directory stands for all that is in it. A file stands for itself and for its side files: every name that is the
    file's name followed by ``-`` or ``.``, such as ``kb.db-wal`` and ``kb.db.lock``.
    """

    directories: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a path leads: an open folder and a name in it. Valid inside the ``with`` that gave it."""

    path: RelPath
    folder: Folder
    name: str  # As it is spelled on disk.
    status: os.stat_result | None  # None where there is nothing of that name.

    @property
    def found(self) -> os.stat_result:
        """The stat result of what is there.

        Raises:
            NotFound: Nothing is.
        """
        if self.status is None:
            raise NotFound(f"There is no file {self.path}.")
        return self.status


class WorkspaceGuard:
    """Turns a ``RelPath`` into a place below one root, or refuses.

    Raises:
        IoFailure: The root cannot be opened.
    """

    def __init__(self, root: Path, own: OwnPaths | None = None) -> None:
        self.given_root = root.absolute()
        try:
            self.root = root.resolve(strict=True)
        except OSError as error:
            raise IoFailure(f"The root {root} cannot be opened: {error.strerror}.") from error
        if not self.root.is_dir():
            raise IoFailure(f"The root {root} is no directory.")
        self._own = own or OwnPaths()
        self._own_directories = _relative_keys(self.root, self._own.directories)
        self._own_files = _relative_keys(self.root, self._own.files)

    def parse(self, text: str, *, directory: bool = False) -> RelPath:
        """Check a path given by a caller, as ``RelPath.parse`` does; an absolute one is told its relative form.

        Raises:
            InvalidPath: It is no root-relative path.
        """
        return self._explained(text, lambda: RelPath.parse(text, directory=directory))

    def parse_new(self, text: str) -> RelPath:
        """As ``parse``, for the path of a file that is to be made.

        Raises:
            InvalidPath: It is no root-relative path, or some systems could not hold the name.
        """
        return self._explained(text, lambda: RelPath.parse_new(text))

    def parse_prefix(self, text: str | None) -> str:
        """Check the prefix of a list, as ``relpath.parse_prefix`` does; an absolute one is told its relative form.

        Raises:
            InvalidPath: No path can begin so.
        """
        return self._explained(text or "", lambda: parse_prefix(text))

    def refusal(self, path: RelPath) -> str | None:
        """Why no tool may touch a path, judged by its text alone; None where one may."""
        for part in path.parts:
            folded = part.casefold()
            if folded == ".git":
                return "it leads into .git, which is never touched"
            if folded.startswith(TEMPORARY_PREFIX):
                return "it is a temporary file of this server"
        if self.is_own(path.folded):
            return "it belongs to this server's own files"
        return None

    def is_refused_name(self, name: str) -> bool:
        """Whether no tool may touch what bears a name, wherever it stands."""
        folded = name.casefold()
        return folded == ".git" or folded.startswith(TEMPORARY_PREFIX)

    def check(self, path: RelPath) -> None:
        """Refuse what no tool may touch.

        Raises:
            InvalidPath: The path leads there.
        """
        reason = self.refusal(path)
        if reason is not None:
            raise InvalidPath(f"The path {path} is refused: {reason}.")

    def is_own(self, folded: str) -> bool:
        """Whether a folded path (``RelPath.folded``) is one of the server's own files or lies in its folders."""
        if any(folded == own or folded.startswith(f"{own}/") for own in self._own_directories):
            return True
        return any(
            folded == own or (folded.startswith(own) and folded[len(own)] in _SIDE_FILE_MARKS)
            for own in self._own_files
        )

    def holds_own(self, folder: str) -> bool:
        """Whether some own file or folder stands directly in a folder, given by its folded path ("" is the root)."""
        return any(own.rpartition("/")[0] == folder for own in (*self._own_directories, *self._own_files))

    def is_own_file(self, status: os.stat_result) -> bool:
        """Whether a stat result is that of one of the server's own files, whatever its name."""
        for directory in self._own.directories:
            try:
                with os.scandir(directory) as entries:
                    if any(os.path.samestat(status, entry.stat(follow_symlinks=False)) for entry in entries):
                        return True
            except OSError:
                # What is not there, or closed to us, is not what was opened.
                continue
        for file in self._own.files:
            try:
                if os.path.samestat(status, file.lstat()):
                    return True
            except OSError:
                continue
        return False

    def open_root(self) -> Folder:
        """The root as an open folder.

        Raises:
            IoFailure: It is gone, or may not be read.
        """
        try:
            return open_folder(self.root)
        except OSError as error:
            raise IoFailure(f"The root {self.root} cannot be read: {(error.strerror or 'unknown').lower()}.") from error

    @contextmanager
    def at(self, path: RelPath) -> Generator[Place]:
        """The place of a file or folder, whether or not there is one yet.

        Raises:
            InvalidPath: The path leads through a link, or to what no tool may touch.
            NotFound: A folder on the way does not exist.
            IoFailure: A folder on the way, or the root, cannot be read.
        """
        self.check(path)
        *folders, name = path.parts
        with self._descend(path, folders) as folder:
            with _in_words(path):
                found = spelling(folder, name)
                status = None if found is None else status_of(folder, found)
            if status is not None and is_link(status):
                raise link_refused(path)
            yield Place(path=path, folder=folder, name=found or name, status=status)

    @contextmanager
    def at_new(self, path: RelPath) -> Generator[tuple[Place, list[str]]]:
        """The place of a new file, with the folders on the way made; and those that were made, outermost first.

        If the ``with`` is left by an error, the folders that were made are removed again.

        Raises:
            InvalidPath: As ``at``.
            AlreadyExists: A file stands where a folder is needed.
            IoFailure: A folder cannot be made or read.
        """
        self.check(path)
        made = self._make_folders(path)
        try:
            with self.at(path) as place:
                yield place, made
        except BaseException:
            self._remove_folders(made)
            raise

    @contextmanager
    def folder(self, path: RelPath | None) -> Generator[Folder]:
        """An existing folder, or the root for None.

        Raises:
            InvalidPath, NotFound, IoFailure: As ``at``.
        """
        with self.open_folder(path) as folder:
            yield folder

    def open_folder(self, path: RelPath | None) -> Folder:
        """As ``folder``; the caller closes it.

        Raises:
            InvalidPath, NotFound, IoFailure: As ``at``.
        """
        if path is None:
            return self.open_root()
        self.check(path)
        return self._opened(path, path.parts)

    @contextmanager
    def _descend(self, path: RelPath, names: Sequence[str]) -> Generator[Folder]:
        current = self._opened(path, names)
        try:
            yield current
        finally:
            current.close()

    def _opened(self, path: RelPath, names: Sequence[str]) -> Folder:
        current = self.open_root()
        try:
            for name in names:
                with _in_words(path):
                    found = spelling(current, name)
                    if found is None:
                        raise NotFound(f"There is no file {path}; its folder {name!r} does not exist.")
                    below = current.folder(found)
                current.close()
                current = below
        except BaseException:
            current.close()
            raise
        return current

    def _make_folders(self, path: RelPath) -> list[str]:
        made: list[str] = []
        names = path.parts[:-1]
        for depth, name in enumerate(names):
            with self._descend(path, names[:depth]) as folder:
                try:
                    found = spelling(folder, name)
                    if found is None:
                        folder.make_folder(name)
                        made.append("/".join(names[: depth + 1]))
                        folder.flush()
                    elif not stat.S_ISDIR(folder.stat(found).st_mode) and not is_link(folder.stat(found)):
                        raise AlreadyExists(f"{'/'.join(names[: depth + 1])} is a file, so {path} has no room in it.")
                except FileExistsError:
                    # Another process made it in this moment, which is as good.
                    continue
                except OSError as error:
                    self._remove_folders(made)
                    raise as_failure(error, str(path), doing="written") from error
                except AlreadyExists:
                    self._remove_folders(made)
                    raise
        return made

    def _remove_folders(self, made: Sequence[str]) -> None:
        for text in reversed(made):
            folder = RelPath(text)
            try:
                with self.at(folder) as place:
                    place.folder.remove_folder(place.name)
            except (OSError, NotFound):
                # Somebody else uses it by now; then it stays.
                return

    def _explained(self, text: str, parse: Callable[[], _Parsed]) -> _Parsed:
        try:
            return parse()
        except InvalidPath as error:
            relative = self._below_root(text)
            if relative is None:
                raise
            raise InvalidPath(
                f"The path is absolute; give it relative to the root: {relative}", details={"relativePath": relative}
            ) from error

    def _below_root(self, text: str) -> str | None:
        """The relative form of an absolute path under the root, judged by its text alone."""
        if "\0" in text or not Path(text).is_absolute():
            return None
        for root in (self.root, self.given_root):
            try:
                relative = Path(os.path.normpath(text)).relative_to(root).as_posix()
                return None if relative == "." else RelPath.parse(relative).value
            except (ValueError, InvalidPath):
                continue
        return None


def spelling(folder: Folder, name: str) -> str | None:
    """How a name in NFC is spelled in a folder: as given, else in another Unicode form; None where it is not there.

    Systems that ignore case find a name under any spelling; there the entry's own spelling has to be the given one,
    so that one file has one path.
    """
    there = status_of(folder, name) is not None
    if there and not CASE_IS_KEPT_ONLY:
        return name
    if not there and name.isascii():
        return None
    names = folder.names()
    if name in names:
        return name
    return min((each for each in names if unicodedata.normalize("NFC", each) == name), default=None)


def status_of(folder: Folder, name: str) -> os.stat_result | None:
    """What the system finds under a name, whatever the case of its spelling there; None for nothing.

    Raises:
        OSError: The system refused to look.
    """
    try:
        return folder.stat(name)
    except OSError as error:
        if is_absent(error):
            return None
        raise


@contextmanager
def _in_words(path: RelPath) -> Generator[None]:
    try:
        yield
    except LinkRefused as error:
        raise link_refused(path) from error
    except OSError as error:
        raise as_failure(error, str(path), doing="opened") from error


def link_refused(path: RelPath) -> InvalidPath:
    """The refusal of a path that leads through a link."""
    return InvalidPath(f"The path {path} passes through a link below the root, which is never followed.")


def _relative_keys(root: Path, paths: Sequence[Path]) -> tuple[str, ...]:
    keys: list[str] = []
    for path in paths:
        resolved = Path(os.path.realpath(path))
        if resolved.is_relative_to(root) and resolved != root:
            keys.append(RelPath(unicodedata.normalize("NFC", resolved.relative_to(root).as_posix())).folded)
    return tuple(keys)
