"""`expand-exact`: functions with exact results that a CPU or its library has, and a GPU has not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math, scf, vector

from eyas.codegen.common.passes.lanes import element_type
from eyas.ir import Pass
from eyas.ir.walk import find_ops

_Compare = arith.CmpIPredicate


@dataclass(frozen=True)
class ExpandExact(Pass):
    """Remainders and powers become loops on integers, counts of bits those of i32, and classes of floats comparisons.

    A vector's lanes are computed one by one.

        %r = math.ctlz %x : i8         =>   %r = trunci(math.ctlz (extui %x : i32)) - 24
        %r = arith.remf %x, %y : f32   =>   scf.for over the bits by which %x is longer than %y
    """

    name: ClassVar[str] = "expand-exact"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_EXPANSIONS):
            with mlir.InsertionPoint(op), op.operation.location:
                result = _by_lanes(op, _EXPANSIONS[op.operation.name])
            if result is not None:
                op.results[0].replace_all_uses_with(result)
                op.operation.erase()


def _by_lanes(op: mlir.OpView, expand: Callable[..., mlir.Value | None]) -> mlir.Value | None:
    kind = op.results[0].type
    if not isinstance(kind, mlir.VectorType):
        return expand(*op.operands)
    assert mlir.VectorType(kind).rank == 1, "vectors of threads have one dimension"
    lanes: list[mlir.Value] = []
    for lane in range(mlir.VectorType(kind).shape[0]):
        operands = [vector.extract(operand, [], [lane]) for operand in op.operands]
        made = expand(*operands)
        # Upstream has it for the lane's type, and so for the vector's.
        if made is None:
            return None
        lanes.append(made)
    return vector.from_elements(kind, lanes)


# --- classes of floats ------------------------------------------------------------------------------------------------


def _is_finite(x: mlir.Value) -> mlir.Value:
    return arith.cmpf(arith.CmpFPredicate.OLT, math.absf(x), _real(x.type, inf))


def _is_normal(x: mlir.Value) -> mlir.Value:
    smallest = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}[mlir.FloatType(x.type).width]
    if isinstance(x.type, mlir.BF16Type):
        smallest = 2.0**-126
    above = arith.cmpf(arith.CmpFPredicate.OGE, math.absf(x), _real(x.type, smallest))
    return arith.andi(above, _is_finite(x))


# --- counts of bits ---------------------------------------------------------------------------------------------------


def _count_ones(x: mlir.Value) -> mlir.Value | None:
    bits = mlir.IntegerType(x.type).width
    if bits == 32:
        return None
    if bits == 64:
        low, high = _halves(x)
        return arith.extui(x.type, arith.addi(math.ctpop(low), math.ctpop(high)))
    return arith.trunci(x.type, math.ctpop(arith.extui(_integer(32), x)))


def _count_leading_zeros(x: mlir.Value) -> mlir.Value | None:
    bits = mlir.IntegerType(x.type).width
    if bits == 32:
        return None
    if bits == 64:
        low, high = _halves(x)
        below = arith.addi(math.ctlz(low), _whole(low.type, 32))
        count = arith.select(_is(_Compare.eq, high, 0), below, math.ctlz(high))
        return arith.extui(x.type, count)
    wide = math.ctlz(arith.extui(_integer(32), x))
    return arith.trunci(x.type, arith.subi(wide, _whole(wide.type, 32 - bits)))


def _count_trailing_zeros(x: mlir.Value) -> mlir.Value | None:
    bits = mlir.IntegerType(x.type).width
    if bits == 32:
        return None
    if bits == 64:
        low, high = _halves(x)
        above = arith.addi(math.cttz(high), _whole(low.type, 32))
        count = arith.select(_is(_Compare.eq, low, 0), above, math.cttz(low))
        return arith.extui(x.type, count)
    wide = arith.extui(_integer(32), x)
    return arith.trunci(x.type, math.cttz(arith.ori(wide, _whole(wide.type, 1 << bits))))


def _halves(x: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    i32 = _integer(32)
    return arith.trunci(i32, x), arith.trunci(i32, arith.shrui(x, _whole(x.type, 32)))


# --- powers -----------------------------------------------------------------------------------------------------------


def _integer_power(base: mlir.Value, exponent: mlir.Value) -> mlir.Value:
    """A negative exponent leaves 1 of 1, the sign of -1, and nothing of others."""
    magnitude = arith.select(_is(_Compare.slt, exponent, 0), _whole(base.type, 0), exponent)
    power = _squarings(base, magnitude, _whole(base.type, 1), arith.muli)
    odd = _is(_Compare.ne, arith.andi(exponent, _whole(base.type, 1)), 0)
    sign = arith.select(odd, base, _whole(base.type, 1))
    is_unit = arith.ori(_is(_Compare.eq, base, 1), _is(_Compare.eq, base, -1))
    fraction = arith.select(is_unit, sign, _whole(base.type, 0))
    return arith.select(_is(_Compare.slt, exponent, 0), fraction, power)


def _float_power(base: mlir.Value, exponent: mlir.Value) -> mlir.Value:
    """What a loop of multiplications gives, and its inverse for a negative exponent."""
    negative = _is(_Compare.slt, exponent, 0)
    magnitude = arith.select(negative, arith.subi(_whole(exponent.type, 0), exponent), exponent)
    one = _real(base.type, 1.0)
    power = _squarings(base, magnitude, one, arith.mulf)
    return arith.select(negative, arith.divf(one, power), power)


def _squarings(
    base: mlir.Value, exponent: mlir.Value, one: mlir.Value, multiply: Callable[[mlir.Value, mlir.Value], mlir.Value]
) -> mlir.Value:
    """base ** exponent, the exponent unsigned: for each of its bits a square, and a product where it is set."""
    types = [one.type, base.type, exponent.type]
    loop = scf.WhileOp(types, [one, base, exponent])
    before = loop.before.blocks.append(*types)
    with mlir.InsertionPoint(before):
        scf.ConditionOp(_is(_Compare.ne, before.arguments[2], 0), before.arguments)
    after = loop.after.blocks.append(*types)
    with mlir.InsertionPoint(after):
        power, square, rest = after.arguments
        unit = _whole(rest.type, 1)
        times = arith.select(_is(_Compare.ne, arith.andi(rest, unit), 0), multiply(power, square), power)
        scf.YieldOp([times, multiply(square, square), arith.shrui(rest, unit)])
    return loop.results[0]


# --- remainders -------------------------------------------------------------------------------------------------------

_STEP = 8
"""Bits of the quotient that a step of the division makes: a mantissa and so many more fit its integer."""


def _remainder(x: mlir.Value, y: mlir.Value) -> mlir.Value | None:
    """fmod: a long division of mantissas, whose steps leave the quotient and keep the remainder. It is exact, while
    what is left of a product with a rounded quotient is not."""
    if mlir.FloatType(x.type).width < 32:
        wide = mlir.F32Type.get()
        return arith.truncf(x.type, _remainder(arith.extf(wide, x), arith.extf(wide, y)))
    whole = _integer(mlir.FloatType(x.type).width)
    dividend, exponent = _parts(x, whole)
    divisor, scale = _parts(y, whole)
    # Not by zero, whose remainder is chosen below.
    divisor = arith.maxui(divisor, _whole(whole, 1))
    longer = arith.maxsi(arith.subi(exponent, scale), _whole(whole, 0))
    step = _whole(whole, _STEP)
    index = mlir.IndexType.get()
    zero, one = (arith.constant(index, value) for value in (0, 1))
    first = arith.remui(dividend, divisor)
    loop = scf.ForOp(zero, arith.index_cast(index, arith.divui(longer, step)), one, [first])
    with mlir.InsertionPoint(loop.body):
        scf.YieldOp([arith.remui(arith.shli(loop.inner_iter_args[0], step), divisor)])
    rest = arith.remui(arith.shli(loop.results[0], arith.remui(longer, step)), divisor)
    result = math.copysign(_scaled(rest, scale, x.type), x)
    infinity = _real(x.type, inf)
    smaller = arith.cmpf(arith.CmpFPredicate.OLT, math.absf(x), math.absf(y))
    valid = arith.andi(
        arith.cmpf(arith.CmpFPredicate.OLT, math.absf(x), infinity),
        arith.cmpf(arith.CmpFPredicate.OGT, math.absf(y), _real(x.type, 0.0)),
    )
    return arith.select(smaller, x, arith.select(valid, result, _real(x.type, float("nan"))))


def _parts(x: mlir.Value, whole: mlir.Type) -> tuple[mlir.Value, mlir.Value]:
    """Mantissa and biased exponent of |x| as integers: |x| = mantissa * 2^(exponent - bias - places)."""
    places, ones = _layout(x.type)
    bits = arith.bitcast(whole, x)
    exponent = arith.andi(arith.shrui(bits, _whole(whole, places)), _whole(whole, ones))
    fraction = arith.andi(bits, _whole(whole, (1 << places) - 1))
    subnormal = _is(_Compare.eq, exponent, 0)
    mantissa = arith.select(subnormal, fraction, arith.ori(fraction, _whole(whole, 1 << places)))
    return mantissa, arith.select(subnormal, _whole(whole, 1), exponent)


def _scaled(mantissa: mlir.Value, exponent: mlir.Value, kind: mlir.Type) -> mlir.Value:
    """The inverse of `_parts`: a product with powers of two, of which one alone might be too small for the type."""
    places, ones = _layout(kind)
    bias = ones >> 1
    # 2^(exponent - bias - places) in three factors: the last two are halves of the exponent over 2^-base each.
    start = 2.0 ** (2 * (bias - (bias + 1) // 2) - bias - places)
    value = arith.mulf(arith.sitofp(kind, mantissa), _real(kind, start))
    shift = _whole(exponent.type, places)
    half = arith.shrui(exponent, _whole(exponent.type, 1))
    other = arith.subi(exponent, half)
    base = _whole(exponent.type, (bias + 1) // 2)
    for part in (half, other):
        value = arith.mulf(value, arith.bitcast(kind, arith.shli(arith.addi(part, base), shift)))
    return value


def _layout(kind: mlir.Type) -> tuple[int, int]:
    """Bits of the mantissa, and the largest biased exponent."""
    return (52, 0x7FF) if mlir.FloatType(kind).width == 64 else (23, 0xFF)


# --- constants --------------------------------------------------------------------------------------------------------


def _integer(bits: int) -> mlir.IntegerType:
    return mlir.IntegerType.get_signless(bits)


def _whole(kind: mlir.Type, value: int) -> mlir.Value:
    return arith.constant(kind, mlir.IntegerAttr.get(kind, value))


def _real(kind: mlir.Type, value: float) -> mlir.Value:
    return arith.constant(kind, mlir.FloatAttr.get(element_type(kind), value))


def _is(predicate: arith.CmpIPredicate, value: mlir.Value, other: int) -> mlir.Value:
    return arith.cmpi(predicate, value, _whole(value.type, other))


_EXPANSIONS: dict[str, Callable[..., mlir.Value | None]] = {
    "math.isfinite": _is_finite,
    "math.isnormal": _is_normal,
    "math.ctpop": _count_ones,
    "math.ctlz": _count_leading_zeros,
    "math.cttz": _count_trailing_zeros,
    "math.ipowi": _integer_power,
    "math.fpowi": _float_power,
    "arith.remf": _remainder,
}
