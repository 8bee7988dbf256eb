"""Which file a link means: its target taken apart, and the names of all documents to look it up in. Pure.

Links are resolved when they are asked for, over the names that exist then, so that no row has to change when a
file comes or goes.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

FOREIGN: Final = "\x00"
"""The target path of a link that names a URL; no file has it."""

_WIKI_KINDS: Final = frozenset({"wikilink", "embed"})
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|\\\\")
_MARKDOWN: Final = ".md"


@dataclass(frozen=True, slots=True)
class LinkParts:
    """A link's target, decoded: the columns of ``links`` that resolving reads."""

    path: str
    anchor: str | None
    name_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a link's path means.

    Attributes:
        path: The file; None where there is none, or not exactly one.
        candidates: The documents that fit equally well, where there are several.
        outside: It names a URL or leaves the root, which is never wrong.
    """

    path: str | None = None
    candidates: tuple[str, ...] = ()
    outside: bool = False


def fold_name(text: str) -> str:
    """The key under which names are the same whatever their case and Unicode form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).strip()


def link_parts(kind: str, path: str, anchor: str | None) -> LinkParts:
    """Take a target apart.

    Args:
        kind: ``link``, ``image``, ``wikilink`` or ``embed``.
        path: The part before ``#`` and ``?``, decoded (``Link.path``).
        anchor: The part after ``#``, decoded; None where there is none.
    """
    if kind in _WIKI_KINDS:
        decoded = unicodedata.normalize("NFC", path.strip())
        heading = anchor.rpartition("#")[2].strip() if anchor else None
    else:
        if _SCHEME.match(path):
            return LinkParts(FOREIGN, anchor or None, "")
        decoded = unicodedata.normalize("NFC", path)
        heading = anchor or None
    return LinkParts(decoded, heading or None, name_key(decoded))


def name_key(path: str) -> str:
    """The key under which links to a path are found: its last segment, folded, without ``.md``."""
    key = fold_name(path.rstrip("/").rpartition("/")[2])
    return key.removesuffix(_MARKDOWN) if len(key) > len(_MARKDOWN) else key


class LinkNames:
    """The names that links can mean.

    Args:
        documents: Paths of all documents.
        aliases: Document paths with one folded alias each.
        exists: Whether there is a file or folder of a path that is no document; asked only where it matters.
        other_files: Paths of all files that are no documents; asked at most once, for wikilinks to them.
    """

    def __init__(
        self,
        documents: Iterable[str],
        aliases: Iterable[tuple[str, str]],
        *,
        exists: Callable[[str], bool],
        other_files: Callable[[], Iterable[str]],
    ) -> None:
        self._documents = frozenset(documents)
        self._exists = exists
        self._other_files = other_files
        self._others: dict[str, list[str]] | None = None
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in self._documents:
            self._by_name[name_key(path)].append(path)
        self._by_alias: dict[str, list[str]] = defaultdict(list)
        for path, alias in aliases:
            self._by_alias[alias].append(path)

    def __contains__(self, path: object) -> bool:
        return path in self._documents

    def resolve(self, source: str, kind: str, target_path: str) -> Target:
        """The file that a link of the document ``source`` means.

        Args:
            source: The document that holds the link.
            kind: The link's kind.
            target_path: Its decoded path part; empty means the document itself.
        """
        if target_path == FOREIGN:
            return Target(outside=True)
        if not target_path:
            return Target(path=source)
        folder = source.rpartition("/")[0]
        beside = None if target_path.startswith("/") else _joined(folder, target_path)
        from_root = _joined("", target_path.lstrip("/"))
        if kind in _WIKI_KINDS:
            return self._wiki(target_path, beside, from_root)
        for path in (beside, from_root):
            if path is not None and (path in self._documents or self._exists(path)):
                return Target(path=path or ".")
        leaves = from_root is None or (beside is None and not target_path.startswith("/"))
        return Target(outside=True) if leaves else Target()

    def _wiki(self, target_path: str, beside: str | None, from_root: str | None) -> Target:
        key = name_key(target_path)
        named = self._by_name.get(key, [])
        for place in (beside, from_root):
            if place is None:
                continue
            found = [path for path in named if path == place] or [path for path in named if _same_name(path, place)]
            if len(found) == 1:
                return Target(path=found[0])
            if found:
                return Target(candidates=tuple(sorted(found)))
        if from_root is None:
            return Target(outside=True)
        return self._by_suffix(from_root, named) or self._by_other_file(beside, from_root) or self._alias(target_path)

    def _by_suffix(self, wanted: str, named: list[str]) -> Target | None:
        ending = "/" + _without_markdown(fold_name(wanted))
        found = [path for path in named if _without_markdown("/" + fold_name(path)).endswith(ending)]
        return _one_of(found)

    def _by_other_file(self, beside: str | None, from_root: str) -> Target | None:
        for place in (beside, from_root):
            if place and self._exists(place):
                return Target(path=place)
        if self._others is None:
            self._others = defaultdict(list)
            for path in self._other_files():
                self._others[fold_name(path.rpartition("/")[2])].append(path)
        ending = "/" + fold_name(from_root)
        named = self._others.get(ending.rpartition("/")[2], [])
        return _one_of([path for path in named if ("/" + fold_name(path)).endswith(ending)])

    def _alias(self, target_path: str) -> Target:
        return _one_of(self._by_alias.get(fold_name(target_path), [])) or Target()


def _one_of(found: list[str]) -> Target | None:
    if not found:
        return None
    return Target(path=found[0]) if len(found) == 1 else Target(candidates=tuple(sorted(found)))


def _joined(folder: str, path: str) -> str | None:
    """A path taken from a folder; None where it leaves the root, empty for the root itself."""
    parts = folder.split("/") if folder else []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return None
    return "/".join(parts)


def _same_name(path: str, wanted: str) -> bool:
    return _without_markdown(fold_name(path)) == _without_markdown(fold_name(wanted))


def _without_markdown(folded: str) -> str:
    return folded.removesuffix(_MARKDOWN)
