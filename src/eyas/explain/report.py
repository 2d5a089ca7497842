"""The report: what each dispatch of a call does, how long it takes, what it could take, and why it takes longer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from statistics import median
from typing import Any

from eyas.explain.dataflow import bytes_by_level, producers
from eyas.explain.machine import Machine
from eyas.explain.reasons import reasons
from eyas.explain.timing import Timing, timings
from eyas.runtime import Event


@dataclass(frozen=True)
class Dispatch:
    """One command of a call: a kernel's dispatch, or a fill or copy."""

    index: int
    kernel: str
    sources: list[str]
    """The model's names for what it computes."""
    ops: list[str]
    strategy: str
    knobs: str
    rejected: list[str]
    """Strategies that do not apply, with the reason."""
    grid: tuple[int, int, int]
    submission: int
    wave: int
    producers: list[int]
    """The dispatches whose results it reads, by index."""
    us: float
    share: float
    """Of the time of all dispatches."""
    busy_us: tuple[float, ...]
    """By worker."""
    idle_us: float
    """What workers together waited for others, or for the barrier after it."""
    gap_us: float
    """Between the end of the wave before and its own beginning."""
    flops: int | None
    gflop_per_s: float | None
    of_peak: float | None
    """Of the measured peak of multiply-adds."""
    bytes: int
    gb_per_s: float
    of_bandwidth: float
    """Of the measured read bandwidth of memory; above 1 when the data is in a cache."""
    bytes_from: dict[str, int]
    """Which level of memory they come from."""
    compute_us: float
    """What its arithmetic takes at least on this machine."""
    memory_us: float
    """What moving its bytes takes at least."""
    of_limit: float
    """The greater of both, divided by the time it took."""
    bound: str
    """'compute', or the level of memory that takes the longest."""
    why: list[str]
    """Why it is not faster."""

    @property
    def limit_us(self) -> float:
        return max(self.compute_us, self.memory_us)

    @property
    def short_name(self) -> str:
        """The kernel without the number of its first dispatch: 'conv_1x56x56x64_f32'."""
        _, found, rest = self.kernel.partition("_dispatch_")
        return rest.partition("_")[2] or self.kernel if found else self.kernel

    @property
    def kind(self) -> str:
        """What it mainly does: 'conv', 'softmax', 'copy'."""
        return re.split(r"_[\dd]", self.short_name)[0]

    @property
    def title(self) -> str:
        return f"#{self.index} {self.short_name}, {self.us:.1f} us"


@dataclass(frozen=True)
class Report:
    """All dispatches of one call, in order."""

    module: str
    entry: str
    target: str
    driver: str
    machine: Machine
    runs: int
    call_us: float
    """Median time of a call without timers."""
    fastest_us: float
    """Time of the fastest call without timers."""
    dispatches: list[Dispatch]
    others: float = 0.0
    """The part of the machine's CPUs that other programs had while calls were measured."""

    @property
    def dispatch_us(self) -> float:
        return sum(one.us for one in self.dispatches)

    @property
    def gap_us(self) -> float:
        return sum(one.gap_us for one in self.dispatches)

    @property
    def idle_us(self) -> float:
        return sum(one.idle_us for one in self.dispatches)

    @property
    def limit_us(self) -> float:
        return sum(one.limit_us for one in self.dispatches)

    def totals(self) -> dict[str, Any]:
        """Sums over the dispatches. `flops` is None when that of one is known only at run time."""
        flops = [one.flops for one in self.dispatches]
        return {
            "call_us": self.call_us,
            "fastest_us": self.fastest_us,
            "dispatches": len(self.dispatches),
            "dispatch_us": self.dispatch_us,
            "gap_us": self.gap_us,
            "idle_us": self.idle_us,
            "limit_us": self.limit_us,
            "flops": None if None in flops else sum(count or 0 for count in flops),
            "bytes": sum(one.bytes for one in self.dispatches),
        }

    def kinds(self) -> list[tuple[str, int, float, float]]:
        """Dispatches by what they mainly do, the slowest kind first: name, number, microseconds, part of the limit."""
        found: dict[str, list[Dispatch]] = {}
        for one in self.dispatches:
            found.setdefault(one.kind, []).append(one)
        times = {kind: sum(one.us for one in same) for kind, same in found.items()}
        limits = {kind: sum(one.limit_us for one in same) / max(times[kind], 1e-3) for kind, same in found.items()}
        order = sorted(found, key=lambda kind: -times[kind])
        return [(kind, len(found[kind]), times[kind], limits[kind]) for kind in order]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": 1,
            "module": self.module,
            "entry": self.entry,
            "target": self.target,
            "driver": self.driver,
            "runs": self.runs,
            "others": _rounded(self.others),
            "machine": self.machine.to_json(),
            "totals": {key: _rounded(value) for key, value in self.totals().items()},
            "dispatches": [{key: _rounded(value) for key, value in asdict(one).items()} for one in self.dispatches],
        }


def make_report(
    manifest: Mapping[str, Any],
    entry: str,
    runs: Sequence[Sequence[Event]],
    call_us: Sequence[float],
    machine: Machine,
    *,
    module: str = "",
    driver: str = "local-task",
    others: float = 0.0,
) -> Report:
    """Puts together what was measured (profiled `runs` and plain `call_us`) and what the manifest says."""
    measured = timings(runs, machine.workers)
    events = runs[0] if runs else []
    facts = _Facts(manifest, entry, events)
    made_by, by_level = producers(events), bytes_by_level(events, machine.levels, machine.workers)
    total_us = sum(one.us for one in measured) or 1.0
    dispatches = [
        _dispatch(index, timing, facts, made_by[index], by_level[index], total_us, machine)
        for index, timing in enumerate(measured)
    ]
    return Report(
        module=module,
        entry=entry,
        target=str(manifest.get("provenance", {}).get("target", "")),
        driver=driver,
        machine=machine,
        runs=len(runs),
        call_us=median(call_us) if call_us else 0.0,
        fastest_us=min(call_us, default=0.0),
        dispatches=dispatches,
        others=others,
    )


class _Facts:
    """What the manifest says of a command: its kernel, and the model's names. Modules of other writers say nothing."""

    def __init__(self, manifest: Mapping[str, Any], entry: str, events: Sequence[Event]) -> None:
        kernels = {kernel["name"]: kernel for kernel in manifest.get("kernels", ())}
        self.kernels = [kernels.get(event.name, {}) for event in events]
        self.flops = [_flops(kernels.get(event.name), event.constants) for event in events]
        names = manifest.get("sources", {}).get(entry, [])
        of_dispatches = [index for index, event in enumerate(events) if event.name in kernels]
        # A program without loops records each dispatch once, in the order of the list.
        fits = len(names) == len(of_dispatches)
        self.sources: dict[int, list[str]] = dict(zip(of_dispatches, names, strict=True)) if fits else {}


def _flops(kernel: Mapping[str, Any] | None, constants: Sequence[int]) -> int | None:
    """Of one dispatch; sizes that depend on the call are among its push constants."""
    if kernel is None:
        return 0
    flops, terms = kernel.get("flops"), kernel.get("flop_terms", ())
    used = [ordinal for _, *ordinals in terms for ordinal in ordinals]
    if flops is not None or not terms or max(used, default=0) >= len(constants):
        return flops
    return sum(factor * prod(constants[ordinal] for ordinal in ordinals) for factor, *ordinals in terms)


def _dispatch(
    index: int,
    timing: Timing,
    facts: _Facts,
    made_by: list[int],
    by_level: list[float],
    total_us: float,
    machine: Machine,
) -> Dispatch:
    kernel = facts.kernels[index]
    flops = facts.flops[index]
    bytes_ = min(timing.bytes, kernel.get("bytes") or timing.bytes)
    scale = bytes_ / timing.bytes if timing.bytes else 0.0
    moved = {level.name: count * scale for level, count in zip(machine.levels, by_level, strict=True)}
    level_us = {level.name: moved[level.name] / level.bytes_per_s * 1e6 for level in machine.levels}
    compute_us, memory_us = (flops or 0) / machine.flops_per_s * 1e6, sum(level_us.values())
    if compute_us > timing.us:
        compute_us = 0.0  # the code leaves a part of the counted arithmetic out, so that it is no limit
    seconds = max(timing.us, 1e-3) / 1e6
    worst = max(level_us, key=lambda name: level_us[name])
    made = Dispatch(
        index=index,
        kernel=timing.name,
        sources=facts.sources.get(index, []),
        ops=list(kernel.get("ops", ())),
        strategy=kernel.get("strategy", ""),
        knobs=kernel.get("knobs", ""),
        rejected=list(kernel.get("rejected", ())),
        grid=timing.grid,
        submission=timing.submission,
        wave=timing.wave,
        producers=made_by,
        us=timing.us,
        share=timing.us / total_us,
        busy_us=timing.busy_us,
        idle_us=timing.idle_us,
        gap_us=timing.gap_us,
        flops=flops,
        gflop_per_s=None if flops is None else flops / seconds / 1e9,
        of_peak=None if flops is None else flops / seconds / machine.flops_per_s,
        bytes=bytes_,
        gb_per_s=bytes_ / seconds / 1e9,
        of_bandwidth=bytes_ / seconds / machine.memory.bytes_per_s,
        bytes_from={name: round(count) for name, count in moved.items() if count},
        compute_us=compute_us,
        memory_us=memory_us,
        of_limit=max(compute_us, memory_us) / max(timing.us, 1e-3),
        bound="compute" if compute_us >= memory_us else worst,
        why=[],
    )
    made.why.extend(reasons(made, kernel, machine))
    return made


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else value
