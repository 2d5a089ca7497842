"""Rules for operators that read images between pixels: GridSample, AffineGrid, DeformConv."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import onnx

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.rewrite.sizes import Size, line, product, sizes_of

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)


def affine_grid(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The corners' grid is a constant; theta maps it."""
    size, kind = b.value_of(node.input[1]), b.type_of(node.input[0])
    if b.rank_of(node.input[0]) != 3 or size is None or kind not in _FLOATS:
        return None
    spatial = [int(extent) for extent in size[2:]]

    def steps(extent: int) -> np.ndarray:
        if attribute(node, "align_corners", 0):
            return np.linspace(-1.0, 1.0, extent) if extent > 1 else np.zeros(1)
        return (2 * np.arange(extent) + 1) / extent - 1

    points = np.stack(np.meshgrid(*map(steps, spatial), indexing="ij")[::-1], axis=-1).reshape(-1, len(spatial))
    points = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    table = b.constant(points, onnx.helper.tensor_dtype_to_np_dtype(kind))
    grid = b.add("MatMul", table, b.transpose(node.input[0], [0, 2, 1]))
    return [b.reshape(grid, [int(size[0]), *spatial, len(spatial)])]


def grid_sample(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Neighbours of each point are gathered from the flat image and weighted, in any number of dimensions."""
    dims, places, kind = b.dims_of(node.input[0]), b.dims_of(node.input[1]), b.type_of(node.input[0])
    if dims is None or places is None or kind not in _FLOATS or b.type_of(node.input[1]) != kind or 0 in dims + places:
        return None
    image, grid = sizes_of(node.input[0], b), sizes_of(node.input[1], b)
    mode: str = attribute(node, "mode", "linear")
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    padding, align = attribute(node, "padding_mode", "zeros"), bool(attribute(node, "align_corners", 0))
    spatial, points = image[2:], product(grid[1:-1], b)
    s = _Sampler(b, kind, padding, align)
    flat = b.reshape(node.input[1], [grid[0], points, len(spatial)])
    taps: list[list[tuple[str, str, str]]] = []
    for place, extent in enumerate(spatial):
        last = b.constant(len(spatial) - 1 - place, np.int64)
        x = b.add("Gather", flat, last, axis=2)
        taps.append(s.taps(s.unnormalize(x, extent), extent, mode))
    value = s.weighted(b.reshape(node.input[0], [*image[:2], -1]), image, points, spatial, taps)
    return [b.reshape(value, [*image[:2], *grid[1:-1]])]


class _Sampler:
    """Arithmetic on coordinates: which pixels a point takes, with what weight."""

    def __init__(self, b: Builder, kind: int, padding: str, align: bool):
        self.b, self.kind, self.padding, self.align = b, kind, padding, align
        self.dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)

    def number(self, value: float) -> str:
        return self.b.constant(value, self.dtype)

    def op(self, op: str, left: str, right: str | float) -> str:
        return self.b.add(op, left, right if isinstance(right, str) else self.number(right))

    def extent(self, size: Size, factor: float = 1.0, less: float = 0.0) -> str:
        """A size in numbers of this kind, times a factor, less a number."""
        if isinstance(size, int):
            return self.number(size * factor - less)
        value = self.b.cast(size, self.kind)
        value = value if factor == 1.0 else self.op("Mul", value, factor)
        return self.op("Sub", value, less) if less else value

    def unnormalize(self, x: str, extent: Size) -> str:
        """From -1..1 to pixels."""
        if self.align:
            return self.op("Mul", self.op("Add", x, 1.0), self.extent(extent, 0.5, 0.5))
        return self.op("Sub", self.op("Mul", self.op("Add", x, 1.0), self.extent(extent, 0.5)), 0.5)

    def clamp(self, x: str, extent: Size) -> str:
        return self.op("Min", self.op("Max", x, 0.0), self.extent(extent, 1.0, 1.0))

    def reflect(self, x: str, extent: Size) -> str:
        low, less = (0.0, 1.0) if self.align else (-0.5, 0.0)
        if self.align and extent == 1:
            return self.op("Mul", x, 0.0)
        span = self.extent(extent, 1.0, less)
        if self.align and isinstance(extent, str):
            # One pixel has nothing to turn around at; the clamp below finds it from anywhere.
            span = self.op("Max", span, 1.0)
        offset = self.b.add("Abs", self.op("Sub", x, low))
        turns = self.b.add("Floor", self.op("Div", offset, span))
        rest = self.op("Sub", offset, self.op("Mul", turns, span))
        odd = self.op("Sub", turns, self.op("Mul", self.b.add("Floor", self.op("Mul", turns, 0.5)), 2.0))
        # Even turns count from the low end, odd ones from the high end.
        there = self.op("Mul", odd, self.op("Sub", span, self.op("Mul", rest, 2.0)))
        return self.clamp(self.op("Add", self.op("Add", rest, there), low), extent)

    def taps(self, x: str, extent: Size, mode: str) -> list[tuple[str, str, str]]:
        """(index, weight or empty, inside or empty) of each neighbour along one axis."""
        if mode != "cubic":
            x = self._padded(x, extent)
        if mode == "nearest":
            near = self.b.add("Round", x)
            return [(*self._index(near, extent)[:1], "", self._index(near, extent)[1])]
        floor = self.b.add("Floor", x)
        fraction = self.op("Sub", x, floor)
        if mode == "linear":
            weights = {0: self.op("Sub", self.number(1.0), fraction), 1: fraction}
        else:
            weights = {k: self._cubic(self.op("Sub", fraction, float(k)), abs(k - 0.5) < 1) for k in (-1, 0, 1, 2)}
        out = []
        for offset, weight in weights.items():
            place = self.op("Add", floor, float(offset)) if offset else floor
            if mode == "cubic":
                place = self._padded(place, extent)
            index, inside = self._index(place, extent)
            out.append((index, weight, inside))
        return out

    def weighted(
        self,
        flat: str,
        image: Sequence[Size],
        points: Size,
        spatial: Sequence[Size],
        taps: list[list[tuple[str, str, str]]],
    ) -> str:
        """The sum over all combinations of neighbours: [batch, channels, points]."""
        b, total = self.b, ""
        for chosen in itertools.product(*taps):
            index, weight, inside = "", "", ""
            for (i, w, ok), extent in zip(chosen, spatial, strict=True):
                width = b.constant(extent, np.int64) if isinstance(extent, int) else extent
                index = i if not index else b.add("Add", b.add("Mul", index, width), i)
                weight = w if not weight else b.add("Mul", weight, w) if w else weight
                inside = ok if not inside else b.add("And", inside, ok) if ok else inside
            where = b.reshape(index, [image[0], 1, points])
            where = b.add("Expand", where, b.vector([image[0], image[1], points]))
            value = b.add("GatherElements", flat, where, axis=2)
            if weight:
                value = b.add("Mul", value, b.reshape(weight, [image[0], 1, points]))
            if inside:
                value = b.add("Where", b.reshape(inside, [image[0], 1, points]), value, self.number(0.0))
            total = value if not total else b.add("Add", total, value)
        return total

    def _padded(self, x: str, extent: Size) -> str:
        if self.padding == "border":
            return self.clamp(x, extent)
        return self.reflect(x, extent) if self.padding == "reflection" else x

    def _index(self, place: str, extent: Size) -> tuple[str, str]:
        clamped = self.clamp(place, extent)
        inside = self.b.add("Equal", clamped, place) if self.padding == "zeros" else ""
        return self.b.cast(clamped, onnx.TensorProto.INT64), inside

    def _cubic(self, x: str, near: bool) -> str:
        x, a = self.b.add("Abs", x), -0.75
        terms = (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a)
        value = self.number(terms[0])
        for term in terms[1:]:
            value = self.op("Add", self.op("Mul", value, x), term)
        return value


def deform_conv(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Each kernel position samples the image at its own offset; the samples are then a matrix product."""
    weight, rank, kind = b.shape_of(node.input[1]), b.rank_of(node.input[0]), b.type_of(node.input[0])
    if weight is None or rank != 4 or b.rank_of(node.input[2]) != 4 or kind not in _FLOATS:
        return None
    batch, channels, height, width = sizes_of(node.input[0], b)
    out_h, out_w = sizes_of(node.input[2], b)[2:]
    if not isinstance(channels, int):
        channels = weight[1] * attribute(node, "group", 1)
    kernel = weight[2:]
    strides, dilations = attribute(node, "strides", [1, 1]), attribute(node, "dilations", [1, 1])
    pads, groups = attribute(node, "pads", [0] * 4), attribute(node, "group", 1)
    parts = attribute(node, "offset_group", 1)
    taps, points = kernel[0] * kernel[1], product((out_h, out_w), b)
    s = _Sampler(b, kind, "zeros", True)
    images = b.times(batch, parts)
    moved = b.reshape(node.input[2], [images, taps, 2, points])
    axes = []
    for index, (extent, count) in enumerate(((height, out_h), (width, out_w))):
        inside = np.array([place[index] for place in itertools.product(*map(range, kernel))])
        first = (inside * dilations[index] - pads[index]).reshape(taps, 1, 1)
        moving = b.add("Add", line(count, b, strides[index], (-1, 1) if index == 0 else (1, -1)), b.constant(first))
        moving = b.reshape(b.add("Expand", moving, b.vector([taps, out_h, out_w])), [1, taps, points])
        x = b.add("Gather", moved, b.constant(index, np.int64), axis=2)
        x = b.reshape(b.add("Add", x, b.cast(moving, kind)), [images, b.times(points, taps)])
        axes.append(s.taps(x, extent, "linear"))
    split: list[Size] = [images, channels // parts, -1]
    value = s.weighted(b.reshape(node.input[0], split), split, b.times(points, taps), (height, width), axes)
    value = b.reshape(value, [batch, parts, channels // parts, taps, points])
    if operand(node, 4):
        value = b.add("Mul", value, b.reshape(node.input[4], [batch, parts, 1, taps, points]))
    value = b.reshape(value, [batch, groups, channels // groups * taps, points])
    matrix = b.reshape(node.input[1], [groups, weight[0] // groups, weight[1] * taps])
    value = b.reshape(b.add("MatMul", matrix, value), [batch, weight[0], out_h, out_w])
    if operand(node, 3):
        value = b.add("Add", value, b.reshape(node.input[3], [1, weight[0], 1, 1]))
    return [value]
