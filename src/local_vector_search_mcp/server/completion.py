"""Completing paths while a person types them, in resource templates and prompts."""

import asyncio
import re
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from mcp_types import CompleteRequestParams, PromptReference

from local_vector_search_mcp.server.prompts import takes_path
from local_vector_search_mcp.server.protocol_errors import RequestContext
from local_vector_search_mcp.server.wire import Json, complete

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

_MOST_VALUES = 100
_MOST_TYPED = 500


class PathCompletion:
    """Suggests documents whose path or name holds what was typed."""

    def __init__(self, app: "App", threads: Executor) -> None:
        self._app = app
        self._threads = threads

    async def complete(self, ctx: RequestContext, params: CompleteRequestParams) -> Json:
        """Up to 100 paths, those that begin with the value first; none for an argument that is no path."""
        typed = params.argument.value
        # No path holds a backslash, and a glob takes none.
        if not _is_path(params) or len(typed) > _MOST_TYPED or "\\" in typed:
            return complete(completion={"values": []})
        loop = asyncio.get_running_loop()
        values, more = await loop.run_in_executor(self._threads, self._matching, typed)
        return complete(completion={"values": values, "hasMore": more})

    def _matching(self, typed: str) -> tuple[list[str], bool]:
        listed = self._app.listing.list_files(
            kind="markdown", include_glob=_globs(typed), page_size=_MOST_VALUES, sort="path"
        )
        paths = [str(file.path) for file in listed.files]
        return sorted(paths, key=lambda path: not path.startswith(typed)), listed.next_cursor is not None


def _is_path(params: CompleteRequestParams) -> bool:
    if isinstance(params.ref, PromptReference):
        return takes_path(params.ref.name, params.argument.name)
    return params.ref.uri.startswith("kb://") and params.argument.name in ("path", "path*")


def _globs(typed: str) -> list[str]:
    literal = re.sub(r"([*?\[\]{}])", r"[\1]", typed.lstrip("/").replace("\0", ""))
    if not literal:
        return ["**"]
    if "/" in literal:
        return [f"{literal}*", f"{literal}*/**"]
    # Without a slash, a glob matches the file name anywhere.
    return [f"*{literal}*", f"{literal}*/**"]
