"""ONNX operators without a lowering, written as operators that have one.

A rule is a function of a node and a `Builder`; it returns the names of the new results, or None when the node is not of
the form that it knows. Rules work on static shapes, so that index tables and weights are constants made here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eyas.frontends.onnx_file import OnnxModel, is_large

Rule = Callable[[onnx.NodeProto, "Builder"], "Sequence[str] | None"]

# Operator -> module and function of its rule.
_RULES = {
    "AffineGrid": "onnx_rewrite_sample:affine_grid",
    "BitCast": "onnx_rewrite_shape:bit_cast",
    "Col2Im": "onnx_rewrite_shape:col2im",
    "CumProd": "onnx_rewrite_shape:cum_prod",
    "DFT": "onnx_rewrite_signal:dft",
    "DeformConv": "onnx_rewrite_sample:deform_conv",
    "Det": "onnx_rewrite_shape:det",
    "GridSample": "onnx_rewrite_sample:grid_sample",
    "LpNormalization": "onnx_rewrite_index:lp_normalization",
    "MatMul": "onnx_rewrite_shape:mat_mul",
    "MaxUnpool": "onnx_rewrite_shape:max_unpool",
    "Pad": "onnx_rewrite_index:pad_wrapped",
    "Resize": "onnx_rewrite_signal:resize",
    "Scan": "onnx_rewrite_scan:scan",
    "Slice": "onnx_rewrite_index:slice_backwards",
    "SpaceToDepth": "onnx_rewrite_shape:space_to_depth",
    "TensorScatter": "onnx_rewrite_shape:tensor_scatter",
    "Upsample": "onnx_rewrite_signal:resize",
}


class Builder:
    """Makes nodes and constants for one rewritten node, and knows types, static shapes and values."""

    def __init__(self, model: OnnxModel, node: onnx.NodeProto):
        graph = model.proto.graph
        self.prefix = node.name
        self.opset = next((o.version for o in model.proto.opset_import if o.domain in ("", "ai.onnx")), 0)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self._values = {value.name: value for value in [*graph.value_info, *graph.input, *graph.output]}
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._constants: dict[tuple[Any, ...], str] = {}

    def type_of(self, name: str) -> int:
        """The element type of a value of the graph."""
        if name in self._tensors:
            return self._tensors[name].data_type
        return self._values[name].type.tensor_type.elem_type if name in self._values else 0

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """The static shape of a value of the graph, or None."""
        if name in self._tensors:
            return tuple(self._tensors[name].dims)
        if name not in self._values or not self._values[name].type.tensor_type.HasField("shape"):
            return None
        dims = self._values[name].type.tensor_type.shape.dim
        return tuple(dim.dim_value for dim in dims) if all(dim.HasField("dim_value") for dim in dims) else None

    def value_of(self, name: str) -> np.ndarray | None:
        """The value of a constant, or None."""
        tensor = self._tensors.get(name)
        return None if tensor is None or is_large(tensor) else numpy_helper.to_array(tensor)

    def constant(self, values: Any, dtype: Any = None) -> str:
        """A constant; the same one for the same values."""
        array = np.ascontiguousarray(values, dtype) if np.ndim(values) else np.array(values, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = f"{self.prefix}_const_{len(self.initializers)}"
            self.initializers.append(numpy_helper.from_array(array, name))
            self._constants[key] = name
        return self._constants[key]

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result; returns its name."""
        name = f"{self.prefix}_{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        return self.add("Reshape", value, self.constant(list(shape), np.int64))

    def transpose(self, value: str, order: Sequence[int]) -> str:
        return value if list(order) == sorted(order) else self.add("Transpose", value, perm=list(order))

    def cast(self, value: str, to: int) -> str:
        return self.add("Cast", value, to=to)

    def sum(self, value: str, axis: int) -> str:
        """The sum along one axis, which disappears."""
        if self.opset < 13:
            return self.add("ReduceSum", value, axes=[axis], keepdims=0)
        return self.add("ReduceSum", value, self.constant([axis], np.int64), keepdims=0)


def rewrite(model: OnnxModel) -> bool:
    """Applies the rules; says whether the graph changed and needs inference again."""
    graph = model.proto.graph
    if not any(node.op_type in _RULES and node.domain in ("", "ai.onnx") for node in graph.node):
        return False
    nodes: list[onnx.NodeProto] = []
    changed = False
    for node in graph.node:
        builder = Builder(model, node)
        results = _rule(node)(node, builder) if node.op_type in _RULES else None
        if results is None:
            nodes.append(node)
            continue
        changed = True
        for old, new in zip([name for name in node.output if name], results, strict=True):
            builder.nodes.append(helper.make_node("Identity", [new], [old], name=f"{node.name}_as_{old}"))
        nodes.extend(builder.nodes)
        graph.initializer.extend(builder.initializers)
    if changed:
        del graph.node[:]
        graph.node.extend(nodes)
    return changed


def attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """An attribute's value; text as str."""
    for found in node.attribute:
        if found.name == name:
            value = helper.get_attribute_value(found)
            return value.decode() if isinstance(value, bytes) else value
    return default


def operand(node: onnx.NodeProto, index: int) -> str:
    """An input's name, empty when it is left out."""
    return node.input[index] if index < len(node.input) else ""


def _rule(node: onnx.NodeProto) -> Rule:
    module, function = _RULES[node.op_type].split(":")
    return getattr(importlib.import_module(f"eyas.frontends.{module}"), function)
