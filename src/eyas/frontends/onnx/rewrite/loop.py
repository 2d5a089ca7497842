"""Rules for `Loop` and long `Scan`s: a loop while a condition holds, whose state is all that it needs.

The importer knows no scan outputs. So each becomes a tensor of as many rows as there can be steps, in which every step
writes its row, and the count of steps becomes a value that the loop carries. The loop in its final form is recognised
by the name of its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.subgraphs import FINAL_LOOP, all_graphs, own_results
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.values import Value
from eyas.frontends.onnx.types import DOMAIN

_LAST = np.iinfo(np.int64).max
# Rows that are reserved for a scan output: beyond this a trip count is not a bound but "for ever".
_MOST_ROWS = 1 << 24
_BOOL, _INT64 = onnx.TensorProto.BOOL, onnx.TensorProto.INT64


def loop(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Any `Loop` whose carried values keep their shapes."""
    body: onnx.GraphProto = attribute(node, "body", None)
    if body.name == FINAL_LOOP:
        return None
    carried = list(node.input[2:])
    types = _settled_types(node, body, b)
    rows = [types[value.name] for value in body.output[1 + len(carried) :]]
    trip = _scalar(operand(node, 0), b) if operand(node, 0) else b.constant(_LAST, np.int64)
    begin = _scalar(operand(node, 1), b) if operand(node, 1) else b.constant(True)
    begin = b.add("And", begin, b.add("Less", b.constant(0, np.int64), trip))
    buffers = [_rows_for(node, row, trip, b) for row in rows]
    states = [b.constant(0, np.int64), *carried, *buffers]
    inner = _Body(body, len(carried), types, b)
    inner.carry(b, trip, [type_ for name in buffers if (type_ := b.value_type(name)) is not None])
    results = b.add_many("Loop", len(states), b.constant(_LAST, np.int64), begin, *states, body=inner.graph(states, b))
    for name, type_ in zip(results, inner.state_types, strict=True):
        b.declare_type(name, type_)
    kept = results[1 : 1 + len(carried)]
    for name in results[1 + len(carried) :]:
        count = b.reshape(results[0], [1])
        zero = b.constant([0], np.int64)
        kept.append(name if _always_full(node, body, b) else b.add("Slice", name, zero, count, zero))
    return [value for name, value in zip(node.output, kept, strict=False) if name]


class _Body:
    """The new body: (counter, carried values, rows so far) to (whether to go on, the same after one step)."""

    def __init__(self, old: onnx.GraphProto, carried: int, types: dict[str, onnx.TypeProto], b: Builder):
        self.old, self.carried, self.types = old, carried, types
        self.prefix = f"{b.prefix}_step"
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.state_types: list[onnx.TypeProto] = []

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self.prefix}_{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def alias(self, name: str, value: str) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"{self.prefix}_{name}"))

    def carry(self, b: Builder, trip: str, buffers: Sequence[onnx.TypeProto]) -> None:
        counter, values = f"{self.prefix}_counter", list(self.old.output)
        self.alias(self.old.input[0].name, counter)
        # Inside a loop its condition holds.
        self.alias(self.old.input[1].name, b.constant(True))
        self.nodes.extend(self.old.node)
        following = self.add("Add", counter, b.constant(1, np.int64))
        goes_on = values[0].name
        if _dims(self.types[goes_on]) != []:
            goes_on = self.add("Reshape", goes_on, b.constant([], np.int64))
        goes_on = self.add("And", goes_on, self.add("Less", following, trip))
        self.inputs = [counter, *(value.name for value in self.old.input[2:])]
        self.outputs = [goes_on, following]
        self.outputs += [self.add("Identity", value.name) for value in values[1 : 1 + self.carried]]
        scalar = helper.make_tensor_type_proto(_INT64, [])
        self.state_types = [scalar, *(self.types[value.name] for value in self.old.input[2:]), *buffers]
        for value in values[1 + self.carried :]:
            row = self._as_row(value.name, b)
            rows = f"{self.prefix}_rows_{value.name}"
            self.inputs.append(rows)
            self.outputs.append(self.add("EyasSetrow", rows, counter, row, domain=DOMAIN))

    def _as_row(self, value: str, b: Builder) -> str:
        shape = _static(self.types[value])
        if shape is not None:
            return self.add("Reshape", value, b.constant([1, *shape], np.int64))
        if b.opset < 13:
            return self.add("Unsqueeze", value, axes=[0])
        return self.add("Unsqueeze", value, b.constant([0], np.int64))

    def graph(self, states: Sequence[str], b: Builder) -> onnx.GraphProto:
        first = [helper.make_tensor_value_info(f"{self.prefix}_unused", _INT64, [])]
        first.append(helper.make_tensor_value_info(f"{self.prefix}_holds", _BOOL, []))
        inputs = [helper.make_value_info(n, t) for n, t in zip(self.inputs, self.state_types, strict=True)]
        outputs = [helper.make_tensor_value_info(self.outputs[0], _BOOL, [])]
        outputs += [helper.make_value_info(n, t) for n, t in zip(self.outputs[1:], self.state_types, strict=True)]
        kept = [
            helper.make_value_info(name, self.types[name]) for name in own_results(self.nodes) if name in self.types
        ]
        return helper.make_graph(self.nodes, FINAL_LOOP, [*first, *inputs], outputs, value_info=kept)


def _settled_types(node: onnx.NodeProto, body: onnx.GraphProto, b: Builder) -> dict[str, onnx.TypeProto]:
    """Types of all values of the body, given those that enter the loop; what is carried must keep its shape."""
    given: list[onnx.TypeProto] = []
    for name in node.input[2:]:
        type_ = b.value_type(name)
        kind = "" if type_ is None else type_.WhichOneof("value") or ""
        if kind and kind != "tensor_type":
            what = kind.removesuffix("_type")
            raise _unsupported(node, b, f"it carries '{name}', a {what}; only tensors are supported")
        if type_ is None or not type_.tensor_type.HasField("shape"):
            raise _unsupported(node, b, f"the type or rank of what it carries, '{name}', is not known")
        given.append(_with_names(type_, name))
        b.declare_type(name, given[-1])
    types = infer_body(body, [None, None, *given], b)
    for value, before in zip(body.output[1:], given, strict=False):
        after = types[value.name]
        if _dims(after) != _dims(before) or None in (_dims(before) or []):
            change = f"from {_show(before)} to {_show(after)}"
            raise _unsupported(node, b, f"'{value.name}', which it carries, changes its shape {change}")
    return types


def _with_names(type_: onnx.TypeProto, name: str) -> onnx.TypeProto:
    """Sizes that nobody named get a name, by which the body's results can be seen to have the same."""
    named = onnx.TypeProto()
    named.CopyFrom(type_)
    for at, dim in enumerate(named.tensor_type.shape.dim):
        if not dim.HasField("dim_value") and not dim.dim_param:
            dim.dim_param = f"{name}_dim{at}"
    return named


def infer_body(body: onnx.GraphProto, inputs: Sequence[onnx.TypeProto | None], b: Builder) -> dict[str, onnx.TypeProto]:
    """The types of a body's values when its inputs have the given ones; None stands for what the body declares."""
    graph = onnx.GraphProto()
    graph.CopyFrom(body)
    for value, type_ in zip(graph.input, inputs, strict=True):
        if type_ is not None:
            value.type.CopyFrom(type_)
    for value in graph.output:
        if value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.ClearField("shape")
    for name in _captured(body):
        tensor = b.tensor_of(name)
        if tensor is not None:
            graph.initializer.add().CopyFrom(tensor)
        elif (type_ := b.value_type(name)) is not None:
            graph.input.append(helper.make_value_info(name, type_))
    model = helper.make_model(graph, opset_imports=b.opsets)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    types = {value.name: value.type for value in [*inferred.value_info, *inferred.input, *inferred.output]}
    if any(_is_vague(types[value.name]) for value in body.output):
        known = b.known_of(model)
        for value in body.output:
            _complete(types[value.name].tensor_type, known.get(value.name))
    for value in body.output:
        _believe(types[value.name].tensor_type, value.type.tensor_type)
    return types


def _is_vague(type_: onnx.TypeProto) -> bool:
    return any(not dim.HasField("dim_value") for dim in type_.tensor_type.shape.dim)


def _complete(inferred: onnx.TypeProto.Tensor, known: Value | None) -> None:
    """Sizes through arithmetic that onnx does not do: what a concatenation adds and a slice takes away."""
    if known is None or known.shape is None or len(known.shape) != len(inferred.shape.dim):
        return
    for dim, size in zip(inferred.shape.dim, known.shape, strict=True):
        if isinstance(size, int):
            dim.dim_value = size
        elif not dim.HasField("dim_value") and ex.is_dimension(size):
            dim.dim_param = str(size)


def _believe(inferred: onnx.TypeProto.Tensor, declared: onnx.TypeProto.Tensor) -> None:
    """What inference cannot know, such as the length of a slice from `i` to `i + 1`, is as the model says."""
    if not declared.HasField("shape") or not inferred.HasField("shape"):
        if declared.HasField("shape"):
            inferred.shape.CopyFrom(declared.shape)
        return
    for dim, said in zip(inferred.shape.dim, declared.shape.dim, strict=False):
        if not dim.HasField("dim_value") and said.HasField("dim_value"):
            dim.CopyFrom(said)


def _scalar(name: str, b: Builder) -> str:
    return name if b.rank_of(name) == 0 else b.reshape(name, [])


def _captured(body: onnx.GraphProto) -> list[str]:
    """Names of values from outside that a body uses, each once."""
    graphs = list(all_graphs(body))
    made = {value.name for graph in graphs for value in [*graph.input, *graph.initializer]}
    made |= {name for graph in graphs for node in graph.node for name in node.output}
    used = [name for graph in graphs for node in graph.node for name in node.input]
    used += [value.name for graph in graphs for value in graph.output]
    return [name for name in dict.fromkeys(used) if name and name not in made]


def _rows_for(node: onnx.NodeProto, row: onnx.TypeProto, trip: str, b: Builder) -> str:
    shape, names = _row_sizes(node, row, b), _dims(row) or []
    dtype = helper.tensor_dtype_to_np_dtype(row.tensor_type.elem_type)
    zero = onnx.numpy_helper.from_array(np.zeros(1, dtype))
    known = b.value_of(operand(node, 0)) if operand(node, 0) else np.array(_LAST)
    if known is None:
        count = b.add("Max", b.reshape(trip, [1]), b.constant([0], np.int64))
        name = b.add("ConstantOfShape", b.vector([count, *shape]), value=zero)
        b.declare_type(name, helper.make_tensor_type_proto(row.tensor_type.elem_type, [None, *names]))
        return name
    steps = max(int(known.reshape(())), 0)
    if steps > _MOST_ROWS:
        raise _unsupported(node, b, f"it has scan outputs but no trip count up to {_MOST_ROWS} that bounds their size")
    name = b.add("ConstantOfShape", b.vector([steps, *shape]), value=zero)
    b.declare_type(name, helper.make_tensor_type_proto(row.tensor_type.elem_type, [steps, *names]))
    return name


def _row_sizes(node: onnx.NodeProto, row: onnx.TypeProto, b: Builder) -> list[int | str]:
    """The sizes of a row; one that is open must be that of something that is there before the loop."""
    sizes: list[int | str] = []
    for size in _dims(row) or []:
        place = b.find_dim(size, node.input[2:]) if isinstance(size, str) else None
        if isinstance(size, int):
            sizes.append(size)
        elif place is not None:
            sizes.append(b.size(*place))
        else:
            what = f"a scan output has rows of {_show(row)}; their sizes must be known before the loop"
            raise _unsupported(node, b, what)
    if not row.tensor_type.HasField("shape"):
        raise _unsupported(node, b, "the rank of a scan output is not known")
    return sizes


def _always_full(node: onnx.NodeProto, body: onnx.GraphProto, b: Builder) -> bool:
    """Whether the loop takes as many steps as its trip count says."""
    first = b.value_of(operand(node, 1)) if operand(node, 1) else np.array(True)
    if first is None or not first.all():
        return False
    makers = {name: inner for inner in body.node for name in inner.output}
    condition = body.output[0].name
    while condition in makers and makers[condition].op_type == "Identity":
        condition = makers[condition].input[0]
    value = b.value_of(condition)
    return condition == body.input[1].name or (value is not None and bool(value.all()))


def _dims(type_: onnx.TypeProto) -> list[int | str | None] | None:
    if not type_.tensor_type.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in type_.tensor_type.shape.dim]


def _static(type_: onnx.TypeProto) -> list[int] | None:
    dims = _dims(type_)
    return None if dims is None or not all(isinstance(dim, int) for dim in dims) else [int(dim or 0) for dim in dims]


def _show(type_: onnx.TypeProto) -> str:
    dims = _dims(type_)
    return "unknown rank" if dims is None else "[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]"


def _unsupported(node: onnx.NodeProto, b: Builder, why: str) -> UnsupportedOpError:
    return UnsupportedOpError(f"{b.describe(node)} is not supported: {why}")
