"""What the conversions of windows and convolutions share: padding by values, and how many windows fit."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir.dialects import arith, tensor

from eyas.ir import mlir
from eyas.ir.structured import index_constant


def pad(operand: mlir.Value, fill: mlir.Value, padding: Sequence[Sequence[mlir.Value]]) -> mlir.Value:
    """The tensor with (low, high) more elements in each dimension; all its sizes are dynamic until they fold."""
    type_ = mlir.RankedTensorType(operand.type)
    dynamic = [mlir.ShapedType.get_dynamic_size()] * type_.rank
    lows, highs = ([pair[side] for pair in padding] for side in (0, 1))
    op = tensor.PadOp(
        mlir.RankedTensorType.get(dynamic, type_.element_type),
        operand,
        lows,
        highs,
        mlir.DenseI64ArrayAttr.get(dynamic),
        mlir.DenseI64ArrayAttr.get(dynamic),
    )
    index = mlir.IndexType.get()
    block = op.regions[0].blocks.append(*[index] * type_.rank, arg_locs=[mlir.Location.current] * type_.rank)
    with mlir.InsertionPoint(block):
        tensor.YieldOp(fill)
    return op.result


def window_count(size: mlir.Value, extent: mlir.Value, stride: int, dilation: int) -> mlir.Value:
    """How many windows of `extent` elements fit, and none where not even one does."""
    covered = arith.addi(arith.muli(arith.subi(extent, index_constant(1)), index_constant(dilation)), index_constant(1))
    room = arith.addi(arith.subi(size, covered), index_constant(stride))
    return arith.maxsi(arith.floordivsi(room, index_constant(stride)), index_constant(0))
