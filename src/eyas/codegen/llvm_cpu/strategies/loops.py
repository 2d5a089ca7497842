"""Plain loops through upstream bufferisation: the strategy that any op of the input contract has.

One workgroup, no vectors of ours (LLVM finds some). Slow is allowed here; failing is not.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref, scf

from eyas.codegen.common.bufferize import bufferize, inline_body
from eyas.codegen.common.strategies.loops import PlainLoops
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.codegen.llvm_cpu.strategies.base import Strategy


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
        _lower_asserts_after(module)


def _lower_asserts_after(module: mlir.Module) -> None:
    """Bufferises, then turns each assert into a store to the status that the function returns."""
    bufferize(module)
    asserts: list[mlir.Operation] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name == "cf.assert":
            asserts.append(op)
        return mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    i1, i32 = mlir.IntegerType.get_signless(1), mlir.IntegerType.get_signless(32)
    for op in asserts:
        function = op.parent
        while function.operation.name != "func.func":
            function = function.operation.parent
        status = next(o.result for o in function.regions[0].blocks[0].operations if o.operation.name == "memref.alloca")
        with mlir.InsertionPoint(op), op.location:
            failed = arith.XOrIOp(op.operands[0], arith.ConstantOp(i1, mlir.BoolAttr.get(True)).result).result
            branch = scf.IfOp(failed)
            with mlir.InsertionPoint(branch.then_block):
                one = arith.ConstantOp(i32, mlir.IntegerAttr.get(i32, 1)).result
                zero = arith.ConstantOp(mlir.IndexType.get(), mlir.IntegerAttr.get(mlir.IndexType.get(), 0)).result
                memref.StoreOp(one, status, [zero])
                scf.YieldOp([])
        op.erase()
