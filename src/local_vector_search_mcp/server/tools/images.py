"""Images, and files as they are: kb_…_image, kb_list_images, kb_download_file."""

from typing import Any
from urllib.parse import quote

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.server.results import json_text, wire_object
from local_vector_search_mcp.server.schemas import array, boolean, closed, integer, part, result, text
from local_vector_search_mcp.server.tools import fields
from local_vector_search_mcp.server.toolspec import (
    Answer,
    Block,
    Blocks,
    FileBlock,
    ImageBlock,
    Structured,
    TextBlock,
    ToolCall,
    ToolSpec,
)


def _list_images(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.images.list_images(**arguments))


def _load_image(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    from local_vector_search_mcp.services.image_views import LoadedImage

    loaded = call.app.images.load(**arguments, result_limit=call.result_limit)
    if isinstance(loaded, LoadedImage):
        metadata = TextBlock(json_text(wire_object(loaded.metadata, {})))
        return Blocks((ImageBlock(loaded.data, loaded.mime_type), metadata))
    blocks: list[Block] = []
    for image in loaded.images:
        blocks.append(TextBlock(f"{image.metadata.path}:"))
        blocks.append(ImageBlock(image.data, image.mime_type))
    said = {
        "images": [wire_object(image.metadata, {}) for image in loaded.images],
        "omitted": list(loaded.omitted),
        "problems": [wire_object(problem, {}) for problem in loaded.problems],
    }
    return Blocks((*blocks, TextBlock(json_text(said))))


def _download_file(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    file = call.app.downloads.download(**arguments, result_limit=call.result_limit)
    about = {
        "path": str(file.path),
        "mimeType": file.mime_type,
        "bytes": file.bytes,
        "sha256": file.sha256,
        "offset": file.offset,
        "length": file.length,
    }
    uri = "kb://file/" + quote(str(file.path), safe="/")
    return Blocks((FileBlock(uri, file.data, file.mime_type), TextBlock(json_text(about))))


def _save_image(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.images.save(**arguments))


def _move_image(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.images.move(**arguments))


def _delete_image(call: ToolCall, arguments: dict[str, Any]) -> Answer:
    return Structured(call.app.images.delete(**arguments))


LIST_IMAGES = ToolSpec(
    name="kb_list_images",
    title="List images",
    description="List PNG, JPEG, WebP and GIF files with their sizes.",
    scope=Scope.READ,
    parameters=closed(
        {"pathPrefix": fields.path_prefix(), "cursor": fields.cursor(), "pageSize": fields.page_size(50, 200)}
    ),
    output=result(
        {
            "images": array(
                result(
                    {
                        "path": text(),
                        "mimeType": text(),
                        "bytes": integer(),
                        "width": integer(),
                        "height": integer(),
                    }
                )
            ),
            "nextCursor": text(),
        },
        required=("images",),
    ),
    run=_list_images,
    read_only=True,
    idempotent=True,
)

LOAD_IMAGE = ToolSpec(
    name="kb_load_image",
    title="Look at an image",
    description="Load an image to look at, or the local images of an element or section of a document.",
    scope=Scope.READ,
    parameters=closed(
        {
            "path": fields.path("Image, relative to the root"),
            "maxPixels": integer("Scale down to this longer side", minimum=1, maximum=8000),
            "original": boolean("The bytes as they are", default=False),
            "documentPath": fields.path("Instead of path: a document"),
            "pointer": fields.pointer("With documentPath: element or heading whose images to load"),
        }
    ),
    output=None,
    run=_load_image,
    read_only=True,
    idempotent=True,
)

DOWNLOAD_FILE = ToolSpec(
    name="kb_download_file",
    title="Download a file",
    description="Get any file under the root as it is; large files in parts by offset and length.",
    scope=Scope.READ,
    parameters=closed(
        {
            "path": fields.path("File, relative to the root"),
            "offset": integer("First byte", minimum=0, default=0),
            "length": integer("Most bytes", minimum=1),
        },
        required=("path",),
    ),
    output=None,
    run=_download_file,
    read_only=True,
    idempotent=True,
)

SAVE_IMAGE = ToolSpec(
    name="kb_save_image",
    title="Save an image",
    description="Save an image that the client passes as a file, and get the Markdown that shows it.",
    scope=Scope.EDIT,
    parameters=closed(
        {
            # Clients may say more about a file than we ask for.
            "file": {
                **part(
                    {"download_url": text(), "file_id": text(), "mime_type": text(), "file_name": text()},
                    required=("download_url", "file_id"),
                    description="File parameter of the client",
                ),
                "additionalProperties": True,
            },
            "fileName": text("Name in images/; made free by a number"),
            "altText": text("Alternative text"),
            "targetPath": text("Exact place instead of images/ and fileName"),
            "relativeTo": fields.path("Document to write the Markdown for"),
        },
        required=("file",),
    ),
    output=result(
        {
            "path": text(),
            "mimeType": text(),
            "bytes": integer(),
            "sha256": text(),
            "width": integer(),
            "height": integer(),
            "changeId": text(),
            "markdown": text(),
        },
        required=("path", "markdown"),
    ),
    run=_save_image,
    open_world=True,
    meta={"openai/fileParams": ["file"]},
    hints={
        "file": (
            "pass the file parameter of the client, with download_url (https) and file_id; text, data URIs and base64 "
            "are not taken, and a file of this machine can be copied into the workspace instead"
        )
    },
)

MOVE_IMAGE = ToolSpec(
    name="kb_move_image",
    title="Move or rename an image",
    description="Move an image and, if asked, rewrite the links to it.",
    scope=Scope.EDIT,
    parameters=closed(
        {
            "sourcePath": text("Image"),
            "targetPath": text("New path"),
            "expectedSha256": text("sha256 as loaded"),
            "updateLinks": boolean("Rewrite links", default=False),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("sourcePath", "targetPath"),
    ),
    output=fields.mutation(
        {"previousPath": text(), "sha256": text(), "updatedLinks": fields.updated_links()},
        without=("sourceHash", "previousSourceHash"),
    ),
    run=_move_image,
    destructive=True,
    idempotent=True,
    aliases={"file": "sourcePath", "filePath": "sourcePath", "path": "sourcePath"},
)

DELETE_IMAGE = ToolSpec(
    name="kb_delete_image",
    title="Delete an image",
    description="Delete an image and report the links that break; kb_undo brings it back.",
    scope=Scope.FULL,
    parameters=closed(
        {
            "path": fields.path("Image"),
            "expectedSha256": text("sha256 as loaded"),
            "dryRun": fields.dry_run(),
            "planHash": fields.plan_hash(),
        },
        required=("path",),
    ),
    output=fields.mutation(
        {"deleted": boolean(), "brokenLinks": fields.broken_links()}, without=("sourceHash", "previousSourceHash")
    ),
    run=_delete_image,
    destructive=True,
    idempotent=True,
)
