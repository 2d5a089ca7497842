"""Builds an ONNX graph for operators of another framework: values know their types, constants are NumPy arrays.

An operator whose inputs are all small constants is computed here, so that sizes that a graph computes are numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from eyas.errors import FrontendError
from eyas.frontends.onnx.file import OnnxModel, is_large
from eyas.frontends.tensorflow.sizes import Dim, entries_after

OPSET = 21
"""The ONNX opset that graphs are written in."""

_IR_VERSION = 10
_LARGEST_FOLDED = 1 << 16  # elements
_LARGEST_COMPARED = 4096  # bytes: small constants that are equal are one


@dataclass(frozen=True)
class Value:
    """A tensor that is computed when the model runs; a dimension without a number has a name or None."""

    name: str
    dtype: np.dtype
    dims: tuple[Dim, ...]

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def is_static(self) -> bool:
        return all(isinstance(dim, int) for dim in self.dims)

    @property
    def type(self) -> onnx.TypeProto:
        return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(self.dtype), self.dims)


@dataclass(frozen=True)
class Complex:
    """A tensor of complex numbers: ONNX has next to no operators for them, so its parts are tensors."""

    real: Any
    imaginary: Any

    @property
    def dims(self) -> tuple[Dim, ...]:
        return dims_of(self.real)

    @property
    def ndim(self) -> int:
        return len(self.dims)


Tensor = Value | np.ndarray
"""What operators take and give: a value of the graph, or an array that is known."""


def dims_of(tensor: Tensor | Complex) -> tuple[Dim, ...]:
    """The dimensions, of a known array too."""
    return tuple(map(int, tensor.shape)) if isinstance(tensor, (np.ndarray, np.generic)) else tensor.dims


@dataclass
class _Scope:
    """The nodes of one graph and the transposes among them, by result: what was transposed, and how."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    transposed: dict[str, tuple[Value, tuple[int, ...]]] = field(default_factory=dict)


@dataclass
class Attempt:
    """Nodes that may be thrown away again."""

    _scope: _Scope
    kept: bool = False

    @property
    def nodes(self) -> int:
        return len(self._scope.nodes)

    def keep(self) -> None:
        self.kept = True


class Graph:
    """An ONNX graph that grows node by node. Names are unique in it and in its subgraphs."""

    def __init__(self, description: str):
        self.description = description
        self.where = ""  # the operator that is being translated, for names and messages
        self._scopes = [_Scope()]
        self._count = 0
        self._initializers: dict[Any, tuple[np.ndarray, str]] = {}
        self._proto = onnx.GraphProto(name="main")
        self._readers: dict[str, Any] = {}
        self._taken: set[str] = set()
        self._entries: dict[str, list[Dim]] = {}  # of vectors of sizes, what is known of each entry

    # Values.

    def input(self, name: str, dtype: Any, dims: Sequence[Dim]) -> Value:
        """An argument of the model."""
        value = Value(self._unique(name), np.dtype(dtype), tuple(dims))
        self._proto.input.append(helper.make_value_info(value.name, value.type))
        return value

    def name_of(self, tensor: Tensor | None) -> str:
        """The name by which nodes take a tensor; empty for an operand that is left out."""
        if tensor is None:
            return ""
        if isinstance(tensor, Value):
            return tensor.name
        small = tensor.nbytes <= _LARGEST_COMPARED
        key = (tensor.dtype.str, tensor.shape, tensor.tobytes()) if small else id(tensor)
        if key not in self._initializers:
            name = self._unique(f"{self.where or 'constant'}/weight")
            self._add_initializer(name, tensor)
            self._initializers[key] = (tensor, name)  # held, so that no other array gets its id
        return self._initializers[key][1]

    def _add_initializer(self, name: str, array: np.ndarray) -> None:
        data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = TensorProto(name=name, dims=array.shape, data_type=data_type)
        if is_large(tensor):
            self._readers[name] = lambda: array
            self._proto.initializer.append(tensor)
        else:
            self._proto.initializer.append(_proto_of(array, name))

    def _unique(self, name: str) -> str:
        found = name
        while not found or found in self._taken:
            self._count += 1
            found = f"{name}_{self._count}"
        self._taken.add(found)
        return found

    # Nodes.

    def add(self, op: str, *inputs: Tensor | None, **attributes: Any) -> Any:
        """The one result of an operator: an array when all that it takes is known and small."""
        return self.add_many(op, 1, *inputs, **attributes)[0]

    def add_many(self, op: str, count: int, *inputs: Tensor | None, **attributes: Any) -> list[Any]:
        """The results of an operator."""
        attributes = {name: value for name, value in attributes.items() if value is not None}
        inputs = tuple(np.asarray(one) if isinstance(one, np.generic) else one for one in inputs)  # NumPy's arithmetic
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        known = [one for one in inputs if isinstance(one, np.ndarray)]
        if len(known) == sum(one is not None for one in inputs) and sum(one.size for one in known) <= _LARGEST_FOLDED:
            folded = self._fold(op, count, inputs, attributes)
            if folded is not None:
                return folded
        if op == "Slice" and all(isinstance(one, np.ndarray) for one in inputs[1:]):
            if inputs[0] is not None and 0 in dims_of(inputs[0]):
                return [_slice_nothing(*inputs)]
        names = [self._unique(f"{self.where}/{op}" if self.where else op) for _ in range(count)]
        node = helper.make_node(op, [self.name_of(one) for one in inputs], names, name=names[0], **attributes)
        self._scopes[-1].nodes.append(node)
        results = self._results(node, inputs)
        if (held := entries_after(op, inputs, attributes, self._entries)) is not None:
            self._entries[names[0]] = held
        return results

    def _results(self, node: onnx.NodeProto, inputs: Sequence[Tensor | None]) -> list[Value]:
        types, data = {}, {}
        for one in inputs:
            if isinstance(one, Value):
                types[one.name] = one.type
            elif one is not None:
                name = self.name_of(one)
                types[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
                if one.size <= _LARGEST_FOLDED:
                    data[name] = _proto_of(one, name)
        schema = onnx.defs.get_schema(node.op_type, OPSET, "")
        try:
            found = onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION
            )
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError) as error:
            raise FrontendError(
                f"{self.description}: {self.where or node.op_type} is not valid: {str(error).splitlines()[0]}"
            ) from None
        return [_value(name, found[name]) for name in node.output]

    def _fold(self, op: str, count: int, inputs: Sequence[Tensor | None], attributes: Any) -> list[np.ndarray] | None:
        names = [f"in{index}" if one is not None else "" for index, one in enumerate(inputs)]
        node = helper.make_node(op, names, [f"out{index}" for index in range(count)], **attributes)
        given = {name: np.asarray(one) for name, one in zip(names, inputs, strict=True) if name}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                results = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, given)
            except Exception:
                return None  # what the reference cannot do is for the compiler to do
        return [np.asarray(one) for one in results]

    @contextmanager
    def subgraph(self) -> Iterator[onnx.GraphProto]:
        """Nodes that are added inside go to the graph that this gives; its inputs and outputs are the caller's."""
        self._scopes.append(_Scope())
        proto = onnx.GraphProto(name=self._unique(f"{self.where}/body"))
        try:
            yield proto
        finally:
            proto.node.extend(self._scopes.pop().nodes)

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """Nodes that are added inside stay only if `keep` was called."""
        attempt = Attempt(scope := _Scope())
        self._scopes.append(scope)
        try:
            yield attempt
        finally:
            self._scopes.pop()
            if attempt.kept:
                self._scopes[-1].nodes.extend(scope.nodes)
                self._scopes[-1].transposed.update(scope.transposed)

    def fresh(self, name: str, dtype: Any, dims: Sequence[Dim]) -> Value:
        """A value that the caller will define: an input of a subgraph, a result of a node with subgraphs."""
        return Value(self._unique(name), np.dtype(dtype), tuple(dims))

    def add_node(self, node: onnx.NodeProto) -> None:
        """Adds a node whose results the caller knows."""
        self._scopes[-1].nodes.append(node)

    # Moves.

    def transpose(self, tensor: Any, order: Sequence[int]) -> Any:
        """A transpose; two that follow each other are one, or none."""
        order = tuple(int(axis) for axis in order)
        if isinstance(tensor, np.ndarray):
            return np.ascontiguousarray(tensor.transpose(order))
        for scope in self._scopes:
            if tensor.name in scope.transposed:
                source, first = scope.transposed[tensor.name]
                return self.transpose(source, [first[axis] for axis in order])
        if order == tuple(range(len(order))):
            return tensor
        result = self.add("Transpose", tensor, perm=order)
        self._scopes[-1].transposed[result.name] = (tensor, order)
        return result

    def reshape(self, tensor: Tensor, shape: Sequence[int] | Tensor) -> Any:
        """A reshape to numbers, of which one may be -1, or to a tensor of them."""
        if isinstance(shape, Value) and (sizes := self._sizes_of(shape, dims_of(tensor))) is not None:
            return self.add("Reshape", tensor, np.array(sizes, np.int64))
        if not isinstance(shape, Value):
            sizes = [int(size) for size in np.asarray(shape).reshape(-1)]
            if isinstance(tensor, np.ndarray):
                return tensor.reshape(sizes)
            if tuple(sizes) == tensor.dims:
                return tensor
            return self.add("Reshape", tensor, np.array(sizes, np.int64), allowzero=int(0 in sizes) or None)
        result = self.add("Reshape", tensor, self.cast(shape, np.int64), allowzero=1)
        entries = self._entries.get(shape.name)
        if entries is None:
            return result
        dims = tuple(None if isinstance(one, int) and one < 0 else one for one in entries)
        return Value(result.name, result.dtype, dims)

    def _sizes_of(self, shape: Value, dims: Sequence[Dim]) -> list[int] | None:
        """The numbers to reshape to: an open size is 0 where it stays at its place, and one may be the rest, -1."""
        sizes = []
        for axis, entry in enumerate(self._entries.get(shape.name, [None, None])):
            stays = axis < len(dims) and entry is not None and entry == dims[axis]
            sizes.append(entry if isinstance(entry, int) else 0 if stays else -1)
        return sizes if sizes.count(-1) <= 1 and 0 not in self._entries.get(shape.name, []) else None

    def cast(self, tensor: Tensor, dtype: Any) -> Any:
        dtype = np.dtype(dtype)
        if isinstance(tensor, np.ndarray):
            return tensor.astype(dtype)
        if tensor.dtype == dtype:
            return tensor
        return self.add("Cast", tensor, to=helper.np_dtype_to_tensor_dtype(dtype))

    def shape_of(self, tensor: Tensor) -> Any:
        """The sizes, INT64: numbers where all are known."""
        if isinstance(tensor, np.ndarray):
            return np.array(tensor.shape, np.int64)
        if tensor.is_static:
            return np.array(tensor.dims, np.int64)
        return self.add("Shape", tensor)

    def entries(self, vector: Tensor) -> list[Dim]:
        """What is known of a vector of sizes."""
        if isinstance(vector, np.ndarray):
            return [int(number) for number in vector.reshape(-1)]
        return self._entries.get(vector.name, [None] * self.size(vector, 0))

    def size(self, tensor: Tensor, axis: int) -> int:
        """A size that must be a number."""
        dim = dims_of(tensor)[axis]
        if not isinstance(dim, int):
            raise FrontendError(
                f"{self.description}: {self.where} needs to know dimension {axis} of its input, which is open; fix the"
                " sizes of the model's inputs with example inputs or dynamic_shapes"
            )
        return dim

    # The whole.

    def model(self, results: Sequence[tuple[str, Tensor]]) -> OnnxModel:
        """The finished model, with results by name."""
        for name, tensor in results:
            wanted = self._unique(name)
            self._scopes[0].nodes.append(helper.make_node("Identity", [self.name_of(tensor)], [wanted], name=wanted))
            dims = dims_of(tensor)
            type_ = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(tensor.dtype), dims)
            self._proto.output.append(helper.make_value_info(wanted, type_))
        self._proto.node.extend(self._scopes[0].nodes)
        proto = onnx.ModelProto(ir_version=_IR_VERSION, opset_import=[helper.make_opsetid("", OPSET)])
        proto.graph.CopyFrom(self._proto)
        return OnnxModel(proto, self.description, readers=self._readers)


def _slice_nothing(x: Any, starts: Any, ends: Any, axes: Any, steps: Any = None) -> np.ndarray:
    """A part of a tensor without elements has none; onnx's inference aborts the process on some."""
    steps = np.ones_like(starts) if steps is None else steps
    index = [slice(None)] * len(dims_of(x))
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        backwards = step < 0 and end <= np.iinfo(np.int64).min
        index[int(axis)] = slice(int(start), None if backwards else int(end), int(step))
    sizes = [dim if isinstance(dim, int) else 0 for dim in dims_of(x)]
    return np.broadcast_to(np.zeros((), x.dtype), sizes)[tuple(index)].copy()


def _proto_of(array: np.ndarray, name: str) -> TensorProto:
    # NumPy makes a vector of a scalar that it is asked to make contiguous.
    return numpy_helper.from_array(np.ascontiguousarray(array) if array.ndim else array, name)


def _value(name: str, type_: onnx.TypeProto) -> Value:
    tensor = type_.tensor_type
    if not tensor.HasField("shape"):
        raise FrontendError(f"'{name}' has a rank that is only known when the model runs, which is not supported")
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim)
    return Value(name, np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)), dims)
