"""Numbers that count through several loops, and back: workgroups, threads and steps are counted by one number each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.common.sizes import ONE, Size
from eyas.codegen.gpu.memory import Memory


def decode(memory: Memory, number: mlir.Value, sizes: Sequence[Size]) -> list[mlir.Value]:
    """The index along each of the sizes, the last of which counts fastest."""
    indices: list[mlir.Value] = []
    for position, size in reversed(list(enumerate(sizes))):
        if size == ONE:
            indices.append(memory.at.index(0))
        elif position == 0 or all(one == ONE for one in sizes[:position]):
            indices.append(number)
        else:
            extent = memory.size(size)
            indices.append(arith.RemUIOp(number, extent).result)
            number = arith.DivUIOp(number, extent).result
    return indices[::-1]


MAX_GRID = 65_535
"""Workgroups along x that every device takes; where there may be more, each has several of them to do."""


def fits_a_grid(extent: Size, piece: int) -> bool:
    """Whether the grid surely has a workgroup for each piece of an extent."""
    return extent.static is not None and -(-extent.static // piece) <= MAX_GRID


def each(
    low: mlir.Value, high: mlir.Value, step: mlir.Value, run: Callable[[mlir.Value], None], most_once: bool = False
) -> None:
    """Runs code for low, low + step, ... below high; where that is known to be once at the most, without a loop."""
    if most_once:
        branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, low, high).result)
        with mlir.InsertionPoint(branch.then_block):
            run(low)
            scf.YieldOp([])
        return
    loop = scf.ForOp(low, high, step)
    with mlir.InsertionPoint(loop.body):
        run(loop.induction_variable)
        scf.YieldOp([])
