"""Run every benchmark and write ``docs/performance.md``: ``python tests/benchmarks/run.py [--quick] [NAME ...]``.

Each ``bench_*.py`` beside this file has ``run(quick: bool) -> list[Row]``. A name picks the modules that contain it and
replaces their sections of the page alone; ``--quick`` takes small sizes for a look and writes nothing. A module that
says ``ONLY_WHEN_NAMED = True`` takes too long for every day: it runs where it is named, and else its section stays.
"""

import argparse
import datetime
import importlib
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = _ROOT / "docs" / "performance.md"
sys.path[:0] = [str(_ROOT), str(_ROOT / "src")]

from tests.benchmarks.support import Row  # noqa: E402

_SHOWN_VERSIONS = ("fastmcp", "mcp", "markdown-it-py", "apsw", "sqlite-vec", "wordllama", "weasyprint", "pydantic")

_INTRODUCTION = (
    "# Performance\n\nWritten by `python tests/benchmarks/run.py`; do not edit by hand.\n"
    "Times on shared machines are noisy, so a bar on time is a ratio to a baseline measured in the same run.\n"
)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="run only the modules whose name contains one of these")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look; writes nothing")
    options = parser.parse_args()
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        if options.names and not any(name in path.stem for name in options.names):
            continue
        module = importlib.import_module(f"tests.benchmarks.{path.stem}")
        if not options.names and getattr(module, "ONLY_WHEN_NAMED", False):
            continue
        print(f"{path.stem} ...", file=sys.stderr, flush=True)
        run: Callable[[bool], list[Row]] = module.run
        subject = (module.__doc__ or path.stem).strip().splitlines()[0].rstrip(".")
        text = section(path.stem, subject, run(options.quick))
        print(text, flush=True)
        if not options.quick:
            write(path.stem, text)


def write(name: str, text: str) -> None:
    """Put a section into the page in the place of its last state, and the machine above it."""
    known = _sections(_PAGE.read_text(encoding="utf-8")) if _PAGE.exists() else {}
    known[name] = text
    present = {path.stem for path in Path(__file__).parent.glob("bench_*.py")}
    parts = [_INTRODUCTION, _machine(), *(known[key] for key in sorted(known.keys() & present))]
    _PAGE.write_text("\n".join(parts), encoding="utf-8")


def _sections(page: str) -> dict[str, str]:
    """The sections of a page by the module that wrote each."""
    found: dict[str, str] = {}
    for text in re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]:
        match = re.search(r"`tests/benchmarks/(\w+)\.py`", text)
        if match:
            found[match[1]] = text.rstrip("\n") + "\n"
    return found


def section(name: str, subject: str, rows: Sequence[Row]) -> str:
    """The section of one benchmark as Markdown."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    head = "| what | figure | baseline | ratio | bar | met | note |\n| --- | ---: | ---: | ---: | --- | --- | --- |"
    lines = "\n".join(_line(row) for row in rows)
    return f"## {subject}\n\n`tests/benchmarks/{name}.py`, measured on {today}.\n\n{head}\n{lines}\n"


def _machine() -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _SHOWN_VERSIONS)
    return (
        f"Machine: {platform.system()} {platform.machine()}, {os.cpu_count()} cores, {_processor()}, {_memory()}; "
        f"Python {platform.python_version()}; {versions}.\n"
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "processor unknown"


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB memory"
    except (AttributeError, ValueError, OSError):
        return "memory unknown"


def _line(row: Row) -> str:
    baseline = "" if row.baseline is None else f"{_figure(row.baseline)} {row.unit}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    met = {None: "", True: "yes", False: "**no**"}[row.passed]
    cells = (row.name, f"{_figure(row.value)} {row.unit}", baseline, ratio, row.bar, met, row.note)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _figure(value: float) -> str:
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4f}" if abs(value) < 1 else f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


if __name__ == "__main__":
    main()
