"""`speculate-branches`: both branches of a small `scf.if` are computed, and one result is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir import Pass, run_upstream
from eyas.ir.structured import generic
from eyas.ir.walk import constant_int, entry_block, find_ops, functions, is_tensor
from eyas.passes.optimize.work import points_inside, points_of

# Nothing in here fails, whatever it is given, and all of it ends.
_HARMLESS = ("arith.", "math.", "linalg.", "tensor.", "complex.")
_MAY_FAIL = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildiv", "arith.floordiv")


@dataclass(frozen=True)
class SpeculateBranches(Pass):
    """Takes the ops of both branches out of an `scf.if` and chooses between their results, element by element.

    An `scf.if` is one dispatch of plain loops on one core, with nothing fused, packed or vectorised. Outside, the
    branches are like the rest of the program, which is worth the work of the branch that is not needed unless that is
    large beside the rest. Branches that may fail, write state or run for an unknown time stay where they are.

        %r = scf.if %c -> tensor<1x8xf32> {           %m = linalg.matmul %x, %w
          %m = linalg.matmul %x, %w             =>    %r = linalg.generic ins(%m, %y) { select %c, %m, %y }
          scf.yield %m
        } else { scf.yield %y }
    """

    name: ClassVar[str] = "speculate-branches"
    max_work: int = 1 << 21
    """Points of linalg loops in both branches; a core does about ten million in a millisecond."""

    def run(self, module: mlir.Module) -> None:
        changed = False
        for function in functions(module):
            block = entry_block(function)
            limit = max(self.max_work, points_of(block))
            for view in list(block.operations):
                op = view.operation
                if op.name == "scf.if" and _is_harmless(op) and points_inside(op) <= limit:
                    _take_apart(op)
                    changed = True
        if changed:
            run_upstream(module, "canonicalize,cse")


def branches(op: mlir.Operation) -> list[mlir.Block]:
    return [region.blocks[0] for region in op.regions if len(region.blocks)]


def _is_harmless(op: mlir.Operation) -> bool:
    """Whether both branches can be computed whatever the condition is."""
    return bool(op.results) and all(
        _may_run(view.operation) for block in branches(op) for view in list(block.operations)[:-1]
    )


def _may_run(op: mlir.Operation) -> bool:
    if not all(_is_static(value) for value in op.results):
        return False
    if op.name == "scf.if":
        return _is_harmless(op)
    if op.name.startswith(_MAY_FAIL) and not all(is_tensor(value) for value in op.results):
        return False
    if op.name.startswith("tensor.") and any(_is_place(value) for value in op.operands):
        return False  # it may lie outside when the branch is not taken
    return op.name.startswith(_HARMLESS) and not any(find_ops(op, "cf.assert", "scf.while"))


def _is_static(value: mlir.Value) -> bool:
    return not is_tensor(value) or mlir.RankedTensorType(value.type).has_static_shape


def _is_place(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.IndexType) and constant_int(value) is None


def _take_apart(op: mlir.Operation) -> None:
    for block in branches(op):
        for view in list(block.operations):
            if view.operation.name == "scf.if":
                _take_apart(view.operation)
    results = []
    for block in branches(op):
        *ops, end = [view.operation for view in block.operations]
        for inner in ops:
            inner.move_before(op)
        results.append(list(end.operands))
    with mlir.InsertionPoint(op), op.location:
        for result, one, other in zip(op.results, *results, strict=True):
            result.replace_all_uses_with(_chosen(op.operands[0], one, other))
    op.erase()


def _chosen(condition: mlir.Value, one: mlir.Value, other: mlir.Value) -> mlir.Value:
    if not is_tensor(one):
        return arith.select(condition, one, other)
    type_ = mlir.RankedTensorType(one.type)
    identity = mlir.AffineMap.get_identity(type_.rank)
    init = tensor.empty(list(type_.shape), type_.element_type)
    made = generic([one, other], [init], [identity] * 3, ["parallel"] * type_.rank)
    block = made.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([arith.select(condition, *list(block.arguments)[:2])])
    return made.results[0]
