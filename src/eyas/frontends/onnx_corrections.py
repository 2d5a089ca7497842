"""ONNX operators that the importer lowers to wrong numbers: rewritten where that is simple, refused where it is not.

Found by running every operator test of the standard through a plain loop lowering. A wrong answer is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx_file import OnnxModel
from eyas.frontends.onnx_prepare import describe_node, expand_functions, infer_shapes
from eyas.frontends.onnx_rewrite import rewrite

_LIMITS = {
    onnx.TensorProto.INT8: (-128, 127),
    onnx.TensorProto.UINT8: (0, 255),
    onnx.TensorProto.INT16: (-32768, 32767),
}


def correct(model: OnnxModel) -> bool:
    """Rewrites or refuses what is known to go wrong; says whether the graph changed and needs inference again."""
    rewritten = rewrite(model)
    if rewritten:
        infer_shapes(model)
    ranks = _ranks(model.proto.graph)
    known = {tensor.name for tensor in model.proto.graph.initializer}
    for node in model.proto.graph.node:
        if node.op_type == "Slice" and len(node.input) > 4 and node.input[4] not in known:
            why = "its steps are not known at compile time, and negative ones would go wrong; make them a constant"
            raise UnsupportedOpError(f"{describe_node(node, model)} is not supported: {why}")
    for node in model.proto.graph.node:
        rule = _REFUSED.get(node.op_type)
        if rule is not None and (reason := rule(node, ranks)):
            raise UnsupportedOpError(f"{describe_node(node, model)} is not supported: {reason}")
    inexact = {
        node.op_type
        for node in model.proto.graph.node
        if node.op_type in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
        or (node.op_type == "Gelu" and _attribute(node, "approximate", b"none") == b"tanh")
    }
    changed = bool(inexact) and expand_functions(model, inexact)
    return _quantize_along_axes(model, ranks) or changed or rewritten


def _refuse_grid_sample(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "points between pixels and outside the image are not sampled correctly"


def _refuse_determinant(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "the elimination has no pivoting"


def _refuse_peepholes(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "peephole weights (input P) are ignored" if len(node.input) > 7 and node.input[7] else None


def _refuse_batched_quantized(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "batches of quantized matrices are mixed up" if max(ranks.get(name, 0) for name in node.input) > 2 else None


def _refuse_resize(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    mode = _attribute(node, "coordinate_transformation_mode", b"half_pixel")
    by_scales = len(node.input) > 2 and node.input[2] and not (len(node.input) > 3 and node.input[3])
    return "align_corners with scales is off; give sizes instead" if mode == b"align_corners" and by_scales else None


def _refuse_space_to_depth(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "only mode DCR is" if _attribute(node, "mode", b"DCR") != b"DCR" else None


_REFUSED: dict[str, Callable[[onnx.NodeProto, dict[str, int]], str | None]] = {
    "Det": _refuse_determinant,
    "GridSample": _refuse_grid_sample,
    "LSTM": _refuse_peepholes,
    "QLinearMatMul": _refuse_batched_quantized,
    "Resize": _refuse_resize,
    "SpaceToDepth": _refuse_space_to_depth,
}


def _quantize_along_axes(model: OnnxModel, ranks: dict[str, int]) -> bool:
    """Writes per-axis (de)quantization as arithmetic: the importer takes the first scale for all."""
    graph = model.proto.graph
    types = {value.name: value.type.tensor_type.elem_type for value in [*graph.value_info, *graph.input, *graph.output]}
    types.update({tensor.name: tensor.data_type for tensor in graph.initializer})
    chosen = [
        node
        for node in graph.node
        if node.op_type in ("QuantizeLinear", "DequantizeLinear")
        and ranks.get(node.input[1]) == 1
        and not _attribute(node, "block_size", 0)
        and ranks.get(node.input[0], 0) > 0
        and types.get(node.output[0]) in (onnx.TensorProto.FLOAT, *_LIMITS)
    ]
    for node in chosen:
        position = list(graph.node).index(node)
        replacement = _arithmetic(node, ranks[node.input[0]], types, graph)
        graph.node.remove(node)
        for offset, new in enumerate(replacement):
            graph.node.insert(position + offset, new)
    return bool(chosen)


def _arithmetic(node: onnx.NodeProto, rank: int, types: dict[str, int], graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    name = node.name
    axis = int(_attribute(node, "axis", 1)) % rank
    nodes: list[onnx.NodeProto] = []

    def add(op: str, inputs: list[str], suffix: str, **attributes: object) -> str:
        output = f"{name}_{suffix}"
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def constant(values: np.ndarray, suffix: str) -> str:
        graph.initializer.append(numpy_helper.from_array(values, f"{name}_{suffix}"))
        return f"{name}_{suffix}"

    shape = np.ones(rank, np.int64)
    shape[axis] = -1
    along = constant(shape, "shape")
    scale = add("Reshape", [node.input[1], along], "scale")
    zero = None
    if len(node.input) > 2 and node.input[2]:
        zero = add("Cast", [node.input[2]], "zero_float", to=onnx.TensorProto.FLOAT)
        zero = add("Reshape", [zero, along], "zero")
    if node.op_type == "DequantizeLinear":
        value = add("Cast", [node.input[0]], "float", to=onnx.TensorProto.FLOAT)
        value = value if zero is None else add("Sub", [value, zero], "centered")
        nodes.append(helper.make_node("Mul", [value, scale], [node.output[0]], name=name))
        return nodes
    value = add("Round", [add("Div", [node.input[0], scale], "scaled")], "rounded")
    value = value if zero is None else add("Add", [value, zero], "shifted")
    to = types[node.output[0]]
    low, high = _LIMITS[to]
    value = add("Max", [value, constant(np.array(low, np.float32), "low")], "above")
    value = add("Min", [value, constant(np.array(high, np.float32), "high")], "within")
    nodes.append(helper.make_node("Cast", [value], [node.output[0]], name=name, to=to))
    return nodes


def _ranks(graph: onnx.GraphProto) -> dict[str, int]:
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim) for value in [*graph.value_info, *graph.input, *graph.output]
    }
    return {**ranks, **{tensor.name: len(tensor.dims) for tensor in graph.initializer}}


def _attribute(node: onnx.NodeProto, name: str, default: object) -> object:
    for attribute in node.attribute:
        if attribute.name == name:
            return helper.get_attribute_value(attribute)
    return default
