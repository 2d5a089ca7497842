"""`convert-conv-layout`: convolutions and pooling compute with channels innermost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg

from eyas.ir import Pass
from eyas.ir.structured import copy_body, empty_like, fill_value, generic, permutation_of, transpose
from eyas.ir.walk import defining_op, find_ops

# Samples that fill a vector.
_MANY = 16
_TO_NHWC, _EXCHANGED = [0, 2, 3, 1], [1, 0, 2, 3]


@dataclass(frozen=True)
class _Rewrite:
    """What a channels-first op becomes, and how its second operand (filter or window) is permuted."""

    op: type
    filter: list[int] | None


_REWRITES = {
    "linalg.conv_1d_ncw_fcw": _Rewrite(linalg.Conv1DNwcWcfOp, [2, 1, 0]),
    "linalg.conv_2d_nchw_fchw": _Rewrite(linalg.Conv2DNhwcHwcfOp, [2, 3, 1, 0]),
    "linalg.depthwise_conv_2d_nchw_chw": _Rewrite(linalg.DepthwiseConv2DNhwcHwcOp, [1, 2, 0]),
    "linalg.pooling_nchw_max": _Rewrite(linalg.PoolingNhwcMaxOp, None),
    "linalg.pooling_nchw_sum": _Rewrite(linalg.PoolingNhwcSumOp, None),
}


@dataclass(frozen=True)
class ConvertConvLayout(Pass):
    """Wraps each channels-first op in transposes around its channels-last form.

    Channels innermost make both the filter and the output contiguous along the lanes of a register tile, whatever the
    image's width. `propagate-transposes` then removes nearly all of the transposes; those of filters are evaluated.

        %y = conv_2d_nchw_fchw(%x, %w)   =>   %y = transpose(conv_2d_nhwc_hwcf(transpose(%x), transpose(%w)))

    Where samples and channels of both operands have changed places, as in the gradient of a filter, the lanes are the
    samples, which are the channels of what is read: nothing is turned around, and the result's order, [f, h, w, n], is
    near that of the filter. With few of them, the lanes are the filters.
    """

    name: ClassVar[str] = "convert-conv-layout"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_REWRITES):
            with mlir.InsertionPoint(op), op.operation.location:
                if op.operation.name == "linalg.conv_2d_nchw_fchw" and _has_exchanged_operands(op):
                    _rewrite_exchanged(op)
                else:
                    _rewrite(op, _REWRITES[op.operation.name])


def _rewrite(op: mlir.OpView, rewrite: _Rewrite) -> None:
    image, filter_, init = op.operands
    rank = mlir.RankedTensorType(image.type).rank
    image = transpose(image, _channels_last(rank))
    filter_ = transpose(filter_, rewrite.filter) if rewrite.filter is not None else filter_
    output = _init(init)
    new = rewrite.op(
        [output.type],
        [image, filter_],
        [output],
        strides=op.attributes["strides"],
        dilations=op.attributes["dilations"],
    )
    linalg.fill_builtin_region(new.operation)
    op.results[0].replace_all_uses_with(transpose(new.results[0], [0, rank - 1, *range(1, rank - 1)]))
    op.operation.erase()


def _has_exchanged_operands(op: mlir.OpView) -> bool:
    """Whether image and filter are transposes of tensors whose first dimension is summed over."""
    owners = [defining_op(value) for value in list(op.operands)[:2]]
    return fill_value(op.operands[2]) is not None and all(
        owner is not None and owner.name == "linalg.transpose" and permutation_of(owner) == _EXCHANGED
        for owner in owners
    )


def _rewrite_exchanged(op: mlir.OpView) -> None:
    image, filter_ = (transpose(value.owner.operands[0], _TO_NHWC) for value in list(op.operands)[:2])
    strides, dilations = (list(mlir.DenseIntElementsAttr(op.attributes[name])) for name in ("strides", "dilations"))
    order = [1, 2, 3, 0] if mlir.RankedTensorType(op.operands[2].type).shape[0] >= _MANY else [0, 2, 3, 1]
    first, h, w, last, c, fh, fw = (mlir.AffineDimExpr.get(loop) for loop in range(7))
    f, n = (first, last) if order[0] else (last, first)
    reads = [
        [c, h * strides[0] + fh * dilations[0], w * strides[1] + fw * dilations[1], n],
        [c, fh, fw, f],
    ]
    type_ = mlir.RankedTensorType(op.operands[2].type)
    empty = empty_like(op.operands[2], [type_.shape[p] for p in order], order)
    output = linalg.fill(fill_value(op.operands[2]), outs=[empty])
    maps = [mlir.AffineMap.get(7, 0, exprs) for exprs in (*reads, [first, h, w, last])]
    new = generic([image, filter_], [output], maps, ["parallel"] * 4 + ["reduction"] * 3)
    copy_body(op, new)
    op.results[0].replace_all_uses_with(transpose(new.results[0], [order.index(dim) for dim in range(4)]))
    op.operation.erase()


def _init(init: mlir.Value) -> mlir.Value:
    """The initial value with channels innermost; a fill is made in that shape at once."""
    scalar = fill_value(init)
    type_ = mlir.RankedTensorType(init.type)
    order = _channels_last(type_.rank)
    if scalar is None:
        return transpose(init, order)
    empty = empty_like(init, [type_.shape[p] for p in order], order)
    return linalg.fill(scalar, outs=[empty])


def _channels_last(rank: int) -> list[int]:
    return [0, *range(2, rank), 1]
