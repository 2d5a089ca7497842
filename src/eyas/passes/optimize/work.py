"""How much work ops are, in points of the loops that they will be."""

from __future__ import annotations

import math

from torch_mlir import ir as mlir

from eyas.ir.walk import is_tensor
from eyas.passes.dispatch.grouping import indexing_maps

CONTROL = ("scf.if", "scf.while", "scf.for")


def points_of(block: mlir.Block) -> int:
    """Points of all loops of the linalg ops in a block."""
    total = 0
    for view in block.operations:
        op = view.operation
        maps = indexing_maps(op) if op.name.startswith("linalg.") else None
        if maps is None:
            continue
        sizes: dict[int, int] = {}
        for operand, map_ in zip(op.operands, maps, strict=False):
            if is_tensor(operand) and mlir.RankedTensorType(operand.type).has_static_shape:
                for expr, size in zip(map_.results, mlir.RankedTensorType(operand.type).shape, strict=True):
                    if isinstance(expr, mlir.AffineDimExpr):
                        sizes[expr.position] = size
        total += math.prod(sizes.values())
    return total


def points_inside(op: mlir.Operation) -> int:
    """Points of all loops of the linalg ops in the blocks of an op, and in those of the branches and loops inside."""
    total = 0
    for region in op.regions:
        for block in region.blocks:
            total += points_of(block)
            total += sum(points_inside(view.operation) for view in block.operations if view.operation.name in CONTROL)
    return total
