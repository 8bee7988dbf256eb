"""Link reading: the documents that may hold a link to given files, each read again only where it may have changed.

The files decide, never the index, which may be behind: every document is read once, and that takes its time. So a
reader looks before the workspace lock is taken and again under it; the second look reads what is new, what the system
shows to be another state, and what had been written so shortly before it was read that a second write would not show.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from local_vector_search_mcp.errors import InvalidPath, IoFailure, NotFound, TooLarge, UnsupportedEncoding
from local_vector_search_mcp.index.link_names import LinkNames, fold_name
from local_vector_search_mcp.index.reconcile_plan import needs_recheck
from local_vector_search_mcp.markdown.elements import MarkdownDocument
from local_vector_search_mcp.markdown.frontmatter import read_metadata
from local_vector_search_mcp.markdown.links import Link, extract_links
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileKind, FileSnapshot, FileState
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.neighbours import NeighbourReader

_RUN = re.compile(r"[a-z0-9]+")
# Letters and digits written as escapes, which nobody does and a link may still hold.
_ODD_ESCAPES = re.compile(rb"&#|%(?:3[0-9]|[46][1-9a-f]|[57][0-9a])")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A document that may hold a link that matters, as it was read."""

    snapshot: FileSnapshot
    document: MarkdownDocument
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Every file of the workspace by path, and the aliases of the documents, each with its document."""

    documents: frozenset[str]
    others: frozenset[str]
    aliases: tuple[tuple[str, str], ...]

    def names(self, moves: Mapping[str, str] | None = None) -> LinkNames:
        """The names that links can mean, now or once files have moved."""
        places = moves or {}
        documents = {places.get(path, path) for path in self.documents}
        others = {places.get(path, path) for path in self.others}
        # A folder that everything leaves can still be meant: the links to it follow by themselves.
        folders = _folders([*self.documents, *self.others, *documents, *others])
        return LinkNames(
            documents,
            [(places.get(path, path), alias) for path, alias in self.aliases],
            exists=lambda path: path in others or path in folders or not path,
            other_files=lambda: others,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look found.

    Attributes:
        tree: All files.
        candidates: By path: first the files that were asked about, then the others, each in order.
        warnings: Documents that could not be read.
    """

    tree: Tree
    candidates: Mapping[str, Candidate]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of a document.

    Attributes:
        state: As it was read.
        sure: Whether another state would show if it were written again.
        tokens: Those that it was searched for.
        aliases: Its own.
        candidate: None where it cannot hold a link that matters.
        warning: Why it could not be taken in.
    """

    state: FileState
    sure: bool
    tokens: frozenset[bytes | None]
    aliases: tuple[str, ...] = ()
    candidate: Candidate | None = None
    warning: str | None = None


class LinkReader:
    """Looks through the documents of a workspace; what it has read it remembers for the next look.

    Args:
        workspace: The files.
        now_ns: The wall clock, in nanoseconds since 1970.
    """

    def __init__(self, workspace: Workspace, *, now_ns: Callable[[], int]) -> None:
        self._workspace = workspace
        self._now_ns = now_ns
        self._known: dict[str, _Known] = {}

    def look(self, names: Iterable[str], *, asked: Collection[str]) -> Look:
        """The documents that may hold a link to some files.

        Args:
            names: Of the files, or of their folder, as links spell them.
            asked: Paths of the files themselves: links may name them by their aliases too, and those among them that
                are documents are candidates whatever they hold.

        Raises:
            IoFailure: The root cannot be read.
        """
        files = self._workspace.walk().files
        documents = {file.path.value: file.state for file in files if file.kind is FileKind.MARKDOWN}
        tokens = frozenset(map(_token, names))
        known: dict[str, _Known] = {}
        with self._workspace.neighbours() as reader:
            for path in sorted(path for path in asked if path in documents):
                found = self._look_at(reader, path, documents[path], tokens, certain=True)
                if found is not None:
                    known[path] = found
                    tokens |= frozenset(map(_token, found.aliases))
            for path in sorted(documents.keys() - set(asked)):
                found = self._look_at(reader, path, documents[path], tokens, certain=False)
                if found is not None:
                    known[path] = found
        self._known = known
        tree = Tree(
            documents=frozenset(documents),
            others=frozenset(file.path.value for file in files) - documents.keys(),
            aliases=tuple((path, alias) for path, each in known.items() for alias in each.aliases),
        )
        return Look(
            tree=tree,
            candidates={path: each.candidate for path, each in known.items() if each.candidate is not None},
            warnings=tuple(each.warning for each in known.values() if each.warning is not None),
        )

    def _look_at(
        self, reader: NeighbourReader, path: str, state: FileState, tokens: frozenset[bytes | None], *, certain: bool
    ) -> _Known | None:
        """What is known of a document, read again where it has to be; None where it has gone since the walk."""
        known = self._known.get(path)
        if (
            known is not None
            and known.sure
            and known.state == state
            and (known.candidate is not None or (known.tokens >= tokens and not certain))
        ):
            return known
        read_at_ns = self._now_ns()
        try:
            # The walk has just applied the rules, so that only the bytes are wanted.
            snapshot = reader.read(RelPath(path), max_bytes=self._workspace.rules.max_file_bytes)
            candidate = known.candidate if known is not None else None
            if candidate is not None and candidate.snapshot.data == snapshot.data:
                candidate = Candidate(snapshot=snapshot, document=candidate.document, links=candidate.links)
            elif certain or _may_mention(snapshot.data, tokens):
                document = parse_bytes(snapshot.data)
                candidate = Candidate(snapshot=snapshot, document=document, links=tuple(extract_links(document)))
            else:
                candidate = None
            return _Known(
                state=snapshot.identity.state,
                sure=not needs_recheck(snapshot.identity.state, read_at_ns=read_at_ns),
                tokens=tokens,
                aliases=_aliases(snapshot.data),
                candidate=candidate,
            )
        except NotFound:
            return None
        except (UnsupportedEncoding, TooLarge, InvalidPath, IoFailure) as error:
            warning = f"Links in {path} were not looked at: {error.message}"
            return _Known(state=state, sure=False, tokens=tokens, warning=warning)


def _aliases(data: bytes) -> tuple[str, ...]:
    head = data[:5].removeprefix(b"\xef\xbb\xbf")
    if not head.startswith((b"--", b"++")) or b"alias" not in data[:65_536]:
        return ()
    return tuple(fold_name(alias) for alias in read_metadata(parse_bytes(data)).aliases)


def _folders(paths: Iterable[str]) -> set[str]:
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def _token(name: str) -> bytes | None:
    """The longest part of a name that a link to it writes as it is; None where there is none."""
    stem = name.rpartition(".")[0] or name
    runs: list[str] = _RUN.findall(stem.casefold())
    return max(runs, key=len).encode("ascii") if runs else None


def _may_mention(data: bytes, tokens: Iterable[bytes | None]) -> bool:
    lowered = data.lower()
    return any(token is None or token in lowered for token in tokens) or _ODD_ESCAPES.search(lowered) is not None
