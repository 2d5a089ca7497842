"""ONNX operators without a lowering, written as operators that have one.

A rule is a function of a node and a `Builder`; it returns the names of the new results, or None when the node is not of
the form that it knows. Where sizes are known, index tables and weights are constants made here; where they are open,
rules compute them in the graph (`sizes.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.file import OnnxModel, is_large
from eyas.frontends.onnx.prepare import describe_node
from eyas.frontends.onnx.subgraphs import all_graphs, all_nodes, subgraphs
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret

Rule = Callable[[onnx.NodeProto, "Builder"], "Sequence[str] | None"]

# Operator -> module and function of its rule.
_RULES = {
    "Adagrad": "rewrite.training:adagrad",
    "Adam": "rewrite.training:adam",
    "AffineGrid": "rewrite.sample:affine_grid",
    "ArgMax": "rewrite.rare:last_index",
    "ArgMin": "rewrite.rare:last_index",
    "AveragePool": "rewrite.window:average_pool",
    "BitCast": "types:bit_cast",
    "Cast": "rewrite.signs:cast",
    "Celu": "rewrite.half:in_f32",
    "CenterCropPad": "rewrite.shape:center_crop_pad",
    "Col2Im": "rewrite.shape:col2im",
    "Compress": "rewrite.select:compress",
    "Concat": "rewrite.index:join_nothing",
    "ConvInteger": "rewrite.integer:conv_integer",
    "ConvTranspose": "rewrite.window:conv_transpose",
    "CumProd": "rewrite.shape:cum_prod",
    "DFT": "rewrite.signal:dft",
    "STFT": "rewrite.signal:stft",
    "DeformConv": "rewrite.sample:deform_conv",
    "DequantizeLinear": "rewrite.quantize:dequantize_linear",
    "DepthToSpace": "rewrite.shape:depth_to_space",
    "Det": "rewrite.shape:det",
    "Bernoulli": "rewrite.random:bernoulli",
    "Dropout": "rewrite.random:dropout",
    "Elu": "rewrite.half:in_f32",
    "Equal": "rewrite.rare:equal_to_itself",
    "Einsum": "rewrite.index:einsum",
    "Expand": "rewrite.shape:expand",
    "Gather": "rewrite.index:gather_nothing",
    "GRU": "rewrite.recurrent:recurrent",
    "GlobalAveragePool": "rewrite.half:in_f32",
    "GridSample": "rewrite.sample:grid_sample",
    "InstanceNormalization": "rewrite.normalize:instance_normalization",
    "LRN": "rewrite.normalize:local_response",
    "LSTM": "rewrite.recurrent:recurrent",
    "LayerNormalization": "rewrite.normalize:layer_norm_of_doubles",
    "Loop": "rewrite.loop:loop",
    "LpNormalization": "rewrite.normalize:lp_normalization",
    "LpPool": "rewrite.window:lp_pool",
    "MatMul": "rewrite.product:mat_mul",
    "MatMulInteger": "rewrite.integer:mat_mul_integer",
    "MaxPool": "rewrite.window:max_pool",
    "Max": "rewrite.rare:extreme",
    "MaxUnpool": "rewrite.shape:max_unpool",
    "Min": "rewrite.rare:extreme",
    "Mish": "rewrite.half:in_f32",
    "Momentum": "rewrite.training:momentum",
    "NonMaxSuppression": "rewrite.detect:non_max_suppression",
    "Multinomial": "rewrite.random:multinomial",
    "Neg": "rewrite.rare:negative_integer",
    "Pad": "rewrite.index:pad",
    "Pow": "rewrite.rare:integer_power",
    "QLinearConv": "rewrite.integer:q_linear_conv",
    "QLinearMatMul": "rewrite.integer:q_linear_mat_mul",
    "QuantizeLinear": "rewrite.quantize:quantize_linear",
    "Range": "rewrite.half:in_f32",
    "RNN": "rewrite.recurrent:recurrent",
    "RandomNormal": "rewrite.random:random_normal",
    "RandomNormalLike": "rewrite.random:random_normal",
    "RandomUniform": "rewrite.random:random_uniform",
    "RandomUniformLike": "rewrite.random:random_uniform",
    "RMSNormalization": "rewrite.normalize:layer_norm_of_doubles",
    "ReduceL2": "rewrite.reduce:norm_of_one",
    "ReduceLogSum": "rewrite.reduce:norm_of_one",
    "ReduceLogSumExp": "rewrite.reduce:log_sum_exp",
    "ReduceMean": "rewrite.reduce:mean",
    "ReduceProd": "rewrite.reduce:product",
    "Resize": "rewrite.signal:resize",
    "RoiAlign": "rewrite.detect:roi_align",
    "Scan": "rewrite.scan:scan",
    "Selu": "rewrite.half:in_f32",
    "ScatterElements": "rewrite.index:scatter_elements",
    "Sign": "rewrite.rare:sign",
    "Slice": "rewrite.index:slice_backwards",
    "Softsign": "rewrite.rare:softsign",
    "Softplus": "rewrite.half:in_f32",
    "Softmax": "rewrite.normalize:softmax",
    "SpaceToDepth": "rewrite.shape:space_to_depth",
    "SwiGLU": "rewrite.index:swiglu",
    "TensorScatter": "rewrite.shape:tensor_scatter",
    "TfIdfVectorizer": "rewrite.ngrams:tf_idf",
    "TopK": "rewrite.select:top_k",
    "Unique": "rewrite.select:unique",
    "Upsample": "rewrite.signal:resize",
    "Where": "rewrite.rare:where",
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
        self.opsets = [*model.proto.opset_import]
        if all(opset.domain != "eyas" for opset in self.opsets):
            self.opsets.append(helper.make_opsetid("eyas", 1))
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

    def dtype_of(self, name: str) -> np.dtype:
        """The same for NumPy. What has no type that can be inferred cannot be rewritten."""
        if not self.type_of(name):
            raise UnsupportedOpError(
                f"node '{self.prefix}' is not supported: the type of its operand '{name}' is not known"
            )
        return helper.tensor_dtype_to_np_dtype(self.type_of(name))

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

    def array_of(self, name: str) -> np.ndarray | None:
        """The value of a constant of any size, or None: what a rule computes with at compile time."""
        tensor = self._tensors.get(name)
        return None if tensor is None else self.read(tensor)

    def read(self, tensor: onnx.TensorProto) -> np.ndarray:
        """The numbers of a tensor of the model, wherever its bytes are."""
        return self._model.reader(tensor)()

    def weight(self, shape: Sequence[int], data_type: int, read: Callable[[], np.ndarray]) -> str:
        """A constant whose values are made when they are needed."""
        name = f"{self.prefix}_weight_{len(self.initializers)}"
        self.initializers.append(onnx.TensorProto(name=name, dims=shape, data_type=data_type))
        if is_large(self.initializers[-1]):
            self._model.readers[name] = read
        else:
            self.initializers[-1].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(read()), name))
        return name

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

    def size(self, value: str, axis: int) -> int | str:
        """The size of a dimension; where it is open, a vector of one element that has it when the model runs."""
        dims = self.dims_of(value)
        known = None if dims is None else dims[axis]
        if known is not None:
            return known
        return self.add("Gather", self.add("Shape", value), self.constant([axis], np.int64), axis=0)

    def name_of(self, value: str, axis: int) -> int | str | None:
        """The size of a dimension as types have it: a number, a name, or None."""
        type_ = self.value_type(value)
        if type_ is None or not type_.tensor_type.HasField("shape"):
            return None
        dim = type_.tensor_type.shape.dim[axis]
        return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None

    def find_dim(self, name: str, among: Sequence[str]) -> tuple[str, int] | None:
        """Where a dimension with a name can be read: a value of these, or an input of the model, and the axis."""
        for value in [*among, *(one.name for one in self._model.proto.graph.input)]:
            for axis in range(self.rank_of(value) or 0):
                if self.name_of(value, axis) == name:
                    return value, axis
        return None

    def is_size(self, name: str) -> bool:
        """Whether the elements of a value follow from sizes of the model's inputs."""
        value = interpret(self._model).values.get(name)
        return value is not None and value.elements is not None

    def have_same_shape(self, *names: str) -> bool:
        """Whether values have the same sizes by all that is known of the model: a part of it, such as the body of a
        loop, does not tell which sizes outside meet in one."""
        values = interpret(self._model).values
        shapes = [values[name].shape if name in values else None for name in names]
        return None not in shapes and len(set(shapes)) == 1

    def facts_of(self, proto: onnx.ModelProto) -> Facts:
        """What is known of the values of a part of the model that is a model of its own."""
        return interpret(replace(self._model, proto=proto))

    def times(self, size: int | str, factor: int) -> int | str:
        """A size, which may be open, times a number."""
        return size * factor if isinstance(size, int) else self.add("Mul", size, self.constant([factor], np.int64))

    def vector(self, sizes: Sequence[int | str]) -> str:
        """A vector of sizes, some of which may be open."""
        if all(isinstance(size, int) for size in sizes):
            return self.constant(list(sizes), np.int64)
        parts = [size if isinstance(size, str) else self.constant([size], np.int64) for size in sizes]
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=0)

    def reshape(self, value: str, shape: Sequence[int | str]) -> str:
        return self.add("Reshape", value, self.vector(shape) if shape else self.constant([], np.int64))

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
            helper.make_opsetid(domain, 1)
            for domain in {node.domain for node in all_nodes(graph)} - known - {"", "ai.onnx"}
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
    return getattr(importlib.import_module(f"eyas.frontends.onnx.{module}"), function)
