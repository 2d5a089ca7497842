"""Rules for operators that are a constant matrix along an axis: DFT, STFT and Resize."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx

from eyas.frontends.onnx.rewrite.fft import radices, transform
from eyas.frontends.onnx.rewrite.real_fft import factors, real_transform
from eyas.frontends.onnx.rewrite.resize_open import resize_open
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.rewrite.sizes import Size, line, product

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
_INTEGERS = (onnx.TensorProto.UINT8, onnx.TensorProto.INT8, onnx.TensorProto.INT32)


def dft(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A matrix product with cosines and sines; the real and imaginary parts are one axis of it."""
    dims, kind = b.dims_of(node.input[0]), b.type_of(node.input[0])
    if not dims or kind not in _FLOATS:
        return None
    axis = attribute(node, "axis", 1 if b.opset < 20 else -2)
    if operand(node, 2):
        given = b.value_of(operand(node, 2))
        if given is None:
            return None
        axis = int(given.reshape(()))
    axis %= len(dims)
    size, parts = dims[axis], dims[-1]
    if size is None or parts is None:
        return None
    inverse, onesided = attribute(node, "inverse", 0), attribute(node, "onesided", 0)
    if operand(node, 1):
        length = b.value_of(operand(node, 1))
        if length is None:
            return None
        count = int(length.reshape(()))
    else:
        count = 2 * (size - 1) if inverse and onesided else size
    order = [i for i in range(len(dims) - 1) if i != axis] + [axis, len(dims) - 1]
    moved = b.transpose(node.input[0], order)
    lead = [b.size(node.input[0], i) for i in order[:-2]]
    many = product(lead, b)
    whole = parts == 2 and size == count and not onesided
    if kind == onnx.TensorProto.FLOAT and whole and isinstance(many, int) and radices(count):
        halves = [
            b.reshape(b.add("Gather", moved, b.constant(k, np.int64), axis=len(order) - 1), [many, size])
            for k in (0, 1)
        ]
        done = [
            b.reshape(part, [*lead, size, 1])
            for part in transform((halves[0], halves[1]), many, size, bool(inverse), b)
        ]
        return [b.transpose(b.add("Concat", *done, axis=len(order) - 1), [order.index(i) for i in range(len(dims))])]
    back = _transformed(b, moved, kind, (*lead, size, parts), count, bool(inverse), bool(onesided))
    return [b.transpose(back, [order.index(i) for i in range(len(dims))])]


def stft(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Overlapping frames, weighted by the window, and the transform of each."""
    dims, kind = b.dims_of(node.input[0]), b.type_of(node.input[0])
    step, length, window = b.value_of(node.input[1]), operand(node, 3), operand(node, 2)
    if dims is None or kind not in _FLOATS or step is None:
        return None
    batch, samples = b.size(node.input[0], 0), b.size(node.input[0], 1)
    parts = dims[2] if len(dims) == 3 else 1
    given, weights = b.value_of(length) if length else None, b.shape_of(window) if window else None
    if given is not None:
        size = int(given.reshape(()))
    elif weights is not None:
        size = weights[0]
    else:
        return None
    hop = int(step.reshape(()))
    if parts is None or size < 1 or hop < 1 or (isinstance(samples, int) and size > samples):
        return None
    if isinstance(samples, int):
        count: Size = (samples - size) // hop + 1
    else:
        # A recording that is too short has no frame: rounded down from -1, not up to 0.
        over = b.add("Add", samples, b.constant([hop - size], np.int64))
        count = b.add("Div", b.add("Max", over, b.constant([0], np.int64)), b.constant([hop], np.int64))
    starts = line(count, b, hop, (-1, 1))
    places = b.add("Add", starts, b.constant(np.arange(size, dtype=np.int64)))
    frames = b.add("Gather", b.reshape(node.input[0], [batch, samples, parts]), places, axis=1)
    if window:
        frames = b.add("Mul", frames, b.reshape(window, [size, 1]))
    onesided = bool(attribute(node, "onesided", 1)) and parts == 1
    return [_transformed(b, frames, kind, (batch, count, size, parts), size, False, onesided)]


def _transformed(
    b: Builder, value: str, kind: int, shape: tuple[Size, ...], count: int, inverse: bool, onesided: bool
) -> str:
    """The transform of the last axis but one as a product; the last has the parts."""
    *lead, size, parts = shape
    assert isinstance(size, int) and isinstance(parts, int)
    halves = parts == 1 and onesided and not inverse
    if kind == onnx.TensorProto.FLOAT and halves and size == count and factors(count) is not None:
        rows = product(lead, b)
        spectrum = real_transform(b.reshape(value, [rows, size]), rows, size, b)
        return b.reshape(spectrum, [*lead, count // 2 + 1, 2])
    table = _dft_table(size, parts, count, inverse, onesided)
    # In f64: sums that cancel to almost nothing are what people look at in a spectrum.
    rows = b.cast(b.reshape(value, [*lead, size * parts]), onnx.TensorProto.DOUBLE)
    sums = b.add("MatMul", rows, b.constant(table.reshape(size * parts, -1), np.float64))
    return b.reshape(b.cast(sums, kind), [*lead, *table.shape[2:]])


def _dft_table(size: int, parts: int, count: int, inverse: bool, onesided: bool) -> np.ndarray:
    """[input, its parts, output, its parts] of the transform of `count` points."""
    used = min(size, count)
    outputs = count // 2 + 1 if onesided and not inverse else count
    turns = np.outer(np.arange(used), np.arange(outputs)) % count * (2 * math.pi / count)
    cos, sin = np.cos(turns), np.sin(turns) * (1 if inverse else -1)
    table = np.zeros((size, parts, outputs, 2))
    table[:used, 0, :, 0], table[:used, 0, :, 1] = cos, sin
    if parts == 2:
        table[:used, 1, :, 0], table[:used, 1, :, 1] = -sin, cos
    if not inverse:
        return table
    table /= count
    if onesided:
        # The other half is the conjugate: all but the first and the middle point count twice, and the result is real.
        table = table[..., :1]
        twice = np.full(used, 2.0)
        twice[0] = 1.0
        if count % 2 == 0 and used > count // 2:
            twice[count // 2] = 1.0
        twice[count // 2 + 1 :] = 0.0
        table[:used] *= twice[:, None, None, None]
    return table


def resize(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A weighted sum of a few pixels, or one constant matrix, for each resized axis; nearest pixels of any type are
    gathered. The inner axes come first, while there is little data: pixels along the last are not neighbours."""
    upsample = node.op_type == "Upsample"
    shape, output = b.shape_of(node.input[0]), node.output[0]
    if not upsample and b.type_of(node.input[0]) in _INTEGERS and attribute(node, "mode", "nearest") != "nearest":
        return _in_f32(node, b)
    if shape is None:
        return None if upsample else resize_open(node, b)
    rank = len(shape)
    axes = [axis % rank for axis in attribute(node, "axes", range(rank))]
    plan = _upsample_plan(node, b) if upsample else _resize_plan(node, b, shape, axes)
    if plan is None or (b.shape_of(output) or (-1,)).count(0):
        return None
    sizes, scales, roi = plan
    mode = attribute(node, "mode", "nearest")
    value, kind = node.input[0], b.type_of(node.input[0])
    outside = np.zeros(0)
    for place, axis in sorted(enumerate(axes), key=lambda pair: -pair[1]):
        if sizes[place] == shape[axis] and scales[place] == 1.0 and roi[place] == (0.0, 1.0):
            continue
        points = _coordinates(node, upsample, shape[axis], sizes[place], scales[place], roi[place])
        if mode == "nearest":
            rounded = _round(attribute(node, "nearest_mode", "round_prefer_floor") if not upsample else "floor", points)
            table = np.clip(rounded, 0, shape[axis] - 1).astype(np.int64)
            value = b.add("Gather", value, b.constant(table), axis=axis)
        elif kind in _FLOATS:
            matrix = _weights(node, points, shape[axis], min(scales[place], 1.0), mode)
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
            few = _taps(matrix)
            value = (
                _along(value, matrix, axis, rank, dtype, b) if few is None else _sum(value, *few, axis, rank, dtype, b)
            )
        else:
            return None
        if attribute(node, "coordinate_transformation_mode", "") == "tf_crop_and_resize":
            lost = (points < 0) | (points > shape[axis] - 1)
            lost = lost.reshape([-1 if i == axis else 1 for i in range(rank)])
            outside = lost | outside if outside.size else lost
    if outside.size and outside.any():
        fill = attribute(node, "extrapolation_value", 0.0)
        constant = b.constant(fill, onnx.helper.tensor_dtype_to_np_dtype(kind))
        value = b.add("Where", b.constant(outside), constant, value)
    return [value]


def _in_f32(node: onnx.NodeProto, b: Builder) -> list[str]:
    """Pixels that are integers, between which there are none: the sums are cut to integers."""
    options = {found.name: onnx.helper.get_attribute_value(found) for found in node.attribute}
    made = b.add("Resize", b.cast(node.input[0], onnx.TensorProto.FLOAT), *node.input[1:], **options)
    return [b.cast(made, b.type_of(node.input[0]))]


_Plan = tuple[list[int], list[float], list[tuple[float, float]]]


def _upsample_plan(node: onnx.NodeProto, b: Builder) -> _Plan | None:
    shape = b.shape_of(node.input[0])
    scales = b.value_of(node.input[1]) if operand(node, 1) else np.array(attribute(node, "scales", []))
    if scales is None or shape is None or len(scales) != len(shape):
        return None
    sizes = [math.floor(size * scale) for size, scale in zip(shape, scales, strict=True)]
    return sizes, [float(scale) for scale in scales], [(0.0, 1.0)] * len(sizes)


def _resize_plan(node: onnx.NodeProto, b: Builder, shape: tuple[int, ...], axes: list[int]) -> _Plan | None:
    old = b.opset < 11
    scales_name, sizes_name = (operand(node, 1), "") if old else (operand(node, 2), operand(node, 3))
    crop = attribute(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    roi = [(0.0, 1.0)] * len(axes)
    if crop:
        given = b.value_of(operand(node, 1))
        if given is None or len(given) != 2 * len(axes):
            return None
        roi = [(float(given[i]), float(given[i + len(axes)])) for i in range(len(axes))]
    if sizes_name:
        wanted = b.value_of(sizes_name)
        if wanted is None:
            return None
        sizes = [int(size) for size in wanted]
        ratios = [size / shape[axis] for size, axis in zip(sizes, axes, strict=True)]
        policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            chosen = min(ratios) if policy == "not_larger" else max(ratios)
            sizes = [math.floor(chosen * shape[axis] + 0.5) for axis in axes]
            ratios = [chosen] * len(axes)
        return sizes, ratios, roi
    given = b.value_of(scales_name) if scales_name else None
    if given is None or len(given) != len(axes):
        return None
    spans = [end - start if crop else 1.0 for start, end in roi]
    sizes = [math.floor(shape[a] * span * float(s)) for a, span, s in zip(axes, spans, given, strict=True)]
    return sizes, [float(scale) for scale in given], roi


def _coordinates(
    node: onnx.NodeProto, upsample: bool, size: int, wanted: int, scale: float, roi: tuple[float, float]
) -> np.ndarray:
    """Where in the input each output lies, in pixels."""
    x = np.arange(wanted, dtype=np.float64)
    mode = "asymmetric" if upsample else attribute(node, "coordinate_transformation_mode", "half_pixel")
    length = scale * size
    if mode == "align_corners":
        return np.zeros(wanted) if length == 1 or wanted == 1 else x * (size - 1) / (length - 1)
    if mode == "asymmetric":
        return x / scale
    if mode == "pytorch_half_pixel":
        return np.full(wanted, -0.5) if length == 1 else (x + 0.5) / scale - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if wanted == 1:
            return np.array([(end - start) * (size - 1) / 2]) + start * (size - 1)
        return start * (size - 1) + x * (end - start) * (size - 1) / (wanted - 1)
    points = (x + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        points += size / 2 * (1 - wanted / length)
    return points


def _round(mode: str, points: np.ndarray) -> np.ndarray:
    rounds: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    }
    return rounds[mode](points)


def _weights(node: onnx.NodeProto, points: np.ndarray, size: int, shrink: float, mode: str) -> np.ndarray:
    """[output, input] weights; with antialiasing the kernel is as wide as the pixels that it covers."""
    antialias = attribute(node, "antialias", 0)
    stretch = shrink if antialias else 1.0
    reach = 1.0 if mode == "linear" else 2.0
    a = attribute(node, "cubic_coeff_a", -0.75)

    def kernel(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        if mode == "linear":
            return np.maximum(1 - x, 0)
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))

    matrix = np.zeros((len(points), size))
    for row, point in enumerate(points):
        first, last = math.floor(point - reach / stretch) - 1, math.ceil(point + reach / stretch) + 1
        taps = np.arange(first, last + 1)
        weights = kernel((taps - point) * stretch)
        if attribute(node, "exclude_outside", 0):
            weights = np.where((taps >= 0) & (taps < size), weights, 0.0)
        total = weights.sum()
        if total:
            weights = weights / total
        np.add.at(matrix[row], np.clip(taps, 0, size - 1), weights)
    return matrix


def _along(value: str, matrix: np.ndarray, axis: int, rank: int, dtype: np.dtype, b: Builder) -> str:
    order = [i for i in range(rank) if i != axis] + [axis]
    moved = b.transpose(value, order)
    product = b.add("MatMul", moved, b.constant(matrix.T, dtype))
    return b.transpose(product, [order.index(i) for i in range(rank)])


_MAX_TAPS = 4
"""More pixels than this are summed by a product: a filter that shrinks an image."""


def _taps(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Which pixels each output is made of, and their weights, as [tap, output]; None when there are many."""
    count = max(1, int(np.count_nonzero(matrix, axis=1).max()))
    if count > _MAX_TAPS:
        return None
    pixels, weights = np.zeros((count, len(matrix)), np.int64), np.zeros((count, len(matrix)))
    for output, row in enumerate(matrix):
        used = np.flatnonzero(row)
        if not used.size:
            continue
        pixels[: used.size, output], weights[: used.size, output] = used, row[used]
        # A pixel taken twice, half of it each time: infinities do not bear to be multiplied by zero.
        for tap in range(used.size, count):
            pixels[tap, output] = used[-1]
            weights[tap - 1, output] /= 2
            weights[tap, output] = weights[tap - 1, output]
    return pixels, weights


def _sum(value: str, pixels: np.ndarray, weights: np.ndarray, axis: int, rank: int, dtype: np.dtype, b: Builder) -> str:
    """The weighted sum of pixels along an axis."""
    total = ""
    shape = [-1 if i == axis else 1 for i in range(rank)]
    for which, weight in zip(pixels, weights, strict=True):
        term = b.add("Gather", value, b.constant(which, np.int64), axis=axis)
        if np.any(weight != 1):
            term = b.add("Mul", term, b.constant(weight.reshape(shape), dtype))
        total = b.add("Add", total, term) if total else term
    return total
