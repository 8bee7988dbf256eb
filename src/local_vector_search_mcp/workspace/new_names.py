"""Whether a name for a new file is free: in no case and no Unicode form may another entry have it."""

import errno
from collections.abc import Iterable
from contextlib import ExitStack

from local_vector_search_mcp.errors import AlreadyExists
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.folders import Folder, LinkRefused
from local_vector_search_mcp.workspace.guard import WorkspaceGuard, link_refused
from local_vector_search_mcp.workspace.listing import nfc
from local_vector_search_mcp.workspace.os_errors import as_failure


def check_free(guard: WorkspaceGuard, path: RelPath, *, replacing: RelPath | None) -> None:
    """Refuse a path whose name, or the name of a folder on its way, collides with an existing entry.

    Args:
        guard: The root.
        path: Where the file is to stand.
        replacing: The file that is to be renamed to ``path``; it may differ from it in case only.

    Raises:
        InvalidPath: The path passes through a link.
        AlreadyExists: The name is taken.
        IoFailure: A folder on the way cannot be read.
    """
    with ExitStack() as opened:
        folder = opened.enter_context(guard.folder(None))
        for depth, part in enumerate(path.parts):
            where = "/".join(path.parts[:depth])
            twin = _twin(_names(folder, path), part)
            if twin is None:
                return
            shown = f"{where}/{nfc(twin)}" if where else nfc(twin)
            last = depth == len(path.parts) - 1
            _check_twin(path, shown, part, last=last, is_itself=replacing is not None and replacing.value == shown)
            if not last:
                folder = opened.enter_context(_open(folder, twin, path, where))


def _check_twin(path: RelPath, shown: str, part: str, *, last: bool, is_itself: bool) -> None:
    if shown.rpartition("/")[2] == part:
        if last:
            raise AlreadyExists(f"{path} exists already; choose another path.")
    elif not (last and is_itself):
        raise AlreadyExists(f"{shown} exists, which differs from the wanted {path} in case or Unicode form only.")


def _names(folder: Folder, path: RelPath) -> list[str]:
    try:
        return folder.names()
    except OSError as error:
        raise as_failure(error, str(path), doing="opened") from error


def _open(folder: Folder, name: str, path: RelPath, where: str) -> Folder:
    try:
        return folder.folder(name)
    except LinkRefused as error:
        raise link_refused(path) from error
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            taken = f"{where}/{nfc(name)}" if where else nfc(name)
            raise AlreadyExists(f"{taken} is a file, so {path} has no room in it.") from error
        raise as_failure(error, str(path), doing="opened") from error


def _twin(names: Iterable[str], wanted: str) -> str | None:
    """An entry that collides with a wanted name: spelled so, else one that differs by case or Unicode form only."""
    folded = RelPath(wanted).folded
    found: str | None = None
    for name in names:
        if nfc(name) == wanted:
            return name
        if RelPath(name).folded == folded:
            found = name
    return found
