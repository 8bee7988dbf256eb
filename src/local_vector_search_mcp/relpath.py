"""RelPath: a checked root-relative path with ``/``. Touches no disk."""

import os
import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

from local_vector_search_mcp.errors import InvalidPath

# Folders on the way to a file. A walk, which holds a descriptor for each level, looks no deeper; so nothing is made
# deeper either.
MAX_FOLDERS = 128

_CONTROL = re.compile(r"[\x00-\x1f\x7f\x80-\x9f]")
_BACKSLASH_SEPARATES = os.sep == "\\"
_SEPARATOR = re.compile(r"[/\\]")
_DRIVE = re.compile(r"^[A-Za-z]:")
_WINDOWS_FORBIDDEN = re.compile(r'[<>:"|?*\\]')
# Device names are reserved on Windows whatever the extension.
_WINDOWS_DEVICE = re.compile(r"^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class RelPath:
    """A root-relative path: segments joined by ``/``, in Unicode form NFC, never empty.

    The file on disk may carry another Unicode form of the same name; ``workspace`` finds it.
    """

    value: str

    def __str__(self) -> str:
        return self.value

    @property
    def parts(self) -> tuple[str, ...]:
        """The segments, outermost first."""
        return tuple(self.value.split("/"))

    @property
    def name(self) -> str:
        """The last segment."""
        return self.value.rsplit("/", 1)[-1]

    @property
    def stem(self) -> str:
        """The last segment without its extension."""
        name = self.name
        dot = name.rfind(".")
        return name[:dot] if dot > 0 else name

    @property
    def suffix(self) -> str:
        """The extension with its dot, lower case; empty where there is none."""
        name = self.name
        dot = name.rfind(".")
        return name[dot:].lower() if dot > 0 else ""

    @property
    def parent(self) -> str:
        """The directory part without a trailing ``/``; empty for a file in the root."""
        return self.value.rpartition("/")[0]

    @property
    def folded(self) -> str:
        """The key under which names that differ by case or Unicode form only collide."""
        return unicodedata.normalize("NFC", unicodedata.normalize("NFC", self.value).casefold())

    @classmethod
    def parse(cls, text: str, *, directory: bool = False) -> "RelPath":
        """Check a path given by a caller.

        Args:
            text: The path; a leading ``./`` is dropped.
            directory: Also drop one trailing ``/``.

        Raises:
            InvalidPath: It is absolute, climbs, is empty, or holds what no path may hold.
        """
        path = text
        while path.startswith("./"):
            path = path[2:]
        if directory and path.endswith("/"):
            path = path[:-1]
        if not path:
            raise InvalidPath("The path is empty; give a path relative to the root, such as notes/plan.md.")
        try:
            path.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidPath("The path holds a lone surrogate; give it as valid Unicode.") from error
        if _CONTROL.search(path):
            raise InvalidPath("The path holds a control character; remove it.")
        if "\\" in path:
            if not _BACKSLASH_SEPARATES:
                raise InvalidPath(f"The path {path!r} holds a backslash; separate folders with '/'.")
            path = path.replace("\\", "/")
        if path.startswith("/"):
            raise InvalidPath(f"The path {path!r} is absolute; give it relative to the root.")
        if _DRIVE.match(path):
            raise InvalidPath(f"The path {path!r} names a drive; give it relative to the root.")
        path = unicodedata.normalize("NFC", path)
        for part in path.split("/"):
            _check_part(path, part)
        return cls(path)

    @classmethod
    def parse_new(cls, text: str) -> "RelPath":
        """Check the path of a file that is to be made: like ``parse``, and a name that every system can hold.

        Raises:
            InvalidPath: As ``parse``, or Windows could not hold one of the names, or there are too many folders.
        """
        path = cls.parse(text)
        if path.value.count("/") > MAX_FOLDERS:
            raise InvalidPath(f"The path lies more than {MAX_FOLDERS} folders deep; choose a shorter one.")
        for part in path.parts:
            if _WINDOWS_FORBIDDEN.search(part) or part[-1] in ". " or _WINDOWS_DEVICE.match(part):
                raise InvalidPath(
                    f'The name {part!r} cannot be held by every system; avoid < > : " | ? * \\, '
                    "device names such as CON, and a dot or space at the end."
                )
            if len(part.encode("utf-8")) > 255:
                raise InvalidPath("A name in the path is longer than 255 bytes; choose a shorter one.")
        return path


def parse_prefix(text: str | None) -> str:
    """A path prefix, which names a folder or a file, without its last ``/``; empty for everything.

    None, ``""``, ``.``, ``./`` and ``/`` mean everything.

    Raises:
        InvalidPath: No path can begin so.
    """
    if text is None or text in ("", ".", "./", "/"):
        return ""
    return RelPath.parse(text, directory=True).value


def _check_part(path: str, part: str) -> None:
    if not part:
        raise InvalidPath(f"The path {path!r} has an empty segment; write single slashes.")
    decoded = part
    for _ in range(3):
        # A coded separator makes segments too, for whoever decodes the name.
        names = _SEPARATOR.split(decoded)
        if "." in names or ".." in names:
            raise InvalidPath(f"The path {path!r} climbs or repeats a folder; remove the '.' and '..' segments.")
        if any(name.casefold() == ".git" for name in names):
            raise InvalidPath(f"The path {path!r} leads into .git, which is never touched.")
        again = unquote(decoded)
        if again == decoded:
            return
        decoded = again
