"""What ``.gitignore`` files say about the entries beside and below them.

pathspec reads the lines; here they are matched entry by entry on the way down, as git does: a folder that is ignored is
not entered, so nothing below it can be taken back in. Only files inside the root count.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from local_vector_search_mcp.workspace.entries import FileState

_STARS = re.compile(r"\*+")
_HARMLESS_STARS = 2
_ANYWHERE = "^(?:.+/)?"  # How pathspec begins a pattern that is not bound to a place.
_TIME_LIMIT_S = 0.2  # A line that needs more for one name is not worth obeying.
_MAX_BYTES = 1_000_000
_REMEMBERED_NAMES = 4_096
_REMEMBERED_FOLDERS = 20_000


@dataclass(frozen=True, slots=True)
class IgnoreVerdict:
    """What one line says about an entry."""

    ignored: bool  # False where the line begins with ``!`` and takes the entry back in.
    line: str


@dataclass(frozen=True, slots=True)
class _Line:
    verdict: IgnoreVerdict
    source: str
    risky: bool
    matches: Callable[[str], bool]


class IgnoreFile:
    """One ``.gitignore``: asked about an entry of its own folder or of one below."""

    def __init__(self, text: str, *, place: str) -> None:
        self.place = place  # The path of the file itself, for messages.
        # Set when a line took too long: a repository may hold lines made to hang whoever matches them.
        self.too_slow = False
        by_name, by_path = _compile(text)
        self._by_name = _Rules(by_name)
        self._by_path = _Rules(by_path)
        # Folders of whose files no line spoke, with a fingerprint of their names: most walks find most folders so.
        self._quiet: dict[str, int] = {}
        self._answers: dict[str, tuple[int, IgnoreVerdict] | None] = {}

    def may_speak_of(self, folder: str, names: Sequence[str]) -> bool:
        """False only where no line fits any of these files; one look spares a look at each.

        Args:
            folder: Where they stand, relative to this file's folder; empty for beside it.
            names: Their names.
        """
        if self.too_slow:
            return False
        listed = "\n".join(names)
        fingerprint = hash(listed)
        if self._quiet.get(folder) == fingerprint:
            return False
        speaks = self._by_name.may_fit(listed)
        if not speaks and self._by_path:
            prefix = f"{folder}/" if folder else ""
            speaks = self._by_path.may_fit("\n".join(prefix + name for name in names))
        if speaks:
            self._quiet.pop(folder, None)
        else:
            if len(self._quiet) >= _REMEMBERED_FOLDERS:
                self._quiet.clear()
            self._quiet[folder] = fingerprint
        return speaks

    def verdict(self, path: str, name: str, *, folder: bool) -> IgnoreVerdict | None:
        """What the last line that fits says.

        Args:
            path: The entry's path relative to this file's folder.
            name: The last segment of ``path``.
            folder: Whether the entry is a folder.
        """
        if self.too_slow:
            return None
        try:
            by_name = self._answer_for_name(f"{name}/" if folder else name)
            by_path = self._by_path.last_fit(f"{path}/" if folder else path) if self._by_path else None
        except TimeoutError:
            self.too_slow = True
            return None
        if by_name is None or by_path is None:
            found = by_name or by_path
        else:
            found = max(by_name, by_path, key=lambda each: each[0])
        return None if found is None else found[1]

    def _answer_for_name(self, name: str) -> tuple[int, IgnoreVerdict] | None:
        if not self._by_name:
            return None
        if name in self._answers:
            return self._answers[name]
        answer = self._by_name.last_fit(name)
        if len(self._answers) < _REMEMBERED_NAMES:
            self._answers[name] = answer
        return answer


class IgnoreCache:
    """``.gitignore`` files by folder, read again when they change."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        """``read`` gives the bytes of a ``.gitignore`` by its root-relative path, or None where there is none."""
        self._read = read
        self._files: dict[str, tuple[FileState, IgnoreFile]] = {}

    def get(self, folder: str, state: FileState | None) -> IgnoreFile | None:
        """The rules of a folder's ``.gitignore``, whose present state is given (None: there is none)."""
        if state is None:
            self._files.pop(folder, None)
            return None
        known = self._files.get(folder)
        if known is not None and known[0] == state:
            return known[1]
        place = f"{folder}/.gitignore" if folder else ".gitignore"
        data = self._read(place) if state[0] <= _MAX_BYTES else None
        if data is None:
            self._files.pop(folder, None)
            return None
        rules = IgnoreFile(data.decode("utf-8", errors="replace"), place=place)
        self._files[folder] = (state, rules)
        return rules


class _Rules:
    """Lines with their number, the later ones stronger."""

    __slots__ = ("_any", "_in_list", "_lines")

    def __init__(self, lines: list[tuple[int, _Line]]) -> None:
        self._lines = lines
        # For many subjects at once, each a line of its own. A wildcard that ran over the end of one would only find
        # too much, and take long.
        in_list = "|".join(line.source for _, line in lines).replace("[^/]", "[^/\n]")
        self._in_list = None if any(line.risky for _, line in lines) else re.compile(in_list, re.MULTILINE)
        # Most entries fit no line at all, which one pattern tells.
        self._any = _matcher("|".join(line.source for _, line in lines), risky=any(line.risky for _, line in lines))

    def __bool__(self) -> bool:
        return bool(self._lines)

    def may_fit(self, subjects: str) -> bool:
        """Whether some line may fit one of the subjects, which stand one on a line."""
        if not self._lines:
            return False
        return self._in_list is None or self._in_list.search(subjects) is not None

    def last_fit(self, subject: str) -> tuple[int, IgnoreVerdict] | None:
        if not self._any(subject):
            return None
        for number, line in reversed(self._lines):
            if line.matches(subject):
                return number, line.verdict
        return None


def _compile(text: str) -> tuple[list[tuple[int, _Line]], list[tuple[int, _Line]]]:
    """The lines that a name alone decides, and the others."""
    # Loaded here because many workspaces have no such file, and starting has to be quick.
    from pathspec.patterns.gitignore import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    by_name: list[tuple[int, _Line]] = []
    by_path: list[tuple[int, _Line]] = []
    for number, line in enumerate(_lines(text)):
        try:
            parsed = GitIgnoreSpecPattern(line)
        except (GitIgnorePatternError, re.error):
            # git lets a malformed line fit nothing.
            continue
        compiled = cast("re.Pattern[str] | None", parsed.regex)  # pyright: ignore[reportUnknownMemberType]
        if parsed.include is None or compiled is None:
            continue
        source = compiled.pattern.replace("(?P<ps_d>", "(?:")
        if line.rstrip().endswith("/**"):
            # It speaks of what is in a folder, not of the folder.
            source += "(?=.)"
        free = source.startswith(_ANYWHERE) and "/" not in line.strip().rstrip("/")
        if free:
            source = "^" + source.removeprefix(_ANYWHERE)
        verdict = IgnoreVerdict(ignored=parsed.include, line=line.strip())
        risky = len(_STARS.findall(line)) > _HARMLESS_STARS
        (by_name if free else by_path).append((number, _Line(verdict, source, risky, _matcher(source, risky=risky))))
    return by_name, by_path


def _lines(text: str) -> list[str]:
    # A line ends at LF; str.splitlines would also break at U+2028 and form feed.
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]


def _matcher(source: str, *, risky: bool) -> Callable[[str], bool]:
    if not risky:
        match = re.compile(source).match
        return lambda subject: match(subject) is not None
    # Many stars can make a backtracking matcher run for ever; this one can be given a time limit.
    import regex

    limited = regex.compile(source)

    def fits(subject: str) -> bool:
        return limited.match(subject, timeout=_TIME_LIMIT_S) is not None

    return fits
