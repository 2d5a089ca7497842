"""Loops whose condition is itself made of loops or branches get one that is a value.

A `scf.while` becomes a SPIR-V loop whose header is the block that computes the condition. Upstream's serialiser splits
that block where something structured is in it, and then names the wrong half of it in the header's OpPhi.
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import scf

from eyas.ir.walk import find_ops, remap_operands


def rotate_whiles(module: mlir.Module) -> None:
    """Computes a structured condition before the loop, and again at the end of its body.

    scf.while (%a = %x) { %c = f(%a), scf.condition(%c) %b } do { ^(%b): g, scf.yield %d }
      ->
    %c0, %b0 = f(%x) ; scf.while (%c = %c0, %b = %b0) { scf.condition(%c) %b } do { g ; %c1, %b1 = f(%d) ; ... }
    """
    # The innermost come first: rotating a loop copies those in it.
    for loop in find_ops(module, "scf.while"):
        test = loop.regions[0].blocks[0]
        if any(len(op.operation.regions) for op in test.operations):
            with mlir.InsertionPoint(loop), loop.operation.location:
                _rotate(loop, test)


def _rotate(loop: mlir.OpView, test: mlir.Block) -> None:
    first = _copy(test, list(loop.operands))
    kinds = [value.type for value in loop.results]
    flag = first[0].type
    made = scf.WhileOp([flag, *kinds], first)
    before = made.before.blocks.append(flag, *kinds)
    with mlir.InsertionPoint(before):
        scf.ConditionOp(before.arguments[0], before.arguments)
    after = made.after.blocks.append(flag, *kinds)
    with mlir.InsertionPoint(after):
        yielded = _copy(loop.regions[1].blocks[0], list(after.arguments)[1:])
        scf.YieldOp(_copy(test, yielded))
    for old, new in zip(loop.results, list(made.results)[1:], strict=True):
        old.replace_all_uses_with(new)
    loop.operation.erase()


def _copy(block: mlir.Block, arguments: list[mlir.Value]) -> list[mlir.Value]:
    """Copies the ops of a block to the current place, and gives what its terminator passes on."""
    values = dict(zip(block.arguments, arguments, strict=True))
    *ops, last = block.operations
    for op in ops:
        clone = op.operation.clone().operation
        remap_operands(clone, values)
        values.update(zip(op.results, clone.results, strict=True))
    return [values.get(operand, operand) for operand in last.operands]
