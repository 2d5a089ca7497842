"""Rules for products of quantised numbers: their integers are multiplied, and the scales applied to the sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.contrib.common import is_ready
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


def dynamic_quantize_mat_mul(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The first matrix is quantised as a whole, by its range."""
    if not is_ready(node, b):
        return None
    a, weights, scale, zero, bias = (operand(node, place) for place in range(5))
    bytes_, a_scale, a_zero = b.add_many("DynamicQuantizeLinear", 3, a)
    total = b.add("MatMulInteger", bytes_, weights, a_zero, _scalar(zero, b) if zero else "")
    value = b.add("Mul", b.cast(total, TensorProto.FLOAT), b.add("Mul", a_scale, _scalar(scale, b)))
    return [b.add("Add", value, bias) if bias else value]


def mat_mul_integer_to_float(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    zeros = operand(node, 4), operand(node, 5)
    value = product_of_integers(node.input[0], node.input[1], (node.input[2], node.input[3]), zeros, b)
    bias = operand(node, 6)
    return [b.add("Add", value, bias) if bias else value]


def product_of_integers(a: str, c: str, scales: tuple[str, str], zeros: tuple[str, str], b: Builder) -> str:
    """The product of two quantised matrices as floats; zero points may be left out."""
    given = [_scalar(zero, b) if zero else "" for zero in zeros]
    total = b.add("MatMulInteger", a, c, *given)
    # Scales of rows of the first matrix, of columns of the second.
    rows = b.reshape(scales[0], [-1, 1]) if _count(scales[0], b) != 1 else _scalar(scales[0], b)
    return b.add("Mul", b.cast(total, TensorProto.FLOAT), b.add("Mul", rows, _scalar(scales[1], b)))


def q_gemm(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Sums are floats, or quantised again where the result has a scale."""
    if not is_ready(node, b):
        return None
    a, a_scale, a_zero, c, c_scale, c_zero = node.input[:6]
    bias, scale, zero = (operand(node, place) for place in range(6, 9))
    a = b.add("Transpose", a, perm=[1, 0]) if attribute(node, "transA", 0) else a
    c = b.add("Transpose", c, perm=[1, 0]) if attribute(node, "transB", 0) else c
    total = b.add("MatMulInteger", a, c, _scalar(a_zero, b), _scalar(c_zero, b))
    if bias:
        total = b.add("Add", total, bias)
    factor = b.add("Mul", _scalar(a_scale, b), _scalar(c_scale, b))
    alpha = attribute(node, "alpha", 1.0)
    if alpha != 1:
        factor = b.add("Mul", factor, b.constant(alpha, np.float32))
    value = b.add("Mul", b.cast(total, TensorProto.FLOAT), factor)
    return [b.add("QuantizeLinear", value, *scalars([scale, zero], b)) if scale else value]


def dynamic_quantize_lstm(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The standard's LSTM with dequantised weights: inputs and states stay floats, which is more exact."""
    if not is_ready(node, b):
        return None
    weights = []
    for place, table in enumerate(node.input[1:3]):
        scale, zero = node.input[8 + 2 * place], node.input[9 + 2 * place]
        numbers = b.add("Sub", *(b.cast(name, TensorProto.FLOAT) for name in (table, _gates(zero, b))))
        weights.append(b.add("Transpose", b.add("Mul", numbers, _gates(scale, b)), perm=[0, 2, 1]))
    given = {found.name: onnx.helper.get_attribute_value(found) for found in node.attribute}
    inputs = [node.input[0], *weights, *(operand(node, place) for place in range(3, 8))]
    while not inputs[-1]:
        inputs.pop()
    found = b.add_many("LSTM", 3, *inputs, **given)
    return [value for value, name in zip(found, node.output, strict=False) if name]


def mat_mul_integer_16(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    return [b.add("MatMul", *(b.cast(name, TensorProto.INT32) for name in node.input))]


def mul_integer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    sides = []
    for value, zero in ((node.input[0], operand(node, 1)), (node.input[2], operand(node, 3))):
        whole = b.cast(value, TensorProto.INT32)
        sides.append(b.add("Sub", whole, b.cast(_scalar(zero, b), TensorProto.INT32)) if zero else whole)
    return [b.add("Mul", *sides)]


def reduce_sum_integer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    axes = b.constant(attribute(node, "axes", []), np.int64)
    value = b.cast(node.input[0], TensorProto.INT32)
    return [b.add("ReduceSum", value, axes, keepdims=attribute(node, "keepdims", 1))]


def q_linear_conv(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The standard's; images may have their channels last."""
    rank = b.rank_of(node.input[0])
    if rank is None or not is_ready(node, b):
        return None
    given = {found.name: onnx.helper.get_attribute_value(found) for found in node.attribute}
    if not given.pop("channels_last", 0):
        return [b.add("QLinearConv", *node.input, **given)]
    x = b.transpose(node.input[0], [0, rank - 1, *range(1, rank - 1)])
    return [b.transpose(b.add("QLinearConv", x, *node.input[1:], **given), [0, *range(2, rank), 1])]


def scalars(names: Sequence[str], b: Builder) -> list[str]:
    """Scales and zero points; those at the end may be left out."""
    return [_scalar(name, b) for name in names if name]


def _scalar(name: str, b: Builder) -> str:
    """A vector of one element as a scalar; others as they are."""
    return b.reshape(name, []) if b.rank_of(name) and _count(name, b) == 1 else name


def _count(name: str, b: Builder) -> int | None:
    shape = b.shape_of(name)
    return None if shape is None else int(np.prod(shape))


def _gates(name: str, b: Builder) -> str:
    """(directions) or (directions, gates) beside weights of (directions, inputs, gates)."""
    directions = (b.dims_of(name) or [1])[0] or 1
    return b.reshape(name, [directions, 1, -1])
