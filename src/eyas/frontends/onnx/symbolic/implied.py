"""Sizes that a file leaves open and that can be one number only, because of what the graph does with them.

A recurrent layer whose first state is a constant or an input of a known batch takes that batch alone, as an inner size
of a product is the one of a known matrix, and the channels of a convolution or a normalisation those of its weights;
the ranks around a `ScatterND` say how long its positions are. A `Squeeze`
without axes drops whatever is 1, so that the rank of its result is open with the size: where the model says what rank
it returns, that decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret

_RECURRENT = ("GRU", "LSTM", "RNN")
# Where the weights are among the operands, and which of their dimensions has the channels of the first operand.
_CHANNELS = {
    "BatchNormalization": (1, 0),
    "Conv": (1, 1),
    "ConvInteger": (1, 1),
    "ConvTranspose": (1, 0),
    "InstanceNormalization": (1, 0),
    "QLinearConv": (3, 1),
}
# Operators whose result has the shape of their first operand, or of the other one than a number.
_KEEP_SHAPE = (
    *("Abs", "Add", "Cast", "Clip", "Div", "Exp", "Floor", "Identity", "LeakyRelu", "Log", "Mul", "Neg", "Relu"),
    *("Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh"),
)


def implied_sizes(model: OnnxModel) -> dict[str, Any]:
    """By the name of a dimension, or by input and place where it has none."""
    facts = interpret(model)
    found: dict[str, int] = {}
    for node in model.proto.graph.node:
        for size, other in _equal_sizes(node, facts, model.proto.graph):
            for one, number in ((size, other), (other, size)):
                if isinstance(number, int) and number > 0 and ex.is_dimension(one):
                    found.setdefault(str(one), number)
    sizes: dict[str, Any] = {}
    for value in model.proto.graph.input:
        for at, dim in enumerate(value.type.tensor_type.shape.dim):
            size = None if dim.HasField("dim_value") else found.get(dim.dim_param or f"{value.name}_dim{at}")
            if size is not None and dim.dim_param:
                sizes[dim.dim_param] = size
            elif size is not None:
                sizes.setdefault(value.name, {})[at] = size
    return sizes


def _equal_sizes(node: onnx.NodeProto, facts: Facts, graph: onnx.GraphProto) -> Iterator[tuple[ex.Integer, ex.Integer]]:
    """Pairs of sizes without whose equality the node fails, or returns what the model says it does not."""
    shapes = [value.shape if (value := facts.values.get(name)) is not None else None for name in node.input]
    if node.domain not in ("", "ai.onnx"):
        return
    if node.op_type in _RECURRENT and shapes[0] is not None and len(shapes[0]) == 3:
        batch_first = _attributes(node).get("layout", 0) == 1
        batch = shapes[0][0 if batch_first else 1]
        for state in shapes[5:7]:
            if state is not None and len(state) == 3:
                yield batch, state[0 if batch_first else 1]
        if shapes[1] is not None:
            yield shapes[0][2], shapes[1][-1]
    elif node.op_type in _CHANNELS and shapes[0] is not None and len(shapes[0]) > 1:
        place, at = _CHANNELS[node.op_type]
        weights = shapes[place]
        if weights is not None:
            # Each group of a convolution reads its own part of the channels.
            yield shapes[0][1], ex.mul(weights[at], _attributes(node).get("group", 1) if at else 1)
    elif node.op_type == "MatMul" and all(shape is not None and len(shape) > 1 for shape in shapes):
        one, other = shapes
        assert one is not None and other is not None
        yield one[-1], other[-2]
    elif node.op_type == "Concat":
        yield from _beside_constants(node, shapes, {tensor.name for tensor in graph.initializer})
    elif node.op_type == "ScatterND" and all(shapes[:3]):
        data, places, updates = shapes[:3]
        assert data is not None and places is not None and updates is not None
        yield places[-1], len(places) - 1 + len(data) - len(updates)
    elif node.op_type == "Squeeze" and shapes[0] is not None and _has_no_axes(node):
        yield from ((size, 1) for size in _dropped(shapes[0], _returned_rank(node.output[0], graph, facts)))


def _beside_constants(
    node: onnx.NodeProto, shapes: Sequence[Sequence[ex.Integer] | None], constants: set[str]
) -> Iterator[tuple[ex.Integer, ex.Integer]]:
    """Sizes across the axis of a concatenation are those of a constant in it: a class token is for one batch."""
    known = [shape for name, shape in zip(node.input, shapes, strict=True) if name in constants and shape]
    for shape in shapes:
        if not known or shape is None or len(shape) != len(known[0]):
            continue
        axis = _attributes(node).get("axis", 1) % len(shape)
        yield from (pair for at, pair in enumerate(zip(shape, known[0], strict=True)) if at != axis)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _has_no_axes(node: onnx.NodeProto) -> bool:
    return not (len(node.input) > 1 and node.input[1]) and "axes" not in _attributes(node)


def _dropped(shape: Sequence[ex.Integer], rank: int | None) -> Sequence[ex.Integer]:
    """The open sizes that must all be 1 for a result of the rank; none where they may be anything."""
    unknown = [size for size in shape if not isinstance(size, int)]
    kept = sum(1 for size in shape if isinstance(size, int) and size != 1)
    return unknown if rank == kept else []


def _returned_rank(name: str, graph: onnx.GraphProto, facts: Facts) -> int | None:
    """The rank that the model declares for a result that has the shape of the value."""
    declared: Mapping[str, onnx.ValueInfoProto] = {value.name: value for value in graph.output}
    seen = {name}
    for node in graph.node:
        others = [one for one in node.input if one and one not in seen]
        if seen.isdisjoint(node.input) or node.op_type not in _KEEP_SHAPE:
            continue
        if all((value := facts.values.get(one)) is not None and value.shape == () for one in others):
            seen.update(node.output)
    for one in seen & declared.keys():
        type_ = declared[one].type.tensor_type
        if type_.HasField("shape"):
            return len(type_.shape.dim)
    return None
