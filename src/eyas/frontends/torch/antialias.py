"""Resizing with a filter that covers all points which a result stands for: a product with a matrix for each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

# What each result takes of each point of an axis: its size, the wanted one, whether corners are aligned, the factor.
Weights = Callable[[int, int, bool, float | None], Tensor]
# Resizes an image with such weights: its wanted size, whether corners are aligned, and factors.
Resize = Callable[[Tensor, Sequence[int], bool, Sequence[float | None], Weights], Tensor]


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    found: dict[Any, Callable[..., Any]] = {}
    for op, weights in ((aten._upsample_bilinear2d_aa, linear_weights), (aten._upsample_bicubic2d_aa, cubic_weights)):
        found[op.default] = resize_to_size(weights, _resize)
        found[op.vec] = resize_by_factor(weights, _resize)
    return found


def resize_to_size(weights: Weights, resize: Resize) -> Callable[..., Tensor]:
    """The op that takes a size and perhaps scales."""

    def decomposition(
        x: Tensor,
        size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        return resize(x, size, align_corners, (scales_h, scales_w), weights)

    return decomposition


def resize_by_factor(weights: Weights, resize: Resize) -> Callable[..., Tensor]:
    """The op that takes a size or factors."""

    def decomposition(
        x: Tensor, size: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None
    ) -> Tensor:
        if size is None and factors is not None:
            size = [int(length * factor) for length, factor in zip(x.shape[2:], factors, strict=True)]
        assert size is not None
        return resize(x, size, align_corners, factors or (None, None), weights)

    return decomposition


def _resize(
    x: Tensor,
    size: Sequence[int],
    align_corners: bool,
    scales: Sequence[float | None],
    weights: Weights,
) -> Tensor:
    if not x.is_floating_point() or not all(isinstance(length, int) for length in (*x.shape[2:], *size)):
        return NotImplemented
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    rows, columns = (
        weights(x.shape[2 + axis], size[axis], align_corners, scales[axis]).to(wide.dtype) for axis in range(2)
    )
    return torch.matmul(torch.matmul(rows, wide), columns.t()).to(x.dtype)


def linear_weights(size: int, wanted: int, align_corners: bool, factor: float | None) -> Tensor:
    """Of a triangle."""
    return _weights(size, wanted, align_corners, factor, _triangle, 1.0)


def cubic_weights(size: int, wanted: int, align_corners: bool, factor: float | None) -> Tensor:
    """Of a cubic curve."""
    return _weights(size, wanted, align_corners, factor, _cubic, 2.0)


def _weights(
    size: int, wanted: int, align_corners: bool, factor: float | None, shape: Callable[[Tensor], Tensor], reach: float
) -> Tensor:
    """What each result takes of each point; rows add up to 1."""
    if align_corners:
        scale = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        scale = 1 / factor if factor else size / wanted
    width = max(scale, 1.0)
    center = scale * (torch.arange(wanted).double() + 0.5)
    first = torch.floor(center - reach * width + 0.5).clamp(min=0)
    last = torch.floor(center + reach * width + 0.5).clamp(max=size)
    points = torch.arange(size).double()
    weights = shape((points - center.unsqueeze(1) + 0.5) / width)
    inside = (points >= first.unsqueeze(1)) & (points < last.unsqueeze(1))
    weights = torch.where(inside, weights, 0.0)
    return weights / weights.sum(1, keepdim=True)


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: Tensor) -> Tensor:
    """Keys' with a = -0.5."""
    a, x = -0.5, x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))
