"""Numbers at even distances: `arange`, `linspace` and `logspace` in types where the rounding of each step shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

_LINES = (
    *(aten.linspace.default, aten.linspace.Scalar_Tensor),
    *(aten.linspace.Tensor_Scalar, aten.linspace.Tensor_Tensor),
)
_POWERS = (
    *(aten.logspace.default, aten.logspace.Scalar_Tensor),
    *(aten.logspace.Tensor_Scalar, aten.logspace.Tensor_Tensor),
)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.arange.default: lambda end, **options: steps_from(0, end, 1, **options),
        aten.arange.start: lambda start, end, **options: steps_from(start, end, 1, **options),
        aten.arange.start_step: lambda start, end, step=1, **options: steps_from(start, end, step, **options),
        **dict.fromkeys(_LINES, line),
        **dict.fromkeys(_POWERS, powers),
    }


def steps_from(
    start: Any, end: Any, step: Any, *, dtype: torch.dtype | None = None, device: Any = None, **options: Any
) -> Tensor:
    """Half types hold neither the number of elements nor each place: both are computed in wider ones."""
    ends = (start, end, step)
    if dtype not in (torch.float16, torch.bfloat16) or not all(isinstance(one, int | float) for one in ends):
        return NotImplemented
    places = torch.arange(math.ceil((end - start) / step), device=device)
    return (places.to(torch.float32) * step + start).to(dtype)


def line(
    start: Any, end: Any, steps: int, *, dtype: torch.dtype | None = None, device: Any = None, **options: Any
) -> Tensor:
    """Of whole numbers, between the whole parts of the ends, in doubles and from both ends to the middle. Of half types
    with each step rounded to them."""
    if dtype is None or dtype.is_complex or dtype in (torch.float32, torch.float64):
        return NotImplemented
    is_whole = not dtype.is_floating_point
    wide = torch.float64 if is_whole else dtype
    low, high = (
        one.to(dtype).to(wide)
        if isinstance(one, Tensor)
        else torch.full((), float(int(one) if is_whole else one), dtype=wide, device=device)
        for one in (start, end)
    )
    step = (high - low) / max(steps - 1, 1)
    places = torch.arange(steps, device=device)
    before, after = places.to(wide), (steps - 1 - places).to(wide)
    return torch.where(places < max(steps // 2, 1), low + step * before, high - step * after).to(dtype)


def powers(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: torch.dtype | None = None, **options: Any):
    """Powers of a base whose exponents are a line. An exponent that is rounded to a half type is a power that is wrong
    in its second digit, which torch takes; here exponents are in f32."""
    if dtype not in (torch.float16, torch.bfloat16):
        return NotImplemented
    return torch.logspace(start, end, steps, base, dtype=torch.float32, **options).to(dtype)
