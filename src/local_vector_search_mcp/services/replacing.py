"""Replacing: ``kb_replace_text``, a text or regular expression in many documents at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_vector_search_mcp.editing.patcher import rewrite
from local_vector_search_mcp.editing.text_search import Query
from local_vector_search_mcp.errors import InvalidArgument, StructureChanged, TooLarge
from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.mutations import FileStep, MutationResult, Mutations, Proposal, result_fields
from local_vector_search_mcp.services.text_finding import FoundText, TextFinder
from local_vector_search_mcp.workspace.entries import FileState
from local_vector_search_mcp.workspace.globs import Glob, compile_globs

_DEFAULT_KINDS = frozenset(ElementKind) - {ElementKind.CODE, ElementKind.DOCUMENT}
_MAX_WARNINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedFile:
    """One document with its number of replacements and its hash afterwards."""

    path: str
    count: int
    source_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceResult(MutationResult):
    """What ``kb_replace_text`` answers."""

    files: tuple[ReplacedFile, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    path: RelPath
    count: int
    step: FileStep


class ReplacingService:
    """``kb_replace_text``."""

    def __init__(self, mutations: Mutations) -> None:
        self._mutations = mutations

    def replace(
        self,
        *,
        query: str,
        replacement: str,
        regex: bool = False,
        path_prefix: str | None = None,
        include_glob: str | Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        max_changes: int = 100,
        dry_run: bool = True,
        plan_hash: str | None = None,
    ) -> ReplaceResult:
        """Replace every occurrence in the documents that are chosen, all or nothing.

        Args:
            query: A literal text, or a regular expression.
            replacement: What stands there instead; of an expression it may refer to groups.
            regex: Whether ``query`` is an expression.
            path_prefix: Only this folder or document.
            include_glob: Only documents that fit one of these globs.
            kinds: Only elements of these kinds; all but ``code`` where it is left out.
            max_changes: The most replacements, >= 1.
            dry_run: Whether to check and show only, which is the default.
            plan_hash: Of a dry run.

        Raises:
            TooLarge: There are more matches than ``max_changes``, or the new text is too long.
            TimedOut: The expression takes too long.
            StructureChanged: A document would be read otherwise beyond the replaced text.
            InvalidArgument: A kind, glob or expression is malformed.
        """
        if not query:
            raise InvalidArgument("query is empty; give the text to look for.")
        if max_changes < 1:
            raise InvalidArgument("maxChanges must be 1 or more.")
        wanted_kinds = _kinds(kinds)
        wanted = Query(text=query, replacement=replacement, is_regex=regex)
        workspace = self._mutations.workspace
        finder = TextFinder(workspace, wanted, wanted_kinds, most=max_changes, now_ns=self._mutations.now_ns)
        rewritten: dict[FoundText, _Found] = {}
        prefix = workspace.parse(path_prefix, directory=True) if path_prefix else None
        globs = compile_globs([include_glob] if isinstance(include_glob, str) else list(include_glob or ()))

        def plan() -> Proposal[list[_Found]]:
            findings = finder.find(self._documents(prefix, globs))
            total, warnings = findings.total, list(findings.warnings[:_MAX_WARNINGS])
            if total > max_changes:
                raise TooLarge(
                    f"{total} places match, more than maxChanges ({max_changes}); nothing was changed. Narrow the "
                    "call, or raise maxChanges.",
                    details={"matches": total, "maxChanges": max_changes},
                )
            if not total:
                warnings.append("Nothing matches; look at query, kinds, pathPrefix and includeGlob.")
            for each in findings.found:
                if each not in rewritten:
                    rewritten[each] = _rewritten(each)
            found = [rewritten[each] for each in findings.found]
            steps = tuple(each.step for each in found)
            return Proposal(
                summary=f"{total} replacement(s) in {len(found)} document(s)",
                steps=steps,
                value=found,
                warnings=tuple(warnings),
            )

        committed = self._mutations.run("kb_replace_text", plan, dry_run=dry_run, plan_hash=plan_hash, looks_ahead=True)
        files = tuple(
            ReplacedFile(path=each.path.value, count=each.count, source_hash=each.step.new_hash or "")
            for each in committed.value
        )
        return ReplaceResult(**result_fields(committed), files=files, total=sum(file.count for file in files))

    def _documents(self, prefix: RelPath | None, globs: Sequence[Glob]) -> dict[str, FileState]:
        """The documents that are chosen."""
        scan = self._mutations.workspace.scan_documents()
        return {
            path: state
            for path, state in scan.documents.items()
            if (prefix is None or path == prefix.value or path.startswith(f"{prefix}/"))
            and (not globs or any(glob.matches(path) for glob in globs))
        }


def _rewritten(found: FoundText) -> _Found:
    path = found.snapshot.path
    try:
        outcome = rewrite(found.document, found.edits)
    except StructureChanged as error:
        error.message = f"{path}: {error.message}"
        error.details["path"] = path.value
        raise
    step = FileStep(path=path, before=found.snapshot, after=outcome.source)
    return _Found(path=path, count=len(found.edits), step=step)


def _kinds(kinds: Sequence[str] | None) -> frozenset[ElementKind]:
    if not kinds:
        return _DEFAULT_KINDS
    known = {kind.value for kind in ElementKind if kind is not ElementKind.DOCUMENT}
    for kind in kinds:
        if kind not in known:
            raise InvalidArgument(f"There is no kind {kind!r}; give some of {', '.join(sorted(known))}.")
    return frozenset(ElementKind(kind) for kind in kinds)
