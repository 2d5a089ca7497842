"""Features of schedules for GPUs: the tile of a workgroup, resident threads, shared memory, waves of workgroups.

Fields of schedules are plain numbers there (`codegen/gpu/strategies`). What is read here is what several strategies
have by the same name, so a strategy that is added later has features without a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2
from typing import Any

from eyas.targets.gpu import GpuTarget
from eyas.tune.facts import Facts, LoopNest

_RESIDENT, _SHARED_OF_A_CORE = 2048, 4
"""Threads that a processor keeps at most, and how often its shared memory holds what one workgroup may have."""


def gpu_features(strategy: str, fields: Mapping[str, Any], facts: Facts, target: GpuTarget) -> dict[str, float]:
    del strategy
    numbers = {name: value for name, value in fields.items() if isinstance(value, int)}
    threads = max(1, numbers.get("threads", target.subgroup))
    found = {f"field {name}": log2(value + 1) for name, value in numbers.items() if value >= 0}
    found |= {
        "threads/subgroup": threads / max(target.subgroup, 1),
        "threads/most": threads / target.max_threads,
        "whole subgroups": float(threads % max(target.subgroup, 1) == 0),
        "target near shared": float(target.facts.shared_is_near),
    }
    nest = max(facts.plain or facts.nests, key=lambda one: one.points, default=None)
    if nest is None:
        return found
    rows, columns, depth = product_sizes(nest)
    if not {"row_points", "row_fragments"} & set(numbers):
        rows, columns = _flat(numbers, rows, columns)
    height, width = _tile(numbers, threads)
    groups = ceil(rows / height) * ceil(columns / width)
    bytes_ = max((one.element_bytes for one in nest.operands), default=4)
    found |= {
        "rows": log2(rows + 1), "columns": log2(columns + 1), "depth": log2(depth + 1),
        "tile rows": log2(height + 1), "tile columns": log2(width + 1),
        "filled": rows * columns / (ceil(rows / height) * height * ceil(columns / width) * width),
        "multiply-adds/load": height * width / (height + width),
        "points of a thread": log2(height * width / threads + 1),
        "waves": log2(groups / target.cores + 1),
        "balance": groups / (ceil(groups / target.cores) * target.cores),
    }  # fmt: skip
    if "depth" in numbers:
        stages = numbers.get("buffers", 1) * numbers.get("slices", 1)
        shared = (height + width) * numbers["depth"] * bytes_ * stages
        resident = min(_RESIDENT // threads, _SHARED_OF_A_CORE * target.facts.shared // max(shared, 1))
        found |= {
            "shared/most": shared / max(target.workgroup_bytes, 1),
            "occupancy": max(resident, 0) * threads / _RESIDENT,
            "rounds": log2(depth / max(numbers["depth"] * numbers.get("slices", 1), 1) + 1),
        }
    return found


def product_sizes(nest: LoopNest) -> tuple[int, int, int]:
    """Rows, columns and steps of the sum: columns are what a result has side by side."""
    written = next((one for one in nest.operands if one.is_written), None)
    column = next((loop for loop, stride in enumerate(written.strides) if stride == 1), None) if written else None
    columns = nest.loops[column] if column is not None else 1
    return max(1, nest.points // max(columns * nest.depth, 1)), max(columns, 1), max(nest.depth, 1)


def _tile(numbers: Mapping[str, int], threads: int) -> tuple[int, int]:
    """Rows and columns of a workgroup's tile."""
    if "row_fragments" in numbers:
        columns = max(1, numbers.get("columns", 1))
        lines = max(1, threads // max(1, numbers.get("subgroup", 32) * numbers.get("parts", 1) * columns))
        return (
            max(1, lines * numbers["row_fragments"] * numbers.get("fragment_rows", 1)),
            max(1, columns * numbers.get("column_fragments", 1) * numbers.get("fragment_columns", 1)),
        )
    if "row_points" in numbers:
        columns = max(1, numbers.get("columns", 1))
        lines = max(1, threads // max(1, numbers.get("slices", 1) * columns))
        return max(1, lines * numbers["row_points"]), max(1, columns * numbers.get("column_points", 1))
    if "team" in numbers:  # whole rows, each by a team
        return max(1, threads // max(numbers["team"], 1)), 1
    if "across" in numbers:
        return 1, max(1, numbers["across"])
    return 1, max(1, threads * numbers.get("points", 1) * numbers.get("repeat", 1))


def _flat(numbers: Mapping[str, int], rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns as a strategy sees them that is none of products: rows by themselves, columns, or all points."""
    if "team" in numbers:
        return rows, 1
    return (1, columns) if "across" in numbers else (1, rows * columns)
