"""f32 functions as polynomials and bit operations. In: a `Real`. Out: a `Real`, right on the whole range.

Coefficients come from tests/tools/minimax.py; errors are listed in `expand_math.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

from torch_mlir import ir as mlir

from eyas.codegen.common.passes.lanes import Integer, Real, choose, pick

# --- exponentials -----------------------------------------------------------------------------------------------------

LOG2E = 1.44269504088896341
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4  # the high part has 10 bits, so that n * LN2_HIGH is exact
ROUND = 12582912.0  # 1.5 * 2^23: adding it leaves the nearest integer in the low bits

EXP = (0.5, 0.16666515, 0.041666377, 0.008369394, 0.0013942925)
EXPM1 = (0.5, 0.16666667, 0.04166648, 0.008333208, 0.0013933565, 0.00019944263)
EXP2 = (0.6931472, 0.2402265, 0.05550406, 0.009618085, 0.0013336623, 0.00015453293, 1.4690569e-05)


def _reduce(x: Real, bias: int) -> tuple[Real, Real]:
    """x = n ln2 + r. Gives r, and t whose low bits hold n + bias."""
    t = x.times_plus(LOG2E, ROUND + bias)
    n = t - (ROUND + bias)
    return n.times_plus(-LN2_LOW, n.times_plus(-LN2_HIGH, x)), t


def _exp_of_reduced(r: Real) -> Real:
    return r.polynomial((1.0, 1.0, *EXP))


def _exp_in_range(x: Real) -> Real:
    """exp where neither it nor its scale can overflow or underflow: -87 < x < 88."""
    r, t = _reduce(x, 127)
    return _exp_of_reduced(r) * (t.as_bits() << 23).as_real()


def _scale_twice(mantissa: Real, t: Real) -> Real:
    """mantissa * 2^n, where t holds n + 254. Two factors, since 2^n alone leaves f32's range at both of its ends."""
    both = t.as_bits()
    half = both >> 1
    return mantissa * (half << 23).as_real() * ((both - half) << 23).as_real()


def exp(x: Real) -> Real:
    x = x.at_most(88.8).at_least(-104.0)  # beyond these the result is infinite or zero anyway
    r, t = _reduce(x, 254)
    return _scale_twice(_exp_of_reduced(r), t)


def exp2(x: Real) -> Real:
    x = x.at_most(129.0).at_least(-151.0)
    t = x + (ROUND + 254)
    r = x - (t - (ROUND + 254))
    return _scale_twice(r.polynomial((1.0, *EXP2)), t)


def expm1(x: Real) -> Real:
    # 2^n (e^r - 1) + (2^n - 1), halved so that n = 128 stays in range.
    r, t = _reduce(x.at_most(88.8).at_least(-18.0), 126)
    scale = (t.as_bits() << 23).as_real()
    tail = r.polynomial(EXPM1).times_plus(r * r, r)
    result = scale.times_plus(tail, scale - 0.5) * 2.0
    return choose(abs(x) < 2.0**-26, x, result)


# --- logarithms -------------------------------------------------------------------------------------------------------

SQRT_HALF_BITS = 0x3F3504F3
LOG = (0.3333331, -0.24999987, 0.20002224, -0.1666925, 0.14218716, -0.12384402, 0.118726194, -0.1178937, 0.069156125)


def _split(x: Real) -> tuple[Real, Real]:
    """x = m 2^e with m in [sqrt(1/2), sqrt(2)), for a normal positive x. Gives m - 1 and e."""
    bits = x.as_bits()
    exponent = (bits - SQRT_HALF_BITS) >> 23
    return (bits - (exponent << 23)).as_real() - 1.0, exponent.to_real()


def _split_any(x: Real) -> tuple[Real, Real]:
    """`_split` for subnormal numbers, too."""
    tiny = x < 2.0**-126
    f, e = _split(choose(tiny, x * 2.0**25, x))
    return f, e - choose(tiny, x.of(25.0), x.of(0.0))


def _log_tail(f: Real) -> Real:
    """log(1 + f) - f."""
    return f * f * f.polynomial(LOG).times_plus(f, -0.5)


def _with_log_limits(x: Real, result: Real) -> Real:
    edge = choose(x.equals(0.0), x.of(-inf), x.of(nan))
    return choose(x.equals(inf), x, choose(x > 0.0, result, edge))


def log(x: Real) -> Real:
    f, e = _split_any(x)
    return _with_log_limits(x, e.times_plus(LN2_HIGH, f + e.times_plus(LN2_LOW, _log_tail(f))))


def log2(x: Real) -> Real:
    f, e = _split_any(x)
    tail = _log_tail(f)
    part = LOG2E - 1.0
    return _with_log_limits(x, tail.times_plus(part, f * part) + tail + f + e)


def log10(x: Real) -> Real:
    f, e = _split_any(x)
    tail = _log_tail(f)
    # log10(e) and log10(2), each as a short high part and the rest.
    sum_ = (f + tail) * 7.00731903251827651e-4
    sum_ = e.times_plus(2.48745663981195214e-4, tail.times_plus(0.43359375, sum_))
    return _with_log_limits(x, e.times_plus(0.30078125, f.times_plus(0.43359375, sum_)))


def log1p(x: Real) -> Real:
    u = x + 1.0
    back = u - 1.0
    lost = (1.0 - (u - back)) + (x - back)  # what rounding took from 1 + x (Knuth's TwoSum)
    bits = u.as_bits()
    exponent = (bits - SQRT_HALF_BITS) >> 23
    inverse_scale = ((127 - exponent.at_most(126)) << 23).as_real()
    f = lost.times_plus(inverse_scale, (bits - (exponent << 23)).as_real() - 1.0)
    e = exponent.to_real()
    result = e.times_plus(LN2_HIGH, f + e.times_plus(LN2_LOW, _log_tail(f)))
    return choose(abs(x) < 2.0**-25, x, _with_log_limits(u, result))


# --- sigmoids ---------------------------------------------------------------------------------------------------------

TANH = (-0.33333284, 0.13331485, -0.05374299, 0.02064901, -0.005715355)
ERF_SMALL = (0.12837917, -0.3761263, 0.11283624, -0.026855588, 0.005191948, -0.00080438395, 7.9696634e-05)
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


def erf(x: Real) -> Real:
    a = abs(x)
    small = (a * a).polynomial(ERF_SMALL).times_plus(a, a)
    bounded = a.at_most(3.95)
    large = 1.0 - _exp_in_range(bounded.polynomial(ERF_LARGE) - bounded)  # log(erfc(a)) is smooth
    return choose(a < 0.925, small, large).with_sign_of(x)


# A sum with 1 keeps no more than the absolute error: one formula then serves all arguments.


def tanh_beside_one(x: Real) -> Real:
    bounded = x.at_most(9.5).at_least(-9.5)
    return 1.0 - 2.0 / (_exp_in_range(bounded + bounded) + 1.0)


def erf_beside_one(x: Real) -> Real:
    bounded = abs(x).at_most(3.95)
    return (1.0 - _exp_in_range(bounded.polynomial(ERF_ANY) - bounded)).with_sign_of(x)


# --- circular functions -----------------------------------------------------------------------------------------------

SIN = (-0.16666654, 0.008332098, -0.00019506023)
COS = (0.041666646, -0.0013887291, 2.4428644e-05)
TWO_OVER_PI = 0.63661977236758134
# pi/2 in parts whose products with n are exact: 24 bits each with fma, else 13 bits for n below 2^11.
HALF_PI_FUSED, LIMIT_FUSED = (1.5707964, -4.371139e-08, -1.7151245e-15), 65536.0
HALF_PI_SHORT, LIMIT_SHORT = (1.57080078125, -4.454515874385834e-06, 6.076561476220377e-11, 5.390303e-15), 2048.0


def circular(x: Real, quadrants: int) -> tuple[Real, mlir.Value]:
    """sin(x + quadrants * pi/2), and the lanes where |x| is too large for this reduction and the value is wrong."""
    parts, limit = (HALF_PI_FUSED, LIMIT_FUSED) if x.fused else (HALF_PI_SHORT, LIMIT_SHORT)
    t = x.times_plus(TWO_OVER_PI, ROUND)
    n, r = t - ROUND, x
    for part in parts:
        r = n.times_plus(-part, r)
    value = _of_quadrant(r, t.as_bits() + quadrants)
    if quadrants == 0:
        value = choose(abs(x) < 2.0**-12, x, value)
    return value, abs(x) > limit


def _of_quadrant(r: Real, quadrant: Integer) -> Real:
    """sin(r + quadrant * pi/2) for |r| <= pi/4."""
    squared = r * r
    sine = (r * squared).times_plus(squared.polynomial(SIN), r)
    cosine = (squared * squared).times_plus(squared.polynomial(COS), squared.times_plus(-0.5, 1.0))
    value = choose((quadrant & 1).is_nonzero(), cosine, sine)
    return (value.as_bits() ^ ((quadrant & 2) << 30)).as_real()


# The first 224 bits of 2/pi behind a word of zeros.
TWO_OVER_PI_BITS = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
HALF_PI = 1.5707963267948966


def circular_far(x: Real, quadrants: int) -> Real:
    """sin(x + quadrants * pi/2) for |x| >= 2^11 (Payne and Hanek: of the bits of 2/pi, those above the ones that make
    multiples of four quadrants do not matter, and those far below the point do not either)."""
    bits = x.as_bits()
    exponent = (bits.shifted_right(23) & 0xFF) - 150
    mantissa = (bits & 0x7FFFFF) + 0x800000
    # |x| 2/pi = mantissa 2^exponent 0.b1 b2 ...: a window of 96 bits, which begins at bit `exponent` - 1.
    start = exponent + 30
    word, shift = start >> 5, start & 31
    windows = [_pick(word, TWO_OVER_PI_BITS[k : k + 5]) for k in range(4)]
    high, middle, low = (
        upper.shifted_left(shift) + lower.shifted_right(1).shifted_right(31 - shift)
        for upper, lower in zip(windows[:3], windows[1:], strict=True)
    )
    _, low_carry = mantissa.times(low)
    middle_low, middle_carry = mantissa.times(middle)
    middle = middle_low + low_carry
    high = mantissa.times(high)[0] + middle_carry + middle.is_below(low_carry)
    # Two bits of quadrant and the rest of it, rounded to the nearest quadrant.
    quadrant = (high + (1 << 29)).shifted_right(30)
    high = high - (quadrant << 30)
    negative = high.is_negative()
    high, middle = pick(negative, high.complement(), high), pick(negative, middle.complement(), middle)
    part = high.to_real().times_plus(2.0**-30, middle.to_real(signed=False) * 2.0**-62) * HALF_PI
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
