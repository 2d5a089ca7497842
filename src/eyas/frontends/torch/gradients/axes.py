"""Gradients of what is linear along each axis of an image: average pooling, resizing, padding with the border.

Along one axis such an op is a product with a matrix that depends on sizes alone. The op itself makes the matrix from
the unit vectors, and the gradient is the product with its transpose, axis by axis. Matrices are constants, which are
computed at compile time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor
# The op along one axis: [rows, size] to [rows, size of the result].
_Along = Callable[[Tensor, int], Tensor]


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op; for images of known size only."""
    found: dict[Any, Callable[..., Any]] = {
        aten._adaptive_avg_pool2d_backward.default: _adaptive_average(2),
        aten._adaptive_avg_pool3d_backward.default: _adaptive_average(3),
        aten.avg_pool2d_backward.default: functools.partial(average, 2),
        aten.avg_pool3d_backward.default: functools.partial(average, 3),
        aten.replication_pad1d_backward.default: replicated,
        aten.replication_pad2d_backward.default: replicated,
        aten.replication_pad3d_backward.default: replicated,
        aten.upsample_linear1d_backward.default: _resized(_linear),
        aten.upsample_bilinear2d_backward.default: _resized(_linear),
        aten.upsample_trilinear3d_backward.default: _resized(_linear),
        aten.upsample_bicubic2d_backward.default: _resized(_plane(aten.upsample_bicubic2d.default)),
        aten._upsample_bilinear2d_aa_backward.default: _resized(_plane(aten._upsample_bilinear2d_aa.default)),
        aten._upsample_bicubic2d_aa_backward.default: _resized(_plane(aten._upsample_bicubic2d_aa.default)),
    }
    for axes in (1, 2, 3):
        for name, nearest in (
            ("upsample_nearest", aten.upsample_nearest1d.default),
            ("_upsample_nearest_exact", aten._upsample_nearest_exact1d.default),
        ):
            backward = getattr(aten, f"{name}{axes}d_backward").default
            found[backward] = _resized_nearest(nearest)
    return found


def average(
    axes: int,
    gradient: Tensor,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """The count of a window is the product of its counts along the axes; a given divisor counts once for all."""

    def spread(values: Sequence[int]) -> list[int]:
        return list(values) * axes if len(values) == 1 else list(values)

    kernel, pads = spread(kernel_size), spread(padding)
    steps = spread(stride) if stride else kernel
    divisor = None if divisor_override is None else 1

    def along(rows: Tensor, axis: int) -> Tensor:
        window = ([1, kernel[axis]], [1, steps[axis]], [0, pads[axis]])
        return aten.avg_pool2d.default(rows[:, None, None], *window, ceil_mode, count_include_pad, divisor)[:, 0, 0]

    made = _transposed(gradient, x.shape[x.dim() - axes :], along)
    return made if divisor_override is None or made is NotImplemented else made / divisor_override


def _adaptive_average(axes: int) -> Callable[..., Tensor]:
    def backward(gradient: Tensor, x: Tensor) -> Tensor:
        wanted = gradient.shape[gradient.dim() - axes :]

        def along(rows: Tensor, axis: int) -> Tensor:
            return aten._adaptive_avg_pool2d.default(rows[:, None, None], [1, wanted[axis]])[:, 0, 0]

        return _transposed(gradient, x.shape[x.dim() - axes :], along)

    return backward


def replicated(gradient: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
    """Amounts are for the last axis first, before and after."""
    axes = len(padding) // 2

    def along(rows: Tensor, axis: int) -> Tensor:
        place = 2 * (axes - 1 - axis)
        return aten.replication_pad1d.default(rows, list(padding[place : place + 2]))

    return _transposed(gradient, x.shape[x.dim() - axes :], along)


def _resized(op: Callable[[Tensor, int, bool, float | None], Tensor]) -> Callable[..., Tensor]:
    def backward(
        gradient: Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        align_corners: bool,
        *scales: float | None,
        **named: float | None,
    ) -> Tensor:
        factors = _factors(len(output_size), scales, named)

        def along(rows: Tensor, axis: int) -> Tensor:
            return op(rows, output_size[axis], align_corners, factors[axis])

        return _transposed(gradient, input_size[2:], along)

    return backward


def _resized_nearest(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def backward(
        gradient: Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        *scales: float | None,
        **named: float | None,
    ) -> Tensor:
        factors = _factors(len(output_size), scales, named)

        def along(rows: Tensor, axis: int) -> Tensor:
            return op(rows.unsqueeze(1), [output_size[axis]], factors[axis])[:, 0]

        return _transposed(gradient, input_size[2:], along)

    return backward


def _linear(rows: Tensor, size: int, align_corners: bool, factor: float | None) -> Tensor:
    return aten.upsample_linear1d.default(rows.unsqueeze(1), [size], align_corners, factor)[:, 0]


def _plane(op: Callable[..., Tensor]) -> Callable[[Tensor, int, bool, float | None], Tensor]:
    """An op on images, of one row each."""

    def along(rows: Tensor, size: int, align_corners: bool, factor: float | None) -> Tensor:
        return op(rows[:, None, None], [1, size], align_corners, None, factor)[:, 0, 0]

    return along


def _factors(axes: int, given: Sequence[float | None], named: dict[str, float | None]) -> list[float | None]:
    """Of the axes from the first to the last."""
    names = ["scales"] if axes == 1 else ["scales_d", "scales_h", "scales_w"][-axes:]
    return [*given, *(named.get(name) for name in names[len(given) :])]


def _transposed(gradient: Tensor, sizes: Sequence[int], along: _Along) -> Tensor:
    """The gradient for images of these sizes."""
    first = gradient.dim() - len(sizes)
    if not all(isinstance(size, int) for size in (*sizes, *gradient.shape[first:])):
        return NotImplemented
    wide = gradient.float() if gradient.dtype in (torch.float16, torch.bfloat16) else gradient
    for axis, size in enumerate(sizes):
        matrix = along(torch.eye(size, dtype=wide.dtype, device=wide.device), axis)
        before, after = wide.shape[: first + axis], wide.shape[first + axis + 1 :]
        if after.numel() == 1:
            wide = torch.matmul(wide.reshape(*before, -1), matrix.t())
        else:
            wide = torch.matmul(matrix, wide.reshape(*before, wide.shape[first + axis], -1))
        wide = wide.reshape(*before, size, *after)
    return wide.to(gradient.dtype)
