"""What is wrong with a link, if anything."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from local_vector_search_mcp.index.link_names import LinkNames, fold_name
from local_vector_search_mcp.index.link_rows import Anchors, StoredLink, unpack_anchors
from local_vector_search_mcp.markdown.links import heading_slug
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.entries import IMAGE_SUFFIXES

_DRAWN_SUFFIXES = IMAGE_SUFFIXES | {".svg", ".avif", ".bmp"}


class LinkProblem(StrEnum):
    """What is wrong with a link."""

    MISSING_FILE = "missing_file"
    MISSING_HEADING = "missing_heading"
    MISSING_BLOCK = "missing_block"
    MISSING_IMAGE = "missing_image"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """The file that a link means, and what is wrong with it; None each where there is nothing."""

    path: str | None
    problem: LinkProblem | None = None


class LinkJudge:
    """Judges links over the names that exist.

    Args:
        names: All documents and files.
        anchors_of: The packed anchors of a document, by its path.
    """

    def __init__(self, names: LinkNames, anchors_of: Callable[[str], bytes | None]) -> None:
        self._names = names
        self._anchors_of = anchors_of
        self._anchors: dict[str, Anchors] = {}

    def judge(self, source: str, link: StoredLink) -> LinkVerdict:
        """What a link of the document ``source`` means. A link that leaves the root or names a URL is never wrong."""
        target = self._names.resolve(source, link.kind, link.path)
        if target.outside:
            return LinkVerdict(None)
        if target.candidates:
            return LinkVerdict(None, LinkProblem.AMBIGUOUS)
        if target.path is None:
            drawn = link.kind == "image" or (link.kind == "embed" and RelPath(link.path).suffix in _DRAWN_SUFFIXES)
            return LinkVerdict(None, LinkProblem.MISSING_IMAGE if drawn else LinkProblem.MISSING_FILE)
        if link.anchor is None or target.path not in self._names:
            return LinkVerdict(target.path)
        return LinkVerdict(target.path, self._anchor_problem(target.path, link.anchor))

    def _anchor_problem(self, path: str, anchor: str) -> LinkProblem | None:
        anchors = self._anchors.get(path)
        if anchors is None:
            anchors = self._anchors[path] = unpack_anchors(self._anchors_of(path))
        if anchor.startswith("^"):
            return None if anchor[1:].casefold() in anchors.blocks else LinkProblem.MISSING_BLOCK
        # GitHub compares slugs without regard to case; a heading's own text has the same slug as the heading.
        spellings = (anchor, fold_name(anchor), heading_slug(anchor))
        return None if any(text in anchors.headings for text in spellings) else LinkProblem.MISSING_HEADING
