"""Link edits: what to write where a link's path stands, so that it leads to a file's new place.

Only the bytes of the path are made here; which file a link means is not decided here.
"""

import html
import posixpath
import re
from collections.abc import Iterator
from urllib.parse import quote

from local_vector_search_mcp.editing.text_edits import TextEdit
from local_vector_search_mcp.markdown.links import Link, LinkSyntax
from local_vector_search_mcp.markdown.source import SourceText

_MARKDOWN = ".md"
_WIKI_FORBIDDEN = re.compile(r"[\[\]|#^\x00-\x1f]")
# What would end a path or be read as more than itself, by the place that it stands in; "|" would split a table cell.
_BARE_UNSAFE = re.compile(r"[\x00-\x20\x7f()<>\\%#?&|]")
_ANGLE_UNSAFE = re.compile(r"[\x00-\x1f\x7f<>\\%#?&|]")
_QUOTED_UNSAFE = re.compile(r"[\x00-\x1f\x7f%#?|]")
_UNQUOTED_UNSAFE = re.compile(r"[\x00-\x20\x7f\"'=<>`%#?|]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def path_choices(link: Link, source: str, target: str, *, from_root: bool) -> Iterator[str]:
    """Paths to write for a target, decoded, the one most like the link's present path first.

    Args:
        link: The link as it stands.
        source: The document that holds it, at its new place.
        target: The file or folder that it must lead to, at its new place.
        from_root: Whether the present path is taken from the root although it does not begin with ``/``.
    """
    if link.is_wiki:
        yield from _wiki_choices(link.path, source, target)
        return
    slash = "/" if link.path.endswith("/") else ""
    relative = _relative(source, target) + slash
    dotted = relative if relative.startswith("../") else f"./{relative}"
    if link.path.startswith("/"):
        yield f"/{target}{slash}"
    elif from_root:
        yield target + slash
    elif link.path.startswith("./"):
        yield dotted
    if _SCHEME.match(relative) is None:
        yield relative
    yield dotted
    yield f"/{target}{slash}"


def path_edit(link: Link, path: str, source: SourceText) -> TextEdit | None:
    """The edit that makes a link's path another one, its anchor and query kept.

    Args:
        link: The link as it stands in ``source``.
        path: The new path, decoded.
        source: The document.

    Returns:
        None where the link's syntax cannot hold the path.
    """
    text = _written(link, path, source)
    return None if text is None else TextEdit(link.path_range, text.encode("utf-8"))


def _written(link: Link, path: str, source: SourceText) -> str | None:
    # Who wrote percent signs is given them wherever a URL has them; else only what must be escaped is.
    everything = b"%" in link.path_range.slice(source.data)
    match link.syntax:
        case LinkSyntax.WIKI:
            return None if _WIKI_FORBIDDEN.search(path) else path
        case LinkSyntax.HTML:
            before = source.data[link.destination.start - 1 : link.destination.start]
            unsafe = _QUOTED_UNSAFE if before in (b'"', b"'") else _UNQUOTED_UNSAFE
            return html.escape(_escaped(path, unsafe, everything=everything), quote=True)
        case LinkSyntax.ANGLE | LinkSyntax.ANGLE_DEFINITION:
            return _escaped(path, _ANGLE_UNSAFE, everything=everything)
        case _:
            return _escaped(path, _BARE_UNSAFE, everything=everything)


def _escaped(path: str, unsafe: re.Pattern[str], *, everything: bool) -> str:
    if everything:
        return quote(path, safe="/~!$'*+,;=:@-._")
    return unsafe.sub(lambda match: quote(match.group(), safe=""), path)


def _relative(source: str, target: str) -> str:
    return posixpath.relpath(f"/{target}", f"/{posixpath.dirname(source)}")


def _wiki_choices(written: str, source: str, target: str) -> Iterator[str]:
    is_markdown = target.casefold().endswith(_MARKDOWN)
    keeps_extension = written.casefold().endswith(_MARKDOWN) or not is_markdown

    def shown(path: str) -> str:
        return path if keeps_extension else path[: -len(_MARKDOWN)]

    parts = shown(target).split("/")
    if written.startswith(("./", "../")):
        relative = shown(_relative(source, target))
        yield relative if relative.startswith("../") else f"./{relative}"
    elif written.startswith("/"):
        yield "/" + shown(target)
    elif "/" not in written:
        # The shortest ending of the path that still leads there.
        for count in range(1, len(parts) + 1):
            yield "/".join(parts[-count:])
    yield shown(target)
    yield target
