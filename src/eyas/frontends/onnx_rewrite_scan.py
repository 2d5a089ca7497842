"""Unrolls `Scan` over a known number of steps: its body is repeated, with a slice of each scanned input."""

from __future__ import annotations

import numpy as np
import onnx

from eyas.frontends.onnx_rewrite import Builder, attribute

_MOST_STEPS = 64


def scan(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Works from opset 9 on; before, Scan had a batch dimension."""
    body = attribute(node, "body", None)
    count = attribute(node, "num_scan_inputs", 0)
    if body is None or b.opset < 9 or any(a.HasField("g") for inner in body.node for a in inner.attribute):
        return None
    states, scanned = list(node.input[:-count]), list(node.input[-count:])
    shapes = [shape for name in scanned if (shape := b.shape_of(name)) is not None]
    if len(shapes) != count:
        return None
    ranks = [len(shape) for shape in shapes]
    in_axes = [a % r for a, r in zip(attribute(node, "scan_input_axes", [0] * count), ranks, strict=True)]
    backward = attribute(node, "scan_input_directions", [0] * count)
    results = len(body.output) - len(states)
    out_axes = attribute(node, "scan_output_axes", [0] * results)
    out_backward = attribute(node, "scan_output_directions", [0] * results)
    steps = shapes[0][in_axes[0]]
    if not 0 < steps <= _MOST_STEPS or any(axis < 0 for axis in out_axes):
        return None
    rows: list[list[str]] = [[] for _ in range(results)]
    for step in range(steps):
        given = [
            b.add("Gather", name, b.constant(steps - 1 - step if back else step, np.int64), axis=axis)
            for name, axis, back in zip(scanned, in_axes, backward, strict=True)
        ]
        outputs = _inline(body, [*states, *given], b)
        states = outputs[: len(states)]
        for place, value in enumerate(outputs[len(states) :]):
            axis = b.constant([out_axes[place]], np.int64)
            rows[place].append(
                b.add("Unsqueeze", value, axis) if b.opset >= 13 else b.add("Unsqueeze", value, axes=[out_axes[place]])
            )
    stacked = [
        b.add("Concat", *(reversed(row) if back else row), axis=axis)
        for row, axis, back in zip(rows, out_axes, out_backward, strict=True)
    ]
    wanted = [value for name, value in zip(node.output, [*states, *stacked], strict=False) if name]
    return wanted


def _inline(body: onnx.GraphProto, given: list[str], b: Builder) -> list[str]:
    """One copy of the body; names from outside stay as they are."""
    names = {value.name: name for value, name in zip(body.input, given, strict=True)}
    for tensor in body.initializer:
        names[tensor.name] = b.constant(onnx.numpy_helper.to_array(tensor))
    for inner in body.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(inner)
        copy.name = f"{b.prefix}_{inner.op_type.lower()}_{len(b.nodes)}"
        for place, name in enumerate(inner.input):
            copy.input[place] = names.get(name, name)
        for place, name in enumerate(inner.output):
            if name:
                names[name] = copy.output[place] = f"{copy.name}_{place}"
        b.nodes.append(copy)
    return [names.get(value.name, value.name) for value in body.output]
