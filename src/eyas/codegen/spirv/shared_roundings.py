"""An f16 that is stored and computed with is one number.

NVIDIA's driver leaves out a conversion to f16 that is followed by one back, and the rounding with it. Where all readers
of a result are such, they see the same number, with more digits than its type has. But powers of a softmax that are
summed before they were rounded, and divided after, do not add up to one. There the rounding is made of arithmetic.
"""

from __future__ import annotations

from math import inf

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math

from eyas.codegen.common.passes.lanes import element_type, splat, with_element
from eyas.ir.walk import defining_op, find_ops

_PLACES = 13
"""By so many bits a mantissa of f32 is longer."""
_LARGEST = 65504.0


def round_what_is_stored(module: mlir.Module) -> None:
    """Replaces f32 -> f16 -> f32 of an f16 that is not only widened again.

    %h = arith.truncf %x : f32 to f16 ; store %h ; %r = arith.extf %h   =>   store %h ; %r = copysign((|x| + m) - m, x)
    """
    for op in find_ops(module, "arith.extf"):
        made = defining_op(op.operands[0])
        if made is None or made.name != "arith.truncf" or made.operands[0].type != op.results[0].type:
            continue
        if not isinstance(element_type(op.operands[0].type), mlir.F16Type):
            continue
        if all(use.owner.operation.name == "arith.extf" for use in made.results[0].uses):
            continue
        with mlir.InsertionPoint(op), op.operation.location:
            rounded = _rounded(made.operands[0])
        op.results[0].replace_all_uses_with(rounded)
        op.operation.erase()


def _rounded(x: mlir.Value) -> mlir.Value:
    """Adds a number whose last place is the last of an f16 of this size, 2^-24 at the least, and takes it away."""
    whole = with_element(x.type, mlir.IntegerType.get_signless(32))
    size = math.absf(x)
    exponent = arith.andi(arith.bitcast(whole, x), _number(whole, 0xFF << 23))
    exponent = arith.minsi(arith.maxsi(exponent, _number(whole, 113 << 23)), _number(whole, 142 << 23))
    magic = arith.bitcast(x.type, arith.addi(exponent, _number(whole, _PLACES << 23 | 1 << 22)))
    rounded = arith.subf(arith.addf(size, magic), magic)
    over = arith.cmpf(arith.CmpFPredicate.OGT, rounded, _real(x.type, _LARGEST))
    return math.copysign(arith.select(over, _real(x.type, inf), rounded), x)


def _number(kind: mlir.Type, value: int) -> mlir.Value:
    return splat(kind, mlir.IntegerAttr.get(element_type(kind), value))


def _real(kind: mlir.Type, value: float) -> mlir.Value:
    return splat(kind, mlir.FloatAttr.get(element_type(kind), value))
