"""Plain loops through upstream bufferisation: the strategy that any op of the input contract has.

One workgroup, no vectors of ours (LLVM finds some). Slow is allowed here; failing is not.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref, scf

from eyas.codegen.common.bufferize import bufferize, inline_body
from eyas.codegen.common.emission.values import BAD_DATA
from eyas.codegen.common.strategies.loops import PlainLoops
from eyas.codegen.llvm_cpu.interface import Interface, new_status, report
from eyas.codegen.llvm_cpu.loop_order import order_loops
from eyas.codegen.llvm_cpu.outer_loops import keep_outer_loops
from eyas.codegen.llvm_cpu.strategies.base import Strategy
from eyas.ir import run_upstream
from eyas.ir.walk import find_ops


@dataclass(frozen=True)
class Loops(PlainLoops, Strategy):
    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        block = function.regions[0].blocks[0]
        name = mlir.StringAttr(function.attributes["sym_name"]).value
        scalars = [argument for argument in block.arguments if not isinstance(argument.type, mlir.RankedTensorType)]
        with mlir.InsertionPoint(module.body), function.operation.location:
            interface = Interface(name, len(scalars))
            with interface.body:
                inline_body(function, interface)
            interface.finish()
        order_loops(module)
        _lower_asserts_after(module)
        run_upstream(module, "convert-linalg-to-loops")
        keep_outer_loops(module)


def _lower_asserts_after(module: mlir.Module) -> None:
    """Bufferises, then turns each assert into a store to a status that the function reports before it returns."""
    bufferize(module)
    for function in find_ops(module, "func.func"):
        asserts = [view.operation for view in find_ops(function, "cf.assert")]
        if not asserts:
            continue
        block = function.operation.regions[0].blocks[0]
        with mlir.InsertionPoint.at_block_begin(block), function.operation.location:
            status = new_status()
        with mlir.InsertionPoint.at_block_terminator(block), function.operation.location:
            report(block.arguments[0], status)
        for op in asserts:
            _lower_assert(op, status)


def _lower_assert(op: mlir.Operation, status: mlir.Value) -> None:
    i1, i32 = mlir.IntegerType.get_signless(1), mlir.IntegerType.get_signless(32)
    with mlir.InsertionPoint(op), op.location:
        branch = scf.IfOp(arith.XOrIOp(op.operands[0], arith.constant(i1, 1)).result)
        with mlir.InsertionPoint(branch.then_block):
            memref.StoreOp(arith.constant(i32, BAD_DATA), status, [arith.constant(mlir.IndexType.get(), 0)])
            scf.YieldOp([])
    op.erase()
