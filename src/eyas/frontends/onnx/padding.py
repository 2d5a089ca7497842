"""Padding of convolutions and pooling over dynamic sizes: the importer takes such a size to be -1 and computes with it.

`auto_pad` becomes explicit. Where it depends on a size that is known only when the model runs, and for pooling that is
padded on one side more than on the other, there is a Pad of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand, replace_nodes
from eyas.frontends.onnx.rewrite.window import begun_inside

_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
# Where the weights of a convolution are among its inputs, and the zero point of its image.
_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
_ZERO_POINTS = {"ConvInteger": 2, "QLinearConv": 2}

Size = int | str
"""A number, or the name of a vector that has it when the model runs."""


def state_padding(model: OnnxModel) -> bool:
    """Makes padding explicit where sizes are dynamic; says whether nodes came in. Shapes must have been inferred."""
    return replace_nodes(model, _state)


def _state(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if node.domain not in ("", "ai.onnx") or node.op_type not in _POOLS | set(_WEIGHTS):
        return None
    sizes = (b.dims_of(node.input[0]) or [])[2:]
    if None not in sizes:
        return None
    rank, is_same = len(sizes), attribute(node, "auto_pad", "NOTSET").startswith("SAME")
    pads: list[Size] = list(attribute(node, "pads", [0] * 2 * rank))
    if is_same:
        pads = _same(node, b, rank)
    if node.op_type == "AveragePool" and attribute(node, "ceil_mode", 0) and not is_same:
        return None  # the rule for it pads too
    if not all(isinstance(pad, int) for pad in pads) or (node.op_type in _POOLS and pads[:rank] != pads[rank:]):
        return _padded_before(node, b, pads)
    return _without_padding(node, b, node.input[0], pads=pads) if is_same else None


def _same(node: onnx.NodeProto, b: Builder, rank: int) -> list[Size]:
    """As many elements on both sides as make the result a stride-th of the image, rounded up; an odd one more on one
    side."""
    window = attribute(node, "kernel_shape", None) or (b.shape_of(node.input[_WEIGHTS[node.op_type]]) or ())[2:]
    if len(window) != rank:
        raise UnsupportedOpError(f"{b.describe(node)} is not supported: the size of its window is not known")
    strides, dilations = (attribute(node, name, [1] * rank) for name in ("strides", "dilations"))
    smaller: list[Size] = []
    larger: list[Size] = []
    for axis, (length, stride, dilation) in enumerate(zip(window, strides, dilations, strict=True)):
        reach = dilation * (length - 1)
        size = b.size(node.input[0], axis + 2) if stride > 1 else 0  # with a stride of 1 it does not matter
        if isinstance(size, int):
            total = max(0, (-(-size // stride) - 1) * stride + reach + 1 - size) if stride > 1 else reach
            smaller.append(total // 2)
            larger.append(total - total // 2)
            continue
        one, step = b.constant([1], np.int64), b.constant([stride], np.int64)
        before_last = b.add("Div", b.add("Sub", size, one), step)
        missing = b.add("Sub", b.add("Add", b.add("Mul", before_last, step), b.constant([reach + 1], np.int64)), size)
        total = b.add("Max", missing, b.constant([0], np.int64))
        half = b.add("Div", total, b.constant([2], np.int64))
        smaller.append(half)
        larger.append(b.add("Sub", total, half))
    return smaller + larger if attribute(node, "auto_pad", "") == "SAME_UPPER" else larger + smaller


def _padded_before(node: onnx.NodeProto, b: Builder, pads: Sequence[Size]) -> list[str]:
    """A Pad in front of a window that has none."""
    if len([name for name in node.output if name]) > 1 or b.opset < 11:
        why = "its padding depends on a size that is dynamic, and it gives places or is of an opset before 11"
        raise UnsupportedOpError(f"{b.describe(node)} is not supported: {why}; fix the size, or give example inputs")
    half = len(pads) // 2
    around = b.vector([0, 0, *pads[:half], 0, 0, *pads[half:]])
    padded = b.add("Pad", node.input[0], around, _border(node, b))
    result = _without_padding(node, b, padded)
    if attribute(node, "ceil_mode", 0) and (known := [pad for pad in pads if isinstance(pad, int)]) == list(pads):
        result = [begun_inside(node, node.input[0], result[0], known, b)]
    if node.op_type != "AveragePool" or attribute(node, "count_include_pad", 0):
        return result
    # What was added counts as nothing: the mean of as many ones is the part of the window that counts.
    shape = b.vector([1, 1, *(b.size(node.input[0], axis) for axis in range(2, 2 + half))])
    dtype = helper.tensor_dtype_to_np_dtype(b.type_of(node.input[0]))
    ones = b.add("Expand", b.constant(1, dtype), shape)
    counted = _without_padding(node, b, b.add("Pad", ones, around, b.constant(0, dtype)))
    return [b.add("Div", *result, *counted)]


def _border(node: onnx.NodeProto, b: Builder) -> str:
    """The number around the image that does not change the result."""
    if zero_point := operand(node, _ZERO_POINTS.get(node.op_type, len(node.input))):
        return zero_point
    dtype = helper.tensor_dtype_to_np_dtype(b.type_of(node.input[0]))
    lowest = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
    return b.constant(lowest if node.op_type == "MaxPool" else 0, dtype)


def _without_padding(node: onnx.NodeProto, b: Builder, image: str, **changed: Any) -> list[str]:
    """The same node on another image, with other attributes."""
    options = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    options = {name: value for name, value in options.items() if name not in ("auto_pad", "pads")}
    count = len([name for name in node.output if name])
    return b.add_many(node.op_type, count, image, *node.input[1:], **options, **changed)
