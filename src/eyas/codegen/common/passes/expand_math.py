"""`expand-math`: replaces math functions on f32 by polynomials and bit operations, so that they vectorise.

A libm call per element costs more than a whole vector of this, and stops LLVM from vectorising the loop around it.
Scalars and vectors get the same formula; f16 and bf16 compute in f32 and round once; f64 and rare functions (tan, atan,
asinh, cbrt, erfc, ...) stay with libm, where there is one: a GPU has none, and gets all of them (`libm=false`).

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
    powf          1.91        1.91       exponents 1, 2, 3, 4, 0.5, -0.5, -1, -2 only; others stay with libm

    1 + erf       1.07        1.10       in the last place of 1: where 1 is added to the result (GELU), only the
    1 + tanh      1.50        1.50       absolute error counts, and half of the work is enough; x / c is x * (1 / c)

Infinities, NaN, signed zeros, overflow, and subnormal arguments and results are as C's Annex F says. Signs of NaN and
floating-point exceptions are not kept. The formulas are in `approximations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math, scf, vector

from eyas.codegen.common.passes import approximations, rare_functions
from eyas.codegen.common.passes.lanes import Real, choose, element_type, with_element
from eyas.ir.passes import Pass

KEEP_LIBM = "eyas.libm"
"""Discardable attribute of a math op that must stay a library call: the slow path of its own expansion."""


@dataclass(frozen=True)
class ExpandMath(Pass):
    """See the module's docstring. `fma=false` is for targets without a fused multiply-add (`Target.has_fma`), and
    `libm=false` for those without a library: nothing is left to it."""

    name: ClassVar[str] = "expand-math"
    fma: bool = True
    libm: bool = True

    def run(self, module: mlir.Module) -> None:
        found: list[mlir.Operation] = []
        names = {*_FUNCTIONS, "math.powf", *(() if self.libm else _WITHOUT_LIBM)}

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            if op.name in names and KEEP_LIBM not in op.attributes:
                found.append(op)
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in found:
            with mlir.InsertionPoint(op), op.location:
                result = _expand(op, self.fma, self.libm)
            if result is not None:
                op.results[0].replace_all_uses_with(result)
                op.erase()


def _expand(op: mlir.Operation, fused: bool, libm: bool) -> mlir.Value | None:
    """The replacement, or None when the op stays as it is."""
    kind = op.results[0].type
    element = element_type(kind)
    if isinstance(kind, mlir.VectorType) and mlir.VectorType(kind).rank == 0:
        return None
    if op.name == "math.powf":
        special = _power_by_constant(op)
        if special is not None:
            return special
    if isinstance(element, mlir.F64Type):
        function = None if libm else _DOUBLE.get(op.name)
    else:
        function = None if libm else _WITHOUT_LIBM.get(op.name)
        function = function or _FUNCTIONS.get(op.name)
    if function is None:
        return None
    if isinstance(element, mlir.F32Type | mlir.F64Type):
        operands = [Real(operand, fused) for operand in op.operands]
        if isinstance(element, mlir.F32Type) and op.name in _BESIDE_ONE and _is_added_to_one(op):
            return _BESIDE_ONE[op.name](_without_division(operands[0])).value
        return function(*operands).value
    if not isinstance(element, mlir.F16Type | mlir.BF16Type):
        return None
    wide = with_element(kind, mlir.F32Type.get())
    return arith.truncf(kind, function(*(Real(arith.extf(wide, operand), fused) for operand in op.operands)).value)


# --- sums with one ----------------------------------------------------------------------------------------------------


def _is_added_to_one(op: mlir.Operation) -> bool:
    users = [use.owner.operation for use in op.results[0].uses]
    return bool(users) and all(
        user.name == "arith.addf" and any(_constant_of(operand) == 1.0 for operand in user.operands) for user in users
    )


def _without_division(x: Real) -> Real:
    """x / c as x * (1 / c), which takes a tenth of the time."""
    owner = x.value.owner
    if isinstance(owner, mlir.Block) or owner.name != "arith.divf":
        return x
    divisor = _constant_of(owner.operands[1])
    return x if not divisor else Real(owner.operands[0], x.fused) * (1.0 / divisor)


# --- circular functions -----------------------------------------------------------------------------------------------


def _or_libm(far: mlir.Value, op_name: str, x: Real, near: Real) -> Real:
    """`near`, unless a lane is `far`: arguments beyond the reduction are rare, and libm has hundreds of bits."""

    def call() -> mlir.Value:
        _stay_a_branch()
        attributes = {KEEP_LIBM: mlir.UnitAttr.get()}
        return mlir.Operation.create(op_name, [x.value.type], [x.value], attributes=attributes).result

    return _in_branch(far, near, call)


def _in_branch(far: mlir.Value, near: Real, make: Callable[[], mlir.Value]) -> Real:
    """What `make` gives for all lanes if one is `far`, else `near`."""
    if isinstance(far.type, mlir.VectorType):
        shape = mlir.VectorType(far.type)
        if shape.rank != 1:
            lanes = 1
            for size in shape.shape:
                lanes *= size
            far = vector.shape_cast(mlir.VectorType.get([lanes], shape.element_type), far)
        far = vector.reduction(shape.element_type, vector.CombiningKind.OR, far)
    branch = scf.IfOp(far, [near.value.type], has_else=True)
    with mlir.InsertionPoint(branch.then_block):
        scf.YieldOp([make()])
    with mlir.InsertionPoint(branch.else_block):
        scf.YieldOp([near.value])
    return Real(branch.results[0], near.fused)


def _stay_a_branch() -> None:
    """Nothing, in assembly: LLVM takes math functions for cheap, and computes both sides where it sees two of them."""
    text = mlir.StringAttr.get("")
    attributes = {"asm_string": text, "constraints": text, "has_side_effects": mlir.UnitAttr.get()}
    mlir.Operation.create("llvm.inline_asm", attributes=attributes)


def _sine(x: Real) -> Real:
    value, far = approximations.circular(x, 0)
    return _or_libm(far, "math.sin", x, value)


def _cosine(x: Real) -> Real:
    value, far = approximations.circular(x, 1)
    return _or_libm(far, "math.cos", x, value)


def _sine_alone(x: Real) -> Real:
    value, far = approximations.circular(x, 0)
    return _in_branch(far, value, lambda: approximations.circular_far(x, 0).value)


def _cosine_alone(x: Real) -> Real:
    value, far = approximations.circular(x, 1)
    return _in_branch(far, value, lambda: approximations.circular_far(x, 1).value)


# --- powers -----------------------------------------------------------------------------------------------------------


def _power_by_constant(op: mlir.Operation) -> mlir.Value | None:
    """x ** c for the exponents that models use, with the special values that C's pow has."""
    exponent, base = _constant_of(op.operands[1]), op.operands[0]
    is_f32 = isinstance(element_type(base.type), mlir.F32Type)
    if isinstance(element_type(base.type), mlir.F64Type):
        return None
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
    -2.0: lambda x: (1.0 / x) * (1.0 / x),  # 1 / (x * x) would lose results below f32's normal range
    0.5: _root,
    -0.5: lambda x: 1.0 / _root(x),
}


def _constant_of(value: mlir.Value) -> float | None:
    owner = value.owner
    if not isinstance(owner, mlir.Block) and owner.name == "vector.broadcast":
        return _constant_of(owner.operands[0])
    if isinstance(owner, mlir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, mlir.DenseFPElementsAttr | mlir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return mlir.FloatAttr(attribute).value if isinstance(attribute, mlir.FloatAttr) else None


_FUNCTIONS: dict[str, Callable[[Real], Real]] = {
    "math.exp": approximations.exp,
    "math.exp2": approximations.exp2,
    "math.expm1": approximations.expm1,
    "math.log": approximations.log,
    "math.log2": approximations.log2,
    "math.log10": approximations.log10,
    "math.log1p": approximations.log1p,
    "math.tanh": approximations.tanh,
    "math.erf": approximations.erf,
    "math.sin": _sine,
    "math.cos": _cosine,
}

_RARE: dict[str, Callable[..., Real]] = {
    "math.asin": rare_functions.asin,
    "math.acos": rare_functions.acos,
    "math.atan": rare_functions.atan,
    "math.atan2": rare_functions.atan2,
    "math.sinh": rare_functions.sinh,
    "math.cosh": rare_functions.cosh,
    "math.asinh": rare_functions.asinh,
    "math.acosh": rare_functions.acosh,
    "math.atanh": rare_functions.atanh,
    "math.cbrt": rare_functions.cbrt,
    "math.erfc": rare_functions.erfc,
    "math.powf": rare_functions.power,
}

_WITHOUT_LIBM: dict[str, Callable[..., Real]] = {
    **_RARE,
    "math.sin": _sine_alone,
    "math.cos": _cosine_alone,
    "math.tan": lambda x: _sine_alone(x) / _cosine_alone(x),
}

_DOUBLE: dict[str, Callable[..., Real]] = {
    **_FUNCTIONS,
    **_WITHOUT_LIBM,
    "math.tanh": approximations.tanh64,
    "math.erf": rare_functions.erf64,
}
"""Of f64, which only devices without a library have expanded."""

_BESIDE_ONE: dict[str, Callable[[Real], Real]] = {
    "math.tanh": approximations.tanh_beside_one,
    "math.erf": approximations.erf_beside_one,
}
