"""Convolutions and pools of images with channels last; ONNX has the channels first, so they stand between transposes.

Kernels come in ONNX's order: output channels, input channels of one group, then space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eyas.errors import FrontendError
from eyas.frontends.tensorflow.graph import Graph, Tensor, Value, dims_of


@dataclass(frozen=True)
class Window:
    """How a window moves over space. `padding` is "SAME", "VALID", or (before, after) of each dimension."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: str | tuple[tuple[int, int], ...]

    def attributes(self, g: Graph, image: Tensor, kernel: Sequence[int]) -> dict[str, Any]:
        """ONNX's, for an image with channels first."""
        if min((*self.strides, *self.dilations, *kernel), default=1) < 1:
            raise FrontendError(
                f"{g.description}: {g.where} has a stride, a dilation or a window below 1: {self.strides},"
                f" {self.dilations}, {tuple(kernel)}"
            )
        found: dict[str, Any] = {"strides": self.strides, "dilations": self.dilations, "kernel_shape": list(kernel)}
        if isinstance(self.padding, tuple):
            return found | {"pads": [*(before for before, _ in self.padding), *(after for _, after in self.padding)]}
        if self.padding == "VALID":
            return found
        sizes = dims_of(image)[2:]
        if not all(isinstance(size, int) for size in sizes):
            return found | {"auto_pad": "SAME_UPPER"}
        totals = []
        for size, window, stride, dilation in zip(sizes, kernel, self.strides, self.dilations, strict=True):
            assert isinstance(size, int)
            reach = (window - 1) * dilation + 1
            totals.append(max(0, (-(-size // stride) - 1) * stride + reach - size))
        return found | {"pads": [*(total // 2 for total in totals), *(total - total // 2 for total in totals)]}


def channels_first(rank: int) -> list[int]:
    return [0, rank - 1, *range(1, rank - 1)]


def channels_last(rank: int) -> list[int]:
    return [0, *range(2, rank), 1]


def convolve(g: Graph, x: Any, kernel: Tensor, bias: Tensor | None, window: Window, groups: int = 1) -> Any:
    """A convolution of `x`, which has its channels last."""
    rank = len(dims_of(x))
    image = g.transpose(x, channels_first(rank))
    sizes = [g.size(kernel, axis) for axis in range(2, rank)]
    result = g.add("Conv", image, kernel, bias, group=groups, **window.attributes(g, image, sizes))
    return g.transpose(result, channels_last(rank))


def convolve_transposed(
    g: Graph, x: Any, kernel: Tensor, bias: Tensor | None, window: Window, shape: Sequence[int]
) -> Any:
    """The transpose of a convolution; `kernel` has the input's channels first, `shape` is the result's space."""
    rank = len(dims_of(x))
    image = g.transpose(x, channels_first(rank))
    before, after, more = [], [], []
    for axis, size in enumerate(shape):
        reach = (g.size(kernel, axis + 2) - 1) * window.dilations[axis] + 1
        full = (g.size(image, axis + 2) - 1) * window.strides[axis] + reach
        total = max(0, full - size) if window.padding == "SAME" else 0
        before.append(total // 2)
        after.append(total - total // 2)
        more.append(size - full + total)
    options = {"strides": window.strides, "dilations": window.dilations}
    if all(0 <= extra < stride for extra, stride in zip(more, window.strides, strict=True)):
        result = g.add("ConvTranspose", image, kernel, bias, pads=[*before, *after], output_padding=more, **options)
    else:
        # A result that is larger than the windows reach has zeros there, and the bias; a smaller one is cut.
        result = g.add("ConvTranspose", image, kernel, pads=[*before, *after], **options)
        grown = [max(0, extra) for extra in more]
        if any(grown):
            result = g.add("Pad", result, np.array([0] * rank + [0, 0, *grown], np.int64))
        axes = np.arange(2, rank)
        result = g.add("Slice", result, np.zeros(rank - 2, np.int64), np.array(shape, np.int64), axes)
        if bias is not None:
            result = g.add("Add", result, g.reshape(bias, [1, -1, *[1] * (rank - 2)]))
    return g.transpose(result, channels_last(rank))


def pool(g: Graph, kind: str, x: Any, kernel: Sequence[int], window: Window) -> Any:
    """`kind` is "Max", "Average" or "L2"; padding takes no part in an average."""
    rank = len(dims_of(x))
    image = g.transpose(x, channels_first(rank))
    options = window.attributes(g, image, kernel)
    if kind == "L2":
        mean = g.add("AveragePool", g.add("Mul", image, image), count_include_pad=0, **options)
        result = g.add("Sqrt", mean)
    elif kind == "Average" and not any(options.get("pads", [1])) and tuple(kernel) == dims_of(image)[2:]:
        result = g.add("GlobalAveragePool", image)
    else:
        result = g.add(f"{kind}Pool", image, count_include_pad=0 if kind == "Average" else None, **options)
    return g.transpose(result, channels_last(rank))


def resize(
    g: Graph, x: Any, wanted: Sequence[int] | Value, mode: str, align_corners: bool, half_pixel_centers: bool
) -> Any:
    """ResizeBilinear (`mode` "linear") and ResizeNearestNeighbor ("nearest") of an NHWC image."""
    if isinstance(wanted, Value) or (mode == "nearest" and not all(isinstance(dim, int) for dim in dims_of(x)[1:3])):
        return _resize_open(g, x, wanted, mode, align_corners, half_pixel_centers)
    size = [int(one) for one in wanted]
    if tuple(size) == dims_of(x)[1:3]:
        return x
    if mode == "nearest":
        for axis, count in zip((1, 2), size, strict=True):
            had = g.size(x, axis)
            chosen = _nearest(had, count, align_corners, half_pixel_centers)
            if count % had == 0 and np.array_equal(chosen, np.arange(count) // (count // had)):
                continue
            x = g.add("Gather", x, chosen, axis=axis)
        if tuple(size) == dims_of(x)[1:3]:
            return x
        options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    else:
        places = "align_corners" if align_corners else "half_pixel" if half_pixel_centers else "asymmetric"
        options = {"coordinate_transformation_mode": places}
    image = g.transpose(x, channels_first(4))
    result = g.add("Resize", image, None, None, np.array(size, np.int64), mode=mode, axes=[2, 3], **options)
    return g.transpose(result, channels_last(4))


def _resize_open(g: Graph, x: Any, wanted: Any, mode: str, align_corners: bool, half_pixel_centers: bool) -> Any:
    """The same where a size is computed when the model runs."""
    places = "align_corners" if align_corners else "half_pixel" if half_pixel_centers else "asymmetric"
    options: dict[str, Any] = {"coordinate_transformation_mode": places}
    if mode == "nearest":
        options["nearest_mode"] = "round_prefer_ceil" if align_corners else "floor"
        if half_pixel_centers and not align_corners:
            options["coordinate_transformation_mode"] = "tf_half_pixel_for_nn"
    entries = g.entries(wanted) if isinstance(wanted, Value) else [int(one) for one in wanted]
    if all(isinstance(one, int) for one in entries):
        wanted = np.array(entries, np.int64)
    size = g.cast(wanted if isinstance(wanted, Value) else np.asarray(wanted), np.int64)
    image = g.transpose(x, channels_first(4))
    result = g.add("Resize", image, None, None, size, mode=mode, axes=[2, 3], **options)
    dims = tuple(one if isinstance(one, int) else None for one in entries)
    result = Value(result.name, result.dtype, (*dims_of(image)[:2], *dims))
    return g.transpose(result, channels_last(4))


def _nearest(had: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Which rows are taken, in the float arithmetic of TensorFlow."""
    corners = align_corners and wanted > 1
    scale = np.float32(had - 1) / np.float32(wanted - 1) if corners else np.float32(had) / np.float32(wanted)
    at = (np.arange(wanted, dtype=np.float32) + np.float32(0.5 if half_pixel_centers else 0)) * scale
    chosen = np.floor(at + np.float32(0.5)) if align_corners else np.floor(at)
    return np.clip(chosen, 0, had - 1).astype(np.int64)
