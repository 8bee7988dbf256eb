"""Link reference definitions: whether a change of them alters how untouched elements read.

CommonMark 0.31.2, 4.7: the first definition of a label wins, wherever in the document it stands.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from local_vector_search_mcp.editing.text_edits import TextEdits
from local_vector_search_mcp.markdown.dialect import block_parser, inline_parser
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument

_ENDING = re.compile(r"\r\n|\r|\n")
_WITHOUT_LINKS = frozenset(
    {ElementKind.CODE, ElementKind.HTML, ElementKind.FRONTMATTER, ElementKind.MATH, ElementKind.RULE}
)
_DEFINITION = re.compile(r"^[ \t>]*\[[^\[\]]+\]:", re.MULTILINE)
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.)+)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a label leads."""

    destination: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedLabel:
    """A label that reads otherwise than before, in an untouched element that uses it.

    Attributes:
        label: As the element writes it.
        element: Of the old document.
        old_definer: The old index of the element that defined it; None where none did.
        new_definer: The index in the proposal of the element that defines it; None where none does.
    """

    label: str
    element: Element
    old_definer: int | None
    new_definer: int | None


def touches_definitions(data: bytes, edits: TextEdits) -> bool:
    """Whether edits take out or put in what may be a link reference definition."""
    return any(b"]:" in edit.replacement or b"]:" in edit.range.slice(data) for edit in edits)


def definitions_of(document: MarkdownDocument) -> dict[str, tuple[Definition, int]]:
    """Every label that a document defines, normalised, with the index of the top-level element that does first."""
    found: dict[str, tuple[Definition, int]] = {}
    for element in document.top_level:
        if element.kind in _WITHOUT_LINKS:
            continue
        data = element.range.slice(document.source.data)
        if b"]:" not in data:
            continue
        for label, definition in _definitions_in(data).items():
            found.setdefault(label, (definition, element.index))
    return found


def changed_labels(
    document: MarkdownDocument, proposal: MarkdownDocument, untouched: Iterable[Element]
) -> tuple[ChangedLabel, ...]:
    """The labels that untouched elements use and that lead elsewhere in the proposal, or nowhere, or only there.

    Args:
        document: Before the change.
        proposal: After it.
        untouched: The old elements that the change leaves as they are.
    """
    old, new = definitions_of(document), definitions_of(proposal)
    before = {label: found[0] for label, found in old.items()}
    after = {label: found[0] for label, found in new.items()}
    different = {label for label in before.keys() | after.keys() if before.get(label) != after.get(label)}
    if not different:
        return ()
    result: dict[str, ChangedLabel] = {}
    for element in untouched:
        if element.kind in _WITHOUT_LINKS or element.kind is ElementKind.DEFINITION:
            continue
        text = _DEFINITION.sub(" ", _ENDING.sub("\n", element.text))
        for written in _labels_in(text):
            label = normalizeReference(written)
            if label in different and label not in result and _shown(text, before) != _shown(text, after):
                result[label] = ChangedLabel(
                    label=written,
                    element=element,
                    old_definer=old[label][1] if label in old else None,
                    new_definer=new[label][1] if label in new else None,
                )
    return tuple(result.values())


def _definitions_in(data: bytes) -> dict[str, Definition]:
    environment: dict[str, dict[str, dict[str, str]]] = {}
    block_parser().parse(data.decode("utf-8"), environment)
    return {
        label: Definition(str(reference.get("href", "")), str(reference.get("title", "")))
        for label, reference in environment.get("references", {}).items()
    }


def _labels_in(text: str) -> list[str]:
    return list(dict.fromkeys(match.group(1) for match in _LABEL.finditer(text)))


def _shown(text: str, definitions: Mapping[str, Definition]) -> list[tuple[str, str, str]]:
    """What the inline content reads as, by the definitions given."""
    references = {
        label: {"href": definition.destination, "title": definition.title} for label, definition in definitions.items()
    }
    shown: list[tuple[str, str, str]] = []
    for token in inline_parser().parseInline(text, {"references": references}):
        _flatten(token.children or [], shown)
    return shown


def _flatten(tokens: Iterable[Token], shown: list[tuple[str, str, str]]) -> None:
    for token in tokens:
        shown.append((token.type, token.content, str(token.attrs)))
        _flatten(token.children or [], shown)
