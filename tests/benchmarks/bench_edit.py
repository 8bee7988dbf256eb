"""Edits: a patch in a large document against parsing it, a table edit, a move with many links."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.support import Row, alternate, measure
from tests.support.writing import Writing

from local_vector_search_mcp.markdown.elements import ElementKind
from local_vector_search_mcp.markdown.parser import parse_bytes

_BAR = 2.5


def run(quick: bool) -> list[Row]:
    """Measure whole calls: lock, reading, plan, check, history, swap, answer."""
    size = 100_000 if quick else 1_000_000
    repeats = 3 if quick else 7
    rows = [
        _patch_row(f"kb_patch of one paragraph, {name}, {size / 1e6:g} MB", _document(block, size), repeats)
        for name, block in (("mixed document", _mixed), ("paragraphs alone", _paragraph), ("one long list", _item))
    ]
    return [*rows, _move_row(200 if quick else 2_000, repeats)]


def _patch_row(name: str, data: bytes, repeats: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="lvs-bench-") as folder:
        writing = _writing(Path(folder))
        writing.write("large.md", data)
        document = parse_bytes(data)
        middle = len(document.elements) // 2
        later = document.elements[middle:]
        paragraphs = (element for element in later if element.kind is ElementKind.PARAGRAPH)
        target = next(paragraphs, later[0])
        pointer = [target.pointer]
        is_item = target.kind is ElementKind.LIST_ITEM
        turn = iter(range(1_000_000))

        def patch() -> None:
            text = f"{'- ' if is_item else ''}The text of turn {next(turn)}."
            operation = {"kind": "replace_element", "pointer": pointer[0], "markdown": text}
            pointer[0] = writing.patching.patch(path="large.md", operations=[operation]).operations[0].pointers[0]

        def parse_twice() -> None:
            parse_bytes(data)
            parse_bytes(data)

        ours, baseline = alternate(patch, parse_twice, repeats=repeats)
        writing.close()
    ratio = ours.median / baseline.median
    return Row(
        name=name,
        value=ours.median * 1000,
        unit="ms",
        baseline=baseline.median * 1000,
        ratio=ratio,
        bar=f"<= {_BAR} x two parses of that document",
        note=f"{len(document.elements):,} elements; the parse of the edit before is kept",
        passed=ratio <= _BAR,
    )


def _move_row(documents: int, repeats: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="lvs-bench-") as folder:
        writing = _writing(Path(folder))
        writing.write("target.md", "# Target\n")
        for number in range(documents):
            link = "[t](../target.md)" if number % 20 == 0 else "no link"
            writing.write(f"notes/n{number}.md", f"# Note {number}\n\nText {link}.\n\n{'words ' * 200}\n")
        names = iter([f"moved{number}.md" for number in range(1_000)])
        present = ["target.md"]

        def move() -> None:
            name = next(names)
            writing.documents.move(path=present[0], target_path=name)
            present[0] = name

        timing = measure(move, repeats=repeats)
        writing.close()
    return Row(
        name=f"kb_move of a document, {documents:,} documents, {documents // 20} of them link to it",
        value=timing.median * 1000,
        unit="ms",
        note="every document is read; those with links are checked, rewritten and flushed to disk",
    )


def _writing(folder: Path) -> Writing:
    root = folder / "root"
    root.mkdir()
    return Writing(root, folder / "history.db")


def _document(block: Callable[[int], str], size: int) -> bytes:
    parts: list[str] = []
    length = number = 0
    while length < size:
        parts.append(block(number))
        length += len(parts[-1])
        number += 1
    return "".join(parts).encode()


def _mixed(number: int) -> str:
    return (
        f"## Section {number}\n\nA paragraph about subject {number}, with `code`, **emphasis** and a [link](x.md).\n\n"
        f"- first of {number}\n- second\n  - nested\n\n```python\nvalue = {number}\n```\n\n"
        f"| a | b |\n|---|---|\n| {number} | 2 |\n\n> A quote of two lines\n> about {number}.\n\n"
    )


def _paragraph(number: int) -> str:
    return f"Paragraph {number} holds a line of text of the usual length, and then another sentence.\n\n"


def _item(number: int) -> str:
    return f"- item {number} of a long list\n"
