"""Linear interpolation of images, one axis after the other.

Torch's own decomposition gathers all corners of each pixel's cell at once. Axis by axis, innermost first, there are two
pixels to gather each time, most of the work is along the outer axis, and there lanes read neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op; for images of known size only."""
    return {
        aten.upsample_bilinear2d.vec: linear,
        aten.upsample_linear1d.vec: linear,
        aten.upsample_trilinear3d.vec: linear,
    }


def linear(x: Tensor, output_size: Sequence[int] | None, align_corners: bool, scales: Sequence[float] | None) -> Tensor:
    axes = x.dim() - 2
    sizes = list(x.shape[2:])
    if not all(isinstance(size, int) for size in sizes) or x.dtype not in (torch.float32, torch.float64):
        return NotImplemented
    if output_size is not None:
        wanted: list[int] = list(output_size)
    elif scales is not None:
        wanted = [int(size * scale) for size, scale in zip(sizes, scales, strict=True)]
    else:
        return NotImplemented
    if not all(isinstance(size, int) for size in wanted):
        return NotImplemented
    for axis in reversed(range(axes)):
        if wanted[axis] == sizes[axis]:  # whatever the scale: torch's kernels leave such an axis alone
            continue
        scale = scales[axis] if scales is not None else None
        first, last, weight = _pixels(sizes[axis], wanted[axis], align_corners, scale, x.dtype)
        shape = [-1] + [1] * (axes - 1 - axis)
        weight = weight.reshape(shape)
        x = x.index_select(2 + axis, first) * (1 - weight) + x.index_select(2 + axis, last) * weight
    return x


def _pixels(
    size: int, wanted: int, align_corners: bool, scale: float | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each new pixel: the old ones before and after it, and the weight of the latter. The same formulas as torch."""
    positions = torch.arange(wanted, dtype=dtype)
    if align_corners:
        source = positions * ((size - 1) / (wanted - 1) if wanted > 1 else 0.0)
    else:
        step = 1.0 / scale if scale is not None and scale > 0 else size / wanted
        source = ((positions + 0.5) * step - 0.5).clamp(min=0.0)
    first = source.to(torch.int64).clamp(max=size - 1)
    last = (first + 1).clamp(max=size - 1)
    return first, last, (source - first.to(dtype)).clamp(0.0, 1.0)
