"""Padding of convolutions and pooling over dynamic sizes: the importer takes such a size to be -1 and computes with it.

`auto_pad` becomes explicit, and pooling that is padded on one side more than on the other gets a Pad of its own.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.prepare import describe_node, opset_versions
from eyas.frontends.onnx.subgraphs import replace_nodes

_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_WINDOWS = _POOLS | {"Conv", "ConvInteger", "QLinearConv"}


def state_padding(model: OnnxModel) -> bool:
    """Makes padding explicit where sizes are dynamic; says whether nodes came in. Shapes must have been inferred."""
    graph = model.proto.graph
    values = {value.name: value.type.tensor_type for value in [*graph.value_info, *graph.input, *graph.output]}
    weights = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type not in _WINDOWS or node.input[0] not in values:
            continue
        sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in values[node.input[0]].shape.dim[2:]]
        if None not in sizes:
            continue
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        pads = list(attributes.get("pads", [0] * (2 * len(sizes))))
        if attributes.get("auto_pad", b"NOTSET").startswith(b"SAME"):
            window = attributes.get("kernel_shape") or weights.get(node.input[1], [])[2:]
            pads = _same(node, model, sizes, window, attributes)
            _set(node, pads)
        if node.op_type in _POOLS and pads[: len(sizes)] != pads[len(sizes) :]:
            nodes.insert(-1, _separate_pad(node, model, pads, values[node.input[0]].elem_type, attributes))
    if len(nodes) == len(graph.node):
        return False
    replace_nodes(graph, nodes)
    return True


def _same(
    node: onnx.NodeProto, model: OnnxModel, sizes: list[int | None], window: list[int], attributes: dict
) -> list[int]:
    ones = [1] * len(sizes)
    spans = zip(sizes, window, attributes.get("strides", ones), attributes.get("dilations", ones), strict=True)
    totals: list[int] = []
    for span in spans:
        total = _total(*span)
        if total is not None:
            totals.append(total)
    if len(totals) < len(sizes):
        why = "its padding depends on a size that is dynamic; give example inputs or fix the size"
        raise UnsupportedOpError(f"{describe_node(node, model)} is not supported: {why}")
    smaller, larger = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return smaller + larger if attributes["auto_pad"] == b"SAME_UPPER" else larger + smaller


def _separate_pad(
    node: onnx.NodeProto, model: OnnxModel, pads: list[int], data_type: int, attributes: dict
) -> onnx.NodeProto:
    """A Pad in front of pooling, which then has none."""
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    is_max = node.op_type == "MaxPool"
    is_counted = is_max or node.op_type == "LpPool" or attributes.get("count_include_pad", 0)
    if not is_counted or len([name for name in node.output if name]) > 1 or opset_versions(model).get("", 0) < 11:
        why = "it is padded on one side more than on the other, and a size is dynamic"
        raise UnsupportedOpError(f"{describe_node(node, model)} is not supported: {why}")
    lowest = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
    half = len(pads) // 2
    graph = model.proto.graph
    graph.initializer.append(
        numpy_helper.from_array(np.array([0, 0, *pads[:half], 0, 0, *pads[half:]], np.int64), f"{node.name}_pads")
    )
    graph.initializer.append(numpy_helper.from_array(np.array(lowest if is_max else 0, dtype), f"{node.name}_border"))
    inputs = [node.input[0], f"{node.name}_pads", f"{node.name}_border"]
    node.input[0] = f"{node.name}_padded"
    _set(node, [0] * len(pads))
    return helper.make_node("Pad", inputs, [node.input[0]], name=f"{node.name}_pad")


def _total(size: int | None, window: int, stride: int, dilation: int) -> int | None:
    """Elements that are added along a dimension so that the result has a `stride`-th of its size, rounded up."""
    reach = dilation * (window - 1)
    if stride == 1:
        return reach
    return None if size is None else max(0, (-(-size // stride) - 1) * stride + reach + 1 - size)


def _set(node: onnx.NodeProto, pads: list[int]) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name not in ("auto_pad", "pads")]
    kept.append(helper.make_attribute("pads", pads))
    del node.attribute[:]
    node.attribute.extend(kept)
