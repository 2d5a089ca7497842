"""`guard-conversions`: a float that is no integer of the type becomes one all the same, the same on every CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.passes.lanes import element_type, splat, with_element
from eyas.ir import Pass
from eyas.ir.walk import find_ops

_EXACT_BITS = {32: 24, 64: 53}
"""Integers of so many bits are floats of that width, all of them."""


@dataclass(frozen=True)
class GuardConversions(Pass):
    """Saturates at 32 and 64 bits, with 0 for NaN; narrower integers are the lower bits of 32. Bytecode does the same,
    and so do frameworks with bytes, of which -1.0 is the largest.

    LLVM calls the result of such a conversion poison. That is another number with each instruction set and vector
    width, and worse: an i8 made so may hold 300 in its register, and a check of an index against 256 is left out.

        %r = arith.fptosi %x : f32 to i32   =>   %r = (%x == %x ? fptosi(min(max(%x, -2^31), 2^31 - 128)) : 0)
        %r = arith.fptoui %x : f32 to i8    =>   %r = trunci(%x to i32, signed)
    """

    name: ClassVar[str] = "guard-conversions"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "arith.fptosi", "arith.fptoui"):
            with mlir.InsertionPoint(op), op.operation.location:
                op.results[0].replace_all_uses_with(_converted(op))
            op.operation.erase()


def _converted(op: mlir.OpView) -> mlir.Value:
    x, type_, signed = op.operands[0], op.results[0].type, op.operation.name == "arith.fptosi"
    if mlir.IntegerType(element_type(type_)).width >= 32:
        return _saturated(x, type_, signed)
    wide = with_element(type_, mlir.IntegerType.get_signless(32))
    return arith.trunci(type_, _saturated(x, wide, signed=True))


def _saturated(x: mlir.Value, type_: mlir.Type, signed: bool) -> mlir.Value:
    if mlir.FloatType(element_type(x.type)).width < 32:
        x = arith.extf(with_element(x.type, mlir.F32Type.get()), x)
    bits, exact = mlir.IntegerType(element_type(type_)).width, _EXACT_BITS[mlir.FloatType(element_type(x.type)).width]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    # The largest float among the integers: where they have more bits than a float, the rest of it is zeros.
    top = high if bits <= exact else high + 1 - (1 << (bits - exact - signed))
    bottom, ceiling = _real(x.type, low), _real(x.type, top)
    over = arith.cmpf(arith.CmpFPredicate.OGT, x, ceiling)
    # NaN is not greater than anything, so it becomes the lower end: that is 0 already where integers are unsigned.
    inside = arith.select(arith.cmpf(arith.CmpFPredicate.OGT, x, bottom), x, bottom)
    inside = arith.select(over, ceiling, inside)
    made = (arith.fptosi if signed else arith.fptoui)(type_, inside)
    if top != high:
        made = arith.select(over, _integer(type_, high if signed else -1), made)
    if signed:
        made = arith.select(arith.cmpf(arith.CmpFPredicate.ORD, x, x), made, _integer(type_, 0))
    return made


def _real(type_: mlir.Type, value: int) -> mlir.Value:
    return splat(type_, mlir.FloatAttr.get(element_type(type_), float(value)))


def _integer(type_: mlir.Type, value: int) -> mlir.Value:
    return splat(type_, mlir.IntegerAttr.get(element_type(type_), value))
