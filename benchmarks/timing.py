"""Timing of several engines in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Milliseconds of a call. `noisy` when the median is far from the fastest run: other work was on the machine."""

    median_ms: float
    min_ms: float

    @property
    def noisy(self) -> bool:
        return self.median_ms > 1.3 * self.min_ms


def interleave(calls: Mapping[str, Callable[[], object]], turns: int = 5, block: int = 4) -> dict[str, Timing]:
    """Short blocks that take turns, each after a call to warm up, so that every engine sees the same machine."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            call()
            for _ in range(block):
                begin = time.perf_counter()
                call()
                taken[name].append(1e3 * (time.perf_counter() - begin))
    return {name: Timing(statistics.median(values), min(values)) for name, values in taken.items()}
