"""Numbers that the formulas of `approximations.py` and `rare_functions.py` are filled in with, for f32 and for f64.

Those of f32 come from tests/tools/minimax.py, which fits them so that each is an f32. Those of f64 are series, long
enough for the interval, where no fit is noted.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, log, pi, sqrt

from torch_mlir import ir as mlir

from eyas.codegen.common.passes.lanes import Real, element_type

LOG2E = 1.44269504088896341

Parts = tuple[tuple[float, ...], float]
"""pi/2 in parts whose products with n are exact, and up to which argument that is so."""


@dataclass(frozen=True)
class Format:
    """One float format, and coefficients from the lowest order up."""

    bits: int
    places: int
    """Of the mantissa, behind the point."""
    bias: int
    """Of the exponent."""
    round: float
    """1.5 * 2^places: adding it leaves the nearest integer in the low bits."""
    smallest: float
    """That is normal."""
    # Exponentials
    ln2_high: float
    """With so few bits that its products with exponents are exact; `ln2_low` is the rest."""
    ln2_low: float
    exp_low: float
    exp_high: float
    exp2_low: float
    exp2_high: float
    expm1_low: float
    exp: tuple[float, ...]
    expm1: tuple[float, ...]
    exp2: tuple[float, ...]
    # Logarithms
    sqrt_half_bits: int
    log10: tuple[tuple[float, float], tuple[float, float]]
    """log10(e) and log10(2), a short part and the rest of each."""
    log: tuple[float, ...]
    """Of log(1 + f) = f - f^2 / 2 + f^3 (...), where it is better than that of `atanh`."""
    atanh: tuple[float, ...]
    """Of log((1 + s) / (1 - s)) = 2 s + s^3 (...), |s| < 0.172."""
    # Circular functions
    half_pi_fused: Parts
    half_pi_short: Parts
    sin: tuple[float, ...]
    cos: tuple[float, ...]
    atan: tuple[float, ...]
    """Of atan(t) = t + t^3 (...), |t| <= tan(pi / 8)."""
    # The error function
    erf: tuple[float, ...]
    """Of erf(a) = a + a (...), in a^2, a < 0.93."""
    erfc_center: float
    erfc: tuple[float, ...]
    """Of (1 + 2 a) exp(a^2) erfc(a) in (a - center) / (a + center), a > 0.9."""


F32 = Format(
    bits=32, places=23, bias=127, round=12582912.0, smallest=2.0**-126,
    ln2_high=0.693359375, ln2_low=-2.12194440e-4,
    exp_low=-104.0, exp_high=88.8, exp2_low=-151.0, exp2_high=129.0, expm1_low=-18.0,
    exp=(0.5, 0.16666515, 0.041666377, 0.008369394, 0.0013942925),
    expm1=(0.5, 0.16666667, 0.04166648, 0.008333208, 0.0013933565, 0.00019944263),
    exp2=(0.6931472, 0.2402265, 0.05550406, 0.009618085, 0.0013336623, 0.00015453293, 1.4690569e-05),
    sqrt_half_bits=0x3F3504F3,
    log10=((0.43359375, 7.00731903251827651e-4), (0.30078125, 2.48745663981195214e-4)),
    log=(
        0.3333331, -0.24999987, 0.20002224, -0.1666925, 0.14218716, -0.12384402, 0.118726194, -0.1178937, 0.069156125,
    ),
    atanh=tuple(2.0 / k for k in range(3, 13, 2)),
    half_pi_fused=((1.5707964, -4.371139e-08, -1.7151245e-15), 65536.0),
    # 13 bits each, for n below 2^11
    half_pi_short=((1.57080078125, -4.454515874385834e-06, 6.076561476220377e-11, 5.390303e-15), 2048.0),
    sin=(-0.16666654, 0.008332098, -0.00019506023),
    cos=(0.041666646, -0.0013887291, 2.4428644e-05),
    atan=(-0.3333333175381697, 0.1999953879477192, -0.14263897112598675, 0.1074309966767457, -0.06449835224591496),
    erf=(0.12837917, -0.3761263, 0.11283624, -0.026855588, 0.005191948, -0.00080438395, 7.9696634e-05),
    erfc_center=2.5,
    erfc=(
        1.264838191038317, -0.12235681701726936, -0.09902546683322552, 0.15763285168939895, -0.10294726966502826,
        0.03271429105225111, 0.0007993406144656507, -0.0040931823229061, 0.0007507396247483975,
    ),
)  # fmt: skip

_ATAN_64 = (
    -0.3333333333333333, 0.1999999999999548, -0.14285714284657894, 0.11111111014561013, -0.09090904549884611,
    0.07692182535116648, -0.06664502215671447, 0.058580687568615106, -0.05085030492810941, 0.03921955253255129,
    -0.019162068915902573,
)  # fmt: skip
_ERFC_64 = (
    1.2375126308378277, -0.14024059858554752, 0.003585415485459313, 0.08227673849022306, -0.10880393014142749,
    0.0923043211570428, -0.05869339859704503, 0.028362277485109534, -0.009746579480055279, 0.0017556251314280768,
    0.0002937133042091078, -0.0002901494086198014, 5.164918253945337e-05, 2.2365839145035156e-05,
    -1.1437712274592325e-05, -9.304943711856411e-07, 1.7235457110192529e-06, -1.1155414791381931e-07,
    -2.0716898575333678e-07, 4.9727033445622796e-08,
)  # fmt: skip

# 22 bits each, for n below 2^31
_HALF_PI_64 = (
    (
        1.570796012878418, 3.139164164167596e-07, 6.223371969669989e-14, 2.0222659584103533e-21,
        2.903855540388854e-28, 4.3359050650618903e-35,
    ),
    2.0**31,
)  # fmt: skip

F64 = Format(
    bits=64, places=52, bias=1023, round=1.5 * 2.0**52, smallest=2.0**-1022,
    ln2_high=0.6931471803691238, ln2_low=1.9082149292705877e-10,
    exp_low=-746.0, exp_high=709.9, exp2_low=-1076.0, exp2_high=1025.0, expm1_low=-40.0,
    exp=tuple(1 / factorial(k) for k in range(2, 14)),
    expm1=tuple(1 / factorial(k) for k in range(2, 15)),
    exp2=tuple(log(2) ** k / factorial(k) for k in range(1, 15)),
    sqrt_half_bits=0x3FE6A09E667F3BCD,
    log10=((0.4342944622039795, 1.9699272335463627e-08), (0.3010299955494702, 1.1451100898021838e-10)),
    log=(),
    atanh=tuple(2.0 / k for k in range(3, 27, 2)),
    half_pi_fused=_HALF_PI_64,
    half_pi_short=_HALF_PI_64,
    sin=tuple((-1) ** k / factorial(2 * k + 1) for k in range(1, 9)),
    cos=tuple((-1) ** k / factorial(2 * k) for k in range(2, 10)),
    atan=_ATAN_64,
    erf=tuple(2 / sqrt(pi) * (-1) ** k / (factorial(k) * (2 * k + 1)) - (k == 0) for k in range(19)),
    erfc_center=3.75,
    erfc=_ERFC_64,
)  # fmt: skip


def format_of(x: Real) -> Format:
    return F64 if isinstance(element_type(x.value.type), mlir.F64Type) else F32
