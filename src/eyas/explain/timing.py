"""Times of each dispatch of a call, as medians over the undisturbed ones of several calls.

A wave is what runs between two barriers. Its dispatches share the workers, so each is given a part of the wave's time:
the part of all work that was its own. These times add up to the time of all waves; what lies between waves (barriers,
waking workers, the host program) is kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from eyas.errors import EyasError
from eyas.runtime import Event


@dataclass(frozen=True)
class Timing:
    """One command of a call. Times are microseconds."""

    name: str
    submission: int
    wave: int
    grid: tuple[int, int, int]
    us: float  # its part of the wave's time
    busy_us: tuple[float, ...]  # what each worker spent in it
    idle_us: float  # what all workers together waited, in its part of the wave
    gap_us: float  # between the wave before and its own; 0 unless it is the first of the wave
    bytes: int  # of all memory that it was given


def timings(runs: Sequence[Sequence[Event]], workers: int) -> list[Timing]:
    """The commands of one call, in order; each time is the median over the fastest quarter of `runs`, because on a
    machine that does other things too the rest tells of those."""
    if not runs or not runs[0]:
        return []
    shapes = [[(event.name, event.submission, event.wave) for event in run] for run in runs]
    if any(shape != shapes[0] for shape in shapes):
        raise EyasError("the calls did not run the same commands, so their times cannot be put together")
    by_time = sorted(runs, key=lambda run: max(event.end_ns for event in run) - _start_ns(run))
    measured = [_of_run(run, workers) for run in by_time[: max(3, len(runs) // 4)]]
    return [_median([run[index] for run in measured]) for index in range(len(measured[0]))]


def _start_ns(run: Sequence[Event]) -> int:
    return min((event.start_ns for event in run if event.end_ns), default=0)


def _of_run(events: Sequence[Event], workers: int) -> list[Timing]:
    out: list[Timing] = []
    end_ns = 0
    for (submission, wave), group in groupby(events, key=lambda event: (event.submission, event.wave)):
        members = list(group)
        ran = [event for event in members if event.end_ns]
        start_ns = min((event.start_ns for event in ran), default=end_ns)
        wall_us = (max((event.end_ns for event in ran), default=start_ns) - start_ns) / 1e3
        busy_ns = sum(event.busy_ns for event in members) or 1
        gap_us = (start_ns - end_ns) / 1e3 if end_ns else 0.0
        for event in members:
            us = wall_us * event.busy_ns / busy_ns
            busy = [0.0] * workers
            for share in event.shares:
                busy[share.worker] = share.busy_ns / 1e3
            bytes_ = sum(binding.bytes for binding in event.bindings)
            idle_us = max(us * workers - sum(busy), 0.0)
            out.append(Timing(event.name, submission, wave, event.grid, us, tuple(busy), idle_us, gap_us, bytes_))
            gap_us = 0.0
        end_ns = max([event.end_ns for event in ran], default=end_ns)
    return out


def _median(same: Sequence[Timing]) -> Timing:
    first = same[0]
    return Timing(
        first.name,
        first.submission,
        first.wave,
        first.grid,
        median(one.us for one in same),
        tuple(median(one.busy_us[worker] for one in same) for worker in range(len(first.busy_us))),
        median(one.idle_us for one in same),
        median(one.gap_us for one in same),
        first.bytes,
    )
