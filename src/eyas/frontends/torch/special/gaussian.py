"""Integrals of the Gaussian and their inverses: erfc, erfcx, erfinv, ndtr, log_ndtr, ndtri."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from eyas.frontends.torch.special.fits import fit, unary

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.erfc.default: unary(erfc),
        aten.erfinv.default: unary(erfinv),
        aten.special_erfcx.default: unary(erfcx),
        aten.special_log_ndtr.default: unary(log_ndtr),
        aten.special_ndtr.default: unary(ndtr),
        aten.special_ndtri.default: unary(ndtri),
    }


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x), right where it is tiny."""
    size = x.abs()
    tail = _exp_of_square(size, -1.0) * _scaled_tail(size)
    # Beyond it the exponential is 0, and what it is multiplied with may not be a number.
    tail = torch.where(size > 30.0, 0.0, tail)
    return torch.where(x < 0, 2.0 - tail, tail)


def erfcx(x: Tensor) -> Tensor:
    """exp(x^2) erfc(x)."""
    size = x.abs()
    tail = _scaled_tail(size)
    return torch.where(x < 0, 2.0 * _exp_of_square(size, 1.0) - tail, tail)


def _scaled_tail(x: Tensor) -> Tensor:
    """erfcx of x >= 0."""
    return fit("erfcx", 4.0 / (x + 4.0)) / (2.0 * x + 1.0)


def _exp_of_square(x: Tensor, sign: float) -> Tensor:
    """exp(+-x^2) of x >= 0: the square of a number of few bits is exact, and what that leaves out is small."""
    x = x.clamp(max=64.0)
    short = torch.round(x * 16.0) * 0.0625
    return torch.exp(sign * (short * short)) * torch.exp(sign * ((x - short) * (x + short)))


def ndtr(x: Tensor) -> Tensor:
    """The normal distribution's integral up to x."""
    return 0.5 * erfc(x * -math.sqrt(0.5))


def log_ndtr(x: Tensor) -> Tensor:
    """Its logarithm, from erfcx where the integral itself is too small to be a number."""
    t = x * math.sqrt(0.5)
    left = torch.log(0.5 * _scaled_tail(t.abs())) - t * t
    return torch.where(x < -1.0, left, torch.log1p(-0.5 * erfc(t)))


def erfinv(x: Tensor) -> Tensor:
    """x times a function of -log(1 - x^2)."""
    return _with_ends(x, x * _inverse(-torch.log((1.0 - x) * (1.0 + x))))


def ndtri(p: Tensor) -> Tensor:
    """erfinv(2 p - 1) sqrt(2), where 1 - (2 p - 1)^2 = 4 p (1 - p) is known also for tiny p."""
    x = 2.0 * p - 1.0
    # The product of a subnormal number and 4 is one that the logarithm sees.
    result = math.sqrt(2.0) * x * _inverse(-torch.log((4.0 * p) * (1.0 - p)))
    ended = torch.where(p == 0.0, -math.inf, torch.where(p == 1.0, math.inf, result))
    return torch.where((p < 0.0) | (p > 1.0), math.nan, ended)


def _with_ends(x: Tensor, inside: Tensor) -> Tensor:
    ended = torch.where(x == 1.0, math.inf, torch.where(x == -1.0, -math.inf, inside))
    return torch.where(x.abs() > 1.0, math.nan, ended)


def _inverse(w: Tensor) -> Tensor:
    """erfinv(x) / x, where w = -log(1 - x^2)."""
    w = w.clamp(min=0.0)
    root = torch.sqrt(w)
    inverse = 1.0 / root
    far = torch.where(root < 5.0, fit("erfinv_middle", inverse), fit("erfinv_far", inverse)) * root
    return torch.where(w < 6.25, fit("erfinv_near", w), far)
