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
from eyas.frontends.onnx.rewrite.sizes import computed
from eyas.frontends.onnx.rewrite.steps import (
    FOR_EVER,
    MOST_STEPS,
    Types,
    bound_of,
    can_count,
    counting_prefix,
    given_count,
    without_rows,
)
from eyas.frontends.onnx.subgraphs import FINAL_LOOP, all_graphs, own_results
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.values import Value
from eyas.frontends.onnx.types import DOMAIN

_LAST = np.iinfo(np.int64).max
_BOOL, _INT64 = onnx.TensorProto.BOOL, onnx.TensorProto.INT64


def loop(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Any `Loop` whose carried values keep their shapes; what grows has had room made for it (`grown.py`)."""
    body: onnx.GraphProto = attribute(node, "body", None)
    if body.name == FINAL_LOOP:
        return None
    carried = list(node.input[2:])
    types = _settled_types(node, body, b)
    trip = _scalar(operand(node, 0), b) if operand(node, 0) else b.constant(_LAST, np.int64)
    steps, is_full = given_count(node, MOST_STEPS, b), _always_full(node, body, b)
    if steps == FOR_EVER and len(body.output) > 1 + len(carried):
        steps = None
        trip, is_full = _steps_of(node, body, types, b)
    results = _run(node, body, types, (trip, steps), b)
    kept = results[1 : 1 + len(carried)]
    for name in results[1 + len(carried) :]:
        count = b.reshape(results[0], [1])
        zero = b.constant([0], np.int64)
        kept.append(name if is_full else b.add("Slice", name, zero, count, zero))
    return [value for name, value in zip(node.output, kept, strict=False) if name]


def _steps_of(node: onnx.NodeProto, body: onnx.GraphProto, types: Types, b: Builder) -> tuple[str, bool]:
    """A bound for the steps of a loop that is given none, and whether it is their number."""
    bound = bound_of(node, body, types, b)
    if bound is not None:
        return bound, False
    if not can_count(body, b):
        what = f"it has scan outputs but no trip count up to {MOST_STEPS} that bounds their size, and it cannot be run"
        raise _unsupported(
            node, b, f"{what} once to count: its steps draw random numbers, or leave its condition as it is"
        )
    counted, counting = without_rows(node, body, b)
    types = {**types, **{f"{counting_prefix(b)}_{name}": type_ for name, type_ in types.items()}}
    for value, entered in zip(counting.output[1:], counting.input[2:], strict=True):
        types[value.name] = types[entered.name]
    return _run(counted, counting, types, (b.constant(_LAST, np.int64), FOR_EVER), b)[0], True


def _run(
    node: onnx.NodeProto, body: onnx.GraphProto, types: Types, trip: tuple[str, int | None], b: Builder
) -> list[str]:
    """The loop in its final form: the number of steps that it took, what it carries, and its rows. `trip` is its count,
    and what is known of that."""
    carried = list(node.input[2:])
    begin = _scalar(operand(node, 1), b) if operand(node, 1) else b.constant(True)
    begin = b.add("And", begin, b.add("Less", b.constant(0, np.int64), trip[0]))
    buffers = [_rows_for(node, body, types[value.name], trip, b) for value in body.output[1 + len(carried) :]]
    states = [b.constant(0, np.int64), *carried, *buffers]
    inner = _Body(body, len(carried), types, b)
    inner.carry(b, trip[0], [type_ for name in buffers if (type_ := b.value_type(name)) is not None])
    results = b.add_many("Loop", len(states), b.constant(_LAST, np.int64), begin, *states, body=inner.graph(states, b))
    for name, type_ in zip(results, inner.state_types, strict=True):
        b.declare_type(name, type_)
    return results


class _Body:
    """The new body: (counter, carried values, rows so far) to (whether to go on, the same after one step)."""

    def __init__(self, old: onnx.GraphProto, carried: int, types: Types, b: Builder):
        self.old, self.carried, self.types = old, carried, types
        self.prefix = f"{b.prefix}_step_{len(b.nodes)}"
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
    for name in node.input[2:]:
        type_ = b.value_type(name)
        kind = "" if type_ is None else type_.WhichOneof("value") or ""
        if kind and kind != "tensor_type":
            what = kind.removesuffix("_type")
            raise _unsupported(node, b, f"it carries '{name}', a {what}; only tensors are supported")
        if type_ is None or not type_.tensor_type.HasField("shape"):
            raise _unsupported(node, b, f"the type or rank of what it carries, '{name}', is not known")
        b.declare_type(name, _with_names(type_, name))
    given = _given(node, b)
    types = infer_body(body, [None, None, *given], b)
    for value, before, name in zip(body.output[1:], given, node.input[2:], strict=False):
        after = types[value.name]
        if _dims(after) != _dims(before) and b.have_same_shape(name, value.name):
            after.CopyFrom(before)
        if _dims(after) != _dims(before) or None in (_dims(before) or []):
            change = f"changes its shape from {_show(before)} to {_show(after)} and not so that its room is known"
            may = "what is carried may grow by the same size in each step, of which there are so many as a trip count"
            rest = "or a comparison in the condition allows; otherwise carry a tensor of the final size and a position"
            raise _unsupported(node, b, f"'{value.name}', which it carries, {change}: {may} {rest}")
    return types


def _given(node: onnx.NodeProto, b: Builder) -> list[onnx.TypeProto]:
    return [type_ for name in node.input[2:] if (type_ := b.value_type(name)) is not None]


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
    model = _as_model(body, inputs, b)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    types = {value.name: value.type for value in [*inferred.value_info, *inferred.input, *inferred.output]}
    if any(_is_vague(types[value.name]) for value in body.output):
        known = b.facts_of(model).values
        for value in body.output:
            _complete(types[value.name].tensor_type, known.get(value.name))
    for value in body.output:
        _believe(types[value.name].tensor_type, value.type.tensor_type)
    return types


def _as_model(body: onnx.GraphProto, inputs: Sequence[onnx.TypeProto | None], b: Builder) -> onnx.ModelProto:
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
    return helper.make_model(graph, opset_imports=b.opsets)


def _is_vague(type_: onnx.TypeProto) -> bool:
    return any(not dim.HasField("dim_value") for dim in type_.tensor_type.shape.dim)


def _complete(inferred: onnx.TypeProto.Tensor, known: Value | None) -> None:
    """Sizes through arithmetic that onnx does not do: what a concatenation adds and a slice takes away."""
    if known is None or known.shape is None or len(known.shape) != len(inferred.shape.dim):
        return
    for dim, size in zip(inferred.shape.dim, known.shape, strict=True):
        if isinstance(size, int):
            dim.dim_value = size
        elif not dim.HasField("dim_value"):
            # An expression is a name too: what has the same is as long.
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


def _rows_for(
    node: onnx.NodeProto, body: onnx.GraphProto, row: onnx.TypeProto, trip: tuple[str, int | None], b: Builder
) -> str:
    shape, names = _row_sizes(node, body, row, b), _dims(row) or []
    dtype = helper.tensor_dtype_to_np_dtype(row.tensor_type.elem_type)
    zero = onnx.numpy_helper.from_array(np.zeros(1, dtype))
    steps = trip[1]
    if steps is None:
        count = b.add("Max", b.reshape(trip[0], [1]), b.constant([0], np.int64))
        name = b.add("ConstantOfShape", b.vector([count, *shape]), value=zero)
        b.declare_type(name, helper.make_tensor_type_proto(row.tensor_type.elem_type, [None, *names]))
        return name
    name = b.add("ConstantOfShape", b.vector([steps, *shape]), value=zero)
    b.declare_type(name, helper.make_tensor_type_proto(row.tensor_type.elem_type, [steps, *names]))
    return name


def _row_sizes(node: onnx.NodeProto, body: onnx.GraphProto, row: onnx.TypeProto, b: Builder) -> list[int | str]:
    """The sizes of a row; one that is open must follow from sizes that are there before the loop."""
    if not row.tensor_type.HasField("shape"):
        raise _unsupported(node, b, "the rank of a scan output is not known")
    sizes: list[int | str] = []
    for size in _dims(row) or []:
        before = _size_before(node, body, size, b) if isinstance(size, str) else size
        if before is None:
            what = f"a scan output has rows of {_show(row)}; their sizes must be known before the loop"
            raise _unsupported(node, b, what)
        sizes.append(before)
    return sizes


def _size_before(node: onnx.NodeProto, body: onnx.GraphProto, name: str, b: Builder) -> int | str | None:
    """A size that a value of the body has by name, computed before the loop."""
    place = b.find_dim(name, node.input[2:])
    if place is not None:
        return b.size(*place)
    entered = {value.name: outer for value, outer in zip(body.input[2:], node.input[2:], strict=True)}
    outside = dict.fromkeys(_captured(body))
    entered.update((name, name) for name in outside)
    numbers = {f"number of {name}": name for name in outside}
    facts = b.facts_of(_as_model(body, [None, None, *_given(node, b)], b))

    def read(dim: str) -> int | str | None:
        source, axis = facts.places.get(dim, ("", 0))
        if source in entered:
            return b.size(entered[source], axis)
        if dim in numbers:
            return b.reshape(b.cast(numbers[dim], _INT64), [1])
        if dim in facts.stands_for:
            # What a step computes of numbers that are there before the loop is the same in each of them.
            size = ex.with_numbers_as_sizes(facts.stands_for[dim], lambda value: f"number of {value}")
            return None if size is None else computed(size, read, b)
        found = b.find_dim(dim, node.input[2:])
        return None if found is None else b.size(*found)

    shapes = [value.shape for value in facts.values.values() if value.shape is not None]
    expression = next((size for shape in shapes for size in shape if str(size) == name), None)
    return None if expression is None else computed(expression, read, b)


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
