"""The structural check: parse the proposal again and prove that everything else survived.

In order, the new document's elements must be the untouched elements of the old one, with the same kind,
bytes, parent item and list, and at each target the elements that the new text gives on its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from local_vector_search_mcp.editing.fragments import Piece
from local_vector_search_mcp.editing.list_edits import is_item, marker_of
from local_vector_search_mcp.editing.plan import NewElements, Plan
from local_vector_search_mcp.markdown.elements import Element, MarkdownDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first place where a proposal does not hold what it must.

    Attributes:
        at: The old element index of the place, for finding the operation that causes it.
        expected: The untouched element that does not survive; None where it is the new text that reads otherwise.
        piece: The element of the new text that reads otherwise.
        operation: The operation whose text that is.
        actual: What stands there instead; None at the end of the document.
        why: ``kind``, ``bytes``, ``parent``, ``split``, ``merged``, ``missing`` or ``extra``.
    """

    at: int
    expected: Element | None
    piece: Piece | None
    operation: int | None
    actual: Element | None
    why: str


@dataclass(slots=True, kw_only=True)
class Survival:
    """Where everything stands in the proposal.

    Attributes:
        new_index: Per old element its index in the proposal; -1 where it is gone.
        placed: Per operation the indexes of the elements that it put in.
        joined: Pairs of elements (last of one bullet list, first of the next) whose lists a deletion joined.
    """

    new_index: list[int]
    placed: list[list[int]]
    joined: list[tuple[Element, Element]]


def compare(plan: Plan, proposal: MarkdownDocument) -> Survival | Mismatch:
    """Match the proposal's elements with what the plan says that they must be."""
    return _Comparison(plan, proposal).run()


class _Comparison:
    def __init__(self, plan: Plan, proposal: MarkdownDocument) -> None:
        self.plan = plan
        self.old = plan.document.elements
        self.new = proposal.elements
        self.old_data = plan.document.source.data
        self.new_data = proposal.source.data
        self.survival = Survival(new_index=[-1] * len(self.old), placed=[[] for _ in plan.targets], joined=[])
        self.position = 0
        # Lists are told apart by the old document's ids, or by (group, id) for lists that a text brings.
        self.new_list_of: dict[int | tuple[int, int], int] = {}
        self.old_lists_of: dict[int, set[int]] = {}
        self.text_lists_of: dict[int, tuple[int, int]] = {}

    def run(self) -> Survival | Mismatch:
        """Walk both sequences once."""
        groups = _by_place(self.plan.new)
        start = 0
        for place in sorted({*groups, len(self.old)}):
            mismatch = self._kept(start, place)
            start = place
            for number, group in groups.get(place, []):
                mismatch = mismatch or self._group(number, group)
            if mismatch is not None:
                return mismatch
        if self.position < len(self.new):
            extra = self.new[self.position]
            return Mismatch(at=len(self.old), expected=None, piece=None, operation=None, actual=extra, why="extra")
        return self.survival

    def _kept(self, first: int, last: int) -> Mismatch | None:
        """Compare the untouched elements of an index range."""
        old, new, removed, replaced = self.old, self.new, self.plan.removed, self.plan.replaced
        old_data, new_data, new_index = self.old_data, self.new_data, self.survival.new_index
        position, count = self.position, len(self.new)
        for index in range(first, last):
            if index in removed or index in replaced:
                continue
            element = old[index]
            why = None
            if position >= count:
                return self._mismatch(index, element, None, "missing")
            actual = new[position]
            if actual.kind is not element.kind:
                why = "kind"
            elif element.list_id is None:
                if old_data[element.start : element.end] != new_data[actual.start : actual.end]:
                    why = "bytes"
            else:
                why = self._item(element, actual, element.own_bytes, element.parent, element.list_id)
            if why is not None:
                return self._mismatch(index, element, actual, why)
            new_index[index] = position
            position += 1
            self.position = position
        return None

    def _mismatch(self, index: int, element: Element, actual: Element | None, why: str) -> Mismatch:
        return Mismatch(at=index, expected=element, piece=None, operation=None, actual=actual, why=why)

    def _item(self, element: Element, actual: Element, own: bytes, parent: int | None, list_id: int) -> str | None:
        """Why an item that keeps its place in an old list is not what it must be; None where it is."""
        if own != actual.own_bytes:
            return "bytes"
        wanted_parent = None if parent is None else self.survival.new_index[parent]
        if wanted_parent != actual.parent:
            return "parent"
        return self._old_list(element, actual, list_id)

    def _old_list(self, element: Element, actual: Element, list_id: int) -> str | None:
        assert actual.list_id is not None
        known = self.new_list_of.setdefault(list_id, actual.list_id)
        if known != actual.list_id:
            return "split"
        members = self.old_lists_of.setdefault(actual.list_id, set())
        if members and list_id not in members:
            before = self._joined_by_deletion(element, members)
            if before is None:
                return "merged"
            self.survival.joined.append((before, element))
        members.add(list_id)
        return None

    def _joined_by_deletion(self, element: Element, lists: set[int]) -> Element | None:
        """The last item before ``element`` of a bullet list that only deleted elements kept apart from its list."""
        document = self.plan.document
        if marker_of(document, element).ordered:
            return None
        index = element.index
        while index > 0 and index - 1 in self.plan.deleted_by:
            index -= 1
        if index == element.index or index == 0:
            return None
        if any(index <= group.at <= element.index and group.order for group in self.plan.new):
            return None
        before: Element | None = self.old[index - 1]
        while before is not None and before.list_id not in lists:
            before = self.old[before.parent] if before.parent is not None else None
        return before

    def _group(self, number: int, group: NewElements) -> Mismatch | None:
        """Compare the elements that one operation puts in."""
        base = self.position
        anchor = self.old[group.list_of] if group.list_of is not None else None
        for place, piece in enumerate(group.pieces):
            if self.position >= len(self.new):
                return self._text_mismatch(group, piece, None, "missing")
            actual = self.new[self.position]
            why: str | None = None
            if actual.kind is not piece.kind or actual.level != piece.level:
                why = "kind"
            elif actual.own_bytes != piece.own_bytes:
                why = "bytes"
            elif piece.parent is None and anchor is not None and anchor.list_id is not None:
                why = self._item(anchor, actual, piece.own_bytes, group.parent, anchor.list_id)
            else:
                why = self._text_item(number, group, piece, actual, base)
            if why is not None:
                return self._text_mismatch(group, piece, actual, why)
            self._arrive(group, place)
        return None

    def _text_mismatch(self, group: NewElements, piece: Piece, actual: Element | None, why: str) -> Mismatch:
        return Mismatch(at=group.at, expected=None, piece=piece, operation=group.operation, actual=actual, why=why)

    def _text_item(self, number: int, group: NewElements, piece: Piece, actual: Element, base: int) -> str | None:
        parent = base + piece.parent if piece.parent is not None else None
        if piece.parent is None and group.parent is not None:
            parent = self.survival.new_index[group.parent]
        if parent != actual.parent:
            return "parent"
        if piece.list_id is None or actual.list_id is None:
            return None
        mine = (number, piece.list_id)
        if self.new_list_of.setdefault(mine, actual.list_id) != actual.list_id:
            return "split"
        other = self.text_lists_of.setdefault(actual.list_id, mine)
        if other != mine and other[0] == number:
            return "merged"
        return None

    def _arrive(self, group: NewElements, place: int) -> None:
        """Note that a piece of a group stands where the comparison is."""
        if not group.order and place == 0:
            self.survival.new_index[group.at] = self.position
        self.survival.placed[group.operation].append(self.position)
        self.position += 1


def _by_place(groups: Sequence[NewElements]) -> dict[int, list[tuple[int, NewElements]]]:
    """The groups by the old index that they stand before, in the order in which they stand; a replacement last."""
    result: dict[int, list[tuple[int, NewElements]]] = {}
    for number, group in enumerate(groups):
        result.setdefault(group.at, []).append((number, group))
    for places in result.values():
        places.sort(key=lambda pair: (not pair[1].order, pair[1].order))
    return result


def resectioned(plan: Plan, survival: Survival, proposal: MarkdownDocument) -> int:
    """How many untouched elements stand under other headings than before."""
    moved = {index: survival.placed[operation][place] for index, (operation, place) in plan.moved.items()}
    headings_changed = any(
        plan.document.elements[index].level is not None for index in (*plan.removed, *plan.replaced)
    ) or any(piece.level is not None for group in plan.new for piece in group.pieces)
    if not headings_changed:
        return 0
    arrived = {**{index: new for index, new in enumerate(survival.new_index) if new >= 0}, **moved}
    old_owners, new_owners = plan.document.owners, proposal.owners
    chain_changed: dict[int | None, bool] = {None: False}
    count = 0
    for element, owner in zip(plan.document.elements, old_owners, strict=True):
        new = arrived.get(element.index)
        if new is None:
            continue
        new_owner = new_owners[new]
        expected = None if owner is None else arrived.get(owner, -1)
        changed = expected != new_owner or chain_changed.get(owner, True)
        if element.level is not None:
            chain_changed[element.index] = changed
        if changed and element.index not in moved and element.index not in plan.replaced:
            count += 1
    return count


def heading_chain(document: MarkdownDocument, index: int) -> list[Element]:
    """The headings whose sections hold the place before the element of an index, outermost first."""
    if index == 0:
        return []
    before = document.elements[index - 1]
    above = [before] if before.level is not None else []
    owner = document.owners[index - 1]
    while owner is not None:
        above.append(document.elements[owner])
        owner = document.owners[owner]
    return above[::-1]


def item_chain(document: MarkdownDocument, element: Element) -> list[Element]:
    """The list items that hold an element, outermost first."""
    chain: list[Element] = []
    while element.parent is not None:
        element = document.elements[element.parent]
        if is_item(element):
            chain.append(element)
    return chain[::-1]
