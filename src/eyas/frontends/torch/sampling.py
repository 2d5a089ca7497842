"""Values between the points of an image or a volume: `grid_sample` in plain ops, which have gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor
_LINEAR, _NEAREST, _CUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op. In two dimensions torch's own way is as good."""
    return {aten.grid_sampler_3d.default: grid_sampler}


def grid_sampler(x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool) -> Tensor:
    """`grid` has places from -1 to 1 for [batch, depth, height, width]; the last of its coordinates is the first
    axis's."""
    sizes = x.shape[2:]
    axes = len(sizes)
    places = [_point(grid[..., axes - 1 - axis], sizes[axis], align_corners) for axis in range(axes)]
    if interpolation == _CUBIC:
        return _cubic(x, places, padding, align_corners)
    places = [_inside(place, size, padding, align_corners) for place, size in zip(places, sizes, strict=True)]
    if interpolation == _NEAREST:
        return _at(x, [torch.round(place) for place in places])
    low = [torch.floor(place).detach() for place in places]
    result: Any = 0.0
    for corner in itertools.product((0, 1), repeat=axes):
        at = [one + step for one, step in zip(low, corner, strict=True)]
        weight: Any = 1.0
        for place, one, step in zip(places, low, corner, strict=True):
            weight = weight * ((place - one) if step else (one + 1 - place))
        result = result + _at(x, at) * weight.unsqueeze(1)
    return result


def _cubic(x: Tensor, places: list[Tensor], padding: int, align_corners: bool) -> Tensor:
    """Four points along each axis; what is outside is done with each of them."""
    sizes = x.shape[2:]
    low = [torch.floor(place).detach() for place in places]
    weights = [_keys(place - one) for place, one in zip(places, low, strict=True)]
    result: Any = 0.0
    for taps in itertools.product(range(4), repeat=len(sizes)):
        at = [
            _inside(one + (tap - 1), size, padding, align_corners)
            for one, tap, size in zip(low, taps, sizes, strict=True)
        ]
        weight: Any = 1.0
        for mine, tap in zip(weights, taps, strict=True):
            weight = weight * mine[tap]
        result = result + _at(x, at) * weight.unsqueeze(1)
    return result


def _keys(t: Tensor) -> list[Tensor]:
    """The weights of four points at distances 1 + t, t, 1 - t and 2 - t, with a = -0.75."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _point(coordinate: Tensor, size: int, align_corners: bool) -> Tensor:
    """In points of the volume."""
    return (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2


def _inside(place: Tensor, size: int, padding: int, align_corners: bool) -> Tensor:
    """After what is done with places outside: nothing, the border, or reflection. At the border, and where places are
    reflected, gradients are torch's."""
    if padding == _ZEROS:
        return place
    if padding == _REFLECTION:
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        span = high - low
        if span <= 0:
            place = torch.zeros_like(place)
        else:
            distance = torch.where(place < low, low - place, place - low)
            turns = torch.floor(distance / span).detach()
            rest = distance - turns * span
            place = torch.where(turns % 2 == 0, rest + low, high - rest)
    within = (place > 0) & (place < size - 1)
    return torch.where(within, place, place.detach().clamp(0, size - 1))


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
