"""Making a book of documents: kb_create_pdf_book."""

from typing import Any

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.schemas import array, boolean, closed, integer, number, result, text, texts
from local_vector_search_mcp.server.tools import fields
from local_vector_search_mcp.server.toolspec import Answer, Structured, ToolCall, ToolSpec


def _create_pdf_book(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    def report(share: float, message: str) -> None:
        call.report_progress(share, 1.0, message)

    book = call.app.books.create(**arguments, wait_s=call.wait_s, report_progress=report, cancelled=call.cancelled)
    return Structured(book)


CREATE_PDF_BOOK = ToolSpec(
    name="kb_create_pdf_book",
    title="Create a PDF book",
    description=(
        "Typeset one document, or several as chapters, as a PDF book under the root. "
        "If state is running, make the same call again to wait on."
    ),
    scope=Scope.EDIT,
    parameters=closed(
        {
            "path": fields.path("One document"),
            "paths": array(text(), "Or several documents as chapters, in order", min_items=1, max_items=1000),
            "includeGlob": fields.glob("Or all documents that match one of these globs"),
            "chaptersFromLinks": boolean("The links of path are the chapters", default=False),
            "outputPath": text("Path of the PDF; default: the source's name"),
            "pageFormat": text("Page size", enum=("a4", "a5", "a6", "b5", "letter"), default="a5"),
            "style": text(
                "Typography", enum=("compact", "classic", "modern", "technical", "academic"), default="compact"
            ),
            "profile": text("Image quality", enum=("screen", "standard", "print"), default="standard"),
            "toc": boolean("Table of contents; default from two headings on"),
            "cover": boolean("Cover page from front matter"),
            "numberSections": boolean("Number headings"),
            "language": text("Language tag for hyphenation, such as en or de-CH"),
        }
    ),
    output=result(
        {
            "path": text(),
            "bytes": integer(),
            "pages": integer(),
            "warnings": texts(),
            "changeId": text(),
            "state": text(),
            "progress": number(),
        }
    ),
    run=_create_pdf_book,
    ends_when_cancelled=True,
    destructive=True,
    idempotent=True,
)
