"""Telling clients what has changed: resource subscriptions and list changes, in both protocol eras.

A client of the 2025 era subscribes to URIs one by one and is told about list changes in any case; one of the 2026 era
opens a stream and says what it wants. Any URI may be subscribed to. Changes that come close together are told once.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from mcp.server.connection import Connection
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp_types import (
    EmptyResult,
    NotificationParams,
    ResourceListChangedNotification,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

from local_vector_search_mcp.server.protocol_errors import RequestContext
from local_vector_search_mcp.server.resources import DOCUMENT_URI, OUTLINE_URI, STATUS_URI, document_uri

logger = logging.getLogger(__name__)

_GATHER_S = 0.2


class Subscriptions:
    """Who wants to hear about what, for all connections of a server."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._sessions: dict[Connection, ServerSession] = {}
        self._wanted: dict[Connection, set[str]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: set[str] = set()
        self._list_changed = False
        self._telling: asyncio.Task[None] | None = None

    def register(self, low: Any) -> None:
        """Answer the requests of both eras on a low-level server, which turns the capabilities on."""
        low.add_request_handler("resources/subscribe", SubscribeRequestParams, self._on_subscribe)
        low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._on_unsubscribe)
        low.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        low.add_notification_handler("notifications/initialized", NotificationParams, self._on_initialized)

    def open(self) -> None:
        """Take changes from now on; called in the event loop."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Take no more changes, and end the open streams."""
        self._loop = None
        self._listen.close()
        if self._telling is not None:
            self._telling.cancel()

    def documents_changed(self, paths: Iterable[str], *, list_changed: bool) -> None:
        """Tell about changed documents; from any thread.

        Args:
            paths: Documents that changed, came or went.
            list_changed: Whether documents came or went.
        """
        uris = {STATUS_URI}
        for path in paths:
            uri = document_uri(path)
            uris |= {uri, OUTLINE_URI + uri.removeprefix(DOCUMENT_URI)}
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._gather, uris, list_changed)

    def _gather(self, uris: set[str], list_changed: bool) -> None:
        self._changed |= uris
        self._list_changed |= list_changed
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        while self._changed or self._list_changed:
            await asyncio.sleep(_GATHER_S)
            changed, list_changed = self._changed, self._list_changed
            self._changed, self._list_changed = set(), False
            if list_changed:
                await self._bus.publish(ResourcesListChanged())
                for session in list(self._sessions.values()):
                    await session.send_notification(ResourceListChangedNotification(params=None))
            for connection, wanted in list(self._wanted.items()):
                for uri in sorted(wanted & changed):
                    await self._sessions[connection].send_resource_updated(uri)
            for uri in sorted(changed):
                await self._bus.publish(ResourceUpdated(uri=uri))

    async def _on_initialized(self, ctx: RequestContext, params: NotificationParams) -> None:
        self._remember(ctx.session)

    async def _on_subscribe(self, ctx: RequestContext, params: SubscribeRequestParams) -> EmptyResult:
        self._wanted.setdefault(self._remember(ctx.session), set()).add(str(params.uri))
        return EmptyResult()

    async def _on_unsubscribe(self, ctx: RequestContext, params: UnsubscribeRequestParams) -> EmptyResult:
        self._wanted.get(self._remember(ctx.session), set()).discard(str(params.uri))
        return EmptyResult()

    def _remember(self, session: ServerSession) -> Connection:
        """Keep a connection until it closes; sessions are made anew for every request."""
        connection = session._connection  # pyright: ignore[reportPrivateUsage]
        if connection not in self._sessions:
            self._sessions[connection] = session
            connection.exit_stack.callback(self._forget, connection)
        return connection

    def _forget(self, connection: Connection) -> None:
        self._sessions.pop(connection, None)
        self._wanted.pop(connection, None)
