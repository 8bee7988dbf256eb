"""Whole documents: ``kb_create``, ``kb_move``, ``kb_delete``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local_vector_search_mcp.digests import xxh64_hex
from local_vector_search_mcp.errors import (
    AlreadyExists,
    InvalidArgument,
    InvalidPath,
    NotFound,
    UnsupportedFormat,
)
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.link_updates import IncomingLink, LinkPlanner, LinkUpdates
from local_vector_search_mcp.services.mutations import (
    FileStep,
    MutationResult,
    Mutations,
    Proposal,
    check_source_hash,
    result_fields,
)
from local_vector_search_mcp.workspace.entries import FileKind, FileSnapshot

_MAX_BROKEN_LINKS = 50
_ENDING = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedLinks:
    """A document whose links were rewritten, with its hash afterwards."""

    path: str
    count: int
    source_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedFile:
    """One file of a folder that moved."""

    previous_path: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveResult(MutationResult):
    """What ``kb_move`` answers.

    Attributes:
        updated_links: Every document in which links were rewritten, by its path afterwards.
        moved: Of a folder, its documents and images.
    """

    previous_path: str
    updated_links: tuple[UpdatedLinks, ...] = ()
    moved: tuple[MovedFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult(MutationResult):
    """What ``kb_delete`` answers."""

    deleted: bool
    broken_links: tuple[IncomingLink, ...] = ()


class DocumentService:
    """``kb_create``, ``kb_move``, ``kb_delete``."""

    def __init__(self, mutations: Mutations) -> None:
        self._mutations = mutations
        self._workspace = mutations.workspace

    def create(
        self,
        *,
        path: str,
        markdown: str,
        create_directories: bool = True,
        dry_run: bool = False,
        plan_hash: str | None = None,
    ) -> MutationResult:
        """Write a new document; nothing is ever overwritten.

        Args:
            path: Where; the rules must select it.
            markdown: Its text; the last line gets an ending.
            create_directories: Whether missing folders are made.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.

        Raises:
            AlreadyExists: The name is taken, in whatever case or Unicode form.
            InvalidPath, NotFound, UnsupportedFormat: No document can stand there.
        """
        place = self._workspace.parse_new(path)
        data = _file_bytes(markdown)

        def plan() -> Proposal[FileStep]:
            self._workspace.check_document(place)
            self._workspace.check_new(place)
            if not create_directories:
                self._require_folder(place)
            step = FileStep(path=place, before=None, after=data, create_directories=create_directories)
            return Proposal(summary=f"created {place}", steps=(step,), value=step)

        committed = self._mutations.run("kb_create", plan, dry_run=dry_run, plan_hash=plan_hash)
        return MutationResult(**result_fields(committed, committed.value))

    def delete(
        self, *, path: str, expected_source_hash: str, dry_run: bool = False, plan_hash: str | None = None
    ) -> DeleteResult:
        """Delete a document; its bytes stay in the history.

        Args:
            path: The document.
            expected_source_hash: The state that the caller has seen.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.

        Raises:
            Conflict: It has another hash (``source_changed``).
            NotFound, InvalidPath, UnsupportedFormat: There is no such document.
        """
        place = self._workspace.parse(path)
        links = LinkPlanner(self._workspace, now_ns=self._mutations.now_ns)

        def plan() -> Proposal[tuple[FileStep, tuple[IncomingLink, ...]]]:
            snapshot = self._workspace.read_document(place)
            check_source_hash(snapshot, expected_source_hash)
            broken = links.incoming([place], most=_MAX_BROKEN_LINKS)
            step = FileStep(path=place, before=snapshot, after=None)
            return Proposal(summary=f"deleted {place}", steps=(step,), value=(step, broken))

        committed = self._mutations.run("kb_delete", plan, dry_run=dry_run, plan_hash=plan_hash, looks_ahead=True)
        step, broken = committed.value
        return DeleteResult(**result_fields(committed, step), deleted=committed.applied, broken_links=broken)

    def move(
        self,
        *,
        path: str,
        target_path: str,
        update_links: bool = True,
        expected_source_hash: str | None = None,
        dry_run: bool = False,
        plan_hash: str | None = None,
    ) -> MoveResult:
        """Move or rename a document, or a folder with all its documents and images.

        Args:
            path: The document; with a closing ``/`` a folder.
            target_path: Where to.
            update_links: Whether links to what moves, and in it, are rewritten.
            expected_source_hash: The document's state that the caller has seen.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.

        Raises:
            AlreadyExists: The target is taken.
            Conflict: The document has another hash (``source_changed``).
            InvalidPath, NotFound, UnsupportedFormat: One of the two can be no document.
        """
        is_folder = path.endswith("/")
        old = self._workspace.parse(path, directory=is_folder)
        if not is_folder and self._workspace.is_folder(old):
            raise UnsupportedFormat(f"{old} is a folder; to move all that is in it, give its path as {old}/.")
        new = self._workspace.parse_new(target_path.removesuffix("/"))
        if not is_folder and target_path.endswith("/"):
            raise InvalidPath(f"targetPath is a folder; give the document's whole new path, such as {new}/{old.name}.")
        if is_folder and expected_source_hash is not None:
            raise InvalidArgument("expectedSourceHash belongs to a document; a folder has no hash.")
        if old == new:
            raise InvalidArgument(f"{old} stands there already; give another targetPath.")
        links = LinkPlanner(self._workspace, now_ns=self._mutations.now_ns)

        def plan() -> Proposal[_Moving]:
            moving = self._folder_moves(old, new) if is_folder else self._document_move(old, new, expected_source_hash)
            updates = LinkUpdates()
            if update_links:
                moves = {each.snapshot.path: each.target for each in moving}
                updates = links.updates(moves, folder=(old, new) if is_folder else None)
            steps = _steps(moving, updates)
            return Proposal(
                summary=f"moved {old}{'/' if is_folder else ''} to {new}",
                steps=steps,
                value=_Moving(steps=steps, updates=updates),
                warnings=tuple(updates.warnings),
                emptied=(old,) if is_folder else (),
            )

        committed = self._mutations.run("kb_move", plan, dry_run=dry_run, plan_hash=plan_hash, looks_ahead=update_links)
        return _move_result(committed.value, result_fields(committed), old, new, is_folder=is_folder)

    def _document_move(self, old: RelPath, new: RelPath, expected_source_hash: str | None) -> "list[_MovingFile]":
        snapshot = self._workspace.read_document(old)
        check_source_hash(snapshot, expected_source_hash)
        self._workspace.check_document(new)
        self._workspace.check_new(new, replacing=old)
        return [_MovingFile(snapshot=snapshot, target=new)]

    def _folder_moves(self, old: RelPath, new: RelPath) -> "list[_MovingFile]":
        workspace = self._workspace
        if not workspace.is_folder(old):
            raise NotFound(f"There is no folder {old}/; give the path of a document without the closing '/'.")
        if new.value.startswith(f"{old}/"):
            raise InvalidPath(f"{new} lies inside {old}/, which cannot move into itself.")
        inside = [
            entry.path
            for entry in workspace.walk().files
            if entry.path.value.startswith(f"{old}/") and entry.kind in (FileKind.MARKDOWN, FileKind.IMAGE)
        ]
        if not inside:
            raise NotFound(f"The folder {old}/ holds no documents or images that could move.")
        if workspace.exists(new) and not workspace.is_folder(new):
            raise AlreadyExists(f"{new} is a file; choose another folder.")
        moving: list[_MovingFile] = []
        for path in sorted(inside):
            target = RelPath.parse_new(f"{new}{path.value[len(old.value) :]}")
            if workspace.kind_of(path) is FileKind.MARKDOWN:
                snapshot = workspace.read_document(path)
                workspace.check_document(target)
            else:
                snapshot = workspace.read(path)
                workspace.check_visible(target)
            workspace.check_new(target)
            moving.append(_MovingFile(snapshot=snapshot, target=target))
        return moving

    def _require_folder(self, path: RelPath) -> None:
        if path.parent and not self._workspace.is_folder(RelPath(path.parent)):
            raise NotFound(
                f"The folder {path.parent} does not exist; make it with createDirectories, or choose another."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _MovingFile:
    snapshot: FileSnapshot
    target: RelPath


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moving:
    steps: tuple[FileStep, ...]
    updates: LinkUpdates


def _steps(moving: list[_MovingFile], updates: LinkUpdates) -> tuple[FileStep, ...]:
    """The files that move, with the links in them rewritten, then the other documents with rewritten links."""
    steps: list[FileStep] = []
    for each in moving:
        update = updates.documents.get(each.snapshot.path.value)
        snapshot = update.snapshot if update is not None else each.snapshot
        steps.append(
            FileStep(
                path=each.target,
                before=snapshot,
                after=update.data if update is not None else snapshot.data,
                previous_path=snapshot.path,
            )
        )
    moved = {each.snapshot.path.value for each in moving}
    for path, update in sorted(updates.documents.items()):
        if path not in moved:
            steps.append(FileStep(path=update.snapshot.path, before=update.snapshot, after=update.data))
    return tuple(steps)


def _move_result(
    moving: _Moving, fields: Mapping[str, Any], old: RelPath, new: RelPath, *, is_folder: bool
) -> MoveResult:
    updated: list[UpdatedLinks] = []
    for step in moving.steps:
        before = step.previous_path or step.path
        update = moving.updates.documents.get(before.value)
        if update is not None:
            updated.append(UpdatedLinks(path=step.path.value, count=update.count, source_hash=xxh64_hex(update.data)))
    only = None if is_folder else moving.steps[0]
    return MoveResult(
        **fields,
        path=f"{new}/" if is_folder else new.value,
        previous_path=f"{old}/" if is_folder else old.value,
        source_hash=None if only is None else only.new_hash,
        previous_source_hash=None if only is None else only.previous_hash,
        updated_links=tuple(updated),
        moved=tuple(
            MovedFile(previous_path=step.previous_path.value, path=step.path.value)
            for step in moving.steps
            if is_folder and step.previous_path is not None
        ),
    )


def _file_bytes(markdown: str) -> bytes:
    """A new document's bytes: ``\\n``, or ``\\r\\n`` where the text has nothing else; the last line ended."""
    text = markdown.removeprefix("\ufeff")
    endings = set(_ENDING.findall(text))
    ending = "\r\n" if endings == {"\r\n"} else "\n"
    text = _ENDING.sub(ending, text)
    if text and not text.endswith(ending):
        text += ending
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument("The text holds a lone surrogate; send valid Unicode.") from error
