"""Rules for operators that few graphs have: spectra, counts, order, and constants of a computed shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from eyas.frontends.tensorflow import moves, reductions
from eyas.frontends.tensorflow.elementwise import OPERATORS
from eyas.frontends.tensorflow.graph import Complex, dims_of
from eyas.frontends.tfjs.node import Node, Rule, dtype_of


def _filled(number: float) -> Rule:
    def rule(node: Node) -> Any:
        kind = dtype_of(node, "T" if node.get("T") else "dtype")
        return moves.broadcast_to(node.g, np.array(number, kind), node.inputs[0])

    return rule


def ones_like(node: Node) -> Any:
    x = node.inputs[0]
    return moves.broadcast_to(node.g, np.ones((), x.dtype), node.g.shape_of(x))


def lin_space(node: Node) -> Any:
    g, (start, stop) = node.g, node.inputs[:2]
    count = node.numbers(2, "number")[0]
    step = g.add("Div", g.add("Sub", stop, start), np.array(max(count - 1, 1), np.float32))
    return g.add("Add", g.add("Mul", np.arange(count, dtype=np.float32), step), start)


def clip_by_value(node: Node) -> Any:
    x, low, high = node.inputs[:3]
    return node.g.add("Min", node.g.add("Max", x, node.g.cast(low, x.dtype)), node.g.cast(high, x.dtype))


def euclidean_norm(node: Node) -> Any:
    x, axes = node.inputs[:2]
    return node.g.add(
        "Sqrt", reductions.reduce(node.g, "Sum", node.g.add("Mul", x, x), axes, bool(node.get("keep_dims")))
    )


def local_response(node: Node) -> Any:
    names = (("depth_radius", 5), ("bias", 1.0), ("alpha", 1.0), ("beta", 0.5))
    radius, *numbers = (default if node.get(name) is None else node.get(name) for name, default in names)
    return reductions.local_response(node.g, node.inputs[0], int(radius or 0), *numbers)


def einsum(node: Node) -> Any:
    return node.g.add("Einsum", *node.inputs, equation=node.get("equation"))


def _bound(op: str) -> Rule:
    """How many numbers of each sorted row are below a value, or not above it."""

    def rule(node: Node) -> Any:
        g, (ordered, values) = node.g, node.inputs[:2]
        below = g.add(op, moves.expand_dims(g, ordered, 1), moves.expand_dims(g, values, 2))
        return g.add("ReduceSum", g.cast(below, np.int32), np.array([2], np.int64), keepdims=0)

    return rule


def unique(node: Node) -> list[Any]:
    g, x = node.g, node.inputs[0]
    axes = node.numbers(1, "axis") if len(node.inputs) > 1 else []
    axis = axes[0] if axes else 0
    found, _, places, _ = g.add_many("Unique", 4, x, axis=None if len(dims_of(x)) == 1 else axis, sorted=0)
    return [found, g.cast(places, np.int32)]


def bin_count(node: Node) -> Any:
    """How often each number occurs, or the sum of the weights where it does."""
    g, (x, _, weights) = node.g, node.inputs[:3]
    size = node.numbers(1, "size")[0]
    if len(dims_of(x)) != 1 or node.get("binary_output"):
        raise node.refuse("it counts in rows, or only whether a number occurs")
    weighted = dims_of(weights) not in ((0,), ())
    if not weighted:
        weights = moves.broadcast_to(g, np.ones((), weights.dtype), g.shape_of(x))
    in_range = g.add("And", g.add("GreaterOrEqual", x, np.array(0, x.dtype)), g.add("Less", x, np.array(size, x.dtype)))
    weights = g.add("Where", in_range, weights, np.zeros((), weights.dtype))
    places = g.add("Where", in_range, x, np.array(0, x.dtype))
    return reductions.segment(g, "Sum", weights, places, size)


def broadcast_args(node: Node) -> Any:
    sizes = [node.numbers(index, "shape") for index in (0, 1)]
    return np.array(np.broadcast_shapes(*map(tuple, sizes)), np.int32)


# Spectra: pairs of tensors, of which the transforms are ONNX's.


def _pair(x: Any) -> tuple[Any, Any]:
    return (x.real, x.imaginary) if isinstance(x, Complex) else (x, np.zeros((), np.float32))


def _transform(node: Node, x: Any, inverse: bool = False, onesided: bool = False) -> Any:
    """Along the last axis; a tensor without imaginary parts, or one with both in a last dimension."""
    g, dims = node.g, dims_of(x)
    length = g.size(x, -1)
    if isinstance(x, Complex):
        parts = [moves.expand_dims(g, part, len(dims)) for part in (x.real, x.imaginary)]
        flat = g.reshape(g.add("Concat", *parts, axis=len(dims)), [-1, length, 2])
    else:
        flat = g.reshape(x, [-1, length, 1])
    options = {"inverse": int(inverse) or None, "onesided": int(onesided) or None}
    spectrum = g.add("DFT", flat, None, np.array(1, np.int64), **options)
    kept = length // 2 + 1 if onesided else length
    shape = [dim if isinstance(dim, int) else -1 for dim in dims[:-1]]
    parts = (g.add("Gather", spectrum, np.array(part, np.int64), axis=2) for part in (0, 1))
    return Complex(*(g.reshape(part, [*shape, kept]) for part in parts))


def rfft(node: Node) -> Any:
    x, length = node.inputs[0], node.numbers(1, "fft_length")[0]
    return _transform(node, _cut(node, x, length), onesided=True)


def irfft(node: Node) -> Any:
    """The other half of the spectrum mirrors the first."""
    g, length = node.g, node.numbers(1, "fft_length")[0]
    half = length // 2 + 1
    real, imaginary = (_cut(node, part, half) for part in _pair(node.inputs[0]))
    mirror = np.arange(length - half, 0, -1)
    axis = len(dims_of(real)) - 1
    turned = [g.add("Gather", part, mirror, axis=axis) for part in (real, imaginary)]
    whole = (
        g.add("Concat", real, turned[0], axis=axis),
        g.add("Concat", imaginary, g.add("Neg", turned[1]), axis=axis),
    )
    return _transform(node, Complex(*whole), inverse=True).real


def _cut(node: Node, x: Any, wanted: int) -> Any:
    """Cut or padded with zeros at the end to a length."""
    g, axis, had = node.g, len(dims_of(x)) - 1, node.g.size(x, -1)
    if had > wanted:
        return g.add("Slice", x, np.array([0]), np.array([wanted]), np.array([axis]))
    if had < wanted:
        return g.add("Pad", x, np.array([0] * (2 * axis + 1) + [wanted - had], np.int64))
    return x


def complex_abs(node: Node) -> Any:
    g, (real, imaginary) = node.g, _pair(node.inputs[0])
    return g.add("Sqrt", g.add("Add", g.add("Mul", real, real), g.add("Mul", imaginary, imaginary)))


def _first(node: Node) -> Any:
    return node.inputs[0]


RULES: dict[str, Rule] = {
    "Bincount": bin_count,
    "BitwiseAnd": lambda node: node.g.add("BitwiseAnd", *node.inputs[:2]),
    "BroadcastArgs": broadcast_args,
    "ClipByValue": clip_by_value,
    "Complex": lambda node: Complex(*node.inputs[:2]),
    "ComplexAbs": complex_abs,
    "DenseBincount": bin_count,
    "Einsum": einsum,
    "EnsureShape": _first,
    "EuclideanNorm": euclidean_norm,
    "FFT": lambda node: _transform(node, node.inputs[0]),
    "FakeQuantWithMinMaxVars": _first,  # as TensorFlow.js does
    "IFFT": lambda node: _transform(node, node.inputs[0], inverse=True),
    "IRFFT": irfft,
    "Imag": lambda node: _pair(node.inputs[0])[1],
    "LRN": local_response,
    "LinSpace": lin_space,
    "LowerBound": _bound("Less"),
    "Mod": lambda node: OPERATORS["FloorMod"](node.g, *node.inputs[:2]),
    "NoOp": lambda node: [],
    "Ones": _filled(1),
    "OnesLike": ones_like,
    "Print": _first,
    "RFFT": rfft,
    "Real": lambda node: _pair(node.inputs[0])[0],
    "ShapeN": lambda node: [node.g.cast(node.g.shape_of(one), np.int32) for one in node.inputs],
    "Snapshot": _first,
    "TensorScatterUpdate": lambda node: node.g.add(
        "ScatterND", node.inputs[0], node.g.cast(node.inputs[1], np.int64), node.inputs[2]
    ),
    "Unique": unique,
    "UniqueV2": unique,
    "UpperBound": _bound("LessOrEqual"),
    "Zeros": _filled(0),
}
