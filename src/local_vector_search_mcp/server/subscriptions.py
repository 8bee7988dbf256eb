"""Telling clients what has changed: resource subscriptions and list changes, in both protocol eras.

A client of the 2025 era subscribes to URIs one by one and is told about list changes in any case; one of the 2026 era
opens a stream and says what it wants. Any URI may be subscribed to. What has changed is read off the index twice a
second: changes that come close together are told once.
"""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Executor
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
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from local_vector_search_mcp.errors import KnowledgeBaseError
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.server.protocol_errors import RequestContext
from local_vector_search_mcp.server.resources import DOCUMENT_URI, OUTLINE_URI, STATUS_URI, document_uri, path_of
from local_vector_search_mcp.services.overview import IndexPrint

_EVERY_S = 0.5


class Subscriptions:
    """Who wants to hear about what, for all connections of a server.

    Args:
        look: Gives the state of the index, for the watched paths, after a state; called in ``threads``.
        threads: Where that is done.
    """

    def __init__(self, look: Callable[[Collection[str], IndexPrint], IndexPrint], threads: Executor) -> None:
        self._look = look
        self._threads = threads
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._sessions: dict[Connection, ServerSession] = {}
        self._wanted: dict[Connection, set[str]] = {}
        self._streams: dict[object, frozenset[str]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._before: IndexPrint | None = None
        self._looking = asyncio.Lock()

    def register(self, low: Any) -> None:
        """Answer the requests of both eras on a low-level server, which turns the capabilities on."""
        low.add_request_handler("resources/subscribe", SubscribeRequestParams, self._on_subscribe)
        low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._on_unsubscribe)
        low.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._on_listen)
        low.add_notification_handler("notifications/initialized", NotificationParams, self._on_initialized)

    def open(self) -> None:
        """Follow the index from now on; called in the event loop."""
        self._watching = asyncio.create_task(self._follow())

    def close(self) -> None:
        """Follow no more, and end the open streams."""
        self._listen.close()
        if self._watching is not None:
            self._watching.cancel()

    async def _follow(self) -> None:
        """Compare the index with how it was, as long as anybody listens.

        The index tells of every change, whoever made it: this process, another server or an editor.
        """
        while True:
            await asyncio.sleep(_EVERY_S)
            if self._sessions or self._streams:
                await self._look_now()
            else:
                self._before = None

    async def _look_now(self) -> None:
        async with self._looking:
            before, watched = self._before, self._watched()
            loop = asyncio.get_running_loop()
            now = await loop.run_in_executor(self._threads, self._look, watched, before or IndexPrint())
            self._before = now
            if before is not None and now != before:
                await self._tell(before, now)

    def _watched(self) -> frozenset[str]:
        """The paths of all documents that somebody subscribed to."""
        uris = frozenset[str]().union(*self._wanted.values(), *self._streams.values())
        return frozenset(path for uri in uris if (path := _document_of(uri)) is not None)

    async def _tell(self, before: IndexPrint, now: IndexPrint) -> None:
        changed = {STATUS_URI} if now.revision != before.revision else set[str]()
        for path, source_hash in now.hashes.items():
            # A path that is watched since just now has nothing to be compared with.
            if path in before.hashes and before.hashes[path] != source_hash:
                uri = document_uri(path)
                changed |= {uri, OUTLINE_URI + uri.removeprefix(DOCUMENT_URI)}
        if now.paths != before.paths:
            await self._bus.publish(ResourcesListChanged())
            for session in list(self._sessions.values()):
                await session.send_notification(ResourceListChangedNotification(params=None))
        for connection, wanted in list(self._wanted.items()):
            for uri in sorted(wanted):
                if _normal(uri) in changed and connection in self._sessions:
                    await self._sessions[connection].send_resource_updated(uri)
        streamed = frozenset[str]().union(*self._streams.values())
        for uri in sorted(streamed):
            if _normal(uri) in changed:
                await self._bus.publish(ResourceUpdated(uri=uri))

    async def _on_listen(
        self, ctx: RequestContext, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        stream = object()
        self._streams[stream] = frozenset(params.notifications.resource_subscriptions or ())
        try:
            await self._look_now()
            return await self._listen(ctx, params)
        finally:
            del self._streams[stream]

    async def _on_initialized(self, ctx: RequestContext, params: NotificationParams) -> None:
        self._remember(ctx.session)

    async def _on_subscribe(self, ctx: RequestContext, params: SubscribeRequestParams) -> EmptyResult:
        self._wanted.setdefault(self._remember(ctx.session), set()).add(str(params.uri))
        # What changes from here on is told, however soon it is.
        await self._look_now()
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


def _document_of(uri: str) -> str | None:
    """The document that a URI of ours names; None for every other URI."""
    for prefix in (DOCUMENT_URI, OUTLINE_URI):
        if uri.startswith(prefix):
            try:
                return RelPath.parse(path_of(uri, prefix)).value
            except KnowledgeBaseError:
                return None
    return None


def _normal(uri: str) -> str:
    """A URI of ours as we write it: clients may percent-encode more or less than we do."""
    path = _document_of(uri)
    if path is None:
        return uri
    encoded = document_uri(path).removeprefix(DOCUMENT_URI)
    return (DOCUMENT_URI if uri.startswith(DOCUMENT_URI) else OUTLINE_URI) + encoded
