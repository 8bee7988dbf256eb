"""ImageViews: images as they are listed and looked at; writes nothing."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from local_vector_search_mcp.digests import sha256_hex
from local_vector_search_mcp.errors import InvalidArgument, KnowledgeBaseError, TooLarge
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.cursors import CursorKey, decode_cursor, encode_cursor
from local_vector_search_mcp.workspace.entries import FileKind
from local_vector_search_mcp.workspace.file_parts import read_head
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.images import (
    BLOCK_MAX_BYTES,
    BLOCK_MAX_SIDE,
    EXTENSIONS,
    HEADER_BYTES,
    MAX_IMAGE_BYTES,
    ImageInfo,
    fit_block,
    header_info,
    inspect_image,
)

_MAX_PAGE: Final = 200
_MAX_SIDE: Final = 8_000
MOST_IMAGES: Final = 5
"""How many images of a document come at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedImage:
    """One image of a list; a file that cannot be opened has no size in pixels."""

    path: RelPath
    mime_type: str
    bytes: int
    width: int | None
    height: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageList:
    """One page of images."""

    images: tuple[ListedImage, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageMetadata:
    """An image file as it is on disk; ``scaled`` is True where what is shown is smaller."""

    path: RelPath
    mime_type: str
    bytes: int
    sha256: str
    width: int
    height: int
    scaled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedImage:
    """An image to look at: the block, and what the file is."""

    data: bytes
    mime_type: str
    metadata: ImageMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageProblem:
    """An image that a document shows and that cannot be loaded."""

    target: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedImages:
    """The images of a part of a document: those loaded, those beyond the most, and those that could not be loaded."""

    images: tuple[LoadedImage, ...]
    omitted: tuple[str, ...]
    problems: tuple[ImageProblem, ...]


class ImageViews:
    """Lists and loads the images of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def page(self, *, path_prefix: str | None, cursor: str | None, page_size: int) -> ImageList:
        """One page of images by path.

        Raises:
            InvalidArgument: ``page_size`` out of bounds, or a cursor of another list.
            InvalidPath: A prefix that no path can have.
            IoFailure: The root is gone or cannot be read.
        """
        if not 1 <= page_size <= _MAX_PAGE:
            raise InvalidArgument(f"pageSize is {page_size}; it has to lie between 1 and {_MAX_PAGE}.")
        prefix = self._workspace.parse_prefix(path_prefix)
        filters = {"list": "images", "prefix": prefix}
        after = decode_cursor(cursor, filters, shape=(str, str))
        found = ((_key(path), size) for path, size in self._files(prefix))
        wanted = (item for item in found if after is None or item[0] > after)
        page = heapq.nsmallest(page_size + 1, wanted)
        more = len(page) > page_size
        page = page[:page_size]
        return ImageList(
            images=tuple(self._listed(RelPath(str(key[1])), size) for key, size in page),
            next_cursor=encode_cursor(page[-1][0], filters) if more else None,
        )

    def load(self, path: RelPath, *, max_pixels: int | None, original: bool, result_limit: int) -> LoadedImage:
        """One image to look at.

        Raises:
            InvalidArgument: ``max_pixels`` is out of bounds, or given for the original.
            InvalidPath, NotFound, IoFailure: There is no such file, or no tool may read it.
            UnsupportedFormat, TooLarge: It is no image that can be shown.
        """
        if max_pixels is not None and not 1 <= max_pixels <= _MAX_SIDE:
            raise InvalidArgument(f"maxPixels is {max_pixels}; it has to lie between 1 and {_MAX_SIDE}.")
        if max_pixels is not None and original:
            raise InvalidArgument("original asks for the bytes as they are; leave maxPixels out.")
        data = self.read(path)
        if not original:
            return self._fitted(path, data, max_pixels or BLOCK_MAX_SIDE, min(BLOCK_MAX_BYTES, result_limit))
        info = inspect_image(path, data)
        if len(data) > result_limit:
            raise TooLarge(
                f"{path} has {len(data)} bytes, and one result carries {result_limit}; load it without original, or "
                "download it in parts with kb_download_file."
            )
        return LoadedImage(data=data, mime_type=info.type.mime_type, metadata=_metadata(path, data, info, None))

    def load_several(
        self, targets: Sequence[tuple[str, RelPath | str]], *, max_pixels: int | None, result_limit: int
    ) -> LoadedImages:
        """The images of a part of a document, each once; together they fit one result.

        Args:
            targets: What the document says, with the path that it means or why it means none.
            max_pixels: The longest side; None means the most that fits.
            result_limit: Most bytes that the transport carries.
        """
        paths: dict[RelPath, str] = {}
        problems: dict[str, str] = {}
        for target, found in targets:
            if isinstance(found, RelPath):
                paths.setdefault(found, target)
            else:
                problems.setdefault(target, found)
        chosen = list(paths)[:MOST_IMAGES]
        budget = min(BLOCK_MAX_BYTES, result_limit // max(1, len(chosen)))
        images: list[LoadedImage] = []
        for path in chosen:
            try:
                images.append(self._fitted(path, self.read(path), max_pixels or BLOCK_MAX_SIDE, budget))
            except KnowledgeBaseError as error:
                problems.setdefault(paths[path], error.message)
        return LoadedImages(
            images=tuple(images),
            omitted=tuple(path.value for path in list(paths)[MOST_IMAGES:]),
            problems=tuple(ImageProblem(target=target, reason=reason) for target, reason in problems.items()),
        )

    def read(self, path: RelPath) -> bytes:
        """The bytes of an image file.

        Raises:
            InvalidPath, NotFound, TooLarge, IoFailure: As ``Workspace.read``.
        """
        self._workspace.check_visible(path)
        return self._workspace.read(path, max_bytes=MAX_IMAGE_BYTES).data

    def _fitted(self, path: RelPath, data: bytes, side: int, max_bytes: int) -> LoadedImage:
        info = inspect_image(path, data)
        block = fit_block(path, data, max_side=side, max_bytes=max_bytes)
        metadata = _metadata(path, data, info, True if block.scaled else None)
        return LoadedImage(data=block.data, mime_type=block.type.mime_type, metadata=metadata)

    def _files(self, prefix: str) -> Iterable[tuple[str, int]]:
        if prefix:
            self._workspace.guard.check(RelPath(prefix))
            single = self._workspace.visible_file(RelPath(prefix))
            if single is not None:
                return [(single.path.value, single.size)] if single.kind is FileKind.IMAGE else []
        entries = self._workspace.walk(prefix).files
        return ((entry.path.value, entry.size) for entry in entries if entry.kind is FileKind.IMAGE)

    def _listed(self, path: RelPath, size: int) -> ListedImage:
        info = self._header(path, size)
        kind = info.type if info is not None else EXTENSIONS[path.suffix]
        return ListedImage(
            path=path,
            mime_type=kind.mime_type,
            bytes=size,
            width=info.width if info is not None else None,
            height=info.height if info is not None else None,
        )

    def _header(self, path: RelPath, size: int) -> ImageInfo | None:
        """What the file declares; read further only where its first part does not tell."""
        for most in (HEADER_BYTES, MAX_IMAGE_BYTES):
            try:
                head = read_head(self._workspace, path, most)
            except KnowledgeBaseError:
                # It is listed all the same; opening it will say what is wrong.
                return None
            info = header_info(path, head)
            if info is not None or size <= most:
                return info
        return None


def _key(path: str) -> CursorKey:
    return (path.casefold(), path)


def _metadata(path: RelPath, data: bytes, info: ImageInfo, scaled: bool | None) -> ImageMetadata:
    return ImageMetadata(
        path=path,
        mime_type=info.type.mime_type,
        bytes=len(data),
        sha256=sha256_hex(data),
        width=info.width,
        height=info.height,
        scaled=scaled,
    )
