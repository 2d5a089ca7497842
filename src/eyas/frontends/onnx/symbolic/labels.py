"""Names of dimensions that a file gives to sizes that may differ.

A name that stands in several inputs ties their sizes: a call that has others is refused, and loops are shared. Some
exporters write labels instead: `height` for the picture and for each state that a recurrent network hands on at a half,
a quarter, ... of it, and which is 1 in the first call. What the graph does with such an input tells: it only expands
it.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.subgraphs import all_nodes


def separate_labels(model: OnnxModel) -> None:
    """Gives an input that is only expanded, and so may be 1 anywhere, names of its own where it shares some."""
    graph = model.proto.graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    expanded = _expanded_only(graph)
    seen: set[str] = set()
    # Those that are not expanded keep their names, wherever they stand.
    for value in sorted(inputs, key=lambda value: value.name in expanded):
        mine = {dim.dim_param for dim in _dims(value) if dim.dim_param}
        for dim in _dims(value):
            if value.name in expanded and dim.dim_param in seen:
                dim.dim_param = f"{value.name}_{dim.dim_param}"
        seen |= mine


def _expanded_only(graph: onnx.GraphProto) -> set[str]:
    """The values that are used as what an Expand repeats, and in no other way."""
    expanded: set[str] = set()
    used = {value.name for value in graph.output}
    for node in all_nodes(graph):
        is_expand = node.op_type == "Expand" and node.domain in ("", "ai.onnx")
        expanded.update(node.input[:1] if is_expand else ())
        used.update(node.input[1:] if is_expand else node.input)
    return expanded - used


def _dims(value: onnx.ValueInfoProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    yield from value.type.tensor_type.shape.dim
