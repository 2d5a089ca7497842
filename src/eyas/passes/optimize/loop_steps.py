"""How often a loop runs and what its scalars are in each step, when the number of steps is known or open.

A known number is counted by running the loop's integers (`counted_loops`). An open one, such as the length of an
argument, is found by reading them: expressions are compared as trees, and a place in a tensor is a linear form of the
step and the number of steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, tensor

from eyas.ir.structured import index_constant, split_operands
from eyas.ir.walk import constant_int, defining_op, is_tensor
from eyas.passes.optimize.counted_loops import History, history_of, passes_tensors

Tree = tuple
"""("number", 5), ("dim", tensor, 0), ("value", scalar), ("arith.addi", left, right), ("arith.cmpi", 2, left, right)."""

_NOT_EQUAL, _SIGNED_LESS, _SIGNED_GREATER = 1, 2, 4  # of arith.cmpi
# A count beyond this never comes to an end.
_FOR_EVER = 1 << 62
_CASTS = ("arith.index_cast", "arith.extsi")
_BINARY = ("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.minsi", "arith.maxsi")


@dataclass(frozen=True)
class Place:
    """`step * trip + start + counts * number of steps`."""

    step: int
    start: int
    counts: int = 0


@dataclass(frozen=True)
class Steps:
    """A loop all of whose steps are taken, one after the other."""

    op: mlir.Operation
    counters: dict[mlir.Value, Place]
    """Scalar arguments of the body that grow evenly."""
    count: int | None
    """The number of steps, if it is known."""
    bound: Tree = ("number", 0)
    """What the number of steps is, or 0 where that is negative."""
    history: History = field(default_factory=list)

    @property
    def body(self) -> mlir.Block:
        return self.op.regions[-1].blocks[0]

    @property
    def end(self) -> mlir.Operation:
        return list(self.body.operations)[-1].operation

    def size(self) -> mlir.Value | int:
        """The number of steps; emits what computes it."""
        if self.count is not None:
            return self.count
        count = _emit(self.bound)
        return count if self.bound[0] == "dim" else arith.maxsi(count, index_constant(0))

    def place(self, value: mlir.Value) -> Place | None:
        """A scalar of the body, where it grows evenly."""
        if not self.history:
            return self._form(tree_of(value))
        numbers = [known.get(value, constant_int(value)) for known in self.history]
        places = [number for number in numbers if number is not None]
        if len(places) != len(self.history):
            return None
        step = places[1] - places[0] if len(places) > 1 else 1
        is_even = all(place == places[0] + step * trip for trip, place in enumerate(places))
        return Place(step, places[0]) if is_even else None

    def _form(self, tree: Tree) -> Place | None:
        kind = tree[0]
        if tree == self.bound and kind != "number":
            return Place(0, 0, 1)
        if kind == "number":
            return Place(0, tree[1])
        if kind == "value":
            return self.counters.get(tree[1])
        if kind == "arith.select":
            holds = self._decide(tree[1])
            return None if holds is None else self._form(tree[2] if holds else tree[3])
        parts = [self._form(part) for part in tree[1:]] if kind in _BINARY else [None]
        left, right = parts[0], parts[-1]
        if left is None or right is None:
            return None
        if kind == "arith.addi":
            return Place(left.step + right.step, left.start + right.start, left.counts + right.counts)
        if kind == "arith.subi":
            return _difference(left, right)
        if kind == "arith.muli" and not (left.step or left.counts):
            return Place(left.start * right.step, left.start * right.start, left.start * right.counts)
        if kind in ("arith.minsi", "arith.maxsi"):
            larger, smaller = (left, right) if self._is_not_negative(_difference(left, right)) else (right, left)
            if self._is_not_negative(_difference(larger, smaller)):
                return smaller if kind == "arith.minsi" else larger
        return None

    def _decide(self, tree: Tree) -> bool | None:
        """What a comparison says in every step, if it is always the same."""
        if tree[0] != "arith.cmpi" or tree[1] not in (_SIGNED_LESS, _SIGNED_GREATER):
            return None
        left, right = (self._form(part) for part in (tree[2:] if tree[1] == _SIGNED_LESS else tree[:1:-1]))
        if left is None or right is None:
            return None
        if self._is_not_negative(_difference(left, right)):
            return False
        return True if self._is_not_negative(_difference(_difference(right, left), Place(0, 1))) else None

    def _is_not_negative(self, place: Place) -> bool:
        """In every step of a loop that takes one or more."""
        if self.count is not None:
            return place.start + min(place.step * (self.count - 1), 0) >= 0
        if place.step < 0:  # counted from the last step
            place = Place(-place.step, place.start - place.step, place.counts + place.step)
        return place.counts >= 0 and place.start + place.counts >= 0


def _difference(left: Place, right: Place) -> Place:
    return Place(left.step - right.step, left.start - right.start, left.counts - right.counts)


def steps_of(op: mlir.Operation) -> Steps | None:
    """What is known of an `scf.for` from 0 in steps of 1, or of an `scf.while` that counts."""
    if op.name == "scf.for":
        lower, upper, step = op.operands[0], op.operands[1], op.operands[2]
        if (constant_int(lower), constant_int(step)) != (0, 1):
            return None
        return _steps(op, {op.regions[0].blocks[0].arguments[0]: Place(1, 0)}, tree_of(upper))
    found = _counting_while(op)
    if found is not None:
        return found
    # A loop that counts in a way of its own.
    history = history_of(op)
    if not history:
        return None
    found = Steps(op, {}, len(history), history=history)
    places = {value: found.place(value) for value in found.body.arguments if not is_tensor(value)}
    return Steps(op, {v: p for v, p in places.items() if p is not None}, len(history), history=history)


def _steps(op: mlir.Operation, counters: dict[mlir.Value, Place], bound: Tree) -> Steps | None:
    if bound[0] == "number":
        return Steps(op, counters, bound[1], bound) if bound[1] > 0 else None
    return Steps(op, counters, None, bound)


def _counting_while(op: mlir.Operation) -> Steps | None:
    before, body = op.regions[0].blocks[0], op.regions[1].blocks[0]
    condition, end = (list(block.operations)[-1].operation for block in (before, body))
    carried, names = list(condition.operands)[1:], list(before.arguments)
    if not passes_tensors(before, carried) or not all(value in names for value in carried):
        return None
    counters: dict[mlir.Value, Place] = {}
    nexts: list[Tree] = []
    for argument, value in zip(body.arguments, carried, strict=True):
        at = names.index(value)
        first, following = constant_int(op.operands[at]), tree_of(end.operands[at])
        if first is None or following[0] != "arith.addi" or following[1] != ("value", argument):
            continue
        if following[2][0] == "number":
            counters[argument] = Place(following[2][1], first)
            if (first, following[2][1]) == (0, 1):
                nexts.append(following)
                nexts.append(("value", value))
    bound = _bound(op, before, condition.operands[0], end, nexts)
    if bound is None or not all(_is_before(value, op) for value in _leaves(bound)):
        return None
    return _steps(op, counters, bound)


def _leaves(tree: Tree) -> list[mlir.Value]:
    if tree[0] in ("value", "element", "dim"):
        return [tree[1]]
    return [leaf for part in tree[1:] if isinstance(part, tuple) for leaf in _leaves(part)]


def _is_before(value: mlir.Value, op: mlir.Operation) -> bool:
    """Whether a value is there before an op: it is not made inside of it."""
    block = value.owner if isinstance(value.owner, mlir.Block) else value.owner.operation.block
    while True:
        owner = block.owner.operation
        if owner == op:
            return False
        if owner.name in ("func.func", "builtin.module"):
            return True
        block = owner.block


def _bound(
    op: mlir.Operation, before: mlir.Block, goes_on: mlir.Value, end: mlir.Operation, counts: list[Tree]
) -> Tree | None:
    """What a count from 0 in steps of 1 is less than, in each step and in nothing else."""
    names = list(before.arguments)
    if goes_on not in names:  # looked at before each step
        return _less_than(_conjuncts(tree_of(goes_on)), counts)
    at = names.index(goes_on)
    bound = _less_than(_conjuncts(tree_of(end.operands[at])), counts)
    first = tree_of(op.operands[at])
    if first == ("number", 1) and bound is not None and bound[0] == "number":
        return bound  # of a number that is not positive there are no steps, and the loop takes one
    return bound if bound is not None and bound == _less_than(_conjuncts(first), [("number", 0)]) else None


def _less_than(conditions: list[Tree], counts: list[Tree]) -> Tree | None:
    found = None
    for one in conditions:
        if one == ("number", 1):
            continue
        if one[0] != "arith.cmpi" or one[1] not in (_SIGNED_LESS, _SIGNED_GREATER):
            return None
        small, large = one[2:] if one[1] == _SIGNED_LESS else one[:1:-1]
        if large[0] == "number" and large[1] >= _FOR_EVER:
            continue
        if small not in counts or found not in (None, large):
            return None
        found = large
    return found


def _conjuncts(tree: Tree) -> list[Tree]:
    return [part for side in tree[1:] for part in _conjuncts(side)] if tree[0] == "arith.andi" else [tree]


def tree_of(value: mlir.Value, known: Mapping[mlir.Value, mlir.Value] | None = None) -> Tree:
    """A scalar as a tree, through tensors of one element; `known` says what arguments of a body are."""
    known = known or {}
    if value in known:
        return _element_of(known[value])
    owner = defining_op(value)
    if owner is None:
        return ("value", value)
    if (number := constant_int(value)) is not None:
        return ("number", abs(number) if _is_truth(value) else number)
    if owner.name in _CASTS or (owner.name == "arith.extui" and _is_truth(owner.operands[0])):
        return tree_of(owner.operands[0], known)
    if owner.name in (*_BINARY, "arith.select"):
        return (owner.name, *(tree_of(operand, known) for operand in owner.operands))
    if owner.name == "arith.cmpi":
        predicate = mlir.IntegerAttr(owner.attributes["predicate"]).value
        left, right = (tree_of(operand, known) for operand in owner.operands)
        is_truth_again = predicate == _NOT_EQUAL and left[0] in ("arith.cmpi", "arith.andi") and right == ("number", 0)
        return left if is_truth_again else (owner.name, predicate, left, right)
    if owner.name == "tensor.dim" and constant_int(owner.operands[1]) is not None:
        return ("dim", owner.operands[0], constant_int(owner.operands[1]))
    if owner.name == "tensor.extract" and _has_one_element(owner.operands[0]):
        made = _element_of(owner.operands[0])
        return ("value", value) if made[0] == "element" else made
    return ("value", value)


def _is_truth(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.IntegerType) and value.type.width == 1


def _has_one_element(value: mlir.Value) -> bool:
    type_ = mlir.RankedTensorType(value.type)
    return type_.has_static_shape and all(size == 1 for size in type_.shape)


def _element_of(value: mlir.Value) -> Tree:
    """The only element of a tensor, or the scalar itself."""
    if not is_tensor(value):
        return tree_of(value)
    owner = defining_op(value)
    if owner is not None and _has_one_element(value):
        if owner.name in ("tensor.from_elements", "linalg.fill"):
            return tree_of(owner.operands[0])
        if owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
            return _element_of(owner.operands[0])
        if owner.name == "arith.constant" and isinstance(owner.attributes["value"], mlir.DenseIntElementsAttr):
            number = int(np.asarray(owner.attributes["value"]).reshape(-1)[0])
            return ("number", number)
        if owner.name == "linalg.generic" and len(owner.results) == 1:
            body, (inputs, _) = owner.regions[0].blocks[0], split_operands(owner)
            yielded = list(body.operations)[-1].operands[0]
            return tree_of(yielded, dict(zip(list(body.arguments)[: len(inputs)], inputs, strict=True)))
    return ("element", value)


def size_tree(value: mlir.Value, dim: int) -> Tree:
    """Where the size of a dimension comes from: a number, a dimension of something that is given, or a scalar."""
    type_ = mlir.RankedTensorType(value.type)
    if not type_.is_dynamic_dim(dim):
        return ("number", type_.shape[dim])
    owner, given = defining_op(value), sum(type_.is_dynamic_dim(one) for one in range(dim))
    if owner is not None and owner.name == "tensor.empty":
        return resolved_size(tree_of(owner.operands[given]))
    if owner is not None and owner.name == "tensor.expand_shape":
        return resolved_size(tree_of(owner.operands[1 + given]))
    if owner is not None and owner.name.startswith("linalg."):
        number = list(owner.results).index(value)
        return size_tree(owner.operands[len(owner.operands) - len(owner.results) + number], dim)
    return ("dim", value, dim)


def resolved_size(tree: Tree) -> Tree:
    """A size, with dimensions followed to where they come from."""
    return size_tree(tree[1], tree[2]) if tree[0] == "dim" else tree


def _emit(tree: Tree) -> mlir.Value:
    """An index with the value of a tree."""
    kind, index = tree[0], mlir.IndexType.get()
    if kind == "number":
        return index_constant(tree[1])
    if kind == "dim":
        return tensor.dim(tree[1], index_constant(tree[2]))
    if kind == "element":
        rank = mlir.RankedTensorType(tree[1].type).rank
        return arith.index_cast(index, tensor.extract(tree[1], [index_constant(0)] * rank))
    if kind == "value":
        return tree[1] if tree[1].type == index else arith.index_cast(index, tree[1])
    if kind == "arith.cmpi":
        return arith.cmpi(tree[1], *(_emit(part) for part in tree[2:]))
    return mlir.Operation.create(kind, results=[index], operands=[_emit(part) for part in tree[1:]]).results[0]
