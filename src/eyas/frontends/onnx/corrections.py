"""ONNX operators that the importer lowers to wrong numbers: rewritten where that is simple, refused where it is not.

Found by running every operator test of the standard through a plain loop lowering. A wrong answer is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx
from onnx import helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.prepare import describe_node, expand_functions, infer_shapes
from eyas.frontends.onnx.rewrite.rules import rewrite

# A rule may write operators that have rules themselves: a Scan becomes a Loop.
_ROUNDS = 4


def correct(model: OnnxModel) -> bool:
    """Rewrites or refuses what is known to go wrong; says whether the graph changed and needs inference again."""
    rewritten = False
    for _ in range(_ROUNDS):
        if not rewrite(model):
            break
        rewritten = True
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
    return changed or rewritten


def _refuse_grid_sample(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "only f32 or f64 images and grids of one type, of known rank and not empty, are sampled correctly"


def _refuse_determinant(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "the elimination has no pivoting"


def _refuse_peepholes(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "peephole weights (input P) are ignored" if len(node.input) > 7 and node.input[7] else None


def _refuse_resize(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    mode = _attribute(node, "coordinate_transformation_mode", b"half_pixel")
    by_scales = len(node.input) > 2 and node.input[2] and not (len(node.input) > 3 and node.input[3])
    return "align_corners with scales is off; give sizes instead" if mode == b"align_corners" and by_scales else None


def _refuse_space_to_depth(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "only mode DCR is" if _attribute(node, "mode", b"DCR") != b"DCR" else None


def _refuse_if(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    branches = [found.g.output for found in node.attribute if found.HasField("g")]
    for then, otherwise in zip(*branches, strict=True):
        types = then.type.tensor_type, otherwise.type.tensor_type
        if all(type_.HasField("shape") for type_ in types) and len({len(type_.shape.dim) for type_ in types}) > 1:
            return f"its branches give '{then.name}' and '{otherwise.name}', whose ranks differ"
    return None


def _refuse_roi_align(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "only f32, a known rank and a sampling_ratio above 0 are; without one the data says how many samples to take"


def _refuse_static_only(node: onnx.NodeProto, ranks: dict[str, int]) -> str | None:
    return "only f32 boxes, or numbers, of known rank and not empty are"


_REFUSED: dict[str, Callable[[onnx.NodeProto, dict[str, int]], str | None]] = {
    "Det": _refuse_determinant,
    "GridSample": _refuse_grid_sample,
    "If": _refuse_if,
    "LSTM": _refuse_peepholes,
    "NonMaxSuppression": _refuse_static_only,
    "Resize": _refuse_resize,
    "RoiAlign": _refuse_roi_align,
    "SpaceToDepth": _refuse_space_to_depth,
    "Unique": _refuse_static_only,
}


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
