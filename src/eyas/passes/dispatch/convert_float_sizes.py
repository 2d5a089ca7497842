"""`convert-float-sizes`: sizes that are computed with floats are computed with integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.ir import Pass
from eyas.ir.walk import defining_op, entry_block, functions

_LARGEST_TERM = 1024


@dataclass(frozen=True)
class ConvertFloatSizes(Pass):
    """Writes a size times a constant, rounded to an integer, as integer arithmetic, where the constant is a fraction of
    small numbers. That is how resizing by a scale is imported; the host program that computes sizes has no floats.

    A float product of a size and such a constant is exact as long as the size is below 2^14, and its floor is the same
    far beyond.

        %f = arith.sitofp %size : i64 to f32
        %g = math.floor (arith.mulf %f, 2.5)
        %n = arith.fptosi %g : f32 to i64
      becomes
        %n = arith.floordivsi (arith.muli %size, 5), 2
    """

    name: ClassVar[str] = "convert-float-sizes"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            for op in [op for op in entry_block(function).operations if op.operation.name == "arith.fptosi"]:
                with mlir.InsertionPoint(op), op.operation.location:
                    _convert(op.operation)


def _convert(op: mlir.Operation) -> None:
    source = defining_op(op.operands[0])
    divide = arith.FloorDivSIOp
    if source is not None and source.name in ("math.floor", "math.ceil", "math.trunc"):
        # Sizes are not negative: rounding towards zero is rounding down.
        divide = arith.CeilDivSIOp if source.name == "math.ceil" else divide
        source = defining_op(source.operands[0])
    scaled = _scaled_size(source)
    if scaled is None or scaled[0].type != op.results[0].type:
        return
    size, factor = scaled
    if factor.numerator != 1:
        size = arith.MulIOp(size, _constant(size.type, factor.numerator)).result
    if factor.denominator != 1:
        size = divide(size, _constant(size.type, factor.denominator)).result
    op.results[0].replace_all_uses_with(size)
    op.erase()


def _scaled_size(op: mlir.Operation | None) -> tuple[mlir.Value, Fraction] | None:
    """An integer and the constant that it is multiplied with."""
    if op is None:
        return None
    if op.name in ("arith.sitofp", "arith.uitofp"):
        return op.operands[0], Fraction(1)
    if op.name not in ("arith.mulf", "arith.divf"):
        return None
    left, right = (defining_op(value) for value in op.operands)
    if op.name == "arith.mulf" and left is not None and left.name == "arith.constant":
        left, right = right, left
    if left is None or right is None or left.name not in ("arith.sitofp", "arith.uitofp"):
        return None
    if right.name != "arith.constant" or not isinstance(right.attributes["value"], mlir.FloatAttr):
        return None
    constant = right.attributes["value"].value
    if not 0 < constant < _LARGEST_TERM:
        return None
    factor = Fraction(constant) if op.name == "arith.mulf" else 1 / Fraction(constant)
    if max(factor.numerator, factor.denominator) > _LARGEST_TERM:
        return None
    return left.operands[0], factor


def _constant(type_: mlir.Type, value: int) -> mlir.Value:
    return arith.ConstantOp(type_, mlir.IntegerAttr.get(type_, value)).result
