"""`count-loops`: loops whose steps are known become `scf.for`, and say of each row which one it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf, tensor

from eyas.ir import Pass, run_upstream
from eyas.ir.structured import index_constant
from eyas.ir.walk import entry_block, find_ops, functions, is_tensor, nested_operands, remap_operands
from eyas.passes.optimize.counted_loops import CountedLoop, Row, counted_loop
from eyas.passes.optimize.gathered_rows import slice_gathers
from eyas.passes.optimize.unwrapped_loops import unwrap


@dataclass(frozen=True)
class CountLoops(Pass):
    """Rewrites `scf.while` as `scf.for` where every step is known and nothing but rows depends on which one it is.

    Frontends count in ways of their own, with clamped indices, flags that are carried, and tensors of one integer. What
    is left here are states, rows that steps read and rows that they write, which `outline-control-flow` and the
    strategy `recurrence` understand.

        %r:3 = scf.while (%go = true, %i = 0, %h = %a) {       %r = scf.for %t = 0 to 5 iter_args(%h = %a) {
          scf.condition(%go) %i, %h } do {                =>     %at = 4 - %t
          %at = max(min(4 - %i, 4), 0) ...                       tensor.extract_slice %xs[%at, 0] ...
          scf.yield %i + 1 < 5, %i + 1, %new }                   scf.yield %new }
    """

    name: ClassVar[str] = "count-loops"

    def run(self, module: mlir.Module) -> None:
        loops = [view for function in functions(module) for view in entry_block(function).operations]
        loops = [view.operation for view in loops if view.operation.name == "scf.while"]
        if any([unwrap(loop) for loop in loops]):
            run_upstream(module, "canonicalize,cse")
        loops = find_ops(module, "scf.for", "scf.while")
        if any([slice_gathers(loop.operation.regions[-1].blocks[0]) for loop in loops]):
            run_upstream(module, "canonicalize,cse")
        for function in functions(module):
            for view in list(entry_block(function).operations):
                if view.operation.name == "scf.while":
                    loop = counted_loop(view.operation)
                    has_counts = any(list(result.uses) for result in view.results if not is_tensor(result))
                    if loop is not None and not has_counts:
                        with mlir.InsertionPoint(view), view.operation.location:
                            _rewrite(loop)


def _rewrite(loop: CountedLoop) -> None:
    positions = [position for position, value in enumerate(loop.body.arguments) if is_tensor(value)]
    # Every row of a tensor of rows is written: what it begins as does not matter.
    starts = [_empty(loop.start(p)) if p in loop.rows else loop.start(p) for p in positions]
    made = scf.ForOp(index_constant(0), index_constant(loop.trips), index_constant(1), starts)
    known = {loop.body.arguments[p]: new for p, new in zip(positions, made.inner_iter_args, strict=True)}
    rows = {row.slice: row for row in [*loop.reads, *loop.rows.values()]}
    # What a step uses but does not say, it has from outside.
    inside = {value for view in loop.body.operations for value in view.results} | set(loop.body.arguments)
    with mlir.InsertionPoint(made.body):
        for view in list(loop.body.operations)[:-1]:
            op = view.operation
            row = rows.get(op)
            tensors = [value for value in nested_operands(op) if value in inside and (row is None or is_tensor(value))]
            if any(value not in known for value in tensors):
                continue  # counting
            place = None if row is None else _place(row, made.induction_variable)
            copy = op.clone().operation
            if place is not None:
                copy.operands[len(copy.operands) - 1] = place
            remap_operands(copy, known)
            known.update(zip(op.results, copy.results, strict=True))
        following = [loop.next(position) for position in positions]
        scf.YieldOp([known.get(value, value) for value in following])
    for position, new in zip(positions, made.results, strict=True):
        loop.result(position).replace_all_uses_with(new)
    loop.op.erase()


def _empty(value: mlir.Value) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    return tensor.empty(list(type_.shape), type_.element_type)


def _place(row: Row, index: mlir.Value) -> mlir.Value:
    """Which row it is in a step."""
    if row.step == 1:
        return arith.addi(index, index_constant(row.start)) if row.start else index
    if row.step == -1:
        return arith.subi(index_constant(row.start), index)
    return arith.addi(arith.muli(index, index_constant(row.step)), index_constant(row.start))
