"""`guard-shifts`: a shift by the width and more has a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.passes.lanes import element_type, splat
from eyas.ir import Pass
from eyas.ir.walk import constant_int, find_ops


@dataclass(frozen=True)
class GuardShifts(Pass):
    """Shifts by an amount below the width, and gives what is left of a number after a longer shift.

    Frameworks say that nothing is left: zeros, or the sign. LLVM says poison, which is another number with each
    instruction set: x86 has no shifts of bytes, and what stands in for them looks at three bits of the amount. A
    negative amount is a large one.

        %r = arith.shli %a, %b : i8   =>   %r = (%b <u 8 ? %a << %b : 0)
        %r = arith.shrsi %a, %b : i8  =>   %r = %a >> minu(%b, 7)
    """

    name: ClassVar[str] = "guard-shifts"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "arith.shli", "arith.shrui", "arith.shrsi"):
            bits = _bits(op.operands[1].type)
            amount = constant_int(op.operands[1])
            if amount is not None and 0 <= amount < bits:
                continue
            with mlir.InsertionPoint(op), op.operation.location:
                op.results[0].replace_all_uses_with(_guarded(op, bits))
            op.operation.erase()


def _guarded(op: mlir.OpView, bits: int) -> mlir.Value:
    value, amount = op.operands
    last = _constant(amount.type, bits - 1)
    # Also where the result is not taken: what LLVM calls poison may not be made.
    bounded = arith.minui(amount, last)
    if op.operation.name == "arith.shrsi":
        return arith.shrsi(value, bounded)
    shifted = (arith.shli if op.operation.name == "arith.shli" else arith.shrui)(value, bounded)
    return arith.select(arith.cmpi(arith.CmpIPredicate.ule, amount, last), shifted, _constant(amount.type, 0))


def _bits(type_: mlir.Type) -> int:
    element = element_type(type_)
    return mlir.IntegerType(element).width if isinstance(element, mlir.IntegerType) else 64


def _constant(type_: mlir.Type, value: int) -> mlir.Value:
    return splat(type_, mlir.IntegerAttr.get(element_type(type_), value))
