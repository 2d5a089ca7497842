"""Why a dispatch is not faster, in sentences: what bounds it, who waits, which strategy was not possible."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyas.explain.machine import Machine
    from eyas.explain.report import Dispatch

# Below these parts of a dispatch's time a reason is not worth a sentence.
_NEAR_LIMIT, _IDLE, _GAP = 0.85, 0.1, 0.2
_TINY_US = 3.0
# A worker that was busy for less than this part of another's time was held up by something else.
_TOOK_PART = 0.1
_STRATEGY_OF_PRODUCTS = "contraction"


def reasons(dispatch: Dispatch, kernel: Mapping[str, Any], machine: Machine) -> list[str]:
    """The most telling first."""
    found = [_bound(dispatch, machine)]
    if dispatch.of_peak is not None and dispatch.of_peak > 1:
        found.append("above the peak: the code leaves out a part of the arithmetic that is counted, such as zeros")
    if dispatch.of_limit < _NEAR_LIMIT:
        found += [*_waiting(dispatch, machine), *_strategy(dispatch), *kernel.get("remarks", ())]
        if dispatch.us < _TINY_US:
            found.append(f"{dispatch.us:.1f} us are mostly the cost of starting it; fused with a neighbour it is free")
        elif len(found) == 1:
            found.append("nothing that was measured explains the rest: latency, cache misses, other instructions")
    if dispatch.gap_us > _GAP * dispatch.us and dispatch.gap_us > 0.5:
        found.append(f"its workers started {dispatch.gap_us:.1f} us after the barrier before it")
    return found


def _bound(dispatch: Dispatch, machine: Machine) -> str:
    if dispatch.flops is None and dispatch.bound != "compute":
        return f"sizes are known only at run time: flops are not counted; moves {_bytes(dispatch.bytes)}"
    if not dispatch.limit_us:
        return "no work"
    near = "at the limit: " if dispatch.of_limit >= _NEAR_LIMIT else ""
    least = f"at least {_us(dispatch.limit_us)}, takes {_us(dispatch.us)}"
    if dispatch.bound == "compute":
        return f"{near}bound by arithmetic: {(dispatch.flops or 0) / 1e6:.3g} MFLOP need {least}"
    moved = dispatch.bytes_from.get(dispatch.bound, 0)
    level = next(one for one in machine.levels if one.name == dispatch.bound)
    speed = f"{level.bytes_per_s / 1e9:.0f} GB/s"
    return f"{near}bound by memory: {_bytes(moved)} from {dispatch.bound} at {speed} need {least}"


def _waiting(dispatch: Dispatch, machine: Machine) -> list[str]:
    """Workers that had nothing to do."""
    workgroups, workers = prod(dispatch.grid), machine.workers
    available_us = dispatch.us * workers
    if workers == 1 or not available_us or dispatch.idle_us < _IDLE * available_us:
        return []
    waited = f"{dispatch.idle_us / available_us:.0%} of the workers' time is waiting"
    if workgroups == 1:
        return [f"{waited}: there is one workgroup, so one worker does all of it"]
    busy = ", ".join(_us(one) for one in dispatch.busy_us)
    if workgroups >= 2 * workers and min(dispatch.busy_us) < _TOOK_PART * max(dispatch.busy_us):
        return [f"{waited}: a worker hardly took part (busy: {busy}); another program had its core"]
    if workgroups % workers:
        return [f"{waited}: {workgroups} workgroups for {workers} workers do not come out even (busy: {busy})"]
    return [f"{waited}: workers were busy for {busy}"]


def _strategy(dispatch: Dispatch) -> list[str]:
    """What keeps a better strategy from being used."""
    found = []
    if dispatch.strategy == "loops":
        found.append("plain loops, one element at a time: no vectors but those that LLVM finds in machine code")
    wanted = [_STRATEGY_OF_PRODUCTS] if dispatch.flops else []
    wanted += ["rows", "loop nests"] if dispatch.strategy == "loops" else []
    for reason in dispatch.rejected:
        if reason.partition(":")[0] in wanted:
            found.append(f"not {reason}")
    return found


def _us(microseconds: float) -> str:
    return f"{microseconds / 1e3:.2f} ms" if microseconds >= 1e3 else f"{microseconds:.1f} us"


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"
