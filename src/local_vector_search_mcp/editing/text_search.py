"""Text search in elements: where a literal text or a regular expression occurs, as edits that replace it."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import regex

from local_vector_search_mcp.editing.fragments import encode_text, ending_in_use
from local_vector_search_mcp.editing.text_edits import TextEdit
from local_vector_search_mcp.editing.text_matches import MAX_NEW_BYTES, check_new_size, find_pattern
from local_vector_search_mcp.errors import InvalidArgument, TimedOut
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.source import ByteRange

MAX_PATTERN_CHARACTERS = 2000
_MAX_EXPANDED_SIZE = 50_000
_TIME_LIMIT_S = 2.0
_COUNT = re.compile(r"\{([0-9]+)(?:,[0-9]*)?\}")
_WHOLE_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_CALL_OF_ITSELF = re.compile(r"\(\?(?:R|[+-]?[0-9]|&|P>)")
_NUL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\0")
_ENDING = re.compile(r"\r\n|\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for, and what is to stand there.

    Attributes:
        literal: The text as bytes where it is one, for passing over documents that cannot hold it.
    """

    text: str
    replacement: str
    is_regex: bool

    def may_occur_in(self, data: bytes) -> bool:
        """Whether a document can hold a match at all; cheap."""
        if self.is_regex:
            return True
        first_line = re.split(r"\r\n|\r|\n", self.text)
        return all(part.encode("utf-8") in data for part in first_line)


class Searcher:
    """Finds the matches of one query, within one time limit for all documents together.

    Args:
        query: What is looked for.
        new_bytes: What replacements that were found before have together.

    Attributes:
        new_bytes: The same, with those that were found since.

    Raises:
        InvalidArgument: The expression is malformed, or too long.
    """

    def __init__(self, query: Query, *, new_bytes: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.query = query
        self.new_bytes = new_bytes
        self._clock = clock
        self._left_s = _TIME_LIMIT_S
        self._expression = _compiled(query) if query.is_regex else None
        self._pattern = None if query.is_regex else find_pattern(query.text)

    def edits(self, document: MarkdownDocument, kinds: frozenset[ElementKind]) -> Iterator[TextEdit]:
        """The replacements in the own text of all elements of some kinds, in document order.

        Raises:
            TimedOut: The expression takes too long.
            InvalidArgument: The replacement refers to a group that there is not, or the expression needs too much
                memory.
            TooLarge: All replacements so far are, together.
        """
        found: list[TextEdit] = []
        for element in document.elements:
            if element.kind in kinds:
                for segment in element.segments:
                    found += self._in_segment(document, element, segment)
        return iter(sorted(found, key=lambda edit: edit.range.start))

    def _in_segment(self, document: MarkdownDocument, element: Element, segment: ByteRange) -> list[TextEdit]:
        data = segment.slice(document.source.data)
        if self._pattern is not None:
            spans = [match.span() for match in self._pattern.finditer(data)]
            if not spans:
                return []
            new = encode_text(self.query.replacement, ending_in_use(document.source, element.lines[0]))
            self._count_new(len(new) * len(spans))
            return [TextEdit(ByteRange(segment.start + start, segment.start + end), new) for start, end in spans]
        return self._by_expression(document, element, segment, data.decode("utf-8"))

    def _by_expression(
        self, document: MarkdownDocument, element: Element, segment: ByteRange, text: str
    ) -> list[TextEdit]:
        assert self._expression is not None
        plain = _ENDING.sub("\n", text) if "\r" in text else text
        offset = _ByteOffsets(text, plain, segment.start)
        ending = ending_in_use(document.source, element.lines[0])
        edits: list[TextEdit] = []
        for start, end, replacement in self._matches(plain):
            edits.append(TextEdit(ByteRange(offset.byte(start), offset.byte(end)), encode_text(replacement, ending)))
        return edits

    def _matches(self, text: str) -> list[tuple[int, int, str]]:
        assert self._expression is not None
        started = self._clock()
        try:
            if self._left_s <= 0:
                raise TimeoutError
            result = [
                (match.start(), match.end(), self._expanded(match))
                for match in self._expression.finditer(text, timeout=self._left_s)
                if match.end() > match.start()
            ]
        except TimeoutError as error:
            raise TimedOut(
                f"The regular expression took more than {_TIME_LIMIT_S:g} s; make it simpler, or limit the call with "
                "pathPrefix or includeGlob."
            ) from error
        except MemoryError as error:
            # The library bounds what it remembers for going back.
            raise InvalidArgument("The regular expression needs too much memory; make it simpler.") from error
        except (regex.error, IndexError, KeyError) as error:
            raise InvalidArgument(
                f"The replacement does not fit the expression: {error}. Groups are written \\1 or \\g<name>, a "
                "backslash is doubled."
            ) from error
        self._left_s -= self._clock() - started
        # An expression may ask to be looked for from the end.
        return sorted(result)

    def _expanded(self, match: "regex.Match[str]") -> str:
        replacement = self.query.replacement
        if "\\" not in replacement:
            self._count_new(len(replacement))
            return replacement
        longest = max(len(match[0]), *(len(group or "") for group in match.groups()), 0)
        # Never too small, and known before anything of that size is made.
        if len(replacement) + replacement.count("\\") * longest > MAX_NEW_BYTES:
            check_new_size(MAX_NEW_BYTES + 1)
        new = str(match.expand(replacement))
        self._count_new(len(new))
        return new

    def _count_new(self, size: int) -> None:
        self.new_bytes += size
        check_new_size(self.new_bytes)


class _ByteOffsets:
    """Offsets in a text with plain endings to bytes of the text as it is; asked for in rising order."""

    def __init__(self, text: str, plain: str, base: int) -> None:
        self._text = text
        self._same = text == plain
        self._plain = plain
        self._char = 0
        self._original = 0
        self._byte = base

    def byte(self, char: int) -> int:
        """The byte offset of a character of the plain text."""
        step = self._plain[self._char : char]
        if self._same:
            length = len(step)
        else:
            length = self._original_length(step)
        part = self._text[self._original : self._original + length]
        self._byte += len(part) if part.isascii() else len(part.encode("utf-8"))
        self._original += length
        self._char = char
        return self._byte

    def _original_length(self, step: str) -> int:
        place = self._original
        for character in step:
            if character == "\n" and self._text.startswith("\r\n", place):
                place += 1
            place += 1
        return place - self._original


def _expanded_size(pattern: str) -> int:
    """About how many parts an expression has once its least counts are written out, as its compiler does."""
    sizes = [0]
    last = place = 0
    while place < len(pattern):
        character = pattern[place]
        count = _COUNT.match(pattern, place)
        if count is not None:
            times = int(count.group(1)[:9])
            sizes[-1] += last * max(0, times - 1)
            last *= max(1, times)
            place = count.end()
            continue
        if character == "(":
            sizes.append(0)
        elif character == ")" and len(sizes) > 1:
            last = max(1, sizes.pop())
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
        whole = _WHOLE_PART.match(pattern, place)
        place = whole.end() if whole is not None else place + 1
    return sum(sizes)


def _compiled(query: Query) -> "regex.Pattern[str]":
    if len(query.text) > MAX_PATTERN_CHARACTERS:
        raise InvalidArgument(f"The expression has more than {MAX_PATTERN_CHARACTERS} characters; make it shorter.")
    if _NUL_ESCAPE.search(query.replacement):
        # To the library it would be a NUL character, to other programs it is the match.
        raise InvalidArgument("The replacement holds \\0; groups are counted from \\1, and the whole match is \\g<0>.")
    # A part that calls itself before it takes a character fills all memory faster than a time limit is looked at.
    if _CALL_OF_ITSELF.search(_WHOLE_PART.sub("", query.text)):
        raise InvalidArgument("Parts of the expression may not call the expression or other parts; write them out.")
    if _expanded_size(query.text) > _MAX_EXPANDED_SIZE:
        raise InvalidArgument(
            "The expression repeats its parts too often: counts within counts multiply. Use smaller counts, or * and +."
        )
    try:
        return regex.compile(query.text, regex.MULTILINE)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise InvalidArgument(f"The regular expression is malformed: {error}.") from error
