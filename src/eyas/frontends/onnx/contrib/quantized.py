"""Rules for operators on quantised tensors that dequantise, compute, and quantise again."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import helper

from eyas.frontends.onnx.contrib.common import is_ready, whole
from eyas.frontends.onnx.contrib.integers import scalars
from eyas.frontends.onnx.contrib.products import channels_first, channels_last
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


def _read(value: str, scale: str, zero: str, b: Builder) -> str:
    return b.add("DequantizeLinear", value, *scalars([scale, zero], b))


def _read_at(node: onnx.NodeProto, place: int, b: Builder) -> str:
    """A tensor with its scale and zero point, which follow it."""
    return _read(node.input[place], node.input[place + 1], operand(node, place + 2), b)


def _write(value: str, scale: str, zero: str, like: str, b: Builder) -> list[str]:
    """Quantised as `like` is where there is no zero point to say it."""
    if not zero:
        zero = b.constant(0, b.dtype_of(like))
        return [b.add("QuantizeLinear", value, *scalars([scale], b), zero)]
    return [b.add("QuantizeLinear", value, *scalars([scale, zero], b))]


def binary(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """QLinearAdd and QLinearMul."""
    if not is_ready(node, b):
        return None
    a, a_scale, a_zero, c, c_scale, c_zero, scale = node.input[:7]
    op = node.op_type.removeprefix("QLinear")
    value = b.add(op, _read(a, a_scale, a_zero, b), _read(c, c_scale, c_zero, b))
    return _write(value, scale, operand(node, 7), a, b)


def unary(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax, QLinearReduceMean and pools."""
    rank = b.rank_of(node.input[0])
    if rank is None or not is_ready(node, b):
        return None
    x, x_scale, x_zero, scale = node.input[:4]
    value = _read(x, x_scale, x_zero, b)
    return _write(_unary(node, value, rank, b), scale, operand(node, 4), x, b)


def _unary(node: onnx.NodeProto, value: str, rank: int, b: Builder) -> str:
    op = node.op_type.removeprefix("QLinear")
    given = {found.name: helper.get_attribute_value(found) for found in node.attribute}
    if op == "ReduceMean":
        axes = [whole(given["axes"], b)] if "axes" in given else []
        return b.add("ReduceMean", value, *axes, keepdims=given.get("keepdims", 1))
    if op == "Softmax":
        axis = given.get("axis", -1) % rank
        if given["opset"] >= 13 or axis == rank - 1:
            return b.add("Softmax", value, axis=axis)
        rows = b.add("Softmax", b.add("Flatten", value, axis=axis), axis=-1)
        return b.add("Reshape", rows, b.add("Shape", value))
    if not op.endswith("Pool"):
        return b.add(op, value, **given)
    last = given.pop("channels_last", 0)
    value = b.transpose(value, channels_first(rank)) if last else value
    value = b.add(op, value, **given)
    return b.transpose(value, channels_last(rank)) if last else value


def concat(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    scale, zero = node.input[:2]
    parts = [_read_at(node, place, b) for place in range(2, len(node.input), 3)]
    return _write(b.add("Concat", *parts, axis=attribute(node, "axis", 0)), scale, zero, node.input[2], b)


def where(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    chosen = b.add("Where", node.input[0], *(_read_at(node, place, b) for place in (1, 4)))
    return _write(chosen, node.input[7], node.input[8], node.input[1], b)


def nhwc_max_pool(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    rank = b.rank_of(node.input[0])
    if rank is None or not is_ready(node, b):
        return None
    given = {found.name: helper.get_attribute_value(found) for found in node.attribute}
    pooled = b.add("MaxPool", b.transpose(node.input[0], channels_first(rank)), **given)
    return [b.transpose(pooled, channels_last(rank))]


def linear(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """QuantizeLinear and DequantizeLinear with the types that the standard took later."""
    if not is_ready(node, b):
        return None
    given = {"axis": attribute(node, "axis", 1)} if b.rank_of(node.input[1]) else {}
    names: Sequence[str] = [name for name in node.input if name]
    if b.shape_of(node.input[1]) == (1,):
        names, given = [names[0], *scalars(names[1:], b)], {}
    return [b.add(node.op_type, *names, **given)]
