"""Which of two is faster, on a machine that does other things too.

Both run in turns, in random order, so that whatever disturbs one disturbs the other; each turn gives a ratio of times.
The estimate is the Hodges-Lehmann one, and its interval that of Wilcoxon's signed ranks: neither assumes anything of
the noise but that it is symmetric, and single turns that went wrong have no weight.

A ratio is the baseline's time over the candidate's: above 1 is faster.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eyas.tune.trials import Status

Sample = Callable[[Sequence[str], int], Mapping[str, Sequence[float]]]
"""Runs each of these modules in turns, so many times: for each of them the time of each turn, in us."""

LEAST_GAIN = 0.01
"""Less is not worth an entry in a spec, however sure it is."""
_FIRST, _FEWEST, _MOST = 3, 6, 60
_FAR = 1.3
"""After the first few turns a candidate that is slower than the best by so much in each of them is given up."""


@dataclass(frozen=True)
class Ratio:
    """Lower bound, estimate and upper bound, at 95 %."""

    low: float
    estimate: float
    high: float

    @property
    def width(self) -> float:
        return self.high / self.low - 1

    def as_tuple(self) -> tuple[float, float, float]:
        return self.low, self.estimate, self.high


def ratio_of(baseline: Sequence[float], candidate: Sequence[float]) -> Ratio:
    """From the times of turns that belong together."""
    logs = np.log(np.asarray(baseline, float)) - np.log(np.asarray(candidate, float))
    count = len(logs)
    first, second = np.triu_indices(count)
    walsh = np.sort((logs[first] + logs[second]) / 2)
    estimate = float(np.median(walsh))
    if count < _FEWEST:
        low, high = float(logs.min()), float(logs.max())
    else:
        spread = 1.96 * math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
        cut = max(int(math.floor(len(walsh) / 2 - spread)), 0)
        low, high = float(walsh[cut]), float(walsh[len(walsh) - 1 - cut])
    return Ratio(math.exp(low), math.exp(estimate), math.exp(high))


@dataclass(frozen=True)
class Timed:
    """How a candidate compares: TIMED, or BEATEN where it was given up because it cannot be faster than the best."""

    status: Status
    ratio: Ratio
    us: float
    baseline_us: float
    turns: int


def race(
    sample: Sample,
    baseline: str,
    candidate: str,
    best: float = 1.0,
    narrow: float = 0.02,
    seconds: float = 2.0,
) -> Timed:
    """Times a candidate beside the baseline until its interval is narrow, its time is over, or it is beaten: even the
    upper bound of its ratio is below `best`, the lower bound of the best so far."""
    times: dict[str, list[float]] = {baseline: [], candidate: []}
    begin, turns = time.monotonic(), _FIRST
    while True:
        for name, found in sample([baseline, candidate], turns).items():
            times[name] += found
        ratio = ratio_of(times[baseline], times[candidate])
        done = len(times[candidate])
        if ratio.high * (_FAR if done < _FEWEST else 1) < best:
            status = Status.BEATEN
            break
        elapsed = time.monotonic() - begin
        if (ratio.width < narrow and done > _FEWEST) or done >= _MOST or elapsed > seconds:
            status = Status.TIMED
            break
        turns = min(max(done // 2, _FEWEST - done, _FIRST), _MOST - done)
    return Timed(status, ratio, float(np.median(times[candidate])), float(np.median(times[baseline])), done)


@dataclass(frozen=True)
class Noise:
    """What the same code differs by when it is loaded twice: the largest of several ratios, less 1."""

    level: float
    ratios: tuple[float, ...] = ()

    @property
    def threshold(self) -> float:
        """What a ratio must exceed to be a gain."""
        return 1 + max(self.level, LEAST_GAIN)


def noise_of(compare: Callable[[], Ratio], times: int = 4) -> Noise:
    """A/A: `compare` loads the baseline twice afresh and compares the two."""
    ratios = [compare().estimate for _ in range(times)]
    return Noise(max((max(one, 1 / one) for one in ratios), default=1.0) - 1, tuple(ratios))


@dataclass(frozen=True)
class Confirmed:
    """Whether a gain holds when both are loaded again, several times; `ratio` is over those."""

    is_gain: bool
    ratio: Ratio
    times: int


def confirm(compare: Callable[[], Ratio], noise: Noise, times: int = 6) -> Confirmed:
    """Compares afresh `times` times, since what was chosen as the best of many was also the luckiest: a gain exceeds
    what equal code differs by, each time but one. Ends early at the second that does not."""
    found: list[Ratio] = []
    while len(found) < times and sum(one.estimate <= noise.threshold for one in found) < 2:
        found.append(compare())
    logs = sorted(math.log(one.estimate) for one in found)
    is_gain = len(found) == times and logs[1] > math.log(noise.threshold)
    middle = (logs[(len(logs) - 1) // 2] + logs[len(logs) // 2]) / 2
    return Confirmed(is_gain, Ratio(*map(math.exp, (logs[0], middle, logs[-1]))), len(found))
