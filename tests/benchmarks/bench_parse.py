"""Parsing: speed against the library's own block parse, how time grows with size, and what a second read costs."""

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from tests.benchmarks.support import Row, alternate, measure, unpacked
from tests.support.indexed_project import Project

from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.sections import outline
from local_vector_search_mcp.services.reading import ReadingService

_TREES: Final = (
    "corpora/digital-garden.tar.gz",
    "corpora/rust-book.tar.gz",
    "corpora/vue-zh.tar.gz",
    "ir/cranfield.tar.gz",
    "ir/xquad-zh.tar.gz",
)
_SMALL: Final = 1_000
_MEGABYTE: Final = 1_000_000

_PROSE: Final = "Some words of prose that go on for a while, *with* emphasis.\nAnd a second line.\n\n"


def _repeated(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def _nested_items(size: int) -> str:
    lines = ["  " * (number % 200) + "- item\n" for number in range(size // 200 + 2)]
    return "".join(lines)[:size]


def _long_table(size: int) -> str:
    return "| a | b |\n|---|---|\n" + _repeated("| cell one | cell two |\n")(size)


_SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "prose": _repeated(_PROSE),
    "one line": _repeated("word "),
    "one list": _repeated("- item text\n"),
    "one loose list": _repeated("- item\n\n"),
    "one table": _long_table,
    "quote": _repeated("> quoted text\n"),
    "quote markers on one line": _repeated(">"),
    "list markers on one line": _repeated("- "),
    "items 200 deep": _nested_items,
    "500 quotes and lazy lines": lambda size: ">" * min(size // 4, 500) + " a\n" + _repeated("b\n")(size),
    "900 items and lazy lines": lambda size: "- " * min(size // 4, 900) + "a\n" + _repeated("b\n")(size),
    "link definitions": _repeated("[label]: /url 'title'\n"),
    "open brackets on lines": _repeated("[\n"),
    "one open bracket": lambda size: "[a" + _repeated("b\n")(size),
    "fences": _repeated("```\nx\n```\n"),
    "an open comment": lambda size: "<!--\n" + _repeated("x\n")(size),
    "attributes of one tag": lambda size: "<a" + _repeated(" b=c")(size),
    "quoted headings and text": _repeated("> # h\ntext\n"),
    "display math without end": _repeated("$$ x\n# h\n"),
    "headings": _repeated("# h\n"),
    "rules": _repeated("---\n"),
    "alternating markers": _repeated("- a\n* b\n"),
    "footnotes": _repeated("[^a]: x\n\n    y\n"),
}


def run(quick: bool) -> list[Row]:
    """Measure real trees where they are, then shapes."""
    rows = [row for archive in _TREES[: 2 if quick else None] for row in _tree(archive, repeats=3 if quick else 7)]
    rows.append(_document(repeats=3 if quick else 7))
    rows.extend(_shape(name, make, 400_000 if quick else 4_000_000) for name, make in _SHAPES.items())
    rows.extend(_again(repeats=3 if quick else 7))
    return rows


def _baseline() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _tree(archive: str, *, repeats: int) -> list[Row]:
    with unpacked(archive) as folder:
        if folder is None:
            return []
        files = [path.read_bytes() for path in sorted(Path(folder).rglob("*.md"))]
    return [_against_library(f"parse {archive.split('/')[1].split('.')[0]}, {len(files):,} files", files, repeats)]


def _document(*, repeats: int) -> Row:
    text = _repeated("# Heading\n\n" + _PROSE * 3 + "- one\n- two\n  - three\n\n```sh\nrun\n```\n\n")(_MEGABYTE)
    return _against_library("parse a document, 1 MB", [text.encode()], repeats)


def _against_library(name: str, files: list[bytes], repeats: int) -> Row:
    parser = _baseline()
    texts = [data.decode() for data in files]
    ours, baseline = alternate(
        lambda: [parse_bytes(data) for data in files], lambda: [parser.parse(text) for text in texts], repeats=repeats
    )
    size = sum(map(len, files)) / _MEGABYTE
    ratio = baseline.median / ours.median
    return Row(
        name=name,
        value=size / ours.median,
        unit="MB/s",
        baseline=size / baseline.median,
        ratio=ratio,
        bar=">= 0.8 x markdown-it-py's own block parse",
        note=f"{size:.1f} MB",
        passed=ratio >= 0.8,
    )


def _shape(name: str, make: Callable[[int], str], size: int) -> Row:
    small, large = make(_SMALL).encode(), make(size).encode()
    times = max(1, 200_000 // len(small))
    first = measure(lambda: [parse_bytes(small) for _ in range(times)], repeats=3).median / times / len(small)
    last = measure(lambda: parse_bytes(large), repeats=3, warm_up=0).median / len(large)
    return Row(
        name=f"parse time a byte, {size / _MEGABYTE:g} MB: {name}",
        value=last * 1e9,
        unit="ns/B",
        baseline=first * 1e9,
        ratio=last / first,
        bar="< 2 x that of 1 KB",
        passed=last / first < 2,
    )


def _again(*, repeats: int) -> list[Row]:
    """What the services behind ``kb_read`` and ``kb_outline`` take for a document that they have parsed before."""
    text = _repeated("# Heading\n\n" + _PROSE * 3)(_MEGABYTE)
    calls: dict[str, Callable[[ReadingService], object]] = {
        "kb_read": lambda service: service.read(path="note.md"),
        "kb_outline": lambda service: service.outline(path="note.md"),
    }
    with tempfile.TemporaryDirectory(prefix="lvs-bench-") as folder:
        project = Project(Path(folder) / "notes", Path(folder) / "store")
        project.put("note.md", text)
        rows = [_called_again(name, call, project, repeats) for name, call in calls.items()]
    data = text.encode()
    document = parse_bytes(data)
    making, parsing = alternate(lambda: outline(document), lambda: parse_bytes(data), repeats=repeats)
    rows.append(
        Row(
            name="making the outline of a parsed document, 1 MB",
            value=making.median * 1000,
            unit="ms",
            baseline=parsing.median * 1000,
            ratio=making.median / parsing.median,
            note="baseline: the parse; made once for each reading of a document",
        )
    )
    return rows


def _called_again(name: str, call: Callable[[ReadingService], object], project: Project, repeats: int) -> Row:
    """The second call of a service against its first; a new service knows no document."""
    first: list[float] = []
    second: list[float] = []
    for _ in range(repeats):
        service = ReadingService(project.corpora())
        first.append(measure(partial(call, service), repeats=1, warm_up=0).median)
        second.append(measure(partial(call, service), repeats=1, warm_up=0).median)
    before, again = statistics.median(first), statistics.median(second)
    return Row(
        name=f"{name} of an unchanged document, 1 MB, again",
        value=again * 1000,
        unit="ms",
        baseline=before * 1000,
        ratio=again / before,
        bar="<= 0.1 x the first time",
        note="the service, in process; the file is read each time",
        passed=again <= 0.1 * before,
    )
