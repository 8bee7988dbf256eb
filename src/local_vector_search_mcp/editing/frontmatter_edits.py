"""Front matter edits: top-level keys spliced in and out as text.

The YAML library only tells where the entries stand; every other byte of the block stays.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local_vector_search_mcp.editing import yaml_text
from local_vector_search_mcp.errors import InvalidArgument, InvalidFrontmatter, UnsupportedEdit
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.markdown.frontmatter import FrontmatterFormat, parse_metadata, read_metadata
from local_vector_search_mcp.markdown.yaml_values import JsonValue

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_ENDING = re.compile(r"\r\n|\r|\n")
_COLON = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*[ \t]*:")
_COMMENT_AFTER = re.compile(r"[ \t]+#[^\r\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One top-level entry by character offsets into the YAML text.

    Attributes:
        key: The key as text.
        start: Where the key starts (a leading ``?`` included).
        colon: Right after the colon.
        value_start: Where the value starts; None where it is empty.
        end: Where the value's last token ends, blank lines of a block scalar excluded.
        style: Of the value: ``plain``, ``"``, ``'``, ``|``, ``>``, ``flow``, ``block``, ``alias`` or ``empty``.
        column: The column of a block list's or object's entries.
    """

    key: str
    start: int
    colon: int
    value_start: int | None
    end: int
    style: str
    column: int

    @property
    def inline(self) -> bool:
        """Whether the value stands on the key's line, apart from folds of a quoted or flow value."""
        return self.style not in ("block", "|", ">", "empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Root:
    """The top-level mapping: its entries, whether it is written in braces, and the column of its keys."""

    entries: tuple[_Entry, ...]
    flow: bool
    flow_end: int
    column: int
    list_indent: int


def edit_frontmatter(document: MarkdownDocument, set_: Mapping[str, JsonValue], unset: Sequence[str]) -> bytes | None:
    """The front matter block with keys set and removed; None where nothing is left of it.

    Args:
        document: The document; without front matter a new block is made.
        set_: Keys with their new values.
        unset: Keys to remove; absent ones are passed over.

    Returns:
        The block with both fences, without a last line ending.

    Raises:
        InvalidArgument: A key is both set and unset, or a value cannot be held.
        InvalidFrontmatter: The front matter does not parse.
        UnsupportedEdit: It is TOML, or it is written in a way that keys cannot be spliced into.
    """
    both = sorted(set(set_) & set(unset))
    if both:
        raise InvalidArgument(f"The key {both[0]!r} is in both set and unset; give it in one of them.")
    element = document.frontmatter
    if element is None:
        ending = document.source.first_line_ending() or "\n"
        return _new_block(set_, ending)
    metadata = read_metadata(document)
    if metadata.format is FrontmatterFormat.TOML:
        raise UnsupportedEdit("The front matter is TOML, which this tool does not edit; use kb_patch on its pointer.")
    if metadata.warning is not None:
        raise InvalidFrontmatter(
            f"{metadata.warning}. Mend it first with kb_patch (replace_text or replace_element on its pointer)."
        )
    block = element.text
    wanted: dict[str, JsonValue] = {key: value for key, value in metadata.values.items() if key not in set(unset)}
    changed = {key: value for key, value in set_.items() if not _holds(metadata.values, key, value)}
    wanted.update(changed)
    removed = [key for key in dict.fromkeys(unset) if key in metadata.values]
    return _spliced(block, changed, removed, wanted)


def _holds(values: Mapping[str, JsonValue], key: str, value: JsonValue) -> bool:
    return key in values and yaml_text.same_json(values[key], value)


def _new_block(set_: Mapping[str, JsonValue], ending: str) -> bytes | None:
    if not set_:
        return None
    for quote in ("", '"'):
        lines = ["---", *yaml_text.block_lines(dict(set_), 0, quote=quote), "---"]
        block = ending.join(lines).encode("utf-8")
        if _reads(block, set_):
            return block
    raise _cannot_hold()


def _spliced(
    block: str, changed: Mapping[str, JsonValue], removed: Sequence[str], wanted: Mapping[str, JsonValue]
) -> bytes | None:
    lines: list[str] = _LINE.findall(block)
    opening, closing = lines[0], lines[-1]
    inner = "".join(lines[1:-1])
    ending_match = _ENDING.search(opening)
    ending = ending_match.group() if ending_match else "\n"
    if removed and not wanted and not _only_comments(inner, _root(inner)):
        return None
    for quote in ("", '"'):
        for at_fence in (True, False):
            text = _splice(inner, changed, removed, ending, quote=quote, at_fence=at_fence)
            result = (opening + text + closing).encode("utf-8")
            if _reads(result, wanted):
                return result
    raise _cannot_hold()


def _cannot_hold() -> UnsupportedEdit:
    return UnsupportedEdit(
        "The keys cannot be changed one by one here: an anchor that other keys use would go, or a value is beyond what "
        "front matter can hold (64-bit numbers, 64 levels, 10,000 values). Use kb_patch on the front matter's pointer."
    )


def _reads(block: bytes, wanted: Mapping[str, JsonValue]) -> bool:
    """Whether a block is read as exactly these keys and values, and as nothing else of the document."""
    metadata = parse_metadata(block)
    return metadata.warning is None and yaml_text.same_json(dict(metadata.values), dict(wanted))


def _only_comments(inner: str, root: _Root | None) -> bool:
    """Whether comments would be left once every entry is gone."""
    if root is None or root.flow:
        rest = inner if root is None else ""
    else:
        rest = inner
        for entry in reversed(root.entries):
            start, end = _entry_lines(inner, entry)
            rest = rest[:start] + rest[end:]
    return any(line.strip(" \t").startswith("#") for line in _ENDING.split(rest))


def _splice(
    inner: str, changed: Mapping[str, JsonValue], removed: Sequence[str], ending: str, *, quote: str, at_fence: bool
) -> str:
    root = _root(inner)
    if root is not None and root.flow:
        return _splice_flow(inner, root, changed, removed, quote=quote)
    entries = {entry.key: entry for entry in root.entries} if root is not None else {}
    column = root.column if root is not None else 0
    list_indent = root.list_indent if root is not None else 2
    edits: list[tuple[int, int, str]] = []
    for key in removed:
        if key not in entries:
            raise _cannot_hold()
        edits.append((*_entry_lines(inner, entries[key]), ""))
    added: list[str] = []
    for key, value in changed.items():
        entry = entries.get(key)
        if entry is not None:
            edits += _set_value(inner, entry, value, ending, column + list_indent, quote=quote)
        else:
            added += _new_entry(key, value, column, list_indent, quote=quote)
    if added:
        edits.append(_added(inner, root, added, ending, removed, at_fence=at_fence))
    for start, end, text in sorted(edits, reverse=True):
        inner = inner[:start] + text + inner[end:]
    return inner


def _added(
    inner: str, root: _Root | None, lines: Sequence[str], ending: str, removed: Sequence[str], *, at_fence: bool
) -> tuple[int, int, str]:
    text = "".join(line + ending for line in lines)
    if at_fence or root is None or not root.entries:
        return len(inner), len(inner), text
    kept = [entry for entry in root.entries if entry.key not in set(removed)]
    end = _entry_lines(inner, kept[-1] if kept else root.entries[-1])[1]
    return end, end, text


def _new_entry(key: str, value: JsonValue, column: int, list_indent: int, *, quote: str) -> list[str]:
    name = " " * column + yaml_text.key_text(key) + ":"
    if not yaml_text.is_collection(value):
        return [f"{name} {yaml_text.scalar_text(value, quote=quote)}"]
    indent = column + (list_indent if isinstance(value, list) else 2)
    return [name, *yaml_text.block_lines(value, indent, quote=quote)]


def _set_value(
    inner: str, entry: _Entry, value: JsonValue, ending: str, list_indent: int, *, quote: str
) -> list[tuple[int, int, str]]:
    """The splices that give an entry another value, in the style of the old one where that can be."""
    key_line_end = _line_end(inner, entry.colon)
    if entry.inline:
        assert entry.value_start is not None
        has_comment = _COMMENT_AFTER.match(inner, entry.end) is not None
        if not yaml_text.is_collection(value) or entry.style == "flow" or has_comment:
            own_quote = quote or (entry.style if entry.style in ("'", '"') else "")
            text = (
                yaml_text.flow_text(value, quote=own_quote)
                if yaml_text.is_collection(value)
                else (yaml_text.scalar_text(value, quote=own_quote))
            )
            return [(entry.value_start, entry.end, text)]
        block = _block(value, list_indent, ending, quote=quote)
        return [(entry.colon, entry.end, block)]
    start = key_line_end if entry.style == "block" else entry.colon
    literal = _literal(inner, entry, value, ending)
    if literal is not None:
        return [(entry.colon, entry.end, literal)]
    if not yaml_text.is_collection(value):
        text = " " + yaml_text.scalar_text(value, quote=quote)
        if start == entry.colon:
            return [(entry.colon, entry.end, text)]
        return [(entry.colon, entry.colon, text), (start, entry.end, "")]
    if entry.style == "empty":
        comment = _COMMENT_AFTER.match(inner, entry.colon)
        at = comment.end() if comment is not None else entry.colon
        return [(at, at, _block(value, list_indent, ending, quote=quote))]
    indent = entry.column if entry.style == "block" else list_indent
    return [(start, entry.end, _block(value, indent, ending, quote=quote))]


def _literal(inner: str, entry: _Entry, value: JsonValue, ending: str) -> str | None:
    """A literal block in the place of one."""
    if entry.style not in ("|", ">") or not isinstance(value, str) or "\n" not in value:
        return None
    body = inner[entry.colon : entry.end].split("\n", 1)
    indent = len(body[1]) - len(body[1].lstrip(" ")) if len(body) > 1 else 2
    lines = yaml_text.literal_lines(value, indent or 2)
    return " " + ending.join(lines) if lines is not None else None


def _block(value: JsonValue, indent: int, ending: str, *, quote: str) -> str:
    return "".join(ending + line for line in yaml_text.block_lines(value, indent, quote=quote))


def _splice_flow(
    inner: str, root: _Root, changed: Mapping[str, JsonValue], removed: Sequence[str], *, quote: str
) -> str:
    """The same for a mapping that is written in braces."""
    entries = {entry.key: entry for entry in root.entries}
    edits: list[tuple[int, int, str]] = []
    kept = [entry for entry in root.entries if entry.key not in set(removed)]
    for entry in kept:
        if entry.key in changed:
            text = yaml_text.flow_text(changed[entry.key], quote=quote)
            start = entry.value_start if entry.value_start is not None else entry.colon
            edits.append((start, max(start, entry.end), text if entry.value_start is not None else " " + text))
    order = list(root.entries)
    for place, entry in enumerate(order):
        if entry.key not in set(removed):
            continue
        following = order[place + 1 :]
        if following:
            edits.append((entry.start, following[0].start, ""))
        else:
            before = [other for other in order[:place] if other.key not in set(removed)]
            edits.append((before[-1].end if before else entry.start, entry.end, ""))
    added = [
        f"{yaml_text.key_text(key)}: {yaml_text.flow_text(value, quote=quote)}"
        for key, value in changed.items()
        if key not in entries
    ]
    if added:
        at = kept[-1].end if kept else root.flow_end - 1
        edits.append((at, at, (", " if kept else "") + ", ".join(added)))
    for start, end, text in sorted(edits, reverse=True):
        inner = inner[:start] + text + inner[end:]
    return inner


def _entry_lines(inner: str, entry: _Entry) -> tuple[int, int]:
    """The whole lines of an entry, with the last line's ending."""
    start = max(inner.rfind("\n", 0, entry.start), inner.rfind("\r", 0, entry.start)) + 1
    end = _line_end(inner, entry.end)
    match = _ENDING.match(inner, end)
    return start, match.end() if match is not None else end


def _line_end(inner: str, offset: int) -> int:
    match = _ENDING.search(inner, offset)
    return match.start() if match is not None else len(inner)


def _root(inner: str) -> _Root | None:
    """Where the entries stand; None where there is no mapping, only blanks and comments."""
    from ruamel.yaml import YAML

    # The library's annotations are partial, so its values count as Any from here on.
    parser: Any = YAML(typ="safe", pure=True)
    events: list[Any] = list(parser.parse(inner))
    start = next((place for place, event in enumerate(events) if _name(event) == "MappingStartEvent"), None)
    if start is None:
        return None
    opening = events[start]
    flow = bool(opening.flow_style)
    entries = tuple(_entries(inner, events, start + 1))
    column = 0 if flow or not entries else entries[0].start - _line_start(inner, entries[0].start)
    lists = (entry for entry in entries if entry.style == "block" and inner[entry.value_start or 0] == "-")
    indents = [entry.column - column for entry in lists]
    flow_end = next(
        (event.end_mark.index for event in reversed(events) if _name(event) == "MappingEndEvent"), len(inner)
    )
    return _Root(entries=entries, flow=flow, flow_end=flow_end, column=column, list_indent=indents[0] if indents else 2)


def _entries(inner: str, events: Sequence[Any], place: int) -> Iterator[_Entry]:
    while _name(events[place]) != "MappingEndEvent":
        key_first, key_last = place, _last_of(events, place)
        value_first = key_last + 1
        value_last = _last_of(events, value_first)
        place = value_last + 1
        key_start = events[key_first].start_mark.index
        key_end = _end_of(inner, events, key_first, key_last)
        colon = _COLON.match(inner, key_end)
        colon_end = colon.end() if colon is not None else key_end
        question = inner[_line_start(inner, key_start) : key_start]
        if question.strip(" \t") == "?":
            key_start -= len(question) - question.index("?")
        yield _entry(inner, events, key_first, value_first, value_last, key_start, colon_end)


def _entry(inner: str, events: Sequence[Any], key: int, first: int, last: int, key_start: int, colon: int) -> _Entry:
    event = events[first]
    style = _style(event)
    start: int | None = event.start_mark.index
    end = _end_of(inner, events, first, last)
    if style == "empty" or end <= colon:
        style, start, end = "empty", None, colon
    return _Entry(
        key=str(getattr(events[key], "value", "")),
        start=key_start,
        colon=colon,
        value_start=start,
        end=end,
        style=style,
        column=(start - _line_start(inner, start)) if start is not None else 0,
    )


def _style(event: Any) -> str:
    name = _name(event)
    if name == "AliasEvent":
        return "alias"
    if name != "ScalarEvent":
        return "flow" if event.flow_style else "block"
    if event.style:
        return str(event.style)
    return "plain" if event.end_mark.index > event.start_mark.index else "empty"


def _last_of(events: Sequence[Any], place: int) -> int:
    """The place of the last event of the node that begins at a place."""
    depth = 0
    while True:
        name = _name(events[place])
        depth += name in ("MappingStartEvent", "SequenceStartEvent")
        depth -= name in ("MappingEndEvent", "SequenceEndEvent")
        if depth == 0:
            return place
        place += 1


def _end_of(inner: str, events: Sequence[Any], first: int, last: int) -> int:
    """Where the last token of a node ends; of a block collection, where its last line that is no comment does."""
    opening, closing = events[first], events[last]
    start, end = int(opening.start_mark.index), int(closing.end_mark.index)
    if _name(opening) in ("MappingStartEvent", "SequenceStartEvent") and not opening.flow_style:
        leaf = next(event for event in reversed(events[first : last + 1]) if not _name(event).endswith("EndEvent"))
        if _name(leaf) == "ScalarEvent" and leaf.style in ("|", ">"):
            start, end = int(leaf.start_mark.index), int(leaf.end_mark.index)
        else:
            return start + len(_without_comment_lines(inner[start:end]))
    return start + len(inner[start:end].rstrip())


def _without_comment_lines(text: str) -> str:
    """The text without blank and comment lines at its end."""
    text = text.rstrip()
    while True:
        line = _line_start(text, len(text))
        if line == 0 or not text[line:].lstrip(" \t").startswith("#"):
            return text
        text = text[:line].rstrip()


def _line_start(inner: str, offset: int) -> int:
    return max(inner.rfind("\n", 0, offset), inner.rfind("\r", 0, offset)) + 1


def _name(event: Any) -> str:
    return type(event).__name__
