"""Functions as polynomials and bit operations. In: a `Real`. Out: a `Real`, right on the whole range.

What both f32 and f64 have is one formula with two sets of numbers (`float_formats.py`). Errors for f32 are listed in
`expand_math.py`; rarer functions, made of these, are in `rare_functions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

from torch_mlir import ir as mlir

from eyas.codegen.common.passes.float_formats import LOG2E, format_of
from eyas.codegen.common.passes.lanes import Integer, Real, choose, pick

# --- exponentials -----------------------------------------------------------------------------------------------------


def _reduce(x: Real, bias: int) -> tuple[Real, Real]:
    """x = n ln2 + r. Gives r, and t whose low bits hold n + bias."""
    k = format_of(x)
    t = x.times_near(LOG2E, k.round + bias)
    n = t - (k.round + bias)
    return n.times_near(-k.ln2_low, n.times_near(-k.ln2_high, x)), t


def _exp_of_reduced(r: Real) -> Real:
    return r.polynomial((1.0, 1.0, *format_of(r).exp))


def _exp_in_range(x: Real) -> Real:
    """exp where neither it nor its scale can overflow or underflow: -87 < x < 88."""
    k = format_of(x)
    r, t = _reduce(x, k.bias)
    return _exp_of_reduced(r) * (t.as_bits() << k.places).as_real()


def _scale_twice(mantissa: Real, t: Real) -> Real:
    """mantissa * 2^n, where t holds n + 2 bias. Two factors, since 2^n alone leaves the range at both of its ends."""
    places = format_of(mantissa).places
    both = t.as_bits()
    half = both >> 1
    return mantissa * (half << places).as_real() * ((both - half) << places).as_real()


def exp(x: Real) -> Real:
    k = format_of(x)
    x = x.at_most(k.exp_high).at_least(k.exp_low)  # beyond these the result is infinite or zero anyway
    r, t = _reduce(x, 2 * k.bias)
    return _scale_twice(_exp_of_reduced(r), t)


def exp2(x: Real) -> Real:
    k = format_of(x)
    return exp2_of_sum(x.at_most(k.exp2_high).at_least(k.exp2_low), None)


def exp2_of_sum(x: Real, rest: Real | None) -> Real:
    """2^(x + rest), where the sum is in the range and `rest` is what x does not have places for."""
    k = format_of(x)
    t = x + (k.round + 2 * k.bias)
    r = x - (t - (k.round + 2 * k.bias))
    if rest is not None:
        r = r + rest
    return _scale_twice(r.polynomial((1.0, *k.exp2)), t)


def expm1(x: Real) -> Real:
    # 2^n (e^r - 1) + (2^n - 1), halved so that the largest n stays in range.
    k = format_of(x)
    r, t = _reduce(x.at_most(k.exp_high).at_least(k.expm1_low), k.bias - 1)
    scale = (t.as_bits() << k.places).as_real()
    tail = r.polynomial(k.expm1).times_plus(r * r, r)
    result = scale.times_plus(tail, scale - 0.5) * 2.0
    return choose(abs(x) < 2.0 ** -(k.places + 3), x, result)


# --- logarithms -------------------------------------------------------------------------------------------------------


def _split(x: Real) -> tuple[Real, Real]:
    """x = m 2^e with m in [sqrt(1/2), sqrt(2)), for a normal positive x. Gives m - 1 and e."""
    k = format_of(x)
    bits = x.as_bits()
    exponent = (bits - k.sqrt_half_bits) >> k.places
    return (bits - (exponent << k.places)).as_real() - 1.0, exponent.to_real()


def split_any(x: Real) -> tuple[Real, Real]:
    """`_split` for subnormal numbers, too."""
    k = format_of(x)
    tiny = x < k.smallest
    lift = k.places + 2
    f, e = _split(choose(tiny, x * 2.0**lift, x))
    return f, e - choose(tiny, x.of(lift), x.of(0.0))


def _log_tail(f: Real) -> Real:
    """log(1 + f) - f."""
    k = format_of(f)
    if k.log:
        return f * f * f.polynomial(k.log).times_plus(f, -0.5)
    # In s = f / (2 + f), whose powers fall faster: log(1 + f) = 2 atanh(s).
    s, half = f / (f + 2.0), 0.5 * f * f
    squared = s * s
    return s * (half + squared * squared.polynomial(k.atanh)) - half


def _with_log_limits(x: Real, result: Real) -> Real:
    edge = choose(x.equals(0.0), x.of(-inf), x.of(nan))
    return choose(x.equals(inf), x, choose(x > 0.0, result, edge))


def log(x: Real) -> Real:
    k = format_of(x)
    f, e = split_any(x)
    return _with_log_limits(x, e.times_plus(k.ln2_high, f + e.times_plus(k.ln2_low, _log_tail(f))))


def log2(x: Real) -> Real:
    f, e = split_any(x)
    tail = _log_tail(f)
    part = LOG2E - 1.0
    return _with_log_limits(x, tail.times_plus(part, f * part) + tail + f + e)


def log10(x: Real) -> Real:
    # log10(e) and log10(2), each as a short high part and the rest.
    (e_high, e_low), (two_high, two_low) = format_of(x).log10
    f, e = split_any(x)
    tail = _log_tail(f)
    sum_ = (f + tail) * e_low
    sum_ = e.times_plus(two_low, tail.times_plus(e_high, sum_))
    return _with_log_limits(x, e.times_plus(two_high, f.times_plus(e_high, sum_)))


def log1p(x: Real) -> Real:
    k = format_of(x)
    u = x + 1.0
    back = u - 1.0
    lost = (1.0 - (u - back)) + (x - back)  # what rounding took from 1 + x (Knuth's TwoSum)
    bits = u.as_bits()
    exponent = (bits - k.sqrt_half_bits) >> k.places
    inverse_scale = ((k.bias - exponent.at_most(k.bias - 1)) << k.places).as_real()
    f = lost.times_plus(inverse_scale, (bits - (exponent << k.places)).as_real() - 1.0)
    e = exponent.to_real()
    result = e.times_plus(k.ln2_high, f + e.times_plus(k.ln2_low, _log_tail(f)))
    return choose(abs(x) < 2.0 ** -(k.places + 2), x, _with_log_limits(u, result))


# --- sigmoids ---------------------------------------------------------------------------------------------------------

TANH = (-0.33333284, 0.13331485, -0.05374299, 0.02064901, -0.005715355)
ERF_LARGE = (
    0.00016307975, -0.12944864, -0.6335097, -0.108055845, 0.024930052, -0.0040707407, 0.00040192774, -1.5193054e-05,
    -4.5830004e-07,
)  # fmt: skip
ERF_ANY = (
    1.5053523e-08, -0.12838076, -0.63659316, -0.102937005, 0.019617457, -0.0005720537, -0.0010122032, 0.00030284922,
    -3.07409e-05,
)  # fmt: skip


def tanh(x: Real) -> Real:
    a = abs(x)
    squared = a * a
    small = (squared * a).times_plus(squared.polynomial(TANH), a)
    bounded = a.at_most(9.5)
    large = 1.0 - 2.0 / (_exp_in_range(bounded + bounded) + 1.0)
    return choose(a < 0.625, small, large).with_sign_of(x)


def erf_near_zero(x: Real) -> Real:
    """For |x| < 0.93."""
    return (x * x).polynomial(format_of(x).erf).times_plus(x, x)


def erf(x: Real) -> Real:
    a = abs(x)
    small = erf_near_zero(a)
    bounded = a.at_most(3.95)
    large = 1.0 - _exp_in_range(bounded.polynomial(ERF_LARGE) - bounded)  # log(erfc(a)) is smooth
    return choose(a < 0.925, small, large).with_sign_of(x)


def tanh64(x: Real) -> Real:
    t = expm1(abs(x).at_most(25.0) * 2.0)
    return (t / (t + 2.0)).with_sign_of(x)


# A sum with 1 keeps no more than the absolute error: one formula then serves all arguments.


def tanh_beside_one(x: Real) -> Real:
    bounded = x.at_most(9.5).at_least(-9.5)
    return 1.0 - 2.0 / (_exp_in_range(bounded + bounded) + 1.0)


def erf_beside_one(x: Real) -> Real:
    bounded = abs(x).at_most(3.95)
    return (1.0 - _exp_in_range(bounded.polynomial(ERF_ANY) - bounded)).with_sign_of(x)


# --- circular functions -----------------------------------------------------------------------------------------------

TWO_OVER_PI = 0.63661977236758134


def circular(x: Real, quadrants: int) -> tuple[Real, mlir.Value]:
    """sin(x + quadrants * pi/2), and the lanes where |x| is too large for this reduction and the value is wrong."""
    k = format_of(x)
    parts, limit = k.half_pi_fused if x.fused else k.half_pi_short
    t = x.times_plus(TWO_OVER_PI, k.round)
    n, r = t - k.round, x
    for part in parts:
        r = n.times_plus(-part, r)
    value = _of_quadrant(r, t.as_bits() + quadrants)
    if quadrants == 0:
        value = choose(abs(x) < 2.0 ** -((k.places + 1) // 2), x, value)
    return value, abs(x) > limit


def _of_quadrant(r: Real, quadrant: Integer) -> Real:
    """sin(r + quadrant * pi/2) for |r| <= pi/4."""
    k = format_of(r)
    squared = r * r
    sine = (r * squared).times_plus(squared.polynomial(k.sin), r)
    cosine = (squared * squared).times_plus(squared.polynomial(k.cos), squared.times_plus(-0.5, 1.0))
    value = choose((quadrant & 1).is_nonzero(), cosine, sine)
    return (value.as_bits() ^ ((quadrant & 2) << (k.bits - 2))).as_real()


# 1216 bits of 2/pi behind the point.
TWO_OVER_PI_BITS = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921C"
    "FE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D08"
    "56033046FC7B6BAB"
    , 16,
)  # fmt: skip
TWO_OVER_PI_LENGTH = 1216
HALF_PI = 1.5707963267948966


def circular_far(x: Real, quadrants: int) -> Real:
    """sin(x + quadrants * pi/2) for |x| >= 2^11 (Payne and Hanek): of the bits of 2/pi, those above the ones that make
    multiples of four quadrants do not matter, and those far below the point do not either."""
    k = format_of(x)
    bits = x.as_bits()
    ones = 2 * k.bias + 1
    exponent = (bits.shifted_right(k.places) & ones) - (k.bias + k.places)
    mantissa = (bits & ((1 << k.places) - 1)) + (1 << k.places)
    # |x| 2/pi = mantissa 2^exponent 0.b1 b2 ...: a window of three words, which begins at bit `exponent` - 1.
    start = exponent + (k.bits - 2)
    word, shift = start >> (k.bits.bit_length() - 1), start & (k.bits - 1)
    last = (k.bias - k.places + k.bits - 2) // k.bits
    table = [0, *(TWO_OVER_PI_BITS >> (TWO_OVER_PI_LENGTH - k.bits * n) for n in range(1, last + 4))]
    windows = [_pick(word, table[n : n + last + 1]) for n in range(4)]
    high, middle, low = (
        upper.shifted_left(shift) + lower.shifted_right(1).shifted_right((k.bits - 1) - shift)
        for upper, lower in zip(windows[:3], windows[1:], strict=True)
    )
    _, low_carry = mantissa.times(low)
    middle_low, middle_carry = mantissa.times(middle)
    middle = middle_low + low_carry
    high = mantissa.times(high)[0] + middle_carry + middle.is_below(low_carry)
    # Two bits of quadrant and the rest of it, rounded to the nearest quadrant.
    point = k.bits - 2
    quadrant = (high + (1 << (point - 1))).shifted_right(point)
    high = high - (quadrant << point)
    negative = high.is_negative()
    high, middle = pick(negative, high.complement(), high), pick(negative, middle.complement(), middle)
    part = high.to_real().times_plus(2.0**-point, middle.to_real(signed=False) * 2.0 ** -(point + k.bits)) * HALF_PI
    r = choose(negative, 0.0 - part, part)
    value = _of_quadrant(r, quadrant + quadrants)
    if quadrants == 0:
        value = choose(x < 0.0, 0.0 - value, value)
    return choose(abs(x) < inf, value, x.of(nan))


def _pick(index: Integer, options: Sequence[int]) -> Integer:
    """`options[index]`, as a chain of choices."""
    result = index.of(options[0])
    for place, option in enumerate(options[1:], start=1):
        result = pick((index - place).is_nonzero(), result, index.of(option))
    return result
