"""Open sizes that meet in a broadcasting operator under different names: either may be 1 when the model runs.

The lowering takes two open sizes to be equal, which they mostly are, and `check-shapes` refuses a call where they are
not. ONNX broadcasts what is 1. So an operand with such a dimension goes through a branch of the host that repeats it
when a call needs that, and hands it on without a copy when not:

    y = Add(a, b)                      # a: [n, k], b: [m, k]
  becomes
    a2 = n == 1 and m != 1 ? Expand(a[:1], [m, 1]) : a
    b2 = m == 1 and n != 1 ? Expand(b[:1], [n, 1]) : b
    y = Add(a2, b2)

A branch ends a fusion. Operands that products or convolutions lead to have none therefore, and must agree: a mask is
repeated for the scores that it is added to, the scores are not for the mask. Sizes that are computed (a convolution's)
are taken to agree as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.subgraphs import REPEATED, replace_nodes, subgraphs
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret

_ELEMENTWISE = frozenset(
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min"
    " Mod Mul Or Pow Sub Sum Where Xor".split()
)
_HEAVY = frozenset("Attention Conv ConvTranspose Einsum GRU Gemm LSTM MatMul RNN".split())
_SIZED_BY_DATA = frozenset("Compress If Loop NonMaxSuppression NonZero Range Unique".split())
_READ_SIZES = frozenset(("Shape", "Size"))


def align_broadcasts(model: OnnxModel) -> None:
    """Adds branches for the operands of the main graph that may have to be repeated."""
    graph = model.proto.graph
    if not _has_open_sizes(graph):
        return
    facts = interpret(model)
    heavy: set[str] = set()
    made = _Made(graph)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.domain in ("", "ai.onnx"):
            nodes.extend(_align(node, facts, heavy, made))
        nodes.append(node)
        if node.op_type in _HEAVY or any(subgraphs(node)) or _follows(node, heavy):
            heavy.update(node.output)
    if made.count:
        replace_nodes(graph, nodes)


def _has_open_sizes(graph: onnx.GraphProto) -> bool:
    constants = {tensor.name for tensor in graph.initializer}
    dims = [dim for value in graph.input if value.name not in constants for dim in value.type.tensor_type.shape.dim]
    return any(not dim.HasField("dim_value") for dim in dims) or any(
        node.op_type in _SIZED_BY_DATA for node in graph.node
    )


def _follows(node: onnx.NodeProto, heavy: set[str]) -> bool:
    return node.op_type not in _READ_SIZES and not heavy.isdisjoint(node.input)


@dataclass
class _Made:
    """The constants and branches that were added; an operand that meets the same sizes again has its branch."""

    graph: onnx.GraphProto
    known: dict[tuple, str] = field(default_factory=dict)
    constants: dict[tuple, str] = field(default_factory=dict)
    count: int = 0

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}_repeated_{self.count}"

    def constant(self, value: int | Sequence[int]) -> str:
        key = (value,) if isinstance(value, int) else ("vector", *value)
        if key not in self.constants:
            self.constants[key] = f"eyas_broadcast_{len(self.constants)}"
            tensor = numpy_helper.from_array(np.array(value, np.int64), self.constants[key])
            self.graph.initializer.append(tensor)
        return self.constants[key]


def _align(node: onnx.NodeProto, facts: Facts, heavy: set[str], made: _Made) -> list[onnx.NodeProto]:
    """The nodes to put before one; its operands are renamed."""
    behind = {"MatMul": 2}.get(node.op_type, 0)
    if node.op_type not in _ELEMENTWISE and not behind:
        return []
    values = [facts.values.get(name) for name in node.input]
    shapes = [value.shape for value in values if value is not None and value.shape is not None]
    if len(shapes) != len(values):
        return []
    rank = max(len(shape) for shape in shapes)
    before: list[onnx.NodeProto] = []
    given = list(node.input)
    for back in range(behind + 1, rank + 1):
        sizes = [shape[-back] if back <= len(shape) else 1 for shape in shapes]
        distinct = list(dict.fromkeys(size for size in sizes if not _is_one(size)))
        if len(distinct) < 2:
            continue
        # The names before any branch: what is repeated has the size in question no more.
        others = [(name, size) for name, size in zip(given, sizes, strict=True) if not _is_one(size)]
        for at, size in enumerate(sizes):
            if ex.is_dimension(size) and given[at] not in heavy:
                met = [other for other in others if other[1] != size]
                before += _repeat(node, at, -back, (given[at], len(shapes[at])), met, facts, made)
    return before


def _is_one(size: ex.Integer) -> bool:
    return isinstance(size, int) and size == 1


def _repeat(
    node: onnx.NodeProto,
    at: int,
    axis: int,
    source: tuple[str, int],
    met: Sequence[tuple[str, ex.Integer]],
    facts: Facts,
    made: _Made,
) -> list[onnx.NodeProto]:
    """Writes an operand that has the size of those it meets along an axis (from the end) where its own is 1."""
    given, rank = source
    value = facts.values[given]
    current = node.input[at]
    key = (current, axis, *(str(size) for _, size in met))
    if key in made.known:
        node.input[at] = made.known[key]
        return []
    result = made.known[key] = made.name(current)
    nodes: list[onnx.NodeProto] = []

    def add(op_type: str, *inputs: str) -> str:
        name = f"{result}_{len(nodes)}"
        nodes.append(helper.make_node(op_type, inputs, [name], name=name))
        return name

    def size_of(name: str, known: ex.Integer) -> str:
        if isinstance(known, int):
            return made.constant(known)
        shape = facts.values[name].shape
        assert shape is not None
        return add("Gather", add("Shape", name), made.constant(len(shape) + axis))

    one, target = made.constant(1), ""
    for name, known in met:  # the first that is not 1
        size = size_of(name, known)
        target = add("Where", add("Equal", target, one), size, target) if target else size
    assert value.shape is not None
    own = size_of(given, value.shape[axis])
    needed = add("And", add("Equal", own, one), add("Not", add("Equal", target, one)))
    parts = [made.constant([1])] * rank
    parts[axis] = add("Reshape", target, made.constant([1]))
    wanted = f"{result}_shape"
    nodes.append(helper.make_node("Concat", parts, [wanted], name=wanted, axis=0))
    first, repeated, same = f"{result}_first", f"{result}_more", f"{result}_same"
    then = [
        # Its size is 1 for sure, where that of a slice is 0 if there is none.
        helper.make_node("Gather", [current, made.constant([0])], [first], name=first, axis=rank + axis),
        helper.make_node("Expand", [first, wanted], [repeated], name=repeated),
    ]
    choice = helper.make_node("If", [needed], [result], name=result)
    kept = [helper.make_node("Identity", [current], [same], name=same)]
    for which, body, name in (("then_branch", then, repeated), ("else_branch", kept, same)):
        choice.attribute.append(helper.make_attribute(which, _branch(body, name, value.data_type, rank)))
    nodes.append(choice)
    node.input[at] = result
    return nodes


def _branch(nodes: Sequence[onnx.NodeProto], result: str, data_type: int, rank: int) -> onnx.GraphProto:
    shape = [None] * rank
    return helper.make_graph(nodes, REPEATED, [], [helper.make_tensor_value_info(result, data_type, shape)])
