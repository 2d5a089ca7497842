"""What a loop does, read from its IR: how often it runs, which rows it reads and writes in each step, what it carries.

A loop counts when all of its scalars follow from constants: they are computed here, step by step, so that any way of
counting and of clamping an index is understood."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.ir.scalars import evaluate
from eyas.ir.walk import constant_int, defining_op, is_tensor

# Steps that are computed one by one; longer loops stay as they are.
_MOST_TRIPS = 1 << 16

History = list[dict[mlir.Value, int]]
"""What scalars of a loop's body are, for each step."""


@dataclass(frozen=True)
class Row:
    """A slice that a step reads or writes: row `start + step * trip` of the tensor."""

    slice: mlir.Operation
    start: int
    step: int


@dataclass(frozen=True)
class CountedLoop:
    """A loop whose steps are known. Positions are those of the body's arguments."""

    op: mlir.Operation
    trips: int
    reads: tuple[Row, ...]
    rows: dict[int, Row]
    """Carried tensors that steps only write rows of, each row once."""
    states: tuple[int, ...]
    """Other carried tensors."""

    @property
    def body(self) -> mlir.Block:
        return self.op.regions[-1].blocks[0]

    @property
    def end(self) -> mlir.Operation:
        return list(self.body.operations)[-1].operation

    @property
    def skipped(self) -> set[mlir.Operation]:
        """Ops of the body that say which rows are read and written, and the last one."""
        return {row.slice for row in [*self.reads, *self.rows.values()]} | {self.end}

    def start(self, position: int) -> mlir.Value:
        """What a carried tensor is in the first step."""
        return self.op.operands[3 + position - 1 if self._is_for else self._place(position)]

    def next(self, position: int) -> mlir.Value:
        """What a carried tensor is in the next step."""
        return self.end.operands[position - 1 if self._is_for else self._place(position)]

    def result(self, position: int) -> mlir.Value:
        """What a carried tensor is after the last step."""
        return self.op.results[position - 1 if self._is_for else position]

    @property
    def _is_for(self) -> bool:
        return self.op.name == "scf.for"

    def _place(self, position: int) -> int:
        before = self.op.regions[0].blocks[0]
        condition = list(before.operations)[-1].operation
        return list(before.arguments).index(condition.operands[1 + position])


def history_of(op: mlir.Operation) -> History:
    """The scalars of a loop's body in each step; empty when they are not known or there are too many steps."""
    if op.name == "scf.for":
        return _history_of_for(op)
    before, body = op.regions[0].blocks[0], op.regions[1].blocks[0]
    condition, end = (list(block.operations)[-1].operation for block in (before, body))
    if not passes_tensors(before, list(condition.operands)[1:]):
        return []
    return _scalars(op, before, body, condition, end)


def _history_of_for(op: mlir.Operation) -> History:
    lower, upper, step = (constant_int(value) for value in list(op.operands)[:3])
    body = op.regions[0].blocks[0]
    if lower != 0 or step != 1 or upper is None or not 0 < upper <= _MOST_TRIPS:
        return []
    outside: dict[mlir.Value, int] = {}
    for value in {value for view in body.operations for value in view.operation.operands if not is_tensor(value)}:
        if (known := constant_int(value)) is not None:
            outside[value] = known
    history = []
    for trip in range(upper):
        history.append({**outside, body.arguments[0]: trip})
        for view in list(body.operations)[:-1]:
            evaluate(view.operation, history[-1])
    return history


def counted_steps(op: mlir.Operation) -> CountedLoop | None:
    """An `scf.for` from 0 in steps of 1, if nothing but rows of tensors depends on which step it is."""
    body = op.regions[0].blocks[0]
    if not all(is_tensor(value) and _is_static(value) for value in list(body.arguments)[1:]):
        return None
    history = _history_of_for(op)
    if not history:
        return None
    end = list(body.operations)[-1].operation
    places = {position: position - 1 for position in range(1, len(body.arguments))}
    return _read(op, body, end, places, history)


def counted_loop(op: mlir.Operation) -> CountedLoop | None:
    """The loop, if every trip is known and nothing but rows of tensors depends on which one it is."""
    before, body = op.regions[0].blocks[0], op.regions[1].blocks[0]
    condition, end = (list(block.operations)[-1].operation for block in (before, body))
    carried = list(condition.operands)[1:]
    if not all(_is_static(value) for value in body.arguments if is_tensor(value)):
        return None
    history = history_of(op)
    if not history:
        return None
    places = {position: list(before.arguments).index(value) for position, value in enumerate(carried)}
    return _read(op, body, end, places, history)


def _read(
    op: mlir.Operation,
    body: mlir.Block,
    end: mlir.Operation,
    places: dict[int, int],
    history: History,
) -> CountedLoop | None:
    """What a loop does whose scalars are known; `places` say which operand of the body's end each argument is next."""
    reads, rows = [], {}
    for position, argument in enumerate(body.arguments):
        row = _written_row(argument, end, places[position], history) if is_tensor(argument) else None
        if row is not None:
            rows[position] = row
    for view in body.operations:
        inner = view.operation
        if inner.name == "tensor.extract_slice" and _is_outside(inner.operands[0], body):
            row = _row(inner, list(inner.operands)[1:], inner.operands[0], inner.results[0], history)
            if row is not None:
                reads.append(row)
    known = {row.slice for row in [*reads, *rows.values()]}
    if not _scalars_stay_inside(body, end, known):
        return None
    states = tuple(p for p, value in enumerate(body.arguments) if is_tensor(value) and p not in rows)
    return CountedLoop(op, len(history), tuple(reads), rows, states)


def passes_tensors(before: mlir.Block, carried: list[mlir.Value]) -> bool:
    """Whether the condition does nothing with tensors but hand them on, in the same order."""
    tensors = [value for value in before.arguments if is_tensor(value)]
    if [value for value in carried if is_tensor(value)] != tensors:
        return False
    return not any(is_tensor(value) for view in list(before.operations)[:-1] for value in view.operation.operands)


def _is_static(value: mlir.Value) -> bool:
    return mlir.RankedTensorType(value.type).has_static_shape


def _scalars(
    op: mlir.Operation, before: mlir.Block, body: mlir.Block, condition: mlir.Operation, end: mlir.Operation
) -> History:
    """The scalars of the body in each trip; empty when they are not known or there are too many."""
    constants: dict[mlir.Value, int] = {}
    for block in (before, body):
        for view in block.operations:
            for value in view.operation.operands:
                owner = defining_op(value)
                if owner is not None and owner.name == "arith.constant":
                    evaluate(owner, constants)
    state: list[int | None] = []
    for value in op.operands:
        owner = defining_op(value)
        if owner is not None and not is_tensor(value):
            evaluate(owner, constants)
        state.append(constants.get(value))
    history: History = []
    while len(history) <= _MOST_TRIPS:
        values = dict(constants)
        values |= {a: s for a, s in zip(before.arguments, state, strict=True) if s is not None}
        for view in list(before.operations)[:-1]:
            evaluate(view.operation, values)
        if condition.operands[0] not in values:
            return []
        if not values[condition.operands[0]]:
            return history
        inside = dict(constants)
        for argument, value in zip(body.arguments, list(condition.operands)[1:], strict=True):
            if value in values:
                inside[argument] = values[value]
        for view in list(body.operations)[:-1]:
            evaluate(view.operation, inside)
        history.append(inside)
        state = [inside.get(value) for value in end.operands]
    return []


def _row(
    op: mlir.Operation,
    dynamic: list[mlir.Value],
    whole: mlir.Value,
    part: mlir.Value,
    history: History,
) -> Row | None:
    """A slice of one row, if which row it is grows evenly."""
    shape = list(mlir.RankedTensorType(whole.type).shape)
    sizes, strides, offsets = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("sizes", "strides", "offsets")
    )
    is_row = shape and sizes == [1, *shape[1:]] and set(strides) == {1} and not any(offsets[1:]) and len(dynamic) == 1
    if not is_row or math.prod(shape) != shape[0] * math.prod(mlir.RankedTensorType(part.type).shape):
        return None
    places = [values[dynamic[0]] for values in history if dynamic[0] in values]
    if len(places) != len(history):
        return None
    start, step = places[0], (places[1] - places[0] if len(places) > 1 else 1)
    even = all(place == start + step * trip for trip, place in enumerate(places))
    return Row(op, start, step) if even and min(places) >= 0 and max(places) < shape[0] else None


def _written_row(
    argument: mlir.Value,
    end: mlir.Operation,
    target: int,
    history: History,
) -> Row | None:
    """The one use of a carried tensor: every step writes a row of it, and all steps together write all of it."""
    uses = list(argument.uses)
    if len(uses) != 1 or uses[0].owner.operation.name != "tensor.insert_slice" or uses[0].operand_number != 1:
        return None
    insert = uses[0].owner.operation
    only = list(insert.results[0].uses)
    if len(only) != 1 or only[0].owner.operation != end or only[0].operand_number != target:
        return None
    row = _row(insert, list(insert.operands)[2:], argument, insert.operands[0], history)
    covers = row is not None and abs(row.step) == 1 and len(history) == mlir.RankedTensorType(argument.type).shape[0]
    return row if covers else None


def _is_outside(value: mlir.Value, body: mlir.Block) -> bool:
    owner = value.owner
    block = owner if isinstance(owner, mlir.Block) else owner.operation.block
    return block != body


def _scalars_stay_inside(body: mlir.Block, end: mlir.Operation, rows: set[mlir.Operation]) -> bool:
    """Whether scalars that change from step to step are used for counting and for rows alone."""
    changing = {value for value in body.arguments if not is_tensor(value)}
    for view in body.operations:
        op = view.operation
        if op in rows or op == end:
            continue
        if not any(value in changing for value in _all_operands(op)):
            continue
        if op.regions or any(is_tensor(value) for value in [*op.operands, *op.results]):
            return False
        changing.update(op.results)
    return True


def _all_operands(op: mlir.Operation) -> list[mlir.Value]:
    found = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += _all_operands(inner.operation)
    return found
