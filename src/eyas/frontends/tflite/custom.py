"""Custom operators that published models use: MediaPipe's, by name. Their options are C structures or flexbuffers."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from eyas.frontends.tensorflow import windows
from eyas.frontends.tensorflow.graph import Graph
from eyas.frontends.tensorflow.windows import Window
from eyas.frontends.tflite.translate import Call

_SAME = 1  # of TfLitePadding


def convolution_2d_transpose_bias(call: Call) -> Any:
    """A transposed convolution with weights [outputs, H, W, inputs] and a bias."""
    g, image, bias = call.g, call.input(0), call.input(2)
    padding, *strides = struct.unpack_from("<iii", call.record.custom_options)
    strides = strides[::-1]  # the width comes first
    kernel = g.transpose(call.input(1), [3, 0, 1, 2])
    shape = []
    for axis, stride in enumerate(strides):
        had, reach = g.size(image, axis + 1), g.size(kernel, axis + 2)
        cut = max(0, reach - (had - 1) % stride - 1) if padding == _SAME else 0
        shape.append(stride * (had - 1) + reach - cut)
    window = Window(tuple(strides), (1, 1), "SAME" if padding == _SAME else "VALID")
    return windows.convolve_transposed(g, image, kernel, bias, window, shape)


def _settings(call: Call) -> dict[str, Any]:
    """Options that are a flexbuffer."""
    from flatbuffers import flexbuffers

    found = flexbuffers.Loads(bytearray(call.record.custom_options))
    if not isinstance(found, dict):
        raise call.refuse("its options are no map")
    return found


def _number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def _sum(g: Graph, *parts: Any) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = g.add("Add", total, part)
    return total


def landmarks_to_matrix(call: Call) -> Any:
    """The matrix of a crop around some landmarks, turned so that two of them are level: 4x4, from crop to image.

    shift(centre) rotate(-r) scale(size of the crop) shift(-half of the output), with r the angle to turn by.
    """
    g, found = call.g, _settings(call)
    points = g.reshape(call.input(0), [-1, 3])
    x, y = (g.reshape(g.add("Gather", points, np.array(axis), axis=1), [-1]) for axis in (0, 1))

    def at(values: Any, key: str) -> Any:
        return g.add("Gather", values, np.array(int(found[key])))

    dx = g.add("Sub", at(x, "right_rotation_idx"), at(x, "left_rotation_idx"))
    dy = g.add("Sub", at(y, "right_rotation_idx"), at(y, "left_rotation_idx"))
    length = g.add("Sqrt", _sum(g, g.add("Mul", dx, dx), g.add("Mul", dy, dy)))
    dx, dy = g.add("Div", dx, length), g.add("Div", dy, length)
    target = float(found["target_rotation_radians"])
    turn = _number(math.cos(target)), _number(math.sin(target))
    cos = _sum(g, g.add("Mul", dx, turn[0]), g.add("Mul", dy, turn[1]))
    sin = g.add("Sub", g.add("Mul", dx, turn[1]), g.add("Mul", dy, turn[0]))
    chosen = np.array([int(one) for one in found["subset_idxs"]], np.int64)
    x, y = (g.add("Gather", values, chosen) for values in (x, y))
    turned = (
        g.add("Sub", g.add("Mul", x, cos), g.add("Mul", y, sin)),
        _sum(g, g.add("Mul", x, sin), g.add("Mul", y, cos)),
    )
    low, high = ([g.add(op, one, keepdims=0) for one in turned] for op in ("ReduceMin", "ReduceMax"))
    middle = [g.add("Mul", _sum(g, a, b), _number(0.5)) for a, b in zip(low, high, strict=True)]
    sizes = int(found["output_width"]), int(found["output_height"])
    factors = float(found["scale_x"]) / sizes[0], float(found["scale_y"]) / sizes[1]
    scales = [g.add("Mul", g.add("Sub", b, a), _number(f)) for a, b, f in zip(low, high, factors, strict=True)]
    # Rows of rotate(-r) scale.
    rows = (
        (g.add("Mul", cos, scales[0]), g.add("Mul", sin, scales[1])),
        (g.add("Neg", g.add("Mul", sin, scales[0])), g.add("Mul", cos, scales[1])),
    )
    centre = (
        _sum(g, g.add("Mul", cos, middle[0]), g.add("Mul", sin, middle[1])),
        g.add("Sub", g.add("Mul", cos, middle[1]), g.add("Mul", sin, middle[0])),
    )
    entries: list[Any] = []
    for (a, b), start in zip(rows, centre, strict=True):
        half = [g.add("Mul", one, _number(size / 2)) for one, size in zip((a, b), sizes, strict=True)]
        entries += [a, b, _number(0), g.add("Sub", start, _sum(g, *half))]
    entries = [g.reshape(one, [1]) for one in entries]
    last = np.array([0, 0, 1, 0, 0, 0, 0, 1], np.float32)
    return g.reshape(g.add("Concat", *entries, last, axis=0), [1, 4, 4])


def _rows(g: Graph, matrix: Any) -> list[list[Any]]:
    """The first two rows of a 4x4 matrix, as scalars."""
    flat = g.reshape(matrix, [-1])
    return [[g.add("Gather", flat, np.array(4 * row + column)) for column in range(4)] for row in range(2)]


def transform_landmarks(call: Call) -> Any:
    """Points under a matrix; of three coordinates the last stays."""
    g, points = call.g, call.input(0)
    axis = len(points.dims) - 1
    x, y = (g.add("Gather", points, np.array([one]), axis=axis) for one in (0, 1))
    moved = [_sum(g, g.add("Mul", x, row[0]), g.add("Mul", y, row[1]), row[3]) for row in _rows(g, call.input(1))]
    if g.size(points, axis) == 3:
        moved.append(g.add("Gather", points, np.array([2]), axis=axis))
    return g.add("Concat", *moved, axis=axis)


def transform_tensor(call: Call) -> Any:
    """An image sampled between pixels where a matrix says; zero where that is outside."""
    g, image, found = call.g, call.input(0), _settings(call)
    height, width = g.size(image, 1), g.size(image, 2)
    wanted = int(found["output_height"]), int(found["output_width"])
    # Pixels are where their middles are.
    x = np.tile(np.arange(wanted[1], dtype=np.float32) + np.float32(0.5), wanted[0])
    y = np.repeat(np.arange(wanted[0], dtype=np.float32) + np.float32(0.5), wanted[1])
    places = [
        g.add("Sub", _sum(g, g.add("Mul", x, row[0]), g.add("Mul", y, row[1]), row[3]), _number(0.5))
        for row in _rows(g, call.input(1))
    ]
    inside, firsts, parts = np.array(True), [], []
    for place, size in zip(places, (width, height), strict=True):
        low = g.add("GreaterOrEqual", place, _number(0))
        both = g.add("And", low, g.add("LessOrEqual", place, _number(size - 1)))
        inside = g.add("And", inside, both)
        first = g.add("Floor", g.add("Clip", place, _number(0), _number(size - 1)))
        firsts.append(first)
        parts.append(g.reshape(g.add("Sub", place, first), [-1, 1]))
    pixels = g.reshape(image, [height * width, g.size(image, 3)])

    def sample(right: int, down: int) -> Any:
        column = g.add("Min", g.add("Add", firsts[0], _number(right)), _number(width - 1))
        row = g.add("Min", g.add("Add", firsts[1], _number(down)), _number(height - 1))
        index = _sum(g, g.add("Mul", row, _number(width)), column)
        return g.add("Gather", pixels, g.cast(index, np.int64), axis=0)

    def between(a: Any, b: Any, part: Any) -> Any:
        return _sum(g, g.add("Mul", a, g.add("Sub", _number(1), part)), g.add("Mul", b, part))

    upper, lower = (between(sample(0, down), sample(1, down), parts[0]) for down in (0, 1))
    result = g.add("Where", g.reshape(inside, [-1, 1]), between(upper, lower, parts[1]), _number(0))
    return g.reshape(result, [1, *wanted, g.size(image, 3)])


EXACT = {
    "CUSTOM:Convolution2DTransposeBias": convolution_2d_transpose_bias,
    "CUSTOM:Landmarks2TransformMatrix": landmarks_to_matrix,
    "CUSTOM:TransformLandmarks": transform_landmarks,
    "CUSTOM:TransformTensorBilinear": transform_tensor,
}
