"""Text finding: where a text occurs in documents, each read and searched again only where it may have changed.

A finder looks before the workspace lock is taken and again under it, as ``link_reading`` does for links.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from local_vector_search_mcp.editing.text_edits import TextEdits
from local_vector_search_mcp.editing.text_search import Query, Searcher
from local_vector_search_mcp.errors import InvalidPath, IoFailure, NotFound, TooLarge, UnsupportedEncoding
from local_vector_search_mcp.index.reconcile_plan import needs_recheck
from local_vector_search_mcp.markdown.elements import ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import FileSnapshot, FileState
from local_vector_search_mcp.workspace.files import Workspace
from local_vector_search_mcp.workspace.neighbours import NeighbourReader


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundText:
    """A document in which the text occurs, as it was read, with the edits that replace it."""

    snapshot: FileSnapshot
    document: MarkdownDocument
    edits: TextEdits


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one look found.

    Attributes:
        found: The documents with matches, in order of their paths; all of them only if there are not too many matches.
        total: How many matches there are.
        warnings: Documents that could not be read.
    """

    found: tuple[FoundText, ...]
    total: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of a document.

    Attributes:
        state: As it was read.
        sure: Whether another state would show if it were written again.
        count: How often the text occurs in it.
        new_bytes: What the replacements have together, as the searcher counts them.
        found: None where there are no matches, or where they are beyond the number that is taken.
    """

    state: FileState
    sure: bool
    count: int = 0
    new_bytes: int = 0
    found: FoundText | None = None


class TextFinder:
    """Finds a text in documents of a workspace; what it has found it remembers for the next look.

    Args:
        workspace: The files.
        query: What is looked for.
        kinds: Only in elements of these kinds.
        most: Beyond so many matches only their number is wanted.
        now_ns: The wall clock, in nanoseconds since 1970.

    Raises:
        InvalidArgument: The expression is malformed, or too long.
    """

    def __init__(
        self,
        workspace: Workspace,
        query: Query,
        kinds: frozenset[ElementKind],
        *,
        most: int,
        now_ns: Callable[[], int],
    ) -> None:
        self._workspace = workspace
        self._query = query
        self._kinds = kinds
        self._most = most
        self._now_ns = now_ns
        self._known: dict[str, _Known] = {}
        Searcher(query)  # An expression that is malformed is refused before anything is read.

    def find(self, documents: Mapping[str, FileState]) -> Findings:
        """Look through documents.

        Args:
            documents: Their states by path, as a walk has just found them.

        Raises:
            TimedOut, InvalidArgument, TooLarge: As ``Searcher.edits``.
        """
        known = {path: each for path, each in self._known.items() if each.sure and documents.get(path) == each.state}
        searcher = Searcher(self._query, new_bytes=sum(each.new_bytes for each in known.values()))
        found: list[FoundText] = []
        warnings: list[str] = []
        total = 0
        with self._workspace.neighbours() as reader:
            for path in sorted(documents):
                each = known.get(path)
                if each is not None and each.found is None and 0 < each.count <= self._most - total:
                    # It fits by now, and is counted again as it is searched.
                    searcher.new_bytes -= each.new_bytes
                    each = None
                if each is None:
                    each = self._look_at(reader, RelPath(path), searcher, warnings, self._most - total)
                if each is None:
                    continue
                known[path] = each
                total += each.count
                if each.found is not None and total <= self._most:
                    found.append(each.found)
        self._known = known
        return Findings(found=tuple(found), total=total, warnings=tuple(warnings))

    def _look_at(
        self, reader: NeighbourReader, path: RelPath, searcher: Searcher, warnings: list[str], most: int
    ) -> _Known | None:
        """A document as it is now; None where it has gone since the walk, or cannot be read, which is warned of."""
        read_at_ns = self._now_ns()
        try:
            # The walk has just applied the rules, so that only the bytes are wanted.
            snapshot = reader.read(path, max_bytes=self._workspace.rules.max_file_bytes)
            state = snapshot.identity.state
            sure = not needs_recheck(state, read_at_ns=read_at_ns)
            if not self._query.may_occur_in(snapshot.data):
                return _Known(state=state, sure=sure)
            document = parse_bytes(snapshot.data)
        except NotFound:
            return None
        except (UnsupportedEncoding, TooLarge, InvalidPath, IoFailure) as error:
            warnings.append(f"{path} was passed over: {error.message}")
            return None
        before = searcher.new_bytes
        edits = TextEdits(searcher.edits(document, self._kinds))
        taken = 0 < len(edits) <= most
        return _Known(
            state=state,
            sure=sure,
            count=len(edits),
            new_bytes=searcher.new_bytes - before,
            found=FoundText(snapshot=snapshot, document=document, edits=edits) if taken else None,
        )
