"""`Scan`: a few steps are unrolled, with a slice of each scanned input; many, or an unknown number, become a `Loop`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.rewrite.rules import Builder, attribute

_MOST_STEPS = 64


@dataclass(frozen=True)
class _Plan:
    """What is scanned and how, after the defaults of the attributes."""

    body: onnx.GraphProto
    states: list[str]
    scanned: list[str]
    in_axes: list[int]
    backward: list[int]
    out_axes: list[int]
    out_backward: list[int]


def scan(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Any `Scan`; before opset 9 it had a batch dimension, over which it is repeated."""
    body, count = attribute(node, "body", None), attribute(node, "num_scan_inputs", 0)
    if body is None:
        return None
    if b.opset < 9:
        return _batched_scan(node, body, count, b)
    states, scanned = list(node.input[:-count]), list(node.input[-count:])
    ranks = [b.rank_of(name) for name in scanned]
    results = len(body.output) - len(states)
    out_ranks = [b.rank_of(name) if name else 0 for name in list(node.output)[len(states) :]]
    if None in ranks or len(out_ranks) != results:
        return None
    out_axes = attribute(node, "scan_output_axes", [0] * results)
    if any(axis < 0 and not rank for axis, rank in zip(out_axes, out_ranks, strict=True)):
        return None
    plan = _Plan(
        body,
        states,
        scanned,
        [a % (r or 1) for a, r in zip(attribute(node, "scan_input_axes", [0] * count), ranks, strict=True)],
        attribute(node, "scan_input_directions", [0] * count),
        [axis % rank if axis < 0 else axis for axis, rank in zip(out_axes, out_ranks, strict=True)],
        attribute(node, "scan_output_directions", [0] * results),
    )
    dims = b.dims_of(scanned[0]) or []
    steps = dims[plan.in_axes[0]] if dims else None
    has_subgraphs = any(a.HasField("g") for inner in body.node for a in inner.attribute)
    if steps and steps <= _MOST_STEPS and not has_subgraphs:
        values = _unroll(plan, steps, b)
    else:
        values = _as_loop(plan, steps, b)
    return [value for name, value in zip(node.output, values, strict=False) if name]


def _unroll(plan: _Plan, steps: int, b: Builder) -> list[str]:
    states = plan.states
    rows: list[list[str]] = [[] for _ in plan.out_axes]
    for step in range(steps):
        given = [
            b.add("Gather", name, b.constant(steps - 1 - step if back else step, np.int64), axis=axis)
            for name, axis, back in zip(plan.scanned, plan.in_axes, plan.backward, strict=True)
        ]
        outputs = _inline(plan.body, [*states, *given], b)
        states = outputs[: len(states)]
        for place, value in enumerate(outputs[len(states) :]):
            rows[place].append(_unsqueeze(value, plan.out_axes[place], b))
    stacked = [
        b.add("Concat", *(reversed(row) if back else row), axis=axis)
        for row, axis, back in zip(rows, plan.out_axes, plan.out_backward, strict=True)
    ]
    return [*states, *stacked]


def _as_loop(plan: _Plan, steps: int | None, b: Builder) -> list[str]:
    """A `Loop` whose steps gather their slices; its own rule does the rest."""
    if steps is None:
        sizes = b.add("Shape", plan.scanned[0])
        trip = b.add("Gather", sizes, b.constant(plan.in_axes[0], np.int64), axis=0)
    else:
        trip = b.constant(steps, np.int64)
    last = b.add("Sub", trip, b.constant(1, np.int64))
    body, prefix = plan.body, f"{b.prefix}_scanned"
    index, condition = f"{prefix}_index", f"{prefix}_condition"
    nodes = [helper.make_node("Sub", [last, index], [f"{prefix}_backward"], name=f"{prefix}_backward")]
    for place, value in enumerate(body.input[len(plan.states) :]):
        where = f"{prefix}_backward" if plan.backward[place] else index
        name = f"{prefix}_slice_{place}"
        gather = helper.make_node("Gather", [plan.scanned[place], where], [value.name], name, axis=plan.in_axes[place])
        nodes.append(gather)
    nodes.extend(body.node)
    inputs = [
        helper.make_tensor_value_info(index, onnx.TensorProto.INT64, []),
        helper.make_tensor_value_info(condition, onnx.TensorProto.BOOL, []),
        *body.input[: len(plan.states)],
    ]
    outputs = [helper.make_tensor_value_info(condition, onnx.TensorProto.BOOL, []), *body.output]
    graph = helper.make_graph(nodes, f"{prefix}_body", inputs, outputs)
    results = b.add_many("Loop", len(body.output), trip, "", *plan.states, body=graph)
    values = results[: len(plan.states)]
    for place, value in enumerate(results[len(plan.states) :]):
        if plan.out_backward[place]:
            zero, one = b.constant(0, np.int64), b.constant(1, np.int64)
            value = b.add("Gather", value, b.add("Sub", last, b.add("Range", zero, trip, one)), axis=0)
        axis = plan.out_axes[place]
        if axis:
            rank = max(len(body.output[len(plan.states) + place].type.tensor_type.shape.dim) + 1, axis + 1)
            value = b.transpose(value, [*range(1, axis + 1), 0, *range(axis + 1, rank)])
        values.append(value)
    return values


def _batched_scan(node: onnx.NodeProto, body: onnx.GraphProto, count: int, b: Builder) -> list[str] | None:
    """Opset 8: inputs are [batch, sequence, ...]; sequences of one length only."""
    states, scanned = list(node.input[1:-count]), list(node.input[-count:])
    shape = b.shape_of(scanned[0])
    if node.input[0] or shape is None or not 0 < shape[0] * shape[1] <= _MOST_STEPS:
        return None
    results = len(body.output) - len(states)
    backward = attribute(node, "directions", [0] * count)
    per_element = []
    for element in range(shape[0]):
        chosen = b.constant(element, np.int64)
        first, rest = ([b.add("Gather", name, chosen, axis=0) for name in names] for names in (states, scanned))
        plan = _Plan(body, first, rest, [0] * count, backward, [0] * results, [0] * results)
        per_element.append(_unroll(plan, shape[1], b))
    return [
        b.add("Concat", *(_unsqueeze(value, 0, b) for value in values), axis=0)
        for name, values in zip(node.output, zip(*per_element, strict=True), strict=False)
        if name
    ]


def _unsqueeze(value: str, axis: int, b: Builder) -> str:
    if b.opset < 13:
        return b.add("Unsqueeze", value, axes=[axis])
    return b.add("Unsqueeze", value, b.constant([axis], np.int64))


def _inline(body: onnx.GraphProto, given: Sequence[str], b: Builder) -> list[str]:
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
