"""Operators on single elements: those of TensorFlow by name, each a function of the graph and its operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from eyas.frontends.tensorflow.graph import Complex, Graph, Tensor

Operator = Callable[..., Any]


def _same(op: str) -> Operator:
    """The operator that ONNX has too."""
    return lambda g, *operands: g.add(op, *operands)


def constant(like: Tensor, number: float) -> np.ndarray:
    """A number of the type of a tensor."""
    return np.array(number, like.dtype)


def is_float(x: Tensor) -> bool:
    return np.dtype(x.dtype).kind == "f"


def clip(g: Graph, x: Any, low: float | None, high: float | None) -> Any:
    """Bounds of which either may be missing."""
    if low == 0 and high is None and is_float(x):
        return g.add("Relu", x)
    if not is_float(x):
        x = x if low is None else g.add("Max", x, constant(x, low))
        return x if high is None else g.add("Min", x, constant(x, high))
    return g.add("Clip", x, None if low is None else constant(x, low), None if high is None else constant(x, high))


def select(g: Graph, condition: Any, yes: Any, no: Any) -> Any:
    return g.add("Where", g.cast(condition, np.bool_), yes, no)


def floor_div(g: Graph, x: Any, y: Any) -> Any:
    """Rounded down, of integers too, which ONNX rounds to zero."""
    if is_float(x):
        return g.add("Floor", g.add("Div", x, y))
    return g.add("Div", g.add("Sub", x, g.add("Mod", x, y)), y)


def floor_mod(g: Graph, x: Any, y: Any) -> Any:
    """The rest that has the sign of the divisor."""
    if not is_float(x):
        return g.add("Mod", x, y)
    zero = constant(x, 0)
    rest = g.add("Mod", x, y, fmod=1)
    differs = g.add("Xor", g.add("Less", rest, zero), g.add("Less", y, zero))
    wrong = g.add("And", differs, g.add("Not", g.add("Equal", rest, zero)))
    return g.add("Where", wrong, g.add("Add", rest, y), rest)


def divide_no_nan(g: Graph, x: Any, y: Any) -> Any:
    none = g.add("Equal", y, constant(y, 0))
    quotient = g.add("Div", x, g.add("Where", none, constant(y, 1), y))
    return g.add("Where", none, constant(x, 0), quotient)


def squared_difference(g: Graph, x: Any, y: Any) -> Any:
    return square(g, g.add("Sub", x, y))


def square(g: Graph, x: Any) -> Any:
    return g.add("Mul", x, x)


def rsqrt(g: Graph, x: Any) -> Any:
    return g.add("Reciprocal", g.add("Sqrt", x))


def log1p(g: Graph, x: Any) -> Any:
    """log(1 + x), exact near 0: the rounding of 1 + x is divided out (Kahan)."""
    one = constant(x, 1)
    shifted = g.add("Add", x, one)
    away = g.add("Sub", shifted, one)
    none = g.add("Equal", away, constant(x, 0))
    scaled = g.add("Div", g.add("Mul", x, g.add("Log", shifted)), g.add("Where", none, one, away))
    plain = g.add("IsInf", shifted)
    return g.add("Where", none, x, g.add("Where", plain, g.add("Log", shifted), scaled))


def expm1(g: Graph, x: Any) -> Any:
    """exp(x) - 1, exact near 0: 2 tanh(x/2) / (1 - tanh(x/2))."""
    half = g.add("Tanh", g.add("Mul", x, constant(x, 0.5)))
    near = g.add("Div", g.add("Mul", half, constant(x, 2)), g.add("Sub", constant(x, 1), half))
    small = g.add("Less", g.add("Abs", x), constant(x, 0.5))
    return g.add("Where", small, near, g.add("Sub", g.add("Exp", x), constant(x, 1)))


def atan2(g: Graph, y: Any, x: Any) -> Any:
    zero, pi = constant(x, 0), constant(x, math.pi)
    none = g.add("Equal", x, zero)
    angle = g.add("Atan", g.add("Div", y, g.add("Where", none, constant(x, 1), x)))
    below = g.add("Less", y, zero)
    turn = g.add("Where", below, g.add("Neg", pi), pi)
    angle = g.add("Where", g.add("Less", x, zero), g.add("Add", angle, turn), angle)
    upright = g.add("Where", below, constant(x, -math.pi / 2), constant(x, math.pi / 2))
    upright = g.add("Where", g.add("Equal", y, zero), zero, upright)
    return g.add("Where", none, upright, angle)


def leaky_relu(g: Graph, x: Any, alpha: float) -> Any:
    return g.add("LeakyRelu", x, alpha=float(alpha))


def prelu(g: Graph, x: Any, slope: Any) -> Any:
    zero = constant(x, 0)
    return g.add("Where", g.add("Less", x, zero), g.add("Mul", x, slope), x)


def hard_swish(g: Graph, x: Any) -> Any:
    gate = clip(g, g.add("Add", x, constant(x, 3)), 0, 6)
    return g.add("Mul", g.add("Mul", x, gate), constant(x, 1 / 6))


def gelu(g: Graph, x: Any, approximate: bool) -> Any:
    return g.add("Gelu", x, approximate="tanh" if approximate else "none")


def sign(g: Graph, x: Any) -> Any:
    return g.add("Sign", x)


def add_n(g: Graph, *parts: Any) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = g.add("Add", total, part)
    return total


def not_equal(g: Graph, x: Any, y: Any) -> Any:
    return g.add("Not", g.add("Equal", x, y))


def multiply(g: Graph, x: Any, y: Any) -> Any:
    """Also of complex numbers."""
    if not isinstance(x, Complex) and not isinstance(y, Complex):
        return g.add("Mul", x, y)
    a = x if isinstance(x, Complex) else Complex(x, np.zeros((), np.float32))
    b = y if isinstance(y, Complex) else Complex(y, np.zeros((), np.float32))
    real = g.add("Sub", g.add("Mul", a.real, b.real), g.add("Mul", a.imaginary, b.imaginary))
    imaginary = g.add("Add", g.add("Mul", a.real, b.imaginary), g.add("Mul", a.imaginary, b.real))
    return Complex(real, imaginary)


def magnitude(g: Graph, x: Any) -> Any:
    """The absolute value."""
    if not isinstance(x, Complex):
        return g.add("Abs", x)
    return g.add("Sqrt", g.add("Add", square(g, x.real), square(g, x.imaginary)))


def divide(g: Graph, x: Any, y: Any) -> Any:
    return g.add("Div", x, y)


OPERATORS: dict[str, Operator] = {
    "Abs": magnitude,
    "Add": _same("Add"),
    "AddN": add_n,
    "AddV2": _same("Add"),
    "Acos": _same("Acos"),
    "Acosh": _same("Acosh"),
    "Asin": _same("Asin"),
    "Asinh": _same("Asinh"),
    "Atan": _same("Atan"),
    "Atan2": atan2,
    "Atanh": _same("Atanh"),
    "BiasAdd": _same("Add"),
    "BitwiseXor": _same("BitwiseXor"),
    "Ceil": _same("Ceil"),
    "Cos": _same("Cos"),
    "Cosh": _same("Cosh"),
    "Div": divide,
    "DivNoNan": divide_no_nan,
    "Elu": _same("Elu"),
    "Equal": _same("Equal"),
    "Erf": _same("Erf"),
    "Exp": _same("Exp"),
    "Expm1": expm1,
    "Floor": _same("Floor"),
    "FloorDiv": floor_div,
    "FloorMod": floor_mod,
    "Greater": _same("Greater"),
    "GreaterEqual": _same("GreaterOrEqual"),
    "HardSwish": hard_swish,
    "Identity": lambda g, x: x,
    "IsFinite": lambda g, x: g.add("Not", g.add("Or", g.add("IsInf", x), g.add("IsNaN", x))),
    "IsInf": _same("IsInf"),
    "IsNan": _same("IsNaN"),
    "Less": _same("Less"),
    "LessEqual": _same("LessOrEqual"),
    "Log": _same("Log"),
    "Log1p": log1p,
    "LogicalAnd": _same("And"),
    "LogicalNot": _same("Not"),
    "LogicalOr": _same("Or"),
    "LogicalXor": _same("Xor"),
    "Maximum": _same("Max"),
    "Minimum": _same("Min"),
    "Mul": multiply,
    "Neg": _same("Neg"),
    "NotEqual": not_equal,
    "Pow": _same("Pow"),
    "RealDiv": divide,
    "Reciprocal": _same("Reciprocal"),
    "Relu": lambda g, x: clip(g, x, 0, None),
    "Relu6": lambda g, x: clip(g, x, 0, 6),
    "ReluN1To1": lambda g, x: clip(g, x, -1, 1),
    "Relu0To1": lambda g, x: clip(g, x, 0, 1),
    "Round": _same("Round"),
    "Rsqrt": rsqrt,
    "Select": select,
    "SelectV2": select,
    "Selu": _same("Selu"),
    "Sigmoid": _same("Sigmoid"),
    "Sign": sign,
    "Sin": _same("Sin"),
    "Sinh": _same("Sinh"),
    "Softplus": _same("Softplus"),
    "Softsign": _same("Softsign"),
    "Sqrt": _same("Sqrt"),
    "Square": square,
    "SquaredDifference": squared_difference,
    "Sub": _same("Sub"),
    "Tan": _same("Tan"),
    "Tanh": _same("Tanh"),
    "TruncateDiv": divide,
}
