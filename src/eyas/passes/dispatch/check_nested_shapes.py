"""`check-nested-shapes`: sizes that ops inside of loops and branches take to agree are compared as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, cf, tensor

from eyas.dialects import flow
from eyas.ir import Pass, run_upstream
from eyas.ir.structured import index_constant
from eyas.ir.walk import defining_op, entry_block, find_ops, functions, remap_operands, values_inside
from eyas.passes.dispatch.check_shapes import Checks
from eyas.passes.dispatch.shapes import dims_of
from eyas.passes.dispatch.tie_shapes import resolve_sizes

# On asserts of this pass until it is known where they go.
_NEW = "flow.nested_check"


@dataclass(frozen=True)
class CheckNestedShapes(Pass):
    """Adds a `cf.assert` for each pair of sizes that an op inside of a loop or a branch needs to be equal, and for
    whatever else `check-shapes` asks of ops outside of them. What follows from sizes that are known before a loop is
    asked before it, if the loop takes a step at all; what a branch needs is asked in the branch. Sizes that change from
    step to step in ways that cannot be computed are left alone.

        scf.for ... { linalg.add ins(%row_of_x, %row_of_y : tensor<?xf32>, tensor<?xf32>) }
      becomes
        cf.assert (%dim_x == %dim_y || no step), "two sizes must be equal ..."
        scf.for ... { linalg.add ins(%row_of_x, %row_of_y : tensor<?xf32>, tensor<?xf32>) }
    """

    name: ClassVar[str] = "check-nested-shapes"

    def run(self, module: mlir.Module) -> None:
        changed = False
        for function in functions(module):
            for op in list(_nested(entry_block(function))):
                checks = _NestedChecks(entry_block(function))
                checks.add(op)
                changed |= checks.changed
        if not changed:
            return
        resolve_sizes(module)
        run_upstream(module, "cse,canonicalize")
        for function in functions(module):
            for check in find_ops(function, "cf.assert"):
                if _NEW in check.operation.attributes:
                    del check.operation.attributes[_NEW]
                    _place(check.operation, entry_block(function))


class _NestedChecks(Checks):
    """Sizes of what is inside are asked where they are needed; none takes the place of another."""

    def __init__(self, outside: mlir.Block):
        super().__init__()
        self._outside = outside
        self.changed = False

    def dims(self, value: mlir.Value) -> list[mlir.Value]:
        block = value.owner if isinstance(value.owner, mlir.Block) else value.owner.operation.block
        if block == self._outside:
            return dims_of(value)
        return [tensor.DimOp(value, index_constant(dim)).result for _, dim in flow.dynamic_dims([value])]

    def require(self, holds: mlir.Value, message: str) -> None:
        cf.AssertOp(holds, message).operation.attributes[_NEW] = mlir.UnitAttr.get()
        self.changed = True

    def unify(self, left: mlir.Value, right: mlir.Value, message: str) -> None:
        self.require(arith.CmpIOp(arith.CmpIPredicate.eq, left, right).result, message)


def _nested(block: mlir.Block) -> Iterator[mlir.Operation]:
    """The ops inside of ops that have control flow, at any depth."""
    for view in block.operations:
        op = view.operation
        if not op.name.startswith("scf.") and not flow.is_while(op):
            continue
        for region in op.regions:
            for inner in region.blocks:
                yield from (nested.operation for nested in inner.operations)
                yield from _nested(inner)


def _place(check: mlir.Operation, outside: mlir.Block) -> None:
    """Moves a check out of the loops around it, as far as what it compares is known there."""
    while check.block != outside:
        parent = check.parent.operation
        inside = values_inside(parent)
        behind = _made_inside(check.operands[0], inside)
        if not all(_is_size(op, inside) for op in behind):
            check.erase()
            return
        reads = [value for op in (check, *behind) for value in op.operands if value in inside]
        if any(isinstance(value.owner, mlir.Block) for value in reads):
            return
        copies: dict[mlir.Value, mlir.Value] = {}
        with mlir.InsertionPoint(parent), check.location:
            if (unused := _takes_no_step(parent)) is None:
                return
            for op in behind:
                copy = op.clone().operation
                remap_operands(copy, copies)
                copies.update(zip(op.results, copy.results, strict=True))
            holds = arith.OrIOp(copies.get(check.operands[0], check.operands[0]), unused).result
            moved = cf.AssertOp(holds, mlir.StringAttr(check.attributes["msg"]).value).operation
        check.erase()
        check = moved


def _takes_no_step(loop: mlir.Operation) -> mlir.Value | None:
    """Whether a loop ends at once, computed before it; None where that is not plain to see."""
    if loop.name == "scf.for":
        return arith.CmpIOp(arith.CmpIPredicate.sge, loop.operands[0], loop.operands[1]).result
    if loop.name == "scf.while":
        before = loop.regions[0].blocks[0]
        goes_on = before.operations[0].operands[0]
        if before.operations[0].operation.name == "scf.condition" and goes_on.owner == before:
            first = loop.operands[mlir.BlockArgument(goes_on).arg_number]
            return arith.XOrIOp(first, arith.ConstantOp(first.type, 1).result).result
    return None


def _made_inside(value: mlir.Value, inside: set[mlir.Value]) -> list[mlir.Operation]:
    """The ops inside that a value is made of, each after what it reads."""
    found: dict[mlir.Operation, None] = {}

    def visit(value: mlir.Value) -> None:
        op = defining_op(value)
        if op is None or value not in inside or op in found:
            return
        for operand in op.operands:
            visit(operand)
        found[op] = None

    visit(value)
    return list(found)


def _is_size(op: mlir.Operation, inside: set[mlir.Value]) -> bool:
    """Arithmetic, or a size of what is there before: what a loop makes may have any."""
    return op.name.startswith("arith.") or (op.name == "tensor.dim" and op.operands[0] not in inside)
