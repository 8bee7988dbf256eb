"""Random documents and random edits from a seed, and what must hold of every edit that is accepted."""

import random
from collections.abc import Mapping, Sequence

from local_vector_search_mcp.editing.operations import KINDS, read_operations
from local_vector_search_mcp.editing.patcher import PatchOutcome, patch
from local_vector_search_mcp.errors import (
    Conflict,
    KnowledgeBaseError,
    OverlappingOperations,
    StructureChanged,
    UnsupportedEdit,
)
from local_vector_search_mcp.markdown.elements import Element, ElementKind, MarkdownDocument

EXPECTED_REFUSALS = (StructureChanged, UnsupportedEdit, OverlappingOperations, Conflict)

_BLOCKS = (
    "para", "two\nlines", "# H1", "## H2", "### H3", "Setext\n===", "Setext\n---", "```\ncode\n```", "    indented",
    "- a\n- b", "- a\n  - b\n    - c\n- d", "- parent\n  - child\n\n  tail", "- - x\n  - y", "1. one\n2. two",
    "* star", "- [ ] task\n- [x] done", "> quote\n> more", "> [!note]\n> - item", "| a | b |\n|---|---|\n| 1 | 2 |",
    "a | b\n--- | ---\n1 | 2", "<div>\nx\n</div>", "<!-- c -->", "$$\nx = 1\n$$", "[^1]: note\n    more", "[ref]: /url",
    "[ref]: /a\n[other]: /b", "***", "---", "text [ref] and [^1]", "para  \nbreak", "~~~~\n# no\n~~~~", "-", "\ttabbed",
    "- a\n\n  para\n- b", "10) ten\n11) eleven", "+ plus\n  > quoted", "`code` **bold**", "<b>inline</b> text",
    "\x00 nul", "日本語 текст", "a\u2028b",
)  # fmt: skip
_FRAGMENTS = (*_BLOCKS, "```\nopen", "<!-- open", "x\n\ny", "# A\n\ntext", "", "\n\npadded\n\n", "===", "[new]: /n")
_ITEMS = (
    "{p}{m} new",
    "{p}{m} new\n{p}  - sub",
    "{p}{m} a\n\n{p}   b",
    "{p}{m}",
    "{p}{m} x\n\n<!-- c -->",
    "{p}{m} y\n\n",
    "plain",
)
_FRONT = ("---\ntitle: x\n---", "---\n---", "+++\na = 1\n+++", "---\na: [\n---", "text")


def random_document(rng: random.Random) -> bytes:
    """A small document of all kinds of elements, with any endings, gaps, BOM and last line."""
    ending = rng.choice(["\n", "\n", "\r\n", "\r"])
    text = ""
    if rng.random() < 0.2:
        text += rng.choice(_FRONT[:3]) + "\n" * rng.randint(1, 3)
    elif rng.random() < 0.15:
        text += "\n" * rng.randint(1, 2)
    for _ in range(rng.randint(0, 9)):
        text += rng.choice(_BLOCKS) + "\n" * rng.choice([1, 2, 2, 2, 3])
    text = text.rstrip("\n") + "\n" * rng.randint(0, 3)
    if rng.random() < 0.2:
        text = "".join(rng.choice(["\n", "\r\n"]) if character == "\n" else character for character in text)
    else:
        text = text.replace("\n", ending)
    return (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + text.encode()


def random_operation(
    rng: random.Random, document: MarkdownDocument, kind: str | None = None, *, element: Element | None = None
) -> dict[str, object]:
    """An operation on an element, a random one if none is given; most of them fit, some do not."""
    kind = kind or rng.choice(list(KINDS))
    if element is None:
        fitting = [other for other in document.elements if _fits(kind, other)] or list(document.elements)
        if not fitting or (kind in ("insert_before", "insert_after") and rng.random() < 0.1):
            return {"kind": "insert_after", "pointer": "document", "markdown": rng.choice(_FRAGMENTS)}
        element = rng.choice(fitting)
    operation: dict[str, object] = {"kind": kind, "pointer": element.pointer}
    takes = KINDS[kind]
    if "markdown" in takes:
        operation["markdown"] = _text_for(rng, document, element, kind)
    if "find" in takes:
        text = element.text
        start = rng.randrange(len(text)) if text else 0
        find = text[start : start + rng.randint(1, 6)] or "x"
        operation |= {
            "find": find,
            "replace": rng.choice(["", "new", "# ", "a\nb", "```"]),
            "count": max(1, text.count(find)),
        }
    if "target" in takes:
        like = (
            [other for other in document.elements if other.kind is element.kind]
            if rng.random() < 0.6
            else list(document.elements)
        )
        operation["target"] = rng.choice(like).pointer
        if element.kind is ElementKind.HEADING and rng.random() < 0.7:
            operation["section"] = True
    if "afterSubsections" in takes and rng.random() < 0.5:
        operation["afterSubsections"] = True
    return operation


def _fits(kind: str, element: Element) -> bool:
    if kind in ("replace_section", "delete_section", "append_to_section"):
        return element.kind is ElementKind.HEADING
    return kind != "replace_subtree" or element.kind is ElementKind.LIST_ITEM


def _text_for(rng: random.Random, document: MarkdownDocument, element: Element, kind: str) -> str:
    if element.kind is ElementKind.LIST_ITEM:
        line = element.own_bytes.decode()
        blanks = line[: len(line) - len(line.lstrip(" \t"))]
        marker = line.lstrip(" \t")
        mark = marker[:1] if marker[:1] in "-+*" else f"7{marker.lstrip('0123456789')[:1]}"
        return rng.choice(_ITEMS).format(p=blanks, m=mark)
    if element.kind is ElementKind.FRONTMATTER and kind.startswith("replace"):
        return rng.choice(_FRONT)
    if element.kind is ElementKind.HEADING and kind.startswith("replace"):
        return "#" * (element.level or 1) + rng.choice(
            [" New", " New\n\ntext", " New\n\n#### Deep\n\n- x"][: 1 if kind == "replace_element" else 3]
        )
    return rng.choice(_FRAGMENTS)


def try_patch(document: MarkdownDocument, operations: Sequence[Mapping[str, object]]) -> PatchOutcome | None:
    """The outcome of operations; None where they are refused for a reason that an edit may be refused for.

    Raises:
        KnowledgeBaseError: They are refused for another reason, which would be a fault.
    """
    try:
        return patch(document, read_operations(operations))
    except EXPECTED_REFUSALS:
        return None
    except KnowledgeBaseError:
        raise


def assert_promise(before: MarkdownDocument, operations: Sequence[Mapping[str, object]], outcome: PatchOutcome) -> None:
    """Assert what an accepted edit promises, by other means than the check that accepted it."""
    data = before.source.data
    assert outcome.edits.apply(data) == outcome.source
    assert outcome.edits.inverse(data).apply(outcome.source) == data
    untouched = [element for element in before.elements if element.index not in _touched(before, operations)]
    for edit in outcome.edits:
        for element in untouched:
            for segment in element.segments:
                assert not segment.overlaps(edit.range), f"{element} is touched by {edit}"
    new = [(element.kind, element.own_bytes) for element in outcome.document.elements]
    place = 0
    for element in untouched:
        wanted = (element.kind, element.own_bytes)
        while place < len(new) and new[place] != wanted:
            place += 1
        assert place < len(new), f"{element} did not survive"
        place += 1
    placed = sum(len(each.pointers) for each in outcome.operations)
    assert len(new) == len(untouched) + placed


def _touched(document: MarkdownDocument, operations: Sequence[Mapping[str, object]]) -> set[int]:
    touched: set[int] = set()
    for operation in operations:
        kind = str(operation["kind"])
        if kind.startswith(("insert", "append")):
            continue
        element = document.by_logical(str(operation["pointer"]).split("~")[0])
        assert element is not None
        touched.add(element.index)
        if kind.endswith("section") or operation.get("section"):
            end = element.subtree_range.end
            touched |= {other.index for other in document.elements if element.start <= other.start < end}
        elif element.kind is ElementKind.LIST_ITEM and kind not in ("replace", "replace_element", "replace_text"):
            touched |= {other.index for other in document.descendants(element)}
    return touched
