"""Pointwise ops: arithmetic, functions, comparisons, choices, casts."""

from __future__ import annotations

import functools
import math

import numpy as np
from tests.fuzz.ops.base import Op, add, functional, jax, jax_call, jnp, lax, onnx_call, torch, torch_call
from tests.fuzz.shadow import (
    DTYPES,
    FLOATS,
    INFINITY,
    INTEGERS,
    LARGEST,
    REALS,
    SMALLEST_NORMAL,
    UNIT,
    Shadow,
    elementwise,
    rounded,
)

FUNCTION_UNITS = 8.0
"""Functions are trusted to four units in the last place."""

erf = np.vectorize(math.erf, otypes=[np.float64])


def _function(function, args, attrs, floor=False):
    """Absolute errors below the normal range do not count; `floor` adds an error relative to 1."""
    smallest = SMALLEST_NORMAL[args[0].dtype]
    return elementwise(
        function, *args, units=FUNCTION_UNITS, floor=smallest + (2 * UNIT[args[0].dtype] if floor else 0.0)
    )


def _exponential(function, args, attrs):
    """Made of exp(x - log 2), or exp(x log 2): the argument's rounding counts too."""
    size = np.where(np.isfinite(args[0].value), np.abs(args[0].value), 0.0)
    made = _function(function, args, attrs, floor=True)
    with np.errstate(all="ignore"):
        extra = np.where(np.isfinite(made.value), 2 * UNIT[made.dtype] * size * np.abs(made.value), 0.0)
    return Shadow(made.value, made.error + extra, made.dtype)


def _sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def _unary(name, function, dtypes=FLOATS, onnx=None, torch_name=None, jax_name=None, evaluate=None):
    evaluate = evaluate or (lambda args, attrs: elementwise(function, *args, units=0.0))
    add(
        Op(
            name,
            lambda b: ((b.value(dtypes),), {}),
            evaluate,
            torch_call(torch_name or name) if torch_name != "" else None,
            jax_call(jax_name or name) if jax_name != "" else None,
            onnx_call(onnx) if onnx else None,
            weight=1,
        )
    )


def _wave(function, args, attrs):
    """The ends of an interval say nothing of what is between them; no slope is steeper than 1, no height above 1."""
    made = _function(function, args, attrs, floor=True)
    between = np.minimum(args[0].errors(), 2.0)
    return Shadow(made.value, made.errors() + between, made.dtype)


def _quotient(evaluate, args, attrs):
    """By what may be zero it may be anything, whatever it is at both ends of the interval."""
    made, divisor = evaluate(args, attrs), args[-1]
    pole = (divisor.errors() > 0) & (np.abs(divisor.value) <= divisor.errors())
    return Shadow(made.value, np.where(pole, INFINITY, made.errors()), made.dtype)


_EXACT = {
    "neg": (np.negative, (*FLOATS, *INTEGERS), "Neg", "neg", "negative"),
    "abs": (np.abs, (*FLOATS, *INTEGERS), "Abs", "abs", "abs"),
    "sign": (np.sign, (*FLOATS, "i32", "i64", "i8", "i16"), "Sign", "sign", "sign"),
    "floor": (np.floor, FLOATS, "Floor", "floor", "floor"),
    "ceil": (np.ceil, FLOATS, "Ceil", "ceil", "ceil"),
    "round": (np.round, FLOATS, "Round", "round", "round"),
    "trunc": (np.trunc, FLOATS, None, "trunc", "trunc"),
    "bitwise_not": (np.invert, INTEGERS, "BitwiseNot", "bitwise_not", "bitwise_not"),
    "logical_not": (np.logical_not, ("i1",), "Not", "logical_not", "logical_not"),
    "isnan": (np.isnan, FLOATS, "IsNaN", "isnan", "isnan"),
}


def _sign(args, attrs):
    """torch gives 0 for NaN, others NaN. Whether zero keeps its own sign is seen in quotients alone."""
    made = elementwise(np.sign, *args, units=0.0)
    error = made.errors()
    if made.is_float:
        error = np.where(made.value == 0, np.maximum(error, np.finfo(np.float64).smallest_subnormal), error)
    return Shadow(made.value, np.where(np.isnan(args[0].value), INFINITY, error), made.dtype)


for _name, (_f, _dtypes, _onnx, _torch, _jax) in _EXACT.items():
    if _name == "isnan":
        _evaluate = lambda args, attrs: elementwise(np.isnan, *args, dtype="i1")  # noqa: E731
    elif _name == "sign":
        _evaluate = _sign
    else:
        _evaluate = None
    _unary(_name, _f, _dtypes, _onnx, _torch, _jax, _evaluate)

_SMOOTH = {
    # name: function, ONNX, torch, jax, error relative to 1 too
    "exp": (np.exp, "Exp", None, None, False),
    "exp2": (np.exp2, None, None, None, False),
    "expm1": (np.expm1, None, None, None, False),
    "log": (np.log, "Log", None, None, True),
    "log2": (np.log2, None, None, None, True),
    "log1p": (np.log1p, None, None, None, False),
    "sqrt": (np.sqrt, "Sqrt", None, None, False),
    "rsqrt": (lambda x: 1 / np.sqrt(x), None, None, "", False),
    "reciprocal": (lambda x: 1 / x, "Reciprocal", None, None, False),
    "sin": (np.sin, "Sin", None, None, True),
    "cos": (np.cos, "Cos", None, None, True),
    "tanh": (np.tanh, "Tanh", None, None, False),
    "atan": (np.arctan, "Atan", None, "arctan", False),
    "asinh": (np.arcsinh, "Asinh", None, "arcsinh", True),
    "sinh": (np.sinh, "Sinh", None, None, True),
    "cosh": (np.cosh, "Cosh", None, None, False),
    "erf": (erf, "Erf", None, "", False),
    "sigmoid": (_sigmoid, "Sigmoid", None, "", False),
}
for _name, (_f, _onnx, _torch, _jax, _floor) in _SMOOTH.items():
    _how = functools.partial(_function, _f, floor=_floor)
    if _name in ("sinh", "cosh", "exp2"):
        _how = functools.partial(_exponential, _f)
    if _name == "reciprocal":
        _how = functools.partial(_quotient, _how)
    if _name in ("sin", "cos"):
        _how = functools.partial(_wave, _f)
    _unary(_name, _f, FLOATS, _onnx, _torch, _jax, _how)


def _activation(function, torch_function, jax_function, onnx=None, absolute=0.0, exact=False):
    """A product of x and a smooth step: the error is relative to x as well as to the result."""

    def evaluate(args, attrs):
        (x,) = args
        size = np.where(np.isfinite(x.value), np.abs(x.value), 0.0)
        floor = 4 * UNIT[x.dtype] * (size + absolute) + SMALLEST_NORMAL[x.dtype]
        made = elementwise(function, x, units=FUNCTION_UNITS, floor=floor)
        # Products with a step of 0 or 2 overflow or not, as they are written.
        settled = np.abs(x.value) < LARGEST[x.dtype] / 16
        return made if exact else Shadow(made.value, np.where(settled, made.errors(), INFINITY), made.dtype)

    def row(name):
        add(Op(name, lambda b: ((b.value(FLOATS),), {}), evaluate, torch_function, jax_function, onnx, 1))

    return row


_activation(
    lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    lambda a, k: functional.gelu(a[0]),
    lambda a, k: jax.nn.gelu(a[0], approximate=False),
    onnx_call("Gelu"),
)("gelu")
_activation(
    lambda x: x * _sigmoid(x),
    lambda a, k: functional.silu(a[0]),
    lambda a, k: jax.nn.silu(a[0]),
    lambda emit, a, k: emit("Mul", [a[0], emit("Sigmoid", a)]),
)("silu")
_activation(
    lambda x: np.maximum(x, 0.0),
    lambda a, k: torch.relu(a[0]),
    lambda a, k: jax.nn.relu(a[0]),
    onnx_call("Relu"),
    exact=True,
)("relu")
_activation(
    lambda x: np.where(x > 0, x, np.exp(x) - 1),  # as ONNX has it; the error is relative to 1
    lambda a, k: functional.elu(a[0]),
    lambda a, k: jax.nn.elu(a[0]),
    lambda emit, a, k: emit("Elu", a, alpha=1.0),
    absolute=0.5,
)("elu")
_activation(
    lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    lambda a, k: functional.hardswish(a[0]),
    None,
    onnx_call("HardSwish"),
)("hardswish")


def _binary(name, function, dtypes, torch_=None, jax_=None, onnx=None, weight=3, evaluate=None, **how):
    evaluate = evaluate or (lambda args, attrs: elementwise(function, *args, **how))

    def build(b):
        first = b.value(dtypes)
        second = b.companion(first)
        return ((first, second) if b.boolean() else (second, first)), {}

    add(Op(name, build, evaluate, torch_, jax_, onnx, weight))


_binary("add", np.add, (*FLOATS, *INTEGERS), torch_call("add"), jax_call("add"), onnx_call("Add"), 5)
_binary("sub", np.subtract, (*FLOATS, *INTEGERS), torch_call("sub"), jax_call("subtract"), onnx_call("Sub"), 4)
_binary("mul", np.multiply, (*FLOATS, *INTEGERS), torch_call("mul"), jax_call("multiply"), onnx_call("Mul"), 5)
_binary(
    "div",
    np.divide,
    FLOATS,
    torch_call("div"),
    lambda a, k: jnp.true_divide(*a),
    onnx_call("Div"),
    weight=3,
    evaluate=functools.partial(_quotient, lambda args, attrs: elementwise(np.divide, *args, units=2.0)),
)
_binary(
    "maximum",
    np.maximum,
    (*FLOATS, *INTEGERS, "i1"),
    torch_call("maximum"),
    jax_call("maximum"),
    onnx_call("Max"),
    units=0.0,
)
_binary(
    "minimum",
    np.minimum,
    (*FLOATS, *INTEGERS, "i1"),
    torch_call("minimum"),
    jax_call("minimum"),
    onnx_call("Min"),
    units=0.0,
)
_binary("atan2", np.arctan2, FLOATS, torch_call("atan2"), jax_call("arctan2"), units=FUNCTION_UNITS, weight=1)
for _name in ("and", "or", "xor"):
    _binary(
        f"bitwise_{_name}",
        getattr(np, f"bitwise_{_name}"),
        INTEGERS,
        torch_call(f"bitwise_{_name}"),
        jax_call(f"bitwise_{_name}"),
        onnx_call(f"Bitwise{_name.capitalize()}"),
        weight=1,
    )
    _binary(
        f"logical_{_name}",
        getattr(np, f"logical_{_name}"),
        ("i1",),
        torch_call(f"logical_{_name}"),
        jax_call(f"logical_{_name}"),
        onnx_call(_name.capitalize()),
        weight=1,
    )


def _build_power(b):
    """A base that is not negative; whole exponents of any base are what `pow_scalar` has."""
    base = b.leaf(b.choose(FLOATS), b.shape(), "positive")
    return (base, b.companion(base, kind="unit")), {}


def _evaluate_power(args, attrs):
    value, bound = elementwise(np.power, *args), args[0]
    slack = np.abs(args[1].value * np.log(np.maximum(bound.value, 1e-300))) + 1
    return rounded(
        value.value, value.error + FUNCTION_UNITS * slack * UNIT[bound.dtype] * np.abs(value.value), bound.dtype
    )


def _whole_power(x, exponent):
    made = elementwise(lambda value: np.power(value, exponent), x, units=FUNCTION_UNITS)
    # Frameworks differ in the sign of infinity that a negative power of -0.0 has, and in whether the half power of
    # minus infinity is that of C's pow or that of sqrt.
    doubt = (exponent < 0) & (x.value == 0) | (exponent % 1 != 0) & (x.value == -np.inf)
    return Shadow(made.value, np.where(doubt, INFINITY, made.errors()), made.dtype)


add(Op("pow", _build_power, _evaluate_power, torch_call("pow"), jax_call("power"), onnx_call("Pow"), 1))
add(
    Op(
        "pow_scalar",
        lambda b: ((b.value(FLOATS),), {"exponent": b.choose((2, 3, 4, 0.5, -1, -0.5, 5, 1, 0))}),
        lambda args, attrs: _whole_power(args[0], attrs["exponent"]),
        lambda a, k: torch.pow(a[0], k["exponent"]),
        lambda a, k: a[0] ** k["exponent"],
        lambda emit, a, k: emit("Pow", [a[0], emit.scalar_like(a[0], k["exponent"])]),
        1,
    )
)


# Integer division and shifts: the second operand is a leaf that keeps the op defined.


def _build_division(dtypes):
    def build(b):
        first = b.value(dtypes)
        return (first, b.companion(first, kind="divisor", fresh=True)), {}

    return build


def _truncated(x, y):
    return (
        np.sign(x.astype(np.int64)) * (np.abs(x.astype(np.int64)) // np.abs(y.astype(np.int64))) * np.sign(y)
    ).astype(x.dtype)


_NARROW = ("i32", "i8", "u8", "i16", "u16", "u32")  # their magnitudes fit into i64
for _name, _f, _torch, _jax, _onnx, _dtypes in (
    ("floor_divide", np.floor_divide, torch_call("floor_divide"), jax_call("floor_divide"), None, INTEGERS),
    ("remainder", np.remainder, torch_call("remainder"), jax_call("remainder"), onnx_call("Mod"), INTEGERS),
    (
        "truncate_divide",
        _truncated,
        lambda a, k: torch.div(*a, rounding_mode="trunc"),
        lambda a, k: lax.div(*jnp.broadcast_arrays(*a)),
        onnx_call("Div"),
        _NARROW,
    ),
    (
        "fmod",
        np.fmod,
        torch_call("fmod"),
        lambda a, k: lax.rem(*jnp.broadcast_arrays(*a)),
        lambda emit, a, k: emit("Mod", a, fmod=1),
        INTEGERS,
    ),
):
    add(
        Op(
            _name,
            _build_division(_dtypes),
            lambda args, attrs, f=_f: elementwise(f, *args),
            _torch,
            _jax,
            _onnx,
            1,
        )
    )


def _build_shift(b):
    first = b.value(INTEGERS)
    return (first, b.companion(first, kind="shift", fresh=True)), {}


add(
    Op(
        "shift_left",
        _build_shift,
        lambda args, attrs: elementwise(np.left_shift, *args),
        torch_call("bitwise_left_shift"),
        jax_call("left_shift"),
        weight=1,
    )
)
add(
    Op(
        "shift_right",
        _build_shift,
        lambda args, attrs: elementwise(np.right_shift, *args),
        torch_call("bitwise_right_shift"),
        jax_call("right_shift"),
        weight=1,
    )
)


# Comparisons: nearly equal values may fall either way.

_COMPARISONS = {
    "eq": (np.equal, "equal", "Equal"),
    "ne": (np.not_equal, "not_equal", None),
    "lt": (np.less, "less", "Less"),
    "le": (np.less_equal, "less_equal", "LessOrEqual"),
    "gt": (np.greater, "greater", "Greater"),
    "ge": (np.greater_equal, "greater_equal", "GreaterOrEqual"),
}


def compared(function, one: Shadow, other: Shadow) -> Shadow:
    with np.errstate(all="ignore"):
        bound = one.error + other.error
        value = function(one.value, other.value)
        apart = np.abs(one.value - other.value) if one.is_float else np.where(one.value == other.value, 0.0, np.inf)
        unsure = (bound > 0) & ~(apart > bound) & ~(np.isnan(apart) & np.isfinite(bound)) | np.isinf(bound)
    return Shadow(value, np.where(np.broadcast_to(unsure, value.shape), INFINITY, 0.0), "i1")


for _name, (_f, _jax, _onnx) in _COMPARISONS.items():

    def _build_comparison(b):
        first = b.value((*FLOATS, *INTEGERS, "i1"))
        return (first, b.companion(first)), {}

    add(
        Op(
            _name,
            _build_comparison,
            lambda args, attrs, f=_f: compared(f, *args),
            torch_call(_name),
            jax_call(_jax),
            onnx_call(_onnx) if _onnx else None,
            1,
        )
    )


def _build_where(b):
    condition = b.value(("i1",))
    first = b.companion(condition, dtype=b.choose((*FLOATS, *INTEGERS, "i1")))
    return (condition, first, b.companion(first)), {}


def _evaluate_where(args, attrs):
    condition, one, other = args
    value = np.where(condition.value, one.value, other.value)
    error = np.where(condition.value, one.errors(), other.errors())
    return Shadow(value, np.where(condition.errors() > 0, INFINITY, error), one.dtype)


add(Op("where", _build_where, _evaluate_where, torch_call("where"), jax_call("where"), onnx_call("Where"), 3))


def _build_clamp(b):
    value = b.value((*FLOATS, *INTEGERS))
    low = b.choose((1, 2, 100)) if b.type(value).dtype.startswith("u") else b.integer(-3, 2)
    return (value,), {"low": low, "high": low + b.integer(0, 4)}


add(
    Op(
        "clamp",
        _build_clamp,
        lambda args, attrs: elementwise(lambda x: np.clip(x, attrs["low"], attrs["high"]), *args, units=0.0),
        lambda a, k: torch.clamp(a[0], k["low"], k["high"]),
        lambda a, k: jnp.clip(a[0], k["low"], k["high"]),
        lambda emit, a, k: emit("Clip", [a[0], emit.scalar_like(a[0], k["low"]), emit.scalar_like(a[0], k["high"])]),
        1,
    )
)


def _build_scalar(b):
    return (b.value((*FLOATS, *INTEGERS)),), {"scale": b.choose((2, 3, 0, 1)), "offset": b.choose((0, 1, 5))}


def _evaluate_scalar(args, attrs):
    scaled = elementwise(lambda x: x * np.asarray(attrs["scale"]).astype(x.dtype), *args)
    return elementwise(lambda x: x + np.asarray(attrs["offset"]).astype(x.dtype), scaled)


add(
    Op(
        "scalar_affine",
        _build_scalar,
        _evaluate_scalar,
        lambda a, k: a[0] * k["scale"] + k["offset"],
        lambda a, k: a[0] * k["scale"] + k["offset"],
        lambda emit, a, k: emit(
            "Add", [emit("Mul", [a[0], emit.scalar_like(a[0], k["scale"])]), emit.scalar_like(a[0], k["offset"])]
        ),
    )
)


# Casts.


def cast(x: Shadow, dtype: str) -> Shadow:
    """Floats out of an integer type's range, and infinities and NaN, have no defined result."""
    with np.errstate(all="ignore"):
        if dtype in UNIT:
            if x.is_float:
                exact = UNIT[dtype] <= UNIT[x.dtype] and not (x.dtype == "bf16" and dtype == "f16")
                return rounded(x.value, x.error, dtype, 0.0 if exact else 1.0)
            wide = x.value.astype(np.float64)
            return rounded(wide, x.error, dtype)
        if dtype == "i1":
            if not x.is_float:
                return Shadow(x.value != 0, x.error, "i1")
            unsure = (x.error > 0) & (np.abs(x.value) <= x.error)
            return Shadow(x.value != 0, np.where(np.broadcast_to(unsure, x.shape), INFINITY, 0.0), "i1")
        if not x.is_float:
            return Shadow(x.value.astype(DTYPES[dtype]), x.error, dtype)
        limits = np.iinfo(DTYPES[dtype])
        inside = (np.trunc(x.value) >= float(limits.min)) & (np.trunc(x.value) <= np.nextafter(float(limits.max), 0))
        if limits.bits < 64:
            inside = (np.trunc(x.value) >= limits.min) & (np.trunc(x.value) <= limits.max)
        safe = Shadow(np.where(inside, x.value, 0.0), x.error, x.dtype)
        made = elementwise(np.trunc, safe, dtype=dtype)
        return Shadow(made.value, np.where(inside, made.errors(), INFINITY), dtype)


def _build_cast(b):
    first = b.value(REALS)
    wanted = [name for name in REALS if name != b.type(first).dtype]
    return (first,), {"dtype": b.choose(wanted)}


add(
    Op(
        "cast",
        _build_cast,
        lambda args, attrs: cast(args[0], attrs["dtype"]),
        lambda a, k: a[0].to(torch_dtype(k["dtype"])),
        lambda a, k: a[0].astype(DTYPES[k["dtype"]]),
        lambda emit, a, k: emit("Cast", a, to=emit.dtype(k["dtype"])),
        4,
    )
)


def torch_dtype(name: str):
    """torch's name of an element type."""
    named = {"i1": "bool", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64"}
    named |= {"u16": "uint16", "u32": "uint32", "u64": "uint64"}
    named |= {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}
    return getattr(torch, named[name])
