"""Patching: ``kb_patch``, operations on the elements of one document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from local_vector_search_mcp.editing.operations import path_of_operations, read_operations
from local_vector_search_mcp.editing.patcher import OperationOutcome, PatchOutcome, patch
from local_vector_search_mcp.errors import InvalidArgument, InvalidPointer
from local_vector_search_mcp.markdown.sections import headings_like
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.mutations import FileStep, MutationResult, Mutations, Proposal, result_fields

_MAX_HEADINGS_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchResult(MutationResult):
    """What ``kb_patch`` answers: per operation the pointers that are good for the next edit."""

    operations: tuple[OperationOutcome, ...] = ()
    resectioned: int = 0


class PatchingService:
    """``kb_patch``."""

    def __init__(self, mutations: Mutations) -> None:
        self._mutations = mutations

    def patch(
        self,
        *,
        operations: Sequence[Mapping[str, object]],
        path: str | None = None,
        expected_source_hash: str | None = None,
        dry_run: bool = False,
        plan_hash: str | None = None,
    ) -> PatchResult:
        """Apply operations to one document, all or nothing.

        Args:
            operations: 1 to 100 objects with the fields of the tool.
            path: The document; may be left out where an operation's pointer is a full one.
            expected_source_hash: The state that the pointers were taken from; tells equal twins apart.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.

        Raises:
            KnowledgeBaseError: An operation does not hold; nothing is written.
        """
        place = self._place(path, operations)
        try:
            read = read_operations(operations, path=place.value)
        except InvalidPointer as error:
            self._name_headings(place, operations, error)
            raise
        kinds = [str(item.get("kind")) for item in operations]

        def plan() -> Proposal[tuple[FileStep, PatchOutcome]]:
            snapshot, document = self._mutations.load(place)
            outcome = patch(document, read, expected_source_hash=expected_source_hash)
            step = FileStep(path=place, before=snapshot, after=outcome.source)
            return Proposal(
                summary=f"{_summary(kinds)} in {place}",
                steps=(step,),
                value=(step, outcome),
                warnings=outcome.warnings,
            )

        committed = self._mutations.run("kb_patch", plan, dry_run=dry_run, plan_hash=plan_hash)
        step, outcome = committed.value
        self._mutations.remember(outcome.document)
        return PatchResult(
            **result_fields(committed, step), operations=outcome.operations, resectioned=outcome.resectioned
        )

    def _place(self, path: str | None, operations: Sequence[Mapping[str, object]]) -> RelPath:
        named = path if path is not None else path_of_operations(operations)
        if named is None:
            raise InvalidArgument("kb_patch needs the path of a document, or full pointers (path::pointer).")
        return self._mutations.workspace.parse(named)

    def _name_headings(self, place: RelPath, operations: Sequence[Mapping[str, object]], error: InvalidPointer) -> None:
        """Tell who gives a heading's text for a pointer which pointers such headings have."""
        index = error.details.get("operation")
        given: Mapping[str, object] = operations[index] if isinstance(index, int) else {}
        names = [str(value) for field in ("pointer", "target") if (value := given.get(field)) is not None]
        _, document = self._mutations.load(place)
        found = next(filter(None, (headings_like(document, name) for name in names)), ())[:_MAX_HEADINGS_NAMED]
        if found:
            shown = ", ".join(f"{heading.heading_text[:80]!r} is {heading.pointer}" for heading in found)
            error.message = f"{error.message} Of the headings, {shown}."
            error.details["candidates"] = [heading.pointer for heading in found]


def _summary(kinds: Sequence[str]) -> str:
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(kind if count == 1 else f"{count} × {kind}" for kind, count in counts.items())
