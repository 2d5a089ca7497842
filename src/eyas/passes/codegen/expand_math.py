"""`expand-math`: replaces math functions on f32 by polynomials and bit operations, so that they vectorise.

A libm call per element costs more than a whole vector of this, and stops LLVM from vectorising the loop around it.
Scalars and vectors get the same formula; f16 and bf16 compute in f32 and round once; f64 and rare functions (tan, atan,
asinh, cbrt, erfc, ...) stay with libm.

    %y = math.exp %x : vector<16xf32>
      ->
    %t = math.fma %x, %log2e, %magic ; %n = arith.subf %t, %magic ; %r = math.fma %n, ... ; (polynomial in %r)
    %s = arith.shli (arith.bitcast %t), 23 ; %y = arith.mulf %p, (arith.bitcast %s)

Largest error against a correctly computed result, over all f32 (tests/tools/ulp.py 31; checked by
tests/unit/passes/test_expand_math.py):

    function   ULP (fma)  ULP (no fma)
    exp           0.88        1.16
    exp2          0.84        1.05
    expm1         1.42        1.40
    log           0.85        0.87
    log2          1.38        1.45
    log10         0.91        1.85
    log1p         1.46        1.50
    tanh          1.33        1.32
    erf           1.05        1.17
    sin, cos      1.56        2.40       libm for |x| > 65536 (2048 without fma), behind one branch per vector
    powf          1           1          exponents 1, 2, 3, 4, 0.5, -0.5, -1, -2 only; others stay with libm

Infinities, NaN, signed zeros, overflow, and subnormal arguments and results are as C's Annex F says. Signs of NaN and
floating-point exceptions are not kept. Coefficients come from tests/tools/minimax.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math, scf, vector

from eyas.ir.passes import Pass
from eyas.passes.codegen.lanes import Real, choose, element_type, with_element

KEEP_LIBM = "eyas.libm"
"""Discardable attribute of a math op that must stay a library call: the slow path of its own expansion."""


@dataclass(frozen=True)
class ExpandMath(Pass):
    """See the module's docstring. `fma=false` is for targets without a fused multiply-add (`Target.has_fma`)."""

    name: ClassVar[str] = "expand-math"
    fma: bool = True

    def run(self, module: mlir.Module) -> None:
        found: list[mlir.Operation] = []

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            if op.name in _EXPANSIONS and KEEP_LIBM not in op.attributes:
                found.append(op)
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in found:
            with mlir.InsertionPoint(op), op.location:
                result = _expand(op, self.fma)
            if result is not None:
                op.results[0].replace_all_uses_with(result)
                op.erase()


def _expand(op: mlir.Operation, fused: bool) -> mlir.Value | None:
    """The replacement, or None when the op stays as it is."""
    kind = op.results[0].type
    element = element_type(kind)
    if not isinstance(element, mlir.F32Type | mlir.F16Type | mlir.BF16Type):
        return None
    if op.name == "math.powf":
        return _power_by_constant(op)
    if isinstance(kind, mlir.VectorType) and mlir.VectorType(kind).rank == 0:
        return None
    operand = op.operands[0]
    if isinstance(element, mlir.F32Type):
        return _EXPANSIONS[op.name](Real(operand, fused)).value
    wide = arith.extf(with_element(kind, mlir.F32Type.get()), operand)
    return arith.truncf(kind, _EXPANSIONS[op.name](Real(wide, fused)).value)


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


def _exp(x: Real) -> Real:
    x = x.at_most(88.8).at_least(-104.0)  # beyond these the result is infinite or zero anyway
    r, t = _reduce(x, 254)
    return _scale_twice(_exp_of_reduced(r), t)


def _exp2(x: Real) -> Real:
    x = x.at_most(129.0).at_least(-151.0)
    t = x + (ROUND + 254)
    r = x - (t - (ROUND + 254))
    return _scale_twice(r.polynomial((1.0, *EXP2)), t)


def _expm1(x: Real) -> Real:
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


def _log(x: Real) -> Real:
    f, e = _split_any(x)
    return _with_log_limits(x, e.times_plus(LN2_HIGH, f + e.times_plus(LN2_LOW, _log_tail(f))))


def _log2(x: Real) -> Real:
    f, e = _split_any(x)
    tail = _log_tail(f)
    part = LOG2E - 1.0
    return _with_log_limits(x, tail.times_plus(part, f * part) + tail + f + e)


def _log10(x: Real) -> Real:
    f, e = _split_any(x)
    tail = _log_tail(f)
    # log10(e) and log10(2), each as a short high part and the rest.
    sum_ = (f + tail) * 7.00731903251827651e-4
    sum_ = e.times_plus(2.48745663981195214e-4, tail.times_plus(0.43359375, sum_))
    return _with_log_limits(x, e.times_plus(0.30078125, f.times_plus(0.43359375, sum_)))


def _log1p(x: Real) -> Real:
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


def _tanh(x: Real) -> Real:
    a = abs(x)
    squared = a * a
    small = (squared * a).times_plus(squared.polynomial(TANH), a)
    bounded = a.at_most(9.5)
    large = 1.0 - 2.0 / (_exp_in_range(bounded + bounded) + 1.0)
    return choose(a < 0.625, small, large).with_sign_of(x)


def _erf(x: Real) -> Real:
    a = abs(x)
    small = (a * a).polynomial(ERF_SMALL).times_plus(a, a)
    bounded = a.at_most(3.95)
    large = 1.0 - _exp_in_range(bounded.polynomial(ERF_LARGE) - bounded)  # log(erfc(a)) is smooth
    return choose(a < 0.925, small, large).with_sign_of(x)


# --- circular functions -----------------------------------------------------------------------------------------------

SIN = (-0.16666654, 0.008332098, -0.00019506023)
COS = (0.041666646, -0.0013887291, 2.4428644e-05)
TWO_OVER_PI = 0.63661977236758134
# pi/2 in parts whose products with n are exact: 24 bits each with fma, else 13 bits for n below 2^11.
HALF_PI_FUSED, LIMIT_FUSED = (1.5707964, -4.371139e-08, -1.7151245e-15), 65536.0
HALF_PI_SHORT, LIMIT_SHORT = (1.57080078125, -4.454515874385834e-06, 6.076561476220377e-11, 5.390303e-15), 2048.0


def _circular(quadrant_shift: int, op_name: str) -> Callable[[Real], Real]:
    def expand(x: Real) -> Real:
        parts, limit = (HALF_PI_FUSED, LIMIT_FUSED) if x.fused else (HALF_PI_SHORT, LIMIT_SHORT)
        t = x.times_plus(TWO_OVER_PI, ROUND)
        n, r = t - ROUND, x
        for part in parts:
            r = n.times_plus(-part, r)
        squared = r * r
        sine = (r * squared).times_plus(squared.polynomial(SIN), r)
        cosine = (squared * squared).times_plus(squared.polynomial(COS), squared.times_plus(-0.5, 1.0))
        quadrant = t.as_bits() + quadrant_shift
        value = choose((quadrant & 1).is_nonzero(), cosine, sine)
        value = (value.as_bits() ^ ((quadrant & 2) << 30)).as_real()
        if op_name == "math.sin":
            value = choose(abs(x) < 2.0**-12, x, value)
        return _or_libm(abs(x) > limit, op_name, x, value)

    return expand


def _or_libm(far: mlir.Value, op_name: str, x: Real, near: Real) -> Real:
    """`near`, unless a lane is `far`: arguments beyond the reduction are rare, and libm has hundreds of bits."""
    if isinstance(far.type, mlir.VectorType):
        shape = mlir.VectorType(far.type)
        if shape.rank != 1:
            lanes = 1
            for size in shape.shape:
                lanes *= size
            far = vector.shape_cast(mlir.VectorType.get([lanes], shape.element_type), far)
        far = vector.reduction(shape.element_type, vector.CombiningKind.OR, far)
    branch = scf.IfOp(far, [x.value.type], has_else=True)
    with mlir.InsertionPoint(branch.then_block):
        slow = mlir.Operation.create(op_name, [x.value.type], [x.value], attributes={KEEP_LIBM: mlir.UnitAttr.get()})
        scf.YieldOp(slow.results)
    with mlir.InsertionPoint(branch.else_block):
        scf.YieldOp([near.value])
    return Real(branch.results[0], x.fused)


# --- powers -----------------------------------------------------------------------------------------------------------


def _power_by_constant(op: mlir.Operation) -> mlir.Value | None:
    """x ** c for the exponents that models use, with the special values that C's pow has."""
    exponent, base = _constant_of(op.operands[1]), op.operands[0]
    is_f32 = isinstance(element_type(base.type), mlir.F32Type)
    if exponent == 1.0:
        return base
    if exponent == 2.0:
        return arith.mulf(base, base)
    if exponent is None or exponent not in _POWERS or not is_f32:
        return None
    return _POWERS[exponent](Real(base)).value


def _root(x: Real) -> Real:
    # pow(-0, 0.5) is +0 and pow(-inf, 0.5) is +inf, unlike those of sqrt.
    return choose(x.equals(-inf), x.of(inf), Real(math.sqrt(x.value)) + 0.0)


_POWERS: dict[float, Callable[[Real], Real]] = {
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
    -1.0: lambda x: 1.0 / x,
    -2.0: lambda x: 1.0 / (x * x),
    0.5: _root,
    -0.5: lambda x: 1.0 / _root(x),
}


def _constant_of(value: mlir.Value) -> float | None:
    owner = value.owner
    if isinstance(owner, mlir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, mlir.DenseFPElementsAttr | mlir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return mlir.FloatAttr(attribute).value if isinstance(attribute, mlir.FloatAttr) else None


_EXPANSIONS: dict[str, Callable[[Real], Real]] = {
    "math.exp": _exp,
    "math.exp2": _exp2,
    "math.expm1": _expm1,
    "math.log": _log,
    "math.log2": _log2,
    "math.log10": _log10,
    "math.log1p": _log1p,
    "math.tanh": _tanh,
    "math.erf": _erf,
    "math.sin": _circular(0, "math.sin"),
    "math.cos": _circular(1, "math.cos"),
    "math.powf": lambda x: x,
}
