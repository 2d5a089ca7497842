"""A loop with room for what grows in it: the nodes before it, at both ends of its body, and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from eyas.frontends.onnx.rewrite.rules import Builder
from eyas.frontends.onnx.rewrite.sizes import Size, computed
from eyas.frontends.onnx.subgraphs import own_values, replace_nodes
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import Facts

_INT64 = TensorProto.INT64


@dataclass(frozen=True)
class Grown:
    """A carried value by its place, and what each step adds along its axes."""

    place: int
    added: dict[int, ex.Integer]


class BeforeLoop:
    """What is there before a loop begins."""

    def __init__(self, node: onnx.NodeProto, body: onnx.GraphProto, facts: Facts, b: Builder):
        self.node, self.facts, self.b = node, facts, b
        self.own = own_values(body)
        self._made: dict[str, Size] = {}

    def knows(self, size: ex.Scalar) -> bool:
        return all(self._place(name) is not None for name in ex.dims_in(size))

    def size(self, size: ex.Integer) -> Size:
        """A size as a number or a vector of one element; the same one for the same expression."""
        if isinstance(size, int):
            return size
        if str(size) not in self._made:
            made = computed(size, self._read, self.b)
            assert made is not None
            self._made[str(size)] = made
        return self._made[str(size)]

    def number(self, name: str) -> ex.Integer | None:
        """A number in the body, where it follows from sizes and from numbers that a call brings."""
        elements = self.facts.values[name].elements if name in self.facts.values else None
        if elements is None or elements.size != 1:
            return None
        return ex.with_numbers_as_sizes(elements.reshape(-1)[0], _number_of)

    def _read(self, name: str) -> Size | None:
        place = self._place(name)
        if place is None:
            return None
        if name == _number_of(place[0]):
            return self.b.reshape(self.b.cast(place[0], _INT64), [1])
        return self.b.size(*place)

    def _place(self, name: str) -> tuple[str, int] | None:
        if name.startswith(_number_of("")):
            value = name.removeprefix(_number_of(""))
            return None if value in self.own else (value, 0)
        place = self.facts.places.get(name)
        return None if place is None or place[0] in self.own else place


class LoopWithRoom:
    """The loop with room instead of what grows."""

    def __init__(self, node: onnx.NodeProto, body: onnx.GraphProto, outer: BeforeLoop):
        self.node, self.body, self.outer, self.b = node, body, outer, outer.b
        self.carried = len(node.input) - 2
        self.first: list[onnx.NodeProto] = []
        self.last: list[onnx.NodeProto] = []
        self.after: list[onnx.NodeProto] = []
        self.step = self._add(self.first, "Reshape", body.input[0].name, self.b.constant([1], np.int64))
        self.taken = f"{node.name}_taken"
        self._lives: dict[tuple[Size, Size], str] = {}

    def widen(self, one: Grown, steps: Size) -> None:
        b, place = self.b, one.place
        entered, begin = self.body.input[2 + place], self.node.input[2 + place]
        left, axes = self.body.output[1 + place], sorted(one.added)
        value = self.outer.facts.values[begin]
        assert value.shape is not None
        first = {axis: self.outer.size(value.shape[axis]) for axis in axes}
        added = {axis: self.outer.size(one.added[axis]) for axis in axes}
        rank = len(value.shape)
        more = [_times(added[axis], steps, b) if axis in added else 0 for axis in range(rank)]
        room = b.add("Pad", begin, b.vector([*[0] * rank, *more]))
        self.node.input[2 + place] = room

        # In the body: what is there by now, under the name that it had, and room around what is there next.
        inside = f"{entered.name}_room"
        lives = {axis: self._live(first[axis], added[axis]) for axis in axes}
        cut = self._cut(self.first, inside, list(lives.values()), axes)
        # A 0 is the size that there is.
        there = [lives.get(at, size if isinstance(size, int) else 0) for at, size in enumerate(value.shape)]
        # The sizes are known, as expressions, where those of a slice to the number of the step are not.
        self._add(self.first, "Reshape", cut, self._vector(self.first, there), to=entered.name)
        have = self._add(self.last, "Shape", left.name)
        rest = self._add(self.last, "Sub", self._add(self.last, "Shape", inside), have)
        zeros = b.constant([0] * rank, np.int64)
        widened = self._add(self.last, "Pad", left.name, self._add(self.last, "Concat", zeros, rest, axis=0))
        type_ = entered.type.tensor_type.elem_type or value.data_type
        entered.CopyFrom(helper.make_tensor_value_info(inside, type_, [None] * rank))
        left.CopyFrom(helper.make_tensor_value_info(widened, type_, [None] * rank))

        result = self.node.output[place] if place < len(self.node.output) else ""
        if result:
            self.node.output[place] = f"{result}_room"
            ends = []
            for axis in axes:
                grown = self._add(self.after, "Mul", self.taken, self._vector(self.after, [added[axis]]))
                ends.append(self._add(self.after, "Add", grown, self._vector(self.after, [first[axis]])))
            self._cut(self.after, f"{result}_room", ends, axes, to=result)

    def finish(self) -> list[onnx.NodeProto]:
        """Carries the count of the steps as well."""
        b, at = self.b, 2 + self.carried
        count = self._add(self.last, "Add", self.step, b.constant([1], np.int64))
        before = f"{self.taken}_before"
        while len(self.node.output) < self.carried:
            self.node.output.append(f"{self.node.name}_unread_{len(self.node.output)}")
        self.node.input.append(b.constant([0], np.int64))
        self.node.output.insert(self.carried, self.taken)
        self.body.input.append(helper.make_tensor_value_info(before, _INT64, [1]))
        self.body.output.insert(at - 1, helper.make_tensor_value_info(count, _INT64, [1]))
        replace_nodes(self.body, [*self.first, *self.body.node, *self.last])
        return self.after

    def _live(self, first: Size, added: Size) -> str:
        """How long a value is in this step."""
        if (first, added) not in self._lives:
            grown = self._add(self.first, "Mul", self.step, self._vector(self.first, [added]))
            self._lives[first, added] = self._add(self.first, "Add", grown, self._vector(self.first, [first]))
        return self._lives[first, added]

    def _cut(self, nodes: list[onnx.NodeProto], value: str, ends: list[str], axes: list[int], to: str = "") -> str:
        """The first so many along each axis."""
        starts, along = self.b.constant([0] * len(axes), np.int64), self.b.constant(axes, np.int64)
        end = ends[0] if len(ends) == 1 else self._add(nodes, "Concat", *ends, axis=0)
        return self._add(nodes, "Slice", value, starts, end, along, to=to)

    def _vector(self, nodes: list[onnx.NodeProto], sizes: list[Size]) -> str:
        parts = [self.b.constant([size], np.int64) if isinstance(size, int) else size for size in sizes]
        return parts[0] if len(parts) == 1 else self._add(nodes, "Concat", *parts, axis=0)

    def _add(self, nodes: list[onnx.NodeProto], op: str, *inputs: str, to: str = "", **attributes: Any) -> str:
        count = len(self.first) + len(self.last) + len(self.after)
        name = f"{self.node.name}_grown_{count}"
        nodes.append(helper.make_node(op, list(inputs), [to or name], name=name, **attributes))
        return to or name


def _number_of(value: str) -> str:
    """What stands for the number in a value among the names of dimensions."""
    return f"number of {value}"


def _times(size: Size, count: Size, b: Builder) -> Size:
    if isinstance(size, int):
        return b.times(count, size)
    return b.times(size, count) if isinstance(count, int) else b.add("Mul", size, count)
