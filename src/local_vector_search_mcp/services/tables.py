"""Tables: ``kb_edit_table``, one action on one table."""

from dataclasses import dataclass

from local_vector_search_mcp.editing.operations import names_path
from local_vector_search_mcp.editing.patcher import PatchOutcome, rewrite
from local_vector_search_mcp.editing.table_actions import read_action
from local_vector_search_mcp.editing.table_edits import edit_table
from local_vector_search_mcp.editing.targets import resolve_hashed
from local_vector_search_mcp.editing.text_edits import TextEdit, TextEdits
from local_vector_search_mcp.errors import InvalidArgument, UnsupportedEdit
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.pointers import parse_pointer, split_full_pointer
from local_vector_search_mcp.services.mutations import FileStep, MutationResult, Mutations, Proposal, result_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult(MutationResult):
    """What ``kb_edit_table`` answers.

    Attributes:
        pointer: The table's pointer now, good for the next edit.
        enclosing: The pointers of the headings around it.
        relocated_from: The address of the pointer that was given, where the table stood at another.
    """

    pointer: str
    enclosing: tuple[str, ...] = ()
    relocated_from: str | None = None


class TableService:
    """``kb_edit_table``."""

    def __init__(self, mutations: Mutations) -> None:
        self._mutations = mutations

    def edit(
        self,
        *,
        pointer: str,
        action: str,
        path: str | None = None,
        expected_source_hash: str | None = None,
        dry_run: bool = False,
        plan_hash: str | None = None,
        **arguments: object,
    ) -> TableResult:
        """Change cells, rows or columns of a table.

        Args:
            pointer: The table's, with both hashes; a full pointer brings its path along.
            action: What to do.
            path: The document.
            expected_source_hash: The state that the pointer was taken from; tells equal twins apart.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.
            arguments: Those of the action, by their names on the wire in snake_case.

        Raises:
            KnowledgeBaseError: The action does not hold; nothing is written.
        """
        pointer_path, bare = split_full_pointer(pointer)
        named = path if path is not None else pointer_path
        if named is None:
            raise InvalidArgument("kb_edit_table needs the path of a document, or a full pointer (path::pointer).")
        place = self._mutations.workspace.parse(named)
        if pointer_path is not None and not names_path(pointer_path, place.value):
            raise InvalidArgument(f"pointer names {pointer_path} and path names {path}; give one of them.")
        parsed = parse_pointer(bare)
        if parsed.kind is not ElementKind.TABLE:
            raise UnsupportedEdit(f"{parsed.logical} is a {parsed.kind.value}; kb_edit_table takes a table's pointer.")
        read = read_action(action, {_wire_name(name): value for name, value in arguments.items()})

        def plan() -> Proposal[tuple[FileStep, PatchOutcome, str, str | None]]:
            snapshot, document = self._mutations.load(place)
            changed = expected_source_hash is not None and expected_source_hash.lower() != document.source_hash
            table, relocated = resolve_hashed(document, parsed, both=True, check_twins=changed, what="kb_edit_table")
            outcome = rewrite(document, TextEdits([TextEdit(table.range, edit_table(document, table, read))]))
            step = FileStep(path=place, before=snapshot, after=outcome.source)
            return Proposal(
                summary=f"{action} in table {table.logical} of {place}",
                steps=(step,),
                value=(step, outcome, outcome.operations[0].pointers[0], relocated),
                warnings=outcome.warnings,
            )

        committed = self._mutations.run("kb_edit_table", plan, dry_run=dry_run, plan_hash=plan_hash)
        step, outcome, new_pointer, relocated = committed.value
        self._mutations.remember(outcome.document)
        return TableResult(
            **result_fields(committed, step),
            pointer=new_pointer,
            enclosing=outcome.operations[0].enclosing,
            relocated_from=relocated,
        )


def _wire_name(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in tail)
