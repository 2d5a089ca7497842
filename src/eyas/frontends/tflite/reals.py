"""Rules for arithmetic: integers that stand for real numbers arrive as those."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from eyas.frontends.tensorflow import elementwise, reductions, windows
from eyas.frontends.tensorflow.elementwise import OPERATORS, constant
from eyas.frontends.tensorflow.graph import Complex, dims_of
from eyas.frontends.tensorflow.moves import known
from eyas.frontends.tflite.quantize import is_quantized
from eyas.frontends.tflite.translate import Call

# Operators of one element -> TensorFlow's names of them.
_ELEMENTWISE = {
    "ABS": "Abs",
    "ADD": "Add",
    "ADD_N": "AddN",
    "ATAN2": "Atan2",
    "BITWISE_XOR": "BitwiseXor",
    "CEIL": "Ceil",
    "COS": "Cos",
    "DIV": "Div",
    "ELU": "Elu",
    "EQUAL": "Equal",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "FLOOR_DIV": "FloorDiv",
    "FLOOR_MOD": "FloorMod",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterEqual",
    "HARD_SWISH": "HardSwish",
    "LESS": "Less",
    "LESS_EQUAL": "LessEqual",
    "LOG": "Log",
    "LOGICAL_AND": "LogicalAnd",
    "LOGICAL_NOT": "LogicalNot",
    "LOGICAL_OR": "LogicalOr",
    "LOGISTIC": "Sigmoid",
    "MAXIMUM": "Maximum",
    "MINIMUM": "Minimum",
    "MUL": "Mul",
    "NEG": "Neg",
    "NOT_EQUAL": "NotEqual",
    "POW": "Pow",
    "RELU": "Relu",
    "RELU6": "Relu6",
    "RELU_0_TO_1": "Relu0To1",
    "RELU_N1_TO_1": "ReluN1To1",
    "ROUND": "Round",
    "RSQRT": "Rsqrt",
    "SIGN": "Sign",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "SQUARE": "Square",
    "SQUARED_DIFFERENCE": "SquaredDifference",
    "STABLEHLO_ADD": "Add",
    "STABLEHLO_DIVIDE": "Div",
    "STABLEHLO_LOGISTIC": "Sigmoid",
    "STABLEHLO_MAXIMUM": "Maximum",
    "STABLEHLO_MINIMUM": "Minimum",
    "STABLEHLO_MULTIPLY": "Mul",
    "STABLEHLO_SUBTRACT": "Sub",
    "STABLEHLO_TANH": "Tanh",
    "SUB": "Sub",
    "TANH": "Tanh",
}
_REDUCTIONS = {
    "MEAN": "Mean",
    "REDUCE_ALL": "All",
    "REDUCE_ANY": "Any",
    "REDUCE_MAX": "Max",
    "REDUCE_MIN": "Min",
    "REDUCE_PROD": "Prod",
    "SUM": "Sum",
}


def _elementwise(name: str) -> Any:
    return lambda call: OPERATORS[name](call.g, *call.inputs)


def _reduction(kind: str) -> Any:
    return lambda call: reductions.reduce(call.g, kind, call.input(0), call.input(1), bool(call.get("KeepDims", False)))


def _extreme(kind: str) -> Any:
    return lambda call: reductions.arg_extreme(call.g, kind, call.input(0), call.input(1), call.result.dtype)


def _resize(mode: str) -> Any:
    def rule(call: Call) -> Any:
        size = known(call.g, call.input(1), "size").reshape(-1).tolist()
        corners, centers = bool(call.get("AlignCorners", False)), bool(call.get("HalfPixelCenters", False))
        return windows.resize(call.g, call.input(0), size, mode, corners, centers)

    return rule


def resize_bilinear(call: Call) -> Any:
    """Of integers: between them, halves rounded up; the scale is the same before and after."""
    rule = _resize("linear")
    if not is_quantized(call.result):
        return rule(call)
    if call.result.kind == "INT16":
        return _resize_fixed_point(call)
    g = call.g
    raw = replace(call, inputs=[g.cast(call.input(0), np.float32), call.input(1)])
    return g.cast(g.add("Floor", g.add("Add", rule(raw), np.array(0.5, np.float32))), call.result.dtype)


def _resize_fixed_point(call: Call) -> Any:
    """Of 16 bits LiteRT's places between pixels have ten binary digits, which are fewer than the integers have."""
    g, unit = call.g, 1 << 10
    sizes = [int(one) for one in known(g, call.input(1), "size").reshape(-1)]
    x = g.cast(call.input(0), np.int64)
    corners, centers = bool(call.get("AlignCorners", False)), bool(call.get("HalfPixelCenters", False))
    for axis, wanted in zip((1, 2), sizes, strict=True):
        had = g.size(x, axis)
        by = (unit * (had - 1) + (wanted - 1) // 2) // (wanted - 1) if corners and wanted > 1 else 0
        by = by if corners and wanted > 1 else (unit * had + wanted // 2) // wanted
        at = np.arange(wanted, dtype=np.int64) * by + (by // 2 - unit // 2 if centers else 0)
        low = np.maximum(at // unit, 0)
        high = np.minimum(-(-at // unit), had - 1)
        share = (at - unit * low).reshape([-1 if i == axis else 1 for i in range(4)])
        first, second = (g.add("Gather", x, np.minimum(place, had - 1), axis=axis) for place in (low, high))
        x = g.add("Add", g.add("Mul", first, unit - share), g.add("Mul", second, share))
    # Both axes have multiplied by the unit; halves go away from zero.
    half = np.array(unit * unit // 2, np.int64)
    moved = g.add("Add", x, g.add("Mul", g.add("Sign", x), half))
    return g.cast(g.add("Div", moved, np.array(unit * unit, np.int64)), call.result.dtype)


def l2_normalization(call: Call) -> Any:
    return reductions.l2_normalize(call.g, call.input(0), 1e-6**2)


def local_response(call: Call) -> Any:
    numbers = [call.get(name, default) for name, default in (("Bias", 0.0), ("Alpha", 0.0), ("Beta", 0.0))]
    return reductions.local_response(call.g, call.input(0), call.get("Radius"), *numbers)


def top_k(call: Call) -> Any:
    return reductions.top_k(call.g, call.input(0), call.input(1), call.results[1].dtype)


def _segment(kind: str) -> Any:
    def rule(call: Call) -> Any:
        ids = call.input(1)
        if len(call.inputs) > 2:
            count = int(known(call.g, call.input(2), "number of segments").reshape(-1)[0])
        else:
            count = int(known(call.g, ids, "segments").max(initial=-1)) + 1
        return reductions.segment(call.g, kind, call.input(0), ids, count)

    return rule


def bucketize(call: Call) -> Any:
    """How many boundaries an element is at or above."""
    g, x = call.g, call.input(0)
    bounds = np.asarray(call.record.options.BoundariesAsNumpy(), np.float32).reshape(-1)
    wide = g.add("Unsqueeze", g.cast(x, np.float32), np.array([-1], np.int64))
    above = g.cast(g.add("GreaterOrEqual", wide, bounds), np.int32)
    return g.add("ReduceSum", above, np.array([-1], np.int64), keepdims=0)


def fake_quant(call: Call) -> Any:
    """Rounded to the steps of a range that is moved so that zero is one of them."""
    g, x = call.g, call.input(0)
    low, high, bits = call.get("Min", 0.0), call.get("Max", 0.0), call.get("NumBits", 8)
    first, last = int(call.get("NarrowRange", False)), (1 << bits) - 1
    if low == high == 0:
        return g.add("Mul", x, constant(x, 0))
    scale = (high - low) / (last - first)
    zero = float(np.clip(np.floor(first - low / scale + 0.5), first, last))
    low, high = (first - zero) * scale, (last - zero) * scale
    steps = g.add("Div", g.add("Sub", elementwise.clip(g, x, low, high), constant(x, low)), constant(x, scale))
    steps = g.add("Floor", g.add("Add", steps, constant(x, 0.5)))
    return g.add("Add", g.add("Mul", steps, constant(x, scale)), constant(x, low))


def rfft_2d(call: Call) -> Any:
    """Transforms of the last two dimensions, cut or padded to given lengths first; half of the last one stays."""
    g, x = call.g, call.input(0)
    lengths = [int(one) for one in known(g, call.input(1), "lengths").reshape(-1)]
    rank = len(dims_of(x))
    for axis, wanted in zip((rank - 2, rank - 1), lengths, strict=True):
        had = g.size(x, axis)
        if had > wanted:
            x = g.add("Slice", x, np.array([0]), np.array([wanted]), np.array([axis]))
        elif had < wanted:
            x = g.add("Pad", x, np.array([0] * (rank + axis) + [wanted - had] + [0] * (rank - 1 - axis), np.int64))
    flat = g.reshape(x, [-1, lengths[1], 1])
    spectrum = g.add("DFT", flat, None, np.array(1, np.int64), onesided=1)
    half = lengths[1] // 2 + 1
    if lengths[0] > 1:
        spectrum = g.reshape(spectrum, [-1, lengths[0], half, 2])
        spectrum = g.transpose(spectrum, [0, 2, 1, 3])
        spectrum = g.reshape(spectrum, [-1, lengths[0], 2])
        spectrum = g.add("DFT", spectrum, None, np.array(1, np.int64))
        spectrum = g.transpose(g.reshape(spectrum, [-1, half, lengths[0], 2]), [0, 2, 1, 3])
    dims = [*dims_of(x)[:-2], lengths[0], half]
    sizes = [dim if isinstance(dim, int) else -1 for dim in dims]
    spectrum = g.reshape(spectrum, [*sizes, 2])
    parts = (g.add("Gather", spectrum, np.array(part, np.int64), axis=rank) for part in (0, 1))
    return Complex(*parts)


def cumsum(call: Call) -> Any:
    return reductions.cumulative(
        call.g, call.input(0), call.input(1), bool(call.get("Exclusive", False)), bool(call.get("Reverse", False))
    )


def right_shift(call: Call) -> Any:
    """Of signed integers too, which ONNX has no shift for: a division rounded down."""
    g, x, places = call.g, *call.inputs[:2]
    power = g.cast(g.add("Pow", np.array(2, np.float64), g.cast(places, np.float64)), np.int64)
    return g.cast(elementwise.floor_div(g, g.cast(x, np.int64), power), x.dtype)


def shift_left(call: Call) -> Any:
    g, x, places = call.g, *call.inputs[:2]
    power = g.cast(g.add("Pow", np.array(2, np.float64), g.cast(places, np.float64)), x.dtype)
    return g.add("Mul", x, power)


def cube_root(call: Call) -> Any:
    g, x = call.g, call.input(0)
    return g.add("Mul", g.add("Sign", x), g.add("Pow", g.add("Abs", x), constant(x, 1 / 3)))


REALS = {
    **{op: _elementwise(name) for op, name in _ELEMENTWISE.items()},
    **{op: _reduction(kind) for op, kind in _REDUCTIONS.items()},
    "BUCKETIZE": bucketize,
    "COMPLEX_ABS": lambda call: elementwise.magnitude(call.g, call.input(0)),
    "CUMSUM": cumsum,
    "FAKE_QUANT": fake_quant,
    "GELU": lambda call: elementwise.gelu(call.g, call.input(0), bool(call.get("Approximate", False))),
    "IMAG": lambda call: call.input(0).imaginary,
    "L2_NORMALIZATION": l2_normalization,
    "LEAKY_RELU": lambda call: elementwise.leaky_relu(call.g, call.input(0), call.get("Alpha", 0.0)),
    "LOCAL_RESPONSE_NORMALIZATION": local_response,
    "LOG_SOFTMAX": lambda call: reductions.log_softmax(call.g, call.input(0)),
    "PRELU": lambda call: elementwise.prelu(call.g, call.input(0), call.input(1)),
    "REAL": lambda call: call.input(0).real,
    "RFFT2D": rfft_2d,
    "RIGHT_SHIFT": right_shift,
    "SOFTMAX": lambda call: reductions.softmax(call.g, call.input(0), call.get("Beta", 1.0)),
    "STABLEHLO_CBRT": cube_root,
    "STABLEHLO_SHIFT_LEFT": shift_left,
    **{f"UNSORTED_SEGMENT_{kind.upper()}": _segment(kind) for kind in ("Max", "Min", "Prod", "Sum")},
    "SEGMENT_SUM": _segment("Sum"),
}

EXACT = {
    "ARG_MAX": _extreme("ArgMax"),
    "ARG_MIN": _extreme("ArgMin"),
    "RESIZE_BILINEAR": resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": _resize("nearest"),
    "TOPK_V2": top_k,
}
