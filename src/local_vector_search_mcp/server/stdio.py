"""Serving MCP over standard input and output: every line is answered, even one that is no message."""

import asyncio
import json
import logging
import re
from types import TracebackType
from typing import Any, NoReturn, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from local_vector_search_mcp.server.json_types import is_object
from local_vector_search_mcp.server.knowledge_server import KnowledgeServer
from local_vector_search_mcp.server.process_end import end_in_time, run_and_leave
from local_vector_search_mcp.server.standard_streams import LineReader, LineWriter, take_standard_streams

logger = logging.getLogger(__name__)

_FINISH_AFTER_EOF_S = 0.8
_VALUE = rb'("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]){0,200}"|-?\d{1,18}(?=\s*[,}]))'
_FIRST_ID = re.compile(rb'"id"\s*:\s*' + _VALUE)
# An id behind the parameters is the request's own only if nothing but its method and version follows.
_LAST_ID = re.compile(rb'"id"\s*:\s*' + _VALUE + rb'\s*(?:,\s*"(?:method|jsonrpc)"\s*:\s*"[^"\\]*"\s*)*\}\s*$')
_TAIL = 1000
# These requests last as long as the connection; nobody waits for their answer.
_LASTING = frozenset({"subscriptions/listen"})


def serve(server: KnowledgeServer) -> NoReturn:
    """Serve until the input ends or the process is told to end, then leave the process."""

    async def serving() -> None:
        read_fd, write_fd = take_standard_streams()
        lines, writer = LineReader(), LineWriter(write_fd)
        await lines.open(read_fd)
        low = server._mcp_server  # pyright: ignore[reportPrivateUsage]
        messages = _Messages(lines, writer)
        async with server._lifespan_manager():  # pyright: ignore[reportPrivateUsage]
            await low.run(messages, messages.answers, low.create_initialization_options())

    run_and_leave(serving, with_parent=True)


def parse_error(line: bytes) -> JSONRPCError:
    """The answer to a line that is no message, under the id of the request that it may have meant."""
    error = ErrorData(code=PARSE_ERROR, message="Parse error: the line is no JSON-RPC message")
    return JSONRPCError(jsonrpc="2.0", id=request_id_of(line), error=error)


def request_id_of(line: bytes) -> str | int | None:
    """The id of a request that could not be read, as far as it can be told."""
    try:
        parsed: Any = json.loads(line)
    except (ValueError, RecursionError):
        found = _FIRST_ID.search(line.partition(b'"params"')[0]) or _LAST_ID.search(line[-_TAIL:])
        return None if found is None else _usable_id(json.loads(found[1].decode("utf-8", "surrogateescape")))
    return _usable_id(parsed.get("id")) if is_object(parsed) else None


def _has_id(line: bytes) -> bool:
    """Whether a line that was read as a notification has an id nevertheless."""
    return b'"id"' in line and "id" in json.loads(line)


def encoded(message: JSONRPCMessage) -> bytes:
    """A message as a line without its ending."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


class _Messages:
    """The read side for the protocol library: gives each line as a message, or answers it where it is none."""

    def __init__(self, lines: LineReader, writer: LineWriter) -> None:
        self._lines = lines
        self._open: set[str | int] = set()
        self._all_answered = asyncio.Event()
        self.answers = _Answers(writer, self._note_answer)

    async def receive(self) -> SessionMessage:
        """The next message.

        Raises:
            anyio.EndOfStream: The input has ended, and what was asked has been answered or has had time to be.
        """
        while (line := await self._lines.next_line()) is not None:
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                await self._refuse(line)
                continue
            if isinstance(message, JSONRPCNotification) and _has_id(line):
                # A request under an id that none can have (null, true, 1.5, a list) was read as a notification.
                await self._refuse(line)
                continue
            if isinstance(message, JSONRPCRequest) and message.method not in _LASTING:
                self._open.add(message.id)
            return SessionMessage(message)
        end_in_time()
        await self._let_answers_out()
        raise anyio.EndOfStream

    async def _refuse(self, line: bytes) -> None:
        try:
            await self.answers.send(SessionMessage(parse_error(line)))
        except anyio.BrokenResourceError:
            logger.debug("the client is gone; a line that is no message stays unanswered")

    def _note_answer(self, message: JSONRPCResponse | JSONRPCError) -> None:
        if message.id is not None:
            self._open.discard(message.id)
        if not self._open:
            self._all_answered.set()

    async def _let_answers_out(self) -> None:
        """Let calls end that a client made right before it closed its end, as a script does."""
        if self._open:
            self._all_answered.clear()
            with anyio.move_on_after(_FINISH_AFTER_EOF_S):
                await self._all_answered.wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Read no more."""
        self._lines.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class _Answers:
    """The write side for the protocol library."""

    def __init__(self, writer: LineWriter, note: Any) -> None:
        self._writer = writer
        self._note = note

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message."""
        await self._writer.write(encoded(item.message))
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._note(item.message)

    async def aclose(self) -> None:
        """Nothing to do: the descriptor closes with the process."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def _usable_id(value: Any) -> str | int | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return None
    elif abs(value) >= 1 << 63:
        return None
    return value
