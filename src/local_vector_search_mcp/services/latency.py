"""How long it took from an event to its being searchable: the last few samples and their percentiles. Pure."""

from collections import deque
from dataclasses import dataclass
from math import ceil
from typing import Final

_SAMPLES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLatency:
    """Median and 95th percentile in milliseconds."""

    p50: int
    p95: int


class LatencySamples:
    """The latest samples; older ones fall out."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_SAMPLES)

    def add(self, seconds: float) -> None:
        """Record one event."""
        self._samples.append(max(seconds, 0.0))

    def summary(self) -> WatchLatency | None:
        """The percentiles; None before the first sample."""
        ordered = sorted(self._samples)
        if not ordered:
            return None
        return WatchLatency(p50=_percentile(ordered, 0.5), p95=_percentile(ordered, 0.95))


def _percentile(ordered: list[float], share: float) -> int:
    place = max(ceil(share * len(ordered)) - 1, 0)
    return round(ordered[place] * 1000)
