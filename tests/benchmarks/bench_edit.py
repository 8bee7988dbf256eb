"""Edits: a patch in a large document against parsing it, a move with many links, and the lock it holds."""

import statistics
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
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
    documents = 200 if quick else 2_000
    return [*rows, _move_row(documents, repeats), _lock_row(documents, repeats)]


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
        move = _Moves(_writing(Path(folder)), documents, linking=documents // 20)
        timing = measure(move, repeats=repeats)
        move.writing.close()
    return Row(
        name=f"kb_move of a document, {documents:,} documents, {documents // 20} of them link to it",
        value=timing.median * 1000,
        unit="ms",
        note="every document is read; those with links are checked, rewritten and flushed to disk",
    )


def _lock_row(documents: int, repeats: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="lvs-bench-") as folder:
        # Later by a minute, so that the documents count as written long ago, as most are.
        move = _Moves(_writing(Path(folder), wall_clock=lambda: time.time() + 60), documents, linking=2)
        held = _time_held(move.writing)
        timing = measure(move, repeats=repeats, warm_up=0)
        move.writing.close()
    return Row(
        name=f"workspace lock held by kb_move, {documents:,} documents",
        value=statistics.median(held) * 1000,
        unit="ms",
        baseline=timing.median * 1000,
        ratio=statistics.median(held) / timing.median,
        note="of the whole call; two documents link to the moved one; under the lock the tree is walked, and only "
        "documents that have changed since the call began are read",
    )


class _Moves:
    """Moves one document from name to name, in a tree in which some documents link to it."""

    def __init__(self, writing: Writing, documents: int, *, linking: int) -> None:
        self.writing = writing
        writing.write("target.md", "# Target\n")
        for number in range(documents):
            link = "[t](../target.md)" if number % (documents // linking) == 0 else "no link"
            writing.write(f"notes/n{number}.md", f"# Note {number}\n\nText {link}.\n\n{'words ' * 200}\n")
        self._names = iter([f"moved{number}.md" for number in range(1_000)])
        self._present = "target.md"

    def __call__(self) -> None:
        name = next(self._names)
        self.writing.documents.move(path=self._present, target_path=name)
        self._present = name


def _time_held(writing: Writing) -> list[float]:
    """How long the workspace lock is held, each time from now on."""
    held: list[float] = []
    locked = writing.mutations.locked

    @contextmanager
    def timed() -> Generator[None]:
        with locked():
            start = time.perf_counter()
            try:
                yield
            finally:
                held.append(time.perf_counter() - start)

    writing.mutations.locked = timed  # type: ignore[method-assign]
    return held


def _writing(folder: Path, *, wall_clock: Callable[[], float] = time.time) -> Writing:
    root = folder / "root"
    root.mkdir()
    return Writing(root, folder / "history.db", wall_clock=wall_clock)


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
