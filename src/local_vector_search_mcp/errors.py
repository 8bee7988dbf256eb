"""The exception family: everything that can go wrong in a way the caller can understand and act on.

::

    KnowledgeBaseError
    ├── InvalidArgument            INVALID_ARGUMENT
    ├── InvalidPath                INVALID_PATH
    ├── NotFound                   NOT_FOUND
    ├── AlreadyExists              ALREADY_EXISTS
    ├── InvalidPointer             INVALID_POINTER
    ├── PointerNotFound            POINTER_NOT_FOUND
    ├── Conflict                   CONFLICT
    ├── StructureChanged           STRUCTURE_CHANGED
    ├── OverlappingOperations      OVERLAPPING_OPERATIONS
    ├── UnsupportedEdit            UNSUPPORTED_EDIT
    ├── TableLookupFailed          TABLE_LOOKUP_FAILED
    ├── InvalidFrontmatter         INVALID_FRONTMATTER
    ├── UnsupportedEncoding        UNSUPPORTED_ENCODING
    ├── UnsupportedFormat          UNSUPPORTED_FORMAT
    ├── TooLarge                   TOO_LARGE
    ├── PermissionDenied           PERMISSION_DENIED
    ├── UnknownTool                UNKNOWN_TOOL
    ├── IndexNotReady              INDEX_NOT_READY
    ├── IndexIncompatible          INDEX_INCOMPATIBLE
    ├── EmbeddingUnavailable       EMBEDDING_UNAVAILABLE
    ├── DependencyMissing          DEPENDENCY_MISSING
    ├── DownloadRefused            DOWNLOAD_REFUSED
    ├── DownloadFailed             DOWNLOAD_FAILED
    ├── IoFailure                  IO_ERROR
    ├── Busy                       BUSY
    ├── TimedOut                   TIMEOUT
    └── ConfigError                (command line only: exit code 2)
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar


class ConflictReason(StrEnum):
    """Why a ``CONFLICT`` was raised (``details.reason``)."""

    CHANGED = "changed"
    AMBIGUOUS = "ambiguous"
    MISSING = "missing"
    SUBTREE_CHANGED = "subtree_changed"
    SOURCE_CHANGED = "source_changed"
    PLAN_CHANGED = "plan_changed"
    TEXT_NOT_FOUND = "text_not_found"
    TEXT_COUNT = "text_count"


class StructureReason(StrEnum):
    """Why a ``STRUCTURE_CHANGED`` was raised (``details.reason``)."""

    FRAGMENT = "fragment"
    NEIGHBOUR = "neighbour"


class KnowledgeBaseError(Exception):
    """Something the caller can understand and act on.

    Args:
        message: What was asked, what was found, what to do next.
        details: Facts for programs; JSON values under camelCase keys.
    """

    code: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})


class InvalidArgument(KnowledgeBaseError):
    """An argument is out of bounds, unknown, contradicting or malformed."""

    code = "INVALID_ARGUMENT"


class InvalidPath(KnowledgeBaseError):
    """A path that no tool may touch."""

    code = "INVALID_PATH"


class NotFound(KnowledgeBaseError):
    """No such file."""

    code = "NOT_FOUND"


class AlreadyExists(KnowledgeBaseError):
    """A path that is wanted free is taken."""

    code = "ALREADY_EXISTS"


class InvalidPointer(KnowledgeBaseError):
    """A pointer is malformed, or lacks a hash that the operation needs."""

    code = "INVALID_POINTER"


class PointerNotFound(KnowledgeBaseError):
    """Nothing stands at a bare logical address."""

    code = "POINTER_NOT_FOUND"


class Conflict(KnowledgeBaseError):
    """The target changed since it was read, or its pointer fits several elements."""

    code = "CONFLICT"

    def __init__(self, message: str, *, reason: ConflictReason, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, details={"reason": reason.value, **(details or {})})
        self.reason = reason


class StructureChanged(KnowledgeBaseError):
    """The edit would not give the Markdown structure that it promises."""

    code = "STRUCTURE_CHANGED"

    def __init__(self, message: str, *, reason: StructureReason, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, details={"reason": reason.value, **(details or {})})
        self.reason = reason


class OverlappingOperations(KnowledgeBaseError):
    """Two operations of one call touch the same text."""

    code = "OVERLAPPING_OPERATIONS"


class UnsupportedEdit(KnowledgeBaseError):
    """The target does not take this operation."""

    code = "UNSUPPORTED_EDIT"


class TableLookupFailed(KnowledgeBaseError):
    """No row or column, or several, fit a table lookup."""

    code = "TABLE_LOOKUP_FAILED"


class InvalidFrontmatter(KnowledgeBaseError):
    """Front matter does not parse, so its keys cannot be edited."""

    code = "INVALID_FRONTMATTER"


class UnsupportedEncoding(KnowledgeBaseError):
    """A document is not valid UTF-8."""

    code = "UNSUPPORTED_ENCODING"


class UnsupportedFormat(KnowledgeBaseError):
    """A file is not of the kind that the tool takes."""

    code = "UNSUPPORTED_FORMAT"


class TooLarge(KnowledgeBaseError):
    """A file, a result or a number of changes is above its limit."""

    code = "TOO_LARGE"


class PermissionDenied(KnowledgeBaseError):
    """The tool is above the scope of this server."""

    code = "PERMISSION_DENIED"


class UnknownTool(KnowledgeBaseError):
    """There is no tool of that name."""

    code = "UNKNOWN_TOOL"


class IndexNotReady(KnowledgeBaseError):
    """Nothing has been indexed yet."""

    code = "INDEX_NOT_READY"


class IndexIncompatible(KnowledgeBaseError):
    """The index was built for another root or by another schema."""

    code = "INDEX_INCOMPATIBLE"


class EmbeddingUnavailable(KnowledgeBaseError):
    """Semantic search was asked for and there are no usable embeddings."""

    code = "EMBEDDING_UNAVAILABLE"


class DependencyMissing(KnowledgeBaseError):
    """A library that this feature needs cannot be loaded."""

    code = "DEPENDENCY_MISSING"


class DownloadRefused(KnowledgeBaseError):
    """A URL has a forbidden scheme, port, address or redirect."""

    code = "DOWNLOAD_REFUSED"


class DownloadFailed(KnowledgeBaseError):
    """A permitted URL could not be fetched."""

    code = "DOWNLOAD_FAILED"


class IoFailure(KnowledgeBaseError):
    """The disk is full, read-only, or does not permit it; nothing was changed."""

    code = "IO_ERROR"


class Busy(KnowledgeBaseError):
    """A lock was not had in time."""

    code = "BUSY"


class TimedOut(KnowledgeBaseError):
    """The work was not done in time."""

    code = "TIMEOUT"


class ConfigError(KnowledgeBaseError):
    """The configuration is wrong; the message names file, line and key."""

    code = "INVALID_CONFIG"
