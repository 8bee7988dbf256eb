"""Names and Markdown of saved images: where an image goes, and how a document shows it. Touches no disk."""

import posixpath
import re
from typing import Final
from urllib.parse import quote

from local_vector_search_mcp.errors import InvalidArgument, UnsupportedFormat
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.images import EXTENSIONS, ImageType, check_extension, safe_stem

IMAGE_FOLDER: Final = "images"
# What Markdown, or Obsidian in an image's text, would read.
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>~|$&^!])")
_BLANKS: Final = re.compile(r"\s+")
# Characters that need no percent in a Markdown destination; parentheses would have to be balanced.
_SAFE: Final = "/-._~!$&'*+,;=:@"


def stem_and_extension(file_name: str | None, offered: str | None, found: ImageType) -> tuple[str, str]:
    """The name under which an image is saved where no exact place is given.

    Args:
        file_name: What the caller asks for; an extension in it has to fit the content.
        offered: What the client calls its file; anything.
        found: The type of the content.

    Raises:
        InvalidArgument: ``file_name`` is a path or empty.
        InvalidPath: Some systems could not hold the name.
        UnsupportedFormat: Its extension names another type.
    """
    if file_name is None:
        return safe_stem(offered or ""), found.extension
    if "/" in file_name or "\\" in file_name or not file_name.strip():
        raise InvalidArgument("fileName is a plain name such as cover.png; give a path as targetPath.")
    path = RelPath.parse_new(file_name)
    if path.suffix in EXTENSIONS:
        check_extension(path, found)
        return path.stem, file_name[len(path.stem) :]
    return path.value, found.extension


def check_target(path: RelPath) -> None:
    """Refuse an exact place whose extension is that of no image.

    Raises:
        UnsupportedFormat: It is.
    """
    if path.suffix not in EXTENSIONS:
        known = ", ".join(EXTENSIONS)
        raise UnsupportedFormat(f"targetPath {path} is no image path; it has to end in one of {known}.")


def image_markdown(path: RelPath, alt_text: str, relative_to: RelPath | None) -> str:
    """The Markdown that shows an image: from the root, or from a document."""
    target = path.value
    if relative_to is not None:
        target = posixpath.relpath(target, relative_to.parent or ".")
    alt = _SPECIAL.sub(r"\\\1", _BLANKS.sub(" ", alt_text).strip())
    return f"![{alt}]({quote(target, safe=_SAFE)})"
