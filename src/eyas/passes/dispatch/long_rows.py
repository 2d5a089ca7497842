"""Rows that are too long to keep: ops that can go through them together all the same.

Each op makes one element of a row out of elements at the same place and of numbers of the row, or one number of all
elements. Then nothing but such numbers has to be kept: what is made of elements is made again by whoever reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from torch_mlir import ir as mlir

from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.kernel import generic_iterators, generic_maps
from eyas.ir.structured import split_operands
from eyas.ir.walk import defining_op


def passes_along_rows(ops: Sequence[mlir.Operation], rows: int) -> bool:
    """Whether ops that have the first `rows` loops in common are of that kind."""
    members, lengths = set(ops), set()
    for op in ops:
        if op.name != "linalg.generic":
            return False
        loops = generic_iterators(op.opview)
        own, maps = loops[rows:], generic_maps(op.opview)
        made = [_own_size(result, rows) for result in op.results]
        sums = "reduction" in loops
        if "reduction" in loops[:rows] or (sums and ("parallel" in _long(op, maps, loops, rows) or not _is_sum(op))):
            return False
        reads = list(zip(op.operands, maps, strict=False))
        if any(defining_op(value) in members and not _in_place(map_, rows, len(own)) for value, map_ in reads):
            return False
        lengths |= set(made)
        if sums:
            lengths |= {_own_size(value, rows) for value in op.operands if defining_op(value) in members}
    return len(lengths - {(1, 0)}) <= 1


def _own_size(value: mlir.Value, rows: int) -> tuple[int, int]:
    """Elements of a row of a tensor: how many, and how many sizes are known only at run time."""
    type_ = mlir.RankedTensorType(value.type)
    own = [None if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim) for dim in range(rows, type_.rank)]
    return prod(size for size in own if size is not None), own.count(None)


def _long(op: mlir.Operation, maps: Sequence[mlir.AffineMap], loops: Sequence[str], rows: int) -> list[str]:
    """What the loops inside of a row are that have more than one round."""
    made = mlir.RankedTensorType(op.results[0].type)
    ones = {
        expr.position
        for dim, expr in enumerate(maps[-1].results)
        if isinstance(expr, mlir.AffineDimExpr) and not made.is_dynamic_dim(dim) and made.get_dim_size(dim) == 1
    }
    return [kind for loop, kind in enumerate(loops) if loop >= rows and loop not in ones]


def _is_sum(op: mlir.Operation) -> bool:
    inputs, _ = split_operands(op)
    return combiner_of(op.regions[0].blocks[0], len(inputs)) is not None


def _in_place(map_: mlir.AffineMap, rows: int, own: int) -> bool:
    """Whether all elements of a row are read in order, or numbers that all of them share."""
    results = list(map_.results)[rows:]
    if all(isinstance(one, mlir.AffineConstantExpr) for one in results):
        return True
    positions = [one.position for one in results if isinstance(one, mlir.AffineDimExpr)]
    return positions == list(range(rows, rows + own)) and len(positions) == len(results)
