"""Resizing with a filter that covers all points which a result stands for: a product with a matrix for each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    found: dict[Any, Callable[..., Any]] = {}
    for op, shape, reach in (
        (aten._upsample_bilinear2d_aa, _triangle, 1.0),
        (aten._upsample_bicubic2d_aa, _cubic, 2.0),
    ):
        found[op.default] = _resize_to_size(shape, reach)
        found[op.vec] = _resize_by_factor(shape, reach)
    return found


def _resize_to_size(shape: Callable[[Tensor], Tensor], reach: float) -> Callable[..., Tensor]:
    def resize(
        x: Tensor,
        size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        return _resize(x, size, align_corners, (scales_h, scales_w), shape, reach)

    return resize


def _resize_by_factor(shape: Callable[[Tensor], Tensor], reach: float) -> Callable[..., Tensor]:
    def resize(x: Tensor, size: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None) -> Tensor:
        if size is None and factors is not None:
            size = [int(length * factor) for length, factor in zip(x.shape[2:], factors, strict=True)]
        assert size is not None
        return _resize(x, size, align_corners, factors or (None, None), shape, reach)

    return resize


def _resize(
    x: Tensor,
    size: Sequence[int],
    align_corners: bool,
    scales: Sequence[float | None],
    shape: Callable[[Tensor], Tensor],
    reach: float,
) -> Tensor:
    if not x.is_floating_point() or not all(isinstance(length, int) for length in (*x.shape[2:], *size)):
        return NotImplemented
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    rows, columns = (
        _weights(x.shape[2 + axis], size[axis], align_corners, scales[axis], shape, reach).to(wide.dtype)
        for axis in range(2)
    )
    return torch.matmul(torch.matmul(rows, wide), columns.t()).to(x.dtype)


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
