"""Documents, outlines and the status as resources: URIs, pages of the list, and reading."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, unquote_to_bytes

from mcp_types import PaginatedRequestParams, ReadResourceRequestParams

from local_vector_search_mcp.errors import InvalidArgument, NotFound, UnsupportedEncoding
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.server.protocol_errors import RequestContext
from local_vector_search_mcp.server.results import check_size, json_text, wire_object
from local_vector_search_mcp.server.tools.index import STATUS
from local_vector_search_mcp.server.tools.read import OUTLINE
from local_vector_search_mcp.server.wire import Json, listing

if TYPE_CHECKING:
    from local_vector_search_mcp.app import App

T = TypeVar("T")

STATUS_URI: Final = "kb://status"
DOCUMENT_URI: Final = "kb://document/"
OUTLINE_URI: Final = "kb://outline/"
PAGE_SIZE: Final = 200

_MARKDOWN = "text/markdown"
_JSON = "application/json"
_TEMPLATES = (
    {
        "uriTemplate": "kb://document/{path*}",
        "name": "document",
        "title": "Document",
        "description": "A Markdown document as it is now; every segment of its path percent-encoded.",
        "mimeType": _MARKDOWN,
    },
    {
        "uriTemplate": "kb://outline/{path*}",
        "name": "outline",
        "title": "Outline",
        "description": "The tree of a document's headings, as kb_outline gives it.",
        "mimeType": _JSON,
    },
)
_STATUS = {
    "uri": STATUS_URI,
    "name": "status",
    "title": "Status",
    "description": "State of the knowledge base, as kb_status gives it.",
    "mimeType": _JSON,
}


def document_uri(path: str) -> str:
    """The URI of a document."""
    return DOCUMENT_URI + "/".join(quote(part, safe="") for part in path.split("/"))


def path_of(uri: str, prefix: str) -> str:
    """The path that a URI of ours names.

    Raises:
        InvalidArgument: The URI has a query or fragment, or its percent-encoding is no UTF-8.
    """
    encoded = uri.removeprefix(prefix)
    if "?" in encoded or "#" in encoded:
        raise InvalidArgument("The URI has a '?' or '#'; percent-encode them where they belong to a file's name.")
    try:
        return "/".join(unquote_to_bytes(part).decode("utf-8") for part in encoded.split("/"))
    except UnicodeDecodeError as error:
        raise InvalidArgument("The URI's percent-encoding is not UTF-8; encode the path as UTF-8.") from error


class KnowledgeResources:
    """Lists and reads the resources of one app.

    Args:
        app: Whose documents they are.
        threads: Where files are read.
        result_limit: Most bytes of a resource on this transport.
        extra: Gives further resources, for the head of the list.
    """

    def __init__(
        self, app: "App", threads: Executor, *, result_limit: int, extra: Callable[[], Awaitable[Sequence[Json]]]
    ) -> None:
        self._extra = extra
        self._app = app
        self._threads = threads
        self._result_limit = result_limit

    async def list_page(self, ctx: RequestContext, params: PaginatedRequestParams) -> Json:
        """A page of the status, what was added, and all documents by path."""
        cursor = params.cursor
        head = [] if cursor else [_STATUS, *await self._extra()]
        documents, following = await self._in_thread(lambda: self._documents(cursor))
        page = listing(resources=[*head, *documents])
        return page if following is None else {**page, "nextCursor": following}

    async def list_templates(self, ctx: RequestContext, params: PaginatedRequestParams) -> Json:
        """The templates of documents and outlines."""
        return listing(resourceTemplates=list(_TEMPLATES))

    def owns(self, uri: str) -> bool:
        """Whether a URI is one of ours."""
        return uri.startswith("kb:")

    async def read(self, ctx: RequestContext, params: ReadResourceRequestParams) -> Json:
        """The content of a resource."""
        uri = str(params.uri)
        text, mime_type = await self._in_thread(lambda: self._read(uri))
        check_size(len(text.encode()), self._result_limit)
        return listing(contents=[{"uri": uri, "mimeType": mime_type, "text": text}])

    def _documents(self, cursor: str | None) -> tuple[list[Json], str | None]:
        where: Json = {"cursor": cursor} if cursor else {}
        listed = self._app.listing.list_files(kind="markdown", page_size=PAGE_SIZE, **where)
        resources: list[Json] = []
        for file in listed.files:
            path = str(file.path)
            title = {"title": file.title} if file.title else {}
            resource = {"uri": document_uri(path), "name": path, **title, "mimeType": _MARKDOWN, "size": file.bytes}
            resources.append(resource)
        return resources, listed.next_cursor

    def _read(self, uri: str) -> tuple[str, str]:
        if uri == STATUS_URI:
            return _as_json(self._app.status.status(), STATUS.output), _JSON
        if uri.startswith(OUTLINE_URI):
            outline = self._app.reading.outline(path=path_of(uri, OUTLINE_URI))
            return _as_json(outline, OUTLINE.output), _JSON
        if uri.startswith(DOCUMENT_URI):
            path = RelPath.parse(path_of(uri, DOCUMENT_URI))
            data = self._app.workspace.read_document(path).data
            try:
                return data.decode("utf-8"), _MARKDOWN
            except UnicodeDecodeError as error:
                raise UnsupportedEncoding(f"{path} is not UTF-8; save it as UTF-8.") from error
        raise NotFound("There is no such resource; resources/list and resources/templates/list name them.")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _as_json(value: object, schema: dict[str, Any] | None) -> str:
    return json_text(wire_object(value, schema or {}))
