"""Which file holds the index now: generations side by side, and a one-line pointer file that names the current one.

A forced rebuild fills a new file and then switches the pointer. The old file answers until then, is never renamed
over or away while anybody may have it open, and is deleted once nobody uses it.
"""

# apsw's stub names collections.abc.Buffer, which Python 3.11 does not have.
# pyright: reportUnknownMemberType=false

import contextlib
import os
import re
import time
from pathlib import Path
from typing import Final

import apsw

from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.index.schema import is_ours

_SIDE_SUFFIXES: Final = ("-wal", "-shm", "-journal")
_LINE_LIMIT: Final = 255


def pointer_file(base: Path) -> Path:
    """The file beside ``base`` that names the current generation."""
    return base.with_name(f"{base.name}.current")


def current_file(base: Path) -> Path:
    """The index file in use: the one that the pointer file names, else ``base`` itself.

    A pointer that names nothing, or a file of another index, counts as none.
    """
    try:
        descriptor = os.open(pointer_file(base), os.O_RDONLY)
    except OSError:
        return base
    try:
        line = os.read(descriptor, _LINE_LIMIT).decode("utf-8", "replace").strip()
    except OSError:
        return base
    finally:
        os.close(descriptor)
    if _generation_of(base, line) is None:
        return base
    named = base.with_name(line)
    return named if named.exists() else base


def new_generation(base: Path) -> Path:
    """The path for the next generation; nothing stands there."""
    taken = [_generation_of(base, name) or 0 for name in _names(base)]
    return base.with_name(_generation_name(base, max([1, *taken]) + 1))


def unfinished(base: Path) -> Path | None:
    """The newest generation, where it is newer than the current one: a rebuild that did not end."""
    current = _generation_of(base, current_file(base).name) or 0
    newest = max([0, *(_generation_of(base, name) or 0 for name in _names(base))])
    return base.with_name(_generation_name(base, newest)) if newest > max(current, 1) else None


def switch(base: Path, file: Path) -> None:
    """Make ``file`` the current generation, for every process at its next use.

    Raises:
        IoFailure: The pointer file could not be written; the old generation stays current.
    """
    pointer = pointer_file(base)
    temporary = pointer.with_name(f"{pointer.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(f"{file.name}\n")
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(pointer)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise IoFailure(f"The new index could not be made current: {error}. The old one goes on.") from error


def remove_unused(base: Path) -> int:
    """Delete generations older than the current one that no process has open. Call under the indexing lease.

    Returns:
        How many files are left for later because somebody still reads them.
    """
    current = current_file(base)
    number = _generation_of(base, current.name) or 0
    left = 0
    for name in _names(base):
        file = base.with_name(name)
        if (_generation_of(base, name) or number) >= number:
            continue
        if _is_ours_alone(file):
            remove_files(file)
        else:
            left += 1
    return left


def set_aside(file: Path) -> Path:
    """Rename a damaged index with its side files, so that it can be looked at and nothing opens it again.

    Returns:
        The new path of the damaged file.

    Raises:
        IoFailure: It could not be renamed.
    """
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    aside = file.with_name(f"{file.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = file.with_name(f"{file.name}.damaged-{stamp}-{number}")
    try:
        for suffix in _SIDE_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                file.with_name(file.name + suffix).replace(aside.with_name(aside.name + suffix))
        file.replace(aside)
    except OSError as error:
        raise IoFailure(f"The damaged index {file.name} could not be set aside: {error}.") from error
    return aside


def remove_files(file: Path) -> None:
    """Delete an index file with its side files, as far as the system lets us."""
    for suffix in ("", *_SIDE_SUFFIXES):
        with contextlib.suppress(OSError):
            file.with_name(file.name + suffix).unlink()


def _names(base: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(base.parent))
    except OSError:
        return []


def _generation_name(base: Path, number: int) -> str:
    return base.name if number == 1 else f"{base.name}.{number}"


def _generation_of(base: Path, name: str) -> int | None:
    """The number of the generation that a file name stands for; None for every other name."""
    if name == base.name:
        return 1
    found = re.fullmatch(rf"{re.escape(base.name)}\.([2-9]|[1-9][0-9]{{1,8}})", name)
    return int(found[1]) if found else None


def _is_ours_alone(file: Path) -> bool:
    """Whether a file is an index of ours that no connection of any process is open on.

    A database leaves WAL mode only for one who has it alone, which is exactly the question.
    """
    try:
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError:
        return False
    try:
        connection.set_busy_timeout(0)
        return bool(is_ours(connection) and connection.pragma("journal_mode", "delete") == "delete")
    except apsw.Error:
        return False
    finally:
        connection.close(True)
