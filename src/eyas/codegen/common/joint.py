"""Reductions whose shares can be joined by what joins an element to them: sums, and choices such as arg-maxima.

The body of a reduction makes new values of an element, and of these and the old values what it yields. Where the new
values are as many as the old ones, and stand for them, the second part joins two shares as well:

    %v = maximumf %x, %old        %take = cmpf ogt, %x, %old        %i = select %take, %index, %old_index

takes (value, index) of a later share for (%x, %index). That this gives what one share would have given is tried on all
values that the body could tell apart (`order_types.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.combine import Combiner, combines
from eyas.codegen.common.emission.values import Memory, clone_op
from eyas.codegen.common.kernel import Statement
from eyas.codegen.common.order_types import joins_its_shares
from eyas.ir.walk import defining_op


@dataclass(frozen=True)
class Joint:
    """What a body does with its old values and `news`, which are as many."""

    news: tuple[mlir.Value, ...]
    olds: tuple[mlir.Value, ...]
    steps: tuple[mlir.Operation, ...]
    """From these to what is yielded."""
    yielded: tuple[mlir.Value, ...]
    combiners: tuple[Combiner, ...]
    """How each value is joined to the old one, where all of them are sums of some kind; empty for choices."""

    @property
    def in_order(self) -> bool:
        """Whether a share must be joined to one that comes before it: of equal elements the first may count."""
        return not self.combiners

    def first(self, memory: Memory, olds: Sequence[mlir.Value]) -> list[mlir.Value]:
        """What each share begins with: what changes nothing."""
        if not self.combiners:
            return list(olds)
        return [
            memory.at.constant(one.type, combiner.identity(one.type))
            for one, combiner in zip(self.olds, self.combiners, strict=True)
        ]

    def last(self, memory: Memory, olds: Sequence[mlir.Value], total: Sequence[mlir.Value]) -> list[mlir.Value]:
        """The result, from the old values and all shares."""
        return self.join(memory, olds, total) if self.combiners else list(total)

    def join(self, memory: Memory, olds: Sequence[mlir.Value], news: Sequence[mlir.Value]) -> list[mlir.Value]:
        """Two shares as one."""
        values = dict(zip((*self.olds, *self.news), (*olds, *news), strict=True))

        def get(value: mlir.Value) -> mlir.Value:
            return values[value] if value in values else memory.scalar(value)

        for op in self.steps:
            clone = clone_op(op, [get(one) for one in op.operands], [one.type for one in op.results])
            values.update(zip(op.results, clone.results, strict=True))
        return [get(one) for one in self.yielded]


@dataclass(frozen=True)
class PlacedJoint(Joint):
    """A choice of an element together with its place, output `place`: which share comes first can be seen from them, so
    that elements of two shares may take turns."""

    place: int = 0

    @property
    def in_order(self) -> bool:
        return False

    def join(self, memory: Memory, olds: Sequence[mlir.Value], news: Sequence[mlir.Value]) -> list[mlir.Value]:
        first = arith.CmpIOp(arith.CmpIPredicate.ule, olds[self.place], news[self.place]).result
        pairs = list(zip(olds, news, strict=True))
        left = [arith.SelectOp(first, old, new).result for old, new in pairs]
        right = [arith.SelectOp(first, new, old).result for old, new in pairs]
        return super().join(memory, left, right)


def placed_joint_of(statement: Statement) -> Joint | None:
    """The same as `joint_of`, by places where the body has them."""
    joint = joint_of(statement)
    if joint is None or not joint.in_order or len(joint.news) != 2 or len(statement.reductions) != 1:
        return joint
    places = [number for number, new in enumerate(joint.news) if _is_place(statement, new)]
    if len(places) != 1:
        return joint
    return PlacedJoint(joint.news, joint.olds, joint.steps, joint.yielded, joint.combiners, places[0])


def _is_place(statement: Statement, value: mlir.Value) -> bool:
    """Whether a value is the index along the loop of a reduction."""
    owner = defining_op(value)
    while owner is not None and owner.name in ("arith.index_cast", "arith.index_castui"):
        owner = defining_op(owner.operands[0])
    if owner is None or owner.name != "linalg.index":
        return False
    return statement.loop_of_index.get(mlir.IntegerAttr(owner.attributes["dim"]).value) == statement.reductions[0]


def joint_of(statement: Statement) -> Joint | None:
    """How shares of a statement's reduction are joined, or None where they cannot be."""
    body = statement.body
    if body is None or any(isinstance(type_, mlir.ComplexType) for type_ in statement.element_types):
        return None
    olds = tuple(body.arguments)[len(statement.inputs) :]
    yielded = tuple(list(body.operations)[-1].operands)
    since = _depend_on(body, olds)
    news = [_new_value(value, old, since) for value, old in zip(yielded, olds, strict=True)]
    if any(new is None for new in news):
        return None
    found = tuple(new for new in news if new is not None)
    if len(set(found)) != len(found) or (steps := _steps(body, yielded, {*olds, *found})) is None:
        return None
    names = [op.name for value in yielded if (op := defining_op(value)) is not None]
    combiners = tuple(Combiner(name) for name in names if combines(name))
    apart = all(len(list(old.uses)) == 1 for old in olds)
    joint = Joint(found, olds, steps, yielded, combiners if apart and len(combiners) == len(yielded) else ())
    if joint.combiners or joins_its_shares(olds, found, steps, yielded, statement.inits):
        return joint
    return None


def _depend_on(body: mlir.Block, olds: Sequence[mlir.Value]) -> set[mlir.Value]:
    """What a body makes of its old values, and these."""
    found = set(olds)
    for op in body.operations:
        if any(operand in found for operand in op.operands):
            found |= set(op.operation.results)
    return found


def _new_value(value: mlir.Value, old: mlir.Value, since: set[mlir.Value]) -> mlir.Value | None:
    """What takes the place of an old value, or is joined to it, in the op that makes what is yielded."""
    owner = defining_op(value)
    if owner is None or not (combines(owner.name) or owner.name == "arith.select"):
        return None
    operands = list(owner.operands)[-2:]
    others = [one for one in operands if one != old]
    return others[0] if len(others) == 1 and others[0] not in since else None


def _steps(
    body: mlir.Block, yielded: Sequence[mlir.Value], known: set[mlir.Value]
) -> tuple[mlir.Operation, ...] | None:
    """The ops between known values and what is yielded, in order; None where something else of an element is read."""
    needed: set[mlir.Operation] = set()
    pending = list(yielded)
    while pending:
        value = pending.pop()
        if value in known:
            continue
        owner = defining_op(value)
        if owner is None and value.owner == body:
            return None
        if owner is None or owner.block != body:
            continue  # a scalar of the dispatch
        if owner.name == "linalg.index" or len(owner.regions):
            return None
        if owner not in needed:
            needed.add(owner)
            pending += owner.operands
    return tuple(op.operation for op in body.operations if op.operation in needed)
