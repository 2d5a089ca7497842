"""Runs a module and makes the report."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

from eyas.explain.machine import this_machine
from eyas.explain.others import OtherPrograms
from eyas.explain.report import Report, make_report
from eyas.runtime import Event, Module

_SECONDS, _LEAST_RUNS, _MOST_RUNS, _IN_TURN = 2.0, 8, 200, 4


def explain(
    module: Module,
    inputs: Sequence[Any],
    entry: str = "main",
    *,
    runs: int | None = None,
    measure_machine: bool = False,
    name: str = "",
) -> tuple[Report, list[Event]]:
    """The report on calls of `entry`, and the commands of the fastest profiled call for a trace.

    `runs` is how many calls are profiled; by default as many as fit into two seconds, at least 8. `measure_machine`
    measures the machine's limits again where they were stored.
    """
    machine = this_machine(module._device, measure_machine)
    others = OtherPrograms()
    plain, profiled = _calls(module, inputs, entry, runs)
    share, driver = others.share(), str(module.device["driver"])
    report = make_report(module.manifest, entry, profiled, plain, machine, module=name, driver=driver, others=share)
    return report, min(profiled, key=_duration_ns)


def _calls(
    module: Module, inputs: Sequence[Any], entry: str, runs: int | None
) -> tuple[list[float], list[list[Event]]]:
    """Microseconds of calls without timers, and the commands of as many with; in turn, so that both see the same
    machine. The first of each turn brings its memory into the caches and does not count."""
    call, profiled_calls = module.functions[entry], module.profiled_calls(*inputs, entry=entry)
    plain: list[float] = []
    profiled: list[list[Event]] = []
    begin = time.perf_counter()
    while len(plain) < (runs or _LEAST_RUNS) or (
        runs is None and len(plain) < _MOST_RUNS and time.perf_counter() - begin < _SECONDS
    ):
        next(profiled_calls)
        profiled += itertools.islice(profiled_calls, _IN_TURN)
        call(*inputs)
        for _ in range(_IN_TURN):
            start = time.perf_counter_ns()
            call(*inputs)
            plain.append((time.perf_counter_ns() - start) / 1e3)
    return plain[:runs], profiled[:runs]


def _duration_ns(events: Sequence[Event]) -> int:
    ran = [event for event in events if event.end_ns]
    return max((event.end_ns for event in ran), default=0) - min((event.start_ns for event in ran), default=0)
