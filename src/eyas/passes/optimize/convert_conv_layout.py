"""`convert-conv-layout`: convolutions and pooling compute with channels innermost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg

from eyas.ir import Pass
from eyas.ir.structured import empty_like, fill_value, transpose
from eyas.ir.walk import find_ops

_TO_NHWC, _TO_NCHW = [0, 2, 3, 1], [0, 3, 1, 2]


@dataclass(frozen=True)
class _Rewrite:
    """What a channels-first op becomes, and how its second operand (filter or window) is permuted."""

    op: type
    filter: list[int] | None


_REWRITES = {
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
    """

    name: ClassVar[str] = "convert-conv-layout"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_REWRITES):
            with mlir.InsertionPoint(op), op.operation.location:
                _rewrite(op, _REWRITES[op.operation.name])


def _rewrite(op: mlir.OpView, rewrite: _Rewrite) -> None:
    image, filter_, init = op.operands
    image = transpose(image, _TO_NHWC)
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
    op.results[0].replace_all_uses_with(transpose(new.results[0], _TO_NCHW))
    op.operation.erase()


def _init(init: mlir.Value) -> mlir.Value:
    """The initial value with channels innermost; a fill is made in that shape at once."""
    scalar = fill_value(init)
    if scalar is None:
        return transpose(init, _TO_NHWC)
    type_ = mlir.RankedTensorType(init.type)
    empty = empty_like(init, [type_.shape[p] for p in _TO_NHWC], _TO_NHWC)
    return linalg.fill(scalar, outs=[empty])
