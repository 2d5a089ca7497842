"""Resizing of images of bytes as torch's kernels do it: whole weights, and bytes again after each axis.

Weights are multiplied by the largest power of two for which they fit into 16 bits. An axis is then a product of whole
numbers, half of that power more, and a shift; what is below 0 or above 255 is cut. Columns come first. The numbers are
those of torch, where sums of real weights would be off by one for many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from eyas.frontends.torch import antialias
from eyas.frontends.torch.antialias import Weights, resize_by_factor, resize_to_size

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op, of bytes."""
    found: dict[Any, Callable[..., Any]] = {}
    for op, weights in (
        (aten.upsample_bilinear2d, _linear_weights),
        (aten.upsample_bicubic2d, _cubic_weights),
        (aten._upsample_bilinear2d_aa, antialias.linear_weights),
        (aten._upsample_bicubic2d_aa, antialias.cubic_weights),
    ):
        found[op.default] = resize_to_size(weights, _resize)
        found[op.vec] = resize_by_factor(weights, _resize)
    return found


def _resize(
    x: Tensor, size: Sequence[int], align_corners: bool, scales: Sequence[float | None], weights: Weights
) -> Tensor:
    if x.dtype != torch.uint8 or not all(isinstance(length, int) for length in (*x.shape[2:], *size)):
        return NotImplemented
    made = x.to(torch.int32)
    if x.shape[3] != size[1]:
        columns, shift = _whole(weights, x.shape[3], size[1], align_corners, scales[1])
        made = _bytes(torch.matmul(made, columns.t()), shift)
    if x.shape[2] != size[0]:
        rows, shift = _whole(weights, x.shape[2], size[0], align_corners, scales[0])
        made = _bytes(torch.matmul(rows, made), shift)
    return made.to(torch.uint8)


def _bytes(sums: Tensor, shift: int) -> Tensor:
    return torch.bitwise_right_shift(sums + (1 << (shift - 1)), shift).clamp(0, 255)


_MOST_BITS = 22


def _whole(weights: Weights, *axis: Any) -> tuple[Tensor, int]:
    """Weights times a power of two, rounded, and which power. Sizes say all, but a program that is taken apart gets no
    new constants, so that it computes the weights."""
    with _disable_current_modes():
        largest, bits = max(weights(*axis).max().item(), 0.0), 0
    while bits < _MOST_BITS and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = weights(*axis) * float(1 << bits)
    return torch.trunc(scaled + torch.where(scaled < 0.0, -0.5, 0.5)).to(torch.int32), bits


def _linear_weights(size: int, wanted: int, align_corners: bool, scale: float | None) -> Tensor:
    source = _sources(size, wanted, align_corners, scale).clamp(min=0.0)
    return _taps(source, size, lambda x: (1 - x.abs()).clamp(min=0), reach=1)


def _cubic_weights(size: int, wanted: int, align_corners: bool, scale: float | None) -> Tensor:
    return _taps(_sources(size, wanted, align_corners, scale), size, _keys, reach=2)


def _sources(size: int, wanted: int, align_corners: bool, scale: float | None) -> Tensor:
    """Where each new point is among the old ones."""
    places = torch.arange(wanted).double()
    if align_corners:
        return places * ((size - 1) / (wanted - 1) if wanted > 1 else 0.0)
    return (places + 0.5) * (1 / scale if scale else size / wanted) - 0.5


def _taps(source: Tensor, size: int, shape: Callable[[Tensor], Tensor], reach: int) -> Tensor:
    """Points beyond the border are those at the border."""
    first = torch.floor(source).clamp(max=size - 1)
    part = (source - first).clamp(0.0, 1.0)
    weights = torch.zeros(len(source), size, dtype=torch.float64)
    for step in range(1 - reach, reach + 1):
        place = (first.long() + step).clamp(0, size - 1)
        weights.scatter_add_(1, place.unsqueeze(1), shape(step - part).unsqueeze(1))
    return weights


def _keys(x: Tensor) -> Tensor:
    """Keys' cubic with a = -0.75."""
    a, x = -0.75, x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return torch.where(x <= 1, near, far)
