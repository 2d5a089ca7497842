"""A candidate in numbers: what an order of trials sees of it.

They say what a schedule does to the machine rather than how it is written: multiply-adds for each load of the register
tile, registers that it takes, lanes that stay empty, workgroups for each core, bytes against caches. So they mean the
same for a dispatch, a strategy or a target that was never seen. The knobs themselves come on top.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import ceil, log2, prod
from typing import Any

from eyas.targets import Target
from eyas.targets.cpu import CpuTarget
from eyas.targets.gpu import GpuTarget
from eyas.tune.facts import Facts, LoopNest, Operand
from eyas.tune.gpu_features import gpu_features
from eyas.tune.trials import Candidate

Features = dict[str, float]
Key = tuple[str, str, str, str]

_VMVX_ROWS, _VMVX_COLUMNS, _VMVX_REGISTERS = 8, 16, 16
_SCHEDULE = re.compile(r'\s*#codegen\.strategy<\s*"([^"]*)"\s*(?:,\s*(\{.*\})\s*)?>\s*', re.DOTALL)


def key_of(candidate: Candidate) -> Key:
    """What tells a candidate from any other."""
    return candidate.dispatch, candidate.target, candidate.strategy, candidate.schedule


def features_of(candidate: Candidate, facts: Facts, target: Target) -> Features:
    """All features of a candidate. Sizes are logarithms to base 2, since ratios are what matters."""
    _, schedule = parse_schedule(candidate.schedule)
    found = _shape_features(facts) | _target_features(target)
    found[f"strategy {candidate.strategy}"] = 1.0
    for name, value in candidate.point.items():
        found[f"knob {name}"] = _log(value) if value >= 0 else -1.0
    if isinstance(target, GpuTarget):
        return found | gpu_features(candidate.strategy, schedule, facts, target)
    if "tiles" in schedule:
        found |= _nest_features(schedule, facts, target)
    return found


def parse_schedule(text: str) -> tuple[str, dict[str, Any]]:
    """The strategy's name and its fields as plain data; raises ValueError for what is no schedule."""
    match = _SCHEDULE.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is no schedule; one looks like #codegen.strategy<"name", {{...}}>')
    fields = re.sub(r" : [iuf]\d+|array<i64: ?", lambda one: "[" if "array" in one[0] else "", match[2] or "{}")
    return match[1], json.loads(re.sub(r"(\w+) = ", r'"\1": ', fields.replace(">", "]")))


def _shape_features(facts: Facts) -> Features:
    nest = heaviest(facts.nests)
    found = {
        "shape flops": _log(facts.flops),
        "shape bytes": _log(facts.bytes),
        "shape flops/byte": _log(facts.flops / max(facts.bytes, 1)),
        "shape nests": float(len(facts.nests)),
    }
    if nest is not None:
        found |= {
            "shape points": _log(nest.points),
            "shape depth": _log(nest.depth),
            "shape loops": float(len(nest.loops)),
            "shape operands": float(len(nest.operands)),
            "shape element bytes": float(max((one.element_bytes for one in nest.operands), default=0)),
        }
    return found


def _target_features(target: Target) -> Features:
    caches = target.caches
    found = {
        "target cores": _log(target.cores),
        "target l1": _log(caches.l1d_bytes),
        "target l2": _log(caches.l2_bytes),
        "target l3": _log(caches.l3_bytes),
        f"target {target.backend}": 1.0,
    }
    if isinstance(target, CpuTarget):
        found |= {"target vector bits": _log(target.vector_bits), "target registers": float(target.vector_registers)}
    return found


def heaviest(nests: tuple[LoopNest, ...]) -> LoopNest | None:
    """The nest with the most points: where the time goes."""
    return max(nests, key=lambda one: one.points, default=None)


def _nest_features(schedule: Mapping[str, Any], facts: Facts, target: Target) -> Features:
    """Of a schedule of tiles and a grid (`codegen/common/schedule.py`)."""
    nests = facts.nests if "block" in schedule or len(facts.plain) != len(schedule["tiles"]) else facts.plain
    if not nests or len(nests) != len(schedule["tiles"]):
        return {}
    number = max(range(len(nests)), key=lambda one: nests[one].points)
    nest, tile = nests[number], schedule["tiles"][number]
    grid = {axis["loop"]: axis["tile"] for axis in schedule.get("grid", []) if axis["loop"] < len(nest.loops)}
    return (
        _tile_features(tile, nest, target)
        | _grid_features(tile, grid, nest, target)
        | {
            "staged": float(len(schedule.get("staged", []))),
            "packed": float(len(schedule.get("packed", []))),
            "block rows": _log(schedule["block"]["rows"]) if "block" in schedule else -1.0,
            "inside": float(len(tile.get("inside", []))),
        }
    )


def _tile_features(tile: Mapping[str, Any], nest: LoopNest, target: Target) -> Features:
    loop, row_loop = tile.get("loop"), tile.get("unroll_loop")
    width, vectors, rows = tile.get("width", 1), tile.get("vectors", 1), tile.get("unroll", 1)
    lanes = width * vectors
    native, registers = _registers_of(target, nest)
    read = [one for one in nest.operands if not one.is_written]
    along = [one for one in read if one.moves(loop)]
    vector_count = max(1, ceil(lanes / native))
    loads = sum(
        (_loads(one, loop, vector_count, lanes) if one in along else 1) * (rows if one.moves(row_loop) else 1)
        for one in read
    )
    sums = vector_count * rows
    is_sum = loop is not None and loop in nest.reductions
    empty_lanes = _fill(nest.loops[loop], lanes) if loop is not None else 1.0
    empty_rows = _fill(nest.loops[row_loop], rows) if row_loop is not None else 1.0
    return {
        "width/native": _log(width / native),
        "lanes": _log(lanes),
        "rows": _log(rows),
        "sums": _log(sums),
        "multiply-adds/load": sums / max(loads, 1),
        "registers": (sums + vector_count + 1) / registers,
        "filled lanes": empty_lanes,
        "filled rows": empty_rows,
        "lanes along a sum": float(is_sum),
        "lanes apart": float(sum(one.strides[loop] > 1 for one in nest.operands if loop is not None)),
        "rows reuse": float(sum(not one.moves(row_loop) for one in along)),
        "panel/l1": _log(lanes * nest.depth * _bytes(nest) / target.caches.l1d_bytes) if not is_sum else -8.0,
        "rows of depth/l1": _log(rows * nest.depth * _bytes(nest) / target.caches.l1d_bytes),
        "lane extent": _log(nest.loops[loop]) if loop is not None else 0.0,
        "row extent": _log(nest.loops[row_loop]) if row_loop is not None else 0.0,
        "dot": float(tile.get("dot", 1)),
    }


def _grid_features(tile: Mapping[str, Any], grid: Mapping[int, int], nest: LoopNest, target: Target) -> Features:
    counts = [ceil(nest.loops[loop] / max(piece, 1)) for loop, piece in grid.items()]
    groups = prod(counts)
    pieces = tuple(min(grid.get(loop, extent), extent) for loop, extent in enumerate(nest.loops))
    held = sum(one.elements(pieces) * one.element_bytes for one in nest.operands)
    lanes, loop, row_loop = tile.get("width", 1) * tile.get("vectors", 1), tile.get("loop"), tile.get("unroll_loop")
    filled = 1.0
    # A piece that holds no whole tiles has a tail of its own.
    for one, step in ((loop, lanes), (row_loop, tile.get("unroll", 1))):
        if one is not None and one in grid:
            filled *= _fill(pieces[one], step)
    return {
        "workgroups": _log(groups),
        "workgroups/core": _log(groups / target.cores),
        "balance": groups / (ceil(groups / target.cores) * target.cores),
        "filled pieces": filled,
        "work of a group": _log(prod(pieces)),
        "group bytes/l1": _log(held / target.caches.l1d_bytes),
        "group bytes/l2": _log(held / target.caches.l2_bytes),
        "grid axes": float(len(grid)),
        "lanes in grid": float(loop in grid),
        "rows in grid": float(row_loop in grid),
    }


def _registers_of(target: Target, nest: LoopNest) -> tuple[int, int]:
    """Lanes of a vector register, and how many there are."""
    if isinstance(target, CpuTarget):
        return target.lanes(8 * min(_bytes(nest), 8)), target.vector_registers
    return _VMVX_ROWS * _VMVX_COLUMNS, _VMVX_REGISTERS


def _loads(operand: Operand, loop: int | None, vectors: int, lanes: int) -> int:
    """Of one operand along the lanes: a vector each where neighbours are side by side, else a lane each."""
    assert loop is not None
    return vectors if abs(operand.strides[loop]) == 1 else lanes


def _bytes(nest: LoopNest) -> int:
    return max((one.element_bytes for one in nest.operands), default=4)


def _fill(extent: int, step: int) -> float:
    """The part of a loop in whole tiles that does useful work."""
    return extent / (ceil(extent / step) * step) if extent > 0 and step > 0 else 1.0


def _log(value: float) -> float:
    """Grows like a logarithm and is 0 at 0; ratios below 1 keep apart."""
    return log2(value + 1)
