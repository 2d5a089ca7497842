"""Walks a graph once and says what is known of every value: type, shape, and the elements of small ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import onnx.shape_inference
from onnx import TensorProto, helper, numpy_helper

from eyas.frontends.onnx.file import OnnxModel, dtype_of, is_large
from eyas.frontends.onnx.subgraphs import REPEATED
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.meetings import Meetings, sizes_that_meet
from eyas.frontends.onnx.symbolic.memory import Found, Memory
from eyas.frontends.onnx.symbolic.sizes import Shape, result_shapes
from eyas.frontends.onnx.symbolic.values import (
    LARGEST_ELEMENTS,
    Elements,
    Value,
    array_of,
    elements_of,
    evaluate,
    fits,
    kind_of,
)

# What a loop carries is joined with what enters it until nothing changes; sizes that change are unknown at once. In the
# first rounds those that change alike share a name, which a further round may find to be wrong.
_ROUNDS = 8
_ROUNDS_TOGETHER = 4
# Longer scalars are not followed. A size that is made of another in two places is twice as long, and so on: without a
# limit deep graphs would have sizes that nobody can write down.
_LONGEST = 512
_UNKNOWN = Value(0)
# Operators whose results are as large as their operands make each other.
_BROADCASTS = frozenset(
    "Add And BitwiseAnd BitwiseOr BitwiseXor Concat Div Equal Greater GreaterOrEqual Less LessOrEqual MatMul Max Mean "
    "Min Mod Mul Or PRelu Pow Sub Sum Where Xor".split()
)
# Operators whose first operand is changed in size as others say.
_BY_OPERANDS = frozenset("Expand Pad Reshape Resize Slice Tile Upsample".split())
# Operators of ours whose result has the shape of their first operand.
_SAME_SHAPE = frozenset(
    "EyasBitcast EyasConvert EyasDecode EyasEncode EyasNarrow EyasRandom EyasSetrow EyasWiden".split()
)


@dataclass
class Facts:
    """What is known of the values of a model, by name, and where each dimension that has only a name can be read. Some
    names stand for a size that a number of a call decides."""

    values: dict[str, Value] = field(default_factory=dict)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)
    stands_for: dict[str, ex.Poly] = field(default_factory=dict)


def interpret(model: OnnxModel) -> Facts:
    """What follows from the inputs' types and the constants. Names must be unique across subgraphs."""
    walk = _Walk(model)
    walk.enter(model.proto.graph)
    walk.graph(model.proto.graph)
    return walk.facts


class _Walk:
    def __init__(self, model: OnnxModel):
        self.facts = Facts()
        self.opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.proto.opset_import}
        self.imports = list(model.proto.opset_import)
        self.names: dict[ex.Poly, str] = {}
        self.polys: dict[str, ex.Poly] = {}
        self.long: dict[ex.Poly, ex.Poly] = {}
        self.meetings = Meetings()
        self.tensors: dict[str, TensorProto] = {}
        self.free = _open_dims(model)
        if model.memory is None:
            model.memory = Memory()
        self.memory: Memory = model.memory
        self.known = self.memory.nodes.setdefault(tuple(sorted(self.opsets.items())), {})
        # Of the node that is looked at: names that dimensions got, and whether those follow from it alone.
        self.places: dict[str, tuple[str, int]] = {}
        self.is_plain = True
        self.of_sizes: set[str] = set()

    def enter(self, graph: onnx.GraphProto) -> None:
        constants = {tensor.name for tensor in graph.initializer}
        for value in graph.input:
            if value.name not in constants:
                declared = self.declared(value.name, value.type, named=True)
                self.facts.values[value.name] = self.numbered(value.name, declared)

    def graph(self, graph: onnx.GraphProto) -> None:
        for tensor in graph.initializer:
            self.facts.values[tensor.name], small = self.constant(tensor)
            if small is not None:
                self.tensors[tensor.name] = small
        told = {value.name: value.type for value in [*graph.value_info, *graph.output]}
        before = dict(self.meetings.names)
        for node in graph.node:
            for name, value in zip(node.output, self.node(node), strict=False):
                if name:
                    self.facts.values[name] = self.settled(name, value, told.get(name))
        # What got its name in here cannot be read elsewhere.
        self.meetings.names = before

    def constant(self, tensor: TensorProto) -> tuple[Value, TensorProto | None]:
        """What is known of an initializer, and itself if it is small."""
        key = tensor.SerializeToString()
        if key not in self.memory.tensors:
            small = None if is_large(tensor) or tensor.data_location == TensorProto.EXTERNAL else tensor
            # The graph may lose it, and a walk that finds it again needs it.
            kept = None if small is None else TensorProto.FromString(key)
            self.memory.tensors[key] = (_constant(tensor), kept)
        return self.memory.tensors[key]

    def numbered(self, name: str, value: Value, is_index: bool = False) -> Value:
        return self.memory.same(_numbered(name, value, is_index))

    def declared(self, name: str, type_: onnx.TypeProto, named: bool = False) -> Value:
        """A value as a type describes it. Names of dimensions hold for inputs only: others may be guesses."""
        tensor = type_.tensor_type
        if type_.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
            return Value(tensor.elem_type)
        dims: list[ex.Integer | None] = []
        for at, dim in enumerate(tensor.shape.dim):
            if dim.HasField("dim_value"):
                dims.append(dim.dim_value)
            elif named and dim.dim_param:
                self.facts.places.setdefault(dim.dim_param, (name, at))
                dims.append(ex.dim(dim.dim_param))
            else:
                dims.append(None)
        return Value(tensor.elem_type, self.filled(name, dims))

    def filled(self, name: str, dims: Sequence[ex.Integer | None]) -> tuple[ex.Integer, ...]:
        """Sizes that are not known get a name: that of the value and the dimension. So do those that are too long, or
        that a call's numbers decide; the same one gets the same name."""
        result = []
        for at, size in enumerate(dims):
            is_long = isinstance(size, ex.Poly) and (ex.weight(size) > _LONGEST or ex.has_elements(size))
            self.is_plain &= not is_long
            if is_long and size in self.long:
                result.append(self.long[size])
                continue
            if size is None or is_long:
                fresh = f"{name}_dim{at}"
                self.facts.places.setdefault(fresh, (name, at))
                self.places[fresh] = (name, at)
                named = ex.dim(fresh)
                if isinstance(size, ex.Poly):
                    self.long[size] = named
                    self.facts.stands_for[fresh] = size
                size = named
            result.append(size)
        return tuple(result)

    def settled(self, name: str, value: Value, told: onnx.TypeProto | None) -> Value:
        """What was found, completed by what the graph says: the numbers in its types, and names for the rest.

        A size that follows from open dimensions of the inputs stays: exporters write the number of their example beside
        it, which another call's size contradicts.
        """
        if told is None or told.WhichOneof("value") != "tensor_type":
            return value
        tensor = told.tensor_type
        data_type = value.data_type or tensor.elem_type
        if not tensor.HasField("shape"):
            return value if data_type == value.data_type else self.memory.same(replace(value, data_type=data_type))
        if value.shape is None:
            return self.memory.same(replace(self.declared(name, told), data_type=data_type))
        dims = list(value.shape)
        if len(dims) == len(tensor.shape.dim):
            for at, dim in enumerate(tensor.shape.dim):
                size = dims[at]
                if dim.HasField("dim_value") and not isinstance(size, int) and not ex.dims_in(size) <= self.free:
                    dims[at] = dim.dim_value
        if data_type == value.data_type and all(a is b for a, b in zip(dims, value.shape, strict=True)):
            return value
        return self.memory.same(replace(value, data_type=data_type, shape=tuple(dims)))

    def node(self, node: onnx.NodeProto) -> Sequence[Value]:
        inputs = [self.facts.values.get(name, _UNKNOWN) if name else None for name in node.input]
        if node.op_type == "If":
            return list(map(self.memory.same, self.branch(node, inputs)))
        if node.op_type == "Loop":
            return list(map(self.memory.same, self.loop(node, inputs)))
        results = self.found(node, inputs)
        if node.domain in ("", "ai.onnx"):
            self.chosen(node, inputs, results)
        return results

    def found(self, node: onnx.NodeProto, inputs: Sequence[Value | None]) -> Sequence[Value]:
        """What a node gives that is not control flow over other graphs, from the walks before where it can be."""
        # Of initializers onnx sees all elements, also those that are too many to be followed.
        key = (node.SerializeToString(), *map(id, inputs), *(name in self.tensors for name in node.input))
        found = self.known.get(key)
        if found is not None:
            for name, place in found.places.items():
                self.facts.places.setdefault(name, place)
            return found.results
        inferred = self.inferred(node)
        if any(attribute.HasField("g") for attribute in node.attribute):
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self.enter(attribute.g)
                    self.graph(attribute.g)
            return [self.memory.same(self.value(name, inferred.get(name), None, None)) for name in node.output]
        self.places, self.is_plain = {}, True
        results = list(map(self.memory.same, self.results(node, inputs, inferred)))
        if self.is_plain:
            self.known[key] = Found(results, self.places, inputs)
        return results

    def results(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None], inferred: Mapping[str, onnx.TypeProto]
    ) -> list[Value]:
        """What a node without subgraphs gives."""
        is_standard = node.domain in ("", "ai.onnx")
        shapes = result_shapes(node, inputs, self.opsets.get("", 0)) if is_standard else None
        elements = evaluate(node, inputs, self.opsets.get("", 0)) if is_standard else None
        if node.domain == "eyas" and node.op_type in _SAME_SHAPE and inputs[0] is not None:
            shapes = None if inputs[0].shape is None else [inputs[0].shape]
        if is_standard and (met := sizes_that_meet(node, inputs)):
            name = node.output[0]
            shapes = [[self.meet(name, at, sizes) if sizes else None for at, sizes in enumerate(met)]]
        results = []
        for at, name in enumerate(node.output):
            shape = shapes[at] if shapes is not None and at < len(shapes) else None
            one = elements[at] if elements is not None and at < len(elements) else None
            results.append(self.value(name, inferred.get(name), shape, one))
        return results

    def meet(self, name: str, at: int, sizes: Iterable[ex.Integer]) -> ex.Poly:
        """The name of the size that open ones make each other; it follows from what met before, not from a node."""
        self.is_plain = False
        size = self.meetings.of(sizes, f"{name}_dim{at}")
        if ex.is_dimension(size) and str(size) == f"{name}_dim{at}":
            self.facts.places.setdefault(str(size), (name, at))
        return size

    def chosen(self, node: onnx.NodeProto, inputs: Sequence[Value | None], results: Sequence[Value]) -> None:
        """Follows sizes that have a name of their own and are chosen by the caller no less: where two open ones meet
        in broadcasting, or where shapes are computed. What a file declares for them is the number of its example."""
        sources = [name for name in node.input if name]
        if node.op_type == "Constant" or (sources and all(map(self.is_of_sizes, sources))):
            self.of_sizes.update(node.output)
        elif node.op_type in ("Shape", "Size") and self.is_chosen(inputs[0]):
            self.of_sizes.update(node.output)
        by_shapes = node.op_type in _BROADCASTS and all(self.is_chosen(value) for value in inputs if value is not None)
        by_operands = node.op_type in _BY_OPERANDS and self.is_chosen(inputs[0])
        if by_shapes or (by_operands and all(map(self.is_of_sizes, sources[1:]))):
            self.choose(results)

    def choose(self, results: Sequence[Value]) -> None:
        sizes = [size for value in results for size in value.shape or () if not isinstance(size, int)]
        self.free |= {name for size in sizes for name in ex.dims_in(size)}

    def is_of_sizes(self, name: str) -> bool:
        """Whether a value is a constant or computed of sizes that the caller chooses."""
        return name in self.of_sizes or name in self.tensors

    def is_chosen(self, value: Value | None) -> bool:
        """Whether the caller chooses all sizes of a value."""
        if value is None or value.shape is None:
            return False
        return all(isinstance(size, int) or ex.dims_in(size) <= self.free for size in value.shape)

    def value(self, name: str, inferred: onnx.TypeProto | None, shape: Shape, elements: Elements | None) -> Value:
        tensor = (inferred or onnx.TypeProto()).tensor_type
        dims: Shape = None
        if tensor.HasField("shape"):
            dims = [d.dim_value if d.HasField("dim_value") else self.polys.get(d.dim_param) for d in tensor.shape.dim]
        if shape is not None and (dims is None or len(dims) == len(shape)):
            dims = [a if a is not None else b for a, b in zip(shape, dims or [None] * len(shape), strict=True)]
        elif shape is not None:
            dims = shape
        if elements is not None:
            dims = list(elements.shape)
        if elements is not None and (kind_of(tensor.elem_type) is None or not fits(elements, tensor.elem_type)):
            elements = None
        if elements is not None and max(map(ex.weight, elements.reshape(-1).tolist()), default=0) > _LONGEST:
            elements = None
        return Value(tensor.elem_type, None if dims is None else self.filled(name, dims), elements)

    def inferred(self, node: onnx.NodeProto) -> Mapping[str, onnx.TypeProto]:
        """What onnx says; sizes that are expressions go in and come back as names."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        version = self.opsets.get(domain, 0)
        if not onnx.defs.has(node.op_type, domain=domain, max_inclusive_version=version):
            return {}
        types, data = {}, {}
        for name in node.input:
            value = self.facts.values.get(name)
            if name and (value is None or not value.data_type):
                return {}
            if value is not None:
                types[name] = self.type_of(value)
                if (tensor := self.tensor(name, value)) is not None:
                    data[name] = tensor
        schema = onnx.defs.get_schema(node.op_type, version, domain)
        try:
            return onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=self.imports, ir_version=10
            )
        except Exception:
            # It may not fit together, or have no inference; who needs the type will say so.
            return {}

    def tensor(self, name: str, value: Value) -> TensorProto | None:
        if name in self.tensors:
            return self.tensors[name]
        if not value.is_constant:
            return None
        assert value.elements is not None
        return numpy_helper.from_array(array_of(value.elements, value.data_type), name)

    def type_of(self, value: Value) -> onnx.TypeProto:
        if value.shape is None:
            return helper.make_tensor_type_proto(value.data_type, None)
        return helper.make_tensor_type_proto(value.data_type, [self.named(size) for size in value.shape])

    def named(self, size: ex.Integer) -> int | str:
        if not isinstance(size, ex.Poly):
            return int(size)
        if size not in self.names:
            self.names[size] = f"size_{len(self.names)}"
            self.polys[self.names[size]] = size
        return self.names[size]

    def branch(self, node: onnx.NodeProto, inputs: Sequence[Value | None]) -> list[Value]:
        graphs = {attribute.name: attribute.g for attribute in node.attribute}
        for graph in graphs.values():
            self.graph(graph)
        condition = inputs[0].elements if inputs and inputs[0] is not None else None
        results = {
            name: [self.facts.values.get(one.name, Value(0)) for one in graph.output] for name, graph in graphs.items()
        }
        if condition is not None and condition.size == 1 and ex.is_known(condition.reshape(-1)[0]):
            return results["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        pairs = zip(node.output, results["then_branch"], results["else_branch"], strict=True)
        if graphs["then_branch"].name == REPEATED:
            joined = [self.repeated(name, then, other) for name, then, other in pairs]
        else:
            joined = [self.joined(name, then, other) for name, then, other in pairs]
        if self.is_of_sizes(node.input[0]) and all(
            self.is_chosen(value) for both in results.values() for value in both
        ):
            self.choose(joined)
        return joined

    def joined(self, name: str, a: Value, b: Value) -> Value:
        """What holds for both."""
        data_type = a.data_type or b.data_type
        if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
            return Value(data_type)
        shape = self.filled(name, [x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)])
        same = a.elements is not None and b.elements is not None and a.elements.shape == b.elements.shape
        return Value(data_type, shape, a.elements if same and (a.elements == b.elements).all() else None)

    def repeated(self, name: str, more: Value, same: Value) -> Value:
        """An operand that is repeated for those that it meets has the size that they make each other."""
        if more.shape is None or same.shape is None or len(more.shape) != len(same.shape):
            return self.joined(name, more, same)
        dims: list[ex.Integer | None] = []
        for at, (new, old) in enumerate(zip(more.shape, same.shape, strict=True)):
            sizes = {*ex.choices(new), old}
            is_open = not any(isinstance(size, int) for size in sizes)
            dims.append(new if new == old else self.meet(name, at, sizes) if is_open else None)
        return Value(same.data_type, self.filled(name, dims))

    def loop(self, node: onnx.NodeProto, inputs: Sequence[Value | None]) -> list[Value]:
        body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
        carried = [replace(value or Value(0), elements=None) for value in inputs[2:]]
        names = [value.name for value in body.input]
        outside = set(self.facts.places)
        for count in range(_ROUNDS):
            self.facts.values[names[0]] = self.numbered(names[0], Value(TensorProto.INT64, ()), is_index=True)
            self.facts.values[names[1]] = self.memory.same(Value(TensorProto.BOOL, ()))
            self.facts.values.update(
                (name, self.numbered(name, value)) for name, value in zip(names[2:], carried, strict=False)
            )
            self.graph(body)
            after = [self.facts.values.get(value.name, Value(0)) for value in body.output[1 : 1 + len(carried)]]
            joined = self.carried_on(names[2:], carried, after, together=count < _ROUNDS_TOGETHER)
            if joined == carried:
                break
            carried = joined
        results = [self.moved(name, value, outside) for name, value in zip(node.output, carried, strict=False)]
        for name, row in zip(node.output[len(carried) :], body.output[1 + len(carried) :], strict=False):
            value = self.facts.values.get(row.name, Value(0))
            results.append(self.moved(name, value, outside, rows=True))
        return results

    def carried_on(
        self, names: Sequence[str], before: Sequence[Value], after: Sequence[Value], together: bool
    ) -> list[Value]:
        """What holds in every step. Sizes that are equal before a step and after it have one name: a mask grows with
        the cache that it is for."""
        changes: dict[tuple[ex.Integer, ex.Integer], ex.Integer] = {}
        results = []
        for name, a, b in zip(names, before, after, strict=False):
            value = replace(self.joined(name, a, b), elements=None)
            if together and value.shape is not None and a.shape is not None and b.shape is not None:
                sizes = zip(value.shape, a.shape, b.shape, strict=True)
                shape = tuple(size if x == y else changes.setdefault((x, y), size) for size, x, y in sizes)
                value = replace(value, shape=shape)
            results.append(value)
        return results

    def moved(self, name: str, value: Value, outside: set[str], rows: bool = False) -> Value:
        """A value of a body as a result of its loop: sizes that only the body knows are read from the result."""
        if value.shape is None:
            return value
        dims: list[ex.Integer | None] = [None] if rows else []
        dims += [size if ex.dims_in(size) <= outside else None for size in value.shape]
        return Value(value.data_type, self.filled(name, dims))


def _open_dims(model: OnnxModel) -> set[str]:
    """The names of the dimensions that a caller chooses."""
    graph = model.proto.graph
    constants = {tensor.name for tensor in graph.initializer}
    return {
        dim.dim_param or f"{value.name}_dim{at}"
        for value in graph.input
        if value.name not in constants
        for at, dim in enumerate(value.type.tensor_type.shape.dim)
        if not dim.HasField("dim_value")
    }


def _numbered(name: str, value: Value, is_index: bool = False) -> Value:
    """A value with its element, where it is one integer that a call or a step brings."""
    if value.elements is not None or value.shape not in ((), (1,)) or kind_of(value.data_type) != "i64":
        return value
    elements = np.empty([1] * len(value.shape or ()), object)
    elements.reshape(-1)[:] = [ex.element(name, is_index)]
    return replace(value, elements=elements)


def _constant(tensor: TensorProto) -> Value:
    shape = tuple(tensor.dims)
    small = not is_large(tensor) and tensor.data_location != TensorProto.EXTERNAL
    if not small or dtype_of(tensor.data_type) is None or kind_of(tensor.data_type) is None:
        return Value(tensor.data_type, shape)
    array = numpy_helper.to_array(tensor)
    return Value(tensor.data_type, shape, elements_of(array) if array.size <= LARGEST_ELEMENTS else None)
