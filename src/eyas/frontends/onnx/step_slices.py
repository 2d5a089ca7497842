"""Slices in a loop whose place moves with the steps: of one row of a table of positions, or of what a step reads.

A slice that reaches over the end is shorter, so its length is open, and what is made of it seems to change its shape.
Where no step comes to the end, as the trip count or the condition says, it is as long as it looks, and a gather, whose
result is as long as its indices, says so.

    y = Loop (n, , x) { row = Slice (table, i, i + 1) }        # table: [12, 4], n: 9
  becomes
    y = Loop (n, , x) { row = Gather (table, i) }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import helper

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.rewrite.rules import Builder, operand
from eyas.frontends.onnx.rewrite.steps import orders
from eyas.frontends.onnx.subgraphs import FINAL_LOOP, all_nodes, replace_nodes, subgraphs
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret

# The indices of longer ones are a constant: that is not what a step reads.
_LONGEST = 64


def gather_step_slices(model: OnnxModel) -> bool:
    """Says whether something changed and needs inference again. Names must be unique across subgraphs."""
    loops = [node for node in all_nodes(model.proto.graph) if node.op_type == "Loop"]
    bodies = [(node, body) for node in loops if (body := next(subgraphs(node))).name != FINAL_LOOP]
    if not any(node.op_type == "Slice" for _, body in bodies for node in body.node):
        return False
    facts, changed = interpret(model), False
    # Inner ones first: changing a body copies the loops in it.
    for node, body in reversed(bodies):
        builder = Builder(model, node)
        # The loop's name is for what the rules make of it.
        builder.prefix = f"{node.name}_slices"
        steps, nodes, found = _Steps(node, body, facts, builder), [], 0
        for inner in body.node:
            whole = steps.whole(inner) if inner.op_type == "Slice" else None
            nodes += [inner] if whole is None else _gather(inner, *whole, steps.b)
            found += whole is not None
        if found:
            model.proto.graph.initializer.extend(steps.b.initializers)
            replace_nodes(body, nodes)
            changed = True
    return changed


class _Steps:
    """The steps of a loop, and what each of them adds to numbers in its body."""

    def __init__(self, node: onnx.NodeProto, body: onnx.GraphProto, facts: Facts, b: Builder):
        self.facts, self.b = facts, b
        self.growth: dict[str, tuple[ex.Integer, ex.Integer]] = {str(ex.element(body.input[0].name, True)): (0, 1)}
        for place, entered in enumerate(body.input[2:]):
            before, after = self.number(entered.name), self.number(body.output[1 + place].name)
            first = self.number(node.input[2 + place])
            if before is not None and after is not None and first is not None and before == ex.element(entered.name):
                self.growth[str(before)] = (first, ex.sub(after, before))
        self.last = list(self._last(node, body))

    def number(self, name: str) -> ex.Integer | None:
        value = self.facts.values.get(name)
        if value is None or value.elements is None or value.elements.size != 1:
            return None
        one = value.elements.reshape(-1)[0]
        return one if isinstance(one, (int, ex.Poly)) and not isinstance(one, bool) else None

    def _last(self, node: onnx.NodeProto, body: onnx.GraphProto) -> Iterator[list[ex.Integer]]:
        """Bounds for the number of the last step, which begin at 0: it is not above all numbers of a list."""
        count = self.number(operand(node, 0))
        if count is not None:
            yield [ex.sub(count, 1)]
        for low, high, extra in orders(body, {}, self.b):
            left, right = self.number(low), self.number(high)
            if left is None or right is None:
                continue
            # It goes on while this is below 0.
            base, slope = over_steps(ex.sub(ex.sub(left, right), extra), self.growth)
            if isinstance(slope, int) and slope > 0:
                first = ex.divide(ex.neg(base), slope, "ceildiv")
                yield [0] if first is None else [0, first]

    def whole(self, node: onnx.NodeProto) -> tuple[int, int] | None:
        """Axis and length of a slice of one dimension that is within it in every step."""
        data = self.facts.values.get(node.input[0])
        begin, end = self.number(operand(node, 1)), self.number(operand(node, 2))
        axis = self.number(node.input[3]) if operand(node, 3) else 0
        stride = self.number(node.input[4]) if operand(node, 4) else 1
        if data is None or not data.shape or begin is None or end is None or stride != 1 or not isinstance(axis, int):
            return None
        length, (first, slope) = ex.sub(end, begin), over_steps(begin, self.growth)
        if not isinstance(length, int) or not 0 < length <= _LONGEST or not isinstance(slope, int) or slope <= 0:
            return None
        # What counts from the end has a negative place.
        room = ex.sub(ex.sub(data.shape[axis], first), length)
        is_within = ex.is_not_negative(first) and any(
            all(ex.is_not_negative(ex.sub(room, ex.mul(step, slope))) for step in last) for last in self.last
        )
        return (axis % len(data.shape), length) if is_within else None


def over_steps(
    number: ex.Integer, growth: Mapping[str, tuple[ex.Integer, ex.Integer]]
) -> tuple[ex.Integer, ex.Integer]:
    """What a number is in the first step, and what each step adds, where `growth` has both for what changes."""
    base: ex.Integer = 0
    slope: ex.Integer = 0
    for size, count in ex.summands(number):
        first, added = growth.get(str(size), (size, 0))
        slope = ex.add(slope, ex.mul(added, count))
        base = ex.add(base, ex.mul(first, count))
    return base, slope


def _gather(node: onnx.NodeProto, axis: int, length: int, b: Builder) -> list[onnx.NodeProto]:
    indices, made = node.input[1], []
    if length > 1:
        indices = f"{node.output[0]}_indices"
        dtype = b.dtype_of(node.input[1])
        made.append(
            helper.make_node("Add", [node.input[1], b.constant(np.arange(length), dtype)], [indices], name=indices)
        )
    return [*made, helper.make_node("Gather", [node.input[0], indices], node.output, axis=axis, name=node.name)]
