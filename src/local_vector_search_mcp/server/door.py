"""The one door through which every tool call goes: scope, arguments, work, result; and every failure as a result."""

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from local_vector_search_mcp.errors import PermissionDenied, UnknownTool
from local_vector_search_mcp.scopes import HOW_TO_WIDEN, Scope
from local_vector_search_mcp.server.arguments import read_arguments
from local_vector_search_mcp.server.calls import WORK_WAITS_S, CallRunner, Progress, SendProgress
from local_vector_search_mcp.server.errors import error_text
from local_vector_search_mcp.server.toolspec import Answer, ToolCall, ToolSpec
from local_vector_search_mcp.server.wire import Json, failed, finished, listed_tool

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App


class Door:
    """Lists and calls the tools of one scope.

    Args:
        app: What the tools work on.
        tools: All of them, in order.
        scope: What clients may do.
        result_limit: Most bytes of a result on this transport, before base64.
        calls: Does the work.
    """

    def __init__(
        self, app: "App", tools: Sequence[ToolSpec], *, scope: Scope, result_limit: int, calls: CallRunner
    ) -> None:
        self._app = app
        self._specs = {tool.name: tool for tool in tools}
        self._scope = scope
        self._result_limit = result_limit
        self._calls = calls
        self.listed: tuple[Json, ...] = tuple(listed_tool(tool) for tool in tools if scope.allows(tool.scope))

    async def call(self, name: str, arguments: Mapping[str, Any], send_progress: SendProgress | None = None) -> Json:
        """The result of ``tools/call``; a failure is one with ``isError``."""
        try:
            spec = self._permitted(name)
            answer = await self._answer(spec, arguments, send_progress)
            return finished(spec, answer, self._result_limit)
        except Exception as error:  # noqa: BLE001  Nothing but a result leaves here.
            return failed(error_text(error, doing=name if name in self._specs else "tools/call"))

    def _permitted(self, name: str) -> ToolSpec:
        spec = self._specs.get(name)
        if spec is None:
            raise UnknownTool(_no_such_tool(name, [tool["name"] for tool in self.listed]))
        if not self._scope.allows(spec.scope):
            raise PermissionDenied(
                f"{name} needs scope {spec.scope}, and this server has scope {self._scope}; "
                f"{HOW_TO_WIDEN[spec.scope]} if it may be used.",
                details={"requiredScope": spec.scope.value, "scope": self._scope.value},
            )
        return spec

    async def _answer(self, spec: ToolSpec, raw: Mapping[str, Any], send_progress: SendProgress | None) -> Answer:
        arguments = read_arguments(spec, raw)

        def work(progress: Progress) -> Answer:
            call = ToolCall(
                app=self._app,
                result_limit=self._result_limit,
                report_progress=progress.report,
                wait_s=WORK_WAITS_S,
                cancelled=progress.cancelled.is_set,
            )
            return spec.run(call, dict(arguments))

        return await self._calls.run(
            spec.name, arguments, work, send_progress, ends_when_cancelled=spec.ends_when_cancelled
        )


def _no_such_tool(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name[:100], known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the tools are {', '.join(known)}."
    return f"There is no such tool; {hint}"
