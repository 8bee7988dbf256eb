"""The planner: operations on elements, sections and subtrees → text edits, and what the result must hold.

Everything is resolved against one reading of the document and put together once; nothing is written here.
"""

from collections.abc import Sequence
from typing import assert_never

from local_vector_search_mcp.editing import fragments, seams
from local_vector_search_mcp.editing.fragment_rules import check_one, check_rewritten, check_section, refuse_headings
from local_vector_search_mcp.editing.fragments import Fragment, Piece, refuse_fragment
from local_vector_search_mcp.editing.list_edits import (
    holds_item_on_first_line,
    is_item,
    last_item_before,
    marker_of,
    section_end_index,
    subtree_end_index,
)
from local_vector_search_mcp.editing.operations import (
    AppendToSection,
    Delete,
    DeleteSection,
    InsertAfter,
    InsertBefore,
    MoveAfter,
    MoveBefore,
    Operation,
    ReplaceElement,
    ReplaceSection,
    ReplaceSubtree,
    ReplaceText,
    RewriteElement,
)
from local_vector_search_mcp.editing.plan import NewElements, Plan
from local_vector_search_mcp.editing.seams import Change, GapNeighbours, GapPlace, Placed
from local_vector_search_mcp.editing.targets import Target
from local_vector_search_mcp.editing.text_matches import replace_in_element
from local_vector_search_mcp.errors import KnowledgeBaseError, UnsupportedEdit
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.source import ByteRange


def plan(document: MarkdownDocument, targets: Sequence[Target]) -> Plan:
    """Plan resolved operations, whose targets are known to be disjoint.

    Raises:
        StructureChanged: A text is not what its operation takes.
        UnsupportedEdit: An operation does not take its target.
        Conflict: ``replace_text`` does not find its text as often as it was told.
    """
    planner = _Planner(document, targets)
    for target in targets:
        try:
            planner.add(target)
        except KnowledgeBaseError as error:
            error.details.setdefault("operation", target.index)
            raise
    return planner.plan


class _Planner:
    def __init__(self, document: MarkdownDocument, targets: Sequence[Target]) -> None:
        self.document = document
        self.source = document.source
        self.plan = Plan(document=document, targets=targets)

    def add(self, target: Target) -> None:
        """Plan one operation."""
        operation: Operation = target.operation
        match operation:
            case ReplaceElement():
                self._replace_element(target, operation.markdown)
            case ReplaceSubtree():
                self._replace_subtree(target, operation.markdown)
            case ReplaceSection():
                self._replace_section(target, operation.markdown)
            case ReplaceText():
                self._replace_text(target, operation)
            case RewriteElement():
                self._rewrite(target, operation.segments)
            case Delete() | DeleteSection():
                self._delete(target)
            case InsertBefore() | InsertAfter():
                self._insert(target, operation.markdown, follows=isinstance(operation, InsertAfter))
            case AppendToSection():
                self._append(target, operation)
            case MoveBefore() | MoveAfter():
                self._move(target, operation)
            case _:
                assert_never(operation)

    # Replacements

    def _replace_element(self, target: Target, markdown: str) -> None:
        element = target.required
        ending = self._ending(element)
        if element.kind is ElementKind.FRONTMATTER:
            fragment = fragments.frontmatter_fragment(markdown, ending)
        elif is_item(element):
            self._refuse_shared_line(element)
            wanted = marker_of(self.document, element)
            fragment = fragments.item_fragment(self._without_tail(element, markdown), ending, wanted, nested=False)
        else:
            fragment = fragments.block_fragment(markdown, ending)
            check_one(element, fragment)
        first = element.segments[0]
        pieces = fragment.pieces
        later = element.segments[1:]
        if later:
            own = b"\n".join([pieces[0].own_bytes, *(part.slice(self.source.data) for part in later)])
            pieces = (Piece(kind=pieces[0].kind, own_bytes=own, list_id=pieces[0].list_id),)
        self._change(target, first, fragment.content)
        self._put_in_place(target, element, pieces, last=element.index + 1)

    def _replace_subtree(self, target: Target, markdown: str) -> None:
        element = target.required
        wanted = marker_of(self.document, element)
        fragment = fragments.item_fragment(markdown, self._ending(element), wanted, nested=True)
        self._change(target, element.range, fragment.content)
        self._put_in_place(target, element, fragment.pieces, last=subtree_end_index(self.document, element))

    def _replace_section(self, target: Target, markdown: str) -> None:
        heading = target.required
        fragment = fragments.block_fragment(markdown, self._ending(heading))
        check_section(heading, fragment)
        self._change(target, heading.subtree_range, fragment.content)
        self._put_in_place(target, heading, fragment.pieces, last=section_end_index(self.document, heading))

    def _replace_text(self, target: Target, operation: ReplaceText) -> None:
        element = target.required
        ending = self._ending(element)
        self._rewrite(target, replace_in_element(self.document, element, operation, ending))

    def _rewrite(self, target: Target, segments: Sequence[tuple[ByteRange, bytes]]) -> None:
        element = target.required
        changed = dict(segments)
        parts = [changed.get(segment, segment.slice(self.source.data)) for segment in element.segments]
        own = b"\n".join(part for part in map(fragments.without_blank_ends, parts) if part)
        if not own:
            raise refuse_fragment("The replacement leaves nothing of the element; use delete to remove it.")
        check_rewritten(self.document, element, own)
        for segment, content in segments:
            self._change(target, segment, content)
        piece = Piece(kind=element.kind, own_bytes=own, list_id=element.list_id, level=element.level)
        self._put_in_place(target, element, (piece,), last=element.index + 1)

    def _without_tail(self, item: Element, markdown: str) -> str:
        """The text of an item without the later own segments that it keeps anyway, where a caller sent them along."""
        if len(item.segments) == 1:
            return markdown
        tail = b"\n".join(part.slice(self.source.data) for part in item.segments[1:]).decode("utf-8")
        plain = markdown.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
        plain_tail = "\n" + tail.replace("\r\n", "\n").replace("\r", "\n")
        return plain.removesuffix(plain_tail) if plain.endswith(plain_tail) else markdown

    def _put_in_place(self, target: Target, element: Element, pieces: tuple[Piece, ...], *, last: int) -> None:
        self.plan.replaced[element.index] = target.index
        self.plan.removed.update(range(element.index + 1, last))
        self.plan.new.append(
            NewElements(
                operation=target.index,
                at=element.index,
                order=(),
                pieces=pieces,
                parent=element.parent,
                list_of=element.index if is_item(element) else None,
            )
        )

    # Deletions

    def _delete(self, target: Target) -> None:
        first, last, lines = self._extent(target)
        self._change(target, lines, None)
        indexes = range(first, last)
        self.plan.removed.update(indexes)
        self.plan.deleted_by.update(dict.fromkeys(indexes, target.index))

    def _extent(self, target: Target) -> tuple[int, int, ByteRange]:
        element = target.required
        if target.takes_section:
            return element.index, section_end_index(self.document, element), element.subtree_range
        return element.index, subtree_end_index(self.document, element), element.range

    # Insertions

    def _insert(self, target: Target, markdown: str, *, follows: bool) -> None:
        element = target.element
        if element is None:
            self._insert_at_edge(target, markdown, follows=follows)
            return
        if element.kind is ElementKind.FRONTMATTER and not follows:
            raise UnsupportedEdit("Nothing can stand before front matter; use insert_after, or insert_before document.")
        if is_item(element):
            self._refuse_shared_line(element, siblings=True)
            wanted = marker_of(self.document, element)
            fragment = fragments.item_fragment(markdown, self._ending(element), wanted, nested=True)
        else:
            fragment = fragments.block_fragment(markdown, self._ending(element))
            if follows and element.kind is ElementKind.HEADING:
                refuse_headings(element, fragment)
        self._place_beside(target, element, fragment, follows=follows)

    def _place_beside(self, target: Target, element: Element, fragment: Fragment, *, follows: bool) -> None:
        sibling = is_item(element)
        index = subtree_end_index(self.document, element) if follows else element.index
        gap = seams.gap_after(self.source, element.end) if follows else self._gap_before(element.start)
        self._place(
            target,
            fragment,
            gap,
            index,
            follows=follows,
            ending=self._ending(element),
            rank=self._rank(element) if follows else 0,
            sibling_of=element if sibling else None,
        )

    def _insert_at_edge(self, target: Target, markdown: str, *, follows: bool) -> None:
        elements = self.document.elements
        frontmatter = self.document.frontmatter
        ending = fragments.ending_in_use(self.source, 1)
        fragment = fragments.block_fragment(markdown, ending)
        body = 1 if frontmatter is not None else 0
        if not elements:
            gap, index, follows = seams.whole_gap(self.source), 0, True
        elif follows:
            index = len(elements)
            gap = seams.gap_after(self.source, max(element.end for element in self.document.top_level[-1:]))
        elif len(elements) > body:
            index = body
            gap = self._gap_before(elements[body].start)
        else:
            assert frontmatter is not None
            gap, index, follows = seams.gap_after(self.source, frontmatter.end), 1, True
        self._place(target, fragment, gap, index, follows=follows, ending=ending, rank=1 if follows else 0)

    def _append(self, target: Target, operation: AppendToSection) -> None:
        heading = target.required
        last = section_end_index(self.document, heading)
        if not operation.after_subsections:
            elements = self.document.elements
            inner = range(heading.index + 1, last)
            last = next((index for index in inner if elements[index].kind is ElementKind.HEADING), last)
        end = self._end_before(last)
        ending = self._ending(heading)
        fragment = fragments.block_fragment(operation.markdown, ending)
        refuse_headings(heading, fragment)
        gap = seams.gap_after(self.source, end)
        self._place(target, fragment, gap, last, follows=True, ending=ending, rank=-(heading.level or 0))

    # Moves

    def _move(self, target: Target, operation: MoveBefore | MoveAfter) -> None:
        anchor = target.anchor
        assert anchor is not None
        first, last, lines = self._extent(target)
        elements = self.document.elements[first:last]
        fragment = fragments.moved_fragment(self.document, elements, lines)
        follows = isinstance(operation, MoveAfter)
        self._check_move(target.required, anchor, fragment, operation)
        self._delete(target)
        for index in range(first, last):
            self.plan.deleted_by.pop(index, None)
            self.plan.moved[index] = (target.index, index - first)
        if follows and operation.section and anchor.kind is ElementKind.HEADING:
            # A section moved after a heading goes after that heading's section, not between it and its body.
            gap = seams.gap_after(self.source, anchor.subtree_range.end)
            place = section_end_index(self.document, anchor)
            self._place(
                target,
                fragment,
                gap,
                place,
                follows=True,
                ending=self._ending(anchor),
                rank=-(anchor.level or 0),
            )
            return
        self._place_beside(target, anchor, fragment, follows=follows)

    def _check_move(
        self, element: Element, anchor: Element, fragment: Fragment, operation: MoveBefore | MoveAfter
    ) -> None:
        if anchor.kind is ElementKind.FRONTMATTER and isinstance(operation, MoveBefore):
            raise UnsupportedEdit("Nothing can stand before front matter; move after it.")
        if is_item(element) != is_item(anchor):
            raise UnsupportedEdit(
                "A list item moves only among list items, and nothing else moves next to one; "
                f"{element.logical} is a {element.kind.value}, {anchor.logical} a {anchor.kind.value}."
            )
        if is_item(element):
            self._refuse_shared_line(element, siblings=True)
            self._refuse_shared_line(anchor, siblings=True)
            own, other = marker_of(self.document, element), marker_of(self.document, anchor)
            if own != other:
                raise refuse_fragment(
                    f"{element.logical} begins with {own.describe()}, {anchor.logical} with {other.describe()}; "
                    "an item moves only among items of the same indentation and kind of marker. Insert it anew and "
                    "delete the old one."
                )
        elif isinstance(operation, MoveAfter) and anchor.kind is ElementKind.HEADING and not operation.section:
            refuse_headings(anchor, fragment)

    # Common parts

    def _place(
        self,
        target: Target,
        fragment: Fragment,
        gap: GapPlace,
        index: int,
        *,
        follows: bool,
        ending: bytes,
        rank: int,
        sibling_of: Element | None = None,
    ) -> None:
        self._cut(gap, index)
        self.plan.placed.append(
            Placed(
                operation=target.index,
                gap=gap,
                content=fragment.content,
                ending=ending,
                follows=follows,
                sibling=sibling_of is not None,
                rank=rank,
                first_marker=fragment.first_marker,
                last_marker=fragment.last_marker,
            )
        )
        self.plan.new.append(
            NewElements(
                operation=target.index,
                at=index,
                order=(0 if follows else 1, rank, target.index),
                pieces=fragment.pieces,
                parent=sibling_of.parent if sibling_of is not None else None,
                list_of=sibling_of.index if sibling_of is not None else None,
            )
        )

    def _cut(self, gap: GapPlace, index: int) -> None:
        """Note a gap that is cut, and the list items beside it; it is before the element of that index."""
        self.plan.gaps.append(gap)
        before = last_item_before(self.document, index)
        after = self.document.elements[index] if index < len(self.document.elements) else None
        self.plan.neighbours[gap.key] = GapNeighbours(
            before=marker_of(self.document, before) if before is not None else None,
            after=marker_of(self.document, after) if after is not None and is_item(after) else None,
        )

    def _change(self, target: Target, lines: ByteRange, content: bytes | None) -> None:
        self.plan.changes.append(Change(operation=target.index, range=lines, content=content))
        self.plan.gaps.append(self._gap_before(lines.start))
        self.plan.gaps.append(self._gap_after(lines.end))

    def _gap_before(self, start: int) -> GapPlace:
        return seams.gap_before(self.source, start, floor=self.source.bom_len)

    def _gap_after(self, end: int) -> GapPlace:
        data = self.source.data
        blanks = end
        while blanks < len(data) and data[blanks] in b" \t":
            blanks += 1
        if blanks > end and blanks < len(data) and data[blanks] not in b"\r\n":
            return GapPlace(before=end, after=blanks)
        return seams.gap_after(self.source, end)

    def _end_before(self, index: int) -> int:
        """Where the lines before the element of an index end: of the top-level element before it."""
        element = self.document.elements[index - 1]
        while element.parent is not None:
            element = self.document.elements[element.parent]
        return element.end

    def _ending(self, element: Element) -> bytes:
        return fragments.ending_in_use(self.source, element.lines[0])

    @staticmethod
    def _rank(element: Element) -> int:
        # What belongs to the innermost item or section stands nearest to where that ends.
        if is_item(element):
            return -10 - element.depth
        return -(element.heading.level or 0) if element.heading is not None else 0

    def _refuse_shared_line(self, item: Element, *, siblings: bool = False) -> None:
        if not marker_of(self.document, item).first_on_line:
            raise UnsupportedEdit(
                f"{item.logical} starts on its parent's line, so it takes neither replace_element nor siblings; "
                "use replace_subtree on it or on its parent."
            )
        if not siblings and holds_item_on_first_line(self.document, item):
            raise UnsupportedEdit(
                f"A nested item starts on the first line of {item.logical}, so its own text cannot be replaced alone; "
                "use replace_subtree."
            )
