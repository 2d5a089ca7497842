"""Quotients as IEEE 754 rounds them, where more than their last bit depends on it.

Vulkan allows a division of f32 an error of 2.5 ULP. That is the last bit of most results; but one that is rounded to a
whole number, or to the bits of a narrow float, is a step off where the exact quotient lies on the edge between two:
0.75 / 0.3 of a quantiser, 6 / 3 under a floor. Such quotients are divided as integers here, with the driver's division
as an estimate. Others stay as they are, since this takes some sixty operations, which softmax would wait for.
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math

from eyas.codegen.common.passes.lanes import element_type, splat, with_element
from eyas.ir.walk import find_ops

_WHOLE = frozenset(
    "math.floor math.ceil math.trunc math.round math.roundeven arith.fptosi arith.fptoui arith.bitcast".split()
)
"""What a step of the result hangs on."""

_CARRIES = frozenset(
    "arith.addf arith.subf arith.mulf arith.negf arith.select arith.maximumf arith.minimumf arith.maxnumf arith.minnumf"
    " math.absf math.copysign vector.extract vector.from_elements vector.broadcast vector.shape_cast".split()
)
"""What a quotient may go through before it is rounded."""

_Compare = arith.CmpIPredicate
_FRACTION, _HIDDEN, _INFINITY, _SIGN = 0x7FFFFF, 0x800000, 0x7F800000, -0x80000000


def round_quotients(module: mlir.Module) -> None:
    """Replaces the divisions of f32 whose result becomes whole."""
    for op in find_ops(module, "arith.divf"):
        if not isinstance(element_type(op.results[0].type), mlir.F32Type) or not _becomes_whole(op.results[0]):
            continue
        with mlir.InsertionPoint(op), op.operation.location:
            exact = _quotient(*op.operands)
        op.results[0].replace_all_uses_with(exact)
        op.operation.erase()


def _becomes_whole(value: mlir.Value) -> bool:
    waiting, seen = [value], set()
    while waiting:
        for use in waiting.pop().uses:
            user = use.owner.operation
            if user.name in _WHOLE:
                return True
            if user.name in _CARRIES and user not in seen:
                seen.add(user)
                waiting.extend(user.results)
    return False


def _quotient(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """A long division of mantissas in one step. No float here is subnormal, since a driver may take such for zero.

    The quotient of two mantissas has 24 bits. An estimate is off by a few units, so the remainder that it leaves has
    less than 32 bits, and products that wrap around give it exactly.
    """
    bits = [arith.bitcast(with_element(a.type, mlir.IntegerType.get_signless(32)), x) for x in (a, b)]
    sizes = [arith.andi(one, _whole(one, ~_SIGN)) for one in bits]
    (dividend, exponent), (divisor, scale) = (_parts(size, a.type) for size in sizes)
    less = arith.cmpi(_Compare.slt, dividend, divisor)
    places = arith.select(less, _whole(dividend, 24), _whole(dividend, 23))

    inverse = _inverse(arith.sitofp(a.type, divisor))
    scaled = arith.mulf(arith.sitofp(a.type, dividend), arith.select(less, _real(a, 2.0**24), _real(a, 2.0**23)))
    quotient = arith.fptosi(dividend.type, arith.mulf(scaled, inverse))
    rest = arith.subi(arith.shli(dividend, places), arith.muli(quotient, divisor))
    off = arith.fptosi(dividend.type, math.floor(arith.mulf(arith.sitofp(a.type, rest), inverse)))
    quotient, rest = arith.addi(quotient, off), arith.subi(rest, arith.muli(off, divisor))
    for wrong, step in ((arith.cmpi(_Compare.slt, rest, _whole(rest, 0)), -1), (None, 1)):
        wrong = wrong or arith.cmpi(_Compare.sge, rest, divisor)
        quotient = arith.addi(quotient, arith.select(wrong, _whole(rest, step), _whole(rest, 0)))
        moved = (arith.addi if step < 0 else arith.subi)(rest, divisor)
        rest = arith.select(wrong, moved, rest)

    power = arith.addi(arith.subi(exponent, scale), arith.select(less, _whole(rest, 126), _whole(rest, 127)))
    size = _rounded(quotient, rest, divisor, power)
    sign = arith.andi(arith.xori(*bits), _whole(rest, _SIGN))
    special = arith.ori(*(_is_special(one) for one in sizes))
    return arith.bitcast(a.type, arith.ori(arith.select(special, _special(*sizes), size), sign))


def _inverse(x: mlir.Value) -> mlir.Value:
    """As exact as the driver has it."""
    return arith.divf(_real(x, 1.0), x)


def _parts(size: mlir.Value, kind: mlir.Type) -> tuple[mlir.Value, mlir.Value]:
    """A mantissa of 24 bits, also of a subnormal number, and the biased exponent. The conversion to f32 is exact, and
    finds the first bit."""
    field = arith.shrui(size, _whole(size, 23))
    fraction = arith.andi(size, _whole(size, _FRACTION))
    subnormal = arith.cmpi(_Compare.eq, field, _whole(size, 0))
    mantissa = arith.select(subnormal, fraction, arith.ori(fraction, _whole(size, _HIDDEN)))
    normal = arith.bitcast(size.type, arith.sitofp(kind, mantissa))
    shifted = arith.ori(arith.andi(normal, _whole(size, _FRACTION)), _whole(size, _HIDDEN))
    above = arith.subi(arith.shrui(normal, _whole(size, 23)), _whole(size, 127 + 23))
    return shifted, arith.addi(arith.maxsi(field, _whole(size, 1)), above)


def _rounded(quotient: mlir.Value, rest: mlir.Value, divisor: mlir.Value, power: mlir.Value) -> mlir.Value:
    """The bits of quotient * 2^(power - bias), rounded to nearest even once, with fewer places if it is subnormal."""
    one = _whole(rest, 1)
    twice = arith.shli(rest, one)
    half = arith.cmpi(_Compare.sge, twice, divisor)
    beyond = arith.select(half, arith.subi(twice, divisor), twice)
    places = arith.ori(arith.shli(quotient, _whole(rest, 2)), arith.select(half, _whole(rest, 2), _whole(rest, 0)))
    places = arith.ori(places, _flag(arith.cmpi(_Compare.ne, beyond, _whole(rest, 0)), rest))
    shift = arith.minsi(arith.maxsi(arith.subi(one, power), _whole(rest, 0)), _whole(rest, 26))
    lost = arith.andi(places, arith.subi(arith.shli(one, shift), one))
    places = arith.ori(arith.shrui(places, shift), _flag(arith.cmpi(_Compare.ne, lost, _whole(rest, 0)), rest))
    even = arith.andi(arith.shrui(places, _whole(rest, 2)), one)
    mantissa = arith.shrui(arith.addi(places, arith.addi(even, one)), _whole(rest, 2))
    # The mantissa's first bit counts as one more of the exponent, and so does what rounding carries.
    exponent = arith.subi(arith.maxsi(power, one), one)
    size = arith.addi(arith.shli(exponent, _whole(rest, 23)), mantissa)
    return arith.select(arith.cmpi(_Compare.sge, power, _whole(rest, 255)), _whole(rest, _INFINITY), size)


def _is_special(size: mlir.Value) -> mlir.Value:
    """Zero wraps around to the largest number."""
    return arith.cmpi(_Compare.uge, arith.subi(size, _whole(size, 1)), _whole(size, _INFINITY - 1))


def _special(dividend: mlir.Value, divisor: mlir.Value) -> mlir.Value:
    """The quotient's size where one of them is special: equal ones are two zeros or two infinities."""
    infinity = _whole(dividend, _INFINITY)
    none = arith.cmpi(_Compare.eq, dividend, divisor)
    for one in (dividend, divisor):
        none = arith.ori(none, arith.cmpi(_Compare.sgt, one, infinity))
    is_zero = arith.ori(
        arith.cmpi(_Compare.eq, dividend, _whole(dividend, 0)), arith.cmpi(_Compare.eq, divisor, infinity)
    )
    finite = arith.select(is_zero, _whole(dividend, 0), infinity)
    return arith.select(none, _whole(dividend, _INFINITY | 1 << 22), finite)


def _flag(truth: mlir.Value, like: mlir.Value) -> mlir.Value:
    return arith.select(truth, _whole(like, 1), _whole(like, 0))


def _whole(like: mlir.Value, value: int) -> mlir.Value:
    return splat(like.type, mlir.IntegerAttr.get(element_type(like.type), value))


def _real(like: mlir.Value, value: float) -> mlir.Value:
    return splat(like.type, mlir.FloatAttr.get(element_type(like.type), value))
