"""Rules for QuantizeLinear and DequantizeLinear, in all forms: per tensor, per axis, in blocks, of any type."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.types import convert, operator, small_name
from eyas.ir.small_types import INTEGERS

LIMITS: dict[int, tuple[int, int]] = {
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT8: (0, 255),
    TensorProto.INT16: (-32768, 32767),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT4: (-8, 7),
    TensorProto.UINT4: (0, 15),
    TensorProto.INT2: (-2, 1),
    TensorProto.UINT2: (0, 3),
}
# The rules write operators of this opset, such as Round and Pad with inputs.
OPSET = 13
_UNSIGNED = frozenset({TensorProto.UINT8, TensorProto.UINT16})


def quantize_linear(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Divide, round to even, shift, saturate."""
    x, scale, zero = node.input[0], node.input[1], operand(node, 2)
    to = b.type_of(zero) if zero else attribute(node, "output_dtype", 0) or TensorProto.UINT8
    if b.opset < OPSET or b.rank_of(x) is None or b.rank_of(scale) is None or (to not in LIMITS and not small_name(to)):
        return None
    kind, scale_kind = b.type_of(x), b.type_of(scale)
    computed = attribute(node, "precision", 0) or (kind if kind == scale_kind else TensorProto.FLOAT)
    value = x if kind == computed else b.cast(x, computed)
    divisor = scale if scale_kind == computed else b.cast(scale, computed)
    value = b.add("Div", value, _spread(divisor, scale, node, b))
    if to not in LIMITS:
        if zero and b.type_of(zero) == TensorProto.FLOAT4E2M1:
            shift = convert(b, zero, b.type_of(zero), computed, zero)
            value = b.add("Add", value, _spread(shift, zero, node, b))
        return [convert(b, value, computed, to, x, bool(attribute(node, "saturate", 1)))]
    value = b.add("Round", value)
    value = value if computed == TensorProto.FLOAT else b.cast(value, TensorProto.FLOAT)
    if zero and not is_zero(zero, b):
        shift = b.cast(widen(zero, b), TensorProto.FLOAT)
        value = b.add("Add", value, _spread(shift, zero, node, b))
    return [saturate(value, to, x, b)]


def dequantize_linear(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Subtract the zero point, multiply; in f32 whatever the result's type."""
    x, scale, zero = node.input[0], node.input[1], operand(node, 2)
    kind = b.type_of(x)
    if b.opset < OPSET or b.rank_of(x) is None or b.rank_of(scale) is None:
        return None
    if kind in LIMITS or kind == TensorProto.INT32:
        value = widen(x, b)
        if zero and not is_zero(zero, b):
            value = b.add("Sub", value, _spread(widen(zero, b), zero, node, b))
        value = b.cast(value, TensorProto.FLOAT)
    elif small_name(kind):
        value = convert(b, x, kind, TensorProto.FLOAT, x)
    else:
        return None
    factor = (
        scale
        if b.type_of(scale) == TensorProto.FLOAT
        else convert(b, scale, b.type_of(scale), TensorProto.FLOAT, scale)
    )
    value = b.add("Mul", value, _spread(factor, scale, node, b))
    to = attribute(node, "output_dtype", 0) or b.type_of(scale)
    return [value if to == TensorProto.FLOAT else b.cast(value, to)]


def widen(name: str, b: Builder) -> str:
    """A value of the graph, an integer of at most 32 bits, as INT32."""
    kind = b.type_of(name)
    if kind == TensorProto.INT32:
        return name
    value = name
    if small_name(kind):
        value, kind = convert(b, name, kind, TensorProto.INT8, name), TensorProto.INT8
    return operator(b, "EyasWiden", value, name, TensorProto.INT32, unsigned=int(kind in _UNSIGNED))


def saturate(value: str, to: int, like: str, b: Builder) -> str:
    """A rounded FLOAT as an integer type; `like` is a value of the graph with the same shape. NaN is the smallest."""
    low, high = (b.constant(limit, np.float32) for limit in LIMITS[to])
    value = b.add("Min", b.add("Where", b.add("Greater", value, low), value, low), high)
    value = b.cast(value, TensorProto.INT32)
    name = small_name(to)
    if name in INTEGERS:
        return convert(b, value, TensorProto.INT32, to, like)
    return operator(b, "EyasNarrow", value, like, to)


def is_zero(name: str, b: Builder) -> bool:
    """Whether a zero point is known to be nothing."""
    value = b.value_of(name)
    return value is not None and not value.astype(np.float32).any()


def _spread(value: str, name: str, node: onnx.NodeProto, b: Builder) -> str:
    """A scale or zero point with the rank of the tensor; `name` is the value of the graph that it was made from."""
    rank, own = b.rank_of(node.input[0]), b.rank_of(name)
    assert rank is not None
    axis, block = attribute(node, "axis", 1), attribute(node, "block_size", 0)
    if not own or not rank:
        return b.reshape(value, []) if own else value
    axis = axis % rank if -rank <= axis < rank else 0
    if block:
        shape = b.shape_of(node.input[0])
        if shape is None:
            why = "blocks need a shape that is known at compile time"
            raise UnsupportedOpError(f"{b.describe(node)} is not supported: {why}")
        return b.add("Gather", value, b.constant(np.arange(shape[axis], dtype=np.int64) // block), axis=axis)
    if own != 1:
        return value
    return b.reshape(value, [-1 if i == axis else 1 for i in range(rank)])
