"""Link edits: what to write where a link's destination stands, so that it leads to a file's new place.

Only destination bytes are made here; which file a link means is not decided here.
"""

import html
import posixpath
import re
from collections.abc import Iterator
from urllib.parse import quote, unquote

from local_vector_search_mcp.markdown.links import Link, LinkSyntax
from local_vector_search_mcp.markdown.source import SourceText

_MARKDOWN = ".md"
_WIKI_FORBIDDEN = re.compile(r"[\[\]|#^\n\r]")
# What ends or changes a destination that stands without angle brackets, or splits the cell that it stands in.
_BARE_UNSAFE = re.compile(r"[\x00-\x20\x7f()<>\\%#?&|]")
_ANGLE_UNSAFE = re.compile(r"[\x00-\x1f\x7f<>\\%#?&|]")
_HTML_UNSAFE = re.compile(r"[\x00-\x1f\x7f%#?]")
_UNQUOTED_UNSAFE = re.compile(r"[\x00-\x20\x7f\"'=<>`%#?]")
_WIKI_SYNTAX = LinkSyntax.WIKI


def path_choices(link: Link, source: str, target: str, *, from_root: bool) -> Iterator[str]:
    """Paths to write for a target, decoded, the one most like the link's present path first.

    Args:
        link: The link as it stands.
        source: The document that holds it, at its new place.
        target: The file that it must lead to, at its new place.
        from_root: Whether the present path is taken from the root although it does not begin with ``/``.
    """
    if link.syntax is _WIKI_SYNTAX:
        yield from _wiki_choices(link.path.strip(), source, target)
        return
    written = unquote(link.path.partition("?")[0])
    slash = "/" if written.endswith("/") else ""
    relative = _relative(source, target) + slash
    if written.startswith("./") and not relative.startswith("../"):
        relative = f"./{relative}"
    if written.startswith("/"):
        yield f"/{target}{slash}"
    elif from_root:
        yield target + slash
    yield relative
    yield f"./{_relative(source, target)}{slash}"
    yield f"/{target}{slash}"


def destination_text(link: Link, path: str, source: SourceText) -> str | None:
    """The bytes to write for a decoded path in the place of the link's destination, anchor and query kept.

    None where the link's syntax cannot hold the path.
    """
    rest = _rest(link)
    if link.syntax is _WIKI_SYNTAX:
        return None if _WIKI_FORBIDDEN.search(path) else path + rest
    raw = link.destination.slice(source.data).decode("utf-8")
    encoded_before = unquote(link.path) != link.path
    if link.syntax is LinkSyntax.HTML:
        before = source.data[link.destination.start - 1 : link.destination.start]
        quoted = before in (b'"', b"'")
        unsafe = _HTML_UNSAFE if quoted else _UNQUOTED_UNSAFE
        text = _escaped(path, unsafe, everything=encoded_before)
        return html.escape(text, quote=True) + rest
    in_angles = source.data[link.destination.start - 1 : link.destination.start] == b"<"
    if in_angles and not raw.startswith("<"):
        return _escaped(path, _ANGLE_UNSAFE, everything=encoded_before) + rest
    return _escaped(path, _BARE_UNSAFE, everything=encoded_before) + rest


def _rest(link: Link) -> str:
    """What follows the path in the destination as it is written: query and anchor."""
    _, question, query = link.path.partition("?")
    anchor = f"#{link.anchor}" if link.anchor is not None else ""
    if link.syntax is _WIKI_SYNTAX:
        return anchor
    return question + query + anchor


def _escaped(path: str, unsafe: re.Pattern[str], *, everything: bool) -> str:
    if everything:
        return quote(path, safe="/~!$'*+,;=:@-._")
    return unsafe.sub(lambda match: quote(match.group(), safe=""), path)


def _relative(source: str, target: str) -> str:
    folder = posixpath.dirname(source)
    return posixpath.relpath(f"/{target}", f"/{folder}")


def _wiki_choices(written: str, source: str, target: str) -> Iterator[str]:
    keeps_extension = written.casefold().endswith(_MARKDOWN) or not target.casefold().endswith(_MARKDOWN)

    def shown(path: str) -> str:
        return path if keeps_extension else path[: -len(_MARKDOWN)]

    name = shown(target.rpartition("/")[2])
    relative = shown(_relative(source, target))
    if written.startswith(("./", "../")):
        yield relative if relative.startswith("../") else f"./{relative}"
    elif "/" not in written:
        yield name
    elif written.startswith("/"):
        yield "/" + shown(target)
    # The shortest ending of the whole path that still leads there.
    parts = shown(target).split("/")
    if "/" not in written:
        for count in range(2, len(parts) + 1):
            yield "/".join(parts[-count:])
    yield shown(target)
    yield target
