"""`convert-stablehlo-control-flow`: loops and branches become scf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, scf, tensor

from eyas.ir import Pass, mlir


@dataclass(frozen=True)
class ConvertStablehloControlFlow(Pass):
    """Turns `stablehlo.while`, `if` and `case` into `scf.while` and `scf.if` on tensors.

    `case` becomes a chain of `scf.if`: an index outside the branches takes the last one, as StableHLO says.

        %r = stablehlo.while(%i = %a) : tensor<i32>
          cond { ... stablehlo.return %c : tensor<i1> }
          do { ... stablehlo.return %n : tensor<i32> }
    becomes
        %r = scf.while (%i = %a) : (tensor<i32>) -> tensor<i32> {
          ... %b = tensor.extract %c[] : tensor<i1>
          scf.condition(%b) %i : tensor<i32>
        } do { ... scf.yield %n : tensor<i32> }
    """

    name: ClassVar[str] = "convert-stablehlo-control-flow"

    def run(self, module: mlir.Module) -> None:
        ops: list[mlir.Operation] = []

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            if op.name in _CONVERSIONS:
                ops.append(op)
            return mlir.WalkResult.ADVANCE

        # Inner ones first, so that a moved region holds no op of ours that is still to be converted.
        module.operation.walk(visit, mlir.WalkOrder.POST_ORDER)
        for op in ops:
            with mlir.InsertionPoint(op), op.location:
                results = _CONVERSIONS[op.name](op)
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()


def _convert_while(op: mlir.Operation) -> list[mlir.Value]:
    loop = scf.WhileOp([value.type for value in op.operands], list(op.operands))
    condition, body = (region.blocks[0] for region in op.regions)
    condition.append_to(loop.before)
    body.append_to(loop.after)
    before, after = loop.before.blocks[0], loop.after.blocks[0]
    end = list(before.operations)[-1]
    with mlir.InsertionPoint(end), end.location:
        scf.ConditionOp(tensor.extract(end.operands[0], []), list(before.arguments))
    end.operation.erase()
    _yield_instead_of_return(after)
    return list(loop.results)


def _convert_if(op: mlir.Operation) -> list[mlir.Value]:
    return _choose(tensor.extract(op.operands[0], []), op, op.regions[0], op.regions[1])


def _convert_case(op: mlir.Operation) -> list[mlir.Value]:
    index = tensor.extract(op.operands[0], [])
    return _choose_branch(op, index, 0)


def _choose_branch(op: mlir.Operation, index: mlir.Value, branch: int) -> list[mlir.Value]:
    last = len(op.regions) - 1
    if branch == last:
        # A single branch: its body runs whatever the index is.
        return _choose(arith.constant(mlir.IntegerType.get_signless(1), 1), op, op.regions[last], None)
    here = arith.cmpi(arith.CmpIPredicate.eq, index, arith.constant(index.type, branch))
    if branch == last - 1:
        return _choose(here, op, op.regions[branch], op.regions[last])
    chosen = scf.IfOp(here, [result.type for result in op.results], has_else=True)
    _move(op.regions[branch], chosen.then_block)
    with mlir.InsertionPoint(chosen.else_block):
        scf.YieldOp(_choose_branch(op, index, branch + 1))
    return list(chosen.results)


def _choose(
    condition: mlir.Value, op: mlir.Operation, then: mlir.Region, otherwise: mlir.Region | None
) -> list[mlir.Value]:
    chosen = scf.IfOp(condition, [result.type for result in op.results], has_else=True)
    _move(then, chosen.then_block)
    if otherwise is not None:
        _move(otherwise, chosen.else_block)
    else:
        with mlir.InsertionPoint(chosen.else_block):
            scf.YieldOp([tensor.empty(list(result.type.shape), result.type.element_type) for result in op.results])
    return list(chosen.results)


def _move(region: mlir.Region, block: mlir.Block) -> None:
    """Moves a branch's ops to the end of an empty block."""
    with mlir.InsertionPoint(block):
        anchor = scf.YieldOp([])
    for inner in list(region.blocks[0].operations):
        inner.operation.move_before(anchor.operation)
    anchor.operation.erase()
    _yield_instead_of_return(block)


def _yield_instead_of_return(block: mlir.Block) -> None:
    end = list(block.operations)[-1]
    assert end.operation.name == "stablehlo.return", end.operation.name
    with mlir.InsertionPoint(end), end.location:
        scf.YieldOp(list(end.operands))
    end.operation.erase()


_CONVERSIONS = {
    "stablehlo.while": _convert_while,
    "stablehlo.if": _convert_if,
    "stablehlo.case": _convert_case,
}
