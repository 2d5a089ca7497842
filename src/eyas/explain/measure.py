"""Runs a module and makes the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from eyas.explain.machine import this_machine
from eyas.explain.others import OtherPrograms
from eyas.explain.report import Report, make_report
from eyas.runtime import Event, Module

_SECONDS, _LEAST_RUNS, _MOST_RUNS = 1.0, 8, 200


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

    `runs` is how many calls are profiled; by default as many as fit into a second, at least 8. `measure_machine`
    measures the machine's limits again where they were stored.
    """
    machine = this_machine(module._device, measure_machine)
    others = OtherPrograms()
    plain = _plain_calls(module, inputs, entry, runs)
    profiled = module.profile(*inputs, runs=runs or len(plain), entry=entry)
    share, driver = others.share(), str(module.device["driver"])
    report = make_report(module.manifest, entry, profiled, plain, machine, module=name, driver=driver, others=share)
    return report, min(profiled, key=_duration_ns)


def _plain_calls(module: Module, inputs: Sequence[Any], entry: str, runs: int | None) -> list[float]:
    """Microseconds of each call without timers, after one to warm up."""
    call = module.functions[entry]
    call(*inputs)
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < (runs or _LEAST_RUNS) or (
        runs is None and len(times) < _MOST_RUNS and time.perf_counter() - begin < _SECONDS
    ):
        start = time.perf_counter_ns()
        call(*inputs)
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def _duration_ns(events: Sequence[Event]) -> int:
    ran = [event for event in events if event.end_ns]
    return max((event.end_ns for event in ran), default=0) - min((event.start_ns for event in ran), default=0)
