"""Functions that models seldom use, from those that they do: for targets without a math library.

In: a `Real` of f32 or f64. Out: a `Real`, with the special values of C's Annex F. Errors are a few units in the last
place (tests/unit/codegen/common/passes/test_rare_functions.py).
"""

from __future__ import annotations

from math import inf, nan, pi

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math

from eyas.codegen.common.passes import approximations as basic
from eyas.codegen.common.passes.float_formats import format_of
from eyas.codegen.common.passes.lanes import Real, choose, splat

# --- inverse circular functions ---------------------------------------------------------------------------------------

TAN_PI_8, TAN_3_PI_8 = 0.41421356237309503, 2.414213562373095


def atan(x: Real) -> Real:
    """In three intervals, by the angle between x and 0, 1 or infinity, whose tangent is at most tan(pi/8)."""
    a = abs(x)
    large, middle = a > TAN_3_PI_8, a > TAN_PI_8
    t = choose(large, -1.0 / a, choose(middle, (a - 1.0) / (a + 1.0), a))
    base = choose(large, x.of(pi / 2), choose(middle, x.of(pi / 4), x.of(0.0)))
    squared = t * t
    return (base + (t * squared).times_plus(squared.polynomial(format_of(x).atan), t)).with_sign_of(x)


def atan2(y: Real, x: Real) -> Real:
    a, b = abs(y), abs(x)
    # Of the same size, also where both are infinite or zero; their quotient may be neither.
    same = choose(a.equals(b), x.of(1.0), a / b)
    angle = atan(choose(_either_nan(x, y), x.of(nan), same))
    angle = choose(_both(a.equals(0.0), b.equals(0.0)), x.of(0.0), angle)
    angle = choose(_sign_bit(x), pi - angle, angle)
    return angle.with_sign_of(y)


def asin(x: Real) -> Real:
    return atan2(x, _root((1.0 - x) * (x + 1.0)))


def acos(x: Real) -> Real:
    return atan2(_root((1.0 - x) * (x + 1.0)), x)


# --- hyperbolic functions ---------------------------------------------------------------------------------------------


def sinh(x: Real) -> Real:
    a = abs(x)
    e = basic.expm1(a)
    near = (e + e / (e + 1.0)) * 0.5
    return choose(a < _half_range(x), near, _half_square(a)).with_sign_of(x)


def cosh(x: Real) -> Real:
    a = abs(x)
    e = basic.exp(a)
    return choose(a < _half_range(x), (e + 1.0 / e) * 0.5, _half_square(a))


def asinh(x: Real) -> Real:
    a = abs(x)
    near = basic.log1p(a + a * a / (_root(a * a + 1.0) + 1.0))
    return choose(a < _large(x), near, _log_of_double(a)).with_sign_of(x)


def acosh(x: Real) -> Real:
    t = x - 1.0
    near = basic.log1p(t + _root(t * (t + 2.0)))
    return choose(x < 1.0, x.of(nan), choose(x < _large(x), near, _log_of_double(x)))


def atanh(x: Real) -> Real:
    a = abs(x)
    return (basic.log1p(2.0 * a / (1.0 - a)) * 0.5).with_sign_of(x)


def _half_range(x: Real) -> float:
    """Below this, exp does not overflow."""
    return format_of(x).exp_high - 1.0


def _half_square(a: Real) -> Real:
    """exp(a) / 2 without an overflow before the result has one."""
    e = basic.exp(a * 0.5)
    return e * 0.5 * e


def _large(x: Real) -> float:
    """From here on, 1 is nothing beside x^2."""
    return 2.0 ** (format_of(x).places // 2 + 2)


def _log_of_double(a: Real) -> Real:
    return basic.log(a) + 0.6931471805599453


# --- the complementary error function ---------------------------------------------------------------------------------


def erfc(x: Real) -> Real:
    k = format_of(x)
    # Beyond this all is lost; where numbers may be infinite, their differences are not numbers.
    a = abs(x).at_most(28.0)
    u = (a - k.erfc_center) / (a + k.erfc_center)
    # exp(-a^2) with a square that is exact in its high part.
    short = (a.as_bits() & -(1 << (k.places // 2 + 1))).as_real()
    power = basic.exp(-1.0 * short * short) * basic.exp((short - a) * (short + a))
    tail = power * u.polynomial(k.erfc) / (2.0 * a + 1.0)
    far = choose(x < 0.0, 2.0 - tail, tail)
    return choose(abs(x) < 0.9, 1.0 - basic.erf_near_zero(x), far)


def erf64(x: Real) -> Real:
    """For f32 there is a formula that is faster."""
    a = abs(x)
    return choose(a < 0.9, basic.erf_near_zero(a), 1.0 - erfc(a)).with_sign_of(x)


# --- powers and roots -------------------------------------------------------------------------------------------------


def cbrt(x: Real) -> Real:
    """A guess by logarithms, and a step of Newton's."""
    a = abs(x)
    guess = basic.exp2(basic.log2(a) * (1.0 / 3.0))
    better = guess - (guess - a / (guess * guess)) * (1.0 / 3.0)
    regular = _both(a > 0.0, a < inf)
    return choose(regular, better, a).with_sign_of(x)


def power(x: Real, y: Real) -> Real:
    """2^(y log2|x|), with a logarithm in two floats: an error of it grows by as much as the result is large."""
    k = format_of(x)
    a = abs(x)
    high, low = _log2_in_two(a)
    product, rest = _times_exactly(y, high)
    rest = y.times_plus(low, rest)
    limits = (k.exp2_low, k.exp2_high)
    inside = _both(product > limits[0], product < limits[1])
    # log2 of 0 and infinity, and products that leave the range.
    rough = y * choose(a.equals(0.0), x.of(-inf), choose(a.equals(inf), x.of(inf), high))
    saturated = rough.at_most(limits[1]).at_least(limits[0])
    regular = _both(inside, _both(a > 0.0, a < inf))
    magnitude = choose(
        regular,
        basic.exp2_of_sum(choose(regular, product, x.of(0.0)), choose(regular, rest, x.of(0.0))),
        basic.exp2_of_sum(saturated, None),
    )
    whole = y.equals(Real(math.trunc(y.value), y.fused))
    half = y * 0.5
    odd = _both(whole, _not(half.equals(Real(math.trunc(half.value), y.fused))))
    signed = choose(_both(odd, _sign_bit(x)), -1.0 * magnitude, magnitude)
    # A negative base has a power only if the exponent is whole; infinite exponents are, and zeros have signs.
    result = choose(_both(_both(x < 0.0, a < inf), _not(whole)), x.of(nan), signed)
    result = choose(_both(abs(y).equals(inf), a.equals(1.0)), x.of(1.0), result)
    result = choose(_either_nan(x, y), x.of(nan), result)
    return choose(_or(y.equals(0.0), x.equals(1.0)), x.of(1.0), result)


def _log2_in_two(a: Real) -> tuple[Real, Real]:
    """log2 of a positive number, as a sum of two floats."""
    k = format_of(a)
    f, e = basic.split_any(a)
    # s = f / (2 + f) in two floats, and log(1 + f) = 2 s + s^3 (...)
    below, below_rest = _sum_exactly(a.of(2.0), f)
    s = f / below
    product, product_rest = _times_exactly(s, below)
    s_rest = ((f - product) - product_rest - s * below_rest) / below
    squared = s * s
    high, low = _sum_exactly(s * 2.0, s_rest * 2.0 + s * squared * squared.polynomial(k.atanh))
    # Times log2(e), which has two parts as well.
    scale_high, scale_low = _LOG2E_32 if k.bits == 32 else _LOG2E_64
    scaled, scaled_rest = _times_exactly(high, a.of(scale_high))
    scaled_rest = scaled_rest + (high * scale_low + low * scale_high)
    total, total_rest = _sum_exactly(e, scaled)
    return _sum_exactly(total, total_rest + scaled_rest)


_LOG2E_32 = (1.44269502162933349609375, 1.9259629911266174681e-8)
_LOG2E_64 = (1.44269504088896338700e00, 2.03552737409310331e-17)


def _sum_exactly(a: Real, b: Real) -> tuple[Real, Real]:
    """a + b, and what rounding took from it (Knuth's TwoSum)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _times_exactly(a: Real, b: Real) -> tuple[Real, Real]:
    """a * b, and what rounding took from it (Dekker): halves of a mantissa have exact products."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, rest


def _halves(a: Real) -> tuple[Real, Real]:
    k = format_of(a)
    high = (a.as_bits() & -(1 << (k.places // 2 + 1))).as_real()
    return high, a - high


# --- truths -----------------------------------------------------------------------------------------------------------


def _root(x: Real) -> Real:
    return Real(math.sqrt(x.value), x.fused)


def _both(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return arith.andi(a, b)


def _or(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return arith.ori(a, b)


def _not(a: mlir.Value) -> mlir.Value:
    return arith.xori(a, splat(a.type, mlir.BoolAttr.get(True)))


def _either_nan(x: Real, y: Real) -> mlir.Value:
    return arith.cmpf(arith.CmpFPredicate.UNO, x.value, y.value)


def _sign_bit(x: Real) -> mlir.Value:
    return x.as_bits().is_negative()
