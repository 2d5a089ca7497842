"""Numbers that count through several loops, and back: workgroups, threads and steps are counted by one number each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.common.sizes import ONE, Size
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.trips import ROUNDS


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


def each_piece(memory: Memory, extent: Size, piece: int, run: Callable[[mlir.Value], None]) -> None:
    """Runs code for each piece of an extent that the workgroup has, given where it begins: one of them, unless
    there are more than a grid takes. All threads come there together."""
    at = memory.at
    first = arith.MulIOp(at.ids[0], at.index(piece)).result
    if fits_a_grid(extent, piece):
        run(first)
        return
    stride = arith.MulIOp(gpu.grid_dim(gpu.Dimension.x), at.index(piece)).result
    loop = scf.ForOp(first, memory.size(extent), stride)
    loop.operation.attributes[ROUNDS] = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), 1)
    with mlir.InsertionPoint(loop.body):
        run(loop.induction_variable)
        scf.YieldOp([])
