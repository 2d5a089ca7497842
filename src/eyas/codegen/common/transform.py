"""Transforms of small tiles by constant matrices (see `ir/transforms.py`), found in a nest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.schedule import Schedule
from eyas.codegen.common.sizes import ZERO
from eyas.ir.structured import constant_scalar
from eyas.ir.transforms import is_sum_of_products


@dataclass(frozen=True)
class TileTransform:
    """`out[p, q] = sum over i, j of left[p, i] * right[q, j] * source[i, j]`, where p, q, i, j are loops of a nest."""

    source: Access
    left: np.ndarray
    right: np.ndarray
    p: int
    q: int
    i: int
    j: int


def transform_of(nest: Nest) -> TileTransform | None:
    """The transform that a nest begins with, if it does."""
    statement = nest.statements[0]
    inputs = statement.inputs
    if len(inputs) != 3 or statement.body is None or not all(isinstance(source, Access) for source in inputs):
        return None
    source, *tables = (access for access in inputs if isinstance(access, Access))
    if any(table.storage.values is None for table in tables) or not is_sum_of_products(statement.body):
        return None
    init = statement.inits[0]
    if not isinstance(init, mlir.Value) or constant_scalar(init) != 0:
        return None
    loops = [[loop for loop, stride in enumerate(table.strides) if stride != ZERO] for table in tables]
    if [len(pair) for pair in loops] != [2, 2] or {loops[0][1], loops[1][1]} != set(statement.reductions):
        return None
    left, right = (table.storage.values for table in tables)
    assert left is not None and right is not None
    return TileTransform(source, left, right, loops[0][0], loops[1][0], loops[0][1], loops[1][1])


def reads_matrices(kernel: Kernel) -> bool:
    """Whether code must be made from the values of a matrix."""
    return any(access.storage.values is not None for nest in kernel.nests for access in nest.accesses)


def check_transform(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why a transform cannot run under a schedule on any target, or None."""
    transform = transform_of(kernel.nests[0]) if len(kernel.nests) == 1 else None
    if transform is None:
        return "tiles: the dispatch is no transform of small tiles by constant matrices"
    within = (transform.p, transform.q, transform.i, transform.j)
    for name in ("loop", "unroll_loop"):
        for number, tile in enumerate(schedule.tiles):
            if getattr(tile, name) in within or (name == "loop" and tile.loop is None):
                return f"tiles[{number}].{name} is {getattr(tile, name)}; it must be a loop around the small tiles"
    for number, axis in enumerate(schedule.grid):
        if axis.loop in within:
            return f"grid[{number}].loop is {axis.loop}; workgroups cannot divide a small tile"
    if schedule.packed:
        return f"packed has {len(schedule.packed)} bindings; a transform reads no panels"
    return None
