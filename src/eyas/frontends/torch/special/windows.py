"""Windows that torch makes in one op: Kaiser's, which is a Bessel function, sums of cosines, and a triangle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from eyas.frontends.torch.special.modified import i0

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    makers = {
        aten.kaiser_window: (kaiser, ("default", "periodic", "beta")),
        aten.hann_window: (lambda t: _cosines(t, 0.5, 0.5), ("default", "periodic")),
        aten.hamming_window: (hamming, ("default", "periodic", "periodic_alpha", "periodic_alpha_beta")),
        aten.blackman_window: (lambda t: _cosines(t, 0.42, 0.5, 0.08), ("default", "periodic")),
        aten.bartlett_window: (lambda t: 1.0 - t.abs(), ("default", "periodic")),
    }
    return {
        getattr(packet, overload): _window(shape)
        for packet, (shape, overloads) in makers.items()
        for overload in overloads
    }


def _window(shape: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of t from -1 to 1; a periodic one lacks the last element of one that is longer by it."""

    def decomposition(
        length: int, periodic: bool = True, *parameters: float, dtype: torch.dtype | None = None, **options: Any
    ) -> Tensor:
        dtype = dtype or torch.get_default_dtype()
        if length <= 1:
            return torch.ones(length, dtype=dtype)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        steps = length if periodic else length - 1
        t = torch.arange(length).to(wide) * (2.0 / steps) - 1.0
        return shape(t, *parameters).to(dtype)

    return decomposition


def kaiser(t: Tensor, beta: float = 12.0) -> Tensor:
    """I0(beta sqrt(1 - t^2)) / I0(beta)."""
    top = torch.full((), beta, dtype=t.dtype)
    return i0(beta * torch.sqrt((1.0 - t * t).clamp(min=0.0))) / i0(top)


def hamming(t: Tensor, alpha: float = 0.54, beta: float = 0.46) -> Tensor:
    return _cosines(t, alpha, beta)


def _cosines(t: Tensor, *factors: float) -> Tensor:
    """The first factor, and each other times cos(k pi t)."""
    total = torch.full_like(t, factors[0])
    for k, factor in enumerate(factors[1:], 1):
        total = total + factor * torch.cos((k * math.pi) * t)
    return total
