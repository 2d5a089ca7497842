"""Values between the points of a volume: `grid_sample` in three dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {aten.grid_sampler_3d.default: grid_sampler}


def grid_sampler(x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool) -> Tensor:
    """`grid` has places from -1 to 1 for [batch, depth, height, width]; the last of its coordinates is the depth's."""
    sizes = x.shape[2:]
    places = [_place(grid[..., 2 - axis], sizes[axis], padding, align_corners) for axis in range(3)]
    if interpolation == 1:
        return _at(x, [torch.round(place) for place in places])
    low = [torch.floor(place) for place in places]
    result: Any = 0.0
    for corner in itertools.product((0, 1), repeat=3):
        at = [one + step for one, step in zip(low, corner, strict=True)]
        weight: Any = 1.0
        for place, one, step in zip(places, low, corner, strict=True):
            weight = weight * ((place - one) if step else (one + 1 - place))
        result = result + _at(x, at) * weight.unsqueeze(1)
    return result


def _place(coordinate: Tensor, size: int, padding: int, align_corners: bool) -> Tensor:
    """In points of the volume, after what is done with places outside: nothing, the border, or reflection."""
    place = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
    if padding == 0:
        return place
    if padding == 2:
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        span = high - low
        if span <= 0:
            place = torch.zeros_like(place)
        else:
            distance = (place - low).abs()
            turns = torch.floor(distance / span)
            rest = distance - turns * span
            place = torch.where(turns % 2 == 0, rest + low, high - rest)
    return place.clamp(0, size - 1)


def _at(x: Tensor, places: list[Tensor]) -> Tensor:
    """The values at whole places of all channels; 0 outside."""
    batch, channels, *sizes = x.shape
    inside = torch.ones_like(places[0], dtype=torch.bool)
    flat = torch.zeros_like(places[0], dtype=torch.int64)
    for place, size in zip(places, sizes, strict=True):
        inside = inside & (place >= 0) & (place <= size - 1)
        flat = flat * size + place.clamp(0, size - 1).to(torch.int64)
    index = flat.reshape([batch, 1, -1]).expand([batch, channels, -1])
    taken = x.reshape([batch, channels, -1]).gather(2, index).reshape([batch, channels, *places[0].shape[1:]])
    return torch.where(inside.unsqueeze(1), taken, 0)
