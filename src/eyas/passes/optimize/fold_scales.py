"""`fold-scales`: what multiplies and shifts the channels of a convolution becomes part of its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir import Pass
from eyas.ir.structured import constant_scalar, empty_like, fill_value, generic
from eyas.ir.walk import defining_op, entry_block, functions
from eyas.passes.dispatch.grouping import indexing_maps
from eyas.passes.optimize.evaluate_constants import constant_ops

_CONVOLUTIONS = ("linalg.conv_2d_nhwc_hwcf", "linalg.depthwise_conv_2d_nhwc_hwc")


@dataclass(frozen=True)
class FoldScales(Pass):
    """Multiplies filters by constant factors of their channels, and starts sums from constants that are added.

    That is what is left of a batch normalisation at inference. Products are rounded elsewhere, by the same amount.

        %y = conv_2d_nhwc_hwcf(%x, %w) outs(zeros)
        %z = (%y * %scale) + %shift, each along the channels
      becomes, where weights, scale and shift are constants
        %s = %w * %scale                                                    : evaluated at compile time
        %z = conv_2d_nhwc_hwcf(%x, %s) outs(broadcast %shift)
    """

    name: ClassVar[str] = "fold-scales"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            block = entry_block(function)
            constant = constant_ops(block)
            for op in [view for view in block.operations if view.operation.name in _CONVOLUTIONS]:
                _fold(op, constant)


def _fold(op: mlir.OpView, constant: set[mlir.Operation]) -> None:
    """Takes one op after the other that follows a convolution into it."""
    zero = fill_value(op.operands[2])
    if zero is None or constant_scalar(zero) != 0 or defining_op(op.operands[1]) not in constant:
        return
    if not isinstance(mlir.RankedTensorType(op.results[0].type).element_type, mlir.F32Type):
        return
    while (found := _channelwise(op.results[0], constant)) is not None:
        user, kind, channels = found
        with mlir.InsertionPoint(user), user.location:
            if kind == "arith.mulf":
                op.operation.operands[1] = _scaled(op.operands[1], channels)
            else:
                op.operation.operands[2] = _repeated(channels, op.operands[2])
            op.operation.move_before(user)
        user.results[0].replace_all_uses_with(op.results[0])
        user.erase()
        if kind == "arith.addf":
            return


def _channelwise(value: mlir.Value, constant: set[mlir.Operation]) -> tuple[mlir.Operation, str, mlir.Value] | None:
    """The only op that reads a tensor, when it multiplies or shifts its last dimension by constants; and those."""
    users = list(value.uses)
    user = users[0].owner.operation if len(users) == 1 else None
    if user is None or user.name != "linalg.generic" or len(user.operands) != 3 or user.results[0].type != value.type:
        return None
    body = user.regions[0].blocks[0]
    ops = [one.operation for one in body.operations]
    if len(ops) != 2 or ops[0].name not in ("arith.mulf", "arith.addf") or ops[1].operands[0] != ops[0].results[0]:
        return None
    if {*ops[0].operands} != {body.arguments[0], body.arguments[1]}:
        return None
    own = 0 if user.operands[0] == value else 1
    other = user.operands[1 - own]
    maps = indexing_maps(user)
    assert maps is not None, "a generic has maps"
    rank = len(mlir.RankedTensorType(value.type).shape)
    if maps[own] != mlir.AffineMap.get_identity(rank) or maps[2] != maps[own] or defining_op(other) not in constant:
        return None
    return (user, ops[0].name, other) if _is_along_last(maps[1 - own], other, value) else None


def _is_along_last(map_: mlir.AffineMap, channels: mlir.Value, value: mlir.Value) -> bool:
    """Whether a tensor has one number for each channel, and is read so."""
    shape, last = mlir.RankedTensorType(channels.type).shape, mlir.AffineDimExpr.get(map_.n_dims - 1)
    size = mlir.RankedTensorType(value.type).shape[-1]
    if size == mlir.ShapedType.get_dynamic_size() or sum(extent != 1 for extent in shape) != (size != 1):
        return False
    return all(
        extent == 1 or (extent == size and expr == last) for extent, expr in zip(shape, map_.results, strict=True)
    )


def _flat(channels: mlir.Value) -> mlir.Value:
    type_ = mlir.RankedTensorType(channels.type)
    if len(type_.shape) == 1:
        return channels
    flat = mlir.RankedTensorType.get([max(type_.shape, default=1)], type_.element_type)
    return tensor.CollapseShapeOp(flat, channels, [list(range(len(type_.shape)))] if type_.shape else []).result


def _scaled(filter_: mlir.Value, channels: mlir.Value) -> mlir.Value:
    shape = list(mlir.RankedTensorType(filter_.type).shape)
    identity = mlir.AffineMap.get_identity(len(shape))
    along = mlir.AffineMap.get(len(shape), 0, [mlir.AffineDimExpr.get(len(shape) - 1)])
    init = empty_like(filter_, shape, range(len(shape)))
    op = generic([filter_, _flat(channels)], [init], [identity, along, identity], ["parallel"] * len(shape))
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([arith.MulFOp(block.arguments[0], block.arguments[1]).result])
    return op.results[0]


def _repeated(channels: mlir.Value, like: mlir.Value) -> mlir.Value:
    shape = list(mlir.RankedTensorType(like.type).shape)
    init = empty_like(like, shape, range(len(shape)))
    dimensions = mlir.DenseI64ArrayAttr.get(list(range(len(shape) - 1)))
    op = linalg.BroadcastOp(result=[init.type], input=_flat(channels), init=init, dimensions=dimensions)
    linalg.fill_builtin_region(op.operation)
    return op.operation.results[0]
