"""How many steps a `Loop` takes that has no trip count, or one that only says "for ever".

Exporters of `while` loops leave the count out. Rows of scan outputs need a place before the loop runs, so its number of
steps must be bounded then. Where the condition compares a counter with a value from outside, that bounds it. Otherwise
the loop runs twice: once without its scan outputs, to count.

    y, rows = Loop(, go, 0, x) { i2 = i + 1; on = i2 < n; ... row }
  becomes
    y, rows = Loop(n - 1 + 1, go, 0, x) { ... }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, copy_node, operand
from eyas.frontends.onnx.subgraphs import all_graphs, rename_values, subgraphs

_INTEGERS = (TensorProto.INT64, TensorProto.INT32)
# Moves and conversions of one number. Conversions to floats keep the order of integers, and may make two of them equal.
_SAME = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_RANDOM = frozenset(
    "Bernoulli EyasRandom Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split()
)
_ORDER = {"Less": (0, 1, 0), "Greater": (1, 0, 0), "LessOrEqual": (0, 1, 1), "GreaterOrEqual": (1, 0, 1)}
# What holds when the other does not: of operands the other way round.
_OPPOSITE = {"Less": "GreaterOrEqual", "Greater": "LessOrEqual", "LessOrEqual": "Greater", "GreaterOrEqual": "Less"}


@dataclass(frozen=True)
class _Number:
    """A number in a body: a value that is not made there, plus a constant. `is_exact` without conversions to floats."""

    base: str
    plus: int
    is_exact: bool


Types = Mapping[str, onnx.TypeProto]
FOR_EVER = -1
MOST_STEPS = 1 << 24
"""Steps that room is reserved for: beyond this a trip count is not a bound but "for ever"."""


def bound_of(node: onnx.NodeProto, body: onnx.GraphProto, types: Types, b: Builder) -> str | None:
    """An integer without dimensions that is at least the number of steps, from a counter in the condition; or None."""
    numbers = _Numbers(body, types, b)
    bounds = []
    for low, high, extra in numbers.orders(body.output[0].name):
        counter, limit = numbers.of(low), numbers.of(high)
        if counter is None or limit is None or limit.base in numbers.inside:
            continue
        if extra and not (counter.is_exact and limit.is_exact):
            continue
        start, step = numbers.growth(node, counter.base)
        if step <= 0:
            continue
        # After step t the counter is start + (t - 1) * step + plus; the loop goes on while that is below the limit.
        room = b.add("Sub", numbers.value(limit, extra - counter.plus + step - 1), start)
        more = b.add("Max", b.add("Div", room, b.constant(step, np.int64)), b.constant(0, np.int64))
        bounds.append(b.add("Add", more, b.constant(1, np.int64)))
    return None if not bounds else bounds[0] if len(bounds) == 1 else b.add("Min", *bounds)


def orders(body: onnx.GraphProto, types: Types, b: Builder) -> Iterator[tuple[str, str, int]]:
    """What must all hold for another step: (a, b, 0) for a < b, (a, b, 1) for a <= b."""
    return _Numbers(body, types, b).orders(body.output[0].name)


class _Numbers:
    def __init__(self, body: onnx.GraphProto, types: Types, b: Builder):
        self.body, self.types, self.b = body, types, b
        # Names are unique across subgraphs, and what is in a branch is asked for where the branch is taken.
        self.makers = {name: node for graph in all_graphs(body) for node in graph.node for name in node.output}
        self.inside = {value.name for value in body.input} | set(self.makers)

    def orders(self, condition: str, holds: bool = True) -> Iterator[tuple[str, str, int]]:
        """What must all hold for another step, where it takes that the condition holds, or does not: (a, b, 0) for
        a < b, (a, b, 1) for a <= b."""
        node = self.makers.get(condition)
        if node is None:
            return
        if node.op_type == ("And" if holds else "Or"):
            yield from (order for name in dict.fromkeys(node.input) for order in self.orders(name, holds))
        elif node.op_type in _SAME:
            yield from self.orders(node.input[0], holds)
        elif node.op_type == "Not":
            yield from self.orders(node.input[0], not holds)
        elif node.op_type == "If":
            # A Python `and` computes what is on its right only where what is on its left holds, an `or` where it does
            # not: the other branch is the constant that the whole must not be.
            then, other = (attribute(node, f"{one}_branch", None).output[0].name for one in ("then", "else"))
            for left, right, constant in ((True, then, other), (False, other, then)):
                if self._is_always(constant, not holds):
                    yield from self.orders(node.input[0], left)
                    yield from self.orders(right, holds)
        elif node.op_type in _ORDER:
            yield self._order(node.op_type if holds else _OPPOSITE[node.op_type], node.input)

    def _is_always(self, name: str, truth: bool) -> bool:
        while (node := self.makers.get(name)) is not None and node.op_type in _SAME:
            name = node.input[0]
        value = self.b.value_of(name)
        return value is not None and value.size == 1 and bool(value.all()) == truth

    @staticmethod
    def _order(op_type: str, inputs: Sequence[str]) -> tuple[str, str, int]:
        low, high, extra = _ORDER[op_type]
        return inputs[low], inputs[high], extra

    def of(self, name: str) -> _Number | None:
        plus, is_exact = 0, True
        while (node := self.makers.get(name)) is not None:
            if node.op_type in _SAME:
                is_exact = is_exact and (node.op_type != "Cast" or node.attribute[0].i in _INTEGERS)
                name = node.input[0]
                continue
            constants = [self.b.value_of(operand) for operand in node.input]
            place = next((at for at, one in enumerate(constants) if one is not None and one.size == 1), None)
            if node.op_type not in ("Add", "Sub") or place is None or (node.op_type == "Sub" and place == 0):
                return None
            added = constants[place]
            # Sums of floats may be rounded.
            if added is None or added.dtype.kind != "i":
                return None
            plus += int(added.item()) * (1 if node.op_type == "Add" else -1)
            name = node.input[1 - place]
        return _Number(name, plus, is_exact) if self._is_number(name) else None

    def _is_number(self, name: str) -> bool:
        type_ = self.types.get(name) or self.b.value_type(name)
        if type_ is None or type_.tensor_type.elem_type not in _INTEGERS or not type_.tensor_type.HasField("shape"):
            return False
        return all(dim.HasField("dim_value") and dim.dim_value == 1 for dim in type_.tensor_type.shape.dim)

    def growth(self, node: onnx.NodeProto, base: str) -> tuple[str, int]:
        """What a value is in the first step, and how much it grows in each; 0 where that is not known."""
        names = [value.name for value in self.body.input]
        if base not in names:
            return "", 0
        place = names.index(base)
        if place == 0:
            return self.b.constant(0, np.int64), 1
        after = self.of(self.body.output[place - 1].name) if place > 1 else None
        if after is None or after.base != base or not after.is_exact:
            return "", 0
        return self._integer(node.input[place]), after.plus

    def value(self, number: _Number, more: int) -> str:
        made = self._integer(number.base)
        plus = number.plus + more
        return made if plus == 0 else self.b.add("Add", made, self.b.constant(plus, np.int64))

    def _integer(self, name: str) -> str:
        return self.b.reshape(self.b.cast(name, TensorProto.INT64), [])


def can_count(body: onnx.GraphProto, b: Builder) -> bool:
    """Whether a loop can be run for its number of steps alone: it must be able to end, and do the same again."""
    makers = {name: node for node in body.node for name in node.output}
    condition = body.output[0].name
    while condition in makers and makers[condition].op_type in _SAME:
        condition = makers[condition].input[0]
    ends = condition in makers or condition in {value.name for value in body.input[2:]}
    return ends and not any(inner.op_type in _RANDOM for graph in all_graphs(body) for inner in graph.node)


def without_rows(node: onnx.NodeProto, body: onnx.GraphProto, b: Builder) -> tuple[onnx.NodeProto, onnx.GraphProto]:
    """The same loop without scan outputs, and without what its end does not depend on. Names of values of the copy
    begin with `counting_prefix`."""
    carried = len(node.input) - 2
    counting = onnx.GraphProto()
    counting.CopyFrom(body)
    del counting.output[1 + carried :]
    needed = _behind(body, {body.output[0].name})
    for _ in range(carried):
        after = [body.output[1 + at].name for at in range(carried) if body.input[2 + at].name in needed]
        needed |= _behind(body, set(after))
    kept = [copy_node(inner) for inner in body.node if needed.intersection(inner.output)]
    for at in range(carried):
        entered, left = body.input[2 + at].name, counting.output[1 + at]
        if entered not in needed and left.name not in needed:
            left.name = f"{left.name}_same_{at}"
            kept.append(helper.make_node("Identity", [entered], [left.name], name=left.name))
    del counting.node[:]
    counting.node.extend(kept)
    rename_values(counting, counting_prefix(b))
    counted = copy_node(node)
    counted.name = f"{node.name}_counting"
    del counted.output[carried:]
    return counted, counting


def counting_prefix(b: Builder) -> str:
    return f"{b.prefix}_counting"


def _behind(body: onnx.GraphProto, names: set[str]) -> set[str]:
    """Values of a body that these are made of, themselves included."""
    wanted = set(names)
    for node in reversed(body.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            wanted.update(name for graph in subgraphs(node) for one in all_graphs(graph) for name in _read(one))
    return wanted


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
    yield from (value.name for value in graph.output)


def given_count(node: onnx.NodeProto, most: int, b: Builder) -> int | None:
    """The trip count if it is known; what is beyond `most` stands for "for ever"."""
    if not operand(node, 0):
        return FOR_EVER
    known = b.value_of(operand(node, 0))
    if known is None:
        return None
    count = max(int(known.reshape(())), 0)
    return FOR_EVER if count > most else count
