"""What a tool is to this package: its description for clients and the function that answers a call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.schemas import Schema

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

ProgressCallback = Callable[[float, float | None, str | None], None]


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text that stands by itself in a result."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image that a model looks at."""

    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class FileBlock:
    """Bytes of a file, handed over as an embedded resource."""

    uri: str
    data: bytes
    mime_type: str


Block = TextBlock | ImageBlock | FileBlock


@dataclass(frozen=True, slots=True)
class Structured:
    """A service's result, sent as structured content and as text.

    ``text`` replaces the JSON text where a person-readable form says the same in less.
    """

    value: object
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Blocks:
    """A result of content blocks alone."""

    blocks: tuple[Block, ...]


Answer = Structured | Blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """What a tool may use while it answers one call."""

    app: "App"
    result_limit: int  # Most bytes of one file or result on this transport, before base64.
    report_progress: ProgressCallback  # From any thread: done, total, message.
    wait_s: float  # How long the call may take before it should answer with a state.
    cancelled: Callable[[], bool] = _never  # Whether the client has stopped waiting.


Runner = Callable[[ToolCall, dict[str, Any]], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool: finished schemas, honest hints, the scope it needs, and what answers a call.

    ``run`` works in a thread and takes the arguments that were given, checked, under snake_case names.

    Attributes:
        accepted: Further arguments that are taken and not advertised.
        aliases: Unadvertised names of arguments, beside the common ones.
        value_aliases: Unadvertised values of enumerations, by the argument's name.
        hints: What to do instead, by the argument's name, where a value of another type is sent.
        ends_when_cancelled: The work stops when the client stops waiting; otherwise it goes on to its end.
    """

    name: str
    title: str
    description: str
    scope: Scope
    parameters: Schema
    output: Schema | None
    run: Runner
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    accepted: Mapping[str, Schema] = field(default_factory=dict[str, Schema])
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    value_aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    hints: Mapping[str, str] = field(default_factory=dict[str, str])
    ends_when_cancelled: bool = False
