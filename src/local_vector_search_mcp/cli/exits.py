"""Exit codes, and which error ends with which."""

from enum import IntEnum

from local_vector_search_mcp.errors import (
    AlreadyExists,
    ConfigError,
    Conflict,
    EmbeddingUnavailable,
    InvalidArgument,
    InvalidPath,
    InvalidPointer,
    KnowledgeBaseError,
    NotFound,
    OverlappingOperations,
    PointerNotFound,
)


class ExitCode(IntEnum):
    """What the process's end says to a script."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5


def exit_code_for(error: KnowledgeBaseError) -> ExitCode:
    """The exit code of an error."""
    match error:
        case InvalidArgument() | InvalidPath() | InvalidPointer() | OverlappingOperations() | ConfigError():
            return ExitCode.WRONG_USE
        case NotFound() | PointerNotFound():
            return ExitCode.NOT_FOUND
        case Conflict() | AlreadyExists():
            return ExitCode.CONFLICT
        case EmbeddingUnavailable():
            return ExitCode.UNAVAILABLE
        case _:
            return ExitCode.FAILED
