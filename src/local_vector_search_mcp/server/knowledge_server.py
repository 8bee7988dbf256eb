"""The FastMCP server of a knowledge base: our handlers in the place of its own, and the app's life in its lifespan.

FastMCP gives the transports, the protocol's eras and skills. Tools, resources, prompts and completion are answered
here: its visibility rules import half a second of libraries at the first list, its middleware lets exceptions out as
they are, and its models are built at a cost for every type that is used.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from mcp_types import (
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.calls import CallRunner, SendProgress
from local_vector_search_mcp.server.completion import PathCompletion
from local_vector_search_mcp.server.door import Door
from local_vector_search_mcp.server.errors import error_text
from local_vector_search_mcp.server.instructions import write_instructions
from local_vector_search_mcp.server.isolated import FastMCP, FastMCPComponent, Tool, VersionSpec
from local_vector_search_mcp.server.packaged_skills import PackagedSkills
from local_vector_search_mcp.server.prompts import get_prompt, list_prompts
from local_vector_search_mcp.server.protocol_errors import RequestContext, answering
from local_vector_search_mcp.server.resources import KnowledgeResources
from local_vector_search_mcp.server.subscriptions import Subscriptions
from local_vector_search_mcp.server.tools.catalogue import all_tools
from local_vector_search_mcp.server.wire import Json, complete, failed, listing
from local_vector_search_mcp.services.overview import IndexPrint, Overview

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

logger = logging.getLogger(__name__)

_LOOK_OVER_S = 0.25
_START_AFTER_S = 0.5
_LOOK_AGAIN_S = 5.0


class KnowledgeServer(FastMCP[None]):
    """Serves one opened app."""

    def __init__(self, app: "App", *, result_limit: int, **settings: Any) -> None:
        super().__init__(mask_error_details=True, strict_input_validation=True, dereference_schemas=False, **settings)
        self._app = app
        self._scope = Scope(str(app.config.scope))
        self._calls = CallRunner()
        search = app.config.search
        tools = all_tools(default_mode=str(search.default_mode), max_results=search.max_results)
        self._door = Door(app, tools, scope=self._scope, result_limit=result_limit, calls=self._calls)
        self._added: dict[str, Tool] = {}
        self._app_started = False
        self._start_timer: asyncio.TimerHandle | None = None
        self._describing: asyncio.Task[None] | None = None
        skills = PackagedSkills()
        self.add_provider(skills)
        self._subscriptions = Subscriptions(self._index_print, self._calls.threads)
        self._resources = KnowledgeResources(app, self._calls.threads, result_limit=result_limit, extra=skills.listed)
        self.instructions = self._instructions(Overview())
        self._answer_requests()

    def _answer_requests(self) -> None:
        low = self._mcp_server
        self._read_others = low.get_request_handler("resources/read")
        resources, completion = self._resources, PathCompletion(self._app, self._calls.threads)
        for method, params, handler in (
            ("tools/list", PaginatedRequestParams, self._answer_list),
            ("tools/call", CallToolRequestParams, self._answer_call),
            ("resources/list", PaginatedRequestParams, resources.list_page),
            ("resources/templates/list", PaginatedRequestParams, resources.list_templates),
            ("resources/read", ReadResourceRequestParams, self._answer_read),
            ("prompts/list", PaginatedRequestParams, list_prompts),
            ("prompts/get", GetPromptRequestParams, get_prompt),
            ("completion/complete", CompleteRequestParams, completion.complete),
        ):
            low.add_request_handler(method, params, answering(handler))
        self._subscriptions.register(low)

    # -- the life of a server ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Begin to serve: say what the workspace holds, and start the app."""
        self._subscriptions.open()
        loop = asyncio.get_running_loop()
        looking = loop.run_in_executor(self._calls.threads, self._app.overview.overview)
        looking.add_done_callback(self._describe)
        # The handshake waits for this; what is not known by then, later clients are told.
        await asyncio.wait((looking,), timeout=_LOOK_OVER_S)
        self._describing = asyncio.create_task(self._keep_described())
        # Indexing would compete with the handshake for the processor; it begins with the first call, or soon by itself.
        self._start_timer = loop.call_later(_START_AFTER_S, self._start_app)

    async def close(self) -> None:
        """Serve no more, and end the app."""
        if self._start_timer is not None:
            self._start_timer.cancel()
        if self._describing is not None:
            self._describing.cancel()
        self._subscriptions.close()
        await asyncio.get_running_loop().run_in_executor(None, self._app.close)
        self._calls.close()

    def _start_app(self) -> None:
        if not self._app_started:
            self._app_started = True
            self._app.start()

    async def _keep_described(self) -> None:
        """Look the workspace over again when its index has changed, for the clients that come later."""
        overview, loop = self._app.overview, asyncio.get_running_loop()
        seen: int | None = None
        while True:
            await asyncio.sleep(_LOOK_AGAIN_S)
            revision = await loop.run_in_executor(self._calls.threads, overview.revision)
            if revision != seen:
                seen = revision
                looking = loop.run_in_executor(self._calls.threads, overview.overview)
                looking.add_done_callback(self._describe)
                await asyncio.wait((looking,))

    def _describe(self, looking: asyncio.Future[Overview]) -> None:
        if looking.cancelled():
            return
        error = looking.exception()
        if error is not None:
            logger.warning("the workspace could not be looked over: %s", type(error).__name__, exc_info=error)
            return
        self.instructions = self._instructions(looking.result())

    def _instructions(self, overview: Overview) -> str:
        return write_instructions(overview, self._scope, preface=self._app.config.server.instructions)

    def _index_print(self, watched: Collection[str], before: IndexPrint) -> IndexPrint:
        return self._app.overview.index_print(watched, before)

    # -- tools ------------------------------------------------------------------------------------------------

    def add_tool(self, tool: Any) -> Tool:
        """Add a tool that FastMCP runs by itself, beside the fixed ones."""
        added = super().add_tool(tool)
        self._added[added.name] = added
        return added

    async def get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        """An added tool."""
        return self._added.get(name)

    async def list_tools(self, *, run_middleware: bool = True) -> Sequence[Tool]:
        """The added tools."""
        return list(self._added.values())

    async def get_tasks(self) -> Sequence[FastMCPComponent]:
        """None: nothing here runs as a task of the protocol. FastMCP would read every resource to find that out."""
        return []

    async def _answer_list(self, ctx: RequestContext, params: PaginatedRequestParams) -> Json:
        added = [tool.to_mcp_tool().model_dump(by_alias=True, exclude_none=True) for tool in self._added.values()]
        return listing(tools=[*self._door.listed, *added])

    async def _answer_call(self, ctx: RequestContext, params: CallToolRequestParams) -> Any:
        added = self._added.get(params.name)
        if added is not None:
            return await _run_added(added, params.arguments or {})
        self._start_app()
        return await self._door.call(params.name, params.arguments or {}, _progress_of(ctx))

    # -- resources --------------------------------------------------------------------------------------------

    async def _answer_read(self, ctx: RequestContext, params: ReadResourceRequestParams) -> Any:
        if self._resources.owns(str(params.uri)) or self._read_others is None:
            return await self._resources.read(ctx, params)
        return await self._read_others.handler(ctx, params)


async def _run_added(tool: Tool, arguments: dict[str, Any]) -> Json:
    try:
        result = await tool.run(arguments)
    except Exception as error:  # noqa: BLE001  Nothing but a result leaves here.
        return failed(error_text(error, doing=tool.name))
    content = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
    structured = {} if result.structured_content is None else {"structuredContent": result.structured_content}
    return complete(content=content, isError=result.is_error, **structured)


def _progress_of(ctx: RequestContext) -> SendProgress | None:
    """How to tell this call's client about progress, if it asked for that."""
    token = (ctx.meta or {}).get("progress_token")
    if token is None:
        return None

    def send(done: float, total: float | None, message: str | None) -> Awaitable[None]:
        return ctx.session.send_progress_notification(
            progress_token=token, progress=done, total=total, message=message, related_request_id=str(ctx.request_id)
        )

    return send
