"""Elementwise ops of torch with its own rules for types, constants of every type: the reference is eager torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.fuzz.ops.base import TABLE, functional, torch
from tests.fuzz.ops.eager import row
from tests.fuzz.ops.elementwise import torch_dtype
from tests.fuzz.ops.torch_order import SIGNLESS, plain
from tests.fuzz.shadow import FLOATS, INFINITY, REALS, UNIT, Shadow

_NUMBERS = (1, 2, -1, 0, 3, 100, 200, 300, 2.5, -0.5, 1e6, 1e-9)


def _pair(dtypes, mixed=True):
    """Two that broadcast, of one type or of two."""

    def build(b):
        first = b.value(dtypes)
        other = b.choose(dtypes) if mixed and b.draw(2) == 2 else b.type(first).dtype
        second = b.companion(first, dtype=other)
        return ((first, second) if b.boolean() else (second, first)), {}

    return build


_BINARY = (
    *("add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "remainder", "fmod", "floor_divide", "pow"),
    *("eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or"),
    *("logical_xor", "bitwise_left_shift", "bitwise_right_shift", "atan2", "hypot", "copysign", "nextafter", "gcd"),
    *("lcm", "logaddexp", "logaddexp2", "heaviside", "xlogy", "float_power", "rsub", "isclose"),
)
for _name in _BINARY:
    row(f"any_{_name}", _pair(SIGNLESS), lambda a, k, name=_name: getattr(torch, name)(a[0], a[1]))


def _scaled(args, attrs):
    """torch takes the last 32 bits of an exponent for all of it."""
    x, exponent = args
    return torch.ldexp(x, exponent.clamp(-1000, 1000) if exponent.dtype == torch.int64 else exponent)


row("any_ldexp", _pair(SIGNLESS), _scaled)
for _mode in ("trunc", "floor"):
    row(f"div_{_mode}", _pair(SIGNLESS), lambda a, k, mode=_mode: torch.div(a[0], a[1], rounding_mode=mode))

_WITH_NUMBER = ("add", "sub", "mul", "div", "remainder", "fmod", "floor_divide", "pow", "rsub")
for _name in (*_WITH_NUMBER, "eq", "lt", "ge", "bitwise_and", "bitwise_left_shift", "bitwise_right_shift"):
    row(
        f"{_name}_number",
        plain(SIGNLESS, number=_NUMBERS),
        lambda a, k, name=_name: getattr(torch, name)(a[0], k["number"]),
    )
row("number_pow", plain(SIGNLESS, number=(2, 3, 0.5)), lambda a, k: torch.pow(k["number"], a[0]))

_UNARY = (
    *("abs", "neg", "square", "sign", "sgn", "reciprocal", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log"),
    *("log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "erf", "erfc", "erfinv", "lgamma", "digamma", "i0", "sigmoid", "sinc", "frac", "trunc", "round", "ceil"),
    *("floor", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "logical_not", "bitwise_not", "nan_to_num"),
    *("positive", "deg2rad", "rad2deg", "relu", "selu", "celu", "zeros_like", "ones_like", "angle"),
)
for _name in _UNARY:
    row(f"any_{_name}", plain(SIGNLESS), lambda a, k, name=_name: getattr(torch, name)(a[0]))
# The sign of NaN is nobody's.
row("any_signbit", plain(SIGNLESS), lambda a, k: torch.signbit(torch.nan_to_num(a[0])))
_ACTIVATIONS = ("gelu", "silu", "mish", "softplus", "hardtanh", "hardsigmoid", "logsigmoid", "softsign", "tanhshrink")
for _name in (*_ACTIVATIONS, "relu6", "leaky_relu", "hardshrink", "softshrink"):
    row(f"torch_{_name}", plain(FLOATS), lambda a, k, name=_name: getattr(functional, name)(a[0]))


def _bounded(b):
    value = b.value(SIGNLESS)
    kind = b.type(value).dtype
    return (value, b.companion(value, dtype=kind), b.companion(value, dtype=kind)), {"ends": b.draw(2)}


def _clamp(a, k):
    ends = {0: {"min": a[1], "max": a[2]}, 1: {"min": a[1]}, 2: {"max": a[2]}}[k["ends"]]
    return torch.clamp(a[0], **ends)


row("clamp_tensor", _bounded, _clamp, 3)
row(
    "clamp_number",
    plain(SIGNLESS, low=(0, 3, -2, 130), high=(5, 150, 200)),
    lambda a, k: a[0].clamp(k["low"], k["high"]),
)


def _choice(b):
    condition = b.value(("i1",))
    first = b.companion(condition, dtype=b.choose(SIGNLESS))
    return (condition, first, b.companion(first, dtype=b.choose(SIGNLESS))), {}


row("where_mixed", _choice, lambda a, k: torch.where(a[0], a[1], a[2]))
row("where_number", _choice, lambda a, k: torch.where(a[0], a[1], 3))
row("lerp", lambda b: (_bounded(b)[0], {}), lambda a, k: torch.lerp(a[0], a[1], 0.25))
row("addcmul", lambda b: (_bounded(b)[0], {}), lambda a, k: torch.addcmul(a[0], a[1], a[2], value=2))


def _made(b):
    """Beside a value, since a program has arguments."""
    return (b.value(SIGNLESS),), {"dtype": b.choose(REALS), "size": b.integer(0, 9)}


def _joined(made, a):
    """A constant that meets an argument, or one that is returned as it is."""
    return made + a[0].sum().to(made.dtype) if made.dtype.is_floating_point else made


row("arange", _made, lambda a, k: torch.arange(k["size"], dtype=torch_dtype(k["dtype"])), 2)
row("arange_step", _made, lambda a, k: torch.arange(100, 100 + k["size"], 2, dtype=torch_dtype(k["dtype"])))
row("full", _made, lambda a, k: _joined(torch.full((k["size"], 2), 3, dtype=torch_dtype(k["dtype"])), a))
row("full_like", _made, lambda a, k: torch.full_like(a[0], 3))
row("full_like_type", _made, lambda a, k: torch.full_like(a[0], 3, dtype=torch_dtype(k["dtype"])))
row("linspace", _made, lambda a, k: torch.linspace(0, 100, k["size"], dtype=torch_dtype(k["dtype"])))
row("eye", _made, lambda a, k: torch.eye(k["size"], dtype=torch_dtype(k["dtype"])))
row("new_ones", _made, lambda a, k: a[0].new_ones((k["size"],)) * 2)


def _bytes_of(b):
    """Floats that fit into a byte, above 127 too."""
    value = b.value(FLOATS)
    return (value,), {"dtype": b.choose(("u8", "u16", "i16", "i32")), "scale": b.choose((255.0, 100.0, 1.0))}


row(
    "quantized",
    _bytes_of,
    lambda a, k: (a[0].sigmoid() * k["scale"]).round().clamp(0, 255).to(torch_dtype(k["dtype"])),
    3,
)


def _quantized(args, attrs, plain=TABLE["quantized"].evaluate):
    """Near a tie the roundings of the steps decide, which a sigmoid does not show when its operand is moved."""
    (x,) = args
    made = plain(args, attrs)
    with np.errstate(all="ignore"):
        level = attrs["scale"] / (1 + np.exp(-x.value))
        tie = np.abs(level - np.floor(level) - 0.5) <= 8 * UNIT[x.dtype] * np.maximum(level, 1)
    return Shadow(made.value, np.where(tie, INFINITY, made.errors()), made.dtype)


TABLE["quantized"] = replace(TABLE["quantized"], evaluate=_quantized)
