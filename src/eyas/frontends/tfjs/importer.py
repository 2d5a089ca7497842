"""TensorFlow.js: the path of a `model.json`, or of the folder that has one. Its weights lie beside it.

Inputs and results have the names of the model's signature, else those of its nodes. Sizes that the model leaves open
stay open, unless example inputs or `dynamic_shapes` fix them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from eyas.errors import FrontendError, UsageError
from eyas.frontends.onnx import importer as onnx_importer
from eyas.frontends.onnx import prepare
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.tensorflow.graph import Graph, Value
from eyas.frontends.tfjs.dilated import fold_dilations
from eyas.frontends.tfjs.file import TfjsFile, open_file
from eyas.frontends.tfjs.graph import GraphTranslation
from eyas.frontends.tfjs.node import DTYPES, decode
from eyas.program.program import ImportedProgram, Source


def import_model(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> ImportedProgram:
    """Imports and lowers a model of TensorFlow.js."""
    if not isinstance(model, (str, os.PathLike)):
        raise FrontendError(f"models of TensorFlow.js arrive as a path, not as {type(model).__qualname__}")
    if dynamic_shapes is not None and not isinstance(dynamic_shapes, Mapping):
        raise UsageError("dynamic_shapes of a model of TensorFlow.js maps input names to shapes")
    file = open_file(model)
    program = onnx_importer.import_model(to_onnx(file, args, kwargs, dynamic_shapes or {}), (), {}, None)
    return replace(program, source=Source("tfjs", file.description))


def to_onnx(
    file: TfjsFile,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
) -> OnnxModel:
    """The ONNX model of a file."""
    given = Examples(file.description, args, kwargs or {}, shapes or {})
    if file.is_graph:
        return _graph_to_onnx(file, given)
    from eyas.frontends.tfjs.layers import layers_to_onnx

    return layers_to_onnx(file, given)


class Examples:
    """What a caller says of the sizes of inputs."""

    def __init__(self, description: str, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Mapping[str, Any]):
        self._description, self._args, self._kwargs, self._shapes = description, args, kwargs, shapes

    def inputs(self, g: Graph, declared: Sequence[tuple[str, Any, Sequence[int] | None]]) -> list[Value]:
        """Arguments of the graph from (name, type, sizes with -1 for an open one, or None for an unknown rank)."""
        proto = onnx.ModelProto()
        for index, (name, dtype, sizes) in enumerate(declared):
            if not sizes:
                sizes = [-1] * self._rank(index, name, is_scalar=sizes is not None)
            dims = [size if size >= 0 else f"{name}_dim{axis}" for axis, size in enumerate(sizes)]
            type_ = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims)
            proto.graph.input.append(helper.make_value_info(name, type_))
        model = OnnxModel(proto, self._description)
        prepare.set_shapes(model, self._shapes, prepare.example_inputs(model, self._args, self._kwargs))
        values = model.proto.graph.input
        return [
            g.input(name, dtype, prepare.dims_of(value))
            for (name, dtype, _), value in zip(declared, values, strict=True)
        ]

    def _rank(self, index: int, name: str, is_scalar: bool) -> int:
        """Of an input without sizes: a scalar may be written as an unknown rank is, so an example decides."""
        if index < len(self._args):
            return np.ndim(self._args[index])
        if name in self._kwargs:
            return np.ndim(self._kwargs[name])
        if isinstance(self._shapes.get(name), (tuple, list)):
            return len(self._shapes[name])
        if is_scalar:
            return 0
        raise UsageError(
            f"{self._description}: input '{name}' has any number of dimensions; give example inputs or"
            f" dynamic_shapes={{'{name}': [...]}}"
        )


def _graph_to_onnx(file: TfjsFile, given: Examples) -> OnnxModel:
    g = Graph(file.description)
    nodes, weights = fold_dilations({node["name"]: node for node in file.topology["node"]}, file.weights)
    signature = file.signature
    names = {_node_of(entry["name"]): key for key, entry in (signature.get("inputs") or {}).items()}
    places = [node for node in nodes.values() if node["op"] == "Placeholder"]
    # The signature has the order in which a model is called.
    order = {name: index for index, name in enumerate(names)}
    places.sort(key=lambda node: order.get(node["name"], len(order)))
    declared = []
    for node in places:
        entry = (signature.get("inputs") or {}).get(names.get(node["name"], ""), {})
        kind = decode(node.get("attr", {}).get("dtype")) or entry.get("dtype", "DT_FLOAT")
        if kind not in DTYPES:
            raise FrontendError(f"{file.description}: input '{node['name']}' has type {kind}, which is not supported")
        name = names.get(node["name"], node["name"]).removesuffix(":0")
        declared.append((name, DTYPES[kind], _sizes(node, entry)))
    values = given.inputs(g, declared)
    library = (file.topology.get("library") or {}).get("function") or []
    functions = {one["signature"]["name"]: one for one in library}
    translation = GraphTranslation(g, nodes, weights, functions)
    translation.values = {node["name"]: [value] for node, value in zip(places, values, strict=True)}
    outputs = {key: entry["name"] for key, entry in (signature.get("outputs") or {}).items()} or _ends(nodes)
    results = [(key.removesuffix(":0"), translation.tensor(name)) for key, name in outputs.items()]
    g.where = ""
    return g.model(results)


def _node_of(tensor: str) -> str:
    return tensor.partition(":")[0]


def _sizes(node: dict[str, Any], entry: dict[str, Any]) -> list[int] | None:
    """The shape of a placeholder; None where nothing says how many dimensions it has."""
    shapes = [entry.get("tensorShape"), (node.get("attr", {}).get("shape") or {}).get("shape")]
    for shape in shapes:
        if isinstance(shape, dict) and shape.get("dim"):
            return [int(dim.get("size", -1)) for dim in shape["dim"]]
    declared = [shape for shape in shapes if isinstance(shape, dict)]
    return [] if declared and not any(shape.get("unknownRank") for shape in declared) else None


def _ends(nodes: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Nodes that nobody takes from."""
    used = {_node_of(one) for node in nodes.values() for one in node.get("input", [])}
    skipped = ("Const", "Placeholder", "NoOp")
    return {name: name for name, node in nodes.items() if name not in used and node["op"] not in skipped}
