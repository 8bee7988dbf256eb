"""Arguments that ``kb_search`` and ``kb_context`` share: the mode and the filters, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.search.filters import SearchFilters
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.globs import compile_globs


class SearchMode(StrEnum):
    """What a search looks at: words, meaning, or both."""

    AUTO = "auto"  # Hybrid where there are vectors, else lexical.
    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterArguments:
    """Search filters as a caller gives them."""

    path_prefix: str | None = None
    include_glob: str | Sequence[str] | None = None
    exclude_glob: str | Sequence[str] | None = None
    tags: Sequence[str] | None = None
    where: Mapping[str, Any] | None = None
    kinds: Sequence[str] | None = None
    modified_after: str | None = None

    def checked(self, workspace: Workspace) -> SearchFilters:
        """The filters; an absolute prefix under the root of ``workspace`` is told its relative form.

        Raises:
            InvalidArgument, InvalidPath: One of them is wrong.
        """
        include = compile_globs(_listed(self.include_glob))
        exclude = compile_globs(_listed(self.exclude_glob))

        def fits(path: str) -> bool:
            if include and not any(glob.matches(path) for glob in include):
                return False
            return not any(glob.matches(path) for glob in exclude)

        return SearchFilters.parse(
            path_prefix=workspace.parse_prefix(self.path_prefix),
            path_fits=fits if include or exclude else None,
            tags=self.tags,
            where=self.where,
            kinds=self.kinds,
            modified_after=self.modified_after,
        )


def checked_mode(mode: str | None, default: SearchMode) -> SearchMode:
    """The mode of a call.

    Raises:
        InvalidArgument: There is none of that name.
    """
    if mode is None:
        return default
    if mode not in tuple(SearchMode):
        raise InvalidArgument(f"mode is {mode!r}; use {', '.join(SearchMode)}.")
    return SearchMode(mode)


def check_range(name: str, value: int, least: int, most: int) -> None:
    """Return for a number within its bounds.

    Raises:
        InvalidArgument: It is not.
    """
    if not least <= value <= most:
        raise InvalidArgument(f"{name} is {value}; give a number from {least} to {most}.")


def _listed(globs: str | Sequence[str] | None) -> Sequence[str]:
    if globs is None:
        return ()
    return (globs,) if isinstance(globs, str) else globs
