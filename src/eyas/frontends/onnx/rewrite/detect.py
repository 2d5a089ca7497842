"""Rules for operators of object detection: NonMaxSuppression as a loop over picks, RoiAlign as weighted gathers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.rewrite.sizes import Size, filled, line, number, scalar, sizes_of

_FLOAT, _INT64, _BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def non_max_suppression(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Each step takes the best box that is left, of every class at once, and drops those that overlap it too much.

    Picks are rows of a tensor, -1 where a class has no box left; NonZero finds the others in the standard's order.
    """
    boxes, scores = b.dims_of(node.input[0]), b.dims_of(node.input[1])
    if boxes is None or scores is None or 0 in boxes + scores or b.type_of(node.input[0]) != _FLOAT or b.opset < 11:
        return None
    if len(boxes) != 3 or len(scores) != 3:
        return None
    if not operand(node, 2):
        return [b.constant(np.zeros((0, 3), np.int64))]
    shape = batch, _, count = sizes_of(node.input[1], b)
    most = b.reshape(b.cast(operand(node, 2), _INT64), [])
    limit = b.reshape(operand(node, 3), []) if operand(node, 3) else b.constant(0.0, np.float32)
    lowest = b.constant(-np.inf, np.float32)
    left = node.input[1]
    if operand(node, 4):
        above = b.add("Greater", left, b.reshape(operand(node, 4), []))
        left = b.add("Where", above, left, lowest)
    edges = _edges(node, b, batch, count)
    steps = b.add("Min", most, scalar(count, b))
    # What is constant in each step is made before the loop, whose body sees it.
    names = [b.name_of(node.input[1], axis) or f"{b.prefix}_size_{axis}" for axis in range(3)]
    body = _pick(b, names, line(count, b), edges, limit, lowest)
    nothing = filled(-1, shape, b)
    _, picks = b.add_many("Loop", 2, steps, "", left, nothing, body=body)
    found = b.transpose(b.add("NonZero", b.add("Not", b.add("Less", picks, b.constant(0, np.int64)))), [1, 0])
    box = b.reshape(b.add("GatherND", picks, found), [-1, 1])
    first, second = b.constant([0], np.int64), b.constant([2], np.int64)
    return [b.add("Concat", b.add("Slice", found, first, second, b.constant([1], np.int64)), box, axis=1)]


def _edges(node: onnx.NodeProto, b: Builder, batch: Size, count: Size) -> tuple[str, str, str, str, str]:
    """Low and high x, low and high y, and area of all boxes, each [batch, 1, count]."""
    values = b.transpose(node.input[0], [2, 0, 1])
    a, c, d, e = (
        b.reshape(b.add("Gather", values, b.constant(k, np.int64), axis=0), [batch, 1, count]) for k in range(4)
    )
    if attribute(node, "center_point_box", 0):
        half = b.constant(0.5, np.float32)
        width, height = b.add("Mul", d, half), b.add("Mul", e, half)
        x1, x2, y1, y2 = (
            b.add("Sub", a, width), b.add("Add", a, width), b.add("Sub", c, height), b.add("Add", c, height)
        )  # fmt: skip
    else:
        x1, x2, y1, y2 = b.add("Min", c, e), b.add("Max", c, e), b.add("Min", a, d), b.add("Max", a, d)
    area = b.add("Mul", b.add("Sub", x2, x1), b.add("Sub", y2, y1))
    return x1, x2, y1, y2, area


def _pick(
    b: Builder, shape: list[int | str], places: str, edges: tuple[str, str, str, str, str], limit: str, lowest: str
) -> onnx.GraphProto:
    """The body: (step, condition, scores left, picks so far) to the same after one pick."""
    prefix = f"{b.prefix}_pick"
    nodes: list[onnx.NodeProto] = []

    def add(op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{prefix}_{op.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    index, condition, left, picks = (f"{prefix}_{name}" for name in ("index", "condition", "left", "picks"))
    best = add("ArgMax", left, axis=2, keepdims=1)
    chosen = add("Equal", places, best)
    is_best = add("Cast", chosen, to=_FLOAT)
    alive = add("Greater", add("ReduceMax", left, axes=[2]) if b.opset < 18 else
                add("ReduceMax", left, b.constant([2], np.int64)), lowest)  # fmt: skip

    def of_best(value: str) -> str:
        product = add("Mul", value, is_best)
        if b.opset < 13:
            return add("ReduceSum", product, axes=[2])
        return add("ReduceSum", product, b.constant([2], np.int64))

    x1, x2, y1, y2, area = edges
    zero = b.constant(0.0, np.float32)
    width = add("Sub", add("Min", x2, of_best(x2)), add("Max", x1, of_best(x1)))
    height = add("Sub", add("Min", y2, of_best(y2)), add("Max", y1, of_best(y1)))
    shared = add("Mul", add("Max", width, zero), add("Max", height, zero))
    union = add("Sub", add("Add", area, of_best(area)), shared)
    overlaps = add("And", add("Greater", shared, zero), add("Greater", add("Div", shared, union), limit))
    gone = add("Or", overlaps, chosen)
    rest = add("Where", gone, lowest, left)
    pick = add("Where", alive, best, b.constant(-1, np.int64))
    here = add("Equal", places, index)
    picked = add("Where", here, pick, picks)
    inputs = [
        helper.make_tensor_value_info(index, _INT64, []),
        helper.make_tensor_value_info(condition, _BOOL, []),
        helper.make_tensor_value_info(left, _FLOAT, shape),
        helper.make_tensor_value_info(picks, _INT64, shape),
    ]
    outputs = [
        helper.make_tensor_value_info(condition, _BOOL, []),
        helper.make_tensor_value_info(rest, _FLOAT, shape),
        helper.make_tensor_value_info(picked, _INT64, shape),
    ]
    return helper.make_graph(nodes, f"{prefix}_body", inputs, outputs)


def roi_align(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Four neighbours of every sample are gathered from the flat image of the region's batch and weighted."""
    image, rois = b.dims_of(node.input[0]), b.dims_of(node.input[1])
    ratio = attribute(node, "sampling_ratio", 0)
    if image is None or rois is None or 0 in image + rois or b.type_of(node.input[0]) != _FLOAT or ratio <= 0:
        return None
    high, wide = attribute(node, "output_height", 1), attribute(node, "output_width", 1)
    mode = attribute(node, "coordinate_transformation_mode", "half_pixel" if b.opset >= 16 else "output_half_pixel")
    offset = 0.5 if mode == "half_pixel" else 0.0
    _, c, h, w = sizes_of(node.input[0], b)
    count = b.size(node.input[1], 0)
    scaled = b.add("Mul", node.input[1], b.constant(attribute(node, "spatial_scale", 1.0), np.float32))
    corners = [
        b.reshape(
            b.add("Sub", b.add("Gather", scaled, b.constant(k, np.int64), axis=1), b.constant(offset, np.float32)),
            [count, 1],
        )
        for k in range(4)
    ]
    xs = _axis(b, corners[0], corners[2], wide, ratio, w, offset == 0.0)
    ys = _axis(b, corners[1], corners[3], high, ratio, h, offset == 0.0)
    batches = b.reshape(b.cast(node.input[2], _INT64), [count, 1])
    flat = b.reshape(b.transpose(node.input[0], [0, 2, 3, 1]), [-1, c])
    parts = []
    for y_index, y_weight in ys[:2]:
        for x_index, x_weight in xs[:2]:
            weight = b.add(
                "Mul", b.reshape(y_weight, [count, high * ratio, 1]), b.reshape(x_weight, [count, 1, wide * ratio])
            )
            row = b.add("Add", b.add("Mul", batches, b.vector([h])), y_index)
            place = b.add(
                "Add",
                b.reshape(b.add("Mul", row, b.vector([w])), [count, high * ratio, 1]),
                b.reshape(x_index, [count, 1, wide * ratio]),
            )
            taken = b.add("Gather", flat, b.reshape(place, [-1]), axis=0)
            parts.append(b.add("Mul", taken, b.reshape(weight, [-1, 1])))
    is_max = attribute(node, "mode", "avg") == "max"
    value = b.add("Max" if is_max else "Sum", *parts)
    value = b.transpose(b.reshape(value, [count, high, ratio, wide, ratio, c]), [0, 5, 1, 3, 2, 4])
    value = b.reshape(value, [count, c, high, wide, ratio * ratio])
    if is_max:
        axes = {"axes": [4]} if b.opset < 18 else {}
        return [b.add("ReduceMax", value, *([] if axes else [b.constant([4], np.int64)]), keepdims=0, **axes)]
    return [b.add("Div", b.sum(value, 4), b.constant(ratio * ratio, np.float32))]


def _axis(
    b: Builder, start: str, end: str, bins: int, ratio: int, size: Size, at_least_one: bool
) -> list[tuple[str, str]]:
    """(index, weight) of the lower and the upper neighbour of every sample, each [regions, bins * ratio]."""
    real = lambda value: b.constant(value, np.float32)  # noqa: E731
    length = b.add("Sub", end, start)
    if at_least_one:
        length = b.add("Max", length, real(1.0))
    step = b.add("Div", length, real(bins))
    samples = (np.arange(bins)[:, None] + (np.arange(ratio) + 0.5) / ratio).reshape(1, -1)
    x = b.add("Add", start, b.add("Mul", step, real(samples)))
    extent = number(size, b)
    last = b.add("Sub", extent, real(1.0))
    outside = b.add("Or", b.add("Less", x, real(-1.0)), b.add("Greater", x, extent))
    x = b.add("Min", b.add("Max", x, real(0.0)), last)
    low = b.add("Floor", x)
    high = b.add("Min", b.add("Add", low, real(1.0)), last)
    above = b.add("Sub", x, low)
    below = b.add("Sub", real(1.0), above)
    return [
        (b.cast(place, _INT64), b.add("Where", outside, real(0.0), weight))
        for place, weight in ((low, below), (high, above))
    ]
