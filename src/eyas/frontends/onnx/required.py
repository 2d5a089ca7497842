"""What operators need of sizes that only a call knows, checked when the model runs.

Kernels stay inside of their tensors whatever a call brings, and what the lowering takes to agree `check-shapes`
compares. Operators that it writes as loops over one operand alone would answer with a guess where another one has
fewer rows, or where there are fewer elements than are asked for. ONNX refuses such calls:

    y = ScatterND (x, at, new)            # at: [k, 1], new: [m]
  becomes
    EyasCheck (k == m)
    y = ScatterND (x, at, new)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.prepare import describe_node
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.subgraphs import import_domains, replace_nodes
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret


@dataclass(frozen=True)
class _Number:
    """A size of a value or, without an axis, an element of it: what is known, how it is read, and what it is called."""

    known: ex.Integer | None
    value: str
    axis: int | None
    at: int = 0

    def __str__(self) -> str:
        return f"element {self.at} of '{self.value}'" if self.axis is None else f"size {self.axis} of '{self.value}'"


@dataclass(frozen=True)
class _Need:
    """Numbers of which one is "equal" to the other, "within" it, "ones" or equal, or of which the first are the "sum"
    of the other."""

    kind: str
    numbers: tuple[_Number, ...]
    other: _Number

    def __str__(self) -> str:
        what = {"equal": "equal to", "within": "no more than", "ones": "1 or equal to", "sum": "in sum"}[self.kind]
        return f"{' and '.join(map(str, self.numbers))} must be {what} {self.other}, and not so in this call"


def require_sizes(model: OnnxModel) -> None:
    """Adds checks before nodes of the main graph. Bodies of loops and branches have none: they run when they run."""
    graph = model.proto.graph
    if not any(node.op_type in _RULES for node in graph.node):
        return
    facts, nodes = interpret(model), []
    for node in graph.node:
        rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        for count, need in enumerate(rule(node, _Values(facts)) if rule else ()):
            if not _holds(need):
                builder = Builder(model, node)
                builder.prefix = f"{node.name}_required_{count}"
                _check(need, f"{describe_node(node, model)}: {need}", builder)
                graph.initializer.extend(builder.initializers)
                nodes += builder.nodes
        nodes.append(node)
    if len(nodes) != len(graph.node):
        import_domains(model, ["eyas"])
        replace_nodes(graph, nodes)


class _Values:
    def __init__(self, facts: Facts):
        self.values = facts.values

    def sizes(self, name: str) -> list[_Number]:
        """All sizes of a value; none where the rank is not known."""
        value = self.values.get(name)
        shape = () if value is None or value.shape is None else value.shape
        return [_Number(size, name, axis) for axis, size in enumerate(shape)]

    def elements(self, name: str) -> list[_Number]:
        """All elements of a vector of a known length."""
        value = self.values.get(name)
        if value is None or value.shape is None or len(value.shape) != 1 or not isinstance(value.shape[0], int):
            return []
        known: list[Any] = [None] * value.shape[0] if value.elements is None else list(value.elements)
        return [
            _Number(one if isinstance(one, (int, ex.Poly)) else None, name, None, at) for at, one in enumerate(known)
        ]


def _scatter_nd(node: onnx.NodeProto, of: _Values) -> Iterator[_Need]:
    data, places, updates = (of.sizes(name) for name in node.input[:3])
    depth = places[-1].known if places else None
    if isinstance(depth, int) and len(updates) == len(places) - 1 + len(data) - depth:
        for one, other in zip(updates, [*places[:-1], *data[depth:]], strict=True):
            yield _Need("equal", (one,), other)


def _scatter_elements(node: onnx.NodeProto, of: _Values) -> Iterator[_Need]:
    places, updates = of.sizes(node.input[1]), of.sizes(node.input[2])
    for one, other in zip(updates, places, strict=False):
        yield _Need("equal", (one,), other)
    yield from _gather_elements(node, of)


def _gather_elements(node: onnx.NodeProto, of: _Values) -> Iterator[_Need]:
    data, places = of.sizes(node.input[0]), of.sizes(node.input[1])
    for axis, (one, other) in enumerate(zip(places, data, strict=False)):
        if axis != attribute(node, "axis", 0) % len(data):
            yield _Need("within", (one,), other)


def _top_k(node: onnx.NodeProto, of: _Values) -> Iterator[_Need]:
    data, count = of.sizes(node.input[0]), of.elements(operand(node, 1))
    if data and count:
        yield _Need("within", (count[0],), data[attribute(node, "axis", -1)])


def _expand(node: onnx.NodeProto, of: _Values) -> Iterator[_Need]:
    data, wanted = of.sizes(node.input[0]), of.elements(node.input[1])
    for one, other in zip(reversed(data), reversed(wanted), strict=False):
        # Less than 0 is what some exporters write for a size that stays.
        if other.known != 1 and not (isinstance(other.known, int) and other.known < 0):
            yield _Need("ones", (one,), other)


def _split(node: onnx.NodeProto, of: _Values) -> Iterator[_Need]:
    data, parts = of.sizes(node.input[0]), of.elements(operand(node, 1))
    if data and parts:
        yield _Need("sum", tuple(parts), data[attribute(node, "axis", 0)])


def _reverse(node: onnx.NodeProto, of: _Values) -> Iterator[_Need]:
    data, lengths = of.sizes(node.input[0]), of.sizes(node.input[1])
    if data and lengths:
        yield _Need("equal", (lengths[0],), data[attribute(node, "batch_axis", 1)])


_RULES: dict[str, Callable[[onnx.NodeProto, _Values], Iterator[_Need]]] = {
    "Expand": _expand,
    "GatherElements": _gather_elements,
    "ReverseSequence": _reverse,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Split": _split,
    "TopK": _top_k,
}


def _holds(need: _Need) -> bool:
    """Whether that is known before any call."""
    known, other = [number.known for number in need.numbers], need.other.known
    if need.kind == "ones" and known[0] == 1:
        return True
    total: ex.Integer = 0
    for one in known:
        if one is None:
            return False
        total = ex.add(total, one)
    return other is not None and ex.compare("le" if need.kind == "within" else "eq", total, other) is True


def _check(need: _Need, message: str, b: Builder) -> None:
    numbers, other = [_read(number, b) for number in need.numbers], _read(need.other, b)
    total = numbers[0]
    for number in numbers[1:]:
        total = b.add("Add", total, number)
    if need.kind == "within":
        holds = b.add("Not", b.add("Greater", total, other))
    else:
        holds = b.add("Equal", total, other)
    if need.kind == "ones":
        one = b.constant(1, np.int64)
        holds = b.add("Or", b.add("Or", holds, b.add("Equal", total, one)), b.add("Equal", other, one))
    b.add_many("EyasCheck", 0, holds, domain="eyas", wanted=1, message=message)


def _read(number: _Number, b: Builder) -> str:
    if isinstance(number.known, int):
        return b.constant(number.known, np.int64)
    if number.axis is not None:
        return b.add("Gather", b.add("Shape", number.value), b.constant(number.axis, np.int64))
    return b.cast(b.add("Gather", number.value, b.constant(number.at, np.int64)), onnx.TensorProto.INT64)
