"""Patch operations as a closed union of values, and how they are read from a caller's objects.

An operation says what is meant; it knows nothing of any document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from local_vector_search_mcp.errors import InvalidArgument, InvalidPointer
from local_vector_search_mcp.markdown.pointers import Pointer, parse_pointer, split_full_pointer
from local_vector_search_mcp.markdown.source import ByteRange
from local_vector_search_mcp.relpath import RelPath

MAX_OPERATIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceElement:
    """Replace the own bytes of one element."""

    pointer: Pointer
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceSubtree:
    """Replace a list item with everything in it."""

    pointer: Pointer
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceSection:
    """Replace a heading's section."""

    pointer: Pointer
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceText:
    """Replace a literal text inside one element's own bytes."""

    pointer: Pointer
    find: str
    replace: str
    count: int = 1  # How often the text must occur, >= 1.


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Remove one element; a heading alone, a list item with its subtree."""

    pointer: Pointer


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSection:
    """Remove a heading's section."""

    pointer: Pointer


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertBefore:
    """Insert elements before an element, or at the document's start."""

    pointer: Pointer
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertAfter:
    """Insert elements after an element, or at the document's end."""

    pointer: Pointer
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendToSection:
    """Insert elements at the end of a heading's section."""

    pointer: Pointer
    markdown: str
    after_subsections: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBefore:
    """Move an element, an item's subtree or a section before another element."""

    pointer: Pointer
    target: Pointer
    section: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAfter:
    """Move an element, an item's subtree or a section after another element."""

    pointer: Pointer
    target: Pointer
    section: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteElement:
    """Give own segments of one element exact bytes that were made for it; it stays one element of its kind.

    No caller's object is read as this: it is what edits of tables, front matter, links and found texts come to.
    """

    segments: tuple[tuple[ByteRange, bytes], ...]


Replacement = ReplaceElement | ReplaceSubtree | ReplaceSection | ReplaceText
Deletion = Delete | DeleteSection
Insertion = InsertBefore | InsertAfter | AppendToSection
Move = MoveBefore | MoveAfter
AddressedOperation = Replacement | Deletion | Insertion | Move
Operation = AddressedOperation | RewriteElement

KINDS: Mapping[str, frozenset[str]] = {
    "replace_element": frozenset({"markdown"}),
    "replace": frozenset({"markdown"}),
    "replace_subtree": frozenset({"markdown"}),
    "replace_section": frozenset({"markdown"}),
    "replace_text": frozenset({"find", "replace", "count"}),
    "delete": frozenset(),
    "delete_section": frozenset(),
    "insert_before": frozenset({"markdown"}),
    "insert_after": frozenset({"markdown"}),
    "append_to_section": frozenset({"markdown", "afterSubsections"}),
    "move_before": frozenset({"target", "section"}),
    "move_after": frozenset({"target", "section"}),
}
"""Every kind of operation with the fields it takes besides ``kind`` and ``pointer``."""

_ALIASES = {"content": "markdown", "text": "markdown", "after_subsections": "afterSubsections"}


def read_operations(
    items: Sequence[Mapping[str, object]], *, path: str | None = None
) -> tuple[AddressedOperation, ...]:
    """The operations of a call, in order.

    Args:
        items: One object for each operation, with the field names of the tool.
        path: The document's path; a full pointer must name it.

    Raises:
        InvalidArgument: No operations or too many; a field is missing, unknown or of the wrong type.
        InvalidPointer: A pointer is malformed.
    """
    # Callers hand over any JSON, whatever the annotation says.
    given = cast("object", items)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidArgument("operations must be an array of objects.")
    if not 1 <= len(items) <= MAX_OPERATIONS:
        raise InvalidArgument(f"operations holds {len(items)} objects; give 1 to {MAX_OPERATIONS}.")
    for index, item in enumerate(cast("Sequence[object]", given)):
        if not isinstance(item, Mapping):
            raise InvalidArgument(f"Operation {index} is no object.", details={"operation": index})
    return tuple(_read(item, index, path) for index, item in enumerate(items))


def path_of_operations(items: Sequence[Mapping[str, object]]) -> str | None:
    """The path that the first full pointer among the operations names, if there is one."""
    given = cast("object", items)
    if not isinstance(given, Sequence) or isinstance(given, str):
        return None
    for item in cast("Sequence[object]", given):
        pointer = cast("Mapping[object, object]", item).get("pointer") if isinstance(item, Mapping) else None
        if isinstance(pointer, str):
            path, _ = split_full_pointer(pointer)
            if path is not None:
                return path
    return None


def names_path(text: str, path: str) -> bool:
    """Whether a path as a caller wrote it is a given one, in whatever Unicode form.

    Raises:
        InvalidPath: It is no root-relative path.
    """
    return RelPath.parse(text).value == path


def _read(item: Mapping[str, object], index: int, path: str | None) -> AddressedOperation:
    fields = _Fields(item, index, path)
    pointer = fields.pointer("pointer")
    kind = fields.kind
    match kind:
        case "replace_element" | "replace":
            return ReplaceElement(pointer=pointer, markdown=fields.text("markdown"))
        case "replace_subtree":
            return ReplaceSubtree(pointer=pointer, markdown=fields.text("markdown"))
        case "replace_section":
            return ReplaceSection(pointer=pointer, markdown=fields.text("markdown"))
        case "replace_text":
            return ReplaceText(
                pointer=pointer,
                find=fields.text("find", empty=False),
                replace=fields.text("replace"),
                count=fields.count("count", 1),
            )
        case "delete":
            return Delete(pointer=pointer)
        case "delete_section":
            return DeleteSection(pointer=pointer)
        case "insert_before":
            return InsertBefore(pointer=pointer, markdown=fields.text("markdown"))
        case "insert_after":
            return InsertAfter(pointer=pointer, markdown=fields.text("markdown"))
        case "append_to_section":
            after = fields.flag("afterSubsections")
            return AppendToSection(pointer=pointer, markdown=fields.text("markdown"), after_subsections=after)
        case "move_before":
            return MoveBefore(pointer=pointer, target=fields.pointer("target"), section=fields.flag("section"))
        case _:
            return MoveAfter(pointer=pointer, target=fields.pointer("target"), section=fields.flag("section"))


class _Fields:
    """The checked fields of one operation's object."""

    def __init__(self, item: Mapping[str, object], index: int, path: str | None) -> None:
        self.index = index
        self.path = path
        self.values: dict[str, object] = {}
        for name, value in item.items():
            canonical = _ALIASES.get(name, name)
            if canonical in self.values:
                raise self.refusal(f"gives {canonical} twice")
            if value is not None:
                self.values[canonical] = value
        self.kind = self._kind()
        allowed = KINDS[self.kind] | {"kind", "pointer"}
        unknown = sorted(set(self.values) - allowed)
        if unknown:
            takes = ", ".join(sorted(KINDS[self.kind])) or "no further field"
            raise self.refusal(f"({self.kind}) has the unknown field {unknown[0]!r}; it takes {takes}")

    def refusal(self, what: str) -> InvalidArgument:
        """An ``INVALID_ARGUMENT`` that names this operation."""
        return InvalidArgument(f"Operation {self.index} {what}.", details={"operation": self.index})

    def _kind(self) -> str:
        kind = self.values.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            raise self.refusal(f"has the kind {kind!r}; give one of {', '.join(KINDS)}")
        return kind

    def text(self, name: str, *, empty: bool = True) -> str:
        """A required string."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise self.refusal(f"({self.kind}) needs {name}, a string")
        if not value and not empty:
            raise self.refusal(f"({self.kind}) has an empty {name}; give the text to look for")
        return value

    def flag(self, name: str) -> bool:
        """An optional boolean, false by default."""
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise self.refusal(f"({self.kind}) needs a boolean {name}")
        return value

    def count(self, name: str, default: int) -> int:
        """An optional integer of at least 1."""
        value = self.values.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.refusal(f"({self.kind}) needs a {name} of 1 or more")
        return value

    def pointer(self, name: str) -> Pointer:
        """A required pointer, full or not."""
        value = self.text(name)
        path, pointer = split_full_pointer(value)
        if path is not None and self.path is not None and not names_path(path, self.path):
            raise self.refusal(f"points into {path}, the call is about {self.path}")
        try:
            return parse_pointer(pointer)
        except InvalidPointer as error:
            raise InvalidPointer(
                f"Operation {self.index}: {error.message}", details={**error.details, "operation": self.index}
            ) from error
