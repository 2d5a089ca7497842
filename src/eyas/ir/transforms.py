"""Linear transforms of small tiles: `out[p, q] = sum over i, j of left[p, i] * right[q, j] * in[i, j]`.

The matrices are constants in the IR, so that code generation can write the sums out as a few additions. This is what
the input and the output of a Winograd convolution go through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg

from eyas.ir.structured import generic
from eyas.ir.walk import defining_op

MAX_TABLE_ELEMENTS = 64
_INPUTS = 3


@dataclass(frozen=True)
class TileLoops:
    """Loops of a transform: `left[p, i]` and `right[q, j]`."""

    p: int
    q: int
    i: int
    j: int


def tile_transform(
    source: mlir.Value,
    source_map: mlir.AffineMap,
    matrices: tuple[np.ndarray, np.ndarray],
    loops: TileLoops,
    init: mlir.Value,
    init_map: mlir.AffineMap,
) -> mlir.Value:
    """Builds a transform; `init` is a tensor of zeros, which the maps relate to the loops."""
    count = source_map.n_dims
    element = mlir.RankedTensorType(source.type).element_type
    tables = [_table(matrix, element) for matrix in matrices]
    dims = [mlir.AffineDimExpr.get(loop) for loop in range(count)]
    table_maps = [mlir.AffineMap.get(count, 0, [dims[a], dims[b]]) for a, b in ((loops.p, loops.i), (loops.q, loops.j))]
    kinds = ["reduction" if loop in (loops.i, loops.j) else "parallel" for loop in range(count)]
    op = generic([source, *tables], [init], [source_map, *table_maps, init_map], kinds)
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        value, left, right, old = block.arguments
        factor = arith.MulFOp(left, right).result
        linalg.YieldOp([arith.AddFOp(old, arith.MulFOp(factor, value).result).result])
    return op.results[0]


def _table(matrix: np.ndarray, element: mlir.Type) -> mlir.Value:
    type_ = mlir.RankedTensorType.get(list(matrix.shape), element)
    values = [mlir.FloatAttr.get(element, float(value)) for value in matrix.reshape(-1)]
    return arith.ConstantOp(type_, mlir.DenseElementsAttr.get(values, type_)).result


def is_transform(op: mlir.Operation) -> bool:
    """Whether an op is such a transform: one tensor, and two constant matrices that share no loop."""
    if op.name != "linalg.generic" or len(op.operands) != _INPUTS + 1 or len(op.results) != 1:
        return False
    if not all(is_small_table(defining_op(table)) for table in list(op.operands)[1:_INPUTS]):
        return False
    if not is_sum_of_products(op.regions[0].blocks[0]):
        return False
    maps = [mlir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]]
    tables = [_plain_dims(map_) for map_ in maps[1:_INPUTS]]
    reductions = [loop for loop, kind in enumerate(op.attributes["iterator_types"]) if "reduction" in str(kind)]
    loops = [loop for table in tables for loop in table]
    return (
        all(len(table) == 2 for table in tables)
        and len(set(loops)) == len(loops)
        and sorted(table[1] for table in tables) == reductions
    )


def is_matrix_of_transforms(op: mlir.Operation) -> bool:
    """Whether a constant is needed for nothing else."""
    if len(op.results) != 1 or not is_small_table(op):
        return False
    users = [use.owner.operation for use in op.results[0].uses]
    return bool(users) and all(is_transform(user) for user in users)


def is_small_table(op: mlir.Operation | None) -> bool:
    """A constant matrix with more than one value, of few elements."""
    if op is None or op.name != "arith.constant" or not isinstance(op.results[0].type, mlir.RankedTensorType):
        return False
    type_ = mlir.RankedTensorType(op.results[0].type)
    return type_.rank == 2 and type_.shape[0] * type_.shape[1] <= MAX_TABLE_ELEMENTS


def is_sum_of_products(body: mlir.Block) -> bool:
    """Whether a body adds the product of its three inputs to the old value."""
    ops = [view.operation for view in body.operations]
    if [op.name for op in ops] != ["arith.mulf", "arith.mulf", "arith.addf", "linalg.yield"]:
        return False
    inputs, old = set(list(body.arguments)[:_INPUTS]), body.arguments[_INPUTS]
    first, second, total, end = ops
    factors = {*first.operands, *second.operands} - {first.results[0]}
    return (
        len(body.arguments) == _INPUTS + 1
        and factors == inputs
        and first.results[0] in list(second.operands)
        and set(total.operands) == {old, second.results[0]}
        and end.operands[0] == total.results[0]
    )


def _plain_dims(map_: mlir.AffineMap) -> Sequence[int]:
    return [expr.position for expr in map_.results if isinstance(expr, mlir.AffineDimExpr)]
