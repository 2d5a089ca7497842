"""Writes what the interpreter found into a graph: types, and one node for all of a shape that is left to compute.

`EyasSizes` computes integers from dimensions of its operands; its attribute `program` has an expression for each
element (`convert-sizes` lowers it). What computed them before is dropped, floats included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.subgraphs import all_graphs, import_domains, replace_nodes, subgraphs
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret
from eyas.frontends.onnx.symbolic.values import Value, kind_of

_LAST = np.iinfo(np.int64).max
# Longer expressions are not names that anyone would read.
_LONGEST_NAME = 120


def is_open(model: OnnxModel) -> bool:
    """Whether sizes, ranks or types of the graph are unknown, of its inputs or of what onnx infers."""
    constants = {tensor.name for tensor in model.proto.graph.initializer}
    if any(value.name not in constants and not _is_static(value.type) for value in model.proto.graph.input):
        return True
    for graph in all_graphs(model.proto.graph):
        typed = {value.name: value.type for value in [*graph.value_info, *graph.output, *graph.input]}
        for node in graph.node:
            for name in filter(None, node.output):
                type_ = typed.get(name)
                if type_ is None or not _is_static(type_):
                    return True
    return False


def _is_static(type_: onnx.TypeProto) -> bool:
    tensor = type_.tensor_type
    if type_.WhichOneof("value") != "tensor_type":
        return True
    return bool(tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim))


def write_types(model: OnnxModel) -> None:
    """Gives each value the type and shape that were found; a size that is an expression is named by its text."""
    facts = interpret(model)
    main = {value.name: value for value in model.proto.graph.input}
    for graph in all_graphs(model.proto.graph):
        typed = {value.name: value for value in [*graph.value_info, *graph.output]}
        for name in [name for node in graph.node for name in node.output if name]:
            value = facts.values.get(name)
            if value is None or not value.data_type or value.shape is None or name in main:
                continue
            if name not in typed:
                graph.value_info.add(name=name)
                typed[name] = graph.value_info[-1]
            type_ = typed[name].type
            if type_.WhichOneof("value") not in (None, "tensor_type"):
                continue
            dims = [
                size if isinstance(size, int) else _name(size, f"{name}_dim{at}") for at, size in enumerate(value.shape)
            ]
            type_.CopyFrom(helper.make_tensor_type_proto(type_.tensor_type.elem_type or value.data_type, dims))


def _name(size: ex.Poly, otherwise: str) -> str:
    return str(size) if len(str(size)) <= _LONGEST_NAME else otherwise


def compute_sizes(model: OnnxModel) -> OnnxModel:
    """The model with numbers in the place of what computes shapes where possible, `EyasSizes` elsewhere, and without
    unused nodes."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    model = replace(model, proto=proto)
    facts = interpret(model)
    graph = model.proto.graph
    seen = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    _Graph(model, facts, seen).rewrite(graph, [value.name for value in graph.output])
    import_domains(model, ["eyas"])
    return model


class _Graph:
    """One graph that is rewritten; `outside` are the names that it can see beside its own."""

    def __init__(self, model: OnnxModel, facts: Facts, outside: set[str]):
        self.model, self.facts, self.outside = model, facts, outside
        self.made = 0

    def rewrite(self, graph: onnx.GraphProto, results: Sequence[str]) -> None:
        self.infos = graph.value_info
        self.typed = {value.name for value in [*graph.value_info, *graph.output]}
        self.order = {name: index for index, node in enumerate(graph.node) for name in node.output}
        self.producers = {name: node for node in graph.node for name in node.output}
        self.wanted: dict[str, Value] = {}
        live: set[str] = set()
        self.need(results, live)
        kept: list[onnx.NodeProto] = []
        for node in reversed(graph.node):
            outputs = [name for name in node.output if name]
            if outputs and not live.intersection(outputs):
                for name in outputs:
                    if name in self.wanted:
                        made = self.computed(name, self.wanted[name])
                        kept.extend(reversed(made))
                        self.need(made[0].input, live)
                continue
            before = self.plain(node)
            kept.append(node)
            kept.extend(reversed(before))
            for one in [node, *before]:
                self.need(one.input, live)
                for inner in subgraphs(one):
                    self.need(_captured(inner), live)
        for node in kept:
            for inner in subgraphs(node):
                visible = self.outside | set(self.order) | {value.name for value in inner.input}
                _Graph(self.model, self.facts, visible).rewrite(inner, [value.name for value in inner.output])
        replace_nodes(graph, reversed(kept))

    def need(self, names: Iterable[str], live: set[str]) -> None:
        for name in names:
            if name in live or name in self.wanted or name not in self.order:
                continue
            if self.can_compute(name, self.order[name]) and len(self.producers[name].output) == 1:
                self.wanted[name] = self.facts.values[name]
            else:
                live.add(name)

    def computed(self, name: str, value: Value) -> list[onnx.NodeProto]:
        """The nodes that compute a value of integers, or of truths, which are integers that are not zero."""
        if kind_of(value.data_type) == "i64":
            return [self.sizes(name, value)]
        assert value.elements is not None
        numbers = np.empty(value.elements.shape, object)
        for at, truth in np.ndenumerate(value.elements):
            numbers[at] = ex.select(truth, 1, 0, "i64")
        if name not in self.typed:
            self.infos.append(helper.make_tensor_value_info(name, value.data_type, value.elements.shape))
        counted = self.sizes(f"{name}_number", Value(TensorProto.INT64, value.shape, numbers))
        return [
            counted,
            helper.make_node("Cast", [counted.output[0]], [name], name=f"{name}_truth", to=TensorProto.BOOL),
        ]

    def can_compute(self, name: str, position: int) -> bool:
        """Whether a value consists of integers or truths that follow from dimensions that can be read at a place."""
        value = self.facts.values.get(name)
        if value is None or value.elements is None or kind_of(value.data_type) not in ("i64", "bool"):
            return False
        return self.can_read(value.elements.reshape(-1), position)

    def can_read(self, elements: Iterable[Any], position: int) -> bool:
        for dim in {name for element in elements for name in ex.dims_in(element)}:
            source = self.facts.places.get(dim, ("", 0))[0]
            if source not in self.outside and self.order.get(source, position) >= position:
                return False
        return True

    def sizes(self, name: str, value: Value) -> onnx.NodeProto:
        """The node that computes a value."""
        assert value.elements is not None and value.shape is not None
        sources: list[str] = []

        def place(dim: str) -> list[Any]:
            source, axis = self.facts.places[dim]
            if source not in sources:
                sources.append(source)
            return ["dim", "i64", sources.index(source), axis]

        if name not in self.typed:
            self.infos.append(helper.make_tensor_value_info(name, value.data_type, value.elements.shape))
        program = [ex.as_program(element, place) for element in value.elements.reshape(-1)]
        return helper.make_node(
            "EyasSizes", sources, [name], name=f"{name}_sizes", domain="eyas", program=json.dumps(program)
        )

    def plain(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Writes operands of a node that will stay in the form that says most: numbers, if there is any way."""
        if node.domain not in ("", "ai.onnx"):
            return []
        rule = {"Reshape": self.reshape, "Expand": self.expand, "Slice": self.slice, "Squeeze": self.squeeze}
        return rule[node.op_type](node) if node.op_type in rule else []

    def shape(self, name: str) -> tuple[ex.Integer, ...] | None:
        value = self.facts.values.get(name)
        return None if value is None else value.shape

    def elements(self, node: onnx.NodeProto, index: int) -> list[Any] | None:
        value = self.facts.values.get(node.input[index]) if index < len(node.input) else None
        return None if value is None or value.elements is None else list(value.elements.reshape(-1))

    def constant(self, node: onnx.NodeProto, values: Sequence[int]) -> str:
        name = f"{node.name}_operand_{self.made}"
        self.made += 1
        self.model.proto.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def reshape(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        wanted, shape, result = self.elements(node, 1), self.shape(node.input[0]), self.shape(node.output[0])
        if wanted is None or all(map(ex.is_known, wanted)) or shape is None or result is None:
            return []
        sizes: list[Any] = list(result)
        plain = [0 if at < len(shape) and size == shape[at] and size != 0 else size for at, size in enumerate(sizes)]
        unknown = [at for at, size in enumerate(plain) if not isinstance(size, int)]
        # A rest beside sizes that are copied and may be 0 is a quotient by 0.
        certain = not unknown or all(isinstance(size, int) for at, size in enumerate(sizes) if at not in unknown)
        readable = self.can_read(sizes, self.order[node.output[0]])
        if 0 not in sizes and len(unknown) <= 1 and (certain or not readable):
            node.input[1] = self.constant(node, [size if isinstance(size, int) else -1 for size in plain])
            _set_allow_zero(node, False)
            return []
        if not readable:
            return []
        name = f"{node.name}_shape"
        elements = np.empty(len(sizes), object)
        elements[:] = sizes
        node.input[1] = name
        _set_allow_zero(node, True)
        return [self.sizes(name, Value(TensorProto.INT64, (len(sizes),), elements))]

    def expand(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        wanted, shape = self.elements(node, 1), self.shape(node.input[0])
        if wanted is None or all(map(ex.is_known, wanted)) or shape is None:
            return []
        padded = [1] * (len(wanted) - len(shape)) + list(shape)
        padded = padded[len(padded) - len(wanted) :]
        plain = [1 if size == have else size for size, have in zip(wanted, padded, strict=True)]
        if all(isinstance(size, int) for size in plain):
            node.input[1] = self.constant(node, plain)
        return []

    def slice(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        shape, starts, ends = self.shape(node.input[0]), self.elements(node, 1), self.elements(node, 2)
        if shape is None or starts is None or ends is None or all(map(ex.is_known, ends)):
            return []
        axes = self.elements(node, 3) if len(node.input) > 3 and node.input[3] else list(range(len(ends)))
        if axes is None or not all(map(ex.is_known, axes)):
            return []
        plain = [_LAST if end == shape[axis] else end for end, axis in zip(ends, axes, strict=True)]
        if all(isinstance(end, int) for end in plain):
            node.input[2] = self.constant(node, plain)
        return []

    def squeeze(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Names the axes of a Squeeze that has none, and checks that what is open is not 1."""
        shape = self.shape(node.input[0])
        given = [list(attribute.ints) for attribute in node.attribute if attribute.name == "axes"]
        if shape is not None and (given or (len(node.input) > 1 and node.input[1])):
            axes = given[0] if given else self.elements(node, 1)
            return self.squeeze_open(node, shape, axes) if axes is not None else []
        if shape is None:
            return []
        opset = next((o.version for o in self.model.proto.opset_import if o.domain in ("", "ai.onnx")), 0)
        axes = [at for at, size in enumerate(shape) if isinstance(size, int) and size == 1]
        unknown = [size for size in shape if not isinstance(size, int)]
        if opset < 13:
            node.attribute.append(helper.make_attribute("axes", axes))
        else:
            node.input[:] = [node.input[0], self.constant(node, axes)]
        others = ex.product(ex.sub(size, 1) for size in unknown)
        if not unknown or not self.can_read([others], self.order[node.output[0]]):
            return []
        check = f"the model squeezes all dimensions of 1 of '{node.input[0]}'; it was compiled for {_show(shape)},"
        advice = "compile with that size fixed (--input, dynamic_shapes= or an example) to have it dropped"
        return self.check(node, others, f"{check} where only those written as 1 are; {advice}")

    def squeeze_open(
        self, node: onnx.NodeProto, shape: Sequence[ex.Integer], axes: Sequence[Any]
    ) -> list[onnx.NodeProto]:
        """Takes the first element of dimensions whose size is open, after a check that it is the only one."""
        if not all(isinstance(axis, int) for axis in axes):
            return []
        unknown = [axis % len(shape) for axis in axes if not isinstance(shape[axis], int)]
        sizes = [shape[axis] for axis in unknown]
        if not unknown or not self.can_read(sizes, self.order[node.output[0]]):
            return []
        is_one: Any = True
        for size in sizes:
            is_one = ex.connect("and", is_one, ex.compare("eq", size, 1))
        what = (
            f"'{node.input[0]}' is {_show(shape)}, of which the model squeezes dimensions that are not 1 in this call"
        )
        checks = self.check(node, ex.select(is_one, 1, 0, "i64"), what)
        data, name = node.input[0], f"{node.name}_first"
        value = self.facts.values[data]
        cut = [1 if at in unknown else self.dim_name(data, at, size) for at, size in enumerate(shape)]
        self.infos.append(helper.make_tensor_value_info(name, value.data_type, cut))
        ends = [self.constant(node, [number] * len(unknown)) for number in (0, 1)]
        node.input[0] = name
        return [*checks, helper.make_node("Slice", [data, *ends, self.constant(node, unknown)], [name], name=name)]

    def dim_name(self, name: str, at: int, size: ex.Integer) -> int | str:
        return size if isinstance(size, int) else _name(size, f"{name}_dim{at}")

    def check(self, node: onnx.NodeProto, value: ex.Scalar, message: str) -> list[onnx.NodeProto]:
        """Nodes that fail the call where a value is zero."""
        element = np.empty((), object)
        element[()] = value
        name = f"{node.name}_checked"
        self.infos.append(helper.make_tensor_value_info(f"{name}_zero", TensorProto.BOOL, []))
        zero = f"{name}_0"
        self.model.proto.graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), zero))
        return [
            self.sizes(name, Value(TensorProto.INT64, (), element)),
            helper.make_node("Equal", [name, zero], [f"{name}_zero"], name=f"{name}_zero"),
            helper.make_node(
                "EyasCheck", [f"{name}_zero"], [], name=f"{name}_check", domain="eyas", wanted=0, message=message
            ),
        ]


def _set_allow_zero(node: onnx.NodeProto, allowed: bool) -> None:
    """Whether 0 in the shape of a Reshape is a size, or stands for the operand's."""
    for index in reversed(range(len(node.attribute))):
        if node.attribute[index].name == "allowzero":
            del node.attribute[index]
    if allowed:
        node.attribute.append(helper.make_attribute("allowzero", 1))


def _show(shape: Sequence[ex.Integer]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _captured(graph: onnx.GraphProto) -> set[str]:
    graphs = list(all_graphs(graph))
    names = {name for each in graphs for node in each.node for name in node.input}
    return names | {value.name for each in graphs for value in each.output}
