"""`guard-division`: integer division never traps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.passes.lanes import element_type, splat
from eyas.ir import Pass
from eyas.ir.walk import constant_int, find_ops

_SIGNED = ("arith.divsi", "arith.remsi", "arith.ceildivsi", "arith.floordivsi")
_UNSIGNED = ("arith.divui", "arith.remui", "arith.ceildivui")


@dataclass(frozen=True)
class GuardDivision(Pass):
    """Divides by 1 where the divisor is 0, or is -1 under the smallest integer: processors raise a signal for those.

    Lanes that are masked off hold zeros, so this matters even where the data has none. The smallest integer divided by
    1 is what wrapping division by -1 gives; a division by zero has no right answer, and gives its dividend.

        %r = arith.divsi %a, %b   =>   %r = arith.divsi %a, (%b == 0 or (%b == -1 and %a == min) ? 1 : %b)
    """

    name: ClassVar[str] = "guard-division"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_SIGNED, *_UNSIGNED):
            divisor = constant_int(op.operands[1])
            if divisor is None or divisor in (0, -1):
                with mlir.InsertionPoint(op), op.operation.location:
                    op.operation.operands[1] = _safe_divisor(op)


def _safe_divisor(op: mlir.OpView) -> mlir.Value:
    dividend, divisor = op.operands
    equal = arith.CmpIPredicate.eq
    bad = arith.CmpIOp(equal, divisor, _constant(divisor.type, 0)).result
    if op.operation.name in _SIGNED:
        element = element_type(divisor.type)
        bits = element.width if isinstance(element, mlir.IntegerType) else 64
        smallest = arith.CmpIOp(equal, dividend, _constant(dividend.type, -(1 << (bits - 1)))).result
        minus_one = arith.CmpIOp(equal, divisor, _constant(divisor.type, -1)).result
        bad = arith.OrIOp(bad, arith.AndIOp(smallest, minus_one).result).result
    return arith.SelectOp(bad, _constant(divisor.type, 1), divisor).result


def _constant(type_: mlir.Type, value: int) -> mlir.Value:
    return splat(type_, mlir.IntegerAttr.get(element_type(type_), value))
