"""All tools, in the order in which clients see them: what reads first, then what writes."""

from local_vector_search_mcp.server.tools.book import CREATE_PDF_BOOK
from local_vector_search_mcp.server.tools.browse import HISTORY, LINKS, LIST_FILES, METADATA
from local_vector_search_mcp.server.tools.files import CREATE, DELETE, MOVE
from local_vector_search_mcp.server.tools.images import (
    DELETE_IMAGE,
    DOWNLOAD_FILE,
    LIST_IMAGES,
    LOAD_IMAGE,
    MOVE_IMAGE,
    SAVE_IMAGE,
)
from local_vector_search_mcp.server.tools.index import REINDEX, STATUS
from local_vector_search_mcp.server.tools.read import OUTLINE, READ
from local_vector_search_mcp.server.tools.search import context_tool, search_tool
from local_vector_search_mcp.server.tools.write import EDIT_FRONTMATTER, EDIT_TABLE, PATCH, REPLACE_TEXT, UNDO
from local_vector_search_mcp.server.toolspec import ToolSpec


def all_tools(*, default_mode: str, max_results: int) -> tuple[ToolSpec, ...]:
    """Every tool, whatever the scope; the defaults in force stand in the schemas."""
    return (
        STATUS,
        REINDEX,
        search_tool(default_mode=default_mode, max_results=max_results),
        context_tool(default_mode=default_mode),
        READ,
        OUTLINE,
        LIST_FILES,
        LINKS,
        METADATA,
        HISTORY,
        LIST_IMAGES,
        LOAD_IMAGE,
        DOWNLOAD_FILE,
        PATCH,
        EDIT_TABLE,
        EDIT_FRONTMATTER,
        CREATE,
        MOVE,
        DELETE,
        REPLACE_TEXT,
        UNDO,
        SAVE_IMAGE,
        MOVE_IMAGE,
        DELETE_IMAGE,
        CREATE_PDF_BOOK,
    )
