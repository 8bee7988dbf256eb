"""Link reference definitions: whether a change of them alters how untouched elements read.

CommonMark 0.31.2, 4.7: the first definition of a label wins, wherever in the document it stands.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from local_vector_search_mcp.editing.text_edits import TextEdits
from local_vector_search_mcp.markdown.dialect import inline_parser
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument
from local_vector_search_mcp.markdown.links import DefinedLink, link_definitions

_ENDING = re.compile(r"\r\n|\r|\n")
_WITHOUT_LINKS = frozenset(
    {
        ElementKind.CODE,
        ElementKind.DEFINITION,
        ElementKind.FRONTMATTER,
        ElementKind.HTML,
        ElementKind.MATH,
        ElementKind.RULE,
    }
)
# The inline parser is not linear on every text; in a longer one a label in brackets counts as a use.
_MOST_CHARS = 20_000
_DEFINITION = re.compile(r"^[ \t>]*\[[^\[\]]+\]:", re.MULTILINE)
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.)+)\]", re.DOTALL)


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


def changed_labels(
    document: MarkdownDocument, proposal: MarkdownDocument, untouched: Iterable[Element]
) -> tuple[ChangedLabel, ...]:
    """The labels that untouched elements use and that lead elsewhere in the proposal, or nowhere, or only there.

    Args:
        document: Before the change.
        proposal: After it.
        untouched: The old elements that the change leaves as they are.
    """
    before, after = link_definitions(document), link_definitions(proposal)
    different = {
        label for label in before.keys() | after.keys() if _place(before.get(label)) != _place(after.get(label))
    }
    if not different:
        return ()
    result: dict[str, ChangedLabel] = {}
    for element in untouched:
        if element.kind in _WITHOUT_LINKS:
            continue
        text = _DEFINITION.sub(" ", _ENDING.sub("\n", element.text))
        used = {normalizeReference(written): written for written in _labels_in(text)}
        new = [label for label in used if label in different and label not in result]
        if new and (len(text) > _MOST_CHARS or _shown(text, before) != _shown(text, after)):
            for label in new:
                result[label] = ChangedLabel(
                    label=used[label],
                    element=element,
                    old_definer=before[label].element.index if label in before else None,
                    new_definer=after[label].element.index if label in after else None,
                )
    return tuple(result.values())


def _place(definition: DefinedLink | None) -> tuple[str, str] | None:
    return None if definition is None else (definition.destination, definition.title)


def _labels_in(text: str) -> list[str]:
    return list(dict.fromkeys(match.group(1) for match in _LABEL.finditer(text)))


def _shown(text: str, definitions: Mapping[str, DefinedLink]) -> list[tuple[str, str, str]]:
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
