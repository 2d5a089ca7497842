"""`guard-powers`: zero to a negative power is zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.passes.lanes import element_type, splat
from eyas.ir import Pass
from eyas.ir.walk import find_ops


@dataclass(frozen=True)
class GuardPowers(Pass):
    """A power of integers with a negative exponent is what is left of a fraction, that is, 0 unless the base is 1 or
    -1. What upstream makes of `math.ipowi` divides by zero where the base is 0; two does as well there.

        %r = math.ipowi %a, %b   =>   %r = math.ipowi (%b < 0 and %a == 0 ? 2 : %a), %b
    """

    name: ClassVar[str] = "guard-powers"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "math.ipowi"):
            with mlir.InsertionPoint(op), op.operation.location:
                op.operation.operands[0] = _safe_base(*op.operands)


def _safe_base(base: mlir.Value, exponent: mlir.Value) -> mlir.Value:
    negative = arith.cmpi(arith.CmpIPredicate.slt, exponent, _constant(exponent.type, 0))
    none = arith.cmpi(arith.CmpIPredicate.eq, base, _constant(base.type, 0))
    return arith.select(arith.andi(negative, none), _constant(base.type, 2), base)


def _constant(type_: mlir.Type, value: int) -> mlir.Value:
    return splat(type_, mlir.IntegerAttr.get(element_type(type_), value))
