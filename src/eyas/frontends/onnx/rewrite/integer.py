"""Matrix products and convolutions of quantised numbers in integer arithmetic.

ConvInteger, MatMulInteger, QLinearConv and QLinearMatMul say so themselves. Where a graph says DequantizeLinear and
then Conv, MatMul or Gemm, the product is of integers too, and the scales are applied to the sums:

    DQ(a, sa, za) @ DQ(b, sb, zb)   =>   Cast(integers(a, za) @ integers(b, zb)) * (sa * sb)

Here everything is INT32; `narrow-contractions` lets the products read the 8-bit numbers and add up in i32. Zero points
are taken out of the sums, so that what is multiplied is what is stored: with a shifted by 128 when it is unsigned,

    sum (a - za) (b - zb) = sum a b  -  za * sum b  -  zb * sum (a - za)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.prepare import opset_versions, raise_opset
from eyas.frontends.onnx.rewrite.quantize import LIMITS, OPSET, is_zero, saturate, widen
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand, replace_nodes
from eyas.frontends.onnx.subgraphs import all_nodes
from eyas.frontends.onnx.types import operator

_QUANTIZED = frozenset("ConvInteger DequantizeLinear MatMulInteger QLinearConv QLinearMatMul QuantizeLinear".split())
# Sums of more products of bytes may not fit an i32.
_LONGEST = (1 << 31) // (1 << 14) - 1
_NARROW = frozenset(LIMITS) - {TensorProto.INT16, TensorProto.UINT16}


@dataclass(frozen=True)
class Quantized:
    """A tensor of integers with the names of its scale and zero point (empty when it has none), and their axis."""

    name: str
    scale: str
    zero: str
    axis: int


@dataclass(frozen=True)
class Integers:
    """INT32 values of at most 8 bits, signed, and their zero point: a number, or the name of an INT32 tensor."""

    value: str
    zero: int | str


def use_integers(model: OnnxModel) -> bool:
    """Replaces Conv, MatMul and Gemm of dequantised tensors; says whether the graph changed. Types must be known."""
    nodes = list(all_nodes(model.proto.graph))
    if any(node.op_type in _QUANTIZED for node in nodes) and opset_versions(model).get("", OPSET) < OPSET:
        return raise_opset(model)
    sources = {node.output[0]: node for node in nodes if node.op_type == "DequantizeLinear"}
    if not sources:
        return False
    for node in nodes:
        if node.op_type == "Identity" and node.input[0] in sources:
            sources[node.output[0]] = sources[node.input[0]]

    def rule(node: onnx.NodeProto, b: Builder) -> Sequence[str] | None:
        if node.op_type == "Transpose" and node.input[0] in sources:
            return _transpose_before(node, sources[node.input[0]], b)
        if node.op_type not in _CONTRACTIONS or node.domain not in ("", "ai.onnx"):
            return None
        operands = [_quantized(sources[name], b) if name in sources else None for name in node.input[:2]]
        if operands[0] is None or operands[1] is None or b.type_of(node.output[0]) != TensorProto.FLOAT:
            return None
        return _CONTRACTIONS[node.op_type](node, operands[0], operands[1], b)

    return replace_nodes(model, rule)


def _transpose_before(node: onnx.NodeProto, source: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Exporters transpose a weight after it was dequantised; the other way round it is still a weight of integers."""
    found, rank = _quantized(source, b), b.rank_of(source.input[0])
    if found is None or not rank:
        return None
    order = list(attribute(node, "perm", range(rank)[::-1]))
    turned = b.add("Transpose", found.name, perm=order)
    axis = order.index(found.axis % rank) if not _is_scalar(found.scale, b) else 0
    return [b.add("DequantizeLinear", turned, *source.input[1:], axis=axis)]


def conv_integer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x, w = node.input[:2]
    if b.shape_of(w) is None or b.opset < OPSET:
        return None
    return [_convolve(node, _integers(x, operand(node, 2), b), w, operand(node, 3), b)]


def mat_mul_integer(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    left, right = node.input[:2]
    if b.rank_of(left) is None or b.rank_of(right) is None or b.opset < OPSET:
        return None
    return [_multiply(left, operand(node, 2), right, operand(node, 3), b)]


def q_linear_mat_mul(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    left, left_scale, left_zero, right, right_scale, right_zero, scale, zero = node.input
    if b.rank_of(left) is None or b.rank_of(right) is None or b.opset < OPSET:
        return None
    total = _multiply(left, left_zero, right, right_zero, b)
    factor = b.add("Mul", _column(_float(left_scale, b), left_scale, b), _float(right_scale, b))
    return [_requantize(total, factor, scale, zero, node, b)]


def q_linear_conv(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero = node.input[:8]
    shape = b.shape_of(w)
    if shape is None or b.opset < OPSET:
        return None
    total = _convolve(node, _integers(x, x_zero, b), w, w_zero, b)
    per_channel = [1, -1, *[1] * (len(shape) - 2)]
    if bias := operand(node, 8):
        total = b.add("Add", total, b.reshape(bias, per_channel))
    factor = b.reshape(_float(w_scale, b), per_channel if b.rank_of(w_scale) else [])
    return [_requantize(total, b.add("Mul", _scalar(_float(x_scale, b), x_scale, b), factor), scale, zero, node, b)]


def _requantize(total: str, factor: str, scale: str, zero: str, node: onnx.NodeProto, b: Builder) -> str:
    value = b.add("Mul", b.cast(total, TensorProto.FLOAT), b.add("Div", factor, _scalar(_float(scale, b), scale, b)))
    if zero and not is_zero(zero, b):
        value = b.add("Add", value, _scalar(b.cast(widen(zero, b), TensorProto.FLOAT), zero, b))
    return saturate(b.add("Round", value), b.type_of(node.output[0]), node.output[0], b)


def _mat_mul(node: onnx.NodeProto, left: Quantized, right: Quantized, b: Builder) -> list[str] | None:
    rank = b.rank_of(right.name)
    if not _is_scalar(left.scale, b) or not rank or not b.rank_of(left.name) or _may_overflow(right.name, -2, b):
        return None
    if not _is_scalar(right.scale, b) and (right.axis % rank != rank - 1 or rank < 2):
        return None
    total = _multiply(left.name, left.zero, right.name, right.zero, b)
    factor = b.add("Mul", _scalar(left.scale, left.scale, b), right.scale)
    return [b.add("Mul", b.cast(total, TensorProto.FLOAT), factor)]


def _gemm(node: onnx.NodeProto, left: Quantized, right: Quantized, b: Builder) -> list[str] | None:
    turned = attribute(node, "transB", 0)
    if not _is_scalar(left.scale, b) or not (_is_scalar(right.scale, b) or right.axis % 2 == 1 - turned):
        return None
    if attribute(node, "transA", 0) or _may_overflow(right.name, turned, b):
        return None
    if not _is_scalar(left.zero, b) or not _is_scalar(right.zero, b):
        return None
    total = _multiply(left.name, left.zero, right.name, right.zero, b, turned)
    factor = b.add("Mul", _scalar(left.scale, left.scale, b), right.scale)
    if (alpha := attribute(node, "alpha", 1.0)) != 1.0:
        factor = b.add("Mul", factor, b.constant(alpha, np.float32))
    value = b.add("Mul", b.cast(total, TensorProto.FLOAT), factor)
    if not (bias := operand(node, 2)):
        return [value]
    if (beta := attribute(node, "beta", 1.0)) != 1.0:
        bias = b.add("Mul", bias, b.constant(beta, np.float32))
    return [b.add("Add", value, bias)]


def _conv(node: onnx.NodeProto, x: Quantized, w: Quantized, b: Builder) -> list[str] | None:
    shape = b.shape_of(w.name)
    if shape is None or not _is_scalar(x.scale, b) or not _is_scalar(x.zero, b):
        return None
    if not _is_scalar(w.scale, b) and w.axis % len(shape) != 0 or np.prod(shape[1:]) > _LONGEST:
        return None
    total = _convolve(node, _integers(x.name, x.zero, b), w.name, w.zero, b)
    per_channel = [1, -1, *[1] * (len(shape) - 2)]
    factor = b.add("Mul", _scalar(x.scale, x.scale, b), b.reshape(w.scale, per_channel if b.rank_of(w.scale) else []))
    value = b.add("Mul", b.cast(total, TensorProto.FLOAT), factor)
    if bias := operand(node, 2):
        value = b.add("Add", value, b.reshape(bias, per_channel))
    return [value]


_CONTRACTIONS = {"Conv": _conv, "Gemm": _gemm, "MatMul": _mat_mul}


def _may_overflow(name: str, axis: int, b: Builder) -> bool:
    shape = b.shape_of(name)
    return shape is not None and len(shape) > 1 and shape[axis] > _LONGEST


def _quantized(node: onnx.NodeProto, b: Builder) -> Quantized | None:
    x, scale, zero = node.input[0], node.input[1], operand(node, 2)
    if attribute(node, "block_size", 0) or b.type_of(x) not in _NARROW or b.type_of(scale) != TensorProto.FLOAT:
        return None
    return Quantized(x, scale, zero, attribute(node, "axis", 1))


def _integers(name: str, zero: str, b: Builder) -> Integers:
    """The numbers of an 8-bit tensor; unsigned ones are shifted to be signed, and their zero point with them."""
    shift = 128 if b.type_of(name) == TensorProto.UINT8 else 0
    value = widen(name, b)
    if shift:
        value = b.add("Sub", value, b.constant(shift, np.int32))
        value = operator(b, "EyasNarrow", value, name, TensorProto.INT8)
        value = operator(b, "EyasWiden", value, name, TensorProto.INT32, unsigned=0)
    if not zero:
        return Integers(value, -shift)
    known = b.value_of(zero)
    if known is not None and known.size and (known == known.flat[0]).all():
        return Integers(value, int(known.flat[0]) - shift)
    return Integers(value, b.add("Sub", widen(zero, b), b.constant(shift, np.int32)) if shift else widen(zero, b))


def _multiply(left: str, left_zero: str, right: str, right_zero: str, b: Builder, turned: int = 0) -> str:
    """The INT32 product of two tensors of integers; `turned`: the second is transposed."""
    a, c = _integers(left, left_zero, b), _integers(right, right_zero, b)
    ranks = b.rank_of(left), b.rank_of(right)
    second = b.transpose(c.value, [1, 0]) if turned else c.value
    if 1 in ranks:
        return b.add("MatMul", _minus(a.value, a.zero, b), _minus(second, c.zero, b))
    zero_a = a.zero if isinstance(a.zero, int) else _column(a.zero, left_zero, b)
    total = _batched(a.value, left, second, right, b)
    if zero_a != 0:
        sums = _sum(second, [-2], b)
        total = b.add("Sub", total, b.add("Mul", sums, _number(zero_a, b)))
    if c.zero != 0:
        sums = _sum(_minus(a.value, zero_a, b), [-1], b)
        total = b.add("Sub", total, b.add("Mul", sums, _number(c.zero, b)))
    return total


def _batched(a: str, left: str, second: str, right: str, b: Builder) -> str:
    """One matrix beside a batch of them: the batch is more rows."""
    shape, rank = b.shape_of(left), b.rank_of(right)
    if rank != 2 or shape is None or len(shape) < 3:
        return b.add("MatMul", a, second)
    rows = b.reshape(a, [int(np.prod(shape[:-1])), shape[-1]])
    return b.reshape(b.add("MatMul", rows, second), [*shape[:-1], -1])


def _convolve(node: onnx.NodeProto, x: Integers, w: str, w_zero: str, b: Builder) -> str:
    """The INT32 convolution with a filter of integers."""
    filters = _integers(w, w_zero, b)
    shape = b.shape_of(w)
    assert shape is not None
    rank = len(shape)
    given: dict[str, Any] = {found.name: onnx.helper.get_attribute_value(found) for found in node.attribute}
    value, inside = x.value, x.zero
    zero = filters.zero if isinstance(filters.zero, int) else b.reshape(filters.zero, [-1, *[1] * (rank - 1)])
    kernel = _minus(filters.value, zero, b)
    pads = _pads(given, rank - 2)
    if not isinstance(inside, int) or pads is None:
        value, inside = _minus(value, inside, b), 0
    if pads is not None:
        given.pop("pads", None)
        if any(pads):
            # What the padding stands for is zero, and the stored number of that is the zero point.
            amounts = b.constant([0, 0, *pads[: rank - 2], 0, 0, *pads[rank - 2 :]], np.int64)
            value = b.add("Pad", value, amounts, b.constant(inside, np.int32))
    total = b.add("Conv", value, kernel, **given)
    if not inside:
        return total
    sums = b.reshape(_sum(kernel, list(range(1, rank)), b), [1, -1, *[1] * (rank - 2)])
    return b.add("Sub", total, b.add("Mul", sums, b.constant(inside, np.int32)))


def _pads(given: Mapping[str, Any], rank: int) -> list[int] | None:
    """Pads that are numbers; None when they depend on the image."""
    if given.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID", b""):
        return None
    return list(given.get("pads", [0] * (2 * rank)))


def _sum(value: str, axes: list[int], b: Builder) -> str:
    return b.add("ReduceSum", value, b.constant(axes, np.int64), keepdims=1)


def _minus(value: str, zero: int | str, b: Builder) -> str:
    return value if zero == 0 else b.add("Sub", value, _number(zero, b))


def _number(value: int | str, b: Builder) -> str:
    return b.constant(value, np.int32) if isinstance(value, int) else value


def _is_scalar(name: str, b: Builder) -> bool:
    return not name or b.rank_of(name) == 0 or b.shape_of(name) == (1,)


def _scalar(value: str, name: str, b: Builder) -> str:
    return b.reshape(value, []) if b.rank_of(name) else value


def _column(value: str, name: str, b: Builder) -> str:
    """One number for each row."""
    return value if b.rank_of(name) != 1 or b.shape_of(name) == (1,) else b.reshape(value, [-1, 1])


def _float(name: str, b: Builder) -> str:
    return name if b.type_of(name) == TensorProto.FLOAT else b.cast(name, TensorProto.FLOAT)
