"""Globs: patterns over whole root-relative paths, compiled so that matching never backtracks without bound.

``*``, ``?`` and ``[…]`` stay within a segment, ``**`` as a whole segment stands for any number of segments, none
included, and ``{a,b}`` for either. A glob without ``/`` matches the file name anywhere. Case counts; both sides are
in Unicode form NFC. Touches no disk.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from local_vector_search_mcp.errors import InvalidArgument

_MAX_LENGTH = 1_000
_MAX_ALTERNATIVES = 256
_MAGIC = re.compile(r"[*?\[]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Glob:
    """A compiled glob; make it with ``compile_glob``."""

    pattern: str
    alternatives: tuple[tuple[str, ...], ...]  # Braces expanded; each split into its segments.
    by_name: bool  # The file name alone decides.
    _regex: re.Pattern[str] = field(repr=False, compare=False)
    _folder_regex: re.Pattern[str] | None = field(repr=False, compare=False)

    def matches(self, path: str) -> bool:
        """Whether a whole path in NFC, such as ``notes/plan.md``, fits."""
        subject = path.rpartition("/")[2] if self.by_name else path
        return self._regex.match(subject) is not None

    def covers_folder(self, folder: str) -> bool:
        """Whether everything below a folder fits, so that a walk need not enter it."""
        return self._folder_regex is not None and self._folder_regex.match(folder) is not None

    def may_match_below(self, folder: str) -> bool:
        """False only where nothing below a folder can fit; judged by the plain segments that a glob begins with."""
        if self.by_name:
            return True
        parts = folder.split("/")
        return any(_may_lead_to(segments, parts) for segments in self.alternatives)


def compile_glob(pattern: str) -> Glob:
    """Compile one glob.

    Raises:
        InvalidArgument: It is empty, too long, or malformed; the message says what is wrong.
    """
    text = _checked(pattern)
    alternatives = tuple(dict.fromkeys(tuple(_segments(pattern, each)) for each in _expand(pattern, text)))
    by_name = all(len(segments) == 1 and segments[0] != "**" for segments in alternatives)
    if not by_name:
        # One side of a brace without '/' keeps its own meaning: the file name anywhere.
        alternatives = tuple(
            ("**", *segments) if len(segments) == 1 and segments[0] != "**" else segments for segments in alternatives
        )
    bodies = [_translate(pattern, segments) for segments in alternatives]
    folders = [_translate(pattern, head) for segments in alternatives if (head := _folder_part(segments)) is not None]
    return Glob(
        pattern=pattern,
        alternatives=alternatives,
        by_name=by_name,
        _regex=_union(bodies),
        _folder_regex=_union(folders) if folders else None,
    )


def compile_globs(patterns: Sequence[str]) -> tuple[Glob, ...]:
    """Compile several globs, in order.

    Raises:
        InvalidArgument: One of them is malformed.
    """
    return tuple(compile_glob(pattern) for pattern in patterns)


def is_plain(segment: str) -> bool:
    """Whether a segment of an expanded glob holds no wildcard."""
    return _MAGIC.search(segment) is None


def _checked(pattern: str) -> str:
    if not pattern:
        raise InvalidArgument("A glob is empty; write one such as **/*.md.")
    if len(pattern) > _MAX_LENGTH:
        raise InvalidArgument(f"A glob is longer than {_MAX_LENGTH} characters; shorten it.")
    try:
        pattern.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument("A glob holds a lone surrogate; give it as valid Unicode.") from error
    if _CONTROL.search(pattern):
        raise _bad(pattern, "holds a control character")
    if "\\" in pattern:
        raise _bad(pattern, "holds a backslash; separate folders with '/', and put a special character in brackets")
    return unicodedata.normalize("NFC", pattern.removeprefix("./"))


def _bad(pattern: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"The glob {pattern!r} {problem}.")


def _expand(pattern: str, text: str) -> list[str]:
    """Replace ``{a,b}`` by its alternatives, nested ones included; brackets protect braces."""
    pending = [text]
    done: list[str] = []
    while pending:
        current = pending.pop()
        found = _first_brace(pattern, current)
        if found is None:
            done.append(current)
        else:
            start, end, choices = found
            pending.extend(current[:start] + choice + current[end:] for choice in reversed(choices))
        if len(pending) + len(done) > _MAX_ALTERNATIVES:
            raise _bad(pattern, f"stands for more than {_MAX_ALTERNATIVES} alternatives; use fewer braces")
    return done


def _first_brace(pattern: str, text: str) -> tuple[int, int, list[str]] | None:
    """The first outermost brace group: where it starts and ends, and its choices."""
    depth, start, choice_start = 0, -1, -1
    choices: list[str] = []
    for position, character in _outside_brackets(pattern, text):
        if character == "{":
            depth += 1
            if depth == 1:
                start, choice_start = position, position + 1
        elif character == "}":
            depth -= 1
            if depth < 0:
                raise _bad(pattern, "has a '}' without its '{'")
            if depth == 0:
                choices.append(text[choice_start:position])
                return start, position + 1, choices
        elif character == "," and depth == 1:
            choices.append(text[choice_start:position])
            choice_start = position + 1
    if depth:
        raise _bad(pattern, "has a '{' without its '}'")
    return None


def _outside_brackets(pattern: str, text: str) -> Iterator[tuple[int, str]]:
    position = 0
    while position < len(text):
        if text[position] == "[":
            position = _bracket_end(pattern, text, position)
        else:
            yield position, text[position]
            position += 1


def _bracket_end(pattern: str, text: str, start: int) -> int:
    """The place after the ``]`` that closes the set opened at ``start``; a ``]`` that comes first is a member."""
    first = start + 2 if text[start + 1 : start + 2] in ("!", "^") else start + 1
    end = text.find("]", first + 1)
    if end < 0:
        raise _bad(pattern, "has a '[' without its ']'")
    if "/" in text[start:end]:
        raise _bad(pattern, "has a '/' inside brackets")
    return end + 1


def _segments(pattern: str, text: str) -> Iterator[str]:
    """Segments of one alternative; neighbouring ``**`` count once."""
    previous = ""
    for segment in text.removeprefix("/").split("/"):
        if not segment:
            raise _bad(pattern, "has an empty segment; write single slashes, and folder/** for all that is in a folder")
        if segment in (".", ".."):
            raise _bad(pattern, "has a '.' or '..' segment; globs start at the root")
        if not (segment == previous == "**"):
            yield segment
        previous = segment


def _folder_part(segments: tuple[str, ...]) -> tuple[str, ...] | None:
    """What a folder must fit for everything below it to fit, or None where no folder is sure to."""
    if segments[-1] == "**" or segments == ("*",):
        return segments
    if segments[-2:] == ("**", "*"):
        return segments[:-1]
    return None


def _may_lead_to(segments: tuple[str, ...], parts: Sequence[str]) -> bool:
    for segment, part in zip(segments, parts, strict=False):
        if segment == "**":
            return True
        if is_plain(segment) and segment != part:
            return False
    return len(segments) > len(parts) or "**" in segments


def _union(bodies: Sequence[str]) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(bodies)})\\Z", re.DOTALL)


def _translate(pattern: str, segments: tuple[str, ...]) -> str:
    """One alternative as a regular expression.

    Between two ``**`` the first place where the segments fit is as good as any later one, so each such group is
    atomic: the matcher never comes back to it, and the time stays linear in the path for a given glob.
    """
    groups: list[list[str]] = [[]]
    for segment in segments:
        if segment == "**":
            groups.append([])
        else:
            groups[-1].append(_translate_segment(pattern, segment))
    head, *rest = ["/".join(group) for group in groups]
    if not rest:
        return head
    *middle, tail = rest
    body = head
    # A ``**`` that stands between takes its own slash; at the very end it also stands for nothing at all.
    glue = "/" if head else ""
    for group in middle:
        body += f"{glue}(?>(?:[^/]+/)*?{group}(?=/|\\Z))"
        glue = "/"
    if tail:
        return f"{body}{glue}(?:[^/]+/)*?{tail}"
    return f"{body}(?:/.*)?" if body else ".*"


def _translate_segment(pattern: str, segment: str) -> str:
    """One segment; a star and what follows it up to the next star are atomic, as between two ``**``."""
    pieces: list[str] = [""]
    position = 0
    while position < len(segment):
        character = segment[position]
        if character == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
            position += 1
        elif character == "?":
            pieces[-1] += "[^/]"
            position += 1
        elif character == "[":
            end = _bracket_end(pattern, segment, position)
            pieces[-1] += _translate_set(pattern, segment[position + 1 : end - 1])
            position = end
        else:
            pieces[-1] += re.escape(character)
            position += 1
    head, *rest = pieces
    if not rest:
        return head
    *middle, tail = rest
    inner = "".join(f"(?>[^/]*?{piece})" for piece in middle)
    # The segment has to end here, so that the greedy star gives back once only.
    return f"{head}{inner}[^/]*{tail}(?![^/])" if tail else f"{head}{inner}[^/]*"


def _translate_set(pattern: str, body: str) -> str:
    negated = body[0] in "!^"
    members = body[1:] if negated else body
    parts: list[str] = []
    position = 0
    while position < len(members):
        first = members[position]
        if position + 2 < len(members) and members[position + 1] == "-":
            last = members[position + 2]
            if last < first:
                raise _bad(pattern, f"has the range {first}-{last} the wrong way round")
            parts.append(f"{re.escape(first)}-{re.escape(last)}")
            position += 3
        else:
            parts.append(re.escape(first))
            position += 1
    inner = "".join(parts)
    return f"[^/{inner}]" if negated else f"(?!/)[{inner}]"
