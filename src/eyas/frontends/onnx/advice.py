"""What a user can write about the sizes that a model leaves open, as the end of an error message."""

from __future__ import annotations

import re
from collections.abc import Iterable

import onnx

from eyas.frontends.onnx.file import OnnxModel, dtype_of
from eyas.frontends.onnx.subgraphs import all_graphs, subgraphs

_NODE = re.compile(r"node '([^']+)'")
# What is refused whatever sizes there are: text, sequences, maps.
_NO_MATTER_OF_SIZES = re.compile("only tensors are supported|takes text|element type STRING")


def advice(model: OnnxModel, inputs: Iterable[onnx.ValueInfoProto], message: str) -> str:
    """Which sizes of which inputs are open where an error happened, and how to fix them; empty if none are."""
    if _NO_MATTER_OF_SIZES.search(message):
        return ""
    reached = _reached(model.proto.graph, set(_NODE.findall(message)))
    parts, shown, keys = [], [], []
    for value in inputs:
        tensor = value.type.tensor_type
        if value.type.WhichOneof("value") != "tensor_type" or (reached is not None and value.name not in reached):
            continue
        dtype = dtype_of(tensor.elem_type)
        if not tensor.HasField("shape"):
            parts.append(f"input '{value.name}' has no shape")
            shown.append(f"--input {value.name}=NxNx{dtype}")
            keys.append(f"'{value.name}': [N, N]")
            continue
        sizes = [str(dim.dim_value) if dim.HasField("dim_value") else "N" for dim in tensor.shape.dim]
        unknown = [at for at, size in enumerate(sizes) if size == "N"]
        if unknown:
            parts.append(f"{_dimensions(tensor, unknown)} of input '{value.name}'")
            shown.append(f"--input {value.name}={'x'.join(sizes)}x{dtype}")
            keys.append(f"'{value.name}': {{{', '.join(f'{at}: N' for at in unknown)}}}")
    if not parts:
        return ""
    return (
        f"; sizes that the model leaves open: {', '.join(parts)}. It may compile when they are fixed: with numbers for"
        f" N, eyas compile {' '.join(shown)}, or eyas.compile(..., dynamic_shapes={{{', '.join(keys)}}})"
    )


def _dimensions(tensor: onnx.TypeProto.Tensor, unknown: list[int]) -> str:
    names = {at: tensor.shape.dim[at].dim_param for at in unknown}
    texts = [f"{at} ('{names[at]}')" if names[at] else str(at) for at in unknown]
    return f"dimension{'s' if len(texts) > 1 else ''} {' and '.join(texts)}"


def _reached(graph: onnx.GraphProto, blamed: set[str]) -> set[str] | None:
    """All values that the blamed nodes depend on; None when none of them is in the graph."""
    makers = {name: node for node in graph.node for name in node.output}
    ends = [node for node in graph.node if node.name in blamed or blamed & _inner_names(node)]
    if not ends:
        return None
    reached: set[str] = set()
    work = [name for node in ends for name in _uses(node)]
    while work:
        name = work.pop()
        if name not in reached:
            reached.add(name)
            work.extend(_uses(makers[name]) if name in makers else ())
    return reached


def _inner_names(node: onnx.NodeProto) -> set[str]:
    return {inner.name for graph in subgraphs(node) for each in all_graphs(graph) for inner in each.node}


def _uses(node: onnx.NodeProto) -> list[str]:
    """What a node reads, in its subgraphs too."""
    captured = [
        name
        for graph in subgraphs(node)
        for each in all_graphs(graph)
        for name in [*(name for inner in each.node for name in inner.input), *(value.name for value in each.output)]
    ]
    return [*node.input, *captured]
