"""What every benchmark shares: the row it reports, timing by medians, and where the real trees stand.

A time on a shared machine says little, so a bar on time is a ratio measured in one run against a baseline
that is measured beside it. ``alternate`` takes the two in turn for that reason.
"""

import gc
import os
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured figure.

    Args:
        name: What was measured, with its size: "parse a document, 1 MB".
        value: The figure.
        unit: Of ``value`` and ``baseline``: "ms", "MB/s", "nDCG@10", "MiB".
        baseline: The figure of what it is compared with, in the same run; None where there is no such thing.
        ratio: ``value`` against ``baseline``, as the bar puts it; None without a baseline.
        bar: The bar in words: "<= 1.5 x bare parse and inserts"; empty for a figure without one.
        note: What a reader must know: sizes, repeats, what was left out.
        passed: Whether the bar was met; None for a figure without one.
    """

    name: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    bar: str = ""
    note: str = ""
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of repeated runs of one thing, in the order they were taken."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle run."""
        return statistics.median(self.seconds)

    def percentile(self, share: float) -> float:
        """The run below which ``share`` (0 to 1) of the runs lie, nearest rank."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, max(0, round(share * (len(ordered) - 1))))]


def measure(work: Callable[[], object], *, repeats: int, warm_up: int = 1) -> Timing:
    """Time ``work`` several times, garbage collected beforehand each time."""
    for _ in range(warm_up):
        work()
    return Timing(tuple(_once(work) for _ in range(repeats)))


def alternate(
    ours: Callable[[], object], baseline: Callable[[], object], *, repeats: int, warm_up: int = 1
) -> tuple[Timing, Timing]:
    """Time two things in turn, so that a slow spell of the machine hits both."""
    for _ in range(warm_up):
        ours()
        baseline()
    first: list[float] = []
    second: list[float] = []
    for _ in range(repeats):
        first.append(_once(ours))
        second.append(_once(baseline))
    return Timing(tuple(first)), Timing(tuple(second))


def _once(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def data_root() -> Path | None:
    """The folder that holds ``corpora/``, ``ir/`` and ``spec/``; None where the third-party data is absent."""
    default = Path(__file__).resolve().parents[3] / "shared"
    data = Path(os.environ.get("LVS_TEST_DATA", str(default))) / "data"
    return data if data.is_dir() else None


@contextmanager
def unpacked(archive: str) -> Generator[Path | None, None, None]:
    """Unpack ``corpora/rust-book.tar.gz`` or the like into a temporary folder; None where the data is absent."""
    root = data_root()
    if root is None or not (root / archive).is_file():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="lvs-bench-") as folder:
        with tarfile.open(root / archive) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder)
