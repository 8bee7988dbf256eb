"""The FastMCP server over the tools of one scope, and the one door through which every call goes."""

import asyncio
import base64
import difflib
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    CompleteRequestParams,
    ContentBlock,
    EmbeddedResource,
    GetPromptRequestParams,
    ImageContent,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel

from local_vector_search_mcp.errors import PermissionDenied, UnknownTool
from local_vector_search_mcp.server.arguments import read_arguments
from local_vector_search_mcp.server.calls import WORK_WAITS_S, CallRunner, Progress, SendProgress
from local_vector_search_mcp.server.completion import PathCompletion
from local_vector_search_mcp.server.errors import error_text
from local_vector_search_mcp.server.instructions import write_instructions
from local_vector_search_mcp.server.isolated import (
    Context,
    FastMCP,
    SkillsDirectoryProvider,
    Tool,
    ToolResult,
    VersionSpec,
)
from local_vector_search_mcp.server.prompts import get_prompt, list_prompts
from local_vector_search_mcp.server.protocol_errors import RequestContext, answering
from local_vector_search_mcp.server.resources import KnowledgeResources
from local_vector_search_mcp.server.results import check_size, json_text, wire_object
from local_vector_search_mcp.server.scopes import HOW_TO_WIDEN, Scope
from local_vector_search_mcp.server.subscriptions import Subscriptions
from local_vector_search_mcp.server.tools.catalogue import all_tools
from local_vector_search_mcp.server.toolspec import (
    Answer,
    Block,
    Blocks,
    FileBlock,
    ImageBlock,
    TextBlock,
    ToolCall,
    ToolSpec,
)
from local_vector_search_mcp.services.overview import IndexPrint, Overview

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

logger = logging.getLogger(__name__)

SKILLS = Path(__file__).parent / "skills"
_LOOK_OVER_S = 0.25
# Below this, a result cannot come near a limit, however its text is escaped.
_SURELY_SMALL = 1 << 20


class ListedTool(Tool):
    """A tool as ``tools/list`` shows it: finished schemas and nothing of FastMCP's own in ``_meta``."""

    def get_meta(self) -> dict[str, Any]:
        """The tool's own ``_meta``."""
        return dict(self.meta or {})


class FinishedResult(ToolResult):
    """A result that already is what goes on the wire, so that FastMCP neither converts nor copies it."""

    finished: CallToolResult

    def __init__(self, finished: CallToolResult) -> None:
        BaseModel.__init__(
            self,
            content=finished.content,
            structured_content=finished.structured_content,
            is_error=finished.is_error,
            finished=finished,
        )

    def to_mcp_result(self) -> CallToolResult:
        """The result as it was finished."""
        return self.finished


class KnowledgeBaseServer(FastMCP[None]):
    """FastMCP over a fixed set of tools, already filtered by scope and described.

    Listing and calling tools skip FastMCP's visibility rules and middleware: the first would import half a second of
    libraries, and an exception that left the second would reach the client as it is.
    """

    def __init__(self, app: "App", *, result_limit: int, **settings: Any) -> None:
        super().__init__(mask_error_details=True, strict_input_validation=True, dereference_schemas=False, **settings)
        self._app = app
        self._result_limit = result_limit
        self._scope = Scope(str(app.config.scope))
        search = app.config.search
        specs = all_tools(default_mode=str(search.default_mode), max_results=search.max_results)
        self._specs = {spec.name: spec for spec in specs}
        self._by_name: dict[str, Tool] = {spec.name: _listed(spec) for spec in specs if self._scope.allows(spec.scope)}
        self._calls = CallRunner()
        self.instructions = self._instructions(Overview())
        self._subscriptions = Subscriptions(self._index_print, self._calls.threads)
        self._resources = KnowledgeResources(app, self._calls.threads, result_limit=result_limit)
        self._skills = SkillsDirectoryProvider(SKILLS)
        self.add_provider(self._skills)
        self._answer_requests()

    def _answer_requests(self) -> None:
        """Put our handlers in the place of FastMCP's where the list is long or the answer is ours."""
        low = self._mcp_server
        self._read_others = low.get_request_handler("resources/read")
        resources, completion = self._resources, PathCompletion(self._app, self._calls.threads)
        for method, params, handler in (
            ("resources/list", PaginatedRequestParams, resources.list_page),
            ("resources/templates/list", PaginatedRequestParams, resources.list_templates),
            ("resources/read", ReadResourceRequestParams, self._read_resource),
            ("prompts/list", PaginatedRequestParams, list_prompts),
            ("prompts/get", GetPromptRequestParams, get_prompt),
            ("completion/complete", CompleteRequestParams, completion.complete),
        ):
            low.add_request_handler(method, params, answering(handler))
        self._subscriptions.register(low)

    async def open(self) -> None:
        """Begin to serve: start the app, and say what it holds."""
        self._subscriptions.open()
        self._resources.extra = [resource.to_mcp_resource() for resource in await self._skills.list_resources()]
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._calls.threads, self._app.start)
        looking = loop.run_in_executor(self._calls.threads, self._app.overview.overview)
        looking.add_done_callback(self._describe)
        # The handshake waits for this; what is not known by then, later clients are told.
        await asyncio.wait((looking,), timeout=_LOOK_OVER_S)

    def _index_print(self, watched: Collection[str], before: IndexPrint) -> IndexPrint:
        return self._app.overview.index_print(watched, before)

    def _describe(self, looking: asyncio.Future[Overview]) -> None:
        """Write the instructions from what was seen of the workspace."""
        if looking.cancelled():
            return
        error = looking.exception()
        if error is not None:
            logger.warning("the workspace could not be looked over: %s", type(error).__name__, exc_info=error)
            return
        self.instructions = self._instructions(looking.result())

    def _instructions(self, overview: Overview) -> str:
        return write_instructions(overview, self._scope, preface=self._app.config.server.instructions)

    async def close(self) -> None:
        """Serve no more, and end the app."""
        self._subscriptions.close()
        await asyncio.get_running_loop().run_in_executor(None, self._app.close)
        self._calls.close()

    async def list_tools(self, *, run_middleware: bool = True) -> Sequence[Tool]:
        """The tools of this scope, in order."""
        return list(self._by_name.values())

    async def get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        """A tool of this scope."""
        return self._by_name.get(name)

    def add_tool(self, tool: Any) -> Tool:
        """Add a tool that FastMCP runs by itself, beside the fixed ones."""
        added = super().add_tool(tool)
        self._by_name[added.name] = added
        return added

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        version: VersionSpec | None = None,
        run_middleware: bool = True,
    ) -> ToolResult:
        """Answer a call; every failure is a result with ``isError``."""
        if name in self._by_name and name not in self._specs:
            return await super().call_tool(name, arguments, version=version, run_middleware=run_middleware)
        try:
            async with Context(fastmcp=self) as context:
                spec = self._permitted(name)
                answer = await self._answer(spec, arguments or {}, _progress_of(context))
                return FinishedResult(finish(spec, answer, self._result_limit))
        except Exception as error:  # noqa: BLE001  The one door out.
            text = error_text(error, doing=name if name in self._specs else "tools/call")
            return FinishedResult(CallToolResult(content=[TextContent(text=text)], is_error=True))

    async def _read_resource(self, ctx: RequestContext, params: ReadResourceRequestParams) -> Any:
        if self._resources.owns(str(params.uri)) or self._read_others is None:
            return await self._resources.read(ctx, params)
        return await self._read_others.handler(ctx, params)

    def _permitted(self, name: str) -> ToolSpec:
        spec = self._specs.get(name)
        if spec is None:
            raise UnknownTool(_no_such_tool(name, list(self._by_name)))
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
            return spec.run(call, arguments)

        return await self._calls.run(
            spec.name, arguments, work, send_progress, ends_when_cancelled=spec.ends_when_cancelled
        )


def finish(spec: ToolSpec, answer: Answer, limit: int) -> CallToolResult:
    """An answer as it goes on the wire.

    Raises:
        TooLarge: It has more bytes than one answer may carry.
    """
    if isinstance(answer, Blocks):
        check_size(sum(_bytes_of(block) for block in answer.blocks), limit)
        return CallToolResult(content=[_content(block) for block in answer.blocks])
    assert spec.output is not None
    structured = wire_object(answer.value, spec.output)
    text = json_text(structured)
    if len(text) > _SURELY_SMALL:
        # The object stands in the message twice, once with its quotes escaped.
        check_size((len(text.encode()) + len(json_text(text).encode())) * 3 // 4, limit)
    return CallToolResult(content=[TextContent(text=answer.text or text)], structured_content=structured)


def _no_such_tool(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name[:100], known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the tools are {', '.join(known)}."
    return f"There is no such tool; {hint}"


def _listed(spec: ToolSpec) -> Tool:
    return ListedTool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        parameters=spec.parameters,
        output_schema=spec.output,
        annotations=ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent,
            open_world_hint=spec.open_world,
        ),
        meta={"requiredScope": spec.scope.value, **spec.meta},
    )


def _progress_of(context: Context) -> SendProgress | None:
    """How to tell this call's client about progress, if it asked for that."""
    request = context.request_context
    if request is None or not request.meta or request.meta.get("progressToken") is None:
        return None
    return context.report_progress


def _content(block: Block) -> ContentBlock:
    match block:
        case TextBlock():
            return TextContent(text=block.text)
        case ImageBlock():
            return ImageContent(data=_base64(block.data), mime_type=block.mime_type)
        case FileBlock():
            blob = BlobResourceContents(uri=block.uri, blob=_base64(block.data), mime_type=block.mime_type)
            return EmbeddedResource(resource=blob)


def _bytes_of(block: Block) -> int:
    return len(block.text.encode()) if isinstance(block, TextBlock) else len(block.data)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
