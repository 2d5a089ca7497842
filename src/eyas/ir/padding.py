"""Building and reading `tensor.pad` by constant amounts."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, tensor

from eyas.ir.structured import constant_scalar
from eyas.ir.walk import defining_op


def pad_with_zeros(value: mlir.Value, low: Sequence[int], high: Sequence[int]) -> mlir.Value:
    """The tensor of floats with zeros around it; itself when there are none."""
    if not any([*low, *high]):
        return value
    source = mlir.RankedTensorType(value.type)
    open_ = mlir.ShapedType.get_dynamic_size()
    shape = [
        size if size == open_ else below + size + above
        for below, size, above in zip(low, source.shape, high, strict=True)
    ]
    zero = arith.ConstantOp(source.element_type, mlir.FloatAttr.get(source.element_type, 0.0)).result
    op = tensor.PadOp(mlir.RankedTensorType.get(shape, source.element_type), value, [], [], list(low), list(high))
    index = mlir.IndexType.get()
    block = op.operation.regions[0].blocks.append(*[index] * len(shape), arg_locs=[mlir.Location.current] * len(shape))
    with mlir.InsertionPoint(block):
        tensor.YieldOp(zero)
    return op.result


def zero_padding(value: mlir.Value) -> tuple[mlir.Value, list[int], list[int]] | None:
    """What a value is a zero-padded form of, and by how much below and above; None when it is no such form."""
    op = defining_op(value)
    if op is None or op.name != "tensor.pad" or len(op.operands) != 1:
        return None
    yielded = list(op.regions[0].blocks[0].operations)[-1].operands[0]
    owner = defining_op(yielded)
    if owner is None or owner.parent == op or constant_scalar(yielded) != 0:
        return None
    low, high = (list(mlir.DenseI64ArrayAttr(op.attributes[name])) for name in ("static_low", "static_high"))
    return op.operands[0], low, high
