"""History and undo: ``kb_history`` and ``kb_undo``."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.editing.diff import unified_diff
from local_vector_search_mcp.editing.element_undo import undo_elements
from local_vector_search_mcp.errors import (
    AlreadyExists,
    Conflict,
    ConflictReason,
    InvalidArgument,
    KnowledgeBaseError,
    NotFound,
    UnsupportedEncoding,
)
from local_vector_search_mcp.history.changes import Change, ChangedFile, FileImages
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.mutations import FileStep, MutationResult, Mutations, Proposal, result_fields
from local_vector_search_mcp.workspace.cursors import decode_cursor, encode_cursor
from local_vector_search_mcp.workspace.entries import FileKind, FileSnapshot

_MAX_PAGE_SIZE = 100


class UndoManner(StrEnum):
    """How a change was taken back."""

    WHOLE = "whole"  # Every file is as it was before the change.
    ELEMENTS = "elements"  # Files had changed since; only what the change did was taken back.


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInChange:
    """One file of a change, as answers show it."""

    path: str
    previous_path: str | None
    previous_source_hash: str | None
    source_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEntry:
    """One change of the history."""

    change_id: str
    time: str
    tool: str
    summary: str
    files: tuple[FileInChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """What ``kb_history`` answers: a page of changes, or one change with its diff."""

    changes: tuple[ChangeEntry, ...] = ()
    next_cursor: str | None = None
    change: ChangeEntry | None = None
    diff: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult(MutationResult):
    """What ``kb_undo`` answers."""

    undone: str
    files: tuple[FileInChange, ...]
    how: UndoManner


class UndoService:
    """``kb_history``, ``kb_undo``."""

    def __init__(self, mutations: Mutations) -> None:
        self._mutations = mutations

    def history(
        self,
        *,
        path: str | None = None,
        change_id: str | None = None,
        cursor: str | None = None,
        page_size: int = 20,
    ) -> HistoryResult:
        """Changes, newest first; or one of them with its diff.

        Args:
            path: Only those that touched this file, or a file in this folder.
            change_id: The one change.
            cursor: ``next_cursor`` of the page before.
            page_size: 1 to 100.

        Raises:
            InvalidArgument: An argument out of bounds, or a cursor of another list.
            NotFound: There is no change of that id.
        """
        store = self._mutations.history
        if change_id is not None:
            change = store.get(change_id)
            return HistoryResult(change=_entry(change), diff=self._diff(change_id))
        if not 1 <= page_size <= _MAX_PAGE_SIZE:
            raise InvalidArgument(f"pageSize must be 1 to {_MAX_PAGE_SIZE}.")
        place = self._mutations.workspace.parse(path, directory=True) if path is not None else None
        filters = {"list": "history", "path": None if place is None else place.value}
        key = decode_cursor(cursor, filters, shape=(int,))
        before = int(key[0]) if key is not None else None
        changes = store.list(path=place, before=before, limit=page_size + 1)
        page = changes[:page_size]
        more = len(changes) > page_size
        return HistoryResult(
            changes=tuple(map(_entry, page)),
            next_cursor=encode_cursor((page[-1].sequence,), filters) if more else None,
        )

    def undo(self, *, change_id: str, dry_run: bool = False, plan_hash: str | None = None) -> UndoResult:
        """Take a change back: whole where its files are as it left them, else by elements.

        Args:
            change_id: The change, from ``kb_history``.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.

        Raises:
            NotFound: There is no change of that id, or a path is a document no more.
            AlreadyExists: A deleted file's path is taken by now.
            Conflict: What the change did does not stand there unchanged, because it was undone already, for one.
        """

        def plan() -> Proposal[tuple[tuple[FileStep, ...], UndoManner]]:
            change = self._mutations.history.get(change_id)
            images = self._mutations.history.images(change_id)
            undoing = [_Undoing(self._mutations, each) for each in reversed(images)]
            if not undoing:
                raise NotFound(f"The change {change_id!r} has no file that can be put back.")
            try:
                steps = tuple(each.step() for each in undoing)
            except (AlreadyExists, Conflict, NotFound) as error:
                self._explain_undone(change_id, error)
                raise
            whole = all(each.whole for each in undoing)
            manner = UndoManner.WHOLE if whole else UndoManner.ELEMENTS
            return Proposal(
                summary=f"undid {change.tool} of {change.time}: {change.summary}",
                steps=steps,
                value=(steps, manner),
                undoes=change_id,
                left=_folders_left(steps),
            )

        committed = self._mutations.run("kb_undo", plan, dry_run=dry_run, plan_hash=plan_hash)
        steps, manner = committed.value
        only = steps[0] if len(steps) == 1 else None
        return UndoResult(
            **result_fields(committed, only),
            undone=change_id,
            files=tuple(
                FileInChange(
                    path=step.path.value,
                    previous_path=None if step.previous_path is None else step.previous_path.value,
                    previous_source_hash=step.previous_hash,
                    source_hash=step.new_hash,
                )
                for step in steps
            ),
            how=manner,
        )

    def _explain_undone(self, change_id: str, refusal: KnowledgeBaseError) -> None:
        """Have a refusal say that the change is undone already, where it is; its code stays.

        Only then: what was undone and done again by hand stands there, and can be undone once more.
        """
        undo = self._mutations.history.undone_by(change_id)
        if undo is not None:
            refusal.message = (
                f"The change {change_id} was undone already, at {undo.time} by the change {undo.change_id}; undo that "
                "one to have it again."
            )
            refusal.details.update(undoneBy=undo.change_id, undoneAt=undo.time)

    def _diff(self, change_id: str) -> str:
        parts: list[str] = []
        for each in self._mutations.history.images(change_id):
            file = each.file
            if self._mutations.workspace.kind_of(file.path) is not FileKind.MARKDOWN:
                parts.append(_binary_diff(file))
                continue
            previous = None if file.previous_path is None else file.previous_path.value
            parts.append(unified_diff(file.path.value, each.before, each.after, previous_path=previous))
        return "".join(parts)


class _Undoing:
    """One file of a change that is taken back."""

    def __init__(self, mutations: Mutations, images: FileImages) -> None:
        self._workspace = mutations.workspace
        self._images = images
        self._file = images.file
        self.whole = True

    def step(self) -> FileStep:
        """What puts the file back.

        Raises:
            AlreadyExists, Conflict, NotFound, InvalidPath: It cannot be put back.
        """
        file = self._file
        self._check(file.path)
        if file.previous_path is not None:
            return self._move_back(file.path, file.previous_path)
        if file.previous_hash is None:
            return FileStep(path=file.path, before=self._unchanged(file.path, "was made"), after=None)
        if file.new_hash is None:
            self._workspace.check_new(file.path)
            return FileStep(path=file.path, before=None, after=self._kept())
        snapshot = self._present(file.path)
        if xxh64_hex(snapshot.data) == file.new_hash:
            return FileStep(path=file.path, before=snapshot, after=self._kept())
        return FileStep(path=file.path, before=snapshot, after=self._by_elements(snapshot))

    def _move_back(self, path: RelPath, previous: RelPath) -> FileStep:
        self._check(previous)
        snapshot = self._present(path)
        self._workspace.check_new(previous, replacing=path)
        now = xxh64_hex(snapshot.data)
        if now == self._file.new_hash:
            after = snapshot.data if self._images.keeps_bytes else self._kept()
        elif self._images.keeps_bytes:
            self.whole = False
            after = snapshot.data
        else:
            after = self._by_elements(snapshot)
        return FileStep(path=previous, before=snapshot, after=after, previous_path=path)

    def _check(self, path: RelPath) -> None:
        if self._workspace.kind_of(path) is FileKind.MARKDOWN:
            self._workspace.check_document(path)
        else:
            self._workspace.guard.check(path)

    def _present(self, path: RelPath) -> FileSnapshot:
        if self._workspace.identity(path) is None:
            raise Conflict(
                f"{path} is not there any more, so what was done to it cannot be taken back.",
                reason=ConflictReason.MISSING,
                details={"path": path.value, "candidates": []},
            )
        return self._workspace.read(path)

    def _unchanged(self, path: RelPath, what: str) -> FileSnapshot:
        snapshot = self._present(path)
        if xxh64_hex(snapshot.data) != self._file.new_hash:
            raise Conflict(
                f"{path} has changed since it {what}; delete it yourself if it is not wanted.",
                reason=ConflictReason.CHANGED,
                details={"path": path.value, "candidates": []},
            )
        return snapshot

    def _by_elements(self, snapshot: FileSnapshot) -> bytes:
        """The present document with the change's elements put back."""
        self.whole = False
        images = self._images
        result: bytes | None = None
        if images.before is not None and images.after is not None:
            try:
                result = undo_elements(
                    parse_bytes(images.before), parse_bytes(images.after), parse_bytes(snapshot.data)
                )
            except UnsupportedEncoding:
                result = None
        if result is None:
            raise Conflict(
                f"{snapshot.path} has changed since, in the same elements; see the change with kb_history and edit the "
                "document with kb_patch.",
                reason=ConflictReason.CHANGED,
                details={"path": snapshot.path.value, "candidates": []},
            )
        return result

    def _kept(self) -> bytes:
        if self._images.before is None:
            raise NotFound(f"The history does not hold the bytes of {self._file.path} before that change any more.")
        return self._images.before


def _entry(change: Change) -> ChangeEntry:
    return ChangeEntry(
        change_id=change.change_id,
        time=change.time,
        tool=change.tool,
        summary=change.summary,
        files=_files(change.files),
    )


def _files(files: Sequence[ChangedFile]) -> tuple[FileInChange, ...]:
    return tuple(
        FileInChange(
            path=file.path.value,
            previous_path=None if file.previous_path is None else file.previous_path.value,
            previous_source_hash=file.previous_hash,
            source_hash=file.new_hash,
        )
        for file in files
    )


def _binary_diff(file: ChangedFile) -> str:
    if file.previous_path is not None:
        return f"{file.previous_path} was moved to {file.path}.\n"
    if file.previous_hash is None:
        return f"{file.path} was made.\n"
    return f"{file.path} was {'deleted' if file.new_hash is None else 'replaced'}.\n"


def _folders_left(steps: Sequence[FileStep]) -> tuple[RelPath, ...]:
    """The folders that files leave, the deepest first: the change may have made them for these files."""
    left = [step.previous_path or step.path for step in steps if step.after is None or step.previous_path is not None]
    folders: dict[RelPath, None] = {}
    for path in left:
        parent = path.parent
        while parent:
            folder = RelPath(parent)
            folders.setdefault(folder)
            parent = folder.parent
    return tuple(sorted(folders, key=lambda folder: -len(folder.parts)))
