"""`batch-loops`: loops whose steps do not depend on each other are computed for all steps at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.ir import Pass
from eyas.ir.structured import element_type, index_constant
from eyas.ir.walk import find_ops, is_tensor, nested_operands
from eyas.passes.optimize.batched_rows import written_rows
from eyas.passes.optimize.batching import Batch, Refused
from eyas.passes.optimize.counted_loops import CountedLoop, passes_tensors
from eyas.passes.optimize.loop_steps import Place, Steps, steps_of

Rows = dict[int, mlir.Operation | None]
"""For each tensor that a loop carries, what writes a row of it in each step; None where it stays as it is."""

# What a dynamic dimension counts as.
_UNKNOWN_SIZE = 64


@dataclass(frozen=True)
class BatchLoops(Pass):
    """Gives each op of a loop's body a leading dimension for the step, where steps read and write rows of tensors and
    hand nothing on to the next step; then there is no loop.

    That is what `Scan` without a state, `lax.map` and the like are. As plain linalg they are fused, vectorised and
    shared among cores, which a loop on tensors is not. What steps make and throw away is there for all steps at once
    then: loops for which that is more than `max_bytes` stay. The number of steps may be open.

        %ys = scf.for %i = 0 to %n iter_args(%y = %z) {          %ys = linalg.generic [%n x 8] ins(%xs) {...}
          %x = tensor.extract_slice %xs[%i, 0] [1, 8]      =>
          %v = linalg.generic [8] ins(%x) {...}
          scf.yield (tensor.insert_slice %v into %y[%i, 0]) }
    """

    name: ClassVar[str] = "batch-loops"
    max_bytes: int = 128 << 20

    def run(self, module: mlir.Module) -> None:
        # Inner loops come after those around them: theirs is the body that is to be without loops.
        for view in reversed(find_ops(module, "scf.for", "scf.while")):
            rows = _written(view.operation)
            steps = None if rows is None else steps_of(view.operation)
            if rows is not None and steps is not None and self._is_bounded(steps):
                _batch(steps, rows)

    def _is_bounded(self, steps: Steps) -> bool:
        count = _UNKNOWN_SIZE if steps.count is None else steps.count
        return (
            count > 1 and count * sum(_bytes_made(view.operation) for view in steps.body.operations) <= self.max_bytes
        )


def _bytes_made(op: mlir.Operation) -> int:
    """What a step has in memory that was made by a linalg op."""
    if not op.name.startswith("linalg."):
        return 0
    total = 0
    for result in op.results:
        type_ = mlir.RankedTensorType(result.type)
        width = getattr(element_type(result), "width", 64)
        sizes = [_UNKNOWN_SIZE if type_.is_dynamic_dim(dim) else type_.shape[dim] for dim in range(type_.rank)]
        total += math.prod(sizes) * max(width // 8, 1)
    return total


def _batch(steps: Steps, rows: Rows) -> None:
    op = steps.op
    with mlir.InsertionPoint(op), op.location:
        first = index_constant(0).owner.operation  # what is emitted lies between it and the loop
        try:
            made = _results(steps, rows)
        except Refused:
            _erase_between(first, op)
            return
    for result, value in zip(op.results, made, strict=True):
        if value is not None:
            result.replace_all_uses_with(value)
    op.erase()


def _results(steps: Steps, rows: Rows) -> list[mlir.Value | None]:
    batch, loop = Batch(steps), CountedLoop(steps.op, 0, (), {}, ())
    for position, insert in rows.items():
        if insert is None:
            batch.same[steps.body.arguments[position]] = loop.start(position)
    inserts = [insert for insert in rows.values() if insert is not None]
    for op in _needed(steps.body, inserts):
        batch.visit(op)
    made: list[mlir.Value | None] = []
    for position, argument in enumerate(steps.body.arguments):
        if steps.op.name == "scf.for" and position == 0:
            continue
        if position not in rows:
            made.append(_last(batch, steps.counters.get(argument), loop.result(position)))
        elif (insert := rows[position]) is None:
            made.append(loop.start(position))
        else:
            made.append(written_rows(batch, insert, loop.start(position)))
    return made


def _needed(body: mlir.Block, inserts: list[mlir.Operation]) -> list[mlir.Operation]:
    """Ops that rows are made by, and those that may fail; what only counts is not among them."""
    ops = [view.operation for view in body.operations]
    wanted = {value for insert in inserts for value in insert.operands}
    found = []
    for op in reversed(ops):
        if op not in inserts and (op.name == "cf.assert" or any(result in wanted for result in op.results)):
            wanted.update(nested_operands(op))
            found.append(op)
    return found[::-1]


def _last(batch: Batch, place: Place | None, result: mlir.Value) -> mlir.Value | None:
    """What a count is after the last step."""
    if not any(True for _ in result.uses):
        return None
    if place is None:
        raise Refused("a number that is not counted")
    count = index_constant(batch.count) if isinstance(batch.count, int) else batch.count
    number = arith.addi(arith.muli(count, index_constant(place.step)), index_constant(place.start))
    return number if result.type == mlir.IndexType.get() else arith.index_cast(result.type, number)


def _written(op: mlir.Operation) -> Rows | None:
    """No answer where a tensor depends on the step before in another way, or no rows are written."""
    loop, found = CountedLoop(op, 0, (), {}, ()), {}
    if op.name == "scf.while" and not passes_tensors(op.regions[0].blocks[0], _carried(op)):
        return None
    for position, argument in enumerate(loop.body.arguments):
        if not is_tensor(argument):
            continue
        following = loop.next(position)
        if following == argument:
            found[position] = None
            continue
        uses = [use for use in argument.uses if use.owner.operation.name != "tensor.dim"]
        if len(uses) != 1 or uses[0].owner.operation.name != "tensor.insert_slice" or uses[0].operand_number != 1:
            return None
        insert = uses[0].owner.operation
        only = list(insert.results[0].uses)
        if insert.block != loop.body or insert.results[0] != following or len(only) != 1:
            return None
        found[position] = insert
    return found if any(found.values()) else None


def _carried(op: mlir.Operation) -> list[mlir.Value]:
    condition = list(op.regions[0].blocks[0].operations)[-1].operation
    return list(condition.operands)[1:]


def _erase_between(first: mlir.Operation, last: mlir.Operation) -> None:
    """Takes back what was emitted."""
    block, emitted, inside = first.block, [], False
    for view in block.operations:
        if view.operation == first:
            inside = True
        if view.operation == last:
            break
        if inside:
            emitted.append(view.operation)
    for op in reversed(emitted):
        op.erase()
