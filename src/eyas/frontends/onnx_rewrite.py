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
from eyas.frontends.onnx_prepare import describe_node
from eyas.frontends.onnx_subgraphs import all_graphs, all_nodes, subgraphs

Rule = Callable[[onnx.NodeProto, "Builder"], "Sequence[str] | None"]

# Operator -> module and function of its rule.
_RULES = {
    "Adagrad": "onnx_rewrite_training:adagrad",
    "Adam": "onnx_rewrite_training:adam",
    "Abs": "onnx_rewrite_rare:abs_of_bytes",
    "AffineGrid": "onnx_rewrite_sample:affine_grid",
    "AveragePool": "onnx_rewrite_half:in_f32",
    "BitCast": "onnx_types:bit_cast",
    "Cast": "onnx_rewrite_rare:cast_to_i16",
    "Celu": "onnx_rewrite_half:in_f32",
    "Col2Im": "onnx_rewrite_shape:col2im",
    "Compress": "onnx_rewrite_select:compress",
    "ConvInteger": "onnx_rewrite_integer:conv_integer",
    "ConvTranspose": "onnx_rewrite_window:conv_transpose",
    "CumProd": "onnx_rewrite_shape:cum_prod",
    "DFT": "onnx_rewrite_signal:dft",
    "STFT": "onnx_rewrite_signal:stft",
    "DeformConv": "onnx_rewrite_sample:deform_conv",
    "DequantizeLinear": "onnx_rewrite_quantize:dequantize_linear",
    "Det": "onnx_rewrite_shape:det",
    "Div": "onnx_rewrite_rare:divide_bytes",
    "Dropout": "onnx_rewrite_select:dropout",
    "Elu": "onnx_rewrite_half:in_f32",
    "Equal": "onnx_rewrite_rare:equal_to_itself",
    "Einsum": "onnx_rewrite_index:einsum",
    "Gather": "onnx_rewrite_index:gather_nothing",
    "GRU": "onnx_rewrite_recurrent:recurrent",
    "GlobalAveragePool": "onnx_rewrite_half:in_f32",
    "GridSample": "onnx_rewrite_sample:grid_sample",
    "LSTM": "onnx_rewrite_recurrent:recurrent",
    "LayerNormalization": "onnx_rewrite_normalize:layer_norm_of_doubles",
    "Loop": "onnx_rewrite_loop:loop",
    "LpNormalization": "onnx_rewrite_normalize:lp_normalization",
    "LpPool": "onnx_rewrite_window:lp_pool",
    "MatMul": "onnx_rewrite_shape:mat_mul",
    "MatMulInteger": "onnx_rewrite_integer:mat_mul_integer",
    "MaxPool": "onnx_rewrite_window:max_pool",
    "Max": "onnx_rewrite_rare:extreme",
    "MaxUnpool": "onnx_rewrite_shape:max_unpool",
    "Min": "onnx_rewrite_rare:extreme",
    "Mish": "onnx_rewrite_half:in_f32",
    "Momentum": "onnx_rewrite_training:momentum",
    "NonMaxSuppression": "onnx_rewrite_detect:non_max_suppression",
    "Mod": "onnx_rewrite_rare:divide_bytes",
    "Neg": "onnx_rewrite_rare:negative_integer",
    "Pad": "onnx_rewrite_index:pad_wrapped",
    "QLinearConv": "onnx_rewrite_integer:q_linear_conv",
    "QLinearMatMul": "onnx_rewrite_integer:q_linear_mat_mul",
    "QuantizeLinear": "onnx_rewrite_quantize:quantize_linear",
    "Range": "onnx_rewrite_half:in_f32",
    "RNN": "onnx_rewrite_recurrent:recurrent",
    "RMSNormalization": "onnx_rewrite_normalize:layer_norm_of_doubles",
    "ReduceL2": "onnx_rewrite_reduce:norm_of_one",
    "ReduceLogSum": "onnx_rewrite_reduce:norm_of_one",
    "ReduceLogSumExp": "onnx_rewrite_reduce:log_sum_exp",
    "ReduceMean": "onnx_rewrite_half:in_f32",
    "ReduceProd": "onnx_rewrite_reduce:product",
    "Resize": "onnx_rewrite_signal:resize",
    "RoiAlign": "onnx_rewrite_detect:roi_align",
    "Scan": "onnx_rewrite_scan:scan",
    "Selu": "onnx_rewrite_half:in_f32",
    "ScatterElements": "onnx_rewrite_index:scatter_elements",
    "Sign": "onnx_rewrite_rare:sign",
    "Slice": "onnx_rewrite_index:slice_backwards",
    "Softplus": "onnx_rewrite_half:in_f32",
    "Softmax": "onnx_rewrite_normalize:softmax",
    "SpaceToDepth": "onnx_rewrite_shape:space_to_depth",
    "SwiGLU": "onnx_rewrite_index:swiglu",
    "TensorScatter": "onnx_rewrite_shape:tensor_scatter",
    "TfIdfVectorizer": "onnx_rewrite_ngrams:tf_idf",
    "TopK": "onnx_rewrite_rare:largest_bytes",
    "Unique": "onnx_rewrite_select:unique",
    "Upsample": "onnx_rewrite_signal:resize",
    "Where": "onnx_rewrite_rare:where_same",
}


class Tables:
    """What is known of all values of a model; names are unique across its subgraphs."""

    def __init__(self, model: OnnxModel):
        graphs = list(all_graphs(model.proto.graph))
        self.values = {v.name: v for graph in graphs for v in [*graph.value_info, *graph.input, *graph.output]}
        self.tensors = {tensor.name: tensor for graph in graphs for tensor in graph.initializer}


class Builder:
    """Makes nodes and constants for one rewritten node, and knows types, static shapes and values."""

    def __init__(self, model: OnnxModel, node: onnx.NodeProto, tables: Tables | None = None):
        tables = tables or Tables(model)
        self.prefix = node.name
        self._model = model
        self.opset = next((o.version for o in model.proto.opset_import if o.domain in ("", "ai.onnx")), 0)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.declared: list[onnx.ValueInfoProto] = []
        self._values, self._tensors = tables.values, tables.tensors
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

    def rank_of(self, name: str) -> int | None:
        """The number of dimensions of a value of the graph, or None."""
        if name in self._tensors:
            return len(self._tensors[name].dims)
        if name not in self._values or not self._values[name].type.tensor_type.HasField("shape"):
            return None
        return len(self._values[name].type.tensor_type.shape.dim)

    def value_type(self, name: str) -> onnx.TypeProto | None:
        """The type of a value, or of a result that was declared, as far as it is known."""
        if name in self._tensors:
            return helper.make_tensor_type_proto(self._tensors[name].data_type, self._tensors[name].dims)
        for made in self.initializers:
            if made.name == name:
                return helper.make_tensor_type_proto(made.data_type, made.dims)
        found = next((value for value in self.declared if value.name == name), None) or self._values.get(name)
        return None if found is None else found.type

    def dims_of(self, name: str) -> list[int | None] | None:
        """The sizes of a value, None for those that are not known."""
        type_ = self.value_type(name)
        if type_ is None or not type_.tensor_type.HasField("shape"):
            return None
        return [dim.dim_value if dim.HasField("dim_value") else None for dim in type_.tensor_type.shape.dim]

    def tensor_of(self, name: str) -> onnx.TensorProto | None:
        """The proto of a small constant, or None."""
        tensor = self._tensors.get(name)
        return None if tensor is None or is_large(tensor) else tensor

    def describe(self, node: onnx.NodeProto) -> str:
        return describe_node(node, self._model)

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

    def add_many(self, op: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node with several results; returns their names."""
        name = f"{self.prefix}_{op.lower()}_{len(self.nodes)}"
        names = [f"{name}_{index}" for index in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=name, **attributes))
        return names

    def declare(self, name: str, like: str, data_type: int) -> None:
        """Gives a result its type where inference cannot: the shape of `like`, a value of the graph."""
        if like in self._tensors:
            type_ = helper.make_tensor_type_proto(data_type, self._tensors[like].dims)
        else:
            type_ = onnx.TypeProto()
            type_.CopyFrom(self._values[like].type)
            type_.tensor_type.elem_type = data_type
        self.declared.append(helper.make_value_info(name, type_))

    def declare_type(self, name: str, type_: onnx.TypeProto) -> None:
        """Gives a result a type that inference would not find."""
        self.declared.append(helper.make_value_info(name, type_))

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
    if not any(_has_rule(node) for node in all_nodes(model.proto.graph)):
        return False
    return replace_nodes(model, lambda node, b: _rule(node)(node, b) if _has_rule(node) else None)


def replace_nodes(model: OnnxModel, rule: Rule) -> bool:
    """Replaces each node for which `rule` gives results by what it built; says whether there were any."""
    return _replace_nodes(model, model.proto.graph, rule, Tables(model))


def _replace_nodes(model: OnnxModel, graph: onnx.GraphProto, rule: Rule, tables: Tables) -> bool:
    nodes: list[onnx.NodeProto] = []
    changed = False
    for node in graph.node:
        builder = Builder(model, node, tables)
        results = rule(node, builder)
        if results is None:
            for inner in subgraphs(node):
                changed |= _replace_nodes(model, inner, rule, tables)
            nodes.append(node)
            continue
        changed = True
        for old, new in zip([name for name in node.output if name], results, strict=True):
            builder.nodes.append(helper.make_node("Identity", [new], [old], name=f"{node.name}_as_{old}"))
        nodes.extend(builder.nodes)
        # Constants of subgraphs are the main graph's, where everyone looks for them.
        model.proto.graph.initializer.extend(builder.initializers)
        graph.value_info.extend(builder.declared)
    if changed:
        nodes = [copy_node(node) for node in nodes]
        del graph.node[:]
        graph.node.extend(nodes)
        known = {opset.domain for opset in model.proto.opset_import}
        model.proto.opset_import.extend(
            helper.make_opsetid(domain, 1) for domain in {node.domain for node in nodes} - known - {"", "ai.onnx"}
        )
    return changed


def copy_node(node: onnx.NodeProto) -> onnx.NodeProto:
    """Nodes of a list that will be emptied must not live in it."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


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


def _has_rule(node: onnx.NodeProto) -> bool:
    return node.op_type in _RULES and node.domain in ("", "ai.onnx", "ai.onnx.preview.training")


def _rule(node: onnx.NodeProto) -> Rule:
    module, function = _RULES[node.op_type].split(":")
    return getattr(importlib.import_module(f"eyas.frontends.{module}"), function)
