"""Journal: a change as one step over one or many files, put back or finished after a failure or a crash.

Every step and every recovery runs under the workspace lock. So a record that is open while the lock is held belongs to
a process that died.
"""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import Busy, IoFailure, KnowledgeBaseError
from local_vector_search_mcp.history.changes import Change, ChangedFile, FileChange, FileImages
from local_vector_search_mcp.history.store import HistoryStore
from local_vector_search_mcp.relpath import RelPath

_log = logging.getLogger(__name__)

# The only kinds of files that a change can ever have touched; a record that names another is not believed.
RECOVERABLE_SUFFIXES = frozenset(
    {".md", ".markdown", ".mdown", ".mkdn", ".mkd", ".mdwn", ".mdx", ".qmd", ".rmd"}
    | {".png", ".jpg", ".jpeg", ".webp", ".gif", ".pdf"}
)


class JournalFiles(Protocol):
    """What the journal does to files: the workspace, and memory in tests.

    Every method checks the path anew and raises ``KnowledgeBaseError`` where it refuses or fails.
    """

    def read_bytes(self, path: RelPath) -> bytes | None:
        """A file's bytes; None where there is none."""
        ...

    def put(self, path: RelPath, data: bytes, *, expected_hash: str | None) -> None:
        """Write a file whole, if it still has this hash; None: if there is none."""
        ...

    def take_away(self, path: RelPath, *, expected_hash: str) -> None:
        """Remove a file, if it still has this hash."""
        ...

    def rename(self, old: RelPath, new: RelPath, *, expected_hash: str) -> None:
        """Rename a file, if it still has this hash; never over another."""
        ...


class RecoveryOutcome(StrEnum):
    """What became of a change that a process left open."""

    FINISHED = "finished"  # All its files had changed.
    NOTHING = "nothing"  # None had.
    PUT_BACK = "put_back"
    LEFT = "left"  # Files that another program changed since were left alone; the record keeps the old bytes.
    POSTPONED = "postponed"  # The system refused, as a full disk does; the next recovery tries again.


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One change that was found open, and what was done about it."""

    change: Change
    outcome: RecoveryOutcome
    left: tuple[ChangedFile, ...] = ()

    @property
    def message(self) -> str:
        """The same in words, for status and log."""
        what = f"{self.change.tool} of {self.change.time} ({self.change.summary})"
        match self.outcome:
            case RecoveryOutcome.FINISHED:
                return f"{what} was complete when its process ended."
            case RecoveryOutcome.NOTHING:
                return f"{what} had not begun when its process ended; nothing was changed."
            case RecoveryOutcome.PUT_BACK:
                return f"{what} was cut off and has been put back."
            case RecoveryOutcome.POSTPONED:
                return f"{what} was cut off and cannot be put back now; it is tried again with the next change."
            case RecoveryOutcome.LEFT:
                names = ", ".join(file.path.value for file in self.left)
                return f"{what} was cut off; {names} could not be put back: see change {self.change.change_id}."


class JournalStep:
    """A change under way."""

    def __init__(self, change_id: str | None) -> None:
        self.change_id = change_id  # None where history is switched off.
        self._written: set[RelPath] = set()

    def wrote(self, path: RelPath) -> None:
        """Tell that a file of a change to several has been written.

        If the step fails later and another program has changed that file meanwhile, its old bytes stay recorded.
        """
        self._written.add(path)

    def has_written(self, file: ChangedFile) -> bool:
        """Whether a file was told to be written."""
        return file.path in self._written


class Journal:
    """Runs changes as steps, and mends those that a crash cut off."""

    def __init__(self, store: HistoryStore, files: JournalFiles) -> None:
        self._store = store
        self._files = files

    @contextmanager
    def step(
        self, *, tool: str, summary: str, files: Sequence[FileChange], undoes: str | None = None
    ) -> Generator[JournalStep]:
        """Record a change, let the ``with`` body carry it out, and mark it as done.

        If the body raises, the files that had already changed are put back and the record is taken away. Files that
        another program has changed meanwhile are left alone, with their old bytes recorded; what the system does not
        let be put back now stays open for the next ``recover``.

        Args:
            tool: The tool's name.
            summary: One line for a person.
            files: Every file that the body is going to touch, with its bytes before and after.
            undoes: The id of the change that this one takes back.

        Raises:
            IoFailure, Busy: It cannot be recorded; the body has not run.
        """
        change_id = self._store.begin(tool=tool, summary=summary, files=files, undoes=undoes)
        step = JournalStep(change_id if self._store.settings.enabled else None)
        try:
            yield step
        except BaseException:
            self._mend(change_id, step)
            raise
        try:
            self._store.finish(change_id)
        except KnowledgeBaseError as error:
            # The files are as promised; the next recovery finds them so and marks the change.
            _log.warning("Change %s could not be marked as done: %s", change_id, error.code)

    def recover(self) -> tuple[Recovery, ...]:
        """Finish or put back every change that a process which died left open. Hold the workspace lock.

        Raises:
            IoFailure, Busy: The history cannot be read or written.
        """
        if not self._store.has_pending():
            return ()
        done: list[Recovery] = []
        for change in self._store.pending():
            recovery = self._decide(change, self._store.images(change.change_id))
            _log.warning("%s", recovery.message)
            done.append(recovery)
        return tuple(done)

    def _mend(self, change_id: str, step: JournalStep) -> None:
        try:
            for change in self._store.pending():
                if change.change_id == change_id:
                    self._decide(change, self._store.images(change_id), step)
        except KnowledgeBaseError as error:
            # The first error is the one to tell; the record stays open for the next recovery.
            _log.warning("Change %s could not be put back yet: %s", change_id, error.code)

    def _decide(self, change: Change, images: tuple[FileImages, ...], step: JournalStep | None = None) -> Recovery:
        """Bring an open change to an end.

        A crash (``step`` is None) may have come after the last file, and then the change is complete. A step that
        failed was not, and what it had not written is not its doing, however the file looks now.
        """
        states = [self._state(each) for each in images]
        if step is None and all(state is _State.AFTER for state in states):
            self._store.finish(change.change_id)
            return Recovery(change=change, outcome=RecoveryOutcome.FINISHED)
        left: list[ChangedFile] = []
        touched = postponed = False
        # The last file first, so that renames within a folder unwind as they were made.
        for each, state in reversed(list(zip(images, states, strict=True))):
            if state is _State.BEFORE or (
                state is _State.OTHER and step is not None and not step.has_written(each.file)
            ):
                continue
            if state is _State.OTHER:
                left.append(each.file)
                continue
            try:
                self._put_back(each)
                touched = True
            except (IoFailure, Busy):
                postponed = True
            except KnowledgeBaseError as error:
                _log.warning("%s could not be put back: %s", each.file.path, error.code)
                left.append(each.file)
        if postponed:
            return Recovery(change=change, outcome=RecoveryOutcome.POSTPONED)
        if left:
            self._store.interrupt(change.change_id, left)
            return Recovery(change=change, outcome=RecoveryOutcome.LEFT, left=tuple(reversed(left)))
        self._store.drop(change.change_id)
        return Recovery(change=change, outcome=RecoveryOutcome.PUT_BACK if touched else RecoveryOutcome.NOTHING)

    def _state(self, images: FileImages) -> "_State":
        file = images.file
        if not _may_touch(file):
            return _State.OTHER
        now = self._hash(file.path)
        if file.previous_path is None:
            if now == file.new_hash:
                return _State.AFTER
            return _State.BEFORE if now == file.previous_hash else _State.OTHER
        old = self._hash(file.previous_path)
        if old is None and now == file.new_hash:
            return _State.AFTER
        if old == file.previous_hash:
            # A case-only rename is one file under both names on systems that ignore case.
            return _State.BEFORE if now is None or file.path.folded == file.previous_path.folded else _State.BETWEEN
        return _State.BETWEEN if old is None and now == file.previous_hash else _State.OTHER

    def _hash(self, path: RelPath) -> str | None:
        try:
            data = self._files.read_bytes(path)
        except KnowledgeBaseError:
            # A link, a folder, or closed to us: not what the change made, so it is left alone.
            return "unreadable"
        return None if data is None else xxh64_hex(data)

    def _put_back(self, images: FileImages) -> None:
        """Put one file back.

        Raises:
            KnowledgeBaseError: The file, or the system, does not let it be.
        """
        file = images.file
        if file.previous_path is not None:
            self._move_back(images, file.previous_path)
        elif file.new_hash is None:
            self._files.put(file.path, _kept(images), expected_hash=None)
        elif file.previous_hash is None:
            self._files.take_away(file.path, expected_hash=file.new_hash)
        else:
            self._files.put(file.path, _kept(images), expected_hash=file.new_hash)

    def _move_back(self, images: FileImages, previous_path: RelPath) -> None:
        file = images.file
        now = self._hash(file.path)
        if self._hash(previous_path) == file.previous_hash:
            # Written at the new place and not yet gone from the old one.
            if now is not None and now == file.new_hash:
                self._files.take_away(file.path, expected_hash=now)
            return
        if now is None:
            return
        if not images.keeps_bytes and now == file.new_hash and now != file.previous_hash:
            self._files.put(file.path, _kept(images), expected_hash=now)
            now = file.previous_hash
        if now is not None:
            self._files.rename(file.path, previous_path, expected_hash=now)


class _State(StrEnum):
    BEFORE = "before"
    AFTER = "after"
    BETWEEN = "between"  # A rename that is half done.
    OTHER = "other"


def _may_touch(file: ChangedFile) -> bool:
    paths = (file.path,) if file.previous_path is None else (file.path, file.previous_path)
    return all(path.suffix in RECOVERABLE_SUFFIXES for path in paths)


def _kept(images: FileImages) -> bytes:
    if images.before is None:
        raise ValueError("the record lacks the bytes before the change")
    return images.before
