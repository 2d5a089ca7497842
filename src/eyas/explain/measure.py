"""Runs a module and makes the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from eyas.explain.machine import this_machine
from eyas.explain.report import Report, make_report
from eyas.runtime import Event, Module
from eyas.targets.others import OtherPrograms

_TURNS, _TURN_SECONDS, _LEAST_RUNS, _MOST_RUNS = 3, 0.3, 4, 150

_T = TypeVar("_T")


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

    `runs` is how many calls are profiled; by default as many as fit into two seconds. `measure_machine`
    measures the machine's limits again where they were stored.
    """
    machine = this_machine(module.device, measure_machine)
    others = OtherPrograms()
    plain, profiled = _calls(module, inputs, entry, runs)
    share, driver = others.share(), module.device.name
    report = make_report(module.manifest, entry, profiled, plain, machine, module=name, driver=driver, others=share)
    return report, min(profiled, key=_duration_ns)


def _calls(
    module: Module, inputs: Sequence[Any], entry: str, runs: int | None
) -> tuple[list[float], list[list[Event]]]:
    """Microseconds of calls without timers, and the commands of others with; in turns, so that both see the same
    machine. The two do not share their memory, so the first calls of a turn do not count: caches hold the other's."""
    call, profiled_calls = module.functions[entry], module.profiled_calls(*inputs, entry=entry)

    def timed() -> float:
        start = time.perf_counter_ns()
        call(*inputs)
        return (time.perf_counter_ns() - start) / 1e3

    plain: list[float] = []
    profiled: list[list[Event]] = []
    for _ in range(1 if runs else _TURNS):
        profiled += _turn(lambda: next(profiled_calls), runs)
        plain += _turn(timed, runs)
    return plain, profiled


def _turn(measure: Callable[[], _T], runs: int | None) -> list[_T]:
    """What `measure` gives: `runs` times after one more, or for a while without the first third."""
    if runs is not None:
        return [measure() for _ in range(runs + 1)][1:]
    found: list[_T] = []
    begin = time.perf_counter()
    while len(found) < _LEAST_RUNS or (len(found) < _MOST_RUNS and time.perf_counter() - begin < _TURN_SECONDS):
        found.append(measure())
    return found[len(found) // 3 :]


def _duration_ns(events: Sequence[Event]) -> int:
    ran = [event for event in events if event.end_ns]
    return max((event.end_ns for event in ran), default=0) - min((event.start_ns for event in ran), default=0)
