"""Front matter: ``kb_edit_frontmatter``, top-level keys of one document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from local_vector_search_mcp.editing.frontmatter_edits import edit_frontmatter
from local_vector_search_mcp.editing.patcher import PatchOutcome, set_frontmatter
from local_vector_search_mcp.editing.yaml_text import as_json_object
from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.markdown.frontmatter import read_metadata
from local_vector_search_mcp.markdown.yaml_values import JsonValue
from local_vector_search_mcp.services.mutations import (
    FileStep,
    MutationResult,
    Mutations,
    Proposal,
    check_source_hash,
    result_fields,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontmatterResult(MutationResult):
    """What ``kb_edit_frontmatter`` answers.

    Attributes:
        pointer: The front matter's pointer now; None where none is left.
        metadata: What it says now.
    """

    pointer: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class FrontmatterService:
    """``kb_edit_frontmatter``."""

    def __init__(self, mutations: Mutations) -> None:
        self._mutations = mutations

    def edit(
        self,
        *,
        path: str,
        set: Mapping[str, object] | None = None,  # noqa: A002  The name of the tool's argument.
        unset: Sequence[str] = (),
        expected_source_hash: str | None = None,
        dry_run: bool = False,
        plan_hash: str | None = None,
    ) -> FrontmatterResult:
        """Set and remove keys; every other byte stays.

        Args:
            path: The document.
            set: Keys with their new values, JSON all of them.
            unset: Keys to remove; absent ones are passed over.
            expected_source_hash: The state that the caller has seen.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.

        Raises:
            KnowledgeBaseError: The keys cannot be set; nothing is written.
        """
        place = self._mutations.workspace.parse(path)
        wanted = as_json_object(set or {})
        gone = list(as_json_object(dict.fromkeys(unset)))
        if not wanted and not gone:
            raise InvalidArgument("kb_edit_frontmatter needs set (keys with values), unset (keys), or both.")

        def plan() -> Proposal[tuple[FileStep, PatchOutcome]]:
            snapshot, document = self._mutations.load(place)
            check_source_hash(snapshot, expected_source_hash)
            outcome = set_frontmatter(document, edit_frontmatter(document, wanted, gone))
            step = FileStep(path=place, before=snapshot, after=outcome.source)
            keys = ", ".join([*wanted, *(f"-{key}" for key in gone)])
            return Proposal(
                summary=f"front matter of {place}: {keys[:200]}",
                steps=(step,),
                value=(step, outcome),
                warnings=outcome.warnings,
            )

        committed = self._mutations.run("kb_edit_frontmatter", plan, dry_run=dry_run, plan_hash=plan_hash)
        step, outcome = committed.value
        self._mutations.remember(outcome.document)
        element = outcome.document.frontmatter
        return FrontmatterResult(
            **result_fields(committed, step),
            pointer=element.pointer if element is not None else None,
            metadata=read_metadata(outcome.document).as_json(),
        )
