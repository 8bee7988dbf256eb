"""DownloadService: any file under the root as it is, whole or in parts (``kb_download_file``)."""

import codecs
import mimetypes
import os
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

from local_vector_search_mcp.errors import Busy, InvalidArgument, TooLarge
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileIdentity
from local_vector_search_mcp.workspace.file_parts import read_range, sha256_of
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.images import sniff

UNKNOWN_TYPE: Final = "application/octet-stream"
_ATTEMPTS: Final = 3
_REMEMBERED: Final = 32
_HEAD: Final = 4096
# Types that the standard library of some Python versions lacks, or that systems disagree about.
_TYPES: Final = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".webp": "image/webp",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".jsonl": "application/jsonl",
    ".ts": "text/plain",
    ".py": "text/x-python",
    ".rs": "text/plain",
    ".go": "text/plain",
    ".js": "text/javascript",
}
_SIGNATURES: Final = (
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A file or a part of it. ``bytes`` and ``sha256`` are of the whole file, ``data`` is the part."""

    data: bytes
    path: RelPath
    mime_type: str
    bytes: int
    sha256: str
    offset: int
    length: int


class DownloadService:
    """Hands out files of the project byte for byte."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._types = mimetypes.MimeTypes(filenames=())
        self._digests: OrderedDict[tuple[str, FileIdentity], str] = OrderedDict()
        self._lock = Lock()

    def download(self, *, path: str, offset: int = 0, length: int | None = None, result_limit: int) -> Download:
        """A file, or a part of one that is larger than a result may be.

        Args:
            path: The file.
            offset: Where the part begins.
            length: Most bytes of the part; None means the rest.
            result_limit: Most bytes that the transport carries.

        Raises:
            InvalidPath, NotFound, IoFailure: There is no such file, or no tool may read it.
            InvalidArgument: ``offset`` lies behind the end.
            TooLarge: The part is larger than ``result_limit``; the message says how to ask.
            Busy: The file is being written all the time.
        """
        target = self._workspace.parse(path)
        self._workspace.check_visible(target)
        if self._workspace.stat(target) is None and not self._workspace.exists(target):
            raise self._workspace.not_found(target)
        for _ in range(_ATTEMPTS):
            with self._workspace.open(target) as (fd, identity):
                count = _part(target, identity.size, offset, length, result_limit)
                data = read_range(fd, target, offset, count)
                head = data if offset == 0 else read_range(fd, target, 0, _HEAD)
                digest = self._digest(target, fd, identity)
                after = FileIdentity.of(os.fstat(fd))
            if len(data) == count and after.same_content_as(identity):
                return Download(
                    path=target,
                    mime_type=self._mime_type(target, head[:_HEAD]),
                    bytes=identity.size,
                    sha256=digest,
                    offset=offset,
                    length=count,
                    data=data,
                )
        raise Busy(f"{target} is being written; try again.")

    def _mime_type(self, path: RelPath, head: bytes) -> str:
        known = _TYPES.get(path.suffix) or self._types.guess_type("x" + path.suffix)[0]
        return known or _by_content(head)

    def _digest(self, path: RelPath, fd: int, identity: FileIdentity) -> str:
        """The SHA-256 of the whole file; remembered, because every part of a large file states it."""
        key = (path.value, identity)
        with self._lock:
            if key in self._digests:
                self._digests.move_to_end(key)
                return self._digests[key]
        digest = sha256_of(fd, path)
        with self._lock:
            self._digests[key] = digest
            while len(self._digests) > _REMEMBERED:
                self._digests.popitem(last=False)
        return digest


def _part(path: RelPath, size: int, offset: int, length: int | None, limit: int) -> int:
    """How many bytes are handed out."""
    if offset < 0 or (length is not None and length < 1):
        raise InvalidArgument("offset must be 0 or more, length 1 or more.")
    if offset > size:
        raise InvalidArgument(f"offset is {offset}, but {path} has {size} bytes.")
    count = size - offset if length is None else min(length, size - offset)
    if count > limit:
        raise TooLarge(
            f"{path} has {size} bytes; one result carries {limit}. Ask for it in parts: offset {offset} and length "
            f"{limit}, then offset {offset + limit}, and so on.",
            details={"bytes": size, "limit": limit},
        )
    return count


def _by_content(head: bytes) -> str:
    image = sniff(head)
    if image is not None:
        return image.mime_type
    for signature, mime_type in _SIGNATURES:
        if head.startswith(signature):
            return mime_type
    if not head or b"\x00" in head:
        return UNKNOWN_TYPE
    try:
        # The last character of the head may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < _HEAD)
    except UnicodeDecodeError:
        return UNKNOWN_TYPE
    return "text/plain"
