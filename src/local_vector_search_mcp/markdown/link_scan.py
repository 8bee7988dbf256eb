"""Where links stand in inline content and HTML: one pass over the bytes, code and escapes honoured.

CommonMark 0.31.2, 6.1 Code spans, 6.3 Links, 6.6 Raw HTML, and the appendix's bracket stack. Offsets
count bytes of the given text.
"""

import re
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from markdown_it.common.utils import normalizeReference

_TOKEN = re.compile(rb"\\[\s\S]|`+|<|!?\[|\]")
_WIKI = re.compile(rb"\[\[([^\[\]\r\n]+)\]\]")
_ALIAS = re.compile(rb"\\?\|")
_AUTOLINK = re.compile(
    rb"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^<>\x00-\x20]*|[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+)>"
)
_TAG = re.compile(
    rb"""</?[A-Za-z][A-Za-z0-9-]*+
        (?P<attributes>(?:\s++[a-zA-Z_:][a-zA-Z0-9:._-]*+(?:\s*+=\s*+(?:[^"'=<>`\x00-\x20]++|'[^']*+'|"[^"]*+"))?+)*+)
        \s*+/?>""",
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(
    rb"""\s(?P<name>href|src)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^"'=<>`\s]+))""",
    re.VERBOSE | re.IGNORECASE,
)
_SPACE = re.compile(rb"[ \t\r\n]*")
_ANGLES = re.compile(rb"<((?:[^<>\\\r\n]|\\.)*)>")
_BARE = re.compile(rb"(?:[^\x00-\x20\x7f\\()]|\\[^\x00-\x20]|\\(?=[\x00-\x20]))+")
# More open parentheses than a destination may have, before any is closed.
_TOO_DEEP = re.compile(rb"[^\x00-\x20\x7f\\()]*+(?:\([^\x00-\x20\x7f\\()]*+){33}")
_TITLE = re.compile(rb""""(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'|\((?:[^()\\]|\\[\s\S])*\)""")
_LABEL = re.compile(rb"\[((?:[^\[\]\\]|\\[\s\S])*)\]")
_ADDRESS = re.compile(rb"[/#.:]")
_MAX_LABEL = 999
_MAX_PARENTHESES = 32


class LinkKind(StrEnum):
    """What a link is for the reader of the index."""

    LINK = "link"
    IMAGE = "image"
    WIKILINK = "wikilink"
    EMBED = "embed"


class LinkSyntax(StrEnum):
    """How a link is written, and so how its destination must be written."""

    INLINE = "inline"
    ANGLE = "angle"  # Inline, in angle brackets.
    DEFINITION = "definition"
    ANGLE_DEFINITION = "angle_definition"
    HTML = "html"
    WIKI = "wiki"


@dataclass(frozen=True, slots=True)
class FoundLink:
    """A link in a text: where it begins, and the half-open range of its destination."""

    kind: LinkKind
    syntax: LinkSyntax
    start: int
    destination_start: int
    destination_end: int


class _Openers:
    """The brackets that are open; those before a link are none any more, except for images."""

    __slots__ = ("dead", "places")

    def __init__(self) -> None:
        self.places: list[tuple[int, bool]] = []
        self.dead = 0

    def pop(self) -> tuple[int, bool] | None:
        """The innermost opener with whether it is an image's; None where it is missing or dead."""
        if not self.places:
            return None
        start, image = self.places.pop()
        alive = image or len(self.places) >= self.dead
        self.dead = min(self.dead, len(self.places))
        return (start, image) if alive else None

    def kill(self) -> None:
        """No link holds another: the openers before one are dead."""
        self.dead = len(self.places)


def find_links(text: bytes, labels: Collection[str]) -> tuple[list[FoundLink], list[tuple[int, int]]]:
    """The links of inline content, and the ranges that hold no text: code spans, HTML, destinations.

    Args:
        text: The content of one block without container markers.
        labels: The normal forms of all labels that are defined; as ``normalizeReference`` makes them.
    """
    return _InlineScan(text, labels).run()


def find_html_links(text: bytes) -> list[FoundLink]:
    """The ``href`` and ``src`` of the tags in an HTML block; comments hold none."""
    links: list[FoundLink] = []
    pos = 0
    while True:
        start = text.find(b"<", pos)
        if start < 0:
            return links
        if text.startswith(b"<!--", start):
            end = text.find(b"-->", start)
            if end < 0:
                return links
            pos = end + 3
            continue
        match = _TAG.match(text, start)
        if match is None:
            pos = start + 1
            continue
        links.extend(_attributes(match))
        pos = match.end()


def wiki_parts(inner: bytes) -> int:
    """The length of a wikilink's target, which an alias may follow."""
    alias = _ALIAS.search(inner)
    return alias.start() if alias else len(inner)


def address_follows(text: bytes, pos: int) -> bool:
    """Whether ``[[1]]`` before a position is the text of a CommonMark link, as in ``[[1]](#note-1)``, and no wikilink.

    What is no address, as in ``[[Note]](s)``, is prose behind a wikilink.
    """
    found = _destination(text, pos)
    return found is not None and _ADDRESS.search(text, found[0], found[1]) is not None


class _InlineScan:
    def __init__(self, text: bytes, labels: Collection[str]) -> None:
        self.text = text
        self.labels = labels
        self.links: list[FoundLink] = []
        self.silent: list[tuple[int, int]] = []
        self.openers = _Openers()
        self.runs: dict[int, list[int]] | None = None
        self.unclosed: set[bytes] = set()

    def run(self) -> tuple[list[FoundLink], list[tuple[int, int]]]:
        """Look at the whole text."""
        text = self.text
        pos = 0
        while True:
            match = _TOKEN.search(text, pos)
            if match is None:
                return self.links, self.silent
            char = text[match.start()]
            if char == 0x5C:
                pos = match.end()
            elif char == 0x60:
                pos = self._code(match.start(), match.end())
            elif char == 0x3C:
                pos = self._angle(match.start())
            elif char == 0x5D:
                pos = self._close(match.start())
            else:
                pos = self._open(match.start(), match.end())

    def _code(self, start: int, end: int) -> int:
        if self.runs is None:
            self.runs = {}
            for run in re.finditer(rb"`+", self.text):
                self.runs.setdefault(run.end() - run.start(), []).append(run.start())
        length = end - start
        places = self.runs.get(length, [])
        place = bisect_right(places, start)
        if place == len(places):
            return end
        self.silent.append((start, places[place] + length))
        return places[place] + length

    def _angle(self, start: int) -> int:
        text = self.text
        match = _AUTOLINK.match(text, start)
        if match is None:
            match = _TAG.match(text, start)
            if match is not None:
                self.links.extend(_attributes(match))
        end = match.end() if match is not None else self._markup_end(start)
        if end <= start:
            return start + 1
        self.silent.append((start, end))
        return end

    def _markup_end(self, start: int) -> int:
        """The end of a comment, instruction, declaration or CDATA section; 0 where none is."""
        text = self.text
        for opening, closing in ((b"<!--", b"-->"), (b"<?", b"?>"), (b"<![CDATA[", b"]]>"), (b"<!", b">")):
            if text.startswith(opening, start):
                if opening in self.unclosed:
                    return 0
                end = text.find(closing, start + 2)
                if end < 0:
                    # Nothing further on closes it either, so it is not looked for again.
                    self.unclosed.add(opening)
                    return 0
                return end + len(closing)
        return 0

    def _open(self, start: int, end: int) -> int:
        image = self.text[start] == 0x21
        bracket = end - 1
        match = _WIKI.match(self.text, bracket)
        if match is None or address_follows(self.text, match.end()):
            self.openers.places.append((start, image))
            return end
        inner = match.group(1)
        length = wiki_parts(inner)
        target = inner[:length]
        stripped = target.strip(b" \t")
        begin = match.start(1) + len(target) - len(target.lstrip(b" \t"))
        kind = LinkKind.EMBED if image else LinkKind.WIKILINK
        self.links.append(FoundLink(kind, LinkSyntax.WIKI, start, begin, begin + len(stripped)))
        self.silent.append((start, match.start(1) + length))
        return match.end()

    def _close(self, pos: int) -> int:
        opener = self.openers.pop()
        if opener is None:
            return pos + 1
        start, image = opener
        found = _destination(self.text, pos + 1)
        if found is not None:
            first, last, angle, end = found
            kind = LinkKind.IMAGE if image else LinkKind.LINK
            syntax = LinkSyntax.ANGLE if angle else LinkSyntax.INLINE
            self.links.append(FoundLink(kind, syntax, start, first, last))
            self.silent.append((pos + 1, end))
        else:
            end = self._reference_end(start + (2 if image else 1), pos)
            if not end:
                return pos + 1
        if not image:
            self.openers.kill()
        return end

    def _reference_end(self, label_start: int, pos: int) -> int:
        """The end of a reference to a defined label; 0 where there is none."""
        if not self.labels:
            return 0
        match = _LABEL.match(self.text, pos + 1)
        if match is not None and match.group(1):
            return match.end() if self._is_defined(match.group(1)) else 0
        if not self._is_defined(self.text[label_start:pos]):
            return 0
        return match.end() if match is not None else pos + 1

    def _is_defined(self, label: bytes) -> bool:
        return len(label) <= _MAX_LABEL and normalizeReference(label.decode("utf-8")) in self.labels


def _attributes(tag: re.Match[bytes]) -> list[FoundLink]:
    links: list[FoundLink] = []
    base = tag.start("attributes")
    for match in _ATTRIBUTE.finditer(tag.group("attributes")):
        group = match.lastgroup or "bare"
        if b"\n" in match.group(group):
            # No file name has a line ending, and the lines of a quote or an item do not touch in the file.
            continue
        kind = LinkKind.LINK if match.group("name").lower() == b"href" else LinkKind.IMAGE
        links.append(FoundLink(kind, LinkSyntax.HTML, tag.start(), base + match.start(group), base + match.end(group)))
    return links


def _destination(text: bytes, pos: int) -> tuple[int, int, bool, int] | None:
    """Destination range, whether in angle brackets, and the end of ``(destination "title")`` at a position."""
    if not text.startswith(b"(", pos):
        return None
    pos = _skip_space(text, pos + 1)
    angle = text.startswith(b"<", pos)
    if angle:
        match = _ANGLES.match(text, pos)
        if match is None:
            return None
        first, last, pos = match.start(1), match.end(1), match.end()
    else:
        end = _bare_end(text, pos)
        if end < 0:
            return None
        first, last, pos = pos, end, end
    after = _skip_space(text, pos)
    if after > pos or first == last:
        title = _TITLE.match(text, after) if after > pos else None
        pos = _skip_space(text, title.end()) if title is not None else after
    return (first, last, angle, pos + 1) if text.startswith(b")", pos) else None


def _bare_end(text: bytes, pos: int) -> int:
    """The end of a destination with balanced parentheses, possibly empty; -1 where they do not balance."""
    if _TOO_DEEP.match(text, pos):
        return -1
    level = 0
    while pos < len(text):
        match = _BARE.match(text, pos)
        if match is not None:
            pos = match.end()
            continue
        if text[pos] == 0x28:
            level += 1
            if level > _MAX_PARENTHESES:
                return -1
        elif text[pos] == 0x29 and level:
            level -= 1
        else:
            break
        pos += 1
    return pos if level == 0 else -1


def _skip_space(text: bytes, pos: int) -> int:
    match = _SPACE.match(text, pos)
    return match.end() if match else pos
