"""Resize where sizes are open: which pixels an output is made of is computed when the model runs.

The importer's own lowering knows images of four dimensions and the forms that exporters write most; it is the faster
one, because it reads pixels where it needs them, and keeps those. All other forms are gathers along each axis here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, TensorProto, helper

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.rewrite.sizes import Size, line

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_PLACES = ("half_pixel", "half_pixel_symmetric", "asymmetric", "pytorch_half_pixel")
_NEAR = {("asymmetric", "floor"), *(("half_pixel", mode) for mode in ("floor", "ceil"))}
_NEAR |= {("half_pixel", mode) for mode in ("round_prefer_floor", "round_prefer_ceil")}


def resize_open(node: NodeProto, b: Builder) -> list[str] | None:
    """The nearest pixel, or a weighted sum of two or four, along one axis after the other."""
    rank, kind, mode = b.rank_of(node.input[0]), b.type_of(node.input[0]), attribute(node, "mode", "nearest")
    policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
    if rank is None or b.opset < 13 or policy != "stretch" or attribute(node, "antialias", 0):
        return None
    if attribute(node, "exclude_outside", 0) or (mode != "nearest" and kind not in _FLOATS):
        return None
    axes = [axis % rank for axis in attribute(node, "axes", range(rank))]
    plan = _plan(node, b, axes)
    if plan is None or _importer_knows(node, b, rank, plan):
        return None
    wide = TensorProto.DOUBLE if kind == TensorProto.DOUBLE else TensorProto.FLOAT
    value = node.input[0] if mode == "nearest" or kind == wide else b.cast(node.input[0], wide)
    outside = ""
    for axis in sorted(plan, reverse=True):
        value, lost = _Axis(node, b, rank, axis, wide, *plan[axis]).resized(value, mode)
        if lost:
            outside = b.add("Or", outside, lost) if outside else lost
    if outside:
        fill = b.constant(attribute(node, "extrapolation_value", 0.0), helper.tensor_dtype_to_np_dtype(wide))
        value = b.add("Where", outside, b.add("CastLike", fill, value), value)
    return [value if mode == "nearest" or kind == wide else b.cast(value, kind)]


@dataclass(frozen=True)
class _Wanted:
    """How one axis is resized: by a scale, or to a size, each a number or a vector of one element; and which part."""

    scale: float | str | None
    size: Size | None
    part: tuple[float, float] | None


def _plan(node: NodeProto, b: Builder, axes: list[int]) -> dict[int, tuple[Size, _Wanted]] | None:
    """What each axis becomes, but for those that stay as they are: by axis (its size, what is wanted)."""
    crop = attribute(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    parts = b.value_of(operand(node, 1)) if crop and operand(node, 1) else None
    by_size = bool(operand(node, 3))
    name = operand(node, 3) if by_size else operand(node, 2)
    if not name or (crop and (parts is None or not by_size)):
        return None
    known = b.value_of(name)
    plan: dict[int, tuple[Size, _Wanted]] = {}
    for place, axis in enumerate(axes):
        part = None if parts is None else (float(parts[place]), float(parts[place + len(axes)]))
        size = b.size(node.input[0], axis)
        one: float | int | str
        if known is not None:
            one = int(known[place]) if by_size else float(known[place])
        else:
            one = b.add("Gather", name, b.constant([place], np.int64), axis=0)
            one = b.cast(one, TensorProto.INT64 if by_size else TensorProto.FLOAT)
        if part in (None, (0.0, 1.0)) and _stays(node, b, axis, size, one, by_size):
            continue
        wanted = _Wanted(None, one, part) if by_size else _Wanted(one, None, part)  # type: ignore[arg-type]
        plan[axis] = (size, wanted)
    return plan


def _stays(node: NodeProto, b: Builder, axis: int, size: Size, one: float | int | str, by_size: bool) -> bool:
    """Whether an axis is known to keep its size."""
    if not by_size:
        return one == 1.0
    if isinstance(one, int) and one == size:
        return True
    before, after = b.name_of(node.input[0], axis), b.name_of(node.output[0], axis)
    return before is not None and before == after


def _importer_knows(node: NodeProto, b: Builder, rank: int, plan: dict[int, tuple[Size, _Wanted]]) -> bool:
    places = attribute(node, "coordinate_transformation_mode", "half_pixel")
    if rank != 4 or b.type_of(node.input[0]) not in _FLOATS or attribute(node, "axes", None) is not None:
        return False
    by_scale = any(wanted.scale is not None for _, wanted in plan.values())
    name = operand(node, 2) if by_scale else operand(node, 3)
    if b.value_of(name) is None and not b.is_size(name):
        return False
    if by_scale and not set(plan) <= {2, 3} and b.value_of(operand(node, 2)) is not None:
        return False
    if attribute(node, "mode", "nearest") == "nearest":
        return (places, attribute(node, "nearest_mode", "round_prefer_floor")) in _NEAR
    if attribute(node, "cubic_coeff_a", -0.75) != -0.75:
        return False
    return places in _PLACES or (places == "align_corners" and not by_scale)


class _Axis:
    """Arithmetic on the coordinates of one axis, as ONNX Runtime does it: in f32."""

    def __init__(
        self,
        node: NodeProto,
        b: Builder,
        rank: int,
        axis: int,
        wide: int,
        size: Size,
        wanted: _Wanted,
    ):
        self.node, self.b, self.rank, self.axis, self.wide = node, b, rank, axis, wide
        self.size, self.wanted = self.number(size), wanted
        self.last = self.op("Sub", self.size, 1.0)
        if wanted.size is not None:
            count = wanted.size
            self.length = self.number(count)
            self.scale = self.op("Div", self.length, self.size)
        else:
            assert wanted.scale is not None
            self.scale = b.constant([wanted.scale], np.float32) if isinstance(wanted.scale, float) else wanted.scale
            self.length = self.op("Mul", self.size, self.scale)
            count = b.cast(b.add("Floor", self.length), TensorProto.INT64)
        self.line = b.cast(line(count, b), TensorProto.FLOAT)

    def number(self, size: Size) -> str:
        """A size as a vector of one float."""
        if isinstance(size, int):
            return self.b.constant([size], np.float32)
        return self.b.cast(self.b.reshape(size, [1]), TensorProto.FLOAT)

    def op(self, op: str, left: str, right: str | float) -> str:
        return self.b.add(op, left, right if isinstance(right, str) else self.b.constant(right, np.float32))

    def resized(self, value: str, mode: str) -> tuple[str, str]:
        """The value with this axis resized, and which outputs lie outside of the input, if that matters."""
        x, lost = self.coordinates(), ""
        if self.wanted.part is not None:
            before, behind = self.op("Less", x, 0.0), self.op("Greater", x, self.last)
            lost = self.b.reshape(self.b.add("Or", before, behind), self.shape())
        if mode == "nearest":
            return self.pixels(value, self.rounded(x)), lost
        if mode == "linear":
            x = self.op("Min", self.op("Max", x, 0.0), self.last)
        floor = self.b.add("Floor", x)
        rest = self.op("Sub", x, floor)
        weights = {0: self.op("Sub", self.b.constant(1.0, np.float32), rest), 1: rest}
        if mode == "cubic":
            weights = {tap: self.cubic(self.op("Sub", rest, float(tap)), tap in (0, 1)) for tap in (-1, 0, 1, 2)}
        total = ""
        for tap, weight in weights.items():
            pixel = self.pixels(value, self.op("Add", floor, float(tap)) if tap else floor)
            term = self.b.add("Mul", pixel, self.b.cast(self.b.reshape(weight, self.shape()), self.wide))
            total = self.b.add("Add", total, term) if total else term
        return total, lost

    def shape(self) -> list[int]:
        return [-1 if axis == self.axis else 1 for axis in range(self.rank)]

    def pixels(self, value: str, places: str) -> str:
        inside = self.op("Min", self.op("Max", places, 0.0), self.last)
        return self.b.add("Gather", value, self.b.cast(inside, TensorProto.INT64), axis=self.axis)

    def coordinates(self) -> str:
        """Where in the input each output lies, in pixels."""
        mode = attribute(self.node, "coordinate_transformation_mode", "half_pixel")
        if mode == "align_corners":
            # An output of one pixel is at 0, whatever it is divided by.
            span = self.op("Max", self.op("Sub", self.length, 1.0), 1e-6)
            return self.op("Div", self.op("Mul", self.line, self.last), span)
        if mode == "asymmetric":
            return self.unscaled(self.line)
        if mode == "tf_half_pixel_for_nn":
            return self.unscaled(self.op("Add", self.line, 0.5))
        if mode == "tf_crop_and_resize":
            return self.cropped()
        x = self.op("Sub", self.unscaled(self.op("Add", self.line, 0.5)), 0.5)
        if mode == "half_pixel_symmetric":
            whole = self.op("Div", self.b.add("Floor", self.length), self.length)
            rest = self.op("Sub", self.b.constant(1.0, np.float32), whole)
            return self.op("Add", x, self.op("Mul", self.op("Mul", self.size, 0.5), rest))
        if mode == "pytorch_half_pixel":
            return self.b.add("Where", self.op("Greater", self.length, 1.0), x, self.b.constant(0.0, np.float32))
        return x

    def unscaled(self, x: str) -> str:
        """Beside a size that is asked for, times one size by the other: halves between pixels stay halves."""
        if self.wanted.size is not None:
            return self.op("Div", self.op("Mul", x, self.size), self.length)
        return self.op("Div", x, self.scale)

    def cropped(self) -> str:
        assert self.wanted.part is not None
        start, end = self.wanted.part
        many = self.op(
            "Div", self.op("Mul", self.line, end - start), self.op("Max", self.op("Sub", self.length, 1.0), 1.0)
        )
        one = self.op("Mul", self.b.add("Add", self.line, self.b.constant(0.5, np.float32)), end - start)
        part = self.b.add("Where", self.op("Greater", self.length, 1.0), many, one)
        return self.op("Mul", self.op("Add", part, start), self.last)

    def rounded(self, x: str) -> str:
        ways: dict[str, Callable[[], str]] = {
            "floor": lambda: self.b.add("Floor", x),
            "ceil": lambda: self.b.add("Ceil", x),
            "round_prefer_floor": lambda: self.b.add("Ceil", self.op("Sub", x, 0.5)),
            "round_prefer_ceil": lambda: self.b.add("Floor", self.op("Add", x, 0.5)),
        }
        return ways[attribute(self.node, "nearest_mode", "round_prefer_floor")]()

    def cubic(self, x: str, near: bool) -> str:
        x, a = self.b.add("Abs", x), attribute(self.node, "cubic_coeff_a", -0.75)
        terms = (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a)
        value = self.b.constant(terms[0], np.float32)
        for term in terms[1:]:
            value = self.op("Add", self.op("Mul", value, x), float(term))
        return value
