"""Which files of a workspace are documents: include and exclude globs, ``.gitignore``, and the reason in words.

The walk itself is in ``walking.py``.
"""

import unicodedata
from dataclasses import dataclass

from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import IMAGE_SUFFIXES, MARKDOWN_SUFFIXES, FileKind
from local_vector_search_mcp.workspace.globs import Glob, compile_globs
from local_vector_search_mcp.workspace.ignore import IgnoreFile

DEFAULT_INCLUDE = ("**/*.md",)
DEFAULT_EXCLUDE = (
    "**/.git/**",
    "**/.obsidian/**",
    "**/.trash/**",
    "**/node_modules/**",
    "**/.venv/**",
    "**/venv/**",
    "**/.tox/**",
    "**/.nox/**",
    "**/site-packages/**",
    "**/__pycache__/**",
    "**/.local-vector-search-mcp/**",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRules:
    """What the configuration says about which files are documents."""

    include: tuple[str, ...] = DEFAULT_INCLUDE
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    respect_gitignore: bool = True
    max_file_bytes: int = 16 * 1024 * 1024


class Selection:
    """The rules, compiled.

    Raises:
        InvalidArgument: A glob is malformed.
    """

    def __init__(self, rules: SelectionRules) -> None:
        self.rules = rules
        self._include = compile_globs(rules.include)
        self._exclude = compile_globs(rules.exclude)
        self._include_endings, self._include_others = _split_endings(self._include)
        self._excluded_names, self._exclude_others = _split_names(self._exclude)
        self._document_suffixes = MARKDOWN_SUFFIXES | _suffixes_named(self._include)

    @property
    def document_endings(self) -> tuple[str, ...]:
        """Endings that every selected document has one of; one of them may be empty."""
        return ("",) if self._include_others else self._include_endings

    @property
    def endings_decide(self) -> bool:
        """Whether a name with one of ``document_endings`` is a document's without any further look."""
        return not self._include_others and all(self.is_document_name(f"x{end}") for end in self._include_endings)

    def may_exclude_files(self, endings: tuple[str, ...]) -> bool:
        """False only where no exclude pattern can fit a file whose name ends so, its folders left aside."""
        return bool(self._exclude_others) or any(name.endswith(endings) for name in self._excluded_names)

    def is_document_name(self, name: str) -> bool:
        """Whether a file of this name is read as Markdown, where the rules select it.

        That is the usual suffixes, and those that an include pattern spells out (``**/*.txt``).
        """
        dot = name.rfind(".")
        return dot > 0 and name[dot:].lower() in self._document_suffixes

    def kind_of(self, path: str) -> FileKind:
        """The kind of a file by its name."""
        name = path.rpartition("/")[2]
        if self.is_document_name(name):
            return FileKind.MARKDOWN
        dot = name.rfind(".")
        return FileKind.IMAGE if dot > 0 and name[dot:].lower() in IMAGE_SUFFIXES else FileKind.OTHER

    def includes(self, path: str, name: str) -> bool:
        """Whether an include pattern fits a path whose last segment is ``name``."""
        if name.endswith(self._include_endings):
            return True
        return bool(self._include_others) and any(glob.matches(path) for glob in self._include_others)

    def excludes_file(self, path: str, name: str) -> bool:
        """Whether an exclude pattern fits a file, those that cover one of its folders left aside."""
        if name in self._excluded_names:
            return True
        return bool(self._exclude_others) and any(glob.matches(path) for glob in self._exclude_others)

    def excludes_folder(self, path: str, name: str) -> bool:
        """Whether an exclude pattern covers everything in a folder."""
        return name in self._excluded_names or any(glob.covers_folder(path) for glob in self._exclude_others)

    def may_include_below(self, folder: str) -> bool:
        """False only where no include pattern can fit anything in a folder."""
        return any(glob.may_match_below(folder) for glob in self._include)

    def is_hidden(self, path: str, name: str) -> bool:
        """Whether a name on the path begins with a dot and no include pattern selects the path."""
        return (path.startswith(".") or "/." in path) and not self.includes(path, name)

    def exclusion(self, path: RelPath) -> str | None:
        """The exclude pattern that keeps a path out, in words."""
        for glob in self._exclude:
            if glob.matches(path.value):
                return f"the exclude pattern {glob.pattern!r} keeps it out"
        return None

    def non_inclusion(self, path: RelPath) -> str | None:
        """That no include pattern selects a path, in words."""
        if self.includes(path.value, path.name):
            return None
        return f"no include pattern selects it ({', '.join(self.rules.include) or 'there are none'})"


def ignored_by(files: "tuple[tuple[str, IgnoreFile], ...]", path: str, *, folder: bool) -> str | None:
    """The ``.gitignore`` line that keeps an entry out, in words; its parents are taken to be in.

    Args:
        files: The folders above the entry that have a ``.gitignore``, the root (``""``) first.
        path: The entry's root-relative path.
        folder: Whether the entry is a folder.
    """
    name = path.rpartition("/")[2]
    for place, rules in reversed(files):
        verdict = rules.verdict(path[len(place) + 1 :] if place else path, name, folder=folder)
        if verdict is not None:
            return f"the line {verdict.line!r} of {rules.place} keeps it out" if verdict.ignored else None
    return None


def nfc(text: str) -> str:
    """A name in Unicode form NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _split_endings(globs: tuple[Glob, ...]) -> tuple[tuple[str, ...], tuple[Glob, ...]]:
    """Globs such as ``**/*.md`` ask for an ending only, which one call tells for all of them."""
    endings: list[str] = []
    others: list[Glob] = []
    for glob in globs:
        found = [_plain_ending(segments) for segments in glob.alternatives]
        if all(found):
            endings.extend(filter(None, found))
        else:
            others.append(glob)
    return tuple(endings), tuple(others)


def _plain_ending(segments: tuple[str, ...]) -> str | None:
    last = segments[-1]
    if segments[:-1] not in ((), ("**",)) or not last.startswith("*") or last == "**":
        return None
    ending = last[1:]
    return ending if ending and not any(mark in ending for mark in "*?[") else None


def _split_names(globs: tuple[Glob, ...]) -> tuple[frozenset[str], tuple[Glob, ...]]:
    """Globs such as ``**/node_modules/**`` ask for one name on the way, which a set tells for all of them."""
    names: set[str] = set()
    others: list[Glob] = []
    for glob in globs:
        found = [_plain_name(segments) for segments in glob.alternatives]
        if all(found):
            names.update(filter(None, found))
        else:
            others.append(glob)
    return frozenset(names), tuple(others)


def _plain_name(segments: tuple[str, ...]) -> str | None:
    if len(segments) != 3 or segments[0] != "**" or segments[2] != "**":
        return None
    return segments[1] if not any(mark in segments[1] for mark in "*?[") else None


def _suffixes_named(globs: tuple[Glob, ...]) -> frozenset[str]:
    suffixes: set[str] = set()
    for glob in globs:
        for segments in glob.alternatives:
            suffix = RelPath(segments[-1]).suffix
            if len(suffix) > 1 and not any(mark in suffix for mark in "*?[]") and suffix not in IMAGE_SUFFIXES:
                suffixes.add(suffix)
    return frozenset(suffixes - {".pdf"})
