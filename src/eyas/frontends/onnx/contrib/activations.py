"""Rules for activations with what stands beside them: biases, residuals, halves."""

from __future__ import annotations

import math

import numpy as np
import onnx

from eyas.frontends.onnx.contrib.common import Floats, is_ready, refuse, results, whole
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


def gelu(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Gelu and BiasGelu."""
    if not is_ready(node, b):
        return None
    floats = Floats(b.type_of(node.input[0]), b)
    return [floats.write(exact_gelu(_biased(node, floats, b), floats))]


def fast_gelu(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    if not is_ready(node, b):
        return None
    floats = Floats(b.type_of(node.input[0]), b)
    x = _biased(node, floats, b)
    return [floats.write(tanh_gelu(x, floats))]


def quick_gelu(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    floats = Floats(b.type_of(node.input[0]), b)
    x = floats.read(node.input[0])
    alpha = attribute(node, "alpha", 1.702)
    scaled = x if alpha == 1 else b.add("Mul", x, floats.number(alpha))
    return [floats.write(b.add("Mul", x, b.add("Sigmoid", scaled)))]


def bias_split_gelu(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The first half times the Gelu of the second."""
    if not is_ready(node, b):
        return None
    floats = Floats(b.type_of(node.input[0]), b)
    left, right = b.add_many("Split", 2, _biased(node, floats, b), axis=-1, num_outputs=2)
    return [floats.write(b.add("Mul", left, exact_gelu(right, floats)))]


def bias_add(node: onnx.NodeProto, b: Builder) -> list[str]:
    return [b.add("Add", b.add("Add", *node.input[:2]), node.input[2])]


def bias_dropout(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Outside of training nothing is dropped."""
    if not is_ready(node, b):
        return None
    training = operand(node, 4)
    if training and ((given := b.value_of(training)) is None or given.any()):
        refuse(node, b, "its input training_mode is not a constant false")
    total = b.add("Add", *node.input[:2])
    if operand(node, 2):
        total = b.add("Add", total, node.input[2])
    shape = b.add("Shape", node.input[0])
    kept = onnx.numpy_helper.from_array(np.array([True]))
    return results(node, total, b.add("ConstantOfShape", shape, value=kept) if len(node.output) > 1 else "")


def bias_softmax(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """All dimensions from the axis on are one row."""
    if not is_ready(node, b):
        return None
    x, rank = node.input[0], b.rank_of(node.input[0])
    assert rank is not None
    floats = Floats(b.type_of(x), b)
    axis = attribute(node, "axis", 1) % rank
    total = b.add("Add", floats.read(x), floats.read(node.input[1]))
    if axis == rank - 1:
        return [floats.write(b.add("Softmax", total, axis=-1))]
    rows = b.add("Softmax", b.add("Flatten", total, axis=axis), axis=-1)
    return [floats.write(b.add("Reshape", rows, b.add("Shape", x)))]


def scaled_silu(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    floats = Floats(b.type_of(node.input[0]), b)
    scale = operand(node, 1)
    factor = b.reshape(floats.read(scale), []) if scale else floats.number(attribute(node, "alpha", 1.0))
    x = b.add("Mul", floats.read(node.input[0]), factor)
    return [floats.write(b.add("Mul", x, b.add("Sigmoid", x)))]


def exact_gelu(x: str, floats: Floats) -> str:
    b = floats.b
    half = b.add("Mul", x, floats.number(0.5))
    return b.add(
        "Mul", half, b.add("Add", b.add("Erf", b.add("Mul", x, floats.number(math.sqrt(0.5)))), floats.number(1))
    )


def tanh_gelu(x: str, floats: Floats) -> str:
    b, root = floats.b, math.sqrt(2 / math.pi)
    square = b.add("Mul", b.add("Mul", x, x), floats.number(root * 0.044715))
    inside = b.add("Mul", x, b.add("Add", square, floats.number(root)))
    half = b.add("Mul", x, floats.number(0.5))
    return b.add("Mul", half, b.add("Add", b.add("Tanh", inside), floats.number(1)))


def is_all_finite(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not is_ready(node, b):
        return None
    bad = []
    for name in node.input:
        if not attribute(node, "isinf_only", 0):
            bad.append(b.add("IsNaN", name))
        if not attribute(node, "isnan_only", 0):
            bad.append(b.add("IsInf", name))
    counts = [
        b.add("ReduceMax", b.add("Reshape", b.cast(one, onnx.TensorProto.INT32), whole([-1], b)), keepdims=0)
        for one in bad
    ]
    total = counts[0]
    for count in counts[1:]:
        total = b.add("Add", total, count)
    return [b.add("Equal", total, b.constant(0, np.int32))]


def _biased(node: onnx.NodeProto, floats: Floats, b: Builder) -> str:
    x, bias = floats.read(node.input[0]), operand(node, 1)
    return b.add("Add", x, floats.read(bias)) if bias else x
