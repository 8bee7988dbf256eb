"""The pointer grammar: parse and format.

::

    pointer = "document" / logical [ "~" hash [ "~" hash ] ]
    logical = "frontmatter" / section / [ section "." ] leaf
"""

import re
from dataclasses import dataclass

from local_vector_search_mcp.errors import InvalidPointer
from local_vector_search_mcp.markdown.elements import Element, ElementKind

DOCUMENT = "document"

_NUMBER = r"(?:1000000|[1-9][0-9]{0,5})"
_SECTION = rf"{_NUMBER}(?:\.{_NUMBER})*"
_LEAF = rf"(?:(?:p|code|q|t|html|math|fn|ref|hr){_NUMBER}|li{_NUMBER}(?:\.li{_NUMBER})*)"
_POINTER = re.compile(
    rf"(?P<logical>frontmatter|(?:{_SECTION}\.)?{_LEAF}|{_SECTION})"
    r"(?:~(?P<self>[0-9A-Fa-f]{16})(?:~(?P<subtree>[0-9A-Fa-f]{16}))?)?"
)
_LEAF_NAME = re.compile(r"(?:^|\.)([a-z]+)[0-9]+$")
_KINDS = {
    "p": ElementKind.PARAGRAPH,
    "code": ElementKind.CODE,
    "li": ElementKind.LIST_ITEM,
    "q": ElementKind.BLOCK_QUOTE,
    "t": ElementKind.TABLE,
    "html": ElementKind.HTML,
    "math": ElementKind.MATH,
    "fn": ElementKind.FOOTNOTE,
    "ref": ElementKind.DEFINITION,
    "hr": ElementKind.RULE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """A logical address with the hashes it was read with, in lowercase."""

    logical: str
    self_hash: str | None = None
    subtree_hash: str | None = None  # Invariant: None where self_hash is None.

    @property
    def is_document(self) -> bool:
        """Whether it means the whole document, which has no element."""
        return self.logical == DOCUMENT

    @property
    def kind(self) -> ElementKind:
        """The kind of element that the address names."""
        return kind_of_logical(self.logical)

    def __str__(self) -> str:
        return "~".join(part for part in (self.logical, self.self_hash, self.subtree_hash) if part is not None)


def kind_of_logical(logical: str) -> ElementKind:
    """The kind that a well-formed logical address names."""
    if logical == DOCUMENT:
        return ElementKind.DOCUMENT
    if logical == "frontmatter":
        return ElementKind.FRONTMATTER
    leaf = _LEAF_NAME.search(logical)
    return _KINDS[leaf.group(1)] if leaf else ElementKind.HEADING


def parse_pointer(text: str) -> Pointer:
    """Read a pointer.

    Raises:
        InvalidPointer: It does not follow the grammar; the message shows the form.
    """
    if text == DOCUMENT:
        return Pointer(logical=DOCUMENT)
    match = _POINTER.fullmatch(text)
    if match is None:
        raise InvalidPointer(
            f"{_shown(text)} is not a pointer. A pointer is 'document' or an address with its hashes, such as "
            "1.2.p3~0123456789abcdef~0123456789abcdef; take it from kb_read, kb_search or kb_outline unchanged."
        )
    self_hash, subtree_hash = match.group("self"), match.group("subtree")
    return Pointer(
        logical=match.group("logical"),
        self_hash=self_hash.lower() if self_hash else None,
        subtree_hash=subtree_hash.lower() if subtree_hash else None,
    )


def format_pointer(element: Element) -> str:
    """The public pointer of an element: ``logical~selfHash~subtreeHash``."""
    return element.pointer


def split_full_pointer(text: str) -> tuple[str | None, str]:
    """Split ``path::pointer`` at the last ``::``; the path is None where there is none."""
    path, separator, pointer = text.rpartition("::")
    return (path if separator else None), pointer


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
